"""Datasets on the Hugging Face Hub: a dataset folder is a repository there, file by file."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ertrl import store
from ertrl.data import layout
from ertrl.data.card import CARD, PICTURE, write_card
from ertrl.data.dataset import Dataset
from ertrl.data.writer import place_of
from ertrl.errors import CorruptFileError, DataError, ErtrlError
from ertrl.plugins import require

BESIDE = (layout.MANIFEST, CARD, PICTURE)
"""What a dataset consists of besides its arrays."""


def push(dataset: Dataset, repository: str, *, private: bool = False) -> str:
    """Upload a dataset, its card included; returns the address of the (last) commit."""
    hub = require("huggingface_hub", "hub")
    dataset.verify()
    if not (dataset.path / CARD).exists():
        write_card(dataset)
    with _explained(f"{dataset.path} could not be uploaded to {repository}"):
        api = hub.HfApi()
        api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=dataset.path,
            allow_patterns=sorted([*BESIDE, *dataset.files]),
            delete_patterns="tasks/*",  # tasks of an earlier version that this one does not have
            commit_message=f"{dataset.family}, content {dataset.fingerprint}",
        )
    return str(commit.commit_url)


def pull(repository: str, out: str | Path, *, revision: str | None = None) -> Dataset:
    """Download a dataset; it appears under its name only when every checksum is right.

    An interrupted download is continued by the next attempt.
    """
    hub = require("huggingface_hub", "hub")
    out = place_of(out)
    work = out.with_name(f".{out.name}.pull")
    with store.claim(out):
        with _explained(f"{repository} could not be downloaded"):
            # A fixed commit: asked for a branch without a network, the library would take what an
            # interrupted download left for the whole.
            commit = hub.HfApi().dataset_info(repository, revision=revision).sha
            hub.snapshot_download(
                repository,
                repo_type="dataset",
                revision=commit,
                local_dir=work,
                allow_patterns=[*BESIDE, "tasks/*.npy"],
            )
        _check(work, repository)
        os.rename(work, out)
        store.sync_directory(out.parent)
    return Dataset(out, verify=False)


def _check(work: Path, repository: str) -> None:
    """Verify what was downloaded and drop what is no part of it."""
    if not (work / layout.MANIFEST).exists():
        shutil.rmtree(work, ignore_errors=True)
        raise DataError(
            f"{repository} on the Hub is not a dataset of ertrl: it has no {layout.MANIFEST}"
        )
    try:
        wanted = {*BESIDE, *Dataset(work).files}
    except ErtrlError as error:
        shutil.rmtree(work, ignore_errors=True)
        raise CorruptFileError(
            f"{repository} is damaged and was not kept: {error}. Try again; if it stays so, tell "
            "its owner."
        ) from None
    for file in list(work.rglob("*")):
        if file.is_file() and file.relative_to(work).as_posix() not in wanted:
            file.unlink()
    shutil.rmtree(work / ".cache", ignore_errors=True)  # the Hub library's own notes


@contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn whatever the library and the network raise into one explanation."""
    try:
        yield
    except Exception as error:  # their kinds differ between versions of the library
        words = " ".join(str(error).split())[:300] or type(error).__name__
        raise DataError(
            f"{what}: {words} Check the name (USER/NAME), the network and your login "
            "(`hf auth login`)."
        ) from None

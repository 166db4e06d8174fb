"""The Hugging Face Hub: the real client library against a small Hub on this machine."""

import json
import sys

import pytest
from huggingface_hub import constants

from ertrl import store
from ertrl.data import Dataset, pull, push
from ertrl.errors import CorruptFileError, DataError, MissingExtra
from fake_hub import serving
from toys import some_tasks


@pytest.fixture(scope="module")
def dataset(tiny_dataset, tmp_path_factory):
    """A few tasks of the tiny dataset are enough."""
    path = tmp_path_factory.mktemp("few") / "point-robot"
    return some_tasks(tiny_dataset, (0, 4, 25), path)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub without a network, and a client that has neither a login nor a cache."""
    with serving() as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        template = running.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
        yield running


@pytest.fixture
def pushed(hub, dataset):
    """The dataset on the Hub: its files by path."""
    push(dataset, "someone/point-robot")
    return hub.repositories["someone/point-robot"]


def test_a_dataset_goes_there_and_back(pushed, dataset, tmp_path):
    assert pushed["README.md"].startswith(b"---\nlicense:")
    assert len(pushed) == dataset.verify() + 2, "arrays, manifest, card and picture"
    back = pull("someone/point-robot", tmp_path / "new" / "back")
    assert back.fingerprint == dataset.fingerprint
    files = {p.relative_to(back.path).as_posix() for p in back.path.rglob("*") if p.is_file()}
    assert files == set(pushed)
    assert [p.name for p in back.path.parent.iterdir()] == ["back"], "no lock, no partial folder"


def test_pushing_again_replaces_what_was_there(pushed, hub, dataset, tmp_path):
    pushed["tasks/099/rewards.npy"] = b"of an earlier version"
    pushed["notes.txt"] = b"by its owner"
    push(dataset, "someone/point-robot")
    assert "tasks/099/rewards.npy" not in pushed
    assert pushed["notes.txt"] == b"by its owner"
    back = pull("someone/point-robot", tmp_path / "back")
    assert not (back.path / "notes.txt").exists(), "only a dataset's own files are fetched"


def test_a_damaged_dataset_is_not_pushed(hub, dataset, tmp_path):
    import shutil

    copy = shutil.copytree(dataset.path, tmp_path / "copy")
    with open(copy / "tasks" / "000" / "rewards.npy", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x55")
    with pytest.raises(CorruptFileError, match=r"rewards\.npy is damaged"):
        push(Dataset(copy, verify=False), "someone/point-robot")
    assert not hub.repositories


@pytest.mark.parametrize("file", ["tasks/004/actions.npy", "manifest.json"])
def test_what_is_damaged_on_the_hub_is_not_kept(pushed, tmp_path, file):
    pushed[file] = pushed[file][:-1] + bytes([pushed[file][-1] ^ 1])
    with pytest.raises(CorruptFileError, match=r"someone/point-robot is damaged and was not kept"):
        pull("someone/point-robot", tmp_path / "back")
    assert not [p for p in tmp_path.iterdir() if p.name != "cache"]


@pytest.mark.parametrize(
    "change",
    [
        *({"tasks": None}, {"tasks": 3}, {"horizon": 10**9}, {"family_options": {"self": 1}}),
        *({"family": name} for name in ("../x", "..", "a\\b", "a\n", "a" * 181)),
    ],
)
def test_a_sealed_manifest_that_says_what_cannot_be_is_not_kept(pushed, tmp_path, change):
    content = json.loads(pushed["manifest.json"])
    del content["sha256"]
    store.write_json(tmp_path / "cache" / "manifest.json", content | change)
    pushed["manifest.json"] = (tmp_path / "cache" / "manifest.json").read_bytes()
    with pytest.raises(CorruptFileError, match=rf"was not kept.*{next(iter(change))}"):
        pull("someone/point-robot", tmp_path / "back")
    assert not [p for p in tmp_path.iterdir() if p.name != "cache"]


def test_a_missing_file_is_noticed(pushed, tmp_path):
    del pushed["tasks/004/actions.npy"]
    with pytest.raises(CorruptFileError, match=r"004/actions\.npy is missing"):
        pull("someone/point-robot", tmp_path / "back")


def test_a_repository_of_something_else(hub, tmp_path):
    hub.repositories["someone/cats"] = {"README.md": b"# Cats", "cats.csv": b"name"}
    with pytest.raises(DataError, match=r"someone/cats on the Hub is not a dataset of ertrl"):
        pull("someone/cats", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_name_that_is_not_there(hub, tmp_path):
    with pytest.raises(DataError, match=r"nothing could not be downloaded.*hf auth login"):
        pull("someone/nothing", tmp_path / "back")
    with pytest.raises(DataError, match=r"USER/NAME"):
        pull("not a name", tmp_path / "back")


def test_an_interrupted_download_is_continued(pushed, hub, dataset, tmp_path, monkeypatch):
    """Half of the files arrive; without a network nothing is lost, and later the rest follows."""
    whole = dict(pushed)
    work = tmp_path / ".back.pull"
    for path in list(whole)[: len(whole) // 2]:
        store.write_bytes(work / path, whole[path])
    with monkeypatch.context() as away:
        away.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(DataError, match="could not be downloaded"):
            pull("someone/point-robot", tmp_path / "back")
    assert work.exists()
    assert not (tmp_path / "back").exists()
    back = pull("someone/point-robot", tmp_path / "back")
    assert back.fingerprint == dataset.fingerprint
    assert not work.exists()


def test_nothing_is_overwritten(pushed, dataset):
    with pytest.raises(DataError, match="already exists"):
        pull("someone/point-robot", dataset.path)


def test_without_the_extra_the_message_says_how_to_get_it(dataset, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[hub\]'"):
        push(dataset, "someone/point-robot")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[hub\]'"):
        pull("someone/point-robot", tmp_path / "back")


def test_the_commands(hub, dataset, tmp_path, capsys):
    from ertrl.cli import main

    assert main(["data", "push", str(dataset.path), "--hub", "someone/pr", "--json"]) == 0
    where = json.loads(capsys.readouterr().out)
    assert where["commit"] == f"{hub.url}/datasets/someone/pr/commit/{hub.commit('someone/pr')}"
    out = tmp_path / "back"
    assert main(["data", "pull", "--hub", "someone/pr", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fingerprint"] == dataset.fingerprint
    assert main(["data", "pull", "--hub", "someone/pr", "--out", str(out)]) == 1
    assert "already exists" in capsys.readouterr().err

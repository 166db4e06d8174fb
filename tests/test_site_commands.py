"""Commands of README and docs site are run, one after the other, at the size of a test."""

import glob
import shlex
import shutil
from pathlib import Path

import pytest

from conftest import TINY_TRAIN
from ertrl.cli import main
from test_hub import hub  # noqa: F401 - a fixture
from test_site import PAGES, ROOT, STAND_INS, commands, write_own_files

pytestmark = [
    pytest.mark.slow,
    # Forty steps make no experts.
    pytest.mark.filterwarnings("ignore:.*the expert is not above random actions"),
]

ELSEWHERE = {
    "ertrl demo": "test_cli.py",
    "--beside": "test_reporting_read.py",
    "collect metaworld-": "test_metaworld.py",
    "ertrl replay": "test_fault.py",
    "ertrl reproduce": "test_reproduce.py",
    "reproduce --executor ray": "test_reproduce_ray.py",
    "data import batch_data/": "test_releases.py",
    "data import data/ant-dir": "test_releases.py",
    "data import logs.csv": "test_logs.py",
    "data import minari:walker/": "test_minari.py",
    "--profile paper": "test_variants.py",
    "--sink": "test_sinks.py",
    "data/pendulum": "test_site.py",
}
"""Words of commands that need a grid, a cluster, foreign files or hours, and who tests these."""

SMALL = {
    "collect": shlex.split("--steps 40 --random-steps 20 --checkpoints 2 --reference-episodes 1"),
    "train": TINY_TRAIN,
    "bench": shlex.split("--seconds 1"),
    "watch": ["--once"],
}


def belongs_elsewhere(line: str) -> bool:
    return "--dry-run" not in line and any(words in line for words in ELSEWHERE)


@pytest.fixture(scope="module")
def trained(tiny_dataset, tmp_path_factory):
    """Folder of a finished run of the size that all runs have here."""
    out = tmp_path_factory.mktemp("site") / "runs"
    words = ["train", "er-trl", "--data", str(tiny_dataset.path), "--out", str(out)]
    assert main([*words, *TINY_TRAIN]) == 0
    (run,) = out.iterdir()
    return run


@pytest.fixture
def reader(tmp_path, monkeypatch, tiny_dataset, trained, hub):  # noqa: F811
    """The folder of somebody who has data, a run and a file with tasks of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    (tmp_path / "data").mkdir()
    for name in ("point-robot", "cheetah-vel", "line", "my-pendulum"):
        (tmp_path / "data" / name).symlink_to(tiny_dataset.path)
    shutil.copytree(trained, tmp_path / "runs" / trained.name)
    write_own_files(tmp_path)
    return f"runs/{trained.name}"


def as_typed(line: str, run: str) -> list[str]:
    """Words of a command as the shell would hand them over, small."""
    words = []
    for word in shlex.split(line)[1:]:
        word = (
            (STAND_INS | {"N": "30", "NAME": "focal"})
            .get(word, word)
            .replace("runs/...", run)
            .replace("runs/RUN", run)
        )
        word = word.replace("runs/line-", "runs/")
        word = word.replace("DIR", "data/point-robot").replace("USER/NAME", "someone/robot")
        words += sorted(glob.glob(word)) if "*" in word else [word]
    has_its_size = "--dry-run" in words or words[:2] == ["train", run]
    return words if has_its_size else words + SMALL.get(words[0], [])


def exit_code(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as stop:  # --help
        return stop.code


SHOWN = [page for page in [*PAGES, ROOT / "README.md"] if commands(page)]


@pytest.mark.usefixtures("forgets_own_parts")
@pytest.mark.parametrize("page", SHOWN, ids=lambda p: p.name)
def test_commands_on_the_site_run(page, reader):
    for number, line in enumerate(commands(page)):
        if belongs_elsewhere(line):
            continue
        words = as_typed(line, reader)
        if words[0] == "collect":  # what is there, other lines and pages need
            words += ["--out", f"data/new-{number}"] if "--out" not in words else []
        assert exit_code(words) == 0, line


@pytest.mark.parametrize("file", sorted(set(ELSEWHERE.values())))
def test_who_tests_the_others_exists(file):
    assert (Path(__file__).parent / file).exists()

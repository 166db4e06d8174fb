"""Every block of code on the docs site works as shown: Python is run, commands are parsed."""

import contextlib
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ertrl
from ertrl.cli import main
from ertrl.envs import family_names
from ertrl.envs.render import Frames
from ertrl.reporting.read.runs import read_runs

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
TESTED_IN = {
    "add-a-family.md": "test_docs.py",
    "add-a-learner.md": "test_docs.py",
    "add-a-method.md": "test_docs.py",
    "deploy.md": "test_docs.py",
    "own-environment.md": "test_docs.py",
    "own-logs.md": "test_docs.py",
    "reproduce.md": "test_reproduce.py",
}
"""Pages whose blocks are files that a reader writes, and the tests that run them."""
SMALL = {
    "updates": 20,
    "updates_per_call": 10,
    "evaluate_every": 20,
    "checkpoint_every": 20,
    "evaluation": {"episodes": 3, "prior_episodes": 1},
}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def small_world(tmp_path, monkeypatch, tiny_dataset, tmp_path_factory):
    """The real functions at the size of a test; all that train share one place for their runs."""
    runs = tmp_path_factory.getbasetemp() / "site-runs"
    train = ertrl.api.train

    def small(method, data, settings=None, **options):
        options.setdefault("out", runs)
        chosen = {**(settings or {}), **SMALL}
        return train(method, data, settings=chosen, progress="none", **options)

    def sketch(runs, out="report"):
        """Drawing takes a minute and is tested elsewhere; that runs fit together is seen here."""
        assert read_runs(runs).families
        page = tmp_path / out / "report.html"
        page.parent.mkdir()
        page.touch()
        return page

    def clip(family, task, policy, **_):
        policy(np.zeros((1, family.observation_dim), np.float32), 0)
        return Frames(np.zeros((2, 32, 32, 3), np.uint8), 20.0, 0.0)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "point-robot").symlink_to(tiny_dataset.path)
    monkeypatch.setattr(ertrl, "collect", lambda family, *_: tiny_dataset, raising=False)
    monkeypatch.setattr(ertrl, "train", small, raising=False)
    monkeypatch.setattr(ertrl, "report", sketch, raising=False)
    monkeypatch.setattr("ertrl.envs.render.render_rollout", clip)
    return tmp_path


RUN_HERE = [p for p in PAGES if blocks(p, "python") and p.name not in TESTED_IN]


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda p: p.name)
@pytest.mark.usefixtures("small_world")
def test_python_on_the_site_runs(page):
    """All blocks of a page, one after the other, as a reader would type them."""
    names: dict = {}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)


@pytest.mark.parametrize("page", TESTED_IN)
def test_pages_that_are_tested_elsewhere_are(page):
    assert page in (ROOT / "tests" / TESTED_IN[page]).read_text()


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", ["quickstart", "compare"])
def test_examples_run(name, small_world, capsys):
    path = ROOT / "examples" / f"{name}.py"
    exec(compile(path.read_text(), path.name, "exec"), {"__name__": "__main__"})
    assert (small_world / "report" / "report.html").exists()
    assert "offline/test-id" in capsys.readouterr().out


def test_the_method_of_the_examples_trains(small_world, tiny_dataset):
    method = runpy.run_path(str(ROOT / "examples" / "my_method.py"))["METHOD"]
    run = ertrl.train(method, tiny_dataset, out=small_world)
    first, *_, last = (line for line in run.metrics() if line["kind"] == "train")
    assert last["reward_error"] < first["reward_error"]
    assert ertrl.load_agent(run).adapt(tiny_dataset.task(25).transitions(np.arange(5))).z.any()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_short_and_say_what_they_do(path):
    text = path.read_text()
    assert len(text.splitlines()) < 60
    assert text.startswith('"""')
    assert f"examples/{path.name}" in (ROOT / "docs" / "README.md").read_text()


def test_the_notebook_is_the_tutorial():
    path = ROOT / "examples" / "quickstart.ipynb"
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells), "outputs are stripped"
    code = ["".join(cell["source"]).strip() for cell in cells]
    assert code == [block.strip() for block in blocks(ROOT / "docs" / "tutorial.md", "python")]


@cache
def help_of(*words: str) -> str:
    """What --help prints, which is all that a command knows."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return said.getvalue()


def command_of(line: str) -> tuple[list[str], list[str]]:
    """The words that choose a command, and the options given to it."""
    words = shlex.split(re.split(r"\s{2,}| -> | \| ", line)[0])[1:]
    options = [word.split("=")[0] for word in words if re.match(r"--[a-z]", word)]
    nested = (["data"], ["bench"], ["train"], ["collect"])
    chosen = words[: 2 if words[:1] in nested and len(words) > 1 else 1]
    if chosen[:1] == ["train"] and not re.fullmatch(r"[a-z][a-z-]*", chosen[-1]):
        chosen = ["train"]  # a run, or nothing yet
    if chosen[:1] == ["collect"] and chosen[-1] not in family_names():
        chosen = ["collect"]  # a family that the reader makes
    return chosen, options


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: p.name)
def test_commands_on_the_site_are_known(page):
    for block in [*blocks(page, ""), *blocks(page, "sh")]:
        for line in block.splitlines():
            if not line.startswith("ertrl ") or line.startswith("ertrl train classifier"):
                continue
            chosen, options = command_of(line)
            text = help_of(*chosen)
            assert "usage: ertrl" in text, f"{page.name}: {line}"
            for option in options:
                assert f"{option}" in text, f"{page.name} gives {option} to ertrl {chosen}"


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        name = "" if page.stem == "README" else page.stem
        assert (tmp_path / "site" / name / "index.html").exists(), page.name

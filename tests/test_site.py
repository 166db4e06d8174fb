"""Every block of code on the docs site works as shown: Python is run, commands are understood."""

import functools
import inspect
import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tyro

import ertrl
from ertrl import plugins
from ertrl.cli import main, options
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
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


@pytest.fixture
def small_world(tmp_path, monkeypatch, tiny_dataset, tmp_path_factory):
    """The real functions at the size of a test; all that train share one place for their runs."""
    runs = tmp_path_factory.getbasetemp() / "site-runs"
    train = ertrl.api.train

    def small(method, data, settings=None, updates=None, **options):
        """However many `updates` are asked for, it makes a few."""
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


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    """In a real kernel and at full size; progress is told on one line that is written over."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=1200, resources=place).execute()
    told = [
        "".join(output.text for output in cell.outputs if output.output_type == "stream")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    training = next(text for text in told if "6000/6000" in text)
    assert training.count("\rtrain er-trl seed 0") > 1
    assert training.count("\n") == 3, "the device, the end of the line that moves, the run"
    assert (tmp_path / told[-1].split()[-1]).exists(), "the report"
    assert "Python, in a notebook" in (tmp_path / "report" / "report.html").read_text()


def commands(page: Path) -> list[str]:
    """Lines that call the program, without what stands beside them."""
    shell = "".join([*blocks(page, ""), *blocks(page, "sh")])
    lines = [line for line in shell.splitlines() if line.startswith("ertrl ")]
    return [re.split(r"\s{2,}| -> | \| | > ", line)[0] for line in lines]


STAND_INS = {"line": "point-robot", "classifier": "focal", "awac": "iql", "N": "9"}
"""For parts that a reader makes, and numbers that a reader chooses."""


class Parsed(Exception):
    """Every word of a command was understood."""


def write_own_files(folder: Path) -> None:
    """Those that the site shows and that its commands name."""
    tasks, *_ = blocks(ROOT / "docs" / "own-environment.md", "python")
    (folder / "my_tasks.py").write_text(tasks)
    method = max(blocks(ROOT / "docs" / "add-a-method.md", "python"), key=len)
    (folder / "classifier.py").write_text(method)


@pytest.mark.usefixtures("forgets_own_parts")
@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: p.name)
def test_commands_on_the_site_are_understood(page, small_world, monkeypatch, tiny_dataset):
    """Each goes through the program's own parser, up to where its work would begin."""
    understand = tyro.cli

    def only_understand(command, **options):
        if inspect.isfunction(command):  # one that would be called by the parser

            @functools.wraps(command)
            def idle(*_, **__):
                raise Parsed

            command = idle
        understand(command, **options)
        raise Parsed

    monkeypatch.setattr(options.tyro, "cli", only_understand)
    monkeypatch.setattr(plugins, "_registered", {})
    write_own_files(small_world)
    for line in commands(page):
        if " ... " in f"{line} ":
            continue  # the reader's own words
        words = [STAND_INS.get(word, word) for word in shlex.split(line)[1:]]
        if "--data" in words:
            words[words.index("--data") + 1] = str(tiny_dataset.path)
        if words[0] == "train" and words[1].startswith("runs/"):
            continue  # a run that the reader has
        try:
            main(words)
        except Parsed:
            continue
        except SystemExit as stop:  # --help
            if stop.code == 0:
                continue
        pytest.fail(f"{page.name} shows: {line}")


def test_the_commands_of_own_logs_run(tmp_path, monkeypatch, capsys):
    """The page as a reader follows it: from the script that writes a CSV to the exported agent."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "own-logs.md"
    assert "python examples/pendulum_logs.py pendulum.csv" in page.read_text()
    runpy.run_path(str(ROOT / "examples" / "pendulum_logs.py"))["write_logs"]("pendulum.csv")
    imported, *_, trained = (line for line in commands(page) if "data/pendulum" in line)
    assert main(shlex.split(imported)[1:]) == 0
    small = ["--updates", "20", "--updates-per-call", "20", "--evaluate-every", "20"]
    assert main([*shlex.split(trained)[1:], *small]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert main(["evaluate", str(run)]) == 0
    assert "value of policy/test-id" in capsys.readouterr().out
    assert main(["export", str(run), "--out", "agent"]) == 0
    assert ertrl.runtime.load("agent").begin().act(np.zeros(3)).shape == (1,)


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        name = "" if page.stem == "README" else page.stem
        assert (tmp_path / "site" / name / "index.html").exists(), page.name

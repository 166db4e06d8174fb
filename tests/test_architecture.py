"""Rules of the house that a machine can check."""

import ast
import re
from pathlib import Path

import pytest

import size

SOURCE = Path(__file__).parent.parent / "src" / "ertrl"

ORDER = [
    "errors", "text", "sealed", "runtime", "colours", "rng", "types", "memory", "config",
    "plugins", "provenance", "shape", "store", "progress", "signals", "envs", "data", "nets",
    "losses", "collection", "learners", "methods", "evaluation", "training", "profiles",
    "deploy", "bench", "contracts", "api", "reporting", "launch", "cli",
]  # fmt: skip
"""A module imports only from modules to its left."""

FILES = sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem[0] != "_")


def imported(path: Path) -> set[str]:
    """Top-level parts of ertrl that a file imports."""
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "ertrl":
            parts |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ertrl."):
            parts.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("ertrl.")]
            parts |= {name.split(".")[1] for name in names}
    return parts - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_from_its_left(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    allowed = set(ORDER[: ORDER.index(own) + 1])
    assert imported(path) <= allowed, f"{own} must not import {imported(path) - allowed}"


def test_the_documentation_has_the_same_order():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    table = page[page.index("| part of `src/ertrl/` |") :].split("\n\n")[0].splitlines()[2:]
    parts = [part for row in table for part in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert parts == ORDER


def test_the_sizes_that_are_told_are_about_true():
    """Of the largest parts and of all; `make results-size` makes them exact."""
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    told = {name: now for name, now in re.findall(r"\| \**(\w+)\** \|.*\| ([\d,]+) \|", page)}
    counted = size.parts(size.files_now())
    counted["all"] = counted.total()
    for name, lines in counted.items():
        if lines > 1000 and name in told:
            off = int(told[name].replace(",", "")) / lines
            assert 0.85 < off < 1.15, f"{name} has {lines} lines: make results-size"
    assert {"all", "reporting"} <= told.keys()


def test_a_reader_finds_every_file_on_the_way():
    assert len(size.way()) > 20
    assert all((SOURCE / name).exists() for name in size.way())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_short_and_nothing_is_pickled(path):
    text = path.read_text()
    limit = 150 if path.parent.name == "methods" else 450
    assert len(text.splitlines()) <= limit
    assert "import pickle" not in text
    assert "allow_pickle=True" not in text


def test_no_method_or_learner_is_named_outside_its_file():
    """There is no `if method == ...`: whoever adds a method touches no other code."""
    for path in FILES:
        if path.parent.name in ("methods", "learners"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                constants = {c.value for c in ast.walk(node) if isinstance(c, ast.Constant)}
                assert not constants & {"er-trl", "focal", "td3bc", "brac"}, path


@pytest.mark.parametrize(
    "package", ["collection", "data", "envs", "evaluation", "launch", "methods", "training"]
)
def test_a_package_says_what_its_files_are(package):
    folder = SOURCE / package
    about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    files = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert files == set(re.findall(r"\b\w+\.py\b", about))

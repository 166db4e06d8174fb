"""`ertrl verify`."""

from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command, unset
from ertrl.errors import ConfigError, CorruptFileError, ErtrlError

MARKS = ("manifest.json", "config.json", "agent.json")
"""Each kind of folder has one of them."""


@command("verify")
def run(
    paths: Annotated[Positional[tuple[Path, ...]], unset("FOLDER ...")], json: Json = False
) -> None:
    """Check every file of datasets, runs and exported agents; a line for each of them.

    Args:
        paths: Datasets, runs or exported agents, or folders that hold them.
    """
    if not paths:
        raise ConfigError("say which dataset, run or agent to verify")
    from ertrl import api

    paths = tuple(found for path in paths for found in _inside(path))
    results: list[dict[str, Any]] = []
    problems: list[Exception] = []
    for path in paths:
        try:
            results.append(api.verify(path))
            told = f"{path}: {results[-1]['kind']}, {results[-1]['files']} files are whole"
        except (ErtrlError, OSError) as problem:
            problems.append(problem)
            results.append({"path": str(path), "problem": str(problem)})
            told = f"{path}: {problem}"
        if not json and (len(paths) > 1 or not problems):  # each as soon as it is known
            print(told, flush=True)
    if json:
        output({"verified": results})
    if problems and len(paths) == 1:
        raise problems[0]
    if problems:
        bad = ", ".join(result["path"] for result in results if "problem" in result)
        raise CorruptFileError(f"{len(problems)} of {len(results)} could not be verified: {bad}")


def _inside(path: Path) -> list[Path]:
    """What is in a folder that is neither dataset nor run, nor agent."""
    inside = sorted({file.parent for mark in MARKS for file in path.glob(f"*/{mark}")})
    return inside if inside and not any((path / mark).exists() for mark in MARKS) else [path]

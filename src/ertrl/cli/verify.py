"""`ertrl verify`."""

from pathlib import Path

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("verify")
def run(paths: Positional[tuple[Path, ...]], json: Json = False) -> None:
    """Check every file of a dataset, run or exported agent.

    Args:
        paths: Folders of datasets, runs or exported agents.
    """
    if not paths:
        raise ConfigError("say which dataset, run or agent to verify")
    from ertrl import api

    results = [api.verify(path) for path in paths]
    lines = [f"{r['path']}: {r['kind']}, {r['files']} files are whole" for r in results]
    output({"verified": results}, None if json else "\n".join(lines))

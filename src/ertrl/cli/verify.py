"""`ertrl verify`."""

from pathlib import Path

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("verify")
def run(paths: Positional[tuple[Path, ...]], json: Json = False) -> None:
    """Check every file of a dataset or run against its checksum.

    Args:
        paths: Dataset or run folders.
    """
    if not paths:
        raise ConfigError("say which dataset or run to verify")
    from ertrl import api

    results = [api.verify(path) for path in paths]
    lines = [f"{r['path']}: {r['kind']}, {r['files']} files are whole" for r in results]
    output({"verified": results}, None if json else "\n".join(lines))

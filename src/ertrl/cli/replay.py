"""`ertrl replay`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command, unset


@command("replay")
def run(
    run: Positional[Path],
    step: Annotated[int | None, unset("N")] = None,
    json: Json = False,
) -> None:
    """Repeat the update at which a run diverged and name the first operation that went wrong.

    Args:
        run: Folder of the run.
        step: Which update, where several failed; the newest if not given.
    """
    from ertrl.training import Run
    from ertrl.training.replay import describe, replay

    value = replay(Run(run), step)
    output(value, None if json else describe(value))

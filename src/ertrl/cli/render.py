"""`ertrl render`."""

from pathlib import Path

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, MovedData, command


@command("render")
def run(
    run: Positional[Path],
    task: int = 20,
    out: Path = Path("clip.mp4"),
    data: MovedData = None,
    json: Json = False,
) -> None:
    """Film an agent before and after adaptation, and the best logged episode beside it.

    Args:
        run: Folder of the run.
        task: Which task; 20 to 29 are held out and in distribution.
        out: Where to write: .mp4 or .gif.
    """
    from ertrl import api
    from ertrl.progress import say
    from ertrl.provenance import device_text

    say(f"render: on {device_text()}")
    path = api.render(run, task, out, data=data)
    output({"clip": str(path)}, None if json else f"wrote {path}")

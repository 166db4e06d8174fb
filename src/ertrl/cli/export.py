"""`ertrl export`."""

from pathlib import Path

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, MovedData, Step, command


@command("export")
def run(
    run: Positional[Path],
    out: Path = Path("agent"),
    onnx: bool = False,
    data: MovedData = None,
    step: Step = None,
    json: Json = False,
) -> None:
    """Write a trained agent for machines without JAX, once it has proved to do the same.

    Args:
        run: Folder of the run.
        out: New folder to write; `ertrl.runtime.load` reads it with NumPy alone.
        onnx: Also write encoder.onnx and policy.onnx; needs `pip install '.[onnx]'`.
    """
    from ertrl import api

    about = api.export(run, out, onnx=onnx, data=data, step=step)
    apart = max(size for found in about["parity"]["largest"].values() for size in found.values())
    files = ", ".join(["agent.json", *about["files"]])
    text = f"wrote {out}: {files}; at most {apart:.1g} from the agent in JAX"
    output({"agent": str(out), **about}, None if json else text)

"""`ertrl demo`."""

from pathlib import Path

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("demo")
def run(
    family: str = "point-robot", seeds: int = 3, out: Path = Path("demo"), json: Json = False
) -> None:
    """Collect data, meta-train Bayes-linear, ER-TRL and FOCAL, evaluate, report: a few minutes.

    All cores collect, so the numbers differ a little from machine to machine.

    Args:
        family: Which family; the MuJoCo ones take longer.
        seeds: Runs per method.
        out: Where everything goes. Run again, it continues where it was.
    """
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    from ertrl.launch.demo import demo

    value = demo(family, seeds, out)
    if json:
        output(value)

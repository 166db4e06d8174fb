"""`ertrl watch`."""

from dataclasses import asdict

from ertrl.cli.common import output
from ertrl.cli.options import Runs, command
from ertrl.errors import ConfigError


@command("watch")
def run(runs: Runs, once: bool = False, every: float = 2.0, json: bool = False) -> None:
    """Follow training: progress, time left, returns. Ends when no run is running any more.

    Args:
        once: Look once and return, for scripts.
        every: Seconds between two looks.
        json: Look once and print the result as JSON.
    """
    if not runs:
        raise ConfigError("say which runs to watch, or the folder that holds them")
    if not 0.1 <= every <= 3600:
        raise ConfigError(f"--every must lie between 0.1 and 3600 seconds, got {every}")
    from ertrl.launch.watch import look, watch
    from ertrl.training import open_runs

    if json:
        output({"runs": [asdict(look(run)) for run in open_runs(runs)]})
    else:
        watch(runs, once=once, every=every)

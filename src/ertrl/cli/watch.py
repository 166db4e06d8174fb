"""`ertrl watch`."""

from dataclasses import asdict

from ertrl.cli.common import output, require_runs
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
    require_runs(runs, "watch")
    if not 0.1 <= every <= 3600:
        raise ConfigError(f"--every must lie between 0.1 and 3600 seconds, got {every}")
    from ertrl.launch.watch import look_at, watch

    if json:
        output({"runs": [asdict(seen) for seen in look_at(runs).values()]})
    else:
        watch(runs, once=once, every=every)

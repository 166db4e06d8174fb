"""Commands that run a whole programme: demo and bench."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ertrl.cli.common import output, parse, peek_number, use_threads
from ertrl.errors import ConfigError


@dataclass
class DemoCommand:
    """Collect data, meta-train ER-TRL and FOCAL, evaluate and report, in a few minutes."""

    family: str = "point-robot"
    """Which family; the MuJoCo ones take longer."""
    seeds: int = 2
    """Runs per method."""
    out: Path = Path("demo")
    """Where everything goes. Run again, it continues where it was."""
    json: bool = False
    """Print the result as JSON."""


def demo(argv: Sequence[str]) -> None:
    """`ertrl demo`."""
    command = parse(DemoCommand, "demo", argv)
    if command.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {command.seeds}")
    from ertrl.launch.demo import demo as run_demo

    value = run_demo(command.family, command.seeds, command.out)
    if command.json:
        print(json.dumps(value))


@dataclass
class WatchCommand:
    """Follow training: progress, time left, returns. Ends when no run is running any more."""

    runs: tuple[Path, ...]
    """Folders of runs, or folders that hold runs."""
    once: bool = False
    """Look once and return, for scripts."""
    every: float = 2.0
    """Seconds between two looks."""
    json: bool = False
    """Look once and print the result as JSON."""


def watch(argv: Sequence[str]) -> None:
    """`ertrl watch`."""
    import tyro

    command = parse(WatchCommand, "watch", argv, config=(tyro.conf.PositionalRequiredArgs,))
    if not command.runs:
        raise ConfigError("say which runs to watch, or the folder that holds them")
    if not 0.1 <= command.every <= 3600:
        raise ConfigError(f"--every must lie between 0.1 and 3600 seconds, got {command.every}")
    from dataclasses import asdict

    from ertrl.launch import watch as watching
    from ertrl.training import open_runs

    if command.json:
        seen = [asdict(watching.look(run)) for run in open_runs(command.runs)]
        print(json.dumps({"runs": seen}))
        return
    watching.watch(command.runs, once=command.once, every=command.every)


@dataclass
class BenchCommand:
    """Measure speed on this machine."""

    what: Literal["train", "env"]
    """Training updates against the machine's matrix-product peak, or simulation steps."""
    profile: str = "paper"
    """(train) Sizes of this profile."""
    family: str = ""
    """(train) Sizes of this family; cheetah-vel if not given. (env) Only this family; else all."""
    method: tuple[str, ...] = ()
    """(train) Which methods; all of them if not given."""
    seconds: float = 20.0
    """(train) Time to measure each method for."""
    threads: int = 0
    """CPU threads; 0 takes all."""
    json: bool = False
    """Print the result as JSON."""


def bench(argv: Sequence[str]) -> None:
    """`ertrl bench`."""
    use_threads(peek_number(argv, "--threads", 0))
    import tyro

    command = parse(BenchCommand, "bench", argv, config=(tyro.conf.PositionalRequiredArgs,))
    if command.seconds <= 0:
        raise ConfigError(f"--seconds must be above 0, got {command.seconds}")
    if command.what == "train":
        from ertrl.bench.updates import describe, update_speed
        from ertrl.methods import methods

        chosen = command.method or tuple(methods())
        family = command.family or "cheetah-vel"
        value = update_speed(chosen, command.profile, family, command.seconds)
    else:
        from ertrl.bench.simulation import describe, simulation_speed

        chosen = [command.family] if command.family else None
        value = simulation_speed(chosen, threads=command.threads or None)
    output(value, command.json, describe(value))

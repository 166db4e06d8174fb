"""`ertrl bench`."""

from typing import Literal

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("bench")
def run(
    what: Positional[Literal["train", "env", "collect", "adapt", "scaling"]],
    profile: str = "",
    family: str = "",
    method: tuple[str, ...] = (),
    seconds: float = 20.0,
    threads: int = 0,
    json: Json = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: Training updates against the machine's matrix-product peak, simulation steps, the
            parts of a collection, microseconds of an exported agent per action and per observed
            transition, or how time and memory of training grow.
        profile: (all but env) Sizes of this profile; train takes paper if not given, the others
            laptop.
        family: (train, adapt, scaling) Sizes of this family, else of cheetah-vel. (env, collect)
            Only this family, else all.
        method: (train, adapt, scaling) Which methods; all of them if not given.
        seconds: (train, collect, adapt) Time to measure each method or family for. (scaling) The
            same for all its points.
        threads: CPU threads; 0 takes all.
    """
    if seconds <= 0:
        raise ConfigError(f"--seconds must be above 0, got {seconds}")
    if what == "train":
        from ertrl.bench.updates import describe, update_speed
        from ertrl.methods import methods

        sizes = profile or "paper", family or "cheetah-vel"
        value = update_speed(method or tuple(methods()), *sizes, seconds)
    elif what == "collect":
        from ertrl.bench.behaviour import collection_speed, describe

        value = collection_speed([family] if family else None, profile or "laptop", seconds)
    elif what == "adapt":
        from ertrl.bench.deployed import adaptation_speed, describe
        from ertrl.methods import methods

        sizes = profile or "laptop", family or "cheetah-vel"
        value = adaptation_speed(method or tuple(methods()), *sizes, seconds)
    elif what == "scaling":
        from ertrl.bench.scaling import AXES, describe, scaling
        from ertrl.methods import methods
        from ertrl.progress import say

        names, points = method or tuple(methods()), sum(len(a.values) for a in AXES.values())
        profile, family = profile or "laptop", family or "cheetah-vel"
        value = scaling(names, profile, family, seconds / points, say=say)
    else:
        from ertrl.bench.simulation import describe, simulation_speed

        value = simulation_speed([family] if family else None, threads=threads or None)
    output(value, None if json else describe(value))

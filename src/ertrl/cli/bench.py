"""`ertrl bench`."""

from typing import Literal

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("bench")
def run(
    what: Positional[Literal["train", "env", "scaling"]],
    profile: str = "",
    family: str = "",
    method: tuple[str, ...] = (),
    seconds: float = 20.0,
    threads: int = 0,
    json: Json = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: Training updates against the machine's matrix-product peak, simulation steps, or how
            time and memory of training grow with tasks, context, data, z and seeds.
        profile: (train, scaling) Sizes of this profile; paper for train, laptop for scaling.
        family: (train, scaling) Sizes of this family, else of cheetah-vel. (env) Only this family,
            else all.
        method: (train, scaling) Which methods; all of them if not given.
        seconds: (train) Time to measure each method for. (scaling) The same for all its points.
        threads: CPU threads; 0 takes all.
    """
    if seconds <= 0:
        raise ConfigError(f"--seconds must be above 0, got {seconds}")
    if what == "train":
        from ertrl.bench.updates import describe, update_speed
        from ertrl.methods import methods

        names, family = method or tuple(methods()), family or "cheetah-vel"
        value = update_speed(names, profile or "paper", family, seconds)
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

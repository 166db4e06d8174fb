"""`ertrl bench`."""

from typing import Literal

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("bench")
def run(
    what: Positional[Literal["train", "env", "collect"]],
    profile: str = "paper",
    family: str = "",
    method: tuple[str, ...] = (),
    seconds: float = 20.0,
    threads: int = 0,
    json: Json = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: Training updates against the machine's matrix-product peak, simulation steps, or
            the parts of a collection.
        profile: (train, collect) Sizes of this profile.
        family: (train) Sizes of this family, else of cheetah-vel. (env, collect) Only this
            family, else all.
        method: (train) Which methods; all of them if not given.
        seconds: (train, collect) Time to measure each method or family for.
        threads: CPU threads; 0 takes all.
    """
    if seconds <= 0:
        raise ConfigError(f"--seconds must be above 0, got {seconds}")
    if what == "train":
        from ertrl.bench.updates import describe, update_speed
        from ertrl.methods import methods

        value = update_speed(method or tuple(methods()), profile, family or "cheetah-vel", seconds)
    elif what == "collect":
        from ertrl.bench.behaviour import collection_speed, describe

        value = collection_speed([family] if family else None, profile, seconds)
    else:
        from ertrl.bench.simulation import describe, simulation_speed

        value = simulation_speed([family] if family else None, threads=threads or None)
    output(value, None if json else describe(value))

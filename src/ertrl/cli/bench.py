"""`ertrl bench`."""

from typing import Literal

from tyro.conf import Positional

from ertrl.cli.common import output
from ertrl.cli.options import Json, command
from ertrl.errors import ConfigError


@command("bench")
def run(
    what: Positional[Literal["train", "collect"]],
    profile: str = "",
    family: str = "",
    method: tuple[str, ...] = (),
    seconds: float = 20.0,
    threads: int = 0,
    json: Json = False,
) -> None:
    """Measure speed on this machine.

    Args:
        what: Training updates, or the parts of a collection, against the machine's matrix-product
            peak.
        profile: Sizes of this profile; train takes paper if not given, collect laptop.
        family: (train) Sizes of this family, else of cheetah-vel. (collect) Only this family, else
            all.
        method: (train) Which methods; all of them if not given.
        seconds: Time to measure each method or family for.
        threads: CPU threads; 0 takes all.
    """
    if seconds <= 0:
        raise ConfigError(f"--seconds must be above 0, got {seconds}")
    from ertrl import bench
    from ertrl.methods import methods

    if what == "train":
        sizes = profile or "paper", family or "cheetah-vel"
        value = bench.update_speed(method or tuple(methods()), *sizes, seconds)
        text = bench.describe_updates(value)
    else:
        value = bench.collection_speed([family] if family else None, profile or "laptop", seconds)
        text = bench.describe_collection(value)
    output(value, None if json else text)

"""What a collection takes on disk and in memory, worked out before it starts."""

import math
import shutil
from pathlib import Path

import jax

from ertrl.collection.config import CollectConfig
from ertrl.collection.policies import POLICIES
from ertrl.collection.resume import PORTION_BYTES
from ertrl.data import layout
from ertrl.envs import Family
from ertrl.errors import DataError
from ertrl.text import readable_bytes

MARGIN = 64 * 2**20
"""Left free on the disk: manifests, logs, the rounding of files to blocks."""


def array_bytes(family: Family, config: CollectConfig) -> list[int]:
    """Networks, targets and optimisers of all behaviour policies, array by array."""
    shapes = jax.eval_shape(POLICIES[config.policy](family, config).init, jax.random.key(0))
    return [x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes)]


def needs(family: Family, config: CollectConfig) -> dict[str, dict[str, int]]:
    """Bytes on disk and in memory, by what they are for."""
    tasks, sizes = family.n_tasks, (family.observation_dim, family.action_dim)
    row = 4 * (2 * sizes[0] + sizes[1] + 4)  # reward, termination, outcome: about 4 numbers
    episodes = config.checkpoints * config.episodes_per_checkpoint
    arrays = array_bytes(family, config)
    state = sum(arrays)

    def dataset_bytes(episodes: int) -> int:
        shapes = {f: layout.shape_of(f, episodes, family.horizon, *sizes) for f in layout.FIELDS}
        bytes_ = (math.prod(s) * layout.dtype_of(f).itemsize for f, s in shapes.items())
        return tasks * sum(bytes_)

    steps = config.simulations_per_task * (config.random_steps + config.steps)
    updates = config.steps_per_block * config.updates_per_step
    policies = config.tasks_at_once if config.policy == "independent" else 1
    at_once = max(config.episodes_per_checkpoint, config.reference_episodes)
    return {
        "disk": {
            "dataset": dataset_bytes(episodes),
            "replay (while collecting)": tasks * steps * row,
            "savepoints (while collecting)": 2 * state,
        },
        "memory": {
            # Three times what is read or written at once comes on top at a savepoint.
            "policies": state + 3 * max(min(state, PORTION_BYTES), *arrays),
            # Gathered, then copied to the device.
            "batches of a block": 2 * updates * policies * config.batch_size * row,
            "episodes being recorded": dataset_bytes(at_once),
        },
    }


def describe_needs(wanted: dict[str, dict[str, int]]) -> str:
    """One line for a person."""
    parts = ", ".join(f"{readable_bytes(v)} {k}" for k, v in wanted["disk"].items())
    disk, memory = (sum(wanted[kind].values()) for kind in ("disk", "memory"))
    return (
        f"{readable_bytes(disk)} of disk ({parts}), "
        f"{readable_bytes(memory)} of memory next to the programs and the simulations"
    )


def free_bytes(path: Path) -> int:
    """Room on the disk that `path` is or will be on."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def check_disk(wanted: dict[str, dict[str, int]], path: Path) -> None:
    """Raise unless there is room for all of it."""
    needed, free = sum(wanted["disk"].values()) + MARGIN, free_bytes(path)
    if needed > free:
        raise DataError(
            f"not enough room for {path}: the collection takes {describe_needs(wanted)}, but only "
            f"{readable_bytes(free)} of disk are free. Choose another disk with --out, fewer "
            "steps, or fewer episodes_per_checkpoint."
        )

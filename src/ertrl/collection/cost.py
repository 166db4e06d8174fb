"""What a collection takes: disk and memory from its settings, time from a short measurement."""

import copy
import math
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from ertrl import rng
from ertrl.collection.config import CollectConfig
from ertrl.collection.policies import POLICIES
from ertrl.collection.savepoints import PORTION_BYTES
from ertrl.collection.trainer import PolicyTrainer
from ertrl.data import layout
from ertrl.envs import Family
from ertrl.errors import DataError
from ertrl.provenance import provenance
from ertrl.text import readable_bytes, readable_duration

MARGIN = 64 * 2**20
"""Left free on the disk: manifests, logs, the rounding of files to blocks."""
MEASURED_STEPS = 200
"""Room for so many control steps in the replay of a measurement."""
RECORDED_STEPS = 8
HASHED_PER_SECOND = 5e8
SIDE_BY_SIDE = 4
"""Independent policies in one product, as the alternative to one after the other."""


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


def estimate(
    family: Family, config: CollectConfig, path: Path, seconds: float = 1.5
) -> dict[str, Any]:
    """Time, memory and disk of `collect(family, config, path)`. Writes nothing.

    `seconds` is how long each of simulation, updates and recording is measured, where a single
    one does not take longer.
    """
    config.validate()
    begun = time.monotonic()
    wanted = needs(family, config)
    trainer = _small(family, config, steps_per_block=1)
    compile_seconds, per_step = _time(trainer.simulate, seconds, 1)
    compiled, per_block = _time(_update, seconds, trainer)
    compile_seconds += compiled
    per_block *= config.steps_per_block
    if config.steps_per_block > 1 and per_block < seconds:
        # A call that makes many updates spends less on being called.
        whole = _small(family, config, steps_per_block=config.steps_per_block)
        whole.simulate(config.steps_per_block)
        compiled, per_block = _time(_update, seconds, whole)
        compile_seconds += compiled
    groups = trainer.policies.groups
    per_recording = _recording_seconds(trainer, config.episodes_per_checkpoint)
    # One copy of the policies is part of what this process holds already.
    memory = _peak_memory() + sum(wanted["memory"].values()) - sum(array_bytes(family, config))
    del trainer
    alternatives = _alternatives(family, config, per_block, seconds)
    per_episode = per_recording / config.episodes_per_checkpoint
    parts = {
        "compile": compile_seconds,
        "simulate": per_step * (config.random_steps + config.steps),
        "update": per_block * groups * (config.steps // config.steps_per_block),
        "record": per_recording * config.checkpoints,
        "references and checksums": 3 * config.reference_episodes * per_episode
        + wanted["disk"]["dataset"] / HASHED_PER_SECOND,
    }
    rows = family.n_tasks * config.simulations_per_task
    policies = family.n_tasks if config.policy == "independent" else 1
    updates = config.steps_per_block * config.updates_per_step * policies / groups
    disk, free = sum(wanted["disk"].values()), free_bytes(path)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "family": family.name,
        "seconds": sum(parts.values()),
        "seconds_by_part": parts,
        "memory_bytes": memory,
        "memory_of_machine": total,
        "disk_bytes": disk,
        "disk_free": free,
        "needs": wanted,
        "fits": {"memory": memory < total, "disk": disk < free},
        "replay_fits_into_memory": wanted["disk"]["replay (while collecting)"] + memory < total,
        "measured": {
            "env_steps_per_second": rows / per_step,
            "seconds_per_update_of_a_policy": per_block / updates,
            "recorded_env_steps_per_second": family.n_tasks * family.horizon / per_episode,
            "seconds_per_update_of_a_policy_by_tasks_at_once": alternatives,
            "seconds": time.monotonic() - begun,
        },
        "provenance": provenance(),
    }


def _small(family: Family, config: CollectConfig, steps_per_block: int, **changes) -> PolicyTrainer:
    """The same networks and simulations with a short replay in memory."""
    # A block and the step before it, or many blocks of one step.
    steps = max(MEASURED_STEPS // steps_per_block, 2) * steps_per_block
    blank = {"random_steps": 0, "checkpoints": 1, "first_checkpoint": 0, "last_checkpoint": 0}
    small = replace(config, steps=steps, steps_per_block=steps_per_block, **blank, **changes)
    trainer = PolicyTrainer(family, small)
    trainer.simulate(1)
    return trainer


def _update(trainer: PolicyTrainer) -> None:
    trainer.update(0, 0, rng.key(trainer.config.seed, "estimate"))


def _time(call: Callable[..., None], seconds: float, argument: Any) -> tuple[float, float]:
    """Time of the first call beyond that of a later one, and of a later one."""
    begun = time.perf_counter()
    call(argument)
    first, count = time.perf_counter() - begun, 0
    begun = time.perf_counter()
    while not count or (time.perf_counter() - begun < seconds and count < MEASURED_STEPS - 10):
        call(argument)
        count += 1
    each = (time.perf_counter() - begun) / count
    return max(first - each, 0.0), each


def _alternatives(
    family: Family, config: CollectConfig, per_block: float, seconds: float
) -> dict[str, float]:
    """Seconds per update of one independent policy, one after the other and side by side."""
    if config.policy != "independent":
        return {}
    updates = config.steps_per_block * config.updates_per_step
    found = {str(config.tasks_at_once): per_block / (updates * config.tasks_at_once)}
    sizes = {1, max(k for k in range(1, SIDE_BY_SIDE + 1) if family.n_tasks % k == 0)}
    for size in sorted(sizes - {config.tasks_at_once}):
        other = _small(family, config, steps_per_block=1, tasks_at_once=size)
        _, each = _time(_update, seconds, other)
        found[str(size)] = each / (config.updates_per_step * size)
    return found


def _recording_seconds(trainer: PolicyTrainer, per_task: int) -> float:
    """Time to record one checkpoint, from the first steps of its episodes."""
    whole = trainer.family
    short = copy.copy(whole)
    trainer.family = short
    times = []
    for steps in (1, RECORDED_STEPS):
        short.horizon = steps
        begun = time.perf_counter()
        trainer.episodes(per_task, "estimate", 0, stochastic=True)
        times.append(time.perf_counter() - begun)
    trainer.family = whole
    return times[1] * whole.horizon / RECORDED_STEPS


def _peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds > 0.1 else f"{1000 * seconds:.3g} ms"


def describe_estimate(value: dict[str, Any]) -> str:
    """Lines for a person."""
    parts = ", ".join(
        f"{name} {readable_duration(s)}" for name, s in value["seconds_by_part"].items()
    )
    measured = value["measured"]
    lines = [
        f"{value['family']}: about {readable_duration(value['seconds'])} ({parts})",
        f"memory: about {readable_bytes(value['memory_bytes'])} of this machine's "
        f"{readable_bytes(value['memory_of_machine'])}",
        f"disk: {describe_needs(value['needs'])}; {readable_bytes(value['disk_free'])} are free",
        f"measured in {readable_duration(measured['seconds'])}: "
        f"{measured['env_steps_per_second']:,.0f} steps/s while learning, "
        f"{measured['recorded_env_steps_per_second']:,.0f} while recording, "
        f"{_milliseconds(measured['seconds_per_update_of_a_policy'])} per update of a policy",
    ]
    by_size = measured["seconds_per_update_of_a_policy_by_tasks_at_once"]
    if by_size:
        each = ", ".join(f"{_milliseconds(s)} with {k}" for k, s in by_size.items())
        best = min(by_size, key=lambda k: by_size[k])
        lines.append(f"--tasks-at-once: {each} side by side; fastest here: {best}")
    for what, fits in value["fits"].items():
        if not fits:
            lines.append(f"This does not fit: there is not enough {what}.")
    if not value["replay_fits_into_memory"]:
        lines.append("The replay does not fit into memory: updates will wait for the disk.")
    return "\n".join(lines)

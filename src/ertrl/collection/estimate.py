"""What a whole collection would cost on this machine, from a measurement of a few seconds."""

import copy
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ertrl import rng
from ertrl.collection.collector import Collector
from ertrl.collection.config import CollectConfig
from ertrl.collection.needs import array_bytes, describe_needs, free_bytes, needs
from ertrl.envs import Family
from ertrl.provenance import provenance
from ertrl.text import readable_bytes, readable_duration

MEASURED_STEPS = 200
"""Room for so many control steps in the replay of a measurement."""
RECORDED_STEPS = 8
HASHED_PER_SECOND = 5e8
SIDE_BY_SIDE = 4
"""Independent policies in one product, as the alternative to one after the other."""


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
    collector = _small(family, config, steps_per_block=1)
    compile_seconds, per_step = _time(collector.simulate, seconds, 1)
    compiled, per_block = _time(_update, seconds, collector)
    compile_seconds += compiled
    per_block *= config.steps_per_block
    if config.steps_per_block > 1 and per_block < seconds:
        # A call that makes many updates spends less on being called.
        whole = _small(family, config, steps_per_block=config.steps_per_block)
        whole.simulate(config.steps_per_block)
        compiled, per_block = _time(_update, seconds, whole)
        compile_seconds += compiled
    groups = collector.policies.groups
    per_recording = _recording_seconds(collector, config.episodes_per_checkpoint)
    # One copy of the policies is part of what this process holds already.
    memory = _peak_memory() + sum(wanted["memory"].values()) - sum(array_bytes(family, config))
    del collector
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


def _small(family: Family, config: CollectConfig, steps_per_block: int, **changes) -> Collector:
    """The same networks and simulations with a short replay in memory."""
    # A block and the step before it, or many blocks of one step.
    steps = max(MEASURED_STEPS // steps_per_block, 2) * steps_per_block
    blank = {"random_steps": 0, "checkpoints": 1, "first_checkpoint": 0, "last_checkpoint": 0}
    small = replace(config, steps=steps, steps_per_block=steps_per_block, **blank, **changes)
    collector = Collector(family, small)
    collector.simulate(1)
    return collector


def _update(collector: Collector) -> None:
    collector.update(0, 0, rng.key(collector.config.seed, "estimate"))


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


def _recording_seconds(collector: Collector, per_task: int) -> float:
    """Time to record one checkpoint, from the first steps of its episodes."""
    whole = collector.family
    short = copy.copy(whole)
    collector.family = short
    times = []
    for steps in (1, RECORDED_STEPS):
        short.horizon = steps  # ty: ignore[invalid-attribute-access]
        begun = time.perf_counter()
        collector.episodes(per_task, "estimate", 0, stochastic=True)
        times.append(time.perf_counter() - begun)
    collector.family = whole
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

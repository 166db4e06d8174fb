"""What a collection takes: disk and memory from its settings, time from a short measurement."""

import copy
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from ertrl import rng
from ertrl.collection.config import BehaviourConfig, CollectConfig, ScriptedConfig
from ertrl.collection.policies import POLICIES
from ertrl.collection.savepoints import PORTION_BYTES
from ertrl.collection.scripted import ScriptedPolicies
from ertrl.collection.trainer import PolicyTrainer
from ertrl.data import layout
from ertrl.envs import Family
from ertrl.errors import DataError
from ertrl.memory import memory_of_machine, peak_memory, require_memory
from ertrl.provenance import available_cores, threads
from ertrl.text import readable_bytes, readable_duration

MARGIN = 64 * 2**20
"""Left free on the disk: manifests, logs, the rounding of files to blocks."""
MEASURED_STEPS, MEASURED_BLOCK, RECORDED_STEPS = 200, 20, 8
"""Control steps that a measurement has room for, and how many it takes at once."""
HASHED_PER_SECOND = 5e8


# --- disk and memory, worked out ---


def needs(family: Family, config: BehaviourConfig) -> dict[str, dict[str, int]]:
    """Bytes on disk and in memory, by what they are for."""
    sizes = family.observation_dim, family.action_dim

    def dataset_bytes(episodes: int) -> int:
        specs = layout.task_arrays(episodes, family.horizon, *sizes).values()
        return family.n_tasks * sum(spec.nbytes for spec in specs)

    dataset = dataset_bytes(config.checkpoints * config.episodes_per_checkpoint)
    recorded = dataset_bytes(max(config.episodes_per_checkpoint, config.reference_episodes))
    if isinstance(config, ScriptedConfig):
        return {"disk": {"dataset": dataset}, "memory": {"episodes being recorded": recorded}}
    # Of most families, an outcome is up to 3 numbers; only a simulation would know it exactly.
    outcome = 2 * sizes[0] if getattr(family, "reward_is_given", False) else 3
    row = 4 * (2 * sizes[0] + sizes[1] + 1 + outcome)  # 1 says whether it is terminal
    shapes = jax.eval_shape(POLICIES[config.policy](family, config).init, jax.random.key(0))
    arrays = [x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes)]
    state = sum(arrays)
    steps = config.simulations_per_task * (config.random_steps + config.steps)
    updates = config.steps_per_block * config.updates_per_step
    policies = config.tasks_at_once if config.policy == "independent" else 1
    return {
        "disk": {
            "dataset": dataset,
            "replay (while collecting)": family.n_tasks * steps * row,
            "savepoints (while collecting)": 2 * state,
        },
        "memory": {
            # Three times what is read or written at once comes on top at a savepoint.
            "policies": state + 3 * max(min(state, PORTION_BYTES), *arrays),
            # Gathered, then copied to the device.
            "batches of a block": 2 * updates * policies * config.batch_size * row,
            "episodes being recorded": recorded,
        },
    }


def check_memory(
    family: Family, config: BehaviourConfig, wanted: dict[str, dict[str, int]]
) -> None:
    """Refuse sizes that this machine cannot hold, before anything is allocated or compiled."""
    words, simulations = "episodes_per_checkpoint", 0
    if isinstance(config, CollectConfig):
        words = f"hidden, batch_size, simulations_per_task or {words}"
        simulations = 1000 * family.n_tasks * config.simulations_per_task
    wanted_bytes = sum(wanted["memory"].values()) + simulations
    require_memory(wanted_bytes, f"the collection of {family.name}", words)


def describe_needs(wanted: dict[str, dict[str, int]]) -> str:
    parts = ", ".join(f"{readable_bytes(v)} {k}" for k, v in wanted["disk"].items())
    disk, memory = (sum(wanted[kind].values()) for kind in ("disk", "memory"))
    return (
        f"{readable_bytes(disk)} of disk ({parts}), "
        f"{readable_bytes(memory)} of memory next to the programs and the simulations"
    )


def free_bytes(path: Path) -> int:
    """Room on the disk that `path` is or will be on."""
    place = path.absolute()
    return shutil.disk_usage(next(p for p in (place, *place.parents) if p.exists())).free


def check_disk(wanted: dict[str, dict[str, int]], path: Path) -> None:
    needed, free = sum(wanted["disk"].values()) + MARGIN, free_bytes(path)
    if needed > free:
        raise DataError(
            f"not enough room for {path}: the collection takes {describe_needs(wanted)}, but only "
            f"{readable_bytes(free)} of disk are free. Choose another disk with --out, fewer "
            "steps, or fewer episodes_per_checkpoint."
        )


# --- time, measured ---


def estimate(
    family: Family, config: BehaviourConfig, path: Path, seconds: float = 1.5
) -> dict[str, Any]:
    """Time, memory and disk of `collect(family, config, path)`. Writes nothing.

    `seconds` is how long each of simulation and updates is measured, where a single one does not
    take longer.
    """
    config.validate()
    begun = time.monotonic()
    wanted = needs(family, config)
    check_memory(family, config, wanted)
    parts, measured, known = {}, {}, 0
    if isinstance(config, ScriptedConfig):
        behaviour = ScriptedPolicies(family, config)
    else:
        behaviour, parts, measured = _learning(family, config, seconds)
        # One copy is held by this process already.
        known = sum(x.nbytes for x in jax.tree.leaves(behaviour.state))
    per_recording = recording_seconds(behaviour, config.episodes_per_checkpoint)
    per_episode = per_recording / config.episodes_per_checkpoint
    memory = peak_memory() + sum(wanted["memory"].values()) - known
    parts |= {
        "record": per_recording * config.checkpoints,
        "references and checksums": 3 * config.reference_episodes * per_episode
        + wanted["disk"]["dataset"] / HASHED_PER_SECOND,
    }
    disk, free = sum(wanted["disk"].values()), free_bytes(path)
    total = memory_of_machine()
    replay = wanted["disk"].get("replay (while collecting)", 0)
    return {
        "family": family.name,
        "seconds": wall_clock(parts, config),
        "seconds_by_part": parts,
        "memory_bytes": memory,
        "memory_of_machine": total,
        "disk_bytes": disk,
        "disk_free": free,
        "needs": wanted,
        "fits": {"memory": memory < total, "disk": disk < free},
        "replay_fits_into_memory": replay + memory < total,
        "measured": {
            **measured,
            "recorded_env_steps_per_second": family.n_tasks * family.horizon / per_episode,
            "seconds": time.monotonic() - begun,
        },
    }


def _learning(
    family: Family, config: CollectConfig, seconds: float
) -> tuple[PolicyTrainer, dict[str, float], dict[str, float]]:
    """What learning takes, in all and per step, and the trainer it was measured with."""
    trainer = miniature(family, config)
    behaviour = trainer.state.behaviour
    compile_act, per_step = _time(lambda: trainer.simulate(1, behaviour), seconds)
    trainer.replay.show()
    key, groups = rng.key(config.seed, "estimate"), trainer.policies.groups
    compile_update, per_block = _time(lambda: trainer.update(0, 0, key), seconds)
    per_update_step = per_block * groups / trainer.config.steps_per_block
    policies = family.n_tasks if config.policy == "independent" else 1
    parts = {
        "compile": compile_act + compile_update,
        "simulate": per_step * (config.random_steps + config.steps),
        "update": per_update_step * config.steps,
    }
    return (
        trainer,
        parts,
        {
            "env_steps_per_second": family.n_tasks * config.simulations_per_task / per_step,
            "seconds_per_update_of_a_policy": per_update_step / config.updates_per_step / policies,
        },
    )


def wall_clock(parts: dict[str, float], config: BehaviourConfig) -> float:
    """How long all parts take; side by side, the shorter of simulation and updates is free.

    It needs a core that the updates do not use.
    """
    free = getattr(config, "side_by_side", False) and available_cores() > threads()
    return sum(parts.values()) - (min(parts["simulate"], parts["update"]) if free else 0.0)


def miniature(family: Family, config: CollectConfig) -> PolicyTrainer:
    """The same networks and simulations with short blocks and a short replay in memory."""
    block = min(config.steps_per_block, MEASURED_BLOCK)
    small = replace(
        config,
        random_steps=0,
        steps=MEASURED_STEPS // block * block,
        steps_per_block=block,
        checkpoints=1,
        first_checkpoint=0,
        last_checkpoint=0,
    )
    return PolicyTrainer(family, small)


def _time(call: Callable[[], None], seconds: float) -> tuple[float, float]:
    """Time of the first call beyond that of a later one, and of a later one."""
    begun = time.perf_counter()
    call()
    first, count = time.perf_counter() - begun, 0
    begun = time.perf_counter()
    while not count or (time.perf_counter() - begun < seconds and count < MEASURED_STEPS // 2):
        call()
        count += 1
    each = (time.perf_counter() - begun) / count
    return max(first - each, 0.0), each


def recording_seconds(trainer: PolicyTrainer | ScriptedPolicies, per_task: int) -> float:
    """Time to record one checkpoint, from the first steps of its episodes.

    Of two lengths: beginning an episode may take as long as many steps, and is done once.
    """
    whole = trainer.family
    trainer.family = short = copy.copy(whole)
    taken = {}
    for steps in (1, 1, RECORDED_STEPS):  # the first compiles
        short.horizon = steps
        begun = time.perf_counter()
        trainer.episodes(per_task, "estimate", 0, stochastic=True)
        taken[steps] = time.perf_counter() - begun
    trainer.family = whole
    per_step = max(taken[RECORDED_STEPS] - taken[1], 0.0) / (RECORDED_STEPS - 1)
    return taken[1] + per_step * (whole.horizon - 1)


def describe_estimate(value: dict[str, Any]) -> str:
    times = value["seconds_by_part"].items()
    parts = ", ".join(f"{name} {readable_duration(seconds)}" for name, seconds in times)
    measured = value["measured"]
    speeds = [f"{measured['recorded_env_steps_per_second']:,.0f} steps/s while recording"]
    if "env_steps_per_second" in measured:
        speeds = [
            f"{measured['env_steps_per_second']:,.0f} steps/s while learning",
            f"{measured['recorded_env_steps_per_second']:,.0f} while recording",
            f"{1000 * measured['seconds_per_update_of_a_policy']:.3g} ms per update of a policy",
        ]
    beside = value["seconds"] < sum(value["seconds_by_part"].values())
    parts += "; simulate and update side by side" if beside else ""
    lines = [
        f"{value['family']}: about {readable_duration(value['seconds'])} ({parts})",
        f"memory: about {readable_bytes(value['memory_bytes'])} of this machine's "
        f"{readable_bytes(value['memory_of_machine'])}",
        f"disk: {describe_needs(value['needs'])}; {readable_bytes(value['disk_free'])} are free",
        f"measured in {readable_duration(measured['seconds'])}: {', '.join(speeds)}",
    ]
    for what, fits in value["fits"].items():
        if not fits:
            lines.append(f"This does not fit: there is not enough {what}.")
    if not value["replay_fits_into_memory"]:
        lines.append("The replay does not fit into memory: updates will wait for the disk.")
    return "\n".join(lines)

"""Where the time of a collection goes: simulation, sampling, updates, recording."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ertrl import rng
from ertrl.bench.updates import peak_program, product_flops, timed
from ertrl.collection.config import BehaviourConfig, ScriptedConfig
from ertrl.collection.cost import MEASURED_STEPS, miniature, recording_seconds, wall_clock
from ertrl.envs import Family, family_names, make_family
from ertrl.errors import ConfigError
from ertrl.profiles import collect_config, family_options
from ertrl.provenance import provenance
from ertrl.text import readable_duration


def collection_speed(
    families: Sequence[str] | None, profile: str, seconds: float
) -> dict[str, Any]:
    """Milliseconds of each part per update, and what a whole collection makes of them."""
    return {
        "profile": profile,
        "families": {
            name: _measure(
                make_family(name, **family_options(profile, name)),
                collect_config(profile, name),
                seconds,
            )
            for name in families or [n for n in family_names() if not make_family(n).scripted]
        },
        "provenance": provenance(),
    }


def _measure(family: Family, config: BehaviourConfig, seconds: float) -> dict[str, Any]:
    if isinstance(config, ScriptedConfig):
        raise ConfigError(f"{family.name} has a scripted expert: no update is there to be measured")
    trainer = miniature(family, config)
    updates = trainer.config.steps_per_block * config.updates_per_step
    key, groups = rng.key(config.seed, "bench"), trainer.policies.groups
    behaviour = trainer.state.behaviour
    trainer.simulate(trainer.config.steps_per_block, behaviour)
    trainer.replay.show()
    batches = trainer.policies.draw(trainer.replay, 0, 0)
    state = trainer.state if groups == 1 else trainer._take(trainer.state, 0)
    program = jax.jit(trainer.policies.learn)
    flops = product_flops(trainer.policies.learn, state, *batches, key, 0)
    peak_call, peak_flops = peak_program()
    calls: dict[str, Callable[[], Any]] = {
        "simulate": lambda: trainer.simulate(1, behaviour),
        "sample": lambda: trainer.policies.draw(trainer.replay, 0, 0),
        "update": lambda: program(state, *batches, key, 0),
        "peak": peak_call,
    }
    taken: dict[str, list[float]] = {name: [] for name in calls}
    jax.block_until_ready(program(state, *batches, key, 0))
    # In turns, so that all meet the same neighbours on a shared machine.
    rounds = MEASURED_STEPS - trainer.config.steps_per_block  # more the replay has no room for
    while len(taken["peak"]) < rounds and (
        not taken["peak"] or sum(map(sum, taken.values())) < seconds
    ):
        for name, call in calls.items():
            taken[name].append(timed(call))
    each = {name: float(np.median(times)) for name, times in taken.items()}
    recording = recording_seconds(trainer, config.episodes_per_checkpoint)
    steps, blocks = config.steps, config.steps / trainer.config.steps_per_block * groups
    rate, peak = flops / each["update"], peak_flops / each["peak"]
    whole = {
        "simulate": each["simulate"] * (steps + config.random_steps),
        "sample": each["sample"] * blocks,
        "update": each["update"] * blocks,
        "record": recording * config.checkpoints,
    }
    return {
        "milliseconds_per_update": {
            "simulate": 1e3 * each["simulate"] / config.updates_per_step,
            "sample": 1e3 * each["sample"] / updates,
            "update": 1e3 * each["update"] / updates,
        },
        "seconds_of_a_collection": whole,
        "seconds": wall_clock(
            whole | {"update": whole["update"] + whole["sample"], "sample": 0.0}, config
        ),
        "env_steps_per_second": len(trainer.replay.count)
        * config.simulations_per_task
        / each["simulate"],
        "gflop_per_update": flops / updates / 1e9,
        "gflop_per_second": rate / 1e9,
        "peak_gflop_per_second": peak / 1e9,
        "fraction_of_peak": rate / peak,
    }


def describe(result: dict[str, Any]) -> str:
    lines = [f"profile {result['profile']}, on {jax.default_backend()}"]
    for name, found in result["families"].items():
        parts = found["seconds_of_a_collection"]
        times = ", ".join(f"{part} {readable_duration(s)}" for part, s in parts.items())
        lines.append(
            f"  {name:16} {readable_duration(found['seconds'])}: {times}; "
            f"{found['env_steps_per_second']:,.0f} steps/s, "
            f"{found['milliseconds_per_update']['update']:.2f} ms per update, "
            f"{100 * found['fraction_of_peak']:.0f}% of the matrix-product peak "
            f"({found['peak_gflop_per_second']:.0f} GFLOP/s)"
        )
    return "\n".join(lines)

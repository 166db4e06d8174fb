"""Speed on this machine: of training updates, and of the parts of a collection.

Both are compared with what the cores can multiply.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jax_core
from jax.interpreters import partial_eval

from ertrl import rng
from ertrl.collection.config import BehaviourConfig, ScriptedConfig
from ertrl.collection.cost import MEASURED_STEPS, miniature, recording_seconds, wall_clock
from ertrl.envs import Family, family_names, make_family
from ertrl.errors import ConfigError
from ertrl.memory import peak_memory
from ertrl.profiles import collect_config, family_options, train_config
from ertrl.provenance import device_text, provenance
from ertrl.text import readable_duration
from ertrl.training.config import TrainConfig
from ertrl.training.update import blank_batch, init, run_key, update
from ertrl.types import Context, Dims, TaskBatch

PEAK_SHAPE = (4096, 256, 256)
"""A product of the size that dominates the paper's networks."""


def product_flops(function: Callable, *arguments: Any) -> float:
    """Floating-point operations of the matrix products that a call of a function needs.

    A product whose result nobody uses does not count: the compiler drops it.
    """
    traced = jax.make_jaxpr(function)(*arguments).jaxpr
    needed, _ = partial_eval.dce_jaxpr(traced, [True] * len(traced.outvars))
    return _product_flops(needed)


def _product_flops(jaxpr: jax_core.Jaxpr) -> float:
    """Of all matrix products of a traced program.

    A product of [m, k] by [k, n] counts 2 m k n. Loops count as often as they run. Element-wise
    work does not count, so that only useful work is credited.
    """
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            arrays: list[Any] = [v.aval for v in (equation.invars[0], equation.outvars[0])]
            left, out = (array.shape for array in arrays)
            total += 2.0 * np.prod(out) * np.prod([left[axis] for axis in contracted])
            continue
        parameters = jax.tree.leaves(list(equation.params.values()))
        parts = [getattr(p, "jaxpr", p) for p in parameters]  # with its constants, or without
        flops = [_product_flops(p) for p in parts if isinstance(p, jax_core.Jaxpr)]
        times = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
        # Of the branches of a conditional only one runs: credit the cheapest.
        total += min(flops) if equation.primitive.name == "cond" else times * sum(flops)
    return total


def random_batch(config: TrainConfig, dims: Dims) -> TaskBatch:
    """Numbers of the right shape; speed does not depend on their values."""
    draw = np.random.default_rng(0)

    def fill(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        return draw.normal(size=leaf.shape).astype(leaf.dtype)

    batch = jax.tree.map(fill, blank_batch(config, dims))

    def all_there(rows: Context) -> Context:
        return rows._replace(mask=np.ones_like(rows.mask))

    return batch._replace(
        task=np.arange(len(batch.task), dtype=np.int32),
        context=all_there(batch.context),
        windows=batch.windows and all_there(batch.windows),
    )


def program_memory(compiled: Any) -> int:
    """Bytes of a program's inputs, outputs and temporary arrays."""
    m = compiled.memory_analysis()
    return m.temp_size_in_bytes + m.argument_size_in_bytes + m.output_size_in_bytes


def timed(call: Callable[[], Any]) -> float:
    """Seconds until its result is there."""
    begun = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - begun


def peak_program():
    """A chain of plain matrix products and its number of operations."""
    m, k, n = PEAK_SHAPE
    repeats = 20

    @jax.jit
    def chain(x, w):
        for _ in range(repeats):
            x = x @ w
        return x

    x, w = jnp.ones((m, k)), jnp.full((k, n), 1.0 / k)
    jax.block_until_ready(chain(x, w))
    return (lambda: chain(x, w)), 2.0 * m * k * n * repeats


def update_speed(
    methods: Sequence[str], profile: str, family: str, seconds: float
) -> dict[str, Any]:
    """Updates/s, FLOP/s and fraction of the matrix-product peak, measured in turns."""
    dims = make_family(family).dims
    peak_call, peak_flops = peak_program()
    results = {}
    for name in methods:
        config = train_config(profile, family, name)
        state = init(config, dims)
        batch = random_batch(config, dims)
        step = partial(update, config, key=run_key(0))
        flops = product_flops(step, state, batch)
        begun = time.perf_counter()
        compiled = jax.jit(step).lower(state, batch).compile()
        compile_seconds = time.perf_counter() - begun
        compiled(state, batch)
        updates, peaks = [], []
        # In turns, so that both meet the same neighbours on a shared machine.
        while sum(updates) < seconds:
            peaks += [timed(peak_call) for _ in range(3)]
            updates += [timed(partial(compiled, state, batch)) for _ in range(3)]
        rate, peak = flops / np.median(updates), peak_flops / np.median(peaks)
        results[name] = {
            "learner": config.learner.name,
            "updates_per_second": float(1 / np.median(updates)),
            "gflop_per_update": flops / 1e9,
            "gflop_per_second": float(rate / 1e9),
            "peak_gflop_per_second": float(peak / 1e9),
            "fraction_of_peak": float(rate / peak),
            "compile_seconds": compile_seconds,
            "program_memory_mib": program_memory(compiled) / 2**20,
            "measured_updates": len(updates),
        }
    return {
        "profile": profile,
        "family": family,
        "methods": results,
        "peak_memory_mib": peak_memory() / 2**20,
        "provenance": provenance(),
    }


def describe_updates(result: dict[str, Any]) -> str:
    lines = [f"{result['family']}, profile {result['profile']}, on {device_text()}"]
    for name, r in result["methods"].items():
        lines.append(
            f"  {name:14} {r['updates_per_second']:8.2f} updates/s  "
            f"{r['gflop_per_update']:7.2f} GFLOP/update  {r['gflop_per_second']:6.1f} GFLOP/s  "
            f"{100 * r['fraction_of_peak']:3.0f}% of the matrix-product peak "
            f"({r['peak_gflop_per_second']:.0f} GFLOP/s)  {r['program_memory_mib']:5.0f} MiB"
        )
    return "\n".join(lines)


def collection_speed(
    families: Sequence[str] | None, profile: str, seconds: float
) -> dict[str, Any]:
    """Milliseconds of each part per update, and what a whole collection makes of them."""
    found = {}
    for name in families or [n for n in family_names() if not make_family(n).scripted]:
        family = make_family(name, **family_options(profile, name))
        found[name] = _collection_speed(family, collect_config(profile, name), seconds)
    return {"profile": profile, "families": found, "provenance": provenance()}


def _collection_speed(family: Family, config: BehaviourConfig, seconds: float) -> dict[str, Any]:
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


def describe_collection(result: dict[str, Any]) -> str:
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

"""The numerical core of meta-training: pure, compiled once, many steps per call."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Int, PRNGKeyArray

from ertrl import rng
from ertrl.data.scaling import Scaling
from ertrl.training.config import TrainConfig
from ertrl.types import Context, Dims, Metrics, TaskBatch, Transitions


class TrainState(NamedTuple):
    """Everything that must survive a crash."""

    method: Any
    learner: Any
    step: Int[Array, ""]
    """Updates done so far."""


def init(config: TrainConfig, dims: Dims) -> TrainState:
    """Fresh networks, addressed by the seed."""
    method_key, learner_key = (rng.key(config.seed, f"init-{x}") for x in ("method", "learner"))
    return TrainState(
        config.method.init(dims, method_key),
        config.learner.init(dims, config.method.latent_dim, learner_key),
        jnp.zeros((), jnp.int32),
    )


@lru_cache(maxsize=8)
def blank_state(config: TrainConfig, dims: Dims) -> TrainState:
    """The shapes of a state; tracing what makes them takes longer than reading one."""
    return eqx.filter_eval_shape(init, config, dims)


def blank_batch(config: TrainConfig, dims: Dims) -> TaskBatch:
    """The shapes of one batch."""
    sizes, real = config.drawn, "float32"
    many = (sizes.meta_batch, sizes.batch_size)
    contexts = (sizes.meta_batch, sizes.contexts_per_task, sizes.context_size)
    length = config.method.window
    windows = (sizes.meta_batch, sizes.windows(length), length) if length else ()

    def rows(kind, *axes):
        return kind(*(jax.ShapeDtypeStruct((*axes, *width), real) for width in dims.widths))

    return TaskBatch(
        task=jax.ShapeDtypeStruct((sizes.meta_batch,), "int32"),
        context=rows(Context, *contexts),
        rl=rows(Transitions, *many),
        more_rl=rows(Transitions, config.learner.extra_batches, *many),
        windows=rows(Context, *windows) if length else None,
    )


def not_finite(tree: Any) -> Iterator[str]:
    """The arrays that hold a NaN or an infinite number."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array)):
        if not np.isfinite(leaf).all():
            yield jax.tree_util.keystr(path)


def changed_types(before: Any, after: Any) -> Iterator[str]:
    """Leaves whose shape or type an update changed; weak types would make a second program."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        yield "an update gives a state of other parts than the one it was given"
        return
    leaves = jax.tree_util.tree_leaves_with_path(before)
    for (path, one), other in zip(leaves, jax.tree.leaves(after), strict=True):
        name, types = jax.tree_util.keystr(path), [(x.shape, x.dtype) for x in (one, other)]
        if types[0] != types[1]:
            yield f"{name} was {types[0]} and became {types[1]}"
        elif one.weak_type or other.weak_type:
            yield f"{name} has a weak type; say its dtype"


def update(
    config: TrainConfig,
    state: TrainState,
    batch: TaskBatch,
    key: PRNGKeyArray,
    scaling: Scaling | None = None,
) -> tuple[TrainState, Metrics]:
    """One meta-training step: infer z, update the learner with it, then the method.

    `key` is the run's; the step makes it this update's own. The learner sees z as a constant and
    hands back its critic's gradient at z; whether the encoder follows that gradient is the method's
    decision.
    """
    if scaling is not None:
        batch = scaling.batch(batch)
    method, learner = config.method, config.learner
    if config.decay:
        left = (config.updates - state.step) / (config.decay * config.updates)
        rate = learner.learning_rate * jnp.clip(left, 0, 1)
        learner = replace(learner, learning_rate=rate)
    method_key, learner_key = jax.random.split(jax.random.fold_in(key, state.step))
    z = method.draw(state.method, batch.context.first(), method_key)
    learned = learner.update(state.learner, batch.rl, batch.more_rl, z, learner_key)
    method_state, metrics = scheduled(config, state, batch, learned.z_gradient, method_key)
    return TrainState(method_state, learned.state, state.step + 1), metrics | learned.metrics


def scheduled(
    config: TrainConfig, state: TrainState, batch: TaskBatch, z_gradient: Array, key: PRNGKeyArray
) -> tuple[Any, Metrics]:
    """The method's part of a step: its updates if it is its turn, or none.

    An encoder that rests is still measured.
    """
    turns = config.schedule

    def learn(method_state: Any, drawn: tuple[Context, PRNGKeyArray]):
        own = batch._replace(context=drawn[0])
        return config.method.update(method_state, own, z_gradient, drawn[1])

    if turns.encoder_updates == 1:
        after, metrics = learn(state.method, (batch.context, key))
    else:
        apart = [jnp.stack(jnp.split(x, turns.encoder_updates, axis=1)) for x in batch.context]
        keys = jax.random.split(key, turns.encoder_updates)
        after, metrics = jax.lax.scan(learn, state.method, (Context(*apart), keys))
        metrics = jax.tree.map(lambda x: x.mean(axis=0), metrics)
    if turns.policy_updates == 1 and not turns.stop:
        return after, metrics
    learns = state.step % turns.policy_updates == 0
    if turns.stop:
        learns &= state.step < turns.stop
    return jax.tree.map(partial(jnp.where, learns), after, state.method), metrics


def run_key(seed: int) -> PRNGKeyArray:
    """The randomness of all updates of a run. An argument, so that one program serves all seeds."""
    return rng.key(seed, "update")


def make_chunk(
    config: TrainConfig,
    scaling: Scaling | None = None,
    *,
    several_runs: bool = False,
    devices: Sequence[jax.Device] = (),
) -> Callable[[TrainState, TaskBatch, PRNGKeyArray], tuple[TrainState, Metrics]]:
    """Compile a run over stacked batches [K, ...]; metrics come back as [K] each.

    With `several_runs`, everything has a leading axis of runs that differ in their seed. They are
    spread over `devices`, of which each takes equally many; runs do not speak to each other.
    """

    def chunk(state: TrainState, batches: TaskBatch, key: PRNGKeyArray):
        return jax.lax.scan(partial(update, config, key=key, scaling=scaling), state, batches)

    if not several_runs:
        return jax.jit(chunk)
    if len(devices) < 2:
        return jax.jit(jax.vmap(chunk))
    mesh, runs = Mesh(np.array(devices), ("run",)), PartitionSpec("run")
    spread = jax.shard_map(
        jax.vmap(chunk), mesh=mesh, in_specs=runs, out_specs=runs, check_vma=False
    )
    return jax.jit(spread)

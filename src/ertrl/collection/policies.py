"""Two ways to behaviour policies for all tasks of a family.

Observations and actions have axes [task, k]: k simulations of every task, tasks in order.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from ertrl.collection import sac
from ertrl.collection.config import CollectConfig
from ertrl.collection.replay import Replay, style_directions
from ertrl.envs import Family
from ertrl.errors import ConfigError
from ertrl.nets import TanhGaussian
from ertrl.types import Dims, Transitions

Batches = tuple[Transitions, np.ndarray]


class Policies(NamedTuple):
    """What the trainer needs of behaviour policies."""

    init: Callable[[PRNGKeyArray], sac.SacState]
    act: Callable[..., Array]
    """(state, observation [tasks, k, O], key or None) -> actions; None: deterministic"""
    gaussian: Callable[..., tuple[Array, Array]]
    """(state, observation [tasks, k, O]) -> mean and log-std before tanh"""
    groups: int
    """How many calls of `learn` make a block: policies may train in turns. If there are several,
    the state has an axis of tasks, and each group is a part of it."""
    draw: Callable[[Replay, int, int], Batches]
    """(replay, block, group) -> transitions [updates, ...] and task inputs of a group"""
    learn: Callable[..., tuple[sac.SacState, dict[str, Array]]]
    """(state of a group, transitions, task inputs, key, group) -> state of the group, metrics;
    one block of updates"""


def task_inputs(family: Family, config: CollectConfig) -> np.ndarray:
    """What a shared network is told of each task: its parameters and, if there is one, its style.

    Both at a scale of about 1.
    """
    parameters = family.parameters
    table = (parameters - parameters.mean(axis=0)) / (parameters.std(axis=0) + 1e-8)
    if config.style:
        style = np.sqrt(family.action_dim) * style_directions(family, config)
        table = np.concatenate([table, style], axis=1)
    return table.astype(np.float32)


def conditioned(family: Family, config: CollectConfig) -> Policies:
    """One network for all tasks, with the task's parameters as an input."""
    table = task_inputs(family, config)
    dims = Dims(family.observation_dim, family.action_dim)

    def with_task(observation: Array) -> tuple[Array, Array]:
        shape = (*observation.shape[:2], table.shape[1])
        return observation, jnp.broadcast_to(table[:, None], shape)

    def draw(replay: Replay, block: int, group: int) -> Batches:
        batch, task = replay.relabelled(block)
        return batch, table[task]

    def learn(state, batches, task, key, group):
        def step(state, inputs):
            batch, task, i = inputs
            return sac.update(config, state, batch, task, jax.random.fold_in(key, i))

        return jax.lax.scan(step, state, (batches, task, np.arange(len(task))))

    return Policies(
        init=lambda key: sac.init(config, dims, table.shape[1], key),
        act=lambda state, observation, key: state.actor.net.act(key, *with_task(observation)),
        gaussian=lambda state, observation: state.actor.net.gaussian(*with_task(observation)),
        groups=1,
        draw=draw,
        learn=learn,
    )


def independent(family: Family, config: CollectConfig) -> Policies:
    """One network per task, as in the paper; `tasks_at_once` of them train side by side."""
    n, size = family.n_tasks, config.tasks_at_once
    if n % size:
        raise ConfigError(
            f"tasks_at_once must divide the {n} tasks of {family.name} evenly, got {size}"
        )
    dims = Dims(family.observation_dim, family.action_dim)

    def act(state, observation, key):
        keys = None if key is None else jax.random.split(key, n)
        return jax.vmap(TanhGaussian.act)(state.actor.net, keys, observation)

    def gaussian(state, observation):
        return jax.vmap(TanhGaussian.gaussian)(state.actor.net, observation)

    def draw(replay: Replay, block: int, group: int) -> Batches:
        batch = replay.own(block, range(group * size, (group + 1) * size))
        return batch, np.zeros((*batch.reward.shape, 0), np.float32)

    def learn(state, batches, task, key, group):
        tasks = group * size + jnp.arange(size)

        def step(state, inputs):
            batch, task, i = inputs
            keys = jax.random.split(jax.random.fold_in(key, i), n)[tasks]
            return jax.vmap(lambda *args: sac.update(config, *args))(state, batch, task, keys)

        return jax.lax.scan(step, state, (batches, task, np.arange(len(task))))

    return Policies(
        init=lambda key: jax.vmap(lambda k: sac.init(config, dims, 0, k))(jax.random.split(key, n)),
        act=act,
        gaussian=gaussian,
        groups=n // size,
        draw=draw,
        learn=learn,
    )


POLICIES = {"conditioned": conditioned, "independent": independent}

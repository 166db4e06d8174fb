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
from ertrl.collection.replay import Replay
from ertrl.config import CollectConfig
from ertrl.envs import Family
from ertrl.types import Dims, Transitions

Batches = tuple[Transitions, np.ndarray]


class Policies(NamedTuple):
    """What the collector needs of behaviour policies."""

    init: Callable[[PRNGKeyArray], sac.SacState]
    act: Callable[..., Array]
    """(state, observation [tasks, k, O], key or None) -> actions; None: deterministic"""
    draw: Callable[[Replay, int], Batches]
    """(replay, block) -> transitions and task inputs for one block of updates"""
    update: Callable[..., tuple[sac.SacState, dict[str, Array]]]
    """(state, transitions, task inputs, key) -> state, metrics"""


def _act(actor, observation: Array, task: Array, key: PRNGKeyArray | None) -> Array:
    if key is None:
        return actor.mode(observation, task)
    return actor.sample(key, observation, task).action


def conditioned(family: Family, config: CollectConfig) -> Policies:
    """One network for all tasks, with the task's parameters as an input."""
    parameters = family.parameters
    scaled = (parameters - parameters.mean(axis=0)) / (parameters.std(axis=0) + 1e-8)
    table = scaled.astype(np.float32)
    dims = Dims(family.observation_dim, family.action_dim)
    shape = (config.steps_per_block * config.updates_per_step, config.batch_size)

    def act(state, observation, key):
        task = jnp.broadcast_to(table[:, None], (*observation.shape[:2], table.shape[1]))
        return _act(state.actor, observation, task, key)

    def draw(replay: Replay, block: int) -> Batches:
        batch, task = replay.relabelled(config.seed, block, shape, config.relabel_fraction)
        return batch, table[task]

    return Policies(
        init=lambda key: sac.init(config, dims, table.shape[1], key),
        act=act,
        draw=draw,
        update=lambda state, batch, task, key: sac.update(config, state, batch, task, key),
    )


def independent(family: Family, config: CollectConfig) -> Policies:
    """One network per task, as in the paper; all of them train side by side in one program."""
    n = family.n_tasks
    dims = Dims(family.observation_dim, family.action_dim)
    shape = (config.steps_per_block * config.updates_per_step, config.batch_size)

    def act(state, observation, key):
        nothing = jnp.zeros((*observation.shape[:2], 0))
        keys = None if key is None else jax.random.split(key, n)
        return jax.vmap(_act)(state.actor, observation, nothing, keys)

    def draw(replay: Replay, block: int) -> Batches:
        batch, task = replay.own(config.seed, block, shape)
        return batch, np.zeros((*task.shape, 0), np.float32)

    def update(state, batch, task, key):
        one = lambda *args: sac.update(config, *args)  # noqa: E731
        return jax.vmap(one)(state, batch, task, jax.random.split(key, n))

    return Policies(
        init=lambda key: jax.vmap(lambda k: sac.init(config, dims, 0, k))(jax.random.split(key, n)),
        act=act,
        draw=draw,
        update=update,
    )


POLICIES = {"conditioned": conditioned, "independent": independent}

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
from ertrl.collection.buffer import Replay, style_directions
from ertrl.collection.config import CollectConfig
from ertrl.envs import Family
from ertrl.errors import ConfigError
from ertrl.types import Dims, Transitions

Batches = tuple[Transitions, np.ndarray]


class Policies(NamedTuple):
    """What the trainer needs of behaviour policies."""

    init: Callable[[PRNGKeyArray], sac.SacState]
    act: Callable[..., Array]
    """(behaviour, observation [tasks, k, O], key or None) -> actions; None: deterministic"""
    gaussian: Callable[..., tuple[Array, Array]]
    """(behaviour, observation [tasks, k, O]) -> mean and log-std before tanh"""
    groups: int
    """How many calls of `learn` make a block: policies may train in turns. If there are several,
    the state has an axis of tasks, and each group is a part of it."""
    draw: Callable[[Replay, int, int], Batches]
    """(replay, block, group) -> transitions [updates, ...] and task inputs of a group"""
    learn: Callable[..., tuple[sac.SacState, dict[str, Array]]]
    """(state of a group, transitions, task inputs, key, group) -> state of the group, metrics;
    one block of updates"""


class Eyes:
    """What a shared network is shown of states and tasks, and how its actions are meant.

    That is the state and the task's parameters (and its style) or, in a view that symmetry
    suggests, the state alone, as it looks from the task. All at a scale of about 1.
    """

    def __init__(self, family: Family, config: CollectConfig):
        parameters = family.parameters
        scaled = (parameters - parameters.mean(axis=0)) / (parameters.std(axis=0) + 1e-8)
        style = np.zeros((family.n_tasks, 0))
        if config.style:
            style = np.sqrt(family.action_dim) * style_directions(family, config)
        self._symmetry = family.symmetry if config.symmetry else None
        if config.symmetry and self._symmetry is None:
            raise ConfigError(f"{family.name} has no symmetry to make use of; leave symmetry off")
        self._parameters = parameters.astype(np.float32)
        told = style if self._symmetry else np.concatenate([scaled, style], axis=1)
        self.told = told.astype(np.float32)
        """What is said of each task, apart from what the view shows of it."""
        self.dims = Dims(
            self._symmetry.size if self._symmetry else family.observation_dim, family.action_dim
        )

    def see(self, observation: Array, task: Array) -> tuple[Array, Array, Array | None]:
        """What is shown, what is told, and the matrices that turn actions into the view."""
        told = jnp.asarray(self.told)[task]
        if self._symmetry is None:
            return observation, told, None
        parameters = jnp.asarray(self._parameters)[task]
        shown, turn = self._symmetry.view(jnp.asarray(observation), parameters)
        return shown, told, jnp.asarray(self._symmetry.turns)[turn]


def turned(turn: Array | None, action: Array, *, back: bool = False) -> Array:
    """Actions in a view, or back from it; they are the same where there is none."""
    if turn is None:
        return action
    return jnp.einsum("...ji,...j->...i" if back else "...ij,...j->...i", turn, action)


def conditioned(family: Family, config: CollectConfig) -> Policies:
    """One network for all tasks, which knows the task."""
    eyes = Eyes(family, config)

    def see_all(observation: Array) -> tuple[Array, Array, Array | None]:
        """Rows [task, k]."""
        task = jnp.arange(family.n_tasks)[:, None]
        return eyes.see(observation, jnp.broadcast_to(task, observation.shape[:2]))

    def act(behaviour, observation, key):
        shown, told, turn = see_all(observation)
        return turned(turn, behaviour.act(key, shown, told), back=True)

    def gaussian(behaviour, observation):
        shown, told, turn = see_all(observation)
        mean, log_std = behaviour.gaussian(shown, told)
        turn_sizes = None if turn is None else jnp.abs(turn)
        return turned(turn, mean, back=True), turned(turn_sizes, log_std, back=True)

    def learn(state, batches, task, key, group):
        def step(state, inputs):
            batch, task, i = inputs
            shown, told, turn = eyes.see(batch.observation, task)
            seen = batch._replace(
                observation=shown,
                action=turned(turn, batch.action),
                next_observation=eyes.see(batch.next_observation, task)[0],
            )
            return sac.update(config, state, seen, told, jax.random.fold_in(key, i))

        return jax.lax.scan(step, state, (batches, task, np.arange(len(task))))

    return Policies(
        init=lambda key: sac.init(config, eyes.dims, eyes.told.shape[1], key),
        act=act,
        gaussian=gaussian,
        groups=1,
        draw=lambda replay, block, group: replay.relabelled(block),
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

    def act(behaviour, observation, key):
        keys = None if key is None else jax.random.split(key, n)
        return jax.vmap(sac.Behaviour.act)(behaviour, keys, observation)

    def gaussian(behaviour, observation):
        return jax.vmap(sac.Behaviour.gaussian)(behaviour, observation)

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

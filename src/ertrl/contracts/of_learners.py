"""What a learner promises, whatever it does inside."""

import jax
import numpy as np

from ertrl.contracts.small import (
    DIMS,
    LATENT,
    demand,
    demand_same_types,
    demand_survives_disk,
    one_batch,
    random_state,
    small,
    small_config,
)
from ertrl.learners import Learner
from ertrl.methods import methods


def _batch(learner: type[Learner]):
    """One batch as this learner wants it, from a method that needs no critic."""
    quiet = next(kind for kind in methods().values() if not kind.hears_critic)
    return one_batch(small_config(quiet, learner))


def _state(settings: Learner):
    return random_state(lambda key: settings.init(DIMS, LATENT, key))


def actions_are_bounded(learner: type[Learner]) -> None:
    """Act gives finite actions in [-1, 1], the same ones without a key."""
    settings = small(learner())
    state, draw = _state(settings), np.random.default_rng(0)
    observation = 3 * draw.normal(size=(6, DIMS.observation)).astype(np.float32)
    z = draw.normal(size=(6, LATENT)).astype(np.float32)
    for key in (None, jax.random.key(0)):
        action = np.asarray(settings.act(state, observation, z, key))
        demand(action.shape == (6, DIMS.action), f"actions have the shape {action.shape}")
        demand(np.isfinite(action).all(), "an action is not finite")
        demand(np.abs(action).max() <= 1, f"an action of {np.abs(action).max():.3g} is beyond 1")
    twice = [np.asarray(settings.act(state, observation, z)) for _ in range(2)]
    demand(np.array_equal(twice[0], twice[1]), "the best action is drawn at random")


def actions_depend_on_z(learner: type[Learner]) -> None:
    """Act listens to the task: another z, another action."""
    settings = small(learner())
    state, observation = _state(settings), np.ones((1, DIMS.observation), np.float32)
    z = np.ones((1, LATENT), np.float32)
    apart = np.abs(settings.act(state, observation, z) - settings.act(state, observation, -z))
    demand(np.max(apart) > 1e-4, "z has no effect on the action")


def acts_the_same_without_jax(learner: type[Learner]) -> None:
    """For learners that say which network is behind their actions."""
    settings = small(learner())
    state = _state(settings)
    policy = settings.policy(state)
    if policy is None:
        return
    draw = np.random.default_rng(0)
    s, z = (draw.normal(size=(9, n)).astype(np.float32) for n in (DIMS.observation, LATENT))
    plain = np.tanh(policy(np.concatenate([s, z], axis=-1)))
    apart = np.abs(plain - settings.act(state, s, z)).max()
    demand(apart < 1e-5, f"actions in NumPy and in JAX differ by {apart:.2g}")


def updates_keep_types(learner: type[Learner]) -> None:
    """An update returns the shapes, dtypes and weak types it was given, so one program serves."""
    settings, batch = small(learner()), _batch(learner)
    z = np.zeros((len(batch.task), LATENT), np.float32)
    given = jax.eval_shape(lambda: settings.init(DIMS, LATENT, jax.random.key(0)))

    def step(state):
        return settings.update(state, batch.rl, batch.more_rl, z, jax.random.key(0))

    done = jax.eval_shape(step, given)
    demand_same_types(given, done.state)
    demand(done.z_gradient.shape == z.shape, f"z_gradient has the shape {done.z_gradient.shape}")


def states_survive_the_disk(learner: type[Learner]) -> None:
    """A state survives the disk bit by bit, and has the critic that has_critic says."""
    state = _state(small(learner()))
    demand_survives_disk(state, state)
    demand(hasattr(state, "critic") == learner.has_critic, "has_critic is not what the state says")


def updates_are_finite_and_learn(learner: type[Learner]) -> None:
    """Fifty updates on one batch keep everything finite and change the action."""
    settings, batch = small(learner()), _batch(learner)
    z = np.random.default_rng(0).normal(size=(len(batch.task), LATENT)).astype(np.float32)

    @jax.jit
    def step(state, key):
        return settings.update(state, batch.rl, batch.more_rl, z, key)

    fresh = state = jax.jit(lambda: settings.init(DIMS, LATENT, jax.random.key(0)))()
    for i in range(50):
        done = step(state, jax.random.key(i))
        state = done.state
        for name, value in done.metrics.items():
            demand(np.isfinite(value), f"{name} became {value} at update {i + 1}")
    if not learner.has_critic:
        demand(not np.any(done.z_gradient), "without a critic, z_gradient is zero")
    seen = batch.rl.observation[:, 0]
    moved = np.abs(settings.act(state, seen, z) - settings.act(fresh, seen, z))
    demand(np.max(moved) > 1e-4, "the policy has not moved")


LEARNER_CHECKS = (
    actions_are_bounded,
    actions_depend_on_z,
    acts_the_same_without_jax,
    updates_keep_types,
    states_survive_the_disk,
    updates_are_finite_and_learn,
)

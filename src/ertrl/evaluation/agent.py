"""A trained agent: infers z from a context and acts on it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from ertrl.data.scaling import ActionRange, Scaling
from ertrl.errors import DataError
from ertrl.learners import Learner
from ertrl.methods import Method
from ertrl.types import Context, Dims, Transitions


@lru_cache(maxsize=16)
def _programs(method: Method, learner: Learner):
    """Compiled once per configuration: a run is evaluated many times, each time as a new agent."""

    def seen(scaling: Scaling | None, observation):
        return observation if scaling is None else scaling.observations(observation)

    @jax.jit
    def encode(state, scaling, context):
        return method.encode(state, context if scaling is None else scaling.context(context))

    @jax.jit
    def act(state, scaling, observation, z):
        return learner.act(state, seen(scaling, observation), z)

    @jax.jit
    def explore(state, scaling, observation, z, keys):
        # A key per row: what a row does must not depend on who else is in the batch.
        def one(observation, z, key):
            return learner.act(state, observation[None], z[None], key)[0]

        return jax.vmap(one)(seen(scaling, observation), z, keys)

    return encode, act, explore


class Agent:
    """Method and learner with their trained states, ready to use."""

    def __init__(
        self,
        config: Any,
        dims: Dims,
        method_state: Any,
        learner_state: Any,
        scaling: Scaling | None = None,
        action_range: ActionRange | None = None,
    ):
        """All are those of a run; `ertrl.load_agent` is the short way."""
        self.action_range = action_range or ActionRange.of_json({}, dims.action)
        self.config, self.dims, self.scaling = config, dims, scaling
        self.z0 = np.zeros(config.method.latent_dim, np.float32)
        """What it believes before it has seen anything."""
        self._method_state, self._learner_state = method_state, learner_state
        programs = _programs(config.method, config.learner)
        self._encode, self._act, self._explore = programs

    def encode(self, context: Context) -> np.ndarray:
        """Z for each context of a batch: [N, H, ...] -> [N, Z]."""
        return np.asarray(self._encode(self._method_state, self.scaling, context))

    def act(self, observation: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Deterministic actions: [N, O], [N, Z] -> [N, A]."""
        return np.asarray(self._act(self._learner_state, self.scaling, observation, z))

    def explore(self, observation: np.ndarray, z: np.ndarray, keys: Array) -> np.ndarray:
        """Stochastic actions, one key per row."""
        return np.asarray(self._explore(self._learner_state, self.scaling, observation, z, keys))

    def adapt(self, transitions: Transitions | Mapping[str, Any]) -> "AdaptedAgent":
        """Infer the task from logged transitions of it.

        Takes what a dataset gives (actions in [-1, 1]), or a mapping with 'observation' [H, O],
        'action' [H, A] in the units of the logs that it was trained on, 'reward' [H] and
        'next_observation' [H, O], in any order of rows.
        """
        stored = isinstance(transitions, Transitions)
        if isinstance(transitions, Transitions):
            transitions = transitions._asdict()
        names = Context._fields[:4]
        missing = [name for name in names if name not in transitions]
        if missing:
            raise DataError(f"a context needs {', '.join(names)}; missing: {', '.join(missing)}")
        arrays = [np.asarray(transitions[name], np.float32)[None] for name in names]
        if len({a.shape[1] for a in arrays}) > 1 or not arrays[0].shape[1]:
            shapes = {n: a.shape[1:] for n, a in zip(names, arrays, strict=True)}
            raise DataError(f"a context needs equally many rows, at least one, in each: {shapes}")
        widths = (self.dims.observation, self.dims.action, None, self.dims.observation)
        for name, array, width in zip(names, arrays, widths, strict=True):
            expected = array.shape[:2] if width is None else (*array.shape[:2], width)
            if array.shape != expected:
                raise DataError(f"{name} must have shape {expected[1:]}, got {array.shape[1:]}")
        if not all(np.isfinite(a).all() for a in arrays):
            raise DataError("the context holds NaN or infinite numbers")
        if not stored:
            self.action_range.check(arrays[1])
            arrays[1] = self.action_range.inward(arrays[1]).astype(np.float32)
        return AdaptedAgent(self, self.encode(Context.of(arrays))[0])


class AdaptedAgent:
    """An agent that knows its task."""

    def __init__(self, agent: Agent, z: np.ndarray):
        self._agent, self.z = agent, z

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Best action for one observation [O], in the units of the logs."""
        action = self._agent.act(np.asarray(observation, np.float32)[None], self.z[None])[0]
        return self._agent.action_range.outward(action)

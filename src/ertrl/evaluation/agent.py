"""A trained agent: infers z from a context and acts on it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from ertrl.errors import DataError
from ertrl.learners import Learner
from ertrl.methods import Method
from ertrl.text import Described
from ertrl.types import Context, Dims, Transitions


@lru_cache(maxsize=16)
def _programs(method: Method, learner: Learner):
    """Compiled once per configuration: a run is evaluated many times, each time as a new agent."""

    @jax.jit
    def explore(state, observation, z, keys):
        # A key per row: what a row does must not depend on who else is in the batch.
        def one(observation, z, key):
            return learner.act(state, observation[None], z[None], key)[0]

        return jax.vmap(one)(observation, z, keys)

    return jax.jit(method.encode), jax.jit(learner.act), explore


class Agent(Described):
    """Method and learner with their trained states, ready to use."""

    def __init__(self, config: Any, dims: Dims, method_state: Any, learner_state: Any):
        """`config` is that of the run; see `ertrl.load_agent` for the short way."""
        self.config, self.dims = config, dims
        self.z0 = np.zeros(config.method.latent_dim, np.float32)
        """What it believes before it has seen anything."""
        self._method_state, self._learner_state = method_state, learner_state
        programs = _programs(config.method, config.learner)
        self._encode, self._act, self._explore = programs

    def _facts(self) -> dict[str, Any]:
        return {
            "method": self.config.method.name,
            "learner": self.config.learner.name,
            "observation": self.dims.observation,
            "action": self.dims.action,
            "z": len(self.z0),
        }

    def encode(self, context: Context) -> np.ndarray:
        """Z for each context of a batch: [N, H, ...] -> [N, Z]."""
        return np.asarray(self._encode(self._method_state, context))

    def act(self, observation: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Deterministic actions: [N, O], [N, Z] -> [N, A]."""
        self._check_rows("observation", observation, self.dims.observation)
        self._check_rows("z", z, len(self.z0))
        return np.asarray(self._act(self._learner_state, observation, z))

    @staticmethod
    def _check_rows(name: str, rows: np.ndarray, width: int) -> None:
        if np.ndim(rows) != 2 or np.shape(rows)[1] != width:
            raise DataError(f"{name} must have shape (rows, {width}), got {np.shape(rows)}")

    def explore(self, observation: np.ndarray, z: np.ndarray, keys: Array) -> np.ndarray:
        """Stochastic actions, one key per row."""
        return np.asarray(self._explore(self._learner_state, observation, z, keys))

    def adapt(self, transitions: Transitions | Mapping[str, Any]) -> "AdaptedAgent":
        """Infer the task from logged transitions of it.

        Takes what a dataset gives, or a mapping with 'observation' [H, O], 'action' [H, A],
        'reward' [H] and 'next_observation' [H, O], in any order of rows.
        """
        names = Context._fields[:4]
        given = transitions._asdict() if isinstance(transitions, Transitions) else transitions
        if not isinstance(given, Mapping):
            raise DataError(
                "adapt takes the transitions of a dataset's task, or a mapping with "
                f"{', '.join(names)}; got {type(given).__name__}"
            )
        missing = [name for name in names if name not in given]
        if missing:
            raise DataError(f"a context needs {', '.join(names)}; missing: {', '.join(missing)}")
        try:
            arrays = [np.asarray(given[name], np.float32)[None] for name in names]
        except (TypeError, ValueError) as error:
            raise DataError(f"a context is made of numbers: {error}") from None
        widths = ((self.dims.observation,), (self.dims.action,), (), (self.dims.observation,))
        rows = arrays[2].size  # as many as there are rewards
        shapes = {name: array.shape[1:] for name, array in zip(names, arrays, strict=True)}
        expected = {name: (rows, *width) for name, width in zip(names, widths, strict=True)}
        if shapes != expected or not rows:
            raise DataError(
                f"a context needs equally many rows, at least one: with {rows} rewards the shapes "
                f"are {expected}, got {shapes}"
            )
        if not all(np.isfinite(a).all() for a in arrays):
            raise DataError("the context holds NaN or infinite numbers")
        return AdaptedAgent(self, self.encode(Context.of(arrays))[0])


class AdaptedAgent(Described):
    """An agent that knows its task."""

    def __init__(self, agent: Agent, z: np.ndarray):
        self._agent, self.z = agent, z

    def _facts(self) -> dict[str, Any]:
        return {**self._agent._facts(), "z": np.array2string(self.z, precision=2, threshold=8)}

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Best action for one observation [O]."""
        observation, width = np.asarray(observation, np.float32), self._agent.dims.observation
        if observation.shape != (width,):
            raise DataError(f"observation must have shape ({width},), got {observation.shape}")
        return self._agent.act(observation[None], self.z[None])[0]

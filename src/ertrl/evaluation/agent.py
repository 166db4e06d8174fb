"""A trained agent: infers z from a context and acts on it."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from ertrl.data.scaling import Scaling
from ertrl.errors import ConfigError, DataError, PluginError
from ertrl.evaluation.context import Buffered, Running
from ertrl.learners import Learner
from ertrl.methods import Method
from ertrl.methods.inference import Belief
from ertrl.runtime import ActionRange, Adapted
from ertrl.runtime import Agent as PlainAgent
from ertrl.runtime.agent import shown, vector
from ertrl.text import Described
from ertrl.types import Context, Dims, Transitions

# Compiled once per configuration: a run is evaluated many times, each time as a new agent.


@partial(jax.jit, static_argnames="method")
def _encode(method: Method, state, scaling, context):
    return method.encode(state, _known(scaling, context))


@partial(jax.jit, static_argnames="method")
def _believe(method: Method, state, scaling, context):
    inference = method.inference(state)
    return inference.belief(inference.evidence(_known(scaling, context)))


@partial(jax.jit, static_argnames="method")
def _add(method: Method, state, scaling, sums, context):
    """The sums with a context added, and the z they give."""
    inference = method.inference(state)
    more = inference.evidence(_known(scaling, context))
    sums = jax.tree.map(jax.numpy.add, sums, more)
    return sums, inference.belief(sums).z


@partial(jax.jit, static_argnames="learner")
def _act(learner: Learner, state, scaling, observation, z):
    return learner.act(state, _seen(scaling, observation), z)


@partial(jax.jit, static_argnames="learner")
def _explore(learner: Learner, state, scaling, observation, z, keys):
    # A key per row: what a row does must not depend on who else is in the batch.
    def one(observation, z, key):
        return learner.act(state, observation[None], z[None], key)[0]

    return jax.vmap(one)(_seen(scaling, observation), z, keys)


def _seen(scaling: Scaling | None, observation):
    return observation if scaling is None else scaling.observations(observation)


def _known(scaling: Scaling | None, context):
    return context if scaling is None else scaling.context(context)


def in_double(tree: Any) -> Any:
    """Its single-precision numbers in 64 bits."""

    def wide(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return x.astype(np.float64) if x.dtype == np.float32 else x

    return jax.tree.map(wide, tree)


class Agent(Described):
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
        self.states = method_state, learner_state
        self.z0 = np.asarray(config.method.z0(method_state))
        """What it believes before it has seen anything."""
        # What all compiled functions of method and learner begin with.
        self._method = config.method, method_state, scaling
        self._learner = config.learner, learner_state, scaling

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
        return np.asarray(_encode(*self._method, context))

    def act(self, observation: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Deterministic actions: [N, O], [N, Z] -> [N, A]."""
        self._check_rows("observation", observation, self.dims.observation)
        self._check_rows("z", z, len(self.z0))
        return np.asarray(_act(*self._learner, observation, z))

    @staticmethod
    def _check_rows(name: str, rows: np.ndarray, width: int) -> None:
        if np.ndim(rows) != 2 or np.shape(rows)[1] != width:
            raise DataError(f"{name} must have shape (rows, {width}), got {np.shape(rows)}")

    def explore(self, observation: np.ndarray, z: np.ndarray, keys: Array) -> np.ndarray:
        """Stochastic actions, one key per row."""
        return np.asarray(_explore(*self._learner, observation, z, keys))

    def begin(self) -> "Adapted | BufferedAgent":
        """Begin in a task of which nothing is known, and adapt to it step by step.

        Without a description of method and learner in NumPy, JAX infers z from all transitions
        anew with each, and nothing is known of its uncertainty.
        """
        try:
            return self.plain.begin()
        except PluginError:
            return BufferedAgent(self)

    @cached_property
    def plain(self) -> PlainAgent:
        """The same agent without JAX."""
        method, learner = self.config.method, self.config.learner
        sums, policy = method.sums(self.states[0]), learner.policy(self.states[1])
        if sums is None:
            raise PluginError(
                f"the method {method.name} works in JAX only: it has an `encode` of its own and no "
                "`inference` that says how z is summed up from transitions"
            )
        if policy is None:
            raise PluginError(
                f"the learner {learner.name} works in JAX only: it has no `policy` that gives the "
                "network behind its actions"
            )
        inference = sums.plain()
        if self.scaling is not None:
            inference, policy = inference.scaled(*self.scaling), policy.scaled(*self.scaling[:2])
        return PlainAgent(*self.dims[:2], inference, policy, self.action_range)

    def nothing(self, rows: int) -> Context:
        """Contexts with room for one transition that is not there."""
        return Context(*(np.zeros((rows, 1, *size), np.float32) for size in self.dims.widths))

    def add(self, sums: Any, context: Context) -> tuple[Any, np.ndarray]:
        """Sums that know these contexts, too, and the z of each."""
        sums, z = _add(*self._method, sums, context)
        return sums, np.asarray(z)

    def believe(self, context: Context) -> Belief:
        """Mean and covariance of the posterior over z, for each context of a batch."""
        method = self.config.method
        belief = method.sums(self.states[0]) and _believe(*self._method, context)
        if belief is None or belief.covariance is None:
            raise ConfigError(
                f"the method {method.name} has no posterior over z to draw from; choose one that "
                "has, such as bayes-linear"
            )
        return Belief(*map(np.asarray, belief))

    def running(self, rows: int) -> "Running | Buffered":
        """Begin in so many tasks side by side."""
        if self.config.method.sums(self.states[0]) is None:
            return Buffered(self, rows)
        return Running(self, rows)

    def adapt(self, transitions: Transitions | Mapping[str, Any]) -> "AdaptedAgent":
        """Infer the task from logged transitions of it.

        Takes what a dataset gives (actions in [-1, 1]), or a mapping with 'observation' [H, O],
        'action' [H, A] in the units of the logs that it was trained on, 'reward' [H] and
        'next_observation' [H, O], in any order of rows.
        """
        logged = isinstance(transitions, Transitions)
        arrays = self.checked(transitions._asdict() if logged else transitions)
        if not logged:
            arrays[1] = self.action_range.checked(arrays[1])
        # Rounded to single precision, the sums over a long context would move z.
        with jax.enable_x64(True):
            z = self.doubled.encode(in_double(Context.of(x[None] for x in arrays)))[0]
        return AdaptedAgent(self, z.astype(np.float32))

    @cached_property
    def doubled(self) -> "Agent":
        """The same agent with all its numbers in 64 bits; call it under `jax.enable_x64`."""
        with jax.enable_x64(True):
            learned = in_double((*self.states, self.scaling))
            return Agent(self.config, self.dims, *learned, self.action_range)

    def checked(self, given: Mapping[str, Any]) -> list[np.ndarray]:
        """(s, a, r, s') as arrays [H, ...], if they make a context."""
        names = Context._fields[:4]
        if not isinstance(given, Mapping):
            raise DataError(
                "adapt takes the transitions of a dataset's task, or a mapping with "
                f"{', '.join(names)}; got {type(given).__name__}"
            )
        if missing := [name for name in names if name not in given]:
            raise DataError(f"a context needs {', '.join(names)}; missing: {', '.join(missing)}")
        try:
            arrays = [np.asarray(given[name], np.float32) for name in names]
        except (TypeError, ValueError) as error:
            raise DataError(f"a context is made of numbers: {error}") from None
        rows = arrays[2].size  # as many as there are rewards
        if not rows:
            raise DataError(
                "a context needs at least one transition, and 'reward' has none; `agent.begin()` "
                "acts before there is one"
            )
        shapes = {name: array.shape for name, array in zip(names, arrays, strict=True)}
        widths = zip(names, self.dims.widths[:4], strict=True)
        expected = {name: (rows, *width) for name, width in widths}
        if shapes != expected:
            raise DataError(
                f"a context needs equally many rows, at least one: with {rows} rewards the shapes "
                f"are {expected}, got {shapes}"
            )
        if not all(np.isfinite(a).all() for a in arrays):
            raise DataError("the context holds NaN or infinite numbers")
        return arrays


class AdaptedAgent(Described):
    """An agent that knows its task."""

    def __init__(self, agent: Agent, z: np.ndarray):
        self._agent, self.z = agent, z

    def _facts(self) -> dict[str, Any]:
        return {**self._agent._facts(), "z": shown(self.z)}

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Best action for one observation [O], in the units of the logs."""
        seen = vector("observation", observation, self._agent.dims.observation)
        action = self._agent.act(seen[None], self.z[None])[0]
        return self._agent.action_range.outward(action).astype(np.float32)


class BufferedAgent(Described):
    """An agent that adapts step by step in JAX, for methods and learners that only JAX knows."""

    uncertainty = surprise = None

    def __init__(self, agent: Agent):
        self._agent, self._known = agent, Buffered(agent, 1)
        self.transitions = 0
        """Observed so far."""

    def _facts(self) -> dict[str, Any]:
        own = {"transitions": self.transitions, "z": shown(self.z)}
        return {**self._agent._facts(), **own}

    def observe(self, observation: Any, action: Any, reward: float, next_observation: Any) -> None:
        """Take in one step of the task: what was seen, done, earned, and seen then."""
        step = [observation], [action], [reward], [next_observation]
        row = self._agent.checked(dict(zip(Context._fields[:4], step, strict=True)))
        row[1] = self._agent.action_range.checked(row[1])
        self._known.add(row, np.ones(1, bool))
        self.transitions += 1

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Best action for one observation [O], by what is known of the task."""
        return AdaptedAgent(self._agent, self.z).act(observation)

    @property
    def z(self) -> np.ndarray:
        return self._known.z[0]

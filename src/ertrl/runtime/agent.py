"""An agent as a robot needs it: observe, act, and say how sure it is."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ertrl.errors import DataError
from ertrl.runtime.actions import ActionRange
from ertrl.runtime.inference import Belief, Inference
from ertrl.runtime.layers import MLP, Arrays
from ertrl.text import Described


@dataclass(frozen=True, repr=False, eq=False)
class Agent(Described):
    """Trained weights; `begin` puts them to work on a task."""

    observation_dim: int
    action_dim: int
    inference: Inference
    policy: MLP
    """tanh(policy(s, z)) is the best action, where -1 and 1 stand for the ends of `actions`."""
    actions: ActionRange
    about: dict[str, Any] = field(default_factory=dict)
    """What the file says of its origin."""

    def __post_init__(self):
        """Parts must fit each other, and all numbers must be numbers."""
        sizes = self.observation_dim, self.action_dim
        inputs = self.observation_dim + self.inference.latent_dim
        fits = {
            "task inference": self.inference.fits(*sizes),
            "policy": (self.policy.inputs, self.policy.outputs) == (inputs, self.action_dim),
            "range of actions": self.actions.low.shape == self.actions.high.shape == (sizes[1],)
            and bool((self.actions.low < self.actions.high).all()),
        }
        for part, right in fits.items():
            if not right:
                raise DataError(
                    f"the {part} does not fit observations of {sizes[0]} and actions of {sizes[1]} "
                    "numbers"
                )
        numbers = {**self.arrays(), "range": self.actions.low + self.actions.high}
        for name, array in numbers.items():
            if not np.isfinite(array).all():
                raise DataError(f"{name} holds NaN or infinite numbers")

    def _facts(self) -> dict[str, Any]:
        known = {name: self.about[name] for name in ("method", "learner") if name in self.about}
        sizes = {"observation": self.observation_dim, "action": self.action_dim}
        return {**known, **sizes, "z": self.inference.latent_dim}

    def arrays(self) -> Arrays:
        """All weights, as agent.safetensors holds them."""
        return {**self.inference.arrays(), **self.policy.arrays("policy")}

    def act(self, observation: Any, z: np.ndarray) -> np.ndarray:
        """Best action for one observation [O] in the task that z stands for."""
        return self._best(observation, vector("z", z, self.inference.latent_dim))

    def _best(self, observation: Any, z: np.ndarray) -> np.ndarray:
        seen = vector("observation", observation, self.observation_dim)
        best = np.tanh(self.policy(np.concatenate((seen, z))))
        return self.actions.outward(best).astype(np.float32)

    def begin(self) -> "Adapted":
        """Begin in a task of which nothing is known."""
        return Adapted(self)


class Adapted(Described):
    """An agent in a task: it learns what the task is from every transition."""

    def __init__(self, agent: Agent):
        self._agent = agent
        self._belief: Belief = agent.inference.begin()
        self.transitions = 0
        """Observed so far."""

    def _facts(self) -> dict[str, Any]:
        uncertainty = f"{self.uncertainty:.3g}"
        return {"transitions": self.transitions, "z": shown(self.z), "uncertainty": uncertainty}

    def observe(self, observation: Any, action: Any, reward: float, next_observation: Any) -> None:
        """Take in one step of the task: what was seen, done, earned, and seen then."""
        agent = self._agent
        seen = vector("observation", observation, agent.observation_dim)
        done = vector("action", action, agent.action_dim)
        earned = vector("reward", np.ravel(reward), 1)
        then = vector("next_observation", next_observation, agent.observation_dim)
        self._belief.add((seen, agent.actions.checked(done), earned, then))
        self.transitions += 1

    def act(self, observation: Any) -> np.ndarray:
        """Best action for one observation [O], by what is known of the task."""
        return self._agent._best(observation, self.z)

    @property
    def z(self) -> np.ndarray:
        """What is known of the task; before the first transition zeros, or a prior's mean."""
        return self._belief.z.astype(np.float32)

    @property
    def uncertainty(self) -> float:
        """How far z may still be off: 1 at first, towards 0 as experience grows."""
        return self._belief.uncertainty

    @property
    def surprise(self) -> float | None:
        """How badly the last transitions were predicted; None if the method predicts nothing."""
        return self._belief.surprise


def shown(z: np.ndarray) -> str:
    """A few digits of it."""
    return np.array2string(z, precision=2, threshold=8)


def vector(name: str, value: Any, size: int) -> np.ndarray:
    """What was given as so many finite numbers, or a refusal."""
    try:
        array = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be {size} numbers, got {value!r}") from None
    if array.shape != (size,):
        found = repr(value) if not array.shape else f"shape {array.shape}"
        raise DataError(f"{name} must be {size} numbers in a row, got {found}")
    if not np.isfinite(array.sum(dtype=np.float64)):
        raise DataError(f"{name} holds NaN or infinite numbers: {array}")
    return array

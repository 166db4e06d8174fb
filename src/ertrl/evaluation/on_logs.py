"""How good an agent is as far as logs alone can tell, where there is no simulator to try it in.

- Prediction: a small model predicts reward and next state in episodes that neither it nor z has
  seen, from state, action and z. Beside it the same model without z: what is gained is what z knows
  of the task. Held-out tasks were seen neither by the agent nor by the model.
- Value: fitted-Q evaluation (Ernst et al., 2005; Le et al., 2019) of the adapted policy in each
  task's own logs; beside it that of whoever logged them, and of the same policy without a context.

Both are estimates. Where a policy leaves what was logged, nothing is known of it, and its value is
extrapolated: compare values with each other, and try the agent with care.
"""

from typing import Any, NamedTuple

import numpy as np

from ertrl import rng
from ertrl.data import Dataset
from ertrl.data.scaling import Scaling
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.context import EVALUATION_SEED, held_back, random_codes
from ertrl.types import Transitions

ROWS = 2000
"""Transitions per task, at most, that either model looks at."""
FEATURES = 256
RIDGE = 1e-3
FEWEST_TESTED = 10
"""Transitions of a group that a share of variance is told from; of fewer, it would be chance."""
SMALLEST_VARIANCE = 1e-12
"""In units of the data's own: what varies less has no variance to explain."""
TASK_DIRECTIONS = 3
"""Directions of z that the predictor may use: more than a few tasks cannot tell apart."""
DISCOUNT = 0.99
"""Of learners that have none of their own."""


def measure_on_logs(agent: Agent, dataset: Dataset) -> dict[str, Any]:
    """What can be known without a simulator, as plain JSON."""
    scaling = agent.scaling or Scaling.of(dataset)
    rows = {task: _Rows.of(dataset, task) for task in dataset.tasks}
    shape = 1, 4 * agent.config.sampling.context_size

    def codes(*, all_episodes: bool) -> dict[int, np.ndarray]:
        tasks = list(dataset.tasks)
        found = random_codes(
            agent, dataset, tasks, shape, "logs-context", all_episodes=all_episodes
        )
        return dict(zip(tasks, found[:, 0].astype(np.float32), strict=True))

    z = codes(all_episodes=True)
    return {
        "discount": _discount(agent),
        # What predicts an episode must not have seen it, and z would have.
        "prediction": _prediction(dataset, rows, codes(all_episodes=False), scaling),
        "value": {
            "policy": [_value(agent, rows[t], z[t], scaling) for t in dataset.tasks],
            "blind": [_value(agent, rows[t], agent.z0, scaling) for t in dataset.tasks],
            "behaviour": [_value(agent, rows[t], None, scaling) for t in dataset.tasks],
        },
    }


def log_scores(result: dict[str, Any]) -> dict[str, float]:
    """Means over the tasks of each group."""
    found, place = result["logs"], {task: i for i, task in enumerate(result["tasks"])}
    scores = {}
    for group, tasks in result["groups"].items():
        for name, values in found["value"].items():
            known = [v for t in tasks if (v := values[place[t]]) is not None]
            if known:
                scores[f"value of {name}/{group}"] = float(np.mean(known))
    for target, errors in found["prediction"].items():
        for group, (with_z, without) in errors.items():
            scores[f"{target} unexplained/{group}"] = with_z
            scores[f"{target} unexplained without z/{group}"] = without
    return scores


def _discount(agent: Agent) -> float:
    return float(getattr(agent.config.learner, "discount", DISCOUNT))


class _Rows(NamedTuple):
    """Transitions of a task whose next action is logged, too, and how its episodes begin."""

    here: Transitions
    next_action: np.ndarray
    first: Transitions
    tests: np.ndarray
    """Which of `here` are of episodes that no model learns from."""

    @classmethod
    def of(cls, dataset: Dataset, task: int) -> "_Rows":
        data = dataset.task(task)
        episode, step = np.divmod(data.steps, dataset.horizon)
        another_follows = step + 1 < data.lengths[episode]
        usable = np.flatnonzero(another_follows | data.terminated[episode])
        draw = rng.generator(EVALUATION_SEED, "logs-rows", task)
        chosen = np.sort(draw.choice(usable, min(ROWS, len(usable)), replace=False))
        after = np.minimum(chosen + 1, len(data.steps) - 1)  # of a terminal row, anything
        return cls(
            data.transitions(chosen),
            data.transitions(after).action,
            data.transitions(np.flatnonzero(step == 0)),
            held_back(episode[chosen]),
        )


class _Features:
    """Random Fourier features of state and action, next to these themselves and a constant."""

    def __init__(self, scaling: Scaling, action_dim: int):
        self._scaling = scaling
        size = len(scaling.observation_mean) + action_dim
        draw = rng.generator(EVALUATION_SEED, "logs-features")
        self._weights = draw.normal(size=(size, FEATURES)) / np.sqrt(size)
        self._phases = draw.uniform(0, 2 * np.pi, FEATURES)

    def __call__(self, observation: np.ndarray, action: np.ndarray) -> np.ndarray:
        seen = np.clip(self._scaling.observations(observation), -10, 10)
        x = np.concatenate([seen, action], axis=-1).astype(np.float64)
        waves = np.cos(2 * x @ self._weights + self._phases) * np.sqrt(2 / FEATURES)
        return np.concatenate([waves, x / np.sqrt(x.shape[-1]), np.ones((len(x), 1))], axis=-1)


def _solver(features: np.ndarray) -> np.ndarray:
    """Ridge regression as a matrix: weights = matrix @ targets."""
    gram = features.T @ features / len(features)
    penalty = np.full(len(gram), RIDGE)
    # A mean is not made smaller: rewards of 1,000,000 +- 10 would seem to be 999,900. Sensors that
    # never change are constant columns, too, but of zeros.
    constant = np.where(np.ptp(features, axis=0) == 0, np.abs(features[0]), 0)
    penalty[constant.argmax()] = 0
    return np.linalg.solve(gram + np.diag(penalty), features.T) / len(features)


# --- prediction ---


def _prediction(
    dataset: Dataset, rows: dict[int, _Rows], z: dict[int, np.ndarray], scaling: Scaling
) -> dict[str, dict[str, list[float]]]:
    """Target -> group -> share of variance left unexplained, with z and without.

    The variance is that over training tasks, for all groups: a single task hardly varies. A task
    needs a transition to learn from and one to test on. What logs do not tell is left out: groups
    with few transitions to test on, and numbers that do not vary in them.
    """
    enough = {
        group: [t for t in tasks if len(rows[t].here.reward) > 1]
        for group, tasks in dataset.groups.items()
    }
    groups = {
        group: tasks
        for group, tasks in enough.items()
        if sum(rows[t].tests.sum() for t in tasks) >= FEWEST_TESTED
    }
    if "train" not in groups:
        return {}
    features = _Features(scaling, dataset.dims.action)
    train = groups["train"]
    directions = _directions(np.stack([z[task] for task in train]))

    def inputs(task: int, tested: bool, with_z: bool) -> np.ndarray:
        here, part = rows[task].here, rows[task].tests == tested
        plain = features(here.observation[part], here.action[part])
        if not with_z:
            return plain
        known = directions(z[task])
        return np.concatenate([plain, *(k * plain for k in known)], axis=1)

    def targets(task: int, tested: bool) -> np.ndarray:
        here, part = rows[task].here, rows[task].tests == tested
        moved = (here.next_observation - here.observation)[part] / scaling.observation_deviation
        return np.column_stack([here.reward[part] / scaling.reward_deviation, moved])

    goal = np.concatenate([targets(task, False) for task in train])
    spread = np.concatenate([targets(t, True) for t in train]).var(axis=0)
    varies = spread > SMALLEST_VARIANCE
    left: dict[bool, dict[str, np.ndarray]] = {}
    for with_z in (True, False):
        weights = _solver(np.concatenate([inputs(t, False, with_z) for t in train])) @ goal
        left[with_z] = {
            group: np.mean(
                [
                    np.square(inputs(t, True, with_z) @ weights - targets(t, True)).mean(axis=0)
                    for t in tasks
                ],
                axis=0,
            )
            / np.where(varies, spread, np.nan)
            for group, tasks in groups.items()
        }
    return {
        name: {g: [float(np.nanmean(left[w][g][part])) for w in (True, False)] for g in groups}
        for name, part in (("reward", slice(0, 1)), ("next state", slice(1, None)))
        if varies[part].any()
    }


def _directions(codes: np.ndarray):
    """From z to its coordinates, of about unit size, along the training tasks' main directions."""
    centre = codes.mean(axis=0)
    _, sizes, axes = np.linalg.svd(codes - centre, full_matrices=False)
    count = max(1, min(TASK_DIRECTIONS, len(codes) - 1))
    scale = np.maximum(sizes[:count] / np.sqrt(len(codes)), 1e-6)
    return lambda z: np.clip((axes[:count] @ (z - centre)) / scale, -3, 3)


# --- value ---


def _value(agent: Agent, rows: _Rows, z: np.ndarray | None, scaling: Scaling) -> float | None:
    """Mean discounted return from the episodes' first states; without z, of who logged them.

    None where the estimate runs away or no transition has a next one: then logs do not say.
    """
    discount, here = _discount(agent), rows.here
    if not len(here.reward) or not len(rows.first.reward):
        return None
    features = _Features(scaling, here.action.shape[-1])

    def chosen(observation: np.ndarray, logged: np.ndarray) -> np.ndarray:
        if z is None:
            return logged
        return agent.act(observation, np.tile(z, (len(observation), 1)).astype(np.float32))

    solver = _solver(features(here.observation, here.action))
    after = features(here.next_observation, chosen(here.next_observation, rows.next_action))
    reward = here.reward.astype(np.float64)
    goes_on = discount * (1 - here.terminated.astype(np.float64))
    rest = max(1 - discount, 1e-3)
    bounds = min(reward.min(), 0.0) / rest, max(reward.max(), 0.0) / rest
    weights = np.zeros(len(solver))
    for _ in range(int(4 / max(rest, 0.01))):
        weights = solver @ (reward + goes_on * np.clip(after @ weights, *bounds))
    first = rows.first
    start = features(first.observation, chosen(first.observation, first.action)) @ weights
    value = float(np.clip(start, *bounds).mean())
    return value if np.isfinite(value) else None

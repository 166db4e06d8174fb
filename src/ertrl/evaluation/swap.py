"""Whom z follows where task and behaviour disagree.

In logs they agree: whoever acts well in a task acts as that task wants it, and an encoder can tell
tasks apart by behaviour alone. Here they are taken apart. An agent acts in one task as if it were
in another, on the other's z. Rewards and physics of that episode are the task's, the behaviour is
not. Is the z of the episode nearer to the task's logs, or to those of the task that was acted?
"""

from typing import Any, NamedTuple

import numpy as np

from ertrl import rng
from ertrl.data import Dataset
from ertrl.envs import rollout
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.context import ContextBuffer
from ertrl.evaluation.evaluate import EVALUATION_SEED
from ertrl.types import Context


class Pairs(NamedTuple):
    """Each row: a task, and the training task that is acted in it; numbers of tasks."""

    task: np.ndarray
    acted: np.ndarray


def swap(agent: Agent, dataset: Dataset, partners: int) -> dict[str, Any]:
    """Per group: how often z follows the task, and how far it goes from the acted task to it.

    Every task is tried with `partners` training tasks, or all there are.
    """
    if not dataset.has_simulator:
        return {"missing": "there is no simulator to act in"}
    if len(dataset.group("train")) < 2:
        return {"missing": "there is only one training task, and no other to act"}
    pairs = draw_pairs(dataset, partners)
    logged = {task: _logged_code(agent, dataset, task) for task in dataset.tasks}
    own, other = (np.stack([logged[task] for task in which]) for which in pairs)
    found, sound = _act(agent, dataset, pairs, other)
    nearer, way = follow(found, own, other)
    measured: dict[str, dict[str, float]] = {"followed_task": {}, "way": {}}
    for group, tasks in dataset.groups.items():
        rows = sound & np.isin(pairs.task, tasks)
        if rows.any():
            measured["followed_task"][group] = float(nearer[rows].mean())
            measured["way"][group] = float(np.median(way[rows]))
    if not measured["way"]:
        return {"missing": "every simulation diverged"}
    return {"episodes": int(sound.sum()), **measured}


def draw_pairs(dataset: Dataset, partners: int) -> Pairs:
    """Every task with some training tasks, never with itself."""
    pairs = []
    for task in dataset.tasks:
        others = [other for other in dataset.group("train") if other != task]
        draw = rng.generator(EVALUATION_SEED, "swap", task)
        chosen = draw.choice(others, min(partners, len(others)), replace=False)
        pairs += [(task, other) for other in chosen]
    return Pairs(*np.array(pairs).T)


def follow(found: np.ndarray, own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of codes [row, Z]: whether they are nearer to the own than to the other task's, and the way.

    The way is where a code is along the line from the other (0) to the own (1).
    """
    line, along = own - other, found - other
    way = (along * line).sum(axis=1) / np.maximum(np.square(line).sum(axis=1), 1e-12)
    return way > 0.5, way


def _logged_code(agent: Agent, dataset: Dataset, task: int) -> np.ndarray:
    """The code of an evaluation's worth of logged transitions."""
    data = dataset.task(task)
    draw = rng.generator(EVALUATION_SEED, "swap-logs", task)
    size = agent.config.evaluation.episodes * dataset.horizon
    which = draw.integers(len(data.steps), size=(1, size))
    return agent.encode(Context.of(data.transitions(which)))[0]


def _act(
    agent: Agent, dataset: Dataset, pairs: Pairs, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of one episode per pair, and which of them count: a simulation may diverge."""
    parameters = np.stack([dataset.task(task).parameters for task in pairs.task])
    seeds = [
        int(rng.generator(EVALUATION_SEED, "swap-reset", *pair).integers(2**31))
        for pair in np.column_stack(pairs).tolist()
    ]
    family = dataset.make_family()
    episodes = rollout(family, parameters, lambda s, _: agent.act(s, z), seeds)
    sound = ~episodes.diverged
    buffer = ContextBuffer(len(seeds), family.horizon, dataset.dims)
    buffer.add_episodes(episodes, np.flatnonzero(sound))
    return agent.encode(buffer.context()), sound

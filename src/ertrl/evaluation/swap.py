"""Whom z follows where task and behaviour disagree.

In logs they agree: whoever acts well in a task acts as that task wants it, and an encoder can tell
tasks apart by behaviour alone. Here they are taken apart. An agent acts in one task as if it were
in another, on the other's z. Rewards and physics of that episode are the task's, the behaviour is
not. Is the z of the episode nearer to the task's logs, or to those of the task that was acted?

The control is the same question to an episode in which the agent acts on the z of the task it is
in: then nothing disagrees, and a z that tells these two tasks apart is nearer to its own.
"""

from typing import Any

import numpy as np

from ertrl import rng
from ertrl.data import Dataset
from ertrl.envs import rollout
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.context import EVALUATION_SEED, ContextBuffer, random_codes

ALIKE = 1e-4
"""Two tasks whose codes are nearer than this share of the spread of all cannot be told apart."""


def swap(agent: Agent, dataset: Dataset, partners: int) -> dict[str, Any]:
    """Per group: how often z follows the task, how far it goes to it, and the control.

    Every task is tried with `partners` training tasks, or all there are.
    """
    if not dataset.has_simulator:
        return {"missing": "there is no simulator to act in"}
    if len(dataset.group("train")) < 2:
        return {"missing": "there is only one training task, and no other to act"}
    pairs, tasks = draw_pairs(dataset, partners), list(dataset.tasks)
    shape = 1, dataset.horizon  # as much as an episode has
    logged = dict(zip(tasks, random_codes(agent, dataset, tasks, shape, "swap")[:, 0], strict=True))
    own, acted = (np.stack([logged[task] for task in which]) for which in pairs)
    distance = np.square(own - acted).sum(axis=1)
    spread = np.var(np.stack(list(logged.values())), axis=0).sum()
    # Unswapped, a task needs one episode, whatever it is compared with.
    row_of = {task: row for row, task in enumerate(tasks)}
    place = np.array([row_of[task] for task in pairs[0].tolist()])
    both = np.column_stack([pairs, [tasks, tasks]])
    found, sound = _act(agent, dataset, both, np.concatenate([acted, list(logged.values())]))
    swapped, unswapped = found[: len(own)], found[len(own) :][place]
    counts = sound[: len(own)] & sound[len(own) :][place] & (distance > ALIKE * spread)
    if not counts.any():
        return {"missing": "z does not tell tasks apart, or every simulation diverged"}
    ways = way(swapped, own, acted), way(unswapped, own, acted)
    measured: dict[str, dict[str, float]] = {"followed_task": {}, "way": {}, "control": {}}
    for group, members in dataset.groups.items():
        rows = counts & np.isin(pairs[0], members)
        if rows.any():
            measured["followed_task"][group] = float((ways[0][rows] > 0.5).mean())
            measured["way"][group] = float(np.median(ways[0][rows]))
            measured["control"][group] = float((ways[1][rows] > 0.5).mean())
    return {"episodes": int(counts.sum()), **measured}


def draw_pairs(dataset: Dataset, partners: int) -> np.ndarray:
    """Every task with some training tasks to act in it, never itself: numbers of tasks [2, row]."""
    pairs = []
    for task in dataset.tasks:
        others = [other for other in dataset.group("train") if other != task]
        draw = rng.generator(EVALUATION_SEED, "swap", task)
        chosen = draw.choice(others, min(partners, len(others)), replace=False)
        pairs += [(task, other) for other in chosen]
    return np.array(pairs).T


def way(found: np.ndarray, own: np.ndarray, acted: np.ndarray) -> np.ndarray:
    """Where codes [row, Z] are along the line from the acted task (0) to the own one (1).

    Beyond 0.5 they are nearer to the own one. They may be beyond either end.
    """
    line, along = own - acted, found - acted
    length = np.square(line).sum(axis=1)
    return (along * line).sum(axis=1) / np.where(length > 0, length, np.inf)


def _act(
    agent: Agent, dataset: Dataset, pairs: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of one episode per pair, and which of them count: a simulation may diverge."""
    parameters = np.stack([dataset.task(task).parameters for task in pairs[0]])
    seeds = [
        int(rng.generator(EVALUATION_SEED, "swap-reset", *pair).integers(2**31))
        for pair in pairs.T.tolist()
    ]
    family, z = dataset.make_family(), z.astype(np.float32)
    episodes = rollout(family, parameters, lambda s, _: agent.act(s, z), seeds)
    sound = ~episodes.diverged
    buffer = ContextBuffer(len(seeds), family.horizon, dataset.dims)
    buffer.add_episodes(episodes, np.flatnonzero(sound))
    return agent.encode(buffer.context()).astype(np.float64), sound

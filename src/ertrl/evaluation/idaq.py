"""IDAQ (Wang et al., ICML 2023): choose one's own context, at test time, for any method.

Episodes of an agent that does not know its task yet look unlike the logged data it learned from.
So it tries representations of training tasks, far apart from each other, keeps only the episode
with the highest return as its context, lets later episodes join only if they are better still, and
ends with the representation that scored best. Half of the evaluation goes into trying.
"""

import numpy as np

from ertrl import rng
from ertrl.evaluation.protocols import Trial
from ertrl.types import Context

CANDIDATES = 5
"""Training tasks looked at per exploration episode; the one least like those tried is taken."""
EPISODES = 10
"""Horizons of evaluation at least: choosing among episodes needs more of them than the paper's
protocols have. The evaluation records how many steps it took."""


def idaq(trial: Trial) -> None:
    """Contexts from the agent's best own episodes, starting with training tasks' z."""
    trial.prolong(EPISODES)
    known = _training_codes(trial)
    exploration = trial.budget // 2
    n = len(trial.rows)
    tried: list[list[int]] = [[] for _ in range(n)]
    best, best_z, behind_best = np.full(n, -np.inf), trial.z.copy(), np.zeros(n, int)
    while (rows := trial.active()).size:
        exploring = trial.steps < exploration
        ending = trial.steps + trial.family.horizon >= trial.budget
        for row in rows[exploring[rows]]:
            task = _least_like(known, tried[row], trial.draw("candidates", row))
            tried[row].append(task)
            trial.take_over(np.array([row]), known[task], 0)
        trial.infer(rows[~exploring[rows] & ~ending[rows]])
        last = rows[ending[rows]]
        trial.take_over(last, best_z[last], behind_best[last])
        used, behind = trial.z.copy(), trial.behind_z.copy()
        episodes = trial.evaluate()
        rows, returns = trial.sound(rows), episodes.returns
        better = rows[returns[rows] > best[rows]]
        trial.buffer.clear(better[exploring[better]])
        trial.buffer.add_episodes(episodes, better)
        best[better], best_z[better] = returns[better], used[better]
        behind_best[better] = behind[better]


def _training_codes(trial: Trial) -> np.ndarray:
    """The z of each training task, from one i.i.d. context of its logged data: [task, Z]."""
    contexts = []
    for task in trial.dataset.group("train"):
        data = trial.dataset.task(task)
        draw = rng.generator(trial.seed, "prior", task)
        size = trial.agent.config.sampling.context_size
        contexts.append(data.transitions(draw.integers(len(data.steps), size=size)))
    return trial.agent.encode(Context.of(np.stack(x) for x in zip(*contexts, strict=True)))


def _least_like(known: np.ndarray, tried: list[int], draw: np.random.Generator) -> int:
    """Of a few random training tasks, the one farthest from all that were tried."""
    candidates = draw.choice(len(known), min(CANDIDATES, len(known)), replace=False)
    if not tried:
        return int(candidates[0])
    apart = np.square(known[candidates][:, None] - known[tried][None]).mean(axis=-1)
    return int(candidates[apart.min(axis=1).argmax()])

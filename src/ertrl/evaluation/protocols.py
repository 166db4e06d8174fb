"""The ways of giving an agent its context.

Each protocol lasts `episodes` horizons of evaluation steps, and the reported return is that of the
last evaluation episode. In the paper's three, z is never inferred inside an episode:

- offline: before each episode, one horizon of i.i.d. transitions of the task's own dataset joins
  the context.
- online: the agent acts on z0, its episodes are its context, z is first inferred after
  `prior_episodes` horizons.
- non-prior: an exploration block of at least one horizon precedes each evaluation episode and makes
  the context: uniformly random actions in the first half of the evaluation, then samples of the
  policy. Evaluation episodes do not join the context, so this protocol interacts twice as much.

Three more are run where they are asked for:

- idaq (Wang et al., ICML 2023), for any method. Episodes of an agent that does not know its task
  yet look unlike the logged data it learned from. So it tries representations of training tasks,
  far apart from each other, keeps only the episode with the highest return as its context, lets
  later episodes join only if they are better still, and ends with the representation that scored
  best. Half of the evaluation goes into trying.
- continual: online, with z inferred anew after every step.
- thompson: online, with a z drawn from the posterior before each episode of the first half.

The oracle is no protocol but what they are measured against: one horizon per evaluation episode of
the task's best logged policy is all the context at once, and one episode follows.
"""

from collections.abc import Callable

import numpy as np

from ertrl import rng
from ertrl.data import TaskData
from ertrl.evaluation.trial import Trial
from ertrl.types import Context

IDAQ_CANDIDATES = 5
"""Training tasks looked at per exploration episode; the one least like those tried is taken."""
IDAQ_EPISODES = 10
"""Horizons of evaluation at least: choosing among episodes needs more of them than the paper's
protocols have. The evaluation records how many steps it took."""
POINTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 5000)
"""Transitions after which `continual` looks at z, as far as the evaluation lasts."""


def offline(trial: Trial) -> None:
    """Contexts from the task's own dataset."""
    while (rows := trial.active()).size:
        for row in rows:
            data = trial.dataset.task(trial.rows[row][0])
            draw = trial.draw("context", row)
            which = draw.integers(len(data.steps), size=trial.family.horizon)
            trial.buffer.add(row, data.transitions(which))
        trial.infer(rows)
        trial.evaluate()


def online(trial: Trial) -> None:
    """Contexts from the agent's own episodes, starting with z0."""
    while (rows := trial.active()).size:
        episodes = trial.evaluate()
        rows = trial.sound(rows)
        trial.buffer.add_episodes(episodes, rows)
        trial.infer(rows[trial.steps[rows] >= trial.inference_after])


def non_prior(trial: Trial) -> None:
    """Contexts from exploration that knows nothing of the task at first."""
    while (rows := trial.active()).size:
        # Inference precedes the next exploration block: the last block is never used.
        trial.explore()
        trial.evaluate()
        trial.infer(rows[trial.steps[rows] >= trial.inference_after])


def idaq(trial: Trial) -> None:
    """Contexts from the agent's best own episodes, starting with training tasks' z."""
    trial.prolong(IDAQ_EPISODES)
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
    candidates = draw.choice(len(known), min(IDAQ_CANDIDATES, len(known)), replace=False)
    if not tried:
        return int(candidates[0])
    apart = np.square(known[candidates][:, None] - known[tried][None]).mean(axis=-1)
    return int(candidates[apart.min(axis=1).argmax()])


def continual(trial: Trial) -> None:
    """Contexts from the agent's own steps: z is inferred anew after each, from the first one on.

    How good z is after so many transitions is measured apart: by an episode with that z, which is
    no part of the interaction.
    """
    known = trial.agent.running(len(trial.rows))
    points = [n for n in POINTS if n < trial.budget] + [trial.budget]
    kept = np.tile(trial.z, (len(points), 1, 1))
    count = np.zeros(len(trial.rows), int)

    def watch(s, a, r, s2, alive: np.ndarray) -> None:
        known.add((s, a, r.astype(np.float32), s2), alive)
        count[alive] += 1
        trial.take_over(alive, known.z[alive], count[alive])
        for place, point in enumerate(points):
            reached = alive & (count == point)
            kept[place, reached] = trial.z[reached]

    while trial.active().size:
        trial.evaluate(watch)
    returns = np.stack([trial.rehearse(z) for z in kept], axis=1)
    by_task = returns.reshape(-1, trial.config.repeats, len(points))
    trial.step_curve = {"step_context": np.array(points), "step_returns": by_task}


def thompson(trial: Trial) -> None:
    """Contexts from own episodes, in the first half each with a z drawn from the posterior."""
    while (rows := trial.active()).size:
        belief = trial.agent.believe(trial.buffer.context())
        covariance = belief.covariance
        assert covariance is not None, "believe refuses a method without a posterior"
        for row in rows:
            z = belief.z[row]
            if 2 * trial.steps[row] < trial.budget:
                drawn = trial.draw("posterior", row).normal(size=len(z))
                z = z + symmetric_root(covariance[row]) @ drawn
            trial.take_over(np.array([row]), z, trial.buffer.count[row])
        episodes = trial.evaluate()
        trial.buffer.add_episodes(episodes, trial.sound(rows))


def symmetric_root(covariance: np.ndarray) -> np.ndarray:
    """A with A A = covariance; rounded, a small variance may be a negative one, which counts as 0.

    It changes little where the covariance does, whatever axes are found for it.
    """
    variance, axes = np.linalg.eigh(covariance.astype(np.float64))
    return (axes * np.sqrt(np.maximum(variance, 0))) @ axes.T


def oracle(trial: Trial) -> np.ndarray:
    """Returns [task, repeat] with the z of the best logged policy's transitions."""
    for row in trial.active():
        data = trial.dataset.task(trial.rows[row][0])
        draw = trial.draw("context", row)
        which = steps_of_checkpoint(data, trial.dataset.horizon, best_checkpoint(data))
        trial.buffer.add(row, data.transitions(draw.choice(which, size=trial.budget)))
    trial.infer(trial.active())
    returns = trial.evaluate().returns
    return np.where(trial.failed, np.nan, returns).reshape(-1, trial.config.repeats)


def best_checkpoint(data: TaskData) -> int:
    """The behaviour policy whose episodes earned most on average."""
    numbers = np.unique(data.checkpoints)
    means = [data.returns[data.checkpoints == number].mean() for number in numbers]
    return int(numbers[np.argmax(means)])


def steps_of_checkpoint(data: TaskData, horizon: int, number: int) -> np.ndarray:
    """Numbers of the transitions that this behaviour policy collected."""
    return np.flatnonzero(data.checkpoints[data.steps // horizon] == number)


PAPER_PROTOCOLS: dict[str, Callable[[Trial], None]] = {
    "offline": offline,
    "online": online,
    "non-prior": non_prior,
}
PROTOCOLS = {**PAPER_PROTOCOLS, "idaq": idaq, "continual": continual, "thompson": thompson}
"""All protocols by name; the paper's are evaluated unless others are asked for."""

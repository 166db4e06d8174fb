"""The three ways of giving an agent its context, batched over tasks and repeats.

Each protocol lasts `episodes` horizons of evaluation steps, z is never inferred inside an episode,
and the reported return is that of the last evaluation episode. Counters are in steps, so families
whose episodes end early may need more episodes.

- offline: before each episode, one horizon of i.i.d. transitions of the task's own dataset joins
  the context.
- online: the agent acts on z0, its episodes are its context, z is first inferred after
  `prior_episodes` horizons.
- non-prior: an exploration block of at least one horizon precedes each evaluation episode and makes
  the context: uniformly random actions in the first half of the evaluation, then samples of the
  policy. Evaluation episodes do not join the context, so this protocol interacts twice as much.

The oracle is no protocol but what they are measured against: one horizon per evaluation episode of
the task's best logged policy is all the context at once, and one episode follows.

A simulation that diverges ends its row, whose results are NaN; the other rows go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from ertrl import rng
from ertrl.config import Count, CountOrZero
from ertrl.data import Dataset, TaskData
from ertrl.envs import Family, Watch, rollout
from ertrl.envs.rollout import told_success
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.context import ContextBuffer
from ertrl.types import Episodes

_fold = jax.jit(jax.vmap(jax.random.fold_in, in_axes=(0, None)))


@dataclass(frozen=True)
class EvaluationConfig:
    """The adaptation protocols, in units of full-length episodes, so that they fit any horizon."""

    episodes: Count = 3
    """Evaluation lasts this many horizons; the return of its last episode is reported."""
    prior_episodes: CountOrZero = 2
    """Online and non-prior protocols infer z for the first time after this many horizons."""
    repeats: Count = 2
    """Independent repeats per task."""


class ProtocolResult(NamedTuple):
    """What a protocol measured; axes [task, repeat]."""

    returns: np.ndarray
    """Undiscounted return of the last evaluation episode."""
    success: np.ndarray
    """1 where that episode fulfilled the task; NaN where nobody says."""
    interaction_steps: np.ndarray
    """Environment steps taken in the task, evaluation included."""
    curve_returns: np.ndarray
    """[task, repeat, horizon]: return of the last episode begun in each horizon of evaluation. The
    last of them is the reported one."""
    curve_context: np.ndarray
    """Transitions behind the z of those episodes, at their end where z moves inside."""
    z: np.ndarray
    """[task, repeat, Z]: what the reported episode ran on, or ended on."""


class StepCurve(NamedTuple):
    """How good z is after single steps."""

    step_context: np.ndarray
    """[point]: numbers of transitions."""
    step_returns: np.ndarray
    """[task, repeat, point]: return of an episode with the z of so many transitions."""


class Trial:
    """The state that all protocols share: one row per (task, repeat)."""

    def __init__(
        self,
        name: str,
        agent: Agent,
        family: Family,
        dataset: Dataset,
        config: EvaluationConfig,
        seed: int,
    ):
        self.agent, self.family, self.dataset, self.config = agent, family, dataset, config
        self.rows = [(task, r) for task in dataset.tasks for r in range(config.repeats)]
        self.parameters = np.stack([dataset.task(task).parameters for task, _ in self.rows])
        self.inference_after = config.prior_episodes * family.horizon
        self.buffer = ContextBuffer(len(self.rows), config.episodes * family.horizon, dataset.dims)
        self.z = np.tile(agent.z0, (len(self.rows), 1))
        self.steps = np.zeros(len(self.rows), int)
        self.explored = np.zeros(len(self.rows), int)
        self.failed = np.zeros(len(self.rows), bool)
        self.behind_z = np.zeros(len(self.rows), int)
        self._z_used = self.z.copy()
        self._success = np.full(len(self.rows), np.nan)
        self.prolong(config.episodes)
        self._name, self.seed, self._round = name, seed, 0
        self.step_curve: StepCurve | None = None
        """Of a protocol that infers z within episodes."""

    def prolong(self, episodes: int) -> None:
        """Before the first episode: last at least so many horizons."""
        self.episodes = max(episodes, self.config.episodes)
        self.budget = self.episodes * self.family.horizon
        self._curve_returns = np.full((len(self.rows), self.episodes), np.nan)
        self._curve_context = np.zeros((len(self.rows), self.episodes), int)

    def active(self) -> np.ndarray:
        """Rows that still have evaluation steps to go."""
        return np.flatnonzero((self.steps < self.budget) & ~self.failed)

    def draw(self, purpose: str, row: int) -> np.random.Generator:
        """Randomness at the address (seed, protocol, purpose, task, repeat, round)."""
        stream = f"{self._name}-{purpose}"
        return rng.generator(self.seed, stream, *self.rows[row], self._round)

    def infer(self, rows: np.ndarray) -> None:
        """Replace the z of these rows by what their contexts say."""
        z = self.agent.encode(self.buffer.context())
        self.z[rows] = z[rows]
        self.behind_z[rows] = self.buffer.count[rows]

    def take_over(self, rows: np.ndarray, z: np.ndarray, transitions: np.ndarray | int) -> None:
        """Give these rows a z that comes from elsewhere; so many transitions are behind it."""
        self.z[rows] = z
        self.behind_z[rows] = transitions

    def evaluate(self, watch: Watch | None = None) -> Episodes:
        """Run one deterministic episode per row and book it for the active ones.

        `watch` sees every step and may change z on the way.
        """
        policy, seeds = lambda s, _: self.agent.act(s, self.z), self._seeds("reset")
        episodes = self._run(policy, seeds, self.active(), watch)
        rows = self.active()
        # An episode is at most a horizon long, so one begins in every horizon.
        point = rows, self.steps[rows] // self.family.horizon
        self._curve_returns[point] = episodes.returns[rows]
        self._curve_context[point] = self.behind_z[rows]
        self._z_used[rows] = self.z[rows]
        if episodes.success is not None:
            self._success[rows] = episodes.success[rows]
        self.steps[rows] += episodes.length[rows]
        self._round += 1
        return episodes

    def rehearse(self, z: np.ndarray) -> np.ndarray:
        """Returns [row] of an episode with this z that is no part of the trial."""
        policy, seeds = lambda s, _: self.agent.act(s, z), self._seeds("rehearsal")
        episodes = rollout(self.family, self.parameters, policy, seeds)
        return np.where(episodes.diverged | self.failed, np.nan, episodes.returns)

    def _seeds(self, purpose: str) -> list[int]:
        return [int(self.draw(purpose, i).integers(2**31)) for i in range(len(self.rows))]

    def explore(self) -> None:
        """Add at least one horizon of stochastic transitions to each active row's context."""
        rows, gathered = self.active(), np.zeros(len(self.rows), int)
        attempt = 0
        while (unfinished := self.sound(rows[gathered[rows] < self.family.horizon])).size:
            policy, seeds = self._explorer(attempt)
            episodes = self._run(policy, seeds, unfinished)
            unfinished = self.sound(unfinished)
            self.buffer.add_episodes(episodes, unfinished)
            gathered[unfinished] += episodes.length[unfinished]
            self.explored[unfinished] += episodes.length[unfinished]
            attempt += 1

    def _explorer(self, attempt: int):
        shape = (self.family.horizon, self.family.action_dim)
        draws = [self.draw(f"explore-{attempt}", i) for i in range(len(self.rows))]
        seeds = [int(d.integers(2**31)) for d in draws]
        uniform = np.stack([d.uniform(-1, 1, shape) for d in draws]).astype(np.float32)
        keys = jax.vmap(jax.random.key)(np.array([d.integers(2**31) for d in draws], np.uint32))

        def policy(observation: np.ndarray, t: int) -> np.ndarray:
            # The counter starts anew at the evaluation steps so far in every exploration episode.
            random = (self.steps + t) * 2 < self.budget
            if random.all():
                return uniform[:, t]
            sampled = self.agent.explore(observation, self.z, _fold(keys, t))
            return np.where(random[:, None], uniform[:, t], sampled)

        return policy, seeds

    def _run(
        self, policy, seeds: list[int], rows: np.ndarray, watch: Watch | None = None
    ) -> Episodes:
        episodes = rollout(self.family, self.parameters, policy, seeds, watch)
        # The other rows only keep the batch's shape: what becomes of them is nobody's concern.
        self.failed[rows[episodes.diverged[rows]]] = True
        return episodes

    def sound(self, rows: np.ndarray) -> np.ndarray:
        """Those of the rows whose simulation has not diverged."""
        return rows[~self.failed[rows]]

    def result(self) -> ProtocolResult:
        shape = (-1, self.config.repeats)
        curve = np.where(self.failed[:, None], np.nan, self._curve_returns)
        return ProtocolResult(
            returns=curve[:, -1].reshape(shape),
            success=np.where(self.failed, np.nan, told_success(self._success)).reshape(shape),
            interaction_steps=(self.steps + self.explored).reshape(shape),
            curve_returns=curve.reshape(*shape, self.episodes),
            curve_context=self._curve_context.reshape(*shape, self.episodes),
            z=self._z_used.reshape(*shape, self._z_used.shape[1]),
        )


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

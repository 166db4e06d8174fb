"""One trial of an agent under a protocol, batched over tasks and repeats.

Counters are in steps, so families whose episodes end early may need more episodes. A simulation
that diverges ends its row, whose results are NaN; the other rows go on.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from ertrl import rng
from ertrl.config import Count, CountOrZero
from ertrl.data import Dataset
from ertrl.envs import Family, Simulation, Watch, rollout
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
        simulation: Simulation | None = None,
    ):
        """`simulation` is one of all rows; trials of the same tasks may share it."""
        self.agent, self.family, self.dataset, self.config = agent, family, dataset, config
        self.rows = [(task, r) for task in dataset.tasks for r in range(config.repeats)]
        self.parameters = np.stack([dataset.task(task).parameters for task, _ in self.rows])
        self.simulation = family.simulate(self.parameters) if simulation is None else simulation
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
        self.step_curve: dict[str, np.ndarray] = {}
        """How good z is after single steps, of a protocol that infers z within episodes:
        `step_context` [point] has numbers of transitions, `step_returns` [task, repeat, point] the
        return of an episode with the z of so many."""

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
        """Replace the z of these rows by what their contexts say; one that is done needs none."""
        rows = np.intersect1d(rows, self.active())
        if not rows.size:
            return
        z = self.agent.encode(self.buffer.context())
        self.take_over(rows, z[rows], self.buffer.count[rows])

    def take_over(self, rows: np.ndarray, z: np.ndarray, transitions: np.ndarray | int) -> None:
        """Give these rows this z; so many transitions are behind it."""
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
        episodes = self._rollout(policy, seeds)
        return np.where(episodes.diverged | self.failed, np.nan, episodes.returns)

    def _rollout(
        self, policy, seeds: list[int], watch: Watch | None = None, rows: np.ndarray | None = None
    ) -> Episodes:
        """On the trial's simulation: one that consists of processes is slow to start."""
        parts = self.family, self.parameters, policy, seeds
        return rollout(*parts, watch, rows, simulation=self.simulation)

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
        # The other rows only keep the batch's shape.
        episodes = self._rollout(policy, seeds, watch, rows)
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

"""Let trained agents adapt once more, watched: their paths and their z.

Evaluations on disk hold no episodes. What an agent does while it adapts is seen by running the
very same protocols again, with the same addressed randomness, and writing everything down.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ertrl.api import load_agent
from ertrl.data import Dataset
from ertrl.envs import Watch
from ertrl.envs.render import position_slice
from ertrl.evaluation import PROTOCOLS, Agent
from ertrl.evaluation.context import EVALUATION_SEED, random_codes
from ertrl.evaluation.trial import Trial
from ertrl.reporting.read.results import FamilyResults, SeedRun
from ertrl.training import Run
from ertrl.types import Episodes

LATENT_CONTEXTS = 6
"""Independent contexts per task in pictures of the latent space."""


def agent_of(run: Run, step: int) -> Agent:
    """The agent after so many updates, or of the newest checkpoint where that one is gone."""
    return load_agent(run, step if step in run.checkpoints.steps() else None)


class WatchedTrial(Trial):
    """A trial that keeps every evaluation episode."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.watched: list[Episodes] = []

    def evaluate(self, watch: Watch | None = None) -> Episodes:
        self.watched.append(super().evaluate(watch))
        return self.watched[-1]


class Adaptation(NamedTuple):
    """How one agent adapted under one protocol; rows are tasks, of the first repeat."""

    first: np.ndarray
    """Positions [tasks, L+1, 2] of the first evaluation episode."""
    last: np.ndarray
    """Positions of the reported episode."""


@dataclass(frozen=True)
class Watched:
    seed: int
    online_z: np.ndarray | None
    """What the agent inferred from its own episodes [tasks, Z], where that was measured."""
    codes: np.ndarray
    """z of independent offline contexts of the protocol's full size [tasks, contexts, Z]."""
    adapted: dict[str, Adaptation]
    """Protocol -> adaptation; only for families with a position in the plane."""


def watch(run: SeedRun, step: int, dataset: Dataset, family: FamilyResults) -> Watched:
    """Set the agent loose on all tasks, under every protocol of the report."""
    agent = agent_of(run.run, step)
    where = position_slice(dataset.make_family()) if dataset.has_simulator else None
    protocols = () if where is None else family.protocols
    adapted = {p: adaptation(agent, dataset, p, where) for p in protocols}
    online = family.measured(run, "online", "z", step)
    online = None if online is None else online[:, 0]
    shape = LATENT_CONTEXTS, agent.config.evaluation.episodes * dataset.horizon
    codes = random_codes(agent, dataset, list(dataset.tasks), shape, "report-latent")
    return Watched(run.seed, online, codes.astype(np.float32), adapted)


def adaptation(agent: Agent, dataset: Dataset, protocol: str, where: Any) -> Adaptation:
    """Run a protocol on all tasks; `where` the observation holds a position in the plane."""
    family, config = dataset.make_family(), agent.config.evaluation
    trial = WatchedTrial(protocol, agent, family, dataset, config, EVALUATION_SEED)
    PROTOCOLS[protocol](trial)
    # Episodes of these families never end early: every row takes part in every episode.
    first, last = trial.watched[0], trial.watched[-1]
    picked = slice(None, None, config.repeats)
    return Adaptation(first.observation[picked, :, where], last.observation[picked, :, where])

"""What a family's dataset tells besides returns: the task axis, goals, agents set loose on it.

Evaluations on disk hold no episodes. What an agent does while it adapts is seen by running the
very same protocols again, with the same addressed randomness, and writing everything down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ertrl.api import load_agent
from ertrl.data import Dataset
from ertrl.envs import Watch
from ertrl.envs.render import goal_of, position_slice
from ertrl.errors import DataError, ReportError, RunError
from ertrl.evaluation import PROTOCOLS, Agent
from ertrl.evaluation.context import EVALUATION_SEED, random_codes
from ertrl.evaluation.probes import principal_plane
from ertrl.evaluation.trial import Trial
from ertrl.progress import say
from ertrl.reporting.read.identity import Identity
from ertrl.reporting.read.results import FamilyResults, Results, SeedRun
from ertrl.training import Run
from ertrl.types import Episodes

LATENT_CONTEXTS = 6
"""Independent contexts per task in pictures of the latent space."""


class TaskAxis(NamedTuple):
    """A number for each task and what to call it."""

    label: str
    values: np.ndarray
    circular: bool = False
    """The values go all the way round: their two ends are neighbours."""


def task_axis(names: tuple[str, ...], parameters: np.ndarray, train: np.ndarray) -> TaskAxis:
    """Choose the axis of a family; `train` are the rows of the training tasks."""
    if names == ("direction",):
        return TaskAxis("direction (degrees)", np.degrees(parameters[:, 0]))
    if len(names) == 1:
        return TaskAxis(names[0].replace("_", " "), parameters[:, 0])
    if len(names) == 2 and names[0].endswith("_x") and names[1].endswith("_y"):
        angles = np.arctan2(parameters[:, 1], parameters[:, 0])
        # The circle is cut open opposite to the training tasks, so that these stay together.
        middle = np.angle(np.exp(1j * angles[train]).mean())
        turned = np.angle(np.exp(1j * (angles - middle)))
        degrees = np.round(np.degrees(turned + middle), 9)
        circular = bool(np.ptp(degrees[train]) > 300)
        what = names[0].removesuffix("_x").replace("_", " ")
        values = degrees % 360 if circular else degrees
        return TaskAxis(f"{what} angle (degrees)", values, circular)
    return TaskAxis("task", np.arange(len(parameters), dtype=np.float64))


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

    def in_plane(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Offline [tasks, contexts, 2] and online z [tasks, 2] in the plane of largest variance.

        Also the share of the offline contexts' variance along each of its axes.
        """
        centre, axes, share = principal_plane(self.codes.reshape(-1, self.codes.shape[-1]))
        online = None if self.online_z is None else (self.online_z - centre) @ axes.T
        return (self.codes - centre) @ axes.T, online, share


@dataclass
class Material:
    """Everything known about a family besides its returns. What is missing is left empty."""

    axis: TaskAxis
    dataset: Dataset | None = None
    goals: np.ndarray | None = None
    """Goals in the plane [tasks, 2], where the family has such."""
    watched: dict[Identity, list[Watched]] = field(default_factory=dict)
    """Variant -> its seeds that have a checkpoint, in order."""
    style: float | None = None
    """How strongly each behaviour policy was pulled in a direction of its own, where known."""
    policy_distance: float | None = None
    """How far behaviour policies lie apart, where known."""
    notes: list[str] = field(default_factory=list)
    """Why something is missing."""


def style_of(dataset: Dataset) -> float:
    """How strongly each behaviour policy was pulled in a direction of its own."""
    return float(dataset.manifest["collector"].get("config", {}).get("style", 0.0))


def read_material(results: Results, folders: Sequence[str | Path]) -> list[Material]:
    """Find the datasets and watch the agents of each family."""
    given = {d.fingerprint: d for d in map(Dataset, folders)}
    known = {family.dataset for family in results.families}
    for fingerprint, dataset in given.items():
        if fingerprint not in known:
            raise ReportError(
                f"{dataset.path} (content {fingerprint}) is not the dataset of any of these runs"
            )
    return [_material(family, given.get(family.dataset)) for family in results.families]


def _material(family: FamilyResults, dataset: Dataset | None) -> Material:
    if dataset is None:
        try:
            dataset = _own_dataset(family)
        except (DataError, RunError):
            # Returns alone are worth a report. A damaged file, though, must not go unnoticed, and
            # is another error that passes through here.
            here = any(run.run for variant in family.variants for run in variant.runs)
            note = (
                f"The dataset of {family.label} is not where it was when the runs were trained; "
                "name its folder with --data to see paths, latent space and dataset."
                if here
                else f"Of {family.label} there are numbers only: no run of it is here, so there "
                "are no learning curves, no adaptation and no latent space."
            )
            blank = TaskAxis("task", np.asarray(family.tasks, np.float64))
            style, distance = _published_facts(family)
            return Material(blank, style=style, policy_distance=distance, notes=[note])
    names = tuple(dataset.manifest["parameter_names"])
    parameters = np.stack([dataset.task(task).parameters for task in family.tasks])
    train = family.rows.get("train", np.arange(len(family.tasks)))
    stored = dataset.manifest["collector"].get("policy_distance")
    material = Material(
        task_axis(names, parameters, train),
        dataset,
        style=style_of(dataset),
        policy_distance=None if stored is None else float(stored["mean"]),
    )
    goal = goal_of(dataset.make_family(), parameters) if dataset.has_simulator else None
    if goal is not None:
        material.goals = np.broadcast_to(goal, (len(parameters), 2))
    for variant in family.variants:
        for run in variant.runs:
            if run.run and run.run.checkpoints.steps():
                say(f"report: watching {run.name} act")  # seconds each
                try:
                    seen = watch(run.run, run, variant.step, dataset, family)
                except RunError as problem:  # made by a version whose method held other arrays
                    material.notes.append(f"{problem}. It is missing from pictures of agents.")
                    continue
                material.watched.setdefault(variant.identity, []).append(seen)
            elif run.run:
                material.notes.append(
                    f"{run.name} has no checkpoint: it is missing from the pictures of paths "
                    "and latent space."
                )
    return material


def _published_facts(family: FamilyResults) -> tuple[float | None, float | None]:
    """Style and distance of behaviour policies, if a file of results says them."""
    for variant in family.variants:
        for member in variant.runs:
            if member.published:
                return member.published.style, member.published.policy_distance
    return None, None


def _own_dataset(family: FamilyResults) -> Dataset:
    """That of the first run whose folder is here."""
    for variant in family.variants:
        for member in variant.runs:
            if member.run:
                return member.run.open_dataset()
    raise RunError(f"no run of {family.label} is here")


def watch(folder: Run, run: SeedRun, step: int, dataset: Dataset, family: FamilyResults) -> Watched:
    """Set the agent loose on all tasks, under every protocol that it was measured under."""
    # Of the newest checkpoint, where that of this step is gone.
    agent = load_agent(folder, step if step in folder.checkpoints.steps() else None)
    where = position_slice(dataset.make_family()) if dataset.has_simulator else None
    adapted = {}
    if where is not None:
        known = [p for p in family.protocols if family.task_returns(run, p, step) is not None]
        adapted = {protocol: adaptation(agent, dataset, protocol, where) for protocol in known}
    online = family.measured(run, "online", "z", step)
    online = None if online is None else online[:, 0]
    shape = LATENT_CONTEXTS, agent.config.evaluation.episodes * dataset.horizon
    codes = random_codes(agent, dataset, list(dataset.tasks), shape, "report-latent")
    return Watched(run.seed, online, codes.astype(np.float32), adapted)


class WatchedTrial(Trial):
    """A trial that keeps every evaluation episode."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.watched: list[Episodes] = []

    def evaluate(self, watch: Watch | None = None) -> Episodes:
        self.watched.append(super().evaluate(watch))
        return self.watched[-1]


def adaptation(agent: Agent, dataset: Dataset, protocol: str, where: slice) -> Adaptation:
    """Run a protocol on all tasks; `where` the observation holds a position in the plane."""
    family, config = dataset.make_family(), agent.config.evaluation
    trial = WatchedTrial(protocol, agent, family, dataset, config, EVALUATION_SEED)
    PROTOCOLS[protocol](trial)
    # Episodes of these families never end early: every row takes part in every episode.
    first, last = trial.watched[0], trial.watched[-1]
    picked = slice(None, None, config.repeats)
    return Adaptation(first.observation[picked, :, where], last.observation[picked, :, where])

"""What pictures need beyond the evaluations: the dataset, the task axis, replayed agents."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ertrl.data import Dataset
from ertrl.errors import DataError, ReportError, RunError
from ertrl.reporting import replay
from ertrl.reporting.replay import Adaptation
from ertrl.reporting.results import FamilyResults, Results, SeedRun
from ertrl.reporting.taskaxis import TaskAxis, task_axis


@dataclass(frozen=True)
class Replay:
    """What was seen of one seed's agent."""

    seed: int
    online_z: np.ndarray | None
    """What the agent inferred from its own episodes [tasks, Z], where that was measured."""
    codes: np.ndarray
    """z of offline contexts [tasks, contexts, Z]."""
    adapted: dict[str, Adaptation]
    """Protocol -> adaptation; only for families with a position in the plane."""


@dataclass
class Material:
    """Everything known about a family besides its returns. What is missing is left empty."""

    axis: TaskAxis
    dataset: Dataset | None = None
    goals: np.ndarray | None = None
    """Goals in the plane [tasks, 2], where the family has such."""
    replays: dict[str, list[Replay]] = field(default_factory=dict)
    """Variant -> its seeds that have a checkpoint, in order."""
    notes: list[str] = field(default_factory=list)
    """Why something is missing."""


def prepare(results: Results, data: str | Path | Sequence[str | Path] | None) -> list[Material]:
    """Find the datasets and replay the agents of each family."""
    folders = [data] if isinstance(data, (str, Path)) else list(data or [])
    given = {d.fingerprint: d for d in map(Dataset, folders)}
    known = {family.dataset for family in results.families}
    for fingerprint, dataset in given.items():
        if fingerprint not in known:
            raise ReportError(
                f"{dataset.path} (content {fingerprint}) is not the dataset of any of these runs"
            )
    return [_material(family, given.get(family.dataset)) for family in results.families]


def _material(family: FamilyResults, dataset: Dataset | None) -> Material:
    blank = TaskAxis("task", np.asarray(family.tasks, np.float64))
    if dataset is None:
        try:
            dataset = family.variants[0].runs[0].run.open_dataset()
        except (DataError, RunError):
            # Returns alone are worth a report. A damaged file, though, must not go unnoticed, and
            # is another error that passes through here.
            note = (
                f"The dataset of {family.family} is not where it was when the runs were trained; "
                "name its folder with --data to see paths, latent space and dataset."
            )
            return Material(blank, notes=[note])
    names = tuple(dataset.manifest["parameter_names"])
    parameters = np.stack([dataset.task(task).parameters for task in family.tasks])
    train = family.rows.get("train", np.arange(len(family.tasks)))
    material = Material(task_axis(names, parameters, train), dataset)
    made = dataset.make_family()
    goal = replay.goal_of(made, parameters)
    if goal is not None:
        material.goals = np.broadcast_to(goal, (len(parameters), 2))
    for variant in family.variants:
        for run in variant.runs:
            if not run.run.checkpoint_steps():
                material.notes.append(
                    f"{run.run.name} has no checkpoint: it is missing from the pictures of paths "
                    "and latent space."
                )
                continue
            seen = _replay(run, variant.step, dataset, family)
            material.replays.setdefault(variant.label, []).append(seen)
    return material


def _replay(run: SeedRun, step: int, dataset: Dataset, family: FamilyResults) -> Replay:
    agent = replay.agent_of(run.run, step)
    adapted = {}
    if replay.position_slice(dataset.make_family()) is not None:
        adapted = {p: replay.adaptation(agent, dataset, p) for p in family.protocols}
    online = family.measured(run, "online", "z", step)
    online = None if online is None else online[:, 0]
    return Replay(run.seed, online, replay.offline_codes(agent, dataset), adapted)

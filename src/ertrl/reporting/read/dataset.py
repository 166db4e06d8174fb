"""What a family's dataset tells besides returns: the task axis, goals, agents set loose on it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ertrl.data import Dataset
from ertrl.envs.render import goal_of
from ertrl.errors import DataError, ReportError, RunError
from ertrl.progress import say
from ertrl.reporting.read.agents import Watched, watch
from ertrl.reporting.read.identity import Identity
from ertrl.reporting.read.results import FamilyResults, Results


class TaskAxis(NamedTuple):
    """A number for each task and what to call it."""

    label: str
    values: np.ndarray
    circular: bool = False
    """The values go all the way round: their two ends are neighbours."""


def task_axis(names: tuple[str, ...], parameters: np.ndarray, train: np.ndarray) -> TaskAxis:
    """Choose the axis of a family; `train` are the rows of the training tasks."""
    if len(names) == 1:
        label, values = names[0].replace("_", " "), parameters[:, 0]
        if names[0] == "direction":
            return TaskAxis("direction (degrees)", np.degrees(values))
        return TaskAxis(label, values)
    if len(names) == 2 and names[0].endswith("_x") and names[1].endswith("_y"):
        angles = _unwrapped(np.arctan2(parameters[:, 1], parameters[:, 0]), train)
        what = names[0].removesuffix("_x").replace("_", " ")
        circular = bool(np.ptp(angles[train]) > 300)
        angles = angles % 360 if circular else angles
        return TaskAxis(f"{what} angle (degrees)", angles, circular)
    return TaskAxis("task", np.arange(len(parameters), dtype=np.float64))


def _unwrapped(angles: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Degrees, cut open opposite to the training tasks, so that these stay together."""
    middle = np.angle(np.exp(1j * angles[train]).mean())
    turned = np.angle(np.exp(1j * (angles - middle)))
    values = np.degrees(turned + middle)
    return np.round(values, 9)


@dataclass
class Material:
    """Everything known about a family besides its returns. What is missing is left empty."""

    axis: TaskAxis
    dataset: Dataset | None = None
    goals: np.ndarray | None = None
    """Goals in the plane [tasks, 2], where the family has such."""
    watched: dict[Identity, list[Watched]] = field(default_factory=dict)
    """Variant -> its seeds that have a checkpoint, in order."""
    notes: list[str] = field(default_factory=list)
    """Why something is missing."""

    @property
    def style(self) -> float | None:
        """How strongly behaviour was pulled apart; None where the dataset is not there."""
        return None if self.dataset is None else style_of(self.dataset)

    @property
    def policy_distance(self) -> float | None:
        """How far behaviour policies lie apart, where the dataset is there and says so."""
        if self.dataset is None:
            return None
        stored = self.dataset.manifest["collector"].get("policy_distance")
        return None if stored is None else float(stored["mean"])


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
            dataset = family.variants[0].runs[0].run.open_dataset()
        except (DataError, RunError):
            # Returns alone are worth a report. A damaged file, though, must not go unnoticed, and
            # is another error that passes through here.
            note = (
                f"The dataset of {family.label} is not where it was when the runs were trained; "
                "name its folder with --data to see paths, latent space and dataset."
            )
            blank = TaskAxis("task", np.asarray(family.tasks, np.float64))
            return Material(blank, notes=[note])
    names = tuple(dataset.manifest["parameter_names"])
    parameters = np.stack([dataset.task(task).parameters for task in family.tasks])
    train = family.rows.get("train", np.arange(len(family.tasks)))
    material = Material(task_axis(names, parameters, train), dataset)
    goal = goal_of(dataset.make_family(), parameters) if dataset.has_simulator else None
    if goal is not None:
        material.goals = np.broadcast_to(goal, (len(parameters), 2))
    for variant in family.variants:
        for run in variant.runs:
            if run.run.checkpoints.steps():
                say(f"report: watching {run.run.name} act")  # seconds each
                seen = watch(run, variant.step, dataset, family)
                material.watched.setdefault(variant.identity, []).append(seen)
            else:
                material.notes.append(
                    f"{run.run.name} has no checkpoint: it is missing from the pictures of paths "
                    "and latent space."
                )
    return material

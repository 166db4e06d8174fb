"""What runs measured, sorted by family, variant and seed. What is missing stays missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ertrl.config import fingerprint
from ertrl.evaluation import (
    mean_of_measured,
    missing_repeats,
    normalise,
    success_percentages,
)
from ertrl.reporting.read.identity import Identity, configuration
from ertrl.training import Run

ANCHORS = {"expert": "expert", "zero": "zero action", "random": "random"}
"""Rows that need no learning, as the dataset's references name them."""

Evaluation = dict[str, Any]


class Published(NamedTuple):
    """Where numbers of a run come from that is not here."""

    file: Path
    identity: Identity
    """As it was told from the other variants of that file."""
    policy_distance: float | None = None
    """How far the behaviour policies of its data lie apart."""
    style: float | None = None
    """How strongly each of them was pulled in a direction of its own."""
    numbers: Mapping[str, Any] = {}
    """What the file says of the run; some of it cannot be computed from returns."""


@dataclass(frozen=True)
class SeedRun:
    """One run with all its evaluations."""

    name: str
    method: str
    learner: str
    seed: int
    updates: int
    dataset: str
    """Fingerprint of its data."""
    configuration: str
    """Fingerprint of all in which runs of one variant agree."""
    provenance: dict[str, Any]
    evaluations: dict[int, Evaluation]
    probes: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Updates -> what z was found to know."""
    run: Run | None = None
    """Its folder; None where only its numbers are here."""
    published: Published | None = None
    """Where its numbers come from, if not from a folder."""

    @classmethod
    def of(cls, run: Run) -> "SeedRun":
        """Read what a run measured."""
        run.check_contents()
        return cls(
            name=run.name,
            method=run.spec["method"],
            learner=run.spec["learner"],
            seed=run.config.seed,
            updates=run.config.updates,
            dataset=run.spec["dataset"],
            configuration=fingerprint(configuration(run.config)),
            provenance=run.spec["provenance"],
            evaluations={step: run.evaluations.read(step) for step in run.evaluations.steps()},
            probes={step: run.probes.read(step) for step in run.probes.steps()},
            run=run,
        )

    def missing_repeats(self, step: int) -> dict[str, int]:
        """Protocol -> repeats that a diverged simulation left unmeasured, where there are any."""
        if self.published:
            return self.published.numbers["missing_repeats"]
        return missing_repeats(self.evaluations.get(step, {}))

    def success(self, step: int) -> dict[str, float]:
        """Percentage of fulfilled tasks per 'protocol/group'; empty where tasks cannot be."""
        if self.published:
            return self.published.numbers.get("success_percent", {})
        return success_percentages(found) if (found := self.evaluations.get(step)) else {}

    @property
    def last_step(self) -> int:
        """Updates before the newest evaluation; 0 if there is none."""
        return max(self.evaluations, default=0)


@dataclass(frozen=True)
class Variant:
    """Runs that differ only in their seed, in order of seeds."""

    identity: Identity
    runs: tuple[SeedRun, ...]
    place: int = 0
    """Decides its colour and its marker: see `places_of`."""

    @property
    def label(self) -> str:
        return self.identity.label

    @property
    def method(self) -> str:
        return self.runs[0].method

    @property
    def learner(self) -> str:
        return self.runs[0].learner

    @property
    def updates(self) -> int:
        return self.runs[0].updates

    @property
    def step(self) -> int:
        """The newest step that any of its seeds was evaluated at: what the tables show.

        Seeds that are not there yet count as missing; averaging them in at an earlier step would
        mix agents of different age.
        """
        return max(run.last_step for run in self.runs)

    @property
    def steps(self) -> list[int]:
        """Steps at which every seed that is as far as `step` was evaluated."""
        done = [set(r.evaluations) for r in self.runs if r.last_step == self.step]
        return sorted(set.intersection(*done)) if done else []


@dataclass(frozen=True)
class FamilyResults:
    """All variants of one family, measured in the same way."""

    family: str
    style: float | None
    """How strongly behaviour was pulled apart, where the report has several such datasets."""
    dataset: str
    """Fingerprint of the data."""
    settings: dict[str, Any]
    """The evaluation section of the configuration."""
    tasks: list[int]
    groups: dict[str, list[int]]
    references: dict[str, Sequence[float]]
    protocols: tuple[str, ...]
    """Protocols that at least one run was evaluated under, in the order of the program."""
    variants: tuple[Variant, ...]
    normalised: bool = True
    """Whether returns are on the scale from random (0) to expert (100), or as they were earned."""

    @property
    def from_logs(self) -> bool:
        """Whether there was no simulator: then nothing is a return, all is an estimate."""
        return not self.references

    @property
    def label(self) -> str:
        return self.family if self.style is None else f"{self.family} (style={self.style:g})"

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        """Group -> positions of its tasks on the task axis."""
        place = {task: i for i, task in enumerate(self.tasks)}
        return {group: np.array([place[t] for t in tasks]) for group, tasks in self.groups.items()}

    @cached_property
    def group_of(self) -> dict[int, str]:
        return {task: group for group, tasks in self.groups.items() for task in tasks}

    def scaled(self, returns: np.ndarray) -> np.ndarray:
        """Returns [task, ...] on the scale of this report."""
        return normalise(returns, self.references) if self.normalised else returns

    def task_returns(self, run: SeedRun, protocol: str, step: int) -> np.ndarray | None:
        """Mean over repeats per task, NaN where all diverged; None if that was not measured."""
        found = self.measured(run, protocol, "returns", step)
        return None if found is None else self.scaled(mean_of_measured(found, axis=1))

    def measured(self, run: SeedRun, protocol: str, name: str, step: int) -> np.ndarray | None:
        """Anything a protocol measured [task, repeat, ...]; None if it did not.

        The oracle is looked up like a protocol.
        """
        evaluation = run.evaluations.get(step, {})
        found = {**evaluation.get("protocols", {}), "oracle": evaluation.get("oracle", {})}
        values = found.get(protocol, {}).get(name)
        return None if values is None else np.asarray(values, np.float64)

    def curve(self, run: SeedRun, protocol: str, step: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return and size of the context, both [task, horizon], as it grows."""
        returns = self.measured(run, protocol, "curve_returns", step)
        context = self.measured(run, protocol, "curve_context", step)
        if returns is None or context is None:
            return None
        return self.scaled(mean_of_measured(returns, axis=1)), context.mean(axis=1)

    def step_curve(self, run: SeedRun, step: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Numbers of transitions, and the return [task, number] with the z of so many."""
        points = self.measured(run, "continual", "step_context", step)
        returns = self.measured(run, "continual", "step_returns", step)
        if points is None or returns is None:
            return None
        return points, self.scaled(mean_of_measured(returns, axis=1))

    def score(self, run: SeedRun, protocol: str, group: str, step: int) -> float | None:
        """Mean over the tasks of a group; None if that was not measured."""
        returns = self.task_returns(run, protocol, step)
        mean = np.nan if returns is None else float(mean_of_measured(returns[self.rows[group]]))
        return None if np.isnan(mean) else mean

    def scores(
        self, variant: Variant, protocol: str, group: str, step: int | None = None
    ) -> dict[int, float]:
        """Seed -> score, of the seeds that were measured at the variant's step, or at another."""
        at = variant.step if step is None else step
        found = {run.seed: self.score(run, protocol, group, at) for run in variant.runs}
        return {seed: score for seed, score in found.items() if score is not None}

    def seeds_by_tasks(self, variant: Variant, protocol: str, group: str) -> np.ndarray:
        """Returns [seeds, tasks of the group]; empty where nothing was measured.

        A task that diverged in all repeats of any run is left out of all, to compare like with
        like.
        """
        rows = self.rows[group]
        every = [self.task_returns(r, protocol, v.step) for v in self.variants for r in v.runs]
        whole = np.all([~np.isnan(e[rows]) for e in every if e is not None], axis=0)
        found = [self.task_returns(run, protocol, variant.step) for run in variant.runs]
        kept = [returns[rows][whole] for returns in found if returns is not None]
        return np.stack(kept) if kept else np.empty((0, len(rows)))

    def anchor(self, name: str, group: str) -> float | None:
        """Mean return of an anchor over a group, on the methods' scale; None if no task has one."""
        returns = self.scaled(np.asarray(self.references[name], np.float64))
        mean = float(mean_of_measured(returns[self.rows[group]]))
        return None if np.isnan(mean) else mean

    @property
    def without_scale(self) -> list[int]:
        """Tasks that nothing normalised counts: their expert is not above random actions."""
        if self.from_logs:
            return []
        expert = normalise(np.asarray(self.references["expert"], np.float64), self.references)
        return [task for task, score in zip(self.tasks, expert, strict=True) if np.isnan(score)]


@dataclass(frozen=True)
class Results:
    families: tuple[FamilyResults, ...]
    notes: tuple[str, ...]
    """What a reader must know before comparing: unfinished runs, unequal seeds or updates."""

    @property
    def members(self) -> list[tuple[Variant, SeedRun]]:
        """Every run, and what it is a seed of."""
        return [(v, run) for f in self.families for v in f.variants for run in v.runs]

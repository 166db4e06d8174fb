"""Read runs and sort them into what may be compared: families, variants, seeds.

Runs of one family stand in one table only if they faced the same data, the same tasks and the same
protocols; anything else is refused. Runs that differ in nothing but their seed form a variant and
are averaged. What is missing stays missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ertrl.config import fingerprint, to_json
from ertrl.envs.family import GROUPS
from ertrl.errors import ReportError
from ertrl.evaluation import PROTOCOLS, normalise
from ertrl.training import Run

GROUP_ORDER = (*GROUPS, "test-extreme")

ANCHORS = {"expert": "expert", "zero": "zero action", "random": "random"}
"""Rows that need no learning, as the dataset's references name them."""

WITHOUT_EFFECT = ("seed", "updates_per_call", "evaluate_every", "checkpoint_every")
"""Settings in which runs of one variant may differ."""

Evaluation = dict[str, Any]


@dataclass(frozen=True)
class SeedRun:
    """One run with all its evaluations."""

    run: Run
    evaluations: dict[int, Evaluation]

    @property
    def seed(self) -> int:
        """The seed of its training."""
        return self.run.config.seed

    @property
    def last_step(self) -> int:
        """Updates before the newest evaluation; 0 if there is none."""
        return max(self.evaluations, default=0)


@dataclass(frozen=True)
class Variant:
    """Runs that differ only in their seed, in order of seeds."""

    label: str
    runs: tuple[SeedRun, ...]

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.runs[0].run.spec["method"]

    @property
    def learner(self) -> str:
        """Name of the offline learner."""
        return self.runs[0].run.spec["learner"]

    @property
    def updates(self) -> int:
        """Updates the configuration asks for."""
        return self.runs[0].run.config.updates

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

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        """Group -> positions of its tasks on the task axis."""
        place = {task: i for i, task in enumerate(self.tasks)}
        return {group: np.array([place[t] for t in tasks]) for group, tasks in self.groups.items()}

    def task_returns(
        self,
        run: SeedRun,
        protocol: str,
        step: int,
        *,
        normalised: bool = True,
    ) -> np.ndarray | None:
        """Mean over repeats per task; None if that was not measured."""
        measured = run.evaluations.get(step, {}).get("protocols", {}).get(protocol)
        if measured is None:
            return None
        returns = np.asarray(measured["returns"], np.float64).mean(axis=1)
        return normalise(returns, self.references) if normalised else returns

    def score(
        self,
        run: SeedRun,
        protocol: str,
        group: str,
        step: int,
        *,
        normalised: bool = True,
    ) -> float | None:
        """Mean over the tasks of a group; None if that was not measured."""
        returns = self.task_returns(run, protocol, step, normalised=normalised)
        return None if returns is None else float(returns[self.rows[group]].mean())

    def scores(
        self,
        variant: Variant,
        protocol: str,
        group: str,
        *,
        step: int | None = None,
        normalised: bool = True,
    ) -> dict[int, float]:
        """Seed -> score, of the seeds that were measured at the variant's step."""
        at = variant.step if step is None else step
        found = {
            run.seed: self.score(run, protocol, group, at, normalised=normalised)
            for run in variant.runs
        }
        return {seed: score for seed, score in found.items() if score is not None}

    def seeds_by_tasks(self, variant: Variant, protocol: str, group: str) -> np.ndarray:
        """Normalised returns [seeds, tasks of the group]; empty where nothing was measured."""
        found = [self.task_returns(run, protocol, variant.step) for run in variant.runs]
        rows = self.rows[group]
        kept = [returns[rows] for returns in found if returns is not None]
        return np.stack(kept) if kept else np.empty((0, len(rows)))

    def anchor(self, name: str, group: str, *, normalised: bool = True) -> float:
        """Mean return of an anchor over a group, on the scale of the methods."""
        returns = np.asarray(self.references[name], np.float64)
        if normalised:
            returns = normalise(returns, self.references)
        return float(returns[self.rows[group]].mean())


@dataclass(frozen=True)
class Results:
    """Everything a report is made of."""

    families: tuple[FamilyResults, ...]
    notes: tuple[str, ...]
    """What a reader must know before comparing: unfinished runs, unequal seeds or updates."""

    @cached_property
    def labels(self) -> list[str]:
        """Labels of all variants; the place in this list decides the colour."""
        return list(dict.fromkeys(v.label for f in self.families for v in f.variants))


def gather(runs: Sequence[str | Path | Run]) -> Results:
    """Read runs, refuse what cannot be compared, and sort the rest."""
    opened = open_runs(runs)
    families: dict[str, list[SeedRun]] = {}
    for run in opened:
        evaluations = {step: run.evaluation(step) for step in run.evaluation_steps()}
        families.setdefault(run.family, []).append(SeedRun(run, evaluations))
    results = tuple(_family(name, members) for name, members in families.items())
    return Results(results, tuple(note for family in results for note in _notes(family)))


def open_runs(runs: Sequence[str | Path | Run]) -> list[Run]:
    """Open runs; a folder that is no run itself stands for the runs in it."""
    opened: dict[Path, Run] = {}
    for given in runs:
        if isinstance(given, Run):
            found = [given]
        else:
            path = Path(given)
            inside = sorted(p.parent for p in path.glob("*/config.json"))
            is_run = (path / "config.json").exists()
            found = [Run(p) for p in ([path] if is_run or not inside else inside)]
        opened |= {run.path.resolve(): run for run in found}
    if not opened:
        raise ReportError("a report needs at least one run; make one with `ertrl train`")
    return list(opened.values())


def _family(name: str, members: list[SeedRun]) -> FamilyResults:
    evaluated = [m for m in members if m.evaluations]
    if not evaluated:
        raise ReportError(
            f"no run of {name} has an evaluation yet; train further, or run "
            f"`ertrl evaluate {members[0].run.path}`"
        )
    facts = _agreed_facts(members, evaluated)
    seen = {p for m in evaluated for e in m.evaluations.values() for p in e["protocols"]}
    return FamilyResults(
        family=name,
        protocols=tuple(p for p in PROTOCOLS if p in seen),
        variants=_variants(members),
        **facts,
    )


def _agreed_facts(members: list[SeedRun], evaluated: list[SeedRun]) -> dict[str, Any]:
    """What all runs of a family must have in common."""
    first = members[0]
    for other in members[1:]:
        _same(first, other, "dataset", first.run.spec["dataset"], other.run.spec["dataset"])
    pattern_owner = evaluated[0]
    pattern = next(iter(pattern_owner.evaluations.values()))
    names = {
        "dataset": "dataset",
        "evaluation": "evaluation settings",
        "tasks": "tasks",
        "groups": "split of tasks into groups",
        "references": "reference returns",
    }
    for member in evaluated:
        for evaluation in member.evaluations.values():
            for key, meaning in names.items():
                _same(pattern_owner, member, meaning, pattern[key], evaluation[key])
    facts = {key: pattern[key] for key in ("dataset", "tasks", "references")}
    # Sealed JSON is sorted by key; readers want training tasks first and the farthest last.
    known = [g for g in GROUP_ORDER if g in pattern["groups"]]
    order = known + [g for g in pattern["groups"] if g not in known]
    groups = {g: pattern["groups"][g] for g in order}
    return facts | {"groups": groups, "settings": pattern["evaluation"]}


def _same(one: SeedRun, other: SeedRun, what: str, expected: Any, found: Any) -> None:
    if expected == found:
        return
    detail = ""
    if isinstance(expected, str):
        detail = f" ({expected} and {found})"
    elif isinstance(expected, dict):
        keys = [k for k in sorted({*expected, *found}) if expected.get(k) != found.get(k)]
        detail = f" (in {', '.join(map(str, keys))})"
    raise ReportError(
        f"{one.run.name} and {other.run.name} cannot stand in one table: their {what} "
        f"differ{detail}. Report them apart, or evaluate both in the same way."
    )


# --- variants and their names ---


def _flat(config: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(config, dict):
        return {prefix: config}
    return {
        path: value
        for key, inner in config.items()
        for path, value in _flat(inner, f"{prefix}.{key}" if prefix else key).items()
    }


def _identity(member: SeedRun) -> dict[str, Any]:
    config = {k: v for k, v in to_json(member.run.config).items() if k not in WITHOUT_EFFECT}
    return {"name": member.run.spec["method"], "by": member.run.spec["learner"], **_flat(config)}


def _variants(members: list[SeedRun]) -> tuple[Variant, ...]:
    sorted_out: dict[str, list[SeedRun]] = {}
    for member in members:
        seeds = sorted_out.setdefault(fingerprint(_identity(member)), [])
        for twin in seeds:
            if twin.seed == member.seed:
                raise ReportError(
                    f"{twin.run.path} and {member.run.path} are the same run (method, "
                    f"configuration and seed {twin.seed}); give only one of them"
                )
        seeds.append(member)
    groups = [sorted(group, key=lambda m: m.seed) for group in sorted_out.values()]
    labels = _labels([_identity(group[0]) for group in groups])
    return tuple(Variant(label, tuple(g)) for label, g in zip(labels, groups, strict=True))


def _labels(identities: list[dict[str, Any]]) -> list[str]:
    """The method's name, and as much of the configuration as it takes to tell variants apart."""
    learners = {identity["by"] for identity in identities}
    labels = []
    for identity in identities:
        kind = (identity["name"], identity["by"])
        alike = [other for other in identities if (other["name"], other["by"]) == kind]
        telling = [
            key for key in identity if any(other.get(key) != identity[key] for other in alike)
        ]
        label = identity["name"].upper()
        if len(learners) > 1:
            label += f" + {identity['by']}"
        if telling:
            told = ", ".join(f"{key.split('.')[-1]} {identity[key]}" for key in telling)
            label += f" ({told})"
        labels.append(label)
    return labels


# --- what a reader must know ---


def _notes(family: FamilyResults) -> list[str]:
    notes = []
    for variant in family.variants:
        for member in variant.runs:
            if member.last_step < variant.step:
                where = f"only up to update {member.last_step}" if member.last_step else "never"
                notes.append(
                    f"{family.family}, {variant.label}, seed {member.seed} was evaluated {where}; "
                    f"the tables show update {variant.step} without it."
                )
        if not variant.step:
            notes.append(f"{family.family}, {variant.label} has not been evaluated yet.")
        elif variant.step < variant.updates:
            notes.append(
                f"{family.family}, {variant.label} is unfinished: its numbers are those of update "
                f"{variant.step:,} of {variant.updates:,}."
            )
    if len({v.step for v in family.variants}) > 1:
        ages = ", ".join(f"{v.label} {v.step:,}" for v in family.variants)
        notes.append(f"{family.family}: unequal numbers of updates ({ages}).")
    seeds = {v.label: [m.seed for m in v.runs] for v in family.variants}
    if len({tuple(s) for s in seeds.values()}) > 1:
        text = "; ".join(f"{label}: {', '.join(map(str, s))}" for label, s in seeds.items())
        notes.append(f"{family.family}: variants have unequal sets of seeds ({text}).")
    return notes

"""Read runs and sort them into what may be compared: families, variants, seeds.

Runs of one family stand in one table only if they faced the same data, the same tasks and the same
protocols; anything else is refused. Runs that differ in nothing but their seed form a variant and
are averaged. What is missing stays missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ertrl.config import fingerprint
from ertrl.data import Dataset
from ertrl.envs import GROUPS, family_names
from ertrl.errors import ReportError
from ertrl.evaluation import PROTOCOLS, mean_of_measured, missing_repeats, normalise
from ertrl.reporting.naming import identity, names
from ertrl.training import Run

GROUP_ORDER = (*GROUPS, "test-extreme")

ANCHORS = {"expert": "expert", "zero": "zero action", "random": "random"}
"""Rows that need no learning, as the dataset's references name them."""

Evaluation = dict[str, Any]


@dataclass(frozen=True)
class SeedRun:
    """One run with all its evaluations."""

    run: Run
    evaluations: dict[int, Evaluation]
    probes: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Updates -> what z was found to know."""

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
        """Mean over repeats per task, NaN where all diverged; None if that was not measured."""
        found = self.measured(run, protocol, "returns", step)
        if found is None:
            return None
        returns = mean_of_measured(found, axis=1)
        return normalise(returns, self.references) if normalised else returns

    def measured(self, run: SeedRun, protocol: str, name: str, step: int) -> np.ndarray | None:
        """Anything a protocol measured [task, repeat, ...]; None if it did not.

        The oracle is looked up like a protocol.
        """
        evaluation = run.evaluations.get(step, {})
        found = {**evaluation.get("protocols", {}), "oracle": evaluation.get("oracle", {})}
        values = found.get(protocol, {}).get(name)
        return None if values is None else np.asarray(values, np.float64)

    def curve(self, run: SeedRun, protocol: str, step: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Normalised return and size of the context, both [task, horizon], as it grows."""
        returns = self.measured(run, protocol, "curve_returns", step)
        context = self.measured(run, protocol, "curve_context", step)
        if returns is None or context is None:
            return None
        means = mean_of_measured(returns, axis=1)
        return normalise(means, self.references), context.mean(axis=1)

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
        if returns is None:
            return None
        mean = float(mean_of_measured(returns[self.rows[group]]))
        return None if np.isnan(mean) else mean

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
        """Normalised returns [seeds, tasks of the group]; empty where nothing was measured.

        A task that diverged in all repeats of any run is left out of all, to compare like with
        like.
        """
        rows = self.rows[group]
        every = [self.task_returns(r, protocol, v.step) for v in self.variants for r in v.runs]
        whole = np.all([~np.isnan(e[rows]) for e in every if e is not None], axis=0)
        found = [self.task_returns(run, protocol, variant.step) for run in variant.runs]
        kept = [returns[rows][whole] for returns in found if returns is not None]
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


Runs = str | Path | Run | Sequence[str | Path | Run]
"""Runs, or folders of them."""


def gather(runs: Runs, data: Sequence[str | Path] = ()) -> Results:
    """Read runs, refuse what cannot be compared, and sort the rest.

    `data` are dataset folders that have moved; they are looked at only to tell datasets of one
    family apart.
    """
    opened = open_runs(runs)
    families: dict[str, list[SeedRun]] = {}
    for run in opened:
        evaluations = {step: run.evaluation(step) for step in run.evaluation_steps()}
        probes = {step: run.probes(step) for step in run.probe_steps()}
        families.setdefault(run.family, []).append(SeedRun(run, evaluations, probes))
    apart = [_apart(name, members, data) for name, members in families.items()]
    results = tuple(_family(name, m) for part in apart for name, m in part.items())
    return Results(results, tuple(note for family in results for note in _notes(family)))


def open_runs(runs: Runs) -> list[Run]:
    """Open runs; a folder that is no run itself stands for the runs in it."""
    opened: dict[Path, Run] = {}
    for given in [runs] if isinstance(runs, (str, Path, Run)) else runs:
        if isinstance(given, Run):
            found = [given]
        else:
            path = Path(given)
            inside = sorted(p.parent for p in path.glob("*/config.json"))
            is_run = (path / "config.json").exists()
            found = [Run(p) for p in ([path] if is_run or not inside else inside)]
        opened |= {run.path.resolve(): run for run in found}
    if not opened:
        raise ReportError("there is no run to look at; make one with `ertrl train`")
    return list(opened.values())


def _apart(
    name: str, members: list[SeedRun], data: Sequence[str | Path]
) -> dict[str, list[SeedRun]]:
    """Datasets of one family that differ in the strength of `style` are families of their own."""
    by_data: dict[str, list[SeedRun]] = {}
    for member in members:
        by_data.setdefault(member.run.spec["dataset"], []).append(member)
    if len(by_data) == 1:
        return {name: members}
    styles = {}
    for content, part in by_data.items():
        for place in (part[0].run.spec["dataset_path"], *data):
            if (Path(place) / "manifest.json").exists():
                dataset = Dataset(place, verify=False)
                if dataset.fingerprint == content:
                    styles[content] = style_of(dataset)
    if len(styles) < len(by_data) or len(set(styles.values())) < len(by_data):
        return {name: members}  # what they differ in is something else, or unknown: not comparable
    order = sorted(by_data, key=lambda content: styles[content])
    return {f"{name} (style={styles[content]:g})": by_data[content] for content in order}


def style_of(dataset: Dataset) -> float:
    """How strongly each behaviour policy was pulled in a direction of its own."""
    return float(dataset.manifest["collector"].get("config", {}).get("style", 0.0))


def _family(name: str, members: list[SeedRun]) -> FamilyResults:
    evaluated = [m for m in members if m.evaluations]
    if not evaluated and members[0].run.family not in family_names():
        raise ReportError(
            f"{name} are logs without a simulator, so runs on them have no returns to report; "
            "use their agents with `ertrl.load_agent`"
        )
    if not evaluated:
        raise ReportError(
            f"no run of {name} has an evaluation yet; train further, or run "
            f"`ertrl evaluate {members[0].run.path}`"
        )
    facts = _agreed_facts(members, evaluated)
    variants = _variants(members)
    _agreed_probes(variants)
    seen = {p for m in evaluated for e in m.evaluations.values() for p in e["protocols"]}
    return FamilyResults(
        family=name,
        protocols=tuple(p for p in PROTOCOLS if p in seen),
        variants=variants,
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


def _agreed_probes(variants: Sequence[Variant]) -> None:
    """Probes that are shown side by side must have looked at equally much."""
    probed = [(r, r.probes[v.step]) for v in variants for r in v.runs if v.step in r.probes]
    for run, probes in probed[1:]:
        first, expected = probed[0]
        _same(first, run, "probe settings", expected["settings"], probes["settings"])


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


# --- variants ---


def _variants(members: list[SeedRun]) -> tuple[Variant, ...]:
    sorted_out: dict[str, list[SeedRun]] = {}
    for member in members:
        seeds = sorted_out.setdefault(fingerprint(identity(member.run)), [])
        for twin in seeds:
            if twin.seed == member.seed:
                raise ReportError(
                    f"{twin.run.path} and {member.run.path} are the same run (method, "
                    f"configuration and seed {twin.seed}); give only one of them"
                )
        seeds.append(member)
    groups = [sorted(group, key=lambda m: m.seed) for group in sorted_out.values()]
    labels = names([group[0].run for group in groups])
    return tuple(Variant(label, tuple(g)) for label, g in zip(labels, groups, strict=True))


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
            for protocol, count in missing_repeats(
                member.evaluations.get(variant.step, {})
            ).items():
                total = len(family.tasks) * family.settings["repeats"]
                notes.append(
                    f"{family.family}, {variant.label}, seed {member.seed}: {count} of {total} "
                    f"repeats with {protocol} context are missing, because their simulation "
                    "diverged; means are over the others."
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

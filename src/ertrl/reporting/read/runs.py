"""Read runs, or numbers of runs, and sort them into what may be compared.

Runs of one family stand in one table only if they faced the same data, the same tasks and the same
protocols; anything else is refused. Runs that differ in nothing but their seed form a variant and
are averaged. What is missing stays missing.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ertrl.data import Dataset
from ertrl.envs import GROUP_TITLES
from ertrl.errors import ReportError
from ertrl.evaluation import PROTOCOLS
from ertrl.reporting.read.dataset import style_of
from ertrl.reporting.read.identity import Identity, identities, places_of, unspoken_learner
from ertrl.reporting.read.published import read_published
from ertrl.reporting.read.results import FamilyResults, Results, SeedRun, Variant
from ertrl.training import Runs, open_runs

Beside = str | Path | Sequence[str | Path]
"""results.json files of other reports, or their folders."""
MUST_AGREE = {
    "evaluation": "evaluation settings",
    "tasks": "tasks",
    "groups": "split of tasks into groups",
    "references": "reference returns",
}
"""What evaluations of one family have in common, and what to call it."""


def read_runs(runs: Runs, data: Sequence[str | Path] = (), beside: Beside = ()) -> Results:
    """Read runs, refuse what cannot be compared, and sort the rest.

    `data` are dataset folders that have moved; they are looked at only to tell datasets of one
    family apart. `beside` are results.json files of other reports, whose runs need not be here.
    """
    families: dict[str, list[SeedRun]] = {}
    nothing_here = isinstance(runs, Sequence) and not runs and beside
    opened, left_out = ([], []) if nothing_here else open_runs(runs)
    for run in opened:
        families.setdefault(run.family, []).append(SeedRun.of(run))
    files = [beside] if isinstance(beside, (str, Path)) else beside
    there = [read_published(Path(file)) for file in files]
    _some_alike(families, there)
    for found in there:
        for name, members in found.items():
            here = families.setdefault(name, [])
            known = {member.name for member in here}  # a name says everything that makes a run
            here += [member for member in members if member.name not in known]
    results = tuple(
        _family(name, style, part)
        for name, members in families.items()
        for style, part in _apart(members, data).items()
    )
    places = places_of([v.identity for family in results for v in family.variants])
    results = tuple(
        replace(f, variants=tuple(replace(v, place=places[v.identity]) for v in f.variants))
        for f in results
    )
    notes = [f"A run is left out. {problem}" for problem in left_out]
    notes += [note for family in results for note in _notes(family)]
    return Results(results, tuple(notes))


def _some_alike(here: Collection[str], there: Sequence[Collection[str]]) -> None:
    """Refuse tables that have nothing to do with the runs: side by side they would say nothing."""
    published = dict.fromkeys(name for families in there for name in families)
    if here and published and not published.keys() & set(here):
        raise ReportError(
            f"nothing to compare with: the runs here are of {', '.join(here)}, and what --beside "
            f"names holds {', '.join(published)} only. Name results of the same family, or report "
            "them apart."
        )


def _apart(members: list[SeedRun], data: Sequence[str | Path]) -> dict[float | None, list[SeedRun]]:
    """Runs of one family by the strength of `style` of their data, where that differs."""
    by_data: dict[str, list[SeedRun]] = {}
    for member in members:
        by_data.setdefault(member.dataset, []).append(member)
    if len(by_data) == 1:
        return {None: members}
    styles: dict[float, list[SeedRun]] = {}
    for content, part in by_data.items():
        told = [m.published.style for m in part if m.published and m.published.style is not None]
        styles |= {style: part for style in told}
        own = [member.run.spec["dataset_path"] for member in part[:1] if member.run]
        for place in (*own, *data):
            if (Path(place) / "manifest.json").exists():
                dataset = Dataset(place, verify=False)
                if dataset.fingerprint == content:
                    styles[style_of(dataset)] = part
    if len(styles) < len(by_data):
        return {None: members}  # what they differ in is something else, or unknown: refused later
    return {style: styles[style] for style in sorted(styles)}


def _family(name: str, style: float | None, members: list[SeedRun]) -> FamilyResults:
    evaluated = [m for m in members if m.evaluations]
    if not evaluated:
        raise ReportError(
            f"no run of {name} has an evaluation yet; train further, or run "
            f"`ertrl evaluate {where_of(members[0])}`"
        )
    _agree("dataset", [(m, m.dataset) for m in members])
    for key, meaning in MUST_AGREE.items():
        _agree(meaning, [(m, e[key]) for m in evaluated for e in m.evaluations.values()])
    variants = _variants(members)
    probed = [(r, r.probes[v.step]) for v in variants for r in v.runs if v.step in r.probes]
    _agree("probe settings", [(run, probes["settings"]) for run, probes in probed])
    agreed = next(iter(evaluated[0].evaluations.values()))
    # Readers want training tasks first and the farthest last.
    order = dict.fromkeys([*GROUP_TITLES, *agreed["groups"]])
    seen = {p for m in evaluated for e in m.evaluations.values() for p in e["protocols"]}
    return FamilyResults(
        family=name,
        style=style,
        dataset=agreed["dataset"],
        settings=agreed["evaluation"],
        tasks=agreed["tasks"],
        groups={g: agreed["groups"][g] for g in order if g in agreed["groups"]},
        references=agreed["references"],
        protocols=tuple(p for p in PROTOCOLS if p in seen),
        variants=variants,
    )


def _agree(what: str, found: list[tuple[SeedRun, Any]]) -> None:
    """Refuse runs that differ in what those of one table must have in common."""
    for other, value in found[1:]:
        one, expected = found[0]
        if value == expected:
            continue
        detail = ""
        if isinstance(expected, str):
            detail = f" ({expected} and {value})"
        elif isinstance(expected, dict):
            keys = [k for k in sorted({*expected, *value}) if expected.get(k) != value.get(k)]
            detail = f" (in {', '.join(map(str, keys))})"
        alike = "Report them apart, or evaluate both in the same way."
        if what == "dataset" and (one.published or other.published):
            alike = "Published numbers can be compared on the same data only."
        raise ReportError(
            f"{one.name} and {other.name} cannot stand in one table: their {what} "
            f"differ{detail}. {alike} (They are from {where_of(one)} and {where_of(other)}.)"
        )


def _variants(members: list[SeedRun]) -> tuple[Variant, ...]:
    """Sort by configuration."""
    sorted_out: dict[str, list[SeedRun]] = {}
    for member in members:
        seeds = sorted_out.setdefault(member.configuration, [])
        twin = next((known for known in seeds if known.seed == member.seed), None)
        if twin is None:
            seeds.append(member)
        elif not member.published:  # else it is known already, with other threads for example
            raise ReportError(
                f"{where_of(twin)} and {where_of(member)} are the same run (method, "
                f"configuration and seed {twin.seed}); give only one of them"
            )
    groups = [tuple(sorted(group, key=lambda m: m.seed)) for group in sorted_out.values()]
    return tuple(
        Variant(one, group) for one, group in zip(_identities(groups), groups, strict=True)
    )


def _identities(groups: Sequence[Sequence[SeedRun]]) -> list[Identity]:
    """Of variants that have runs here, what tells those apart; of others, what they were called."""
    here = [next((m.run for m in group if m.run), None) for group in groups]
    unspoken = unspoken_learner([group[0].learner for group in groups])
    own = iter(identities([run for run in here if run], unspoken))
    found = [next(own) if run else None for run in here]
    for place, group in enumerate(groups):
        if found[place] is None:
            taken = {one.label for one in found if one}
            files = [member.published for member in group if member.published]
            # Files call it after what told it from others there: the longest name says most.
            one, file = max(((f.identity, f.file) for f in files), key=lambda x: len(x[0].label))
            learner = None if group[0].learner == unspoken else group[0].learner
            names = (None, "published", f"published in {file}")
            told = [replace(one, learner=learner, published=name) for name in names]
            found[place] = next((name for name in told if name.label not in taken), told[-1])
    return [one for one in found if one]


def where_of(member: SeedRun) -> Path:
    """The folder or the file that it was read from."""
    if member.run:
        return member.run.path
    assert member.published, "a run is here, or its numbers are"
    return member.published.file


def _notes(family: FamilyResults) -> Iterator[str]:
    name = family.label
    if lost := family.without_scale:
        yield (
            f"{name}: normalised returns leave out task {', '.join(map(str, lost))}, where the "
            "expert is not above random actions."
        )
    for variant in family.variants:
        for member in variant.runs:
            if member.last_step < variant.step:
                where = f"only up to update {member.last_step}" if member.last_step else "never"
                yield (
                    f"{name}, {variant.label}, seed {member.seed} was evaluated {where}; "
                    f"the tables show update {variant.step} without it."
                )
            for protocol, count in member.missing_repeats(variant.step).items():
                total = len(family.tasks) * family.settings["repeats"]
                yield (
                    f"{name}, {variant.label}, seed {member.seed}: {count} of {total} repeats with "
                    f"{protocol} context are missing, because their simulation diverged; means are "
                    "over the others."
                )
        if not variant.step:
            yield f"{name}, {variant.label} has not been evaluated yet."
        elif variant.step < variant.updates:
            yield (
                f"{name}, {variant.label} is unfinished: its numbers are those of update "
                f"{variant.step:,} of {variant.updates:,}."
            )
    if len({v.step for v in family.variants}) > 1:
        ages = ", ".join(f"{v.label} {v.step:,}" for v in family.variants)
        yield f"{name}: unequal numbers of updates ({ages})."
    seeds = {v.label: [m.seed for m in v.runs] for v in family.variants}
    if len({tuple(s) for s in seeds.values()}) > 1:
        text = "; ".join(f"{label}: {', '.join(map(str, s))}" for label, s in seeds.items())
        yield f"{name}: variants have unequal sets of seeds ({text})."

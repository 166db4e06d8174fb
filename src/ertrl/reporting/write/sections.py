"""The sections of the page. One is a template of its name and a function that makes its data.

A function returns what its template calls `data`, or None where there is nothing to show. Every
template of a family also sees `family`, a FamilyReport, and every template `report`.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_hex

from ertrl.envs import group_title
from ertrl.reporting.draw import Picture, slug
from ertrl.reporting.draw.panels import TaskColours
from ertrl.reporting.measure import comparison, gain, representation, scores
from ertrl.reporting.measure.comparison import ReturnsTable
from ertrl.reporting.measure.gain import Gains
from ertrl.reporting.read.dataset import Material, Watched
from ertrl.reporting.read.identity import method_title, profile_of
from ertrl.reporting.read.paper import in_paper, paper_results
from ertrl.reporting.read.results import FamilyResults, Results
from ertrl.reporting.write.words import minus

Data = dict[str, Any]
EXPLORER_DIGITS = 3
EXPLORER_STOPS = 12
"""Colours of the key, evenly over the task axis."""


@dataclass(frozen=True)
class FamilyReport:
    results: FamilyResults
    material: Material
    table: ReturnsTable
    unnormalised: ReturnsTable
    pictures: dict[str, Picture]


@dataclass(frozen=True)
class Report:
    """All there is to say: a report before it is written."""

    results: Results
    families: list[FamilyReport]
    gains: Gains | None
    pictures: dict[str, Picture]
    """Of all families together."""


class Section(NamedTuple):
    """A card of the page, with its data."""

    key: str
    """Its id in the page."""
    short: str
    """In the navigation."""
    title: str
    template: str
    data: Data
    """With `missing_because` it has nothing to show yet, and stays folded."""


Kinds = dict[str, tuple[str, str, Callable[[Any], Data | None]]]
"""Name of section and template -> short title, title, maker of its data."""


def sections(kinds: Kinds, report: FamilyReport | Report) -> list[Section]:
    """Those that there is something to show in."""
    prefix = f"{slug(report.results.label)}-" if isinstance(report, FamilyReport) else ""
    return [
        Section(prefix + name, short, title, f"sections/{name}.html", data)
        for name, (short, title, make) in kinds.items()
        if (data := make(report)) is not None
    ]


def _logs(report: FamilyReport) -> Data:
    family = report.results
    grids = [scores.log_rows(family, names) for names in (scores.VALUES, scores.ERRORS)]
    known = [grid if any(any(row.cells) for row in grid.rows) else None for grid in grids]
    return {"values": known[0], "errors": known[1]}


def _success(report: FamilyReport) -> Data | None:
    found = scores.success_rows(report.results)
    return None if found is None else {"success": found}


def _curves(report: FamilyReport) -> Data | None:
    return {"not_drawn": _published(report)} if "curves" in report.pictures else None


def _adaptation(report: FamilyReport) -> Data:
    return {"oracle": scores.oracle_rows(report.results), "not_drawn": _published(report)}


def _published(report: FamilyReport) -> list[str]:
    """Variants of which only numbers are here."""
    return [v.label for v in report.results.variants if not any(run.run for run in v.runs)]


def _shift(report: FamilyReport) -> Data | None:
    return {"shift": scores.shift_rows(report.results)} if "shift" in report.pictures else None


def _latent(report: FamilyReport) -> Data | None:
    """Also points to explore: every seed, every context, with the task under the pointer.

    page.js draws them. Without JavaScript, on paper and for screen readers, the figure above it
    says the same of the first seed.
    """
    if "latent" not in report.pictures:
        return None
    family, material = report.results, report.material
    colours, values = TaskColours(material.axis), material.axis.values
    tasks = [
        {
            "task": task,
            "group": list(family.groups).index(family.group_of[task]),
            "value": _short(values[row]),
            "colour": to_hex(colours.of(row)),
        }
        for row, task in enumerate(family.tasks)
    ]
    runs = [
        {"label": identity.label, "seed": watched.seed, **_points(watched)}
        for identity, seeds in material.watched.items()
        for watched in seeds
    ]
    ramp = [to_hex(colours.map(share)) for share in np.linspace(0, 1, EXPLORER_STOPS)]
    key = {"label": material.axis.label, "colours": ramp}
    key["ends"] = [_short(end) for end in (values.min(), values.max())]
    groups = [group_title(group).lower() for group in family.groups]
    return {"explorer": {"key": key, "groups": groups, "tasks": tasks, "runs": runs}}


def _short(value: float) -> str:
    return minus(f"{value:.4g}")


def _points(watched: Watched) -> Data:
    """Points [task][context][x, y] of offline, and [task][x, y] of online contexts."""
    offline, online, share = watched.in_plane()

    def rounded(points: np.ndarray) -> list[Any]:
        # + 0.0 turns -0.0 into 0.0
        return (np.round(points.astype(np.float64), EXPLORER_DIGITS) + 0.0).tolist()

    return {
        "offline": rounded(offline),
        "online": None if online is None else rounded(online),
        "shares": [f"{100 * part:.0f}%" for part in share],
    }


def _probes(report: FamilyReport) -> Data:
    family, probed = report.results, representation.probes_of(report.results)
    if not probed:
        return {"missing_because": "(not measured)"}
    no_leak = representation.not_measured(probed, "leak")
    return {
        "first": probed[0].seeds[0],
        "targets": representation.targets(probed),
        "regression": representation.regression(family, probed),
        "leak": [] if no_leak else representation.leak(family, probed),
        "no_leak": no_leak,
        "swap": representation.swap(family, probed),
        "no_swap": representation.not_measured(probed, "swap"),
        "missing": representation.not_probed(family),
    }


def _ablation(report: FamilyReport) -> Data | None:
    found = comparison.ablations(report.results, report.table)
    return {"ablations": found} if found else None


def _stats(report: FamilyReport) -> Data:
    return {
        "iqm": comparison.interquartile_means([report.results]),
        "improvements": comparison.improvements(report.results, report.table),
    }


def _paper(report: FamilyReport) -> Data | None:
    family = report.results
    if not in_paper(family.family) or family.style:
        return None
    return {"paper": paper_results(), "rows": comparison.beside_paper(family, report.table)}


def _data(report: FamilyReport) -> Data | None:
    dataset = report.material.dataset
    if dataset is None:
        return None
    tasks = dataset.tasks.values()
    parameters = np.stack([data.parameters for data in tasks])
    ends = (parameters.min(axis=0), parameters.max(axis=0))
    return {
        "dataset": dataset,
        "parameters": list(zip(dataset.manifest["parameter_names"], *ends, strict=True)),
        "episodes": sum(data.episodes for data in tasks),
        "transitions": sum(int(data.lengths.sum()) for data in tasks),
        "checkpoints": len({int(c) for data in tasks for c in np.unique(data.checkpoints)}),
    }


FAMILY: Kinds = {
    "summary": ("Summary", "Summary", lambda _: {}),
    "success": ("Success", "Success rate", _success),
    "curves": ("Learning", "Learning curves", _curves),
    "adaptation": ("Adaptation", "Adaptation", _adaptation),
    "shift": ("Context shift", "Context shift", _shift),
    "tasks": ("Tasks", "Return per task", lambda _: {}),
    "latent": ("Latent space", "Latent space", _latent),
    "probes": ("What z knows", "What z knows", _probes),
    "ablation": ("Ablation", "Ablation", _ablation),
    "stats": ("Statistics", "Statistics", _stats),
    "paper": ("Paper", "Beside the paper", _paper),
    "data": ("Data", "Behaviour data", _data),
}
FROM_LOGS: Kinds = {
    "logs": ("From logs", "How good, as far as logs can tell", _logs),
    **{name: FAMILY[name] for name in ("latent", "probes", "data")},
}
"""Of a family without a simulator: there are no returns."""


def _overview(report: Report) -> Data | None:
    families = [family for family in report.results.families if not family.from_logs]
    if len(families) < 2:
        return None
    found = comparison.interquartile_means(families)
    every = dict.fromkeys(v.label for f in families for v in f.variants)
    averaged = {row.label for row in found.rows}
    return {
        "iqm": found,
        "partly": [label for label in every if label not in averaged],
        "from_logs": [f.label for f in report.results.families if f.from_logs],
    }


OVERVIEW: Kinds = {"overview": ("Overview", "All families", _overview)}
"""Above all families."""


def _benefit(report: Report) -> Data | None:
    if report.gains is None:
        return None
    empty = {} if report.pictures else {"missing_because": "(too few families or styles to tell)"}
    return {
        "methods": [method_title(method) for method in (gain.WITH, gain.WITHOUT)],
        "fewest": gain.FEWEST,
        "families": len({p.family for p in report.gains.with_distance}),
        **empty,
    }


def _runs(report: Report) -> Data:
    members = report.results.members
    return {"runs": [(v, m, profile_of(m.run) if m.run else None) for v, m in members]}


def _reproduce(report: Report) -> Data:
    members = [member for _, member in report.results.members]
    commands = dict.fromkeys(member.provenance["command"] for member in members)
    folders = [shlex.quote(f"runs/{member.name}") for member in members if member.run]
    files = dict.fromkeys(str(m.published.file) for m in members if m.published)
    beside = [" ".join(["--beside", *map(shlex.quote, files)])] if files else []
    again = " \\\n  ".join(["ertrl report", *folders, *beside, "--out report"])
    return {"commands": "\n".join(commands), "again": again}


def _provenance(report: Report) -> Data:
    """Runs of the same origin stand together."""
    origins: dict[str, tuple[Data, list[str]]] = {}
    for _, member in report.results.members:
        told = ("commit", "versions", "machine", "threads")
        origin = {"threads": 1, **member.provenance}  # older runs do not say
        facts = {name: origin[name] for name in told} | {"dataset": member.dataset}
        origins.setdefault(repr(facts), (facts, []))[1].append(member.name)
    return {"origins": list(origins.values())}


CLOSING: Kinds = {
    "benefit": ("When it helps", "When does hiding the behaviour policy help?", _benefit),
    "runs": ("Runs", "Runs", _runs),
    "reproduce": ("Reproduce", "How to reproduce", _reproduce),
    "provenance": ("Provenance", "Provenance", _provenance),
}

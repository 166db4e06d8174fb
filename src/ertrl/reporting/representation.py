"""What the probes found, over seeds: tables of the page and numbers of the figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ertrl.reporting.html_tables import Line, dot, grid, minus, plain_table
from ertrl.reporting.markup import Content, tag
from ertrl.reporting.paper import paper_results
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.stats import mean_estimate
from ertrl.reporting.summary import Column, group_title
from ertrl.reporting.tables import MISSING

Probes = dict[str, Any]
"""A file that `ertrl evaluate --probes` wrote."""

MODELS = {"linear": "linear", "svr": "SVR"}
SHARES = ("task", "checkpoint", "context")
CONTEXTS = {"transition": "one transition", "context": "whole context"}


def probes_of(family: FamilyResults) -> dict[str, list[Probes]]:
    """Variant -> the probes of its seeds at the step that tables show; only where there are any."""
    found = {
        v.label: [r.probes[v.step] for r in v.runs if v.step in r.probes] for v in family.variants
    }
    return {label: probes for label, probes in found.items() if probes}


def errors(probes: Sequence[Probes], target: str, context: str, model: str) -> list[float]:
    """The test error of each seed."""
    return [
        entry["test_rmse"]
        for probe in probes
        for entry in probe["regression"]
        if (entry["target"], entry["context"], entry["model"]) == (target, context, model)
    ]


def targets(probed: Mapping[str, Sequence[Probes]]) -> list[str]:
    """What was regressed: the parameters, and the angle where they are one."""
    entries = [e for probes in probed.values() for p in probes for e in p["regression"]]
    return list(dict.fromkeys(entry["target"] for entry in entries))


def leaks(probes: Sequence[Probes], group: str, kind: str = "accuracy") -> list[float]:
    """The accuracy of each seed, of z or of the raw context."""
    found = [probe["leak"] for probe in probes]
    return [leak[kind][group] for leak in found if kind in leak and group in leak[kind]]


def plus_minus(values: Sequence[float], form: str) -> Content:
    """Mean over seeds and half the width of its interval."""
    if not values:
        return MISSING
    estimate = mean_estimate(values)
    half = estimate.half_width
    spread = None if half is None else tag("small", f" \N{PLUS-MINUS SIGN} {form.format(half)}")
    return [minus(form.format(estimate.value)), spread]


def representation(family: FamilyResults, labels: Sequence[str]) -> list[Content]:
    """Tables of regression errors and of the behaviour leak."""
    probed = probes_of(family)
    if not probed:
        return [
            tag(
                "p",
                "Not measured yet: ",
                tag("code", "ertrl evaluate RUN --probes"),
                " measures how well z tells the task, and whether it tells the behaviour policy.",
            )
        ]
    lacking = [
        f"{v.label}, seed {r.seed}"
        for v in family.variants
        for r in v.runs
        if v.step not in r.probes
    ]
    notes = [tag("p", f"Not measured: {'; '.join(lacking)}.", class_="fine")] if lacking else []
    return [
        *_regression(family, probed, labels),
        *_leak(family, probed, labels),
        *notes,
    ]


def _regression(
    family: FamilyResults, probed: Mapping[str, list[Probes]], labels: Sequence[str]
) -> list[Content]:
    theirs = paper_results()["rmse"]
    in_paper = family.family in theirs["linear"]
    columns = [Column(c, m) for c in CONTEXTS.values() for m in MODELS.values()]
    columns += [Column("paper", m) for m in MODELS.values()] if in_paper else []
    method_of = {v.label: v.method for v in family.variants}
    lines: list[Line] = []
    several = len(targets(probed)) > 1
    for target in targets(probed):
        suffix = f", {target}" if several else ""
        for label, probes in probed.items():
            cells = [
                plus_minus(errors(probes, target, context, model), "{:.3f}")
                for context in CONTEXTS
                for model in MODELS
            ]
            if in_paper:
                printed = [theirs[m][family.family].get(method_of[label]) for m in MODELS]
                known = target == "parameters"
                cells += [f"{p[0]:.3f}" if p and known else MISSING for p in printed]
            lines.append(Line([dot(label, labels), label + suffix], str(len(probes)), cells))
    # The same data for all: any variant's probes hold the constant's error.
    some = next(iter(probed.values()))[:1]
    for target in targets(probed):
        name = f"constant, {target}" if several else "constant"
        constant = [errors(some, target, context, "constant") for context in CONTEXTS]
        cells = [plus_minus(error, "{:.3f}") for error in constant for _ in MODELS]
        lines.append(Line(name, "", cells + [""] * (2 if in_paper else 0), anchor=True))
    settings = next(iter(probed.values()))[0]["settings"]
    note = (
        f"Root mean square error on test samples, z to true task parameters, over the held-out and "
        f"out-of-distribution tasks; {settings['transitions']} single transitions or "
        f"{settings['contexts']} contexts per task, of which a fifth tests. Constant: the same "
        "prediction for all, what z must beat. "
    )
    if "angle" in targets(probed):
        note += (
            "Parameters: the raw angle in radians, as in the paper, though its two ends are "
            "neighbours; angle: cosine and sine are regressed and the error is along the circle. "
        )
    if in_paper:
        note += (
            "The paper's numbers are of one seed's encoder on its training and OOD tasks, and its "
            "SVR column is the error on the transitions that the SVR was trained on: not a test "
            "error, so not to be compared with ours."
        )
    return [
        tag("h3", "Does z tell the task?"),
        grid(columns, lines),
        tag("p", note, class_="fine"),
    ]


def _leak(
    family: FamilyResults, probed: Mapping[str, list[Probes]], labels: Sequence[str]
) -> list[Content]:
    title = tag("h3", "Does z tell the behaviour policy?")
    reasons = {
        p["leak"]["missing"] for probes in probed.values() for p in probes if "missing" in p["leak"]
    }
    if reasons:
        return [title, tag("p", f"Not measured: {'; '.join(sorted(reasons))}.")]
    groups = list(family.groups)
    head: list[Content] = ["method", *(group_title(g) for g in groups)]
    head += ["variance: task", "checkpoint", "context"]
    rows: list[list[Content]] = []
    for label, probes in probed.items():
        shares = [[p["leak"]["variance"][kind] for p in probes] for kind in SHARES]
        rows.append(
            [
                [dot(label, labels), label],
                *(plus_minus([100 * x for x in leaks(probes, g)], "{:.0f}%") for g in groups),
                *(plus_minus([100 * x for x in share], "{:.0f}%") for share in shares),
            ]
        )
    first = next(iter(probed.values()))[0]["leak"]
    # The same contexts for all methods: any of them knows what the raw ones tell.
    raw = [np.mean(leaks(next(iter(probed.values())), g, "raw_accuracy")) for g in groups]
    blank = [""] * len(SHARES)
    rows.append([tag("em", "raw context"), *(f"{100 * r:.0f}%" for r in raw), *blank])
    rows.append([tag("em", "chance"), *[f"{100 * first['chance']:.0f}%"] * len(groups), *blank])
    return [
        title,
        plain_table(head, rows),
        tag(
            "p",
            f"Contexts of {first['context_size']} transitions, each collected by one of "
            f"{first['checkpoints']} checkpoints of a task's behaviour policy: how often logistic "
            "regression tells which from z, within a task, on episodes it has not seen. A z that "
            "knows the task alone is at chance. Raw context: the same from the mean transition, "
            "that is from what the encoder was shown. Right: shares of z's variance due to the "
            "task, to the checkpoint within a task, and to which transitions were drawn.",
            class_="fine",
        ),
    ]

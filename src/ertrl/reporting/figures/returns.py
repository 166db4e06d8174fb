"""Returns: while learning, per protocol, per task."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ertrl.evaluation import mean_of_measured
from ertrl.reporting import stats
from ertrl.reporting.figures.common import (
    BAND_SEEDS,
    draw_seeds,
    group_handles,
    handle,
    legend_above,
    legend_of_variants,
    limits,
    number_axes,
    reference_lines,
)
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import (
    GROUP_MARKERS,
    INK,
    MUTED,
    PAPER,
    WASH,
    colour_of,
    marker_of,
    new_figure,
)
from ertrl.reporting.summary import group_title
from ertrl.reporting.taskaxis import TaskAxis

FILLS = {"offline": (1.0, None), "online": (0.55, None), "non-prior": (0.22, "////")}
"""Opacity and hatch of a protocol's bars."""


def learning_curves(family: FamilyResults, labels: list[str]) -> Figure:
    """Normalised return against updates: a row per group, a column per protocol."""
    groups, protocols = list(family.groups), family.protocols
    figure = new_figure(0.5 + 2.05 * len(groups))
    axes = figure.subplots(len(groups), len(protocols), sharex=True, sharey="row", squeeze=False)
    for group, line in zip(groups, axes, strict=True):
        shown = []
        for protocol, panel in zip(protocols, line, strict=True):
            reference_lines(panel, family, group, words=panel is line[-1])
            for variant in family.variants:
                steps = variant.steps
                found = [family.scores(variant, protocol, group, step=s) for s in steps]
                seeds = [s for s in (found[-1] if found else {}) if all(s in f for f in found)]
                if not seeds:
                    continue
                values = np.array([[f[s] for f in found] for s in seeds])
                shown.append(values)
                draw_seeds(
                    panel,
                    steps,
                    values,
                    colour_of(variant.label, labels),
                    marker_of(variant.label, labels),
                )
            panel.set_title(f"{group_title(group)}, {protocol} context")
        line[0].set_ylim(*limits(shown))
    axes[0, 0].set_xlim(left=0)
    axes[0, 0].xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    number_axes(axes, "updates", "normalised return")
    legend_of_variants(figure, family, labels)
    return figure


def context_shift(family: FamilyResults, labels: list[str]) -> Figure:
    """What each protocol leaves of the return: bars are means, dots are seeds."""
    groups, protocols = list(family.groups), family.protocols
    crowded = len(family.variants) > 5  # then a legend names the bars, and tables the numbers
    figure = new_figure(3.4 if crowded else 3.0)
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    width, shown = 0.8 / len(protocols), []
    for group, panel in zip(groups, axes, strict=True):
        reference_lines(panel, family, group, words=panel is axes[-1])
        for place, variant in enumerate(family.variants):
            for i, protocol in enumerate(protocols):
                seeds = list(family.scores(variant, protocol, group).values())
                if not seeds:
                    continue
                shown.append(np.array(seeds))
                x = place + (i - (len(protocols) - 1) / 2) * width
                estimate = _bar(panel, x, seeds, width, colour_of(variant.label, labels), protocol)
                if not crowded:
                    _number(panel, x, seeds, estimate)
        names = [] if crowded else [v.label for v in family.variants]
        panel.set_xticks(range(len(names)), names)
        panel.tick_params(axis="x", length=0)
        panel.set_title(group_title(group))
        if len(names) > 3:
            panel.tick_params(axis="x", labelrotation=30)
    low, high = limits(shown)
    axes[0].set_ylim(low - 6, high + 6)
    axes[0].set_ylabel("normalised return")
    handles: list[Artist] = [_swatch(protocol) for protocol in protocols]
    handles.append(handle("seed", color=INK, marker="o", markersize=2.6, linestyle=""))
    if crowded:
        handles += [Patch(color=colour_of(v.label, labels), label=v.label) for v in family.variants]
    legend_above(figure, handles)
    return figure


def _swatch(protocol: str) -> Patch:
    opacity, hatch = FILLS.get(protocol, (0.4, None))
    return Patch(
        facecolor=(0.4, 0.4, 0.4, opacity),
        edgecolor=MUTED,
        hatch=hatch,
        label=f"{protocol} context",
    )


def _bar(panel, x: float, seeds: list[float], width: float, colour: str, protocol: str):
    opacity, hatch = FILLS.get(protocol, (0.4, None))
    estimate = stats.mean_estimate(seeds)
    inner = 0.9 * width
    panel.bar(x, estimate.value, inner, color=PAPER, linewidth=0)
    panel.bar(x, estimate.value, inner, color=colour, alpha=opacity, linewidth=0)
    if hatch:
        panel.bar(
            x, estimate.value, inner, fill=False, edgecolor=colour, hatch=hatch, linewidth=0.8
        )
    panel.plot([x] * len(seeds), seeds, "o", color=INK, markersize=2.6, markeredgewidth=0)
    if estimate.n >= BAND_SEEDS and estimate.low is not None and estimate.high is not None:
        panel.vlines(x, estimate.low, estimate.high, color=INK, linewidth=1.0)
    return estimate


def _number(panel, x: float, seeds: list[float], estimate: stats.Estimate) -> None:
    """The mean, beyond everything that is drawn of it."""
    ends = [*seeds, estimate.value]
    if estimate.n >= BAND_SEEDS and estimate.low is not None and estimate.high is not None:
        ends += [estimate.low, estimate.high]
    upwards = estimate.value >= 0
    panel.annotate(
        f"{estimate.value:.0f}".replace("-", "\N{MINUS SIGN}"),
        (x, max(ends) if upwards else min(ends)),
        xytext=(0, 3 if upwards else -3),
        textcoords="offset points",
        ha="center",
        va="bottom" if upwards else "top",
        fontsize=7.5,
        color=INK,
    )


def task_returns(family: FamilyResults, labels: list[str], axis: TaskAxis) -> Figure:
    """Normalised return of every task against what the task asks for."""
    figure = new_figure(3.0)
    axes = figure.subplots(1, len(family.protocols), sharey=True, squeeze=False)[0]
    order = np.argsort(axis.values, kind="stable")
    a_line = len(np.unique(axis.values)) == len(axis.values)
    shown = []
    for protocol, panel in zip(family.protocols, axes, strict=True):
        reference_lines(panel, family, None, words=panel is axes[-1])
        if not axis.circular and "train" in family.rows:
            trained = axis.values[family.rows["train"]]
            panel.axvspan(trained.min(), trained.max(), color=WASH, zorder=0, linewidth=0)
        for variant in family.variants:
            found = [family.task_returns(run, protocol, variant.step) for run in variant.runs]
            kept = [returns for returns in found if returns is not None]
            if not kept:
                continue
            mean, colour = mean_of_measured(np.stack(kept), 0), colour_of(variant.label, labels)
            shown.append(mean)
            if a_line:
                panel.plot(axis.values[order], mean[order], color=colour, linewidth=0.9, alpha=0.6)
            for group, rows in family.rows.items():
                panel.plot(
                    axis.values[rows],
                    mean[rows],
                    GROUP_MARKERS.get(group, "o"),
                    color=colour,
                    markersize=4.2,
                    markeredgewidth=0,
                )
        panel.set_title(f"{protocol} context")
        panel.set_xlabel(axis.label)
    axes[0].set_ylim(*limits(shown))
    axes[0].set_ylabel("normalised return")
    handles = [handle(v.label, color=colour_of(v.label, labels)) for v in family.variants]
    handles += group_handles(family)
    legend_above(figure, handles)
    return figure

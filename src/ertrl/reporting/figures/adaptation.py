"""What agents do while they adapt: returns from episode to episode, paths in the plane."""

from collections.abc import Mapping
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ertrl.evaluation import mean_of_measured
from ertrl.reporting.figures.common import (
    draw_seeds,
    handle,
    legend_above,
    limits,
    number_axes,
    reference_lines,
    task_colours,
)
from ertrl.reporting.replay import Adaptation
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import INK, MUTED, PAPER, colour_of, marker_of, new_figure
from ertrl.reporting.summary import group_title
from ertrl.reporting.taskaxis import TaskAxis

SHOWN_TASKS = {"test-id": 5, "test-ood": 4}
"""Held-out tasks whose paths are drawn, evenly over each group."""


def adaptation_curves(family: FamilyResults, labels: list[str]) -> Figure | None:
    """Normalised return from episode to episode; None where no evaluation has such curves.

    Dashed: with the z of the best logged policy's transitions.
    """
    known = {
        variant.label: {
            protocol: [
                curve
                for run in variant.runs
                if (curve := family.curve(run, protocol, variant.step)) is not None
            ]
            for protocol in family.protocols
        }
        for variant in family.variants
    }
    if not any(curves for by in known.values() for curves in by.values()):
        return None
    groups = [g for g in family.groups if g != "train"] or list(family.groups)
    figure = new_figure(0.6 + 2.2 * len(groups))
    axes = figure.subplots(len(groups), len(family.protocols), sharey="row", squeeze=False)
    for group, line in zip(groups, axes, strict=True):
        shown, rows = [], family.rows[group]
        for protocol, panel in zip(family.protocols, line, strict=True):
            reference_lines(panel, family, group, words=panel is line[-1])
            behind_z = []
            for variant in family.variants:
                curves = known[variant.label][protocol]
                if not curves:
                    continue
                values = np.stack([mean_of_measured(c[rows], axis=0) for c, _ in curves])
                shown.append(values)
                colour, marker = colour_of(variant.label, labels), marker_of(variant.label, labels)
                draw_seeds(panel, np.arange(1, values.shape[1] + 1), values, colour, marker)
                behind_z += [context[rows].mean(axis=0) for _, context in curves]
                oracle = list(family.scores(variant, "oracle", group).values())
                if oracle:
                    shown.append(np.array(oracle))
                    panel.axhline(np.mean(oracle), color=colour, linewidth=0.9, linestyle="--")
            if behind_z:
                _count_context(panel, np.mean(behind_z, axis=0))
            panel.set_title(f"{group_title(group)}, {protocol} context")
        line[0].set_ylim(*limits(shown))
    number_axes(axes, "evaluation episode, transitions behind its z", "normalised return")
    handles = [
        handle(v.label, color=colour_of(v.label, labels), marker=marker_of(v.label, labels))
        for v in family.variants
    ]
    handles.append(handle("with z of expert data", color=MUTED, linestyle="--", linewidth=0.9))
    legend_above(figure, handles)
    return figure


def _count_context(panel: Axes, context: np.ndarray) -> None:
    """Say below each episode how much its z rests on."""
    last = len(context)
    ticks = np.unique(np.linspace(1, last, min(last, 5)).round().astype(int))
    panel.set_xticks(ticks, [f"{tick}\n{context[tick - 1]:,.0f}" for tick in ticks])


def paths(
    family: FamilyResults,
    axis: TaskAxis,
    goals: np.ndarray | None,
    adapted: Mapping[str, Mapping[str, Adaptation]],
) -> Figure:
    """First and reported episode in the plane: a row per variant, a column per protocol.

    `goals` is [tasks, 2] or None; `adapted` is variant -> protocol -> adaptation of one seed.
    """
    chosen = _chosen(family, axis)
    one_goal = goals is not None and bool((goals == goals[0]).all())
    long = max(map(len, adapted)) > 20
    title = 0.25 if long else 0.0
    figure = new_figure(0.4 + (title + _panel_height(adapted, chosen, goals)) * len(adapted))
    axes = figure.subplots(
        len(adapted), len(family.protocols), sharex=True, sharey=True, squeeze=False
    )
    colours = task_colours(axis)
    scale = (axis.values - axis.values.min()) / max(np.ptp(axis.values), 1e-9)
    for (label, protocols), line in zip(adapted.items(), axes, strict=True):
        for protocol, panel in zip(family.protocols, line, strict=True):
            panel.grid(False)
            panel.set_aspect("equal")
            if goals is not None and not one_goal and "train" in family.rows:
                trained = goals[family.rows["train"]]
                panel.plot(*trained.T, "o", color=MUTED, markersize=2.0, markeredgewidth=0)
            for row in chosen:
                colour = colours(scale[row])
                before, after = protocols[protocol].first[row], protocols[protocol].last[row]
                panel.plot(*before.T, color=colour, linewidth=0.9, linestyle=(0, (2, 1.6)))
                panel.plot(*after.T, color=colour, linewidth=1.8)
                panel.plot(*after[-1], "o", color=colour, markersize=4.5, markeredgewidth=0)
                if goals is not None:
                    panel.plot(
                        *goals[row],
                        "*",
                        color=PAPER if one_goal else colour,
                        markersize=11,
                        markeredgecolor=INK,
                        markeredgewidth=0.5,
                        zorder=4,
                    )
            panel.plot(0, 0, "o", color=PAPER, markeredgecolor=INK, markersize=4, zorder=5)
            between = "\n" if long else ", "
            panel.set_title(f"{fill(label, 40)}{between}{protocol} context")
    figure.legend(handles=_legend(goals, one_goal), loc="outside upper left", ncols=5)
    return figure


def _panel_height(
    adapted: Mapping[str, Mapping[str, Adaptation]], chosen: list[int], goals: np.ndarray | None
) -> float:
    """Inches, so that equally scaled axes fill their panel."""
    tracks = [t for by in adapted.values() for a in by.values() for t in (a.first, a.last)]
    points = np.concatenate([track[chosen].reshape(-1, 2) for track in tracks])
    if goals is not None:
        points = np.concatenate([points, goals])
    width, height = np.ptp(points, axis=0)
    return 0.35 + 3.05 * float(np.clip(height / max(width, 1e-9), 0.35, 1.2))


def _chosen(family: FamilyResults, axis: TaskAxis) -> list[int]:
    """Rows of the tasks to draw: held-out ones, evenly along the task axis."""
    chosen: list[int] = []
    for group, count in SHOWN_TASKS.items():
        if group in family.rows:
            rows = family.rows[group]
            rows = rows[np.argsort(axis.values[rows], kind="stable")]
            places = np.linspace(0, len(rows) - 1, min(count, len(rows))).round().astype(int)
            chosen += rows[places].tolist()
    return chosen


def _legend(goals: np.ndarray | None, one_goal: bool) -> list[Line2D]:
    dashes = {"linewidth": 0.9, "linestyle": (0, (2, 1.6))}
    handles = [
        handle("first episode", color=MUTED, **dashes),
        handle("reported episode, its end", color=MUTED, linewidth=1.8, marker="o"),
    ]
    if goals is not None:
        star = {"marker": "*", "markersize": 10, "markeredgecolor": INK, "markeredgewidth": 0.5}
        name, fill = ("goal", PAPER) if one_goal else ("goal, held out", MUTED)
        handles.append(handle(name, color=fill, linestyle="", **star))
    if goals is not None and not one_goal:
        handles.append(handle("goal, trained", color=MUTED, linestyle="", marker="o", markersize=2))
    return handles

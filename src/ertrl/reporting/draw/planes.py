"""Tasks in the plane, one colour each: paths of agents, codes of contexts and transitions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ertrl.envs import group_title
from ertrl.reporting.draw.look import GROUP_MARKERS, INK, MUTED, PAPER, WIDTH, new_figure
from ertrl.reporting.draw.panels import TaskColours, group_handles, handle, wrapped
from ertrl.reporting.read.dataset import Adaptation, Material, TaskAxis, Watched
from ertrl.reporting.read.identity import Identity
from ertrl.reporting.read.results import FamilyResults

Adapted = Mapping[Identity, Mapping[str, Adaptation]]
"""Variant -> protocol -> adaptation of one seed."""
SHOWN_TASKS = {"test-id": 5, "test-ood": 4}
"""Held-out tasks whose paths are drawn, evenly over each group."""
LATENT_COLUMNS = 3
LARGEST_ROW = 5
"""Projections side by side at most."""
DASHES = {"linewidth": 0.9, "linestyle": (0, (2, 1.6))}
OUTLINE = {"markeredgecolor": INK, "markeredgewidth": 0.5}
GOALS = {"test-id": ("*", 11.0), "test-ood": ("^", 7.5)}
"""Marker and size of a goal: out of distribution as everywhere else a triangle."""
THIN = {"edgecolors": MUTED, "linewidths": 0.3}
"""Around marks: neither the darkest nor the lightest colour gets lost in its page."""


def paths(family: FamilyResults, material: Material, adapted: Adapted) -> Figure:
    """First and reported episode in the plane: a row per variant, a column per protocol."""
    goals = material.goals
    chosen = _chosen(family, material.axis)
    one_goal = goals is not None and bool((goals == goals[0]).all())
    long = max(len(one.label) for one in adapted) > 20
    titles, more = wrapped([one.label for one in adapted], WIDTH / len(family.protocols))
    height = _panel_height(adapted, [row for row, _ in chosen], goals)
    height += more + (0.25 if long else 0.0)
    size = len(adapted), len(family.protocols)
    figure, axes = new_figure(0.4 + height * len(adapted), *size, sharex=True, sharey=True)
    colours = TaskColours(material.axis)
    for title, protocols, line in zip(titles, adapted.values(), axes, strict=True):
        for protocol, panel in zip(family.protocols, line, strict=True):
            panel.grid(False)
            if protocol not in protocols:  # not every method can be run under it
                panel.set_axis_off()
                continue
            panel.set_aspect("equal")
            if goals is not None and not one_goal and "train" in family.rows:
                trained = goals[family.rows["train"]]
                panel.plot(*trained.T, "o", color=MUTED, markersize=2.0, markeredgewidth=0)
            for row, group in chosen:
                colour, (goal, size) = colours.of(row), GOALS[group]
                before, after = protocols[protocol].first[row], protocols[protocol].last[row]
                panel.plot(*before.T, color=colour, **DASHES)
                panel.plot(*after.T, color=colour, linewidth=1.8)
                end = goal if one_goal and group == "test-ood" else "o"
                panel.plot(*after[-1], end, color=colour, markersize=4.5, markeredgewidth=0)
                if goals is not None and not one_goal:
                    panel.plot(*goals[row], goal, color=colour, markersize=size, **OUTLINE)
            if goals is not None and one_goal:
                panel.plot(*goals[0], "*", color=PAPER, markersize=11, zorder=4, **OUTLINE)
            panel.plot(0, 0, "o", color=PAPER, markeredgecolor=INK, markersize=4, zorder=5)
            between = "\n" if long else ", "
            panel.set_title(f"{title}{between}{protocol} context")
    handles = _legend(goals, one_goal, {group for _, group in chosen})
    figure.legend(handles=handles, loc="outside upper left", ncols=6)
    return figure


def _panel_height(adapted: Adapted, chosen: list[int], goals: np.ndarray | None) -> float:
    """Inches, so that equally scaled axes fill their panel."""
    tracks = [t for by in adapted.values() for a in by.values() for t in (a.first, a.last)]
    points = np.concatenate([track[chosen].reshape(-1, 2) for track in tracks])
    if goals is not None:
        points = np.concatenate([points, goals])
    width, height = np.ptp(points, axis=0)
    return 0.35 + 3.05 * float(np.clip(height / max(width, 1e-9), 0.35, 1.2))


def _chosen(family: FamilyResults, axis: TaskAxis) -> list[tuple[int, str]]:
    """Rows of the tasks to draw and their group: held-out ones, evenly along the task axis."""
    chosen: list[tuple[int, str]] = []
    for group, count in SHOWN_TASKS.items():
        if group in family.rows:
            rows = family.rows[group]
            rows = rows[np.argsort(axis.values[rows], kind="stable")]
            places = np.linspace(0, len(rows) - 1, min(count, len(rows))).round().astype(int)
            chosen += [(row, group) for row in rows[places].tolist()]
    return chosen


def _legend(goals: np.ndarray | None, one_goal: bool, groups: set[str]) -> list[Line2D]:
    handles = [
        handle("first episode", color=MUTED, **DASHES),
        handle("reported episode, its end", color=MUTED, linewidth=1.8, marker="o"),
        handle("start", color=PAPER, linestyle="", marker="o", **OUTLINE),
    ]
    mark: dict[str, Any] = {"color": MUTED, "linestyle": ""}
    if goals is not None and not one_goal:
        for group, (marker, size) in GOALS.items():
            if group in groups:
                name = f"goal, {group_title(group).lower()}"
                handles.append(
                    handle(name, marker=marker, markersize=0.9 * size, **mark, **OUTLINE)
                )
        handles.append(handle("goal, trained", marker="o", markersize=2, **mark))
    elif goals is not None:
        star = {**mark, "color": PAPER, "marker": "*", "markersize": 10}
        handles.append(handle("goal", **star, **OUTLINE))
    if one_goal and "test-ood" in groups:
        handles.append(handle("end, out of distribution", marker="^", markersize=4.5, **mark))
    return handles


def latent_space(family: FamilyResults, axis: TaskAxis, seen: Mapping[Identity, Watched]) -> Figure:
    """Codes z of offline contexts in their plane of largest variance, variants side by side.

    z of online contexts, where known, are crosses in the same plane.
    """
    columns = min(LATENT_COLUMNS, len(seen))
    lines = -(-len(seen) // columns)
    width = WIDTH * (0.82 if columns == 2 else 0.55 if columns == 1 else 1.0)
    titles, more = wrapped([one.label for one in seen], 0.85 * width / columns)
    figure, panels = new_figure(0.35 + (3.4 + more) * lines, lines, columns, width=width)
    colours = TaskColours(axis)
    for panel in panels.ravel()[len(seen) :]:
        panel.set_axis_off()
    for title, watched, panel in zip(titles, seen.values(), panels.ravel(), strict=False):
        points, online, share = watched.in_plane()
        coloured = {"cmap": colours.map, "norm": colours.scale}
        for group, rows in family.rows.items():
            x, y = points[rows].reshape(-1, 2).T
            values = np.repeat(axis.values[rows], points.shape[1])
            marks = {"marker": GROUP_MARKERS.get(group, "o"), "s": 17, **THIN}
            panel.scatter(x, y, c=values, alpha=0.9, **marks, **coloured)
        if online is not None:
            panel.scatter(*online.T, c=axis.values, marker="x", s=20, linewidths=1.1, **coloured)
        panel.set_title(title)
        panel.grid(False)
        panel.set_xlabel(f"first component ({100 * share[0]:.0f}% of variance)")
        panel.set_ylabel(f"second ({100 * share[1]:.0f}%)")
        panel.set_aspect("equal", adjustable="datalim")
    colours.bar(figure, panels, shrink=0.8)
    handles = group_handles(family)
    if any(watched.online_z is not None for watched in seen.values()):
        handles.append(handle("online context, all tasks", color=MUTED, linestyle="", marker="x"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure


def projections(
    family: FamilyResults, axis: TaskAxis, found: Mapping[Identity, Mapping[str, Any]]
) -> Figure:
    """Single transitions: PCA above, t-SNE below; a column per variant, a colour per task."""
    shown = dict(list(found.items())[:LARGEST_ROW])
    width = WIDTH if len(shown) > 2 else WIDTH * (0.8 if len(shown) == 2 else 0.5)
    side = 0.92 * width / len(shown)
    titles, more = wrapped([one.label for one in shown], side)
    figure, axes = new_figure(0.3 + more + 2 * min(side, 3.4), 2, len(shown), width=width)
    colours = TaskColours(axis)
    for column, (title, projection) in enumerate(zip(titles, shown.values(), strict=True)):
        for panel, kind in zip(axes[:, column], ("pca", "tsne"), strict=True):
            for task, points in zip(projection["tasks"], projection[kind], strict=True):
                x, y = np.array(points).T
                marker = GROUP_MARKERS.get(family.group_of[task], "o")
                marks = {"marker": marker, "s": 7, "alpha": 0.75, **THIN}
                panel.scatter(x, y, color=colours.of(family.tasks.index(task)), **marks)
            panel.grid(False)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_aspect("equal", adjustable="datalim")
        share = 100 * sum(projection["pca_share"])
        axes[0, column].set_title(f"{title}\nPCA, {share:.0f}% of variance")
        axes[1, column].set_title("t-SNE")
    colours.bar(figure, axes, shrink=0.7)
    return figure

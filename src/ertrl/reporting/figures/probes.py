"""What z knows: of the task, of the behaviour policy; single transitions in the plane."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ertrl.reporting.figures.common import legend_above, task_colours
from ertrl.reporting.representation import CONTEXTS, MODELS, Probes, errors, leaks, targets
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import GROUP_MARKERS, INK, MUTED, WIDTH, colour_of, new_figure
from ertrl.reporting.summary import group_title
from ertrl.reporting.taskaxis import TaskAxis

LARGEST_ROW = 5
"""Methods side by side at most."""


def probe_bars(
    family: FamilyResults, probed: Mapping[str, Sequence[Probes]], labels: list[str]
) -> Figure:
    """Relative error of predicting the task, and accuracy of predicting the checkpoint."""
    groups = list(family.groups)
    measured = any(leaks(probes, g) for probes in probed.values() for g in groups)
    figure = new_figure(2.5 + 0.12 * len(probed))
    axes = figure.subplots(1, 2 if measured else 1, squeeze=False)[0]
    target = targets(probed)[-1]  # the angle, where there is one
    ways = [(context, model) for context in CONTEXTS for model in MODELS]
    words = [f"{MODELS[model]},\n{CONTEXTS[context]}" for context, model in ways]
    for place, (label, probes) in enumerate(probed.items()):
        for i, (context, model) in enumerate(ways):
            constant = errors(probes, target, context, "constant")
            found = errors(probes, target, context, model)
            shares = 100 * np.array(found) / np.array(constant)
            _bar(axes[0], i, place, len(probed), shares, colour_of(label, labels))
        for i, group in enumerate(groups if measured else []):
            shares = 100 * np.array(leaks(probes, group))
            _bar(axes[1], i, place, len(probed), shares, colour_of(label, labels))
    axes[0].axhline(100, color=MUTED, linewidth=0.8)
    axes[0].set_title(f"Error of predicting the task ({target}), % of a constant's")
    axes[0].set_xticks(range(len(ways)), words)
    if measured:
        first = next(iter(probed.values()))
        chance = 100 * first[0]["leak"]["chance"]
        axes[1].axhline(chance, color=MUTED, linewidth=0.8)
        beside = {"color": MUTED, "va": "center", "fontsize": 7.5}
        axes[1].text(1.0, chance, " chance", transform=axes[1].get_yaxis_transform(), **beside)
        for i, group in enumerate(groups):
            raw = 100 * float(np.mean(leaks(first, group, "raw_accuracy")))
            axes[1].plot([i - 0.42, i + 0.42], [raw, raw], color=MUTED, linestyle=(0, (2, 2)))
            if group == groups[-1]:
                axes[1].text(i + 0.46, raw, "raw context", **beside)
        axes[1].set_title("Checkpoint of the behaviour policy told from z, %")
        axes[1].set_xticks(range(len(groups)), [group_title(g) for g in groups])
        axes[1].set_xlim(-0.55, len(groups) - 0.05)
    for panel in axes:
        panel.tick_params(axis="x", length=0)
        panel.set_ylim(bottom=0)
    handles = [Patch(color=colour_of(label, labels), label=label) for label in probed]
    legend_above(figure, handles)
    return figure


def _bar(panel: Axes, i: int, place: int, count: int, seeds: np.ndarray, colour: str) -> None:
    if not len(seeds):
        return
    width = 0.8 / count
    x = i + (place - (count - 1) / 2) * width
    panel.bar(x, seeds.mean(), 0.9 * width, color=colour, alpha=0.85, linewidth=0)
    panel.plot([x] * len(seeds), seeds, "o", color=INK, markersize=2.4, markeredgewidth=0)


def projections(
    family: FamilyResults, axis: TaskAxis, found: Mapping[str, Mapping[str, Any]]
) -> Figure:
    """PCA above, t-SNE below; a column per variant, a colour per task."""
    shown = dict(list(found.items())[:LARGEST_ROW])
    width = WIDTH if len(shown) > 2 else WIDTH * (0.8 if len(shown) == 2 else 0.5)
    side = 0.92 * width / len(shown)
    figure = new_figure(0.3 + 2 * min(side, 3.4), width)
    axes = figure.subplots(2, len(shown), squeeze=False)
    colours, scale = task_colours(axis), Normalize(axis.values.min(), axis.values.max())
    place = {task: i for i, task in enumerate(family.tasks)}
    group_of = {task: group for group, tasks in family.groups.items() for task in tasks}
    for column, (label, projection) in enumerate(shown.items()):
        for panel, kind in zip(axes[:, column], ("pca", "tsne"), strict=True):
            for task, points in zip(projection["tasks"], projection[kind], strict=True):
                x, y = np.array(points).T
                panel.scatter(
                    x,
                    y,
                    color=colours(scale(axis.values[place[task]])),
                    marker=GROUP_MARKERS.get(group_of[task], "o"),
                    s=7,
                    linewidths=0,
                    alpha=0.75,
                )
            panel.grid(False)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_aspect("equal", adjustable="datalim")
        share = 100 * sum(projection["pca_share"])
        axes[0, column].set_title(f"{label}\nPCA, {share:.0f}% of variance")
        axes[1, column].set_title("t-SNE")
    bar = figure.colorbar(
        ScalarMappable(scale, colours), ax=axes.ravel().tolist(), shrink=0.7, aspect=30, pad=0.02
    )
    bar.outline.set_visible(False)
    bar.set_label(axis.label)
    return figure

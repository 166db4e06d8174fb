"""Returns: while learning, per protocol, per task, from episode to episode, of the data."""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ertrl.data import Dataset
from ertrl.envs import group_title
from ertrl.evaluation import mean_of_measured, normalise
from ertrl.reporting.draw import panels
from ertrl.reporting.draw.look import (
    GROUP_MARKERS,
    INK,
    MUTED,
    PAPER,
    WASH,
    WIDTH,
    colour_of,
    new_figure,
)
from ertrl.reporting.draw.panels import BAND_SEEDS, handle, legend_above, limits, number_axes
from ertrl.reporting.measure import statistics
from ertrl.reporting.read.dataset import TaskAxis
from ertrl.reporting.read.results import FamilyResults

FILLS = {"offline": (1.0, None), "online": (0.55, None), "non-prior": (0.22, "////")}
"""Opacity and hatch of a protocol's bars."""
OTHER_FILL = (0.4, None)
CHARACTERS_BELOW, LINES_BELOW = 11.5, 5
"""Characters per inch of names below bars, and their lines at most."""
POINTS_PER_BAR = 19.0
"""Size of the type of a bar's number, per inch of the figure that the bar has."""
SMALLEST_TYPE = 5.5
SLANTED = 18
"""Characters of a name that may be slanted."""
LEVELS = 81
"""Points of a performance profile."""


def learning_curves(family: FamilyResults) -> Figure | None:
    """Normalised return against updates: a row per group, a column per protocol."""
    drawn: set[int] = set()

    def draw(panel: Axes, group: str, protocol: str) -> Iterator[np.ndarray]:
        for variant in family.variants:
            if not any(run.run for run in variant.runs):
                continue  # its numbers are those of one step: no curve
            found = [family.scores(variant, protocol, group, step) for step in variant.steps]
            seeds = [s for s in (found[-1] if found else {}) if all(s in f for f in found)]
            if seeds:
                values = np.array([[f[s] for f in found] for s in seeds])
                panels.draw_seeds(panel, variant.steps, values, variant.place)
                drawn.add(variant.place)
                yield values

    figure, axes = panels.return_panels(family, list(family.groups), 2.05, draw, sharex=True)
    if not drawn:
        return None
    axes[0, 0].set_xlim(left=0)
    axes[0, 0].xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    number_axes(axes, "updates", "normalised return")
    legend_above(figure, panels.variant_handles(family, drawn))
    return figure


def performance_profiles(family: FamilyResults) -> Figure:
    """Share of seeds and tasks above each return: a row per group, a column per protocol."""
    figure, axes = panels.panels_of(family, list(family.groups), 1.9, sharey=True, sharex="row")
    for group, line in zip(family.groups, axes, strict=True):
        found = {
            (v.place, p): family.seeds_by_tasks(v, p, group)
            for v in family.variants
            for p in family.protocols
        }
        lowest = min([-10.0, *(float(x.min()) for x in found.values() if x.size)])
        highest = max([110.0, *(float(x.max()) for x in found.values() if x.size)])
        levels = np.linspace(max(lowest, -100.0), min(highest, 200.0), LEVELS)
        for protocol, panel in zip(family.protocols, line, strict=True):
            for variant in family.variants:
                scores = found[variant.place, protocol]
                if not scores.size:
                    continue
                share, band = statistics.profile([scores], levels)
                colour = colour_of(variant.place)
                panel.plot(levels, 100 * share, color=colour, drawstyle="steps-post")
                if np.isfinite(band[0]).all():
                    low, high = 100 * band
                    fill = {"step": "post", "color": colour, "alpha": 0.16, "linewidth": 0}
                    panel.fill_between(levels, low, high, **fill)
            panel.set_ylim(-3, 103)
            panel.set_xlim(levels[0], levels[-1])
    number_axes(axes, "normalised return exceeds", "% of seeds and tasks")
    legend_above(figure, [handle(v.label, color=colour_of(v.place)) for v in family.variants])
    return figure


def context_shift(family: FamilyResults) -> Figure:
    """What each protocol leaves of the return: bars are means, dots are seeds."""
    groups, protocols = list(family.groups), family.protocols
    crowded = len(family.variants) > 5  # then a legend names the bars, and tables the numbers
    names, slanted = ([], False) if crowded else _below(family, WIDTH / len(groups))
    lines = max([0, *(name.count("\n") for name in names)])
    bars = len(groups) * len(family.variants) * len(protocols)
    size = 0.0 if crowded else min(7.5, POINTS_PER_BAR * WIDTH / bars)
    numbered = size >= SMALLEST_TYPE
    height = 3.0 + panels.LINE_HEIGHT * (lines + numbered) + (0.0 if names else 0.4)
    figure, (axes,) = new_figure(height, 1, len(groups), sharey=True)
    width, shown = 0.8 / len(protocols), []
    for group, panel in zip(groups, axes, strict=True):
        panels.reference_lines(panel, family, group, words=panel is axes[-1])
        for place, variant in enumerate(family.variants):
            for i, protocol in enumerate(protocols):
                seeds = list(family.scores(variant, protocol, group).values())
                if not seeds:
                    continue
                shown.append(np.array(seeds))
                x = place + (i - (len(protocols) - 1) / 2) * width
                mean = _bar(panel, x, seeds, width, colour_of(variant.place), protocol)
                if numbered:
                    _number_below(panel, x, mean, size)
        # A slanted name ends below its bars.
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
        panel.set_xticks(range(len(names)), names, **slant)
        panel.tick_params(axis="x", length=0, pad=15 if numbered else 3.5)
        panel.set_title(group_title(group))
    low, high = limits(shown)
    axes[0].set_ylim(low - 6, high + 6)
    axes[0].set_ylabel("normalised return")
    handles: list[Artist] = []
    for protocol in protocols:
        opacity, hatch = FILLS.get(protocol, OTHER_FILL)
        grey, name = (0.4, 0.4, 0.4, opacity), f"{protocol} context"
        handles.append(Patch(facecolor=grey, edgecolor=MUTED, hatch=hatch, label=name))
    handles.append(handle("seed", color=INK, marker="o", markersize=2.6, linestyle=""))
    if not names:
        handles += [Patch(color=colour_of(v.place), label=v.label) for v in family.variants]
    legend_above(figure, handles)
    return figure


def _below(family: FamilyResults, inches: float) -> tuple[list[str], bool]:
    """Names below the bars of so wide a panel, and whether they are slanted; none fit: []."""
    labels = [v.label for v in family.variants]
    width = int(CHARACTERS_BELOW * inches / len(labels))
    names = [fill(label, max(width, 1), break_long_words=False) for label in labels]
    lines = [line for name in names for line in name.splitlines()]
    if max(map(len, lines)) <= width and max(n.count("\n") for n in names) < LINES_BELOW:
        return names, False
    return (labels, True) if max(map(len, labels)) <= SLANTED else ([], False)


def _bar(
    panel: Axes, x: float, seeds: list[float], width: float, colour: str, protocol: str
) -> float:
    """Returns the mean."""
    opacity, hatch = FILLS.get(protocol, OTHER_FILL)
    estimate = statistics.mean_estimate(seeds)
    place = (x, estimate.value, 0.9 * width)
    panel.bar(*place, color=PAPER, linewidth=0)
    panel.bar(*place, color=colour, alpha=opacity, linewidth=0)
    if hatch:
        panel.bar(*place, fill=False, edgecolor=colour, hatch=hatch, linewidth=0.8)
    panel.plot([x] * len(seeds), seeds, "o", color=INK, markersize=2.6, markeredgewidth=0)
    if estimate.n >= BAND_SEEDS and estimate.low is not None and estimate.high is not None:
        panel.vlines(x, estimate.low, estimate.high, color=INK, linewidth=1.0)
    return estimate.value


def _number_below(panel: Axes, x: float, mean: float, size: float) -> None:
    """Under the panel, where no bar, whisker or line of reference can be in its way."""
    text = f"{round(mean):d}".replace("-", "\N{MINUS SIGN}")
    where: dict[str, Any] = {"xycoords": panel.get_xaxis_transform(), "annotation_clip": False}
    style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": size, "color": INK}
    panel.annotate(text, (x, 0), (0, -3), textcoords="offset points", **where, **style)


def task_returns(family: FamilyResults, axis: TaskAxis) -> Figure:
    """Normalised return of every task against what the task asks for."""
    figure, (axes,) = new_figure(3.0, 1, len(family.protocols), sharey=True)
    order = np.argsort(axis.values, kind="stable")
    a_line = len(np.unique(axis.values)) == len(axis.values)
    shown = []
    for protocol, panel in zip(family.protocols, axes, strict=True):
        panels.reference_lines(panel, family, None, words=panel is axes[-1])
        if not axis.circular and "train" in family.rows:
            trained = axis.values[family.rows["train"]]
            panel.axvspan(trained.min(), trained.max(), color=WASH, zorder=0, linewidth=0)
        for variant in family.variants:
            found = [family.task_returns(run, protocol, variant.step) for run in variant.runs]
            kept = [returns for returns in found if returns is not None]
            if not kept:
                continue
            mean, colour = mean_of_measured(np.stack(kept), 0), colour_of(variant.place)
            shown.append(mean)
            if a_line:
                panel.plot(axis.values[order], mean[order], color=colour, linewidth=0.9, alpha=0.6)
            for group, rows in family.rows.items():
                marks = {"color": colour, "markersize": 4.2, "markeredgewidth": 0}
                marker = GROUP_MARKERS.get(group, "o")
                panel.plot(axis.values[rows], mean[rows], marker, **marks)
        panel.set_title(f"{protocol} context")
        panel.set_xlabel(axis.label)
    axes[0].set_ylim(*limits(shown))
    axes[0].set_ylabel("normalised return")
    handles = [handle(v.label, color=colour_of(v.place)) for v in family.variants]
    legend_above(figure, [*handles, *panels.group_handles(family)])
    return figure


def adaptation_curves(family: FamilyResults) -> Figure:
    """Normalised return from episode to episode.

    Dashed: with the z of the best logged policy's transitions.
    """
    known = {
        (v.place, protocol): [
            curve for r in v.runs if (curve := family.curve(r, protocol, v.step)) is not None
        ]
        for v in family.variants
        for protocol in family.protocols
    }
    groups = [g for g in family.groups if g != "train"] or list(family.groups)

    def draw(panel: Axes, group: str, protocol: str) -> Iterator[np.ndarray]:
        rows, behind_z = family.rows[group], []
        for variant in family.variants:
            curves = known[variant.place, protocol]
            if not curves:
                continue
            values = np.stack([mean_of_measured(c[rows], axis=0) for c, _ in curves])
            panels.draw_seeds(panel, np.arange(1, values.shape[1] + 1), values, variant.place)
            behind_z += [context[rows].mean(axis=0) for _, context in curves]
            yield values
            oracle = list(family.scores(variant, "oracle", group).values())
            if oracle:
                level, colour = float(np.mean(oracle)), colour_of(variant.place)
                panel.axhline(level, color=colour, linewidth=0.9, linestyle="--")
                yield np.array(oracle)
        if behind_z:
            # Below each episode: how much its z rests on.
            context = np.mean(behind_z, axis=0)
            ticks = np.linspace(1, len(context), min(len(context), 5)).round().astype(int)
            panel.set_xticks(ticks, [f"{tick}\n{context[tick - 1]:,.0f}" for tick in ticks])

    figure, axes = panels.return_panels(family, groups, 2.2, draw)
    number_axes(axes, "evaluation episode, transitions behind its z", "normalised return")
    oracle = handle("with z of expert data", color=MUTED, linestyle="--", linewidth=0.9)
    drawn = {place for (place, _), curves in known.items() if curves}
    legend_above(figure, [*panels.variant_handles(family, drawn), oracle])
    return figure


def step_curves(family: FamilyResults) -> Figure | None:
    """Normalised return against the number of own transitions behind z; a panel per group."""
    known = {
        v.place: [c for r in v.runs if (c := family.step_curve(r, v.step)) is not None]
        for v in family.variants
    }
    if not any(known.values()):
        return None
    figure, (axes,) = new_figure(3.0, 1, len(family.groups), sharey=True)
    shown = []
    for group, panel in zip(family.groups, axes, strict=True):
        panels.reference_lines(panel, family, group, words=panel is axes[-1])
        for place, curves in known.items():
            if curves:
                rows = family.rows[group]
                values = np.stack([mean_of_measured(c[rows], axis=0) for _, c in curves])
                panels.draw_seeds(panel, curves[0][0], values, place)
                shown.append(values)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_title(group_title(group))
        panel.set_xlabel("own transitions behind z")
    axes[0].set_ylim(*limits(shown))
    axes[0].set_ylabel("normalised return")
    drawn = {place for place, curves in known.items() if curves}
    legend_above(figure, panels.variant_handles(family, drawn))
    return figure


def behaviour_data(family: FamilyResults, dataset: Dataset) -> Figure:
    """Normalised returns of the recorded episodes against the checkpoint that collected them."""
    figure, (axes,) = new_figure(2.7, 1, len(family.groups), sharey=True)
    colour, shown = colour_of(0), []
    for (group, tasks), panel in zip(family.groups.items(), axes, strict=True):
        panels.reference_lines(panel, family, group, words=panel is axes[-1])
        panel.set_title(f"{group_title(group)} ({len(tasks)})")
        panel.set_xlabel("checkpoint of the behaviour policy")
        scaled = [task for task in tasks if task not in family.without_scale]
        if not scaled:
            continue
        checkpoints, returns = zip(*(_episodes(dataset, task) for task in scaled), strict=True)
        checkpoint, value = np.concatenate(checkpoints), np.concatenate(returns)
        numbers = np.unique(checkpoint)
        low, middle, high = np.array(
            [np.quantile(value[checkpoint == n], [0.1, 0.5, 0.9]) for n in numbers]
        ).T
        shown += [low, high]
        panel.fill_between(numbers + 1, low, high, color=colour, alpha=0.18, linewidth=0)
        panel.plot(numbers + 1, middle, color=colour)
        panel.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylim(*limits(shown))
    axes[0].set_ylabel("normalised return")
    band = Patch(color=colour, alpha=0.18, linewidth=0, label="10% to 90% of episodes")
    legend_above(figure, [handle("median episode", color=colour), band])
    return figure


def _episodes(dataset: Dataset, task: int) -> tuple[np.ndarray, np.ndarray]:
    data = dataset.task(task)
    references: dict[str, Sequence[float]] = {
        kind: [data.reference[kind]] for kind in ("expert", "random")
    }
    return data.checkpoints, normalise(data.returns[None], references)[0]

"""What was found out: what z knows, and when it helps to hide the behaviour policy from it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ertrl.envs import group_title
from ertrl.reporting.draw.look import INK, MUTED, colour_of, marker_of, new_figure
from ertrl.reporting.draw.panels import legend_above, note_right, number_axes
from ertrl.reporting.measure.gain import Point
from ertrl.reporting.measure.representation import CONTEXTS, MODELS, Probed, targets
from ertrl.reporting.measure.statistics import pearson
from ertrl.reporting.read.results import FamilyResults

REACH = 3.0
"""Panels end at so many times the largest gain: intervals of two seeds know no bounds."""


def probe_bars(family: FamilyResults, probed: Sequence[Probed]) -> Figure:
    """Relative error of predicting the task, and accuracy of predicting the checkpoint."""
    groups = list(family.groups)
    measured = any(one.leaks(group) for one in probed for group in groups)
    figure, (axes,) = new_figure(2.5 + 0.12 * len(probed), 1, 2 if measured else 1)
    target = targets(probed)[-1]  # the angle, where there is one
    ways = [(context, model) for context in CONTEXTS for model in MODELS]
    for place, one in enumerate(probed):
        colour = colour_of(one.variant.place)
        for i, (context, model) in enumerate(ways):
            constant = one.errors(target, context, "constant")
            shares = 100 * np.array(one.errors(target, context, model)) / np.array(constant)
            _bar(axes[0], i, place, len(probed), shares, colour)
        for i, group in enumerate(groups if measured else []):
            _bar(axes[1], i, place, len(probed), 100 * np.array(one.leaks(group)), colour)
    axes[0].axhline(100, color=MUTED, linewidth=0.8)
    axes[0].set_title(f"Error of predicting the task ({target}), % of a constant's")
    words = [f"{MODELS[model]},\n{CONTEXTS[context]}" for context, model in ways]
    axes[0].set_xticks(range(len(ways)), words)
    if measured:
        _hold_against(axes[1], groups, probed[0])
    for panel in axes:
        panel.tick_params(axis="x", length=0)
        panel.set_ylim(bottom=0)
    legend_above(figure, [Patch(color=colour_of(v.place), label=v.label) for v, _ in probed])
    return figure


def swap_bars(family: FamilyResults, probed: Sequence[Probed]) -> Figure:
    """How often z follows the task, where an agent acts as in another one."""
    groups = list(family.groups)
    asked = [one for one in probed if any(one.swaps("control", group) for group in groups)]
    figure, ((panel,),) = new_figure(2.2, 1, 1)
    for place, one in enumerate(asked):
        for i, group in enumerate(groups):
            followed, control = (
                100 * np.array(one.swaps(kind, group)) for kind in ("followed_task", "control")
            )
            x = _bar(panel, i, place, len(asked), followed, colour_of(one.variant.place))
            if len(control):
                ends = [x - 0.36 / len(asked), x + 0.36 / len(asked)]
                panel.plot(ends, [control.mean()] * 2, color=MUTED, linestyle=(0, (2, 2)))
    panel.axhline(50, color=MUTED, linewidth=0.8)
    note_right(panel, 50, "undecided")
    panel.set_title("z follows the task, not the behaviour, %")
    panel.set_xticks(range(len(groups)), [group_title(group) for group in groups])
    panel.tick_params(axis="x", length=0)
    panel.set_ylim(0, 103)
    legend_above(figure, [Patch(color=colour_of(v.place), label=v.label) for v, _ in asked])
    return figure


def _hold_against(panel: Axes, groups: list[str], first: Probed) -> None:
    chance = 100 * first.seeds[0]["leak"]["chance"]
    panel.axhline(chance, color=MUTED, linewidth=0.8)
    note_right(panel, chance, "chance")
    for i, group in enumerate(groups):
        raw = 100 * float(np.mean(first.leaks(group, "raw_accuracy")))
        panel.plot([i - 0.42, i + 0.42], [raw, raw], color=MUTED, linestyle=(0, (2, 2)))
        if group == groups[-1]:
            note_right(panel, raw, "raw context")
    panel.set_title("Checkpoint of the behaviour policy told from z, %")
    panel.set_xticks(range(len(groups)), [group_title(g) for g in groups])
    panel.set_xlim(-0.55, len(groups) - 0.45)


def _bar(panel: Axes, i: int, place: int, count: int, seeds: np.ndarray, colour: str) -> float:
    """Draw the bar of a variant's place in the group at `i`, where it has any; returns its x."""
    width = 0.8 / count
    x = i + (place - (count - 1) / 2) * width
    if len(seeds):
        panel.bar(x, seeds.mean(), 0.9 * width, color=colour, alpha=0.85, linewidth=0)
        panel.plot([x] * len(seeds), seeds, "o", color=INK, markersize=2.4, markeredgewidth=0)
    return x


def gain_figure(points: Sequence[Point], x: str, xlabel: str) -> Figure:
    """Gain against the attribute `x` of a point: a row per group, a column per protocol."""
    groups = list(dict.fromkeys(p.group for p in points))
    protocols = list(dict.fromkeys(p.protocol for p in points))
    bases = list(dict.fromkeys(p.base for p in points))
    size = len(groups), len(protocols)
    figure, axes = new_figure(0.4 + 2.2 * len(groups), *size, sharex=True, sharey="row")
    for group, line in zip(groups, axes, strict=True):
        for protocol, panel in zip(protocols, line, strict=True):
            panel.axhline(0, color=MUTED, linewidth=0.8)
            title = f"{group_title(group)}, {protocol} context"
            chosen = [p for p in points if (p.group, p.protocol) == (group, protocol)]
            for place, base in enumerate(bases):
                own = sorted((p for p in chosen if p.base == base), key=lambda p: getattr(p, x))
                places, gains = [getattr(p, x) for p in own], [p.gain for p in own]
                kind = marker_of(place) + ("-" if x == "style" else "")
                panel.plot(places, gains, kind, color=colour_of(place), label=base)
                for p in own:
                    if p.low is not None and p.high is not None:
                        thin = {"color": colour_of(place), "linewidth": 1.0}
                        panel.vlines(getattr(p, x), p.low, p.high, **thin)
            if x != "style":
                title += _trend(panel, [getattr(p, x) for p in chosen], [p.gain for p in chosen])
            panel.set_title(title)
        bound = max(10.0, REACH * max(abs(p.gain) for p in points if p.group == group))
        low, high = line[0].get_ylim()
        line[0].set_ylim(max(low, -bound), min(high, bound))
    number_axes(axes, xlabel, "gain (points)")
    legend_above(figure, axes[0, 0].get_legend_handles_labels()[0])
    return figure


def _trend(panel: Axes, places: list[float], gains: list[float]) -> str:
    """Draw the regression line; returns the correlation in words, where there is one."""
    found = pearson(places, gains)
    if found is None:
        return ""
    slope, start = np.polyfit(places, gains, 1)
    ends = np.array([min(places), max(places)])
    panel.plot(ends, start + slope * ends, color=INK, linewidth=0.8, linestyle="--")
    r, p = found
    told = f"{r:.2f}".replace("-", "\N{MINUS SIGN}")
    return f"\nr = {told}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"

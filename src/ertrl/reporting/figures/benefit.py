"""When does hiding the behaviour policy help: the gain against how much policies differ."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ertrl.reporting import stats
from ertrl.reporting.benefit import Point, chance
from ertrl.reporting.figures.common import number_axes
from ertrl.reporting.html_tables import minus
from ertrl.reporting.style import INK, MARKERS, MUTED, PALETTE, new_figure
from ertrl.reporting.summary import group_title

REACH = 3.0
"""Panels end at so many times the largest gain: intervals of two seeds know no bounds."""


def gain_figure(points: Sequence[Point], x: str, xlabel: str) -> Figure:
    """Gain against the attribute `x` of a point: a row per group, a column per protocol."""
    groups = list(dict.fromkeys(p.group for p in points))
    protocols = list(dict.fromkeys(p.protocol for p in points))
    figure = new_figure(0.4 + 2.2 * len(groups))
    axes = figure.subplots(len(groups), len(protocols), sharex=True, sharey="row", squeeze=False)
    bases = list(dict.fromkeys(p.base for p in points))
    dose = x == "style"
    for group, line in zip(groups, axes, strict=True):
        for protocol, panel in zip(protocols, line, strict=True):
            panel.axhline(0, color=MUTED, linewidth=0.8)
            chosen = [p for p in points if (p.group, p.protocol) == (group, protocol)]
            for base in bases:
                own = sorted((p for p in chosen if p.base == base), key=lambda p: getattr(p, x))
                places, gains = [getattr(p, x) for p in own], [p.gain for p in own]
                number = bases.index(base)
                colour = PALETTE[number % len(PALETTE)]
                # When colours start anew, markers are one further.
                marker = MARKERS[(number + number // len(PALETTE)) % len(MARKERS)]
                line_style = "-" if dose else ""
                panel.plot(places, gains, marker + line_style, color=colour, label=base)
                for p in own:
                    if p.low is not None and p.high is not None:
                        panel.vlines(getattr(p, x), p.low, p.high, color=colour, linewidth=1.0)
            title = f"{group_title(group)}, {protocol} context"
            places, gains = [getattr(p, x) for p in chosen], [p.gain for p in chosen]
            found = stats.pearson(places, gains)
            if found is not None and not dose:
                relation = "" if found.p < 0.001 else "= "
                title += "\n" + minus(f"r = {found.r:.2f}") + f", p {relation}{chance(found.p)}"
                slope, start = np.polyfit(places, gains, 1)
                ends = np.array([min(places), max(places)])
                panel.plot(ends, start + slope * ends, color=INK, linewidth=0.8, linestyle="--")
            panel.set_title(title)
        bound = max(10.0, REACH * max(abs(p.gain) for p in points if p.group == group))
        low, high = line[0].get_ylim()
        line[0].set_ylim(max(low, -bound), min(high, bound))
    number_axes(axes, xlabel, "gain (points)")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=min(len(names), 5))
    return figure

"""Performance profiles: how returns are distributed over seeds and tasks."""

import numpy as np
from matplotlib.figure import Figure

from ertrl.reporting import stats
from ertrl.reporting.figures.common import legend_of_variants, number_axes
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import colour_of, new_figure
from ertrl.reporting.summary import group_title

LEVELS = 81


def performance_profiles(family: FamilyResults, labels: list[str]) -> Figure:
    """Share of seeds and tasks above each return: a row per group, a column per protocol."""
    groups, protocols = list(family.groups), family.protocols
    figure = new_figure(0.5 + 1.9 * len(groups))
    axes = figure.subplots(len(groups), len(protocols), sharey=True, sharex="row", squeeze=False)
    for group, line in zip(groups, axes, strict=True):
        found = {
            (v.label, p): family.seeds_by_tasks(v, p, group)
            for v in family.variants
            for p in protocols
        }
        lowest = min([-10.0, *(float(x.min()) for x in found.values() if x.size)])
        highest = max([110.0, *(float(x.max()) for x in found.values() if x.size)])
        levels = np.linspace(max(lowest, -100.0), min(highest, 200.0), LEVELS)
        for protocol, panel in zip(protocols, line, strict=True):
            for variant in family.variants:
                scores = found[variant.label, protocol]
                if not scores.size:
                    continue
                share, (low, high) = stats.profile([scores], levels)
                colour = colour_of(variant.label, labels)
                panel.plot(levels, 100 * share, color=colour, drawstyle="steps-post")
                if np.isfinite(low).all():
                    panel.fill_between(
                        levels,
                        100 * low,
                        100 * high,
                        step="post",
                        color=colour,
                        alpha=0.16,
                        linewidth=0,
                    )
            panel.set_title(f"{group_title(group)}, {protocol} context")
            panel.set_ylim(-3, 103)
            panel.set_xlim(levels[0], levels[-1])
    number_axes(axes, "normalised return exceeds", "% of seeds and tasks")
    legend_of_variants(figure, family, labels)
    return figure

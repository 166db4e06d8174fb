"""The latent space: where contexts of each task come to lie."""

from collections.abc import Mapping

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from ertrl.evaluation.probes import principal_plane
from ertrl.reporting.figures.common import group_handles, handle, task_colours
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import GROUP_MARKERS, MUTED, WIDTH, new_figure
from ertrl.reporting.taskaxis import TaskAxis

COLUMNS = 3


def latent_space(
    family: FamilyResults,
    axis: TaskAxis,
    offline: Mapping[str, np.ndarray],
    online: Mapping[str, np.ndarray],
) -> Figure:
    """Codes z in the plane of largest variance, side by side.

    `offline` is variant -> codes [tasks, contexts, Z]; `online`, where known, is variant ->
    [tasks, Z], projected onto the same plane.
    """
    columns = min(COLUMNS, len(offline))
    lines = -(-len(offline) // columns)
    width = WIDTH * (0.82 if columns == 2 else 0.55 if columns == 1 else 1.0)
    figure = new_figure(0.35 + 3.4 * lines, width)
    panels = figure.subplots(lines, columns, squeeze=False)
    colours, scale = task_colours(axis), Normalize(axis.values.min(), axis.values.max())
    for panel in panels.ravel()[len(offline) :]:
        panel.set_axis_off()
    for (label, codes), panel in zip(offline.items(), panels.ravel(), strict=False):
        centre, axes, share = principal_plane(codes.reshape(-1, codes.shape[-1]))
        points = (codes - centre) @ axes.T
        for group, rows in family.rows.items():
            x, y = points[rows].reshape(-1, 2).T
            panel.scatter(
                x,
                y,
                c=np.repeat(axis.values[rows], codes.shape[1]),
                cmap=colours,
                norm=scale,
                marker=GROUP_MARKERS.get(group, "o"),
                s=17,
                linewidths=0,
                alpha=0.9,
            )
        if label in online:
            x, y = ((online[label] - centre) @ axes.T).T
            panel.scatter(
                x, y, c=axis.values, cmap=colours, norm=scale, marker="x", s=20, linewidths=1.1
            )
        panel.set_title(label)
        panel.grid(False)
        panel.set_xlabel(f"first component ({100 * share[0]:.0f}% of variance)")
        panel.set_ylabel(f"second ({100 * share[1]:.0f}%)")
        panel.set_aspect("equal", adjustable="datalim")
    bar = figure.colorbar(
        ScalarMappable(scale, colours), ax=panels.ravel().tolist(), shrink=0.8, aspect=28, pad=0.02
    )
    bar.outline.set_visible(False)
    bar.set_label(axis.label)
    handles = group_handles(family)
    if online:
        handles.append(handle("online context, all tasks", color=MUTED, linestyle="", marker="x"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure

"""What several figures draw alike."""

from collections.abc import Callable, Collection, Iterable, Sequence
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ertrl.colours import COLOUR_RING
from ertrl.envs import group_title
from ertrl.reporting.draw.look import GROUP_MARKERS, MUTED, colour_of, marker_of, new_figure
from ertrl.reporting.measure.statistics import mean_estimate
from ertrl.reporting.read.dataset import TaskAxis
from ertrl.reporting.read.results import FamilyResults

BAND_SEEDS = 3
"""With fewer seeds, the seeds themselves are drawn: Student's interval of two numbers is 13 times
as wide as they are apart and would hide everything else."""
WIDE_PANELS = 3
"""With more panels side by side, titles and labels take two lines."""
CHARACTERS_PER_LINE = 130
"""Of a legend, at the figures' width and size of type."""
CHARACTERS_PER_INCH = 12
"""Of a title, which has larger type."""
LINE_HEIGHT = 0.17
"""Inches that a line of a legend or title takes."""


Drawing = Callable[[Axes, str, str], Iterable[np.ndarray]]
"""Draws into a panel what there is of a group and a protocol; gives the values it has drawn."""


def return_panels(
    family: FamilyResults, groups: Sequence[str], height: float, draw: Drawing, **sharing: Any
) -> tuple[Figure, np.ndarray]:
    """Returns against something: a row of panels per group, a column per protocol."""
    figure, axes = panels_of(family, groups, height, sharey="row", **sharing)
    for group, line in zip(groups, axes, strict=True):
        shown: list[np.ndarray] = []
        for protocol, panel in zip(family.protocols, line, strict=True):
            reference_lines(panel, family, group, words=panel is line[-1])
            shown += draw(panel, group, protocol)
        line[0].set_ylim(*limits(shown))
    return figure, axes


def panels_of(
    family: FamilyResults, groups: Sequence[str], height: float, **sharing: Any
) -> tuple[Figure, np.ndarray]:
    """A row of empty panels per group, a column per protocol."""
    crowded = len(family.protocols) > WIDE_PANELS
    height = 0.5 + (height + 0.2 * crowded) * len(groups)
    figure, axes = new_figure(height, len(groups), len(family.protocols), **sharing)
    for group, line in zip(groups, axes, strict=True):
        for protocol, panel in zip(family.protocols, line, strict=True):
            comma = "\n" if crowded else ", "
            panel.set_title(f"{group_title(group)}{comma}{protocol} context")
    return figure, axes


def reference_lines(axes: Axes, family: FamilyResults, group: str | None, *, words: bool) -> None:
    """Expert and random are the ends of the scale; zero action shows what doing nothing earns."""
    solid, dotted = "-", (0, (1, 2))
    lines = [("expert", 100.0, solid, "center"), ("random", 0.0, solid, "center")]
    if group is not None and (zero := family.anchor("zero", group)) is not None:
        # Near the random policy's line the two words make room for each other.
        near = abs(zero) < 15
        above, below = ("bottom", "top") if near else ("center", "center")
        lines[1] = ("random", 0.0, solid, below if zero >= 0 else above)
        lines.append(("zero action", zero, dotted, above if zero >= 0 else below))
    for word, level, dashes, place in lines:
        axes.axhline(level, color=MUTED, linewidth=0.8, linestyle=dashes, zorder=1)
        if words:
            note_right(axes, level, word, va=place)


def note_right(axes: Axes, level: float, word: str, va: str = "center") -> None:
    """A word at the right end of a horizontal line, with air between it and one below or above."""
    aside = 3, {"bottom": 0.5, "top": -1.5}.get(va, 0)
    small: dict[str, Any] = {"va": va, "fontsize": 7.5, "color": MUTED}
    where: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "annotation_clip": False}
    axes.annotate(word, (1.0, level), aside, textcoords="offset points", **where, **small)


def handle(label: str, **style: Any) -> Line2D:
    return Line2D([], [], label=label, **style)


def group_handles(family: FamilyResults) -> list[Line2D]:
    return [
        handle(group_title(g).lower(), color=MUTED, linestyle="", marker=GROUP_MARKERS.get(g, "o"))
        for g in family.groups
    ]


def variant_handles(family: FamilyResults, drawn: Collection[int]) -> list[Line2D]:
    """Of variants that were drawn, by their places: published ones have no curves."""
    return [
        handle(v.label, color=colour_of(v.place), marker=marker_of(v.place))
        for v in family.variants
        if v.place in drawn
    ]


def legend_above(figure: Figure, handles: Sequence[Any]) -> None:
    """A legend above all panels, in as many columns as its longest label leaves room for.

    The figure grows with a long one, so that panels keep their size.
    """
    longest = max(len(str(h.get_label())) for h in handles)
    columns = int(CHARACTERS_PER_LINE / (longest + 5))
    columns = max(1, min(columns, len(handles), 6))
    lines = -(-len(handles) // columns)
    if columns == 1:
        for h in handles:
            h.set_label(fill(str(h.get_label()), CHARACTERS_PER_LINE - 5))
        lines = sum(1 + str(h.get_label()).count("\n") for h in handles)
    figure.set_figheight(figure.get_figheight() + LINE_HEIGHT * max(0, lines - 2))
    figure.legend(handles=list(handles), loc="outside upper left", ncols=columns)


def wrapped(labels: Iterable[str], inches: float) -> tuple[list[str], float]:
    """Labels as titles of so wide a panel, and the inches that their further lines take."""
    titles = [fill(label, int(CHARACTERS_PER_INCH * inches)) for label in labels]
    return titles, LINE_HEIGHT * max(title.count("\n") for title in titles)


def draw_seeds(axes: Axes, x: Sequence[float] | np.ndarray, values: np.ndarray, place: int) -> None:
    """Mean over a variant's seeds of values [seeds, x]; a band from three seeds on, else them."""
    colour, every = colour_of(place), max(1, len(x) // 8)  # markers for readers without colours
    marks: dict[str, Any] = {"marker": marker_of(place), "markevery": every, "markeredgewidth": 0}
    axes.plot(x, values.mean(axis=0), color=colour, **marks)
    if len(values) >= BAND_SEEDS:
        estimates = [mean_estimate(column) for column in values.T]
        low, high = np.array([[e.low, e.high] for e in estimates], np.float64).T
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
    elif len(values) > 1:
        for seed in values:
            axes.plot(x, seed, color=colour, linewidth=0.8, alpha=0.55)


def limits(values: Sequence[np.ndarray]) -> tuple[float, float]:
    """Room for all values and for both ends of the scale, but not for wide bands."""
    found = np.concatenate([[0.0], *(np.ravel(v) for v in values)])
    found = found[np.isfinite(found)]
    margin = 0.06 * max(np.ptp(found), 50.0)
    return min(-10.0, float(found.min()) - margin), max(112.0, float(found.max()) + margin)


LINE_COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.14, 0.85, 256)))
"""From dark to light: the order shows without hues. Neither end is as dark or light as a page."""
RING_COLOURS = LinearSegmentedColormap.from_list("ring", COLOUR_RING)


class TaskColours:
    """Colours along the task axis, told apart by people who confuse some hues, too."""

    def __init__(self, axis: TaskAxis):
        self.axis = axis
        self.map = RING_COLOURS if axis.circular else LINE_COLOURS
        low = axis.values.min()
        self.scale = Normalize(low, max(axis.values.max(), low + 1e-9))

    def of(self, row: int) -> tuple[float, float, float, float]:
        return self.map(float(self.scale(self.axis.values[row])))

    def bar(self, figure: Figure, panels: np.ndarray, shrink: float) -> None:
        shown = ScalarMappable(self.scale, self.map)
        beside = panels.ravel().tolist()
        bar = figure.colorbar(shown, ax=beside, shrink=shrink, aspect=29, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(self.axis.label)


def number_axes(axes: np.ndarray, xlabel: str, ylabel: str) -> None:
    """Label the outer axes of a grid of panels only."""
    crowded = axes.shape[1] > WIDE_PANELS
    for panel in axes[-1]:
        panel.set_xlabel(xlabel.replace(", ", ",\n") if crowded else xlabel)
    for panel in axes[:, 0]:
        panel.set_ylabel(ylabel)

"""One look for all figures, on paper and on the page, in light and in dark.

Colours are drawn as plain hexadecimal numbers; the inline SVG of the page has them replaced by CSS
variables, so that a figure follows the reader's colour scheme. Everything that would differ from
one run of the program to the next (dates, random ids) is switched off.
"""

import io
import re
from contextlib import AbstractContextManager
from html import escape
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ertrl.colours import COLOURS, PALETTE

INK, MUTED, LINE, PAPER = (COLOURS[name][0] for name in ("ink", "muted", "line", "paper"))
WASH = COLOURS["wash"][0]
"""Background of a range, such as that of the training tasks."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "p", "h", "*")
GROUP_MARKERS = {"train": "o", "test-id": "D", "test-ood": "^", "test-extreme": "v"}

WIDTH = 10.2
"""Inches; the page shows this at its full text width."""

MARGIN = 0.06
"""Inches right of the words that stand at the ends of lines."""

IN_COLOUR = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "grid.color": LINE,
    "legend.labelcolor": INK,
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


def colour_of(place: int) -> str:
    """The colour of a variant's place: the same in every figure of a report."""
    return PALETTE[place % len(PALETTE)]


def marker_of(place: int) -> str:
    """A variant's marker, for readers without colours; where colours start anew, one further."""
    return MARKERS[(place + place // len(PALETTE)) % len(MARKERS)]


def house_style() -> AbstractContextManager[None]:
    """Draw and save inside this; the settings of the caller's Matplotlib stay as they were."""
    return matplotlib.style.context(["ertrl.house", IN_COLOUR], after_reset=True)


def new_figure(
    height: float, rows: int, columns: int, *, width: float = WIDTH, **sharing: Any
) -> tuple[Figure, np.ndarray]:
    """A figure that no window system and no global state knows of, and its panels."""
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1 - MARGIN / width, 1))
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **sharing)


def settle(figure: Figure) -> Figure:
    """Arrange the panels once and for all; three file formats need not do it three times."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def to_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as 'png', 'pdf' or 'svg', the same bytes every time."""
    silent = {
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    }[kind]
    out = io.BytesIO()
    with house_style():
        face = "none" if kind == "svg" else "white"
        figure.savefig(out, format=kind, metadata=silent, facecolor=face)
    return out.getvalue()


def inline_svg(figure: Figure, key: str, description: str) -> str:
    """The figure as an <svg> element to be put into a page; `key` makes its ids unique there."""
    text = to_bytes(figure, "svg").decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<text([^>]*)>\s+", r"<text\1>", text)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: m.group(0) if m.group(1) in used else "", text)
    text = re.sub(r'( id="|url\(#|xlink:href="#)', lambda m: m.group(1) + key + "-", text)
    text = text.replace("xlink:href=", "href=")
    for name, (light, _) in COLOURS.items():
        text = re.sub(rf"(?<=[ :\"]){light}\b", f"var(--{name})", text)
    # The page's own font takes over; Matplotlib names its font in two ways.
    text = re.sub(r"font: ([\d.]+px) '[^']+'[^;\"]*", r"font-size: \1", text)
    text = re.sub(r" ?font-family: '[^']+'[^;\"]*;?", "", text)

    def opening(found: re.Match[str]) -> str:
        width = float(found[1].split()[2])
        told = f'role="img" aria-label="{escape(description)}"'
        return f'<svg viewBox="{found[1]}" {told} style="--natural: {width / 72 * 96:.0f}px">'

    return re.sub(r'<svg[^>]*viewBox="([^"]+)"[^>]*>', opening, text, count=1).strip()

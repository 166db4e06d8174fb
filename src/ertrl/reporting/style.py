"""One look for all figures, on paper and on the page, in light and in dark.

Colours are drawn as plain hexadecimal numbers; the inline SVG of the page has them replaced by CSS
variables, so that a figure follows the reader's colour scheme. Everything that would differ from
one run of the program to the next (dates, random ids) is switched off.
"""

import io
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, MUTED, LINE, PAPER = "#1d2433", "#667089", "#dfe3ea", "#fffffe"
WASH = "#f1f3f7"
"""Background of a range, such as that of the training tasks."""

PALETTE = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6bc9"),
    *("#8c6d31", "#7b8794", "#b0316a", "#5f7a1f", "#20a4b4"),
)
"""Okabe and Ito's colours, safe for people with colour-vision deficiencies, then further ones."""

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "p", "h", "*")
GROUP_MARKERS = {"train": "o", "test-id": "D", "test-ood": "^", "test-extreme": "v"}

CSS_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    LINE: "--line",
    PAPER: "--paper",
    WASH: "--wash",
    **{colour: f"--c{i}" for i, colour in enumerate(PALETTE)},
}

WIDTH = 10.2
"""Inches; the page shows this at its full text width."""

RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titlecolor": INK,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.0,
    "pdf.fonttype": 42,
    "savefig.dpi": 160,
    "svg.fonttype": "none",
    "svg.hashsalt": "ertrl",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "xtick.major.size": 2.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8,
    "ytick.major.size": 0,
}


def colour_of(label: str, labels: list[str]) -> str:
    """A variant's colour: the same in every figure of a report."""
    return PALETTE[labels.index(label) % len(PALETTE)]


def marker_of(label: str, labels: list[str]) -> str:
    """A variant's marker, for readers without colours."""
    return MARKERS[labels.index(label) % len(MARKERS)]


@contextmanager
def house_style() -> Generator[None]:
    """Draw and save inside this; the settings of the caller's Matplotlib stay as they were."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure that no window system and no global state knows of."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def settle(figure: Figure) -> Figure:
    """Arrange the panels once and for all; three file formats need not do it three times."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


# --- files ---


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
    for colour, variable in CSS_VARIABLES.items():
        text = re.sub(rf"(?<=[ :\"]){colour}\b", f"var({variable})", text)
    # The page's own font takes over; Matplotlib names its font in two ways.
    text = re.sub(r"font: ([\d.]+px) '[^']+'[^;\"]*", r"font-size: \1", text)
    text = re.sub(r" ?font-family: '[^']+'[^;\"]*;?", "", text)
    box = re.search(r'viewBox="([^"]+)"', text)
    if box is None:
        raise ValueError("Matplotlib wrote an SVG without a viewBox")
    width = float(box.group(1).split()[2])
    label = description.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    opening = (
        f'<svg viewBox="{box.group(1)}" role="img" aria-label="{label}" '
        f'style="--natural: {width / 72 * 96:.0f}px">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1).strip()

"""One report over all methods on Point-Robot and Cheetah-Vel, three seeds each, with probes.

    .venv/bin/python benchmarks/report.py        # or: make results-report

Goes on from what benchmarks/methods.py made in build/grid, and makes what is missing. Writes the
page into build/results/report, keeps its numbers in results/report and, where there is a
Chromium, pictures of its sections in docs/img/report.
"""

import io
import shutil
from pathlib import Path

from PIL import Image

from ertrl.launch.plan import Data
from ertrl.launch.reproduce import PROBE_TRANSITIONS
from ertrl.reporting import report
from shared import KEEP, METHODS, ROOT, WORK, done, grid_of, keep

FAMILIES = ("point-robot", "cheetah-vel")
PICTURES = ROOT / "docs" / "img" / "report"
SECTIONS = [
    f"cheetah-vel-{name}"
    for name in ("summary", "paper", "curves", "adaptation", "latent", "probes")
]


def main() -> None:
    datasets = [Data(family) for family in FAMILIES]
    runs = done(grid_of(datasets, METHODS, probe_transitions=PROBE_TRANSITIONS)).runs
    made = WORK / "results" / "report"
    page = report(list(runs.values()), made)
    keep(made, KEEP / "report", {"results.json": "results.json"})
    photograph(page, PICTURES)


def photograph(page: Path, folder: Path) -> None:
    """Pictures of some sections of the page, for the documentation."""
    browser = shutil.which("chromium")
    if browser is None:
        print("no Chromium here: the pictures of the documentation stay as they are")
        return
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, chromium_sandbox=False)
        view = opened.new_page(viewport={"width": 1200, "height": 900})
        view.goto(page.as_uri())
        view.add_style_tag(content="nav { display: none !important; }")  # it floats over sections
        for name in SECTIONS:
            shot = view.locator(f"section#{name}").screenshot()
            Image.open(io.BytesIO(shot)).quantize(160).save(folder / f"{name}.png", optimize=True)
        opened.close()


if __name__ == "__main__":
    main()

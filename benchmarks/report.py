"""One report over all methods on Point-Robot and Cheetah-Vel, three seeds each, with probes.

    .venv/bin/python benchmarks/report.py        # or: make results-report

Goes on from what benchmarks/methods.py made in build/results, and makes what is missing. Writes the
page into build/results/report, keeps its numbers in results/report and, where there is a
Chromium, pictures of its sections in docs/img/report.
"""

import io
import shutil
from pathlib import Path

from PIL import Image

from ertrl import api
from ertrl.evaluation.probes import ProbeSettings
from ertrl.launch import compare
from ertrl.reporting import report
from shared import KEEP, METHODS, ROOT, SEEDS, WORK, data_of_methods, keep

FAMILIES = ("point-robot", "cheetah-vel")
PROBES = ProbeSettings(transitions=200)
"""A fifth of the paper's transitions: support vector regression takes its time."""
PICTURES = ROOT / "docs" / "img" / "report"
SECTIONS = [
    f"cheetah-vel-{name}"
    for name in ("summary", "paper", "curves", "adaptation", "latent", "probes")
]


def main() -> None:
    runs = []
    for family in FAMILIES:
        runs += compare([data_of_methods(family)], METHODS, SEEDS, WORK / "results" / family)
    for done, run in enumerate(runs, 1):
        api.probe(run, settings=PROBES)
        print(f"probed {done} of {len(runs)}", flush=True)
    made = WORK / "results" / "report"
    page = report(runs, made)
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

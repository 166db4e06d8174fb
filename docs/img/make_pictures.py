"""Draw the pictures of this folder: `python docs/img/make_pictures.py`.

The robots take seconds. The pictures of the report are those of `ertrl demo`, with probes; it is
run in build/demo if it is not there, and they need a Chromium.
"""

import io
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

import ertrl
from ertrl.envs import make_family
from ertrl.envs.render import Painter
from ertrl.evaluation.probes import ProbeSettings

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "build" / "demo"
# family -> (task, control steps of random actions before the picture)
ROBOTS = {
    "cheetah-vel": (0, 12),
    "ant-goal": (11, 15),
    "ant-dir": (4, 15),
    "humanoid-dir": (12, 4),
    "hopper-mass": (0, 16),
    "walker-mass": (0, 12),
}
PROBES = ProbeSettings(transitions=200, projected=32)
SECTIONS = ("summary", "curves", "adaptation", "tasks", "latent", "probes")


def robots() -> None:
    for name, (task, steps) in ROBOTS.items():
        family = make_family(name)
        parameters = family.parameters[[task]]
        simulation = family.simulate(parameters, threads=1)
        simulation.reset([1])
        random = np.random.default_rng(0)
        for _ in range(steps):
            simulation.step(random.uniform(-1, 1, (1, family.action_dim)))
        model, data = simulation.snapshot(0)
        task_names = dict(zip(family.parameter_names, parameters[0], strict=True))
        keep(Image.fromarray(Painter(model, 320, 240).draw(data, task_names)), name)


def report_of_the_demo() -> None:
    if not DEMO.exists():
        ertrl.demo(out=DEMO)
    runs = sorted((DEMO / "runs").iterdir())
    for run in runs:
        ertrl.probe(run, data=DEMO / "data" / "point-robot", settings=PROBES)
    page = ertrl.report(runs, DEMO / "report")
    photograph(page)
    # The README shows one row: the legend and the paths of ER-TRL.
    paths = Image.open(DEMO / "report" / "figures" / "point-robot-paths.png")
    row = paths.crop((0, 0, paths.width, 506))
    sheet = Image.new("RGB", row.size, "white")
    sheet.paste(row, mask=row.getchannel("A"))
    keep(sheet, "adapted-paths")


def photograph(page: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = shutil.which("chromium")
        opened = playwright.chromium.launch(executable_path=browser, chromium_sandbox=False)
        view = opened.new_page(viewport={"width": 1200, "height": 900})
        view.goto(page.as_uri())
        view.add_style_tag(content="nav { display: none !important; }")  # it floats over sections
        for name in SECTIONS:
            shot = view.locator(f"section#point-robot-{name}").screenshot()
            keep(Image.open(io.BytesIO(shot)), f"report/demo-{name}")
        opened.close()


def keep(picture: Image.Image, name: str) -> None:
    path = HERE / f"{name}.png"
    picture.quantize(160).save(path, optimize=True)
    print(path.name, path.stat().st_size)


if __name__ == "__main__":
    robots()
    report_of_the_demo()

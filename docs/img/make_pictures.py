"""Draw the pictures of this folder: `python docs/img/make_pictures.py`."""

from pathlib import Path

import numpy as np
from PIL import Image

from ertrl.envs import make_family
from ertrl.envs.render import Painter

# family -> (task, control steps of random actions before the picture)
PICTURES = {
    "cheetah-vel": (0, 12),
    "ant-goal": (11, 15),
    "ant-dir": (4, 15),
    "humanoid-dir": (12, 4),
    "hopper-mass": (0, 16),
    "walker-mass": (0, 12),
}

for name, (task, steps) in PICTURES.items():
    family = make_family(name)
    parameters = family.parameters[[task]]
    simulation = family.simulate(parameters, threads=1)
    simulation.reset([1])
    random = np.random.default_rng(0)
    for _ in range(steps):
        simulation.step(random.uniform(-1, 1, (1, family.action_dim)))
    model, data = simulation.snapshot(0)
    task_names = dict(zip(family.parameter_names, parameters[0], strict=True))
    picture = Painter(model, 320, 240).draw(data, task_names)
    path = Path(__file__).with_name(f"{name}.png")
    Image.fromarray(picture).quantize(128).save(path, optimize=True)
    print(path.name, path.stat().st_size)

# The README shows one row of a picture of results/: the legend and the paths of ER-TRL.
paths = Image.open(Path(__file__).parents[2] / "results" / "point-robot" / "point-robot-paths.png")
row = paths.crop((0, 0, paths.width, 500))
page = Image.new("RGB", row.size, "white")
page.paste(row, mask=row.getchannel("A"))
page.quantize(128).save(Path(__file__).with_name("adapted-paths.png"), optimize=True)

"""An environment of one's own as a family of tasks, from collection to report.

The same on the command line, with this file: `ertrl collect own_family.py:family`, then
`ertrl train focal --data data/my-pendulum --plugin own_family.py:family`.
"""

import sys
from pathlib import Path

import gymnasium

import ertrl

COLLECT = {  # a toy needs less than the robots that the profile is for
    "hidden": [64, 64],
    "batch_size": 256,
    "discount": 0.97,
    "random_steps": 200,
    "steps": 3000,
    "checkpoints": 10,
    "episodes_per_checkpoint": 4,
}


def make(task):
    env = gymnasium.make("Pendulum-v1", g=task["gravity"], max_episode_steps=100)
    setattr(env.unwrapped, "m", task["mass"])  # noqa: B010
    return env


def family():
    tasks = [{"gravity": g, "mass": m} for g in (2.0, 6.0, 10.0) for m in (0.5, 0.8, 1.1, 1.4)]
    return ertrl.register_family("my-pendulum", make=make, tasks=tasks)


def main(out="own-family", collect=COLLECT, settings=None):
    data = ertrl.collect(family(), Path(out) / "data", settings=collect)
    run = ertrl.train("focal", data, settings=settings, out=Path(out) / "runs")
    return ertrl.report([run], Path(out) / "report")


if __name__ == "__main__":
    print("wrote", main(*sys.argv[1:2]))

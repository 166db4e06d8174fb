"""Why the BRAC learner fails or learns: the table of docs/brac.md.

    .venv/bin/python benchmarks/brac.py               # all rows, about two hours on two cores
    .venv/bin/python benchmarks/brac.py --row NAME    # one of them
    .venv/bin/python benchmarks/brac.py --row none    # only gather what has been trained so far

FOCAL with BRAC, laptop profile, seed 0. Works in build/brac (killed, it goes on where it was) and
keeps returns and diagnostics against updates, with their provenance, in results/brac.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ertrl import api, store
from ertrl.config import replace_from_json
from ertrl.data import Dataset
from ertrl.profiles import train_config
from ertrl.training import Run

ROOT = Path(__file__).parent.parent
DATA, RUNS = ROOT / "build" / "data", ROOT / "build" / "brac"
SHOWN = ("divergence", "alpha", "q_mean", "q_policy", "log_std", "log_prob")


class Row(NamedTuple):
    """One line of the table."""

    family: str
    updates: int
    evaluate_every: int
    learner: dict[str, Any]

    def settings(self) -> dict[str, Any]:
        """What differs from the profile."""
        lengths = {"updates": self.updates, "evaluate_every": self.evaluate_every}
        return {**lengths, "learner": self.learner}

    def command(self) -> str:
        """The same on the command line."""
        words = [f"ertrl train focal --data data/{self.family} --use-learner brac"]
        words += [f"--updates {self.updates} --evaluate-every {self.evaluate_every}"]
        words += [f"--learner.{k.replace('_', '-')} {v}" for k, v in self.learner.items()]
        return " ".join(words)


PAPER = {"alpha_init": 50.0, "alpha_learning_rate": 1.0, "divergence_target": 0.05}
ROWS = {}


def logged_returns(dataset: Dataset) -> dict[str, float]:
    """Mean return of the data per group of tasks: what BRAC must reach at least."""
    return {
        group: float(np.mean([dataset.task(t).returns.mean() for t in tasks]))
        for group, tasks in dataset.groups.items()
    }


def curve(run: Run) -> list[dict[str, float]]:
    """Returns under offline context and the learner's metrics at each evaluation."""
    points = []
    metrics = {line["step"]: line for line in run.metrics() if line["kind"] == "train"}
    for step in run.evaluation_steps():
        result = run.evaluation(step)
        place = {task: i for i, task in enumerate(result["tasks"])}
        returns = np.array(result["protocols"]["offline"]["returns"])
        point: dict[str, float] = {"update": step}
        for group, tasks in result["groups"].items():
            point[group] = float(returns[[place[t] for t in tasks]].mean())
        points.append(point | {k: metrics[step][k] for k in SHOWN if k in metrics[step]})
    return points


def gather() -> dict[str, Any]:
    """Everything that has been trained so far."""
    datasets = {family: Dataset(DATA / family) for family in {row.family for row in ROWS.values()}}
    rows = {}
    for name, row in ROWS.items():
        learner, config = train_config("laptop", row.family, "focal", "brac")
        config = replace_from_json(config, row.settings())
        run = Run.create(RUNS, datasets[row.family], "focal", learner, config, "laptop")
        points = curve(run)
        if points:
            rows[name] = {
                "command": row.command(),
                "run": run.name,
                "learner": run.spec["config"]["learner"],
                "curve": points,
                "provenance": run.spec["provenance"],
            }
    return {
        "kind": "ertrl-brac",
        "datasets": {
            family: {"content": d.fingerprint, "logged": logged_returns(d)}
            for family, d in sorted(datasets.items())
        },
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=["all", "none", *ROWS], default="all")
    chosen = parser.parse_args().row
    for name, row in ROWS.items():
        if chosen in ("all", name):
            data = api.collect(row.family, DATA / row.family)
            api.train("focal", data, learner="brac", settings=row.settings(), out=RUNS)
    store.write_json(ROOT / "results" / "brac" / "results.json", gather())


if __name__ == "__main__":
    main()

"""Settings of the BRAC learner compared: the table of results/brac/README.md.

    .venv/bin/python benchmarks/brac.py               # all rows, about two hours on two cores
    .venv/bin/python benchmarks/brac.py --row NAME    # one of them
    .venv/bin/python benchmarks/brac.py --row none    # only gather what has been trained so far

FOCAL with BRAC, laptop profile, seed 0. Works in build/brac (killed, it goes on where it was) and
keeps returns and diagnostics against updates, with their provenance, in results/brac.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

from ertrl import api, store
from ertrl.data import Dataset
from ertrl.training import Run, open_runs
from shared import KEEP, WORK

PLAIN = {"standardise": False, "decay": 0.0, "sampling": {"prefer_good": 0.0}}
"""As when these rows were made: BRAC alone, without what helps TD3+BC."""
EVALUATE_EVERY = {"point-robot": 1500, "cheetah-vel": 1000}
DATA, RUNS = WORK / "data", WORK / "brac"
RESULTS = KEEP / "brac" / "results.json"
SHOWN = ("divergence", "alpha", "q_mean", "q_policy", "log_std", "log_prob", "imitation_error")


class Row(NamedTuple):
    """One line of the table."""

    family: str
    updates: int
    settings: dict[str, Any]
    """Of the learner, where they differ from the laptop profile."""
    learner: str = "brac"


PAPER = {
    "divergence": "dual",
    "warm_start": 0,
    "entropy_weight": 1.0,
    "log_std_range": [-20.0, 0.0],
    "divergence_target": 0.05,
    "alpha_init": 50.0,
    "alpha_learning_rate": 1.0,
}
SLOW = {"learning_rate": 3e-4, "tau": 0.005, "warm_start": 1000}
PAPER |= {"learning_rate": 3e-4, "tau": 0.005}
FIXED = {**PAPER, "alpha_learning_rate": 0.0}
LOOSE = {**PAPER, "entropy_weight": 0.0, "divergence_target": 0.25, "tau": 0.02}
CLONED = {**SLOW, "divergence": "primal", "entropy_weight": 0.0}
WIDE = {**CLONED, "log_std_range": [-20.0, 0.0], "divergence_target": 1.0, "alpha_init": 1.0}
FREE = {**CLONED, "log_std_range": [-5.0, -1.5], "divergence_target": 10.0, "alpha_init": 0.15}
ROWS = {
    "point-robot-paper": Row("point-robot", 6000, {**PAPER, "learning_rate": 1e-3}),
    "point-robot-slow": Row("point-robot", 6000, {"warm_start": 1000, "tau": 0.005}),
    "point-robot-laptop": Row("point-robot", 6000, {}),
    "cheetah-td3bc": Row(
        "cheetah-vel",
        3000,
        {"learning_rate": 3e-4, "tau": 0.005, "actor_every": 2, "weight": 2.5},
        "td3bc",
    ),
    "cheetah-paper": Row("cheetah-vel", 3000, PAPER),
    "cheetah-alpha-50": Row("cheetah-vel", 3000, FIXED),
    "cheetah-alpha-10": Row("cheetah-vel", 3000, {**FIXED, "alpha_init": 10.0}),
    "cheetah-dual-loose": Row(
        "cheetah-vel", 10000, {**LOOSE, "alpha_init": 10.0, "alpha_learning_rate": 0.3}
    ),
    "cheetah-primal-wide": Row("cheetah-vel", 10000, {**WIDE, "alpha_learning_rate": 0.01}),
    "cheetah-primal-10": Row("cheetah-vel", 10000, {**FREE, "alpha_learning_rate": 5e-5}),
    "cheetah-slow": Row("cheetah-vel", 10000, SLOW),
    "cheetah-laptop": Row("cheetah-vel", 10000, {}),
}


def logged_returns(dataset: Dataset) -> dict[str, float]:
    """Mean return of the data per group of tasks: what BRAC must reach at least."""
    return {
        group: float(np.mean([dataset.task(t).returns.mean() for t in tasks]))
        for group, tasks in dataset.groups.items()
    }


def curve(run: Run) -> list[dict[str, float]]:
    """Returns under offline context and the learner's metrics at each evaluation."""
    metrics = {line["step"]: line for line in run.metrics() if line["kind"] == "train"}
    points = []
    for step in run.evaluations.steps():
        result = run.evaluations.read(step)
        place = {task: i for i, task in enumerate(result["tasks"])}
        returns = np.array(result["protocols"]["offline"]["returns"])
        point: dict[str, float] = {"update": step}
        for group, tasks in result["groups"].items():
            point[group] = float(returns[[place[t] for t in tasks]].mean())
        points.append(point | {k: metrics[step][k] for k in SHOWN if k in metrics[step]})
    return points


def gather() -> dict[str, Any]:
    """Everything that has been trained so far, here or before; a row's folder holds its run."""
    datasets = {family: Dataset(DATA / family) for family in {row.family for row in ROWS.values()}}
    rows = store.read_json(RESULTS)["rows"] if RESULTS.exists() else {}
    for name in ROWS:
        for run in open_runs(RUNS / name)[0] if (RUNS / name).exists() else ():
            rows[name] = {
                "run": run.name,
                "dataset": run.spec["dataset"],
                "learner": run.spec["config"]["learner"],
                "updates": run.config.updates,
                "curve": curve(run),
                "provenance": run.spec["provenance"],
            }
    return {
        "kind": "ertrl-brac",
        "datasets": {
            family: {"content": data.fingerprint, "logged": logged_returns(data)}
            for family, data in sorted(datasets.items())
        },
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", choices=["all", "none", *ROWS], default="all")
    chosen = parser.parse_args().row
    for name, row in ROWS.items():
        if chosen in ("all", name):
            data = api.collect(row.family, DATA / row.family)
            settings = {
                **PLAIN,
                "updates": row.updates,
                "evaluate_every": EVALUATE_EVERY[row.family],
                "learner": row.settings,
            }
            api.train("focal", data, learner=row.learner, settings=settings, out=RUNS / name)
    store.write_json(RESULTS, gather())


if __name__ == "__main__":
    main()

"""Does an agent know how much it knows, and notice a task that is like none it knows?

    .venv/bin/python benchmarks/alarm.py    # or: make results-alarm; ten minutes

Bayes-linear on Point-Robot, three seeds, collected and trained in build/grid if they are missing.
Agents observe i.i.d. logged transitions, one by one. Real error is the distance to the z of many
transitions, in the same units as the uncertainty; a task "like none" has its logs altered. Keeps
results/bench/alarm.json and writes the table into docs/deploy.md.
"""

from collections.abc import Callable

import numpy as np

import ertrl
from ertrl import rng, store
from ertrl.data import Dataset
from ertrl.evaluation import Agent
from ertrl.launch.plan import Contender, Data
from ertrl.provenance import provenance
from ertrl.runtime.inference import LeastSquares
from ertrl.text import markdown_table
from overview import rewrite
from shared import KEEP, ROOT, done, grid_of

COUNTS = (1, 5, 20, 100, 600)
"""Transitions after which it is asked."""
MANY = 6000
TASKS = 10
"""Of a group, at most."""
Arrays = list[np.ndarray]
WORLDS: dict[str, Callable[[Arrays], Arrays]] = {
    "held-out": lambda x: x,
    "out of distribution": lambda x: x,
    "rewards are 0": lambda x: [*x[:2], 0 * x[2], x[3]],
    "rewards x 3": lambda x: [*x[:2], 3 * x[2], x[3]],
    "moves backwards": lambda x: [*x[:3], 2 * x[0] - x[3]],
}
GROUPS = {"held-out": "test-id", "out of distribution": "test-ood"}
HEAD = [
    "transitions",
    *(
        f"{world}: {what}"
        for world in ("held-out", "ood")
        for what in ("uncertainty", "real error")
    ),
    *(f"surprise: {world}" for world in ("held-out", "ood", *[*WORLDS][2:])),
]


def observed(
    agent: Agent, dataset: Dataset, task: int, change: Callable[[Arrays], Arrays]
) -> tuple[list[float], list[float], list[float]]:
    """Uncertainty, real error and surprise after each count."""
    data, draw = dataset.task(task), rng.generator(0, "alarm", task)
    steps = change([*data.transitions(draw.integers(len(data.steps), size=MANY))[:4]])
    adapted, told, surprise, z = agent.begin(), [], [], []
    inference = agent.plain.inference
    assert isinstance(inference, LeastSquares)
    tasks = inference.spread(np.eye(inference.latent_dim))
    for count, step in enumerate(zip(*steps, strict=True), start=1):
        adapted.observe(*step)
        if count in COUNTS:
            told.append(adapted.uncertainty)
            surprise.append(adapted.surprise)
            z.append(adapted.z)
    off = np.array(z) - adapted.z
    real = np.sqrt(np.einsum("ij,ni,nj->n", tasks, off, off) / (tasks * tasks).sum())
    return told, real.tolist(), surprise


def measure(known: list[tuple[Agent, Dataset]]) -> dict[str, dict[str, list[float]]]:
    """World -> medians over tasks and seeds, after each count."""
    found = {}
    for world, change in WORLDS.items():
        group = GROUPS.get(world, "test-id")
        rows = []
        for agent, dataset in known:
            tasks = dataset.group(group)[:TASKS]
            rows += [observed(agent, dataset, task, change) for task in tasks]
        middle = np.median(rows, axis=0).round(3).tolist()
        found[world] = dict(zip(("uncertainty", "real_error", "surprise"), middle, strict=True))
    return found


def table(found: dict[str, dict[str, list[float]]]) -> str:
    off = [found[world][what] for world in GROUPS for what in ("uncertainty", "real_error")]
    rows = [
        [
            str(count),
            *(f"{x[i]:.2f}" for x in off),
            *(f"{w['surprise'][i]:.1f}" for w in found.values()),
        ]
        for i, count in enumerate(COUNTS)
    ]
    return markdown_table(HEAD, rows, "r" * len(HEAD))


if __name__ == "__main__":
    outcome = done(grid_of([Data("point-robot")], [Contender("bayes-linear")]))
    runs = [ertrl.Run(folder) for folder in outcome.runs.values()]
    agents = [(ertrl.load_agent(run), run.open_dataset()) for run in runs]
    worlds = measure(agents)
    residuals = [agent.plain.inference.settings()["residual"] for agent, _ in agents]
    facts = {"kind": "ertrl-alarm", "counts": COUNTS, "residuals": residuals, "worlds": worlds}
    store.write_json(KEEP / "bench" / "alarm.json", {**facts, "provenance": provenance()})
    rewrite(ROOT / "docs" / "deploy.md", table(worlds))
    print(table(worlds))

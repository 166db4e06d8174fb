"""How long it takes to evaluate one agent: 40 tasks, three protocols, two repeats.

    .venv/bin/python benchmarks/evaluate.py RUN...     # trained runs, best of different methods

Evaluates each run's newest agent twice, compilation included, and keeps the seconds, the number of
control steps and where they come from in results/bench/evaluate.json.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from ertrl import api, store
from ertrl.evaluation import evaluate_agent
from ertrl.provenance import provenance
from ertrl.training import Run

KEEP = Path(__file__).parent.parent / "results" / "bench" / "evaluate.json"


def main(runs: list[str]) -> None:
    rows = []
    for run in map(Run, runs):
        dataset, agent = run.open_dataset(), api.load_agent(run)
        for repeat in ("first", "second"):
            begun = time.perf_counter()
            result = evaluate_agent(agent, dataset, step=run.latest_checkpoint(), run=run.name)
            seconds = time.perf_counter() - begun
            steps = sum(int(np.sum(p["interaction_steps"])) for p in result["protocols"].values())
            rows.append({"run": run.name, "pass": repeat, "seconds": seconds, "steps": steps})
            print(f"{run.name}: {seconds:.1f} s for {steps:,} control steps", flush=True)
    load = os.getloadavg()[0]
    facts = {"kind": "ertrl-bench-evaluate", "rows": rows, "load_at_the_end": load}
    store.write_json(KEEP, facts | {"provenance": provenance()})


if __name__ == "__main__":
    main(sys.argv[1:])

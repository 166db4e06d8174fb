"""How long it takes to evaluate one agent: 40 tasks, three protocols, two repeats.

    .venv/bin/python benchmarks/evaluate.py RUN...     # trained runs, best of different methods

Evaluates each run's newest agent twice, compilation and the oracle's episodes included, and keeps
the seconds and the control steps of the protocols in results/bench/evaluate.json.
"""

import os
import sys
import time

import numpy as np

from ertrl import api, store
from ertrl.evaluation import evaluate_agent
from ertrl.provenance import provenance
from ertrl.training import Run
from shared import KEEP


def main(runs: list[str]) -> None:
    rows = []
    for run in map(Run, runs):
        dataset, agent = run.open_dataset(), api.load_agent(run)
        for repeat in ("first", "second"):
            begun = time.perf_counter()
            result = evaluate_agent(agent, dataset, step=run.checkpoints.newest(), run=run.name)
            seconds = time.perf_counter() - begun
            steps = sum(int(np.sum(p["interaction_steps"])) for p in result["protocols"].values())
            row = {"run": run.name, "pass": repeat, "seconds": seconds, "protocol_steps": steps}
            rows.append(row | {"tasks": len(result["tasks"]), "settings": result["evaluation"]})
            print(f"{run.name}: {seconds:.1f} s, protocols {steps:,} control steps", flush=True)
    load = os.getloadavg()[0]
    facts = {"kind": "ertrl-bench-evaluate", "rows": rows, "load_at_the_end": load}
    store.write_json(KEEP / "bench" / "evaluate.json", facts | {"provenance": provenance()})


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    main(sys.argv[1:])

"""How long it takes to evaluate one agent: 40 tasks, three protocols, two repeats.

    .venv/bin/python benchmarks/evaluate.py RUN...     # trained runs, best of different methods
    .venv/bin/python benchmarks/evaluate.py RUN... --to evaluate-walker

Evaluates each run's newest agent twice, compilation and the oracle's episodes included, and keeps
seconds, processor seconds and the control steps of the protocols in results/bench/evaluate.json, or
under another name. Rows that are there from another commit stay, to compare with.
"""

import argparse
import hashlib
import json
import os
import time

import numpy as np

from ertrl import api, store
from ertrl.evaluation import evaluate_agent
from ertrl.provenance import provenance
from ertrl.training import Run
from shared import KEEP


def main(runs: list[str], name: str) -> None:
    about, rows = provenance(), []
    for run in map(Run, runs):
        dataset, agent = run.open_dataset(), api.load_agent(run)
        for repeat in ("first", "second"):
            begun, used = time.perf_counter(), time.process_time()
            result = evaluate_agent(agent, dataset, step=run.checkpoints.newest(), run=run.name)
            seconds, busy = time.perf_counter() - begun, time.process_time() - used
            steps = sum(int(np.sum(p["interaction_steps"])) for p in result["protocols"].values())
            content = json.dumps(result, sort_keys=True).encode()
            row = {"run": run.name, "pass": repeat, "commit": about["commit"]}
            row |= {"seconds": seconds, "processor_seconds": busy, "protocol_steps": steps}
            row |= {"tasks": len(result["tasks"]), "settings": result["evaluation"]}
            rows.append(row | {"result_sha256": hashlib.sha256(content).hexdigest()})
            print(
                f"{run.name}: {seconds:.1f} s, {busy:.1f} s of processors, {steps:,} control steps"
            )
    file = KEEP / "bench" / f"{name}.json"
    before = store.read_json(file)["rows"] if file.exists() else []
    rows = [r for r in before if r.get("commit", about["commit"]) != about["commit"]] + rows
    facts = {"kind": "ertrl-bench-evaluate", "rows": rows, "load_at_the_end": os.getloadavg()[0]}
    store.write_json(file, facts | {"provenance": about})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--to", default="evaluate", help="name of the file in results/bench")
    given = parser.parse_args()
    main(given.runs, given.to)

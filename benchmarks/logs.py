"""Own logs, from CSV to adapted agent: how good is it in the simulator that the logs came from?

The example examples/own_logs.py with two seeds, some 10 minutes on one core. Writes
results/own-logs/pendulum.json; training that is there already is not repeated.
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import own_logs  # noqa: E402  # ty: ignore[import-not-found]

from ertrl import store  # noqa: E402
from ertrl.provenance import provenance  # noqa: E402

SEEDS = (0, 1)
KINDS = ("behaviour", "focal", "blind")


def main() -> None:
    origin, seeds = provenance(), {}  # now: files may change while it runs
    for seed in SEEDS:
        seeds[seed] = own_logs.main(ROOT / "build" / "own-logs", {"seed": seed})
    every = [task for returns in seeds.values() for task in returns.values()]
    groups = sorted({task["group"] for task in every})
    summary = {
        group: {k: float(np.mean([t[k] for t in every if t["group"] == group])) for k in KINDS}
        for group in groups
    }
    content = {
        "kind": "ertrl-own-logs",
        "summary": summary,
        "seeds": {str(seed): returns for seed, returns in seeds.items()},
        "provenance": origin,
    }
    out = ROOT / "results" / "own-logs" / "pendulum.json"
    store.write_json(out, content)
    print(f"wrote {out}:", summary)


if __name__ == "__main__":
    main()

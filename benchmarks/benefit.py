"""Where does hiding the behaviour policy help? ER-TRL against FOCAL on all eight MuJoCo families.

    .venv/bin/python benchmarks/benefit.py        # or: make results-benefit; hours on two cores

Trains both methods with three seeds on the data of benchmarks/collect.py (and makes what is missing
there) and sets the gain against the distance between behaviour policies. Works in build/benefit
(killed, it goes on where it was) and keeps numbers, tables and figure in results/benefit.
"""

import shutil

from collect import ROOT, TARGETS
from collect import WORK as COLLECTED
from ertrl import api
from ertrl.launch.demo import DEMO, compare
from ertrl.reporting import report

WORK, KEEP = ROOT / "build" / "benefit", ROOT / "results" / "benefit"
SEEDS = range(3)


def main() -> None:
    datasets = [api.collect(family, COLLECTED / family) for family in TARGETS]
    once = [c._replace(settings={"evaluate_every": 5000}) for c in DEMO]
    report(compare(datasets, once, SEEDS, WORK), WORK / "report")
    KEEP.mkdir(parents=True, exist_ok=True)
    for name in ("results.json", "tables/summary.md", "tables/benefit.md"):
        shutil.copy(WORK / "report" / name, KEEP)
    shutil.copy(WORK / "report" / "figures" / "benefit-distance.png", KEEP / "distance.png")


if __name__ == "__main__":
    main()

"""Where does hiding the behaviour policy help? ER-TRL against FOCAL on all eight MuJoCo families.

    .venv/bin/python benchmarks/benefit.py        # or: make results-benefit; hours on two cores

Trains both methods with three seeds on the data of benchmarks/collect.py, except on Cheetah-Vel,
whose runs are those of benchmarks/methods.py (whatever is missing is made), and sets the gain
against the distance between behaviour policies. Works in build/benefit (killed, it goes on where it
was) and keeps numbers, tables and figure in results/benefit. `--so-far` trains nothing and reports
the runs that are finished.
"""

import argparse
import shutil

from collect import TARGETS
from collect import WORK as COLLECTED
from ertrl import api
from ertrl.launch.demo import DEMO
from ertrl.launch.grid import compare
from ertrl.reporting import report
from methods import ONCE, ROOT
from methods import WORK as RESULTS

WORK, KEEP = ROOT / "build" / "benefit", ROOT / "results" / "benefit"
SEEDS = range(3)


def main(*, so_far: bool) -> None:
    cheetah, *others = TARGETS
    place = RESULTS / cheetah
    runs = compare([api.collect(cheetah, place / "data" / cheetah)], DEMO, SEEDS, place)
    if so_far:
        runs += [p.parent for p in sorted(WORK.glob("runs/*/evaluations")) if any(p.glob("*.json"))]
    else:
        datasets = [api.collect(family, COLLECTED / family) for family in others]
        runs += compare(datasets, [c._replace(settings=ONCE) for c in DEMO], SEEDS, WORK)
    report(runs, WORK / "report")
    KEEP.mkdir(parents=True, exist_ok=True)
    for name in ("results.json", "tables/summary.md", "tables/benefit.md"):
        shutil.copy(WORK / "report" / name, KEEP)
    shutil.copy(WORK / "report" / "figures" / "benefit-distance.png", KEEP / "distance.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--so-far", action="store_true", help="report what has been trained")
    main(so_far=parser.parse_args().so_far)

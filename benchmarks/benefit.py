"""Where does hiding the behaviour policy help? ER-TRL against FOCAL on all eight MuJoCo families.

    .venv/bin/python benchmarks/benefit.py        # or: make results-benefit; hours on two cores

Trains both methods with three seeds on the data of benchmarks/collect.py, except on Cheetah-Vel,
whose runs are those of benchmarks/methods.py (whatever is missing is made), and sets the gain
against the distance between behaviour policies. Works in build/benefit (killed, it goes on where it
was) and keeps numbers, tables and figure in results/benefit. `--so-far` trains nothing and reports
the runs that are finished.
"""

import argparse

from collect import TARGETS
from ertrl import api
from ertrl.launch import compare
from ertrl.reporting import report
from shared import COMPARISON, KEEP, ONCE, PAIR, SEEDS, WORK, data_of_methods, keep


def main(*, so_far: bool) -> None:
    work = WORK / "benefit"
    cheetah, *others = TARGETS
    runs = compare([data_of_methods(cheetah)], PAIR, SEEDS, WORK / "results" / cheetah)
    if so_far:
        runs += [p.parent for p in sorted(work.glob("runs/*/evaluations")) if any(p.glob("*.json"))]
    else:
        datasets = [api.collect(family, WORK / "collect" / family) for family in others]
        runs += compare(datasets, [c._replace(settings=ONCE) for c in PAIR], SEEDS, work)
    report(runs, work / "report")
    keep(
        work / "report",
        KEEP / "benefit",
        COMPARISON | {"distance.png": "figures/benefit-distance.png"},
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--so-far", action="store_true", help="report what has been trained")
    main(so_far=parser.parse_args().so_far)

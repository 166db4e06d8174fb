"""One report over all methods on Point-Robot and Cheetah-Vel, three seeds each, with probes.

    .venv/bin/python benchmarks/report.py        # or: make results-report

Goes on from what benchmarks/methods.py made in build/grid, and makes what is missing. Writes the
page into build/results/report and keeps its numbers in results/report.
"""

from ertrl.launch.plan import Data
from ertrl.launch.reproduce import PROBE_TRANSITIONS
from ertrl.reporting import report
from shared import KEEP, METHODS, WORK, done, grid_of, keep

FAMILIES = ("point-robot", "cheetah-vel")


def main() -> None:
    datasets = [Data(family) for family in FAMILIES]
    runs = done(grid_of(datasets, METHODS, probe_transitions=PROBE_TRANSITIONS)).runs
    made = WORK / "results" / "report"
    report(list(runs.values()), made)
    keep(made, KEEP / "report", {"results.json": "results.json"})


if __name__ == "__main__":
    main()

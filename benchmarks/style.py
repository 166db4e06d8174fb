"""Dose and response: ER-TRL against FOCAL as the collectors differ more and more.

    .venv/bin/python benchmarks/style.py                  # or: make results-style; both families
    .venv/bin/python benchmarks/style.py point-robot      # about 20 minutes on two cores
    .venv/bin/python benchmarks/style.py cheetah-vel      # about 40 minutes

Collects data at several strengths of --style, normalised with the experts of strength 0, trains
both methods with three seeds on each and reports. Works in build/grid (killed, it goes on where it
was) and keeps the small files in results/style/FAMILY.
"""

import sys

from ertrl.launch.plan import Data
from ertrl.reporting import report
from shared import COMPARISON, KEEP, PAIR, WORK, done, grid_of, keep

STRENGTHS = {"point-robot": (0.25, 0.5, 1.0), "cheetah-vel": (0.5, 1.0)}


def main(family: str) -> None:
    plain = Data(family)
    styled = [
        Data(family, settings={"style": strength}, references=plain)
        for strength in STRENGTHS[family]
    ]
    runs = done(grid_of([plain, *styled], PAIR)).runs
    work = WORK / "style" / family
    report(list(runs.values()), work)
    files = COMPARISON | {"dose.png": "figures/benefit-dose.png"}
    keep(work, KEEP / "style" / family, files)


if __name__ == "__main__":
    for name in sys.argv[1:] or STRENGTHS:
        main(name)

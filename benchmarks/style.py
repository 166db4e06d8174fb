"""Dose and response: ER-TRL against FOCAL as the collectors differ more and more.

    .venv/bin/python benchmarks/style.py                  # or: make results-style; both families
    .venv/bin/python benchmarks/style.py point-robot      # about 20 minutes on two cores
    .venv/bin/python benchmarks/style.py cheetah-vel      # about 40 minutes

Collects data at several strengths of --style, normalised with the experts of strength 0, trains
both methods with three seeds on each and reports. Works in build/style (killed, it goes on where it
was) and keeps the small files in results/style/FAMILY.
"""

import sys
from dataclasses import replace

from ertrl import api
from ertrl.launch import compare
from ertrl.profiles import collect_config
from ertrl.reporting import report
from shared import COMPARISON, KEEP, PAIR, SEEDS, WORK, keep

STRENGTHS = {"point-robot": (0.0, 0.25, 0.5, 1.0), "cheetah-vel": (0.0, 0.5, 1.0)}


def main(family: str) -> None:
    work, datasets = WORK / "style" / family, []
    for strength in STRENGTHS[family]:
        config = replace(collect_config("laptop", family), style=strength)
        place = work / "data" / f"style-{strength:g}"
        plain = datasets[0] if datasets else None
        datasets.append(api.collect(family, place, config=config, references=plain))
    report(compare(datasets, PAIR, SEEDS, work), work / "report")
    keep(
        work / "report",
        KEEP / "style" / family,
        COMPARISON | {"dose.png": "figures/benefit-dose.png"},
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or STRENGTHS:
        main(name)

"""The README's result: ER-TRL and FOCAL on Point-Robot, three seeds each, all protocols.

    .venv/bin/python benchmarks/point_robot.py        # or: make results

Works in build/results (killed, it goes on where it was) and keeps the small files in
results/point-robot: per-seed numbers with their provenance, the table and the pictures.
"""

import shutil
from pathlib import Path

from ertrl.launch.demo import demo

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "results"
KEEP = ROOT / "results"


def main() -> None:
    for family in ("point-robot", "point-robot-wind"):
        demo(family, seeds=3, out=WORK / family)
        report, kept = WORK / family / "report", KEEP / family
        kept.mkdir(parents=True, exist_ok=True)
        for source in ("results.json", "tables/summary.md", f"figures/{family}-paths.png"):
            shutil.copy(report / source, kept / Path(source).name)


if __name__ == "__main__":
    main()

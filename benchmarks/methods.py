"""All methods on small families, three seeds each: the tables of results/.

    .venv/bin/python benchmarks/methods.py point-robot point-robot-wind  # or: make results
    .venv/bin/python benchmarks/methods.py cheetah-vel  # or: make results-cheetah

On Cheetah-Vel every method runs with and without next states in its context, and FOCAL with BRAC,
too. Works in build/results (killed, it goes on where it was) and keeps the small files in
results/FAMILY: per-seed numbers with their provenance, the table and the pictures.
"""

import shutil
import sys
from pathlib import Path

from ertrl.launch.demo import Contender, compare

ROOT = Path(__file__).parent.parent
WORK, KEEP = ROOT / "build" / "results", ROOT / "results"
METHODS = ("er-trl", "focal", "csro", "unicorn", "offline-pearl")
SWITCHES = (
    Contender("er-trl", settings={"method": {"use_dml": False}}),
    Contender("er-trl", settings={"method": {"entropy": "per-state"}}),
    Contender("unicorn", settings={"method": {"supervision": "task"}}),
    Contender("offline-pearl", settings={"method": {"probabilistic": True}}),
    Contender("focal", "brac"),
)
NEXT_STATES = {"method": {"encoder": {"next_observation": True}}}
EXTRA = {
    "point-robot": SWITCHES,
    "point-robot-wind": SWITCHES,
    "cheetah-vel": (
        *(Contender(method, settings=NEXT_STATES) for method in METHODS),
        Contender("focal", "brac"),
    ),
}
SETTINGS = {"cheetah-vel": {"evaluate_every": 5000}}
"""Simulating 40 tasks takes longer than 2,500 updates there."""
KEPT = ("results.json", "tables/summary.md")


def main(families: list[str]) -> None:
    for family in families:
        common = SETTINGS.get(family, {})
        contenders = [
            contender._replace(settings={**common, **contender.settings})
            for contender in (*map(Contender, METHODS), *EXTRA[family])
        ]
        compare(family, contenders, range(3), WORK / family)
        report, kept = WORK / family / "report", KEEP / family
        kept.mkdir(parents=True, exist_ok=True)
        paths = [f"figures/{family}-paths.png"] if family.startswith("point") else []
        for source in (*KEPT, *paths):
            shutil.copy(report / source, kept / Path(source).name)


if __name__ == "__main__":
    main(sys.argv[1:] or ["point-robot", "point-robot-wind"])

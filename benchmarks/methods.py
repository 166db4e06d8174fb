"""All methods on small families, three seeds each: the tables of results/.

    .venv/bin/python benchmarks/methods.py point-robot point-robot-wind  # or: make results-methods
    .venv/bin/python benchmarks/methods.py cheetah-vel  # or: make results-methods ARGS=cheetah-vel

On Point-Robot the methods' switches and FOCAL with BRAC run, too; on Cheetah-Vel every method with
and without next states in its context. Works in build/results (killed, it goes on where it was) and
keeps the small files in results/FAMILY: numbers per seed with their provenance (results.json), the
table of the five methods and their paths (summary.md, *-paths.png) and that of all variants
(variants.md). `--seeds 1` and `--no-variants` make less of it, `--updates 5000` shorter runs.
"""

import argparse
import shutil
from pathlib import Path

from ertrl import api
from ertrl.launch.grid import Contender, compare
from ertrl.reporting import report

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
ONCE = {"evaluate_every": 5000}
"""Only the last evaluation enters a table."""
EXTRA = {
    "point-robot": SWITCHES,
    "point-robot-wind": SWITCHES,
    "cheetah-vel": tuple(Contender(method, settings=NEXT_STATES | ONCE) for method in METHODS),
}


def main(families: list[str], seeds: int, settings: dict, variants: bool) -> None:
    for family in families:
        contenders = [
            contender._replace(settings={**settings, **contender.settings})
            for contender in (
                *map(Contender, METHODS),
                *(EXTRA.get(family, ()) if variants else ()),
            )
        ]
        dataset = api.collect(family, WORK / family / "data" / family)
        runs = compare([dataset], contenders, range(seeds), WORK / family)
        five = [run for i, run in enumerate(runs) if i % len(contenders) < len(METHODS)]
        place = KEEP / family
        place.mkdir(parents=True, exist_ok=True)
        made = WORK / family / "five"
        report(five, made)
        shutil.copy(made / "tables" / "summary.md", place / "summary.md")
        for picture in (made / "figures").glob("*-paths.png"):
            shutil.copy(picture, place / picture.name)
        if len(runs) > len(five):
            made = WORK / family / "report"
            report(runs, made)
            shutil.copy(made / "tables" / "summary.md", place / "variants.md")
        shutil.copy(made / "results.json", place / "results.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=["point-robot", "point-robot-wind"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, help="instead of the profile's")
    parser.add_argument("--no-variants", action="store_true")
    given = parser.parse_args()
    settings = {"updates": given.updates} if given.updates else {}
    main(given.families, given.seeds, settings, not given.no_variants)

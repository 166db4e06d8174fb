"""All methods on small families, three seeds each: the tables of results/.

    .venv/bin/python benchmarks/methods.py point-robot point-robot-wind  # or: make results-methods
    .venv/bin/python benchmarks/methods.py cheetah-vel  # or: make results-methods ARGS=cheetah-vel

The methods that the paper did not compare with run, too; on Point-Robot also the methods' switches
and FOCAL with BRAC, on Cheetah-Vel the paper's five with next states in their context. Works in
build/grid (killed, it goes on where it was) and keeps the small files in results/FAMILY: numbers
per seed with their provenance (results.json), the table of the five methods and their paths
(summary.md, *-paths.png) and that of all variants (variants.md). `--seeds 1` and `--no-variants`
make less of it, `--updates 5000` shorter runs.
"""

import argparse
from dataclasses import replace

from ertrl.launch.plan import Contender, Data
from ertrl.reporting import report
from shared import KEEP, METHODS, ONCE, RIVALS, WORK, done, grid_of, keep

SWITCHES = (
    Contender("er-trl", settings={"method": {"use_dml": False}}),
    Contender("er-trl", settings={"method": {"entropy": "per-state"}}),
    Contender("unicorn", settings={"method": {"supervision": "task"}}),
    Contender("offline-pearl", settings={"method": {"probabilistic": True}}),
    Contender("focal", "brac"),
)
NEXT_STATES = {"method": {"encoder": {"next_observation": True}}} | ONCE
EXTRA = {
    "point-robot": SWITCHES,
    "point-robot-wind": SWITCHES,
    "cheetah-vel": tuple(contender._replace(settings=NEXT_STATES) for contender in METHODS),
}


def main(family: str, seeds: int, settings: dict, variants: bool) -> None:
    five, extra = METHODS, (*RIVALS, *EXTRA.get(family, ())) if variants else ()
    grid = grid_of([Data(family)], (*five, *extra), range(seeds))
    grid = replace(grid, train_settings=settings)
    runs = done(grid).runs
    work, place = WORK / "results" / family, KEEP / family
    plain = [runs[cell.label] for cell in grid.cells if cell.contender in five]
    report(plain, work / "five")
    pictures = {path.name: path.name for path in (work / "five" / "figures").glob("*-paths.png")}
    keep(work / "five", place, {"summary.md": "tables/summary.md", "results.json": "results.json"})
    keep(work / "five" / "figures", place, pictures)
    if extra:
        report(list(runs.values()), work / "report")
        variants_too = {"variants.md": "tables/summary.md", "results.json": "results.json"}
        keep(work / "report", place, variants_too)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=["point-robot", "point-robot-wind"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, help="instead of the profile's")
    parser.add_argument("--no-variants", action="store_true")
    given = parser.parse_args()
    for name in given.families:
        settings = {"updates": given.updates} if given.updates else {}
        main(name, given.seeds, settings, not given.no_variants)

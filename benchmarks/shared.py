"""What the benchmarks share: where they work, what they keep, who competes."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ertrl import api, store
from ertrl.data import Dataset
from ertrl.launch.plan import Contender, Data, Grid, cells
from ertrl.launch.reproduce import Outcome, paper_families, paper_methods, reproduce
from ertrl.provenance import available_cores, bound_threads
from ertrl.training import Run

bound_threads(available_cores())  # data is collected here; runs are processes of one thread each

ROOT = Path(__file__).parent.parent
WORK, KEEP = ROOT / "build", ROOT / "results"
METHODS = tuple(map(Contender, ("er-trl", "focal", "csro", "unicorn", "offline-pearl")))
PAIR = METHODS[:2]
RIVALS = tuple(map(Contender, ("gentle", "dora", "spc", "bayes-linear")))
"""Those that the paper did not compare with."""
SEEDS = range(3)
ONCE = {"evaluate_every": 5000}
"""Only the last evaluation enters a table."""
OLD_EVALUATE_EVERY = 5000
"""Of the first runs in results/laptop; it changes their names, and nothing else."""

COMPARISON = {
    "results.json": "results.json",
    "summary.md": "tables/summary.md",
    "benefit.md": "tables/benefit.md",
}
"""What is kept of a report that compares two methods: name there -> name in the report."""


def grid_of(
    datasets: Sequence[Data],
    contenders: Sequence[Contender],
    seeds: Sequence[int] = SEEDS,
    probe_transitions: int = 0,
) -> Grid:
    return Grid(cells(datasets, contenders, seeds), probe_transitions=probe_transitions)


def done(grid: Grid) -> Outcome:
    """A grid whose runs are all there; all benchmarks share one place, so nothing is run twice."""
    outcome = reproduce(grid, WORK / "grid", reporting=False)
    if outcome.failures:
        sys.exit("\n".join(outcome.failures))
    return outcome


def known_runs(grid: Grid, *folders: Path) -> dict[str, str]:
    """Labels of cells whose run was kept in one of these folders, and the name it has there.

    A run is named by all that determines it, its data included; what data a collection makes is
    known where that was kept, too.
    """
    made = {}
    for folder in folders:
        for file in folder.glob("data-*.json"):
            made[file.stem.removeprefix("data-")] = store.read_json(file)["dataset"]
    known = {}
    for cell in grid.cells:
        dataset = made.get(Path(grid.collection(cell.data).makes).name)
        if dataset is None:
            continue
        family, config = grid.family(cell.data), grid.train_config(cell)
        for every in (config.evaluate_every, OLD_EVALUATE_EVERY):
            told = replace(config, evaluate_every=every)
            identity = Run.identity(family.name, family.dims, dataset, told, grid.threads)
            name = Run.name_of(identity)
            if any((folder / f"{name}.json").exists() for folder in folders):
                known[cell.label] = name
                break
    return known


def data_of_methods(family: str) -> Dataset:
    """The data that benchmarks/methods.py trains on, collected if it is missing."""
    job = Grid(()).collection(Data(family))
    return api.collect(family, WORK / "grid" / job.makes)


def asked_for(about: str) -> argparse.Namespace:
    """Families, methods and seeds of the paper's grid, as the command line has them."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("families", nargs="*", default=paper_families())
    parser.add_argument("--methods", nargs="*", default=paper_methods())
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    return parser.parse_args()


def keep(made: Path, place: Path, files: dict[str, str]) -> None:
    """Copy small files of a report to a folder of results/, under new names."""
    place.mkdir(parents=True, exist_ok=True)
    for name, source in files.items():
        shutil.copy(made / source, place / name)

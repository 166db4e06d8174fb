"""The whole paper, or any other grid, with one call: plan, do what is missing, report."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ertrl.errors import ConfigError, ErtrlError
from ertrl.launch.estimates import describe_plan, with_costs
from ertrl.launch.jobs import Job, LocalExecutor
from ertrl.launch.keep import keep_dataset, keep_run
from ertrl.launch.place import Place, perform, place_of, possible_folder, records
from ertrl.launch.plan import Cell, Data, Grid, cells, parse_contender, parse_data
from ertrl.launch.ray import RayExecutor, load_ray
from ertrl.launch.schedule import run_graph
from ertrl.launch.seeds import check_seeds
from ertrl.methods import methods as known_methods
from ertrl.profiles import DEFAULT_VARIANT
from ertrl.progress import ProgressStyle, say
from ertrl.provenance import available_cores
from ertrl.reporting import report
from ertrl.reporting.read.paper import paper_results
from ertrl.store import write_bytes
from ertrl.text import markdown_table
from ertrl.training import Run

PROBE_TRANSITIONS = 200
"""A fifth of the paper's: support vector regression takes its time."""

LOOKING = "plan: looking at what is there, measuring what is not known yet"

Where = Literal["local", "ray"]


class Outcome(NamedTuple):
    """What became of a grid."""

    runs: dict[str, Path]
    """Label of a cell -> its run; cells that failed are missing."""
    failures: list[str]
    reports: list[Path]


def paper_families() -> list[str]:
    """Point-Robot, and the families that the paper has numbers of."""
    return ["point-robot", *paper_results()["unnormalised"]["ID"]["offline"]]


def paper_methods() -> list[str]:
    """Our own method, and those that the paper has numbers of."""
    published = paper_results()["unnormalised"]["ID"]["offline"]
    return ["bayes-linear", *next(iter(published.values()))]


def paper_grid(
    families: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: Sequence[int] = tuple(range(5)),
    *,
    profile: str = "laptop",
    variant: str = DEFAULT_VARIANT,
    probe_transitions: int = PROBE_TRANSITIONS,
    collect_settings: Mapping[str, Any] | None = None,
    train_settings: Mapping[str, Any] | None = None,
    threads: int = 1,
    gpus: float = 0.0,
) -> Grid:
    """Families x methods x seeds; without names, all that the paper has and our own method.

    A family may choose its options ("cheetah-vel:split=released"), a method its learner
    ("focal+brac"); the method "all" is every one there is.
    """
    datasets = [parse_data(word) for word in families or paper_families()]
    asked = [
        name
        for word in methods or paper_methods()
        for name in (sorted(known_methods()) if word == "all" else [word])
    ]
    contenders = [parse_contender(word) for word in asked]
    check_seeds(seeds)
    if "seed" in (train_settings or {}):
        raise ConfigError("the settings of all trainings cannot hold one seed; choose the seeds")
    grid = Grid(
        cells(datasets, contenders, seeds),
        profile,
        variant,
        probe_transitions,
        threads,
        gpus,
        collect_settings or {},
        train_settings or {},
    )
    _check_that_all_differ(grid)
    return grid


def _check_that_all_differ(grid: Grid) -> None:
    """'focal' and 'focal+td3bc' may be the same run, which a table would count twice."""
    known: dict[str, str] = {}
    for cell in grid.cells:
        name = grid.training(cell).name
        if name in known:
            raise ConfigError(f"'{known[name]}' and '{cell.label}' are the same run; name it once")
        known[name] = cell.label


def plan(
    grid: Grid, out: str | Path = "reproduction", work: str | Path | None = None
) -> tuple[list[Job], list[Job]]:
    """All jobs of a grid with what they take, and those that are still to do."""
    place = place_of(out, work)
    jobs = with_costs(grid, place)
    done = records(place, jobs)
    return jobs, [job for job in jobs if job.name not in done]


def slots_here(grid: Grid, processes: int) -> int:
    """How many jobs this machine does at once: so many or, if 0, as there are cores for."""
    return processes or max(available_cores() // grid.threads, 1)


def reproduce(
    grid: Grid,
    out: str | Path = "reproduction",
    *,
    executor: Where = "local",
    processes: int = 0,
    address: str | None = None,
    work: str | Path | None = None,
    keep: str | Path | None = None,
    reporting: bool = True,
    progress: ProgressStyle = "auto",
) -> Outcome:
    """Do what is missing of a grid; called again, also after a kill, it goes on.

    A job that crashes is tried again. What fails for good is named in the outcome, and everything
    that does not need it is done. `keep` is a folder for one small file per run, written as runs
    finish. The report tells which cells are missing.
    """
    place, folder = place_of(out, work), possible_folder(keep) if keep else None
    if executor == "ray":
        load_ray()  # before anything is measured
    say(LOOKING, progress)
    jobs, missing = plan(grid, out, work)
    subjects, failures = grid.subjects(), []
    damaged: dict[str, str] = {}

    def keep_result(job: Job) -> None:
        if folder is None:
            return
        _, what = subjects[job.name]
        if isinstance(what, Data):
            keep_dataset(grid, what, place, folder)
        else:
            keep_run(grid, what, place, folder)

    if missing:
        slots = slots_here(grid, processes)
        work_at = partial(perform, place=place)
        on_ray = executor == "ray"
        where = RayExecutor(work_at, address) if on_ray else LocalExecutor(work_at, slots)
        with closing(where) as running:
            say(describe_plan(jobs, missing, running.width(grid.threads)), progress)
            failures = run_graph(missing, running, progress, done=keep_result)
    for job in jobs:
        if job not in missing:  # it was done before, perhaps without being asked to keep it
            _, what = subjects[job.name]
            made_by = grid.training(what) if isinstance(what, Cell) else job  # not by its probe
            damaged |= damage(made_by, lambda job=job: keep_result(job))
    made = records(place, [grid.training(cell) for cell in grid.cells])
    names = [(cell, grid.training(cell)) for cell in grid.cells]
    runs = []
    for cell, job in names:
        if job.name in made and job.name not in damaged:
            run = place.fetch(made[job.name]["made"])
            if reporting:
                damaged |= damage(job, lambda run=run: Run(run).verify())
            if job.name not in damaged:
                runs.append((cell, run))
    failures += damaged.values()
    reports = _reports(grid, place, runs) if reporting and runs else []
    return Outcome({c.label: r for c, r in runs}, failures, reports)


def damage(job: Job, look: Callable[[], Any]) -> dict[str, str]:
    """What is wrong with what a finished job made, by its name, and how it is made anew."""
    try:
        look()
    except ErtrlError as problem:
        return {
            job.name: f"{job.label}: {problem}. To make it anew, remove jobs/{job.name}.json and "
            "what is damaged, and start again"
        }
    return {}


def lacking_cells(grid: Grid, present: set[str]) -> list[str]:
    """A line for every method on a dataset that lacks seeds."""
    seeds: dict[str, list[int]] = {}
    for cell in grid.cells:
        if cell.label not in present:
            name = f"{cell.data.label} {cell.contender.label}"
            seeds.setdefault(name, []).append(cell.seed)
    return [
        f"{name}: seed{'s' * (len(own) > 1)} {', '.join(map(str, own))} "
        f"{'are' if len(own) > 1 else 'is'} missing."
        for name, own in seeds.items()
    ]


def coverage(grid: Grid, present: Sequence[Cell]) -> str:
    """Seeds of every method on every dataset, in Markdown; what is missing stands out."""
    rows, there = [], {cell.label for cell in present}
    columns = list(dict.fromkeys(cell.contender.label for cell in grid.cells))
    for label in dict.fromkeys(cell.data.label for cell in grid.cells):
        row = [label]
        for column in columns:
            own = [c for c in grid.cells if (c.data.label, c.contender.label) == (label, column)]
            count = sum(c.label in there for c in own)
            row.append(str(count) if count == len(own) else f"**{count} of {len(own)}**")
        rows.append(row)
    return markdown_table(["seeds", *columns], rows, "l" + "r" * len(columns)) + "\n"


def _reports(grid: Grid, place: Place, runs: Sequence[tuple[Cell, Path]]) -> list[Path]:
    """One report of all families; those with other data of a family have their own."""
    main: dict[str, str] = {}
    parts: dict[str, list[tuple[Cell, Path]]] = {}
    for cell, run in runs:
        first = main.setdefault(cell.data.family, cell.data.label)
        part = "report" if cell.data.label == first else f"report-{cell.data.label}"
        parts.setdefault(part.replace(" ", "-").replace("/", "-"), []).append((cell, run))
    lacking = lacking_cells(grid, {cell.label for cell, _ in runs})
    pages = []
    for part, members in parts.items():
        datasets = {place.fetch(grid.collection(cell.data).makes) for cell, _ in members}
        pages.append(
            report([r for _, r in members], place.home / part, sorted(datasets), notes=lacking)
        )
        table = coverage(grid, [cell for cell, _ in runs])
        write_bytes(place.home / part / "tables" / "coverage.md", table.encode())
        place.publish(part)
    return pages

"""The main job from start to end: data, several methods, several seeds, one report."""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from ertrl.api import collect
from ertrl.config import replace_from_json
from ertrl.data import Dataset
from ertrl.launch.local import run_jobs
from ertrl.launch.seeds import training_job
from ertrl.profiles import train_config
from ertrl.reporting import print_summary, report
from ertrl.training import Run


class Contender(NamedTuple):
    """A method of a comparison, with what differs from its profile."""

    method: str
    learner: str | None = None
    """None: the profile's."""
    settings: Mapping[str, Any] = {}


DEMO = (Contender("er-trl"), Contender("focal"))


def demo(
    family: str = "point-robot", seeds: int = 2, out: str | Path = "demo", profile: str = "laptop"
) -> dict[str, Any]:
    """Collect, meta-train ER-TRL and FOCAL, evaluate, report; called again, it goes on."""
    out, begun = Path(out), time.monotonic()
    place = out / "data" / family
    say(f"[bold]1/3[/] behaviour data of all {family} tasks -> {place}")
    dataset = collect(family, place, profile=profile)
    names = " and ".join(contender.method for contender in DEMO)
    say(f"[bold]2/3[/] meta-training {names}, {seeds} seeds each -> {out / 'runs'}")
    runs = compare([dataset], DEMO, range(seeds), out, profile)
    say(f"[bold]3/3[/] report -> {out / 'report' / 'report.html'}")
    page = report(runs, out / "report")
    print_summary(runs)
    minutes = (time.monotonic() - begun) / 60
    say(f"Done in {minutes:.1f} minutes. Open {page} in a browser.")
    return {"report": str(page), "runs": [str(run) for run in runs], "minutes": minutes}


def compare(
    datasets: Sequence[Dataset],
    contenders: Sequence[Contender],
    seeds: Sequence[int],
    out: str | Path,
    profile: str = "laptop",
) -> list[Path]:
    """Train every contender on every dataset with every seed; called again, it goes on.

    Seeds change slowest: stopped early, the comparison has some of them for all.
    """
    jobs, runs = [], []
    for seed, dataset, contender in product(seeds, datasets, contenders):
        method, learner, settings = contender
        learner, config = train_config(profile, dataset.family, method, learner)
        config = replace_from_json(config, {**settings, "seed": seed})
        run = Run.create(Path(out) / "runs", dataset, method, learner, config, profile)
        runs.append(run.path)
        jobs.append(training_job(run, dataset))
    run_jobs(jobs)
    return runs


def say(text: str) -> None:
    """For people, not for pipes."""
    Console(stderr=True).print(text, highlight=False)

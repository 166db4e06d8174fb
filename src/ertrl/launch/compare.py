"""Several methods, datasets and seeds side by side."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ertrl.config import replace_from_json
from ertrl.data import Dataset
from ertrl.launch.processes import run_jobs
from ertrl.launch.seeds import training_job
from ertrl.profiles import train_config
from ertrl.training import Run


class Contender(NamedTuple):
    """A method of a comparison, with what differs from its profile."""

    method: str
    learner: str | None = None
    """None: the profile's."""
    settings: Mapping[str, Any] = {}


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

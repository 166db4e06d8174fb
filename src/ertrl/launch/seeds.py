"""One configuration with several seeds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import jax

from ertrl.data import Dataset
from ertrl.errors import ConfigError
from ertrl.launch.processes import Job, run_jobs
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.progress import ProgressStyle
from ertrl.training import Run, SinkName, check_start, train_together
from ertrl.training.config import TrainConfig

How = Literal["auto", "processes", "program"]


def train_seeds(
    method: str,
    learner: str,
    config: TrainConfig,
    dataset: Dataset,
    seeds: Sequence[int],
    *,
    how: How = "auto",
    profile: str = "custom",
    out: str | Path = "runs",
    progress: ProgressStyle = "auto",
    sinks: Sequence[SinkName] = (),
) -> list[Run]:
    """Train a run per seed; runs that exist are resumed.

    On CPUs they are processes side by side: batched products of small networks are slower there
    than plain ones. Elsewhere one program takes each step for all seeds at once. The runs are the
    same but for rounding.
    """
    if len(set(seeds)) < len(seeds) or not seeds:
        raise ConfigError(f"seeds must be different numbers, at least one; got {list(seeds)}")
    check_start(get_method(method), get_learner(learner), dataset, config, sinks)
    runs = [
        Run.create(out, dataset, method, learner, replace(config, seed=seed), profile)
        for seed in seeds
    ]
    if how == "auto":
        how = "processes" if jax.default_backend() == "cpu" else "program"
    if how == "program":
        return train_together(runs, dataset, progress, sinks)
    run_jobs([training_job(run, dataset, sinks) for run in runs], progress=progress)
    return runs


def training_job(run: Run, dataset: Dataset, sinks: Sequence[SinkName] = ()) -> Job:
    """A process that trains this run to its end; what it says of errors stays with the run."""
    arguments = ("train", str(run.path), "--data", str(dataset.path))
    arguments += ("--sink", *sinks) if sinks else ()
    label = f"{dataset.family} {run.method.name} seed {run.config.seed}"
    return Job(label, arguments, run.path / "train.log")


def parse_seeds(text: str) -> list[int]:
    """'0-4' or '0,2,7' or '3' as numbers."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if (
            not first.isdecimal()
            or (dash and not last.isdecimal())
            or int(last or first) < int(first)
        ):
            raise ConfigError(f"--seeds takes numbers like 0-4 or 0,2,7; got '{text}'")
        seeds += range(int(first), int(last or first) + 1)
    return seeds

"""One configuration with several seeds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import jax

from ertrl.data import Dataset
from ertrl.errors import ConfigError
from ertrl.launch.jobs import THREADS_PER_PROCESS, Job
from ertrl.launch.schedule import run_jobs
from ertrl.progress import ProgressStyle
from ertrl.training import Run, SinkName, check_sinks, train_together
from ertrl.training.config import TrainConfig

MOST_SEEDS = 10_000


def train_seeds(
    config: TrainConfig,
    dataset: Dataset,
    seeds: Sequence[int],
    *,
    how: Literal["auto", "processes", "program"] = "auto",
    profile: str = "custom",
    variant: str = "",
    out: str | Path = "runs",
    progress: ProgressStyle = "auto",
    sinks: Sequence[SinkName] = (),
) -> list[Run]:
    """Train a run per seed; runs that exist are resumed.

    On CPUs they are processes side by side: batched products of small networks are slower there
    than plain ones. Elsewhere one program takes each step for all seeds at once. The runs are the
    same but for rounding.
    """
    check_seeds(seeds)
    check_sinks(sinks)
    in_program = how == "program" or (how == "auto" and jax.default_backend() != "cpu")
    threads = None if in_program else THREADS_PER_PROCESS
    runs = [
        Run.create(out, dataset, replace(config, seed=seed), profile, variant, threads)
        for seed in seeds
    ]
    if in_program:
        return train_together(runs, dataset, progress, sinks)
    run_jobs([training_job(run, dataset, sinks) for run in runs], progress)
    return runs


def check_seeds(seeds: Sequence[int]) -> None:
    if len(set(seeds)) < len(seeds) or not seeds:
        raise ConfigError(f"seeds must be different numbers, at least one; got {list(seeds)}")


def parse_seeds(text: str) -> list[int]:
    """'0-4' or '0,2,7' or '3' as numbers."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        last = last if "-" in part else first
        if not first.isdecimal() or not last.isdecimal() or int(last) < int(first):
            raise ConfigError(f"--seeds takes numbers like 0-4 or 0,2,7; got '{text}'")
        if int(last) - int(first) >= MOST_SEEDS or int(last) >= 2**32:
            raise ConfigError(
                f"--seeds takes at most {MOST_SEEDS} numbers below 2^32; got '{text}'"
            )
        seeds += range(int(first), int(last) + 1)
    return seeds


def training_job(run: Run, dataset: Dataset, sinks: Sequence[SinkName] = ()) -> Job:
    """A process that trains this run to its end; what it says of errors stays with the run."""
    arguments = ("train", str(run.path), "--data", str(dataset.path))
    arguments += ("--sink", *sinks) if sinks else ()
    label = f"{dataset.family} {run.method.name} seed {run.config.seed}"
    return Job(label, arguments, run.path / "train.log")

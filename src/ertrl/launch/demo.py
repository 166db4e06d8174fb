"""The main job from start to end: data, three methods, several seeds, one report."""

import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from ertrl.api import collect
from ertrl.launch.jobs import THREADS_PER_PROCESS
from ertrl.launch.schedule import run_jobs
from ertrl.launch.seeds import training_job
from ertrl.profiles import train_config
from ertrl.progress import say
from ertrl.reporting import print_summary, report
from ertrl.training import Run

METHODS = ("bayes-linear", "er-trl", "focal")


def demo(family: str = "point-robot", seeds: int = 3, out: str | Path = "demo") -> dict[str, Any]:
    """Collect, train Bayes-linear, ER-TRL and FOCAL, evaluate, report; called again, it goes on."""
    out, begun = Path(out), time.monotonic()
    place = out / "data" / family
    say(f"1/3 behaviour data of all {family} tasks -> {place}")
    dataset = collect(family, place)
    say(f"2/3 meta-training {', '.join(METHODS)}, {seeds} seeds each -> {out / 'runs'}")
    runs = []
    for seed, method in product(range(seeds), METHODS):
        config = replace(train_config("laptop", family, method, dataset=dataset), seed=seed)
        created = Run.create(out / "runs", dataset, config, "laptop", threads=THREADS_PER_PROCESS)
        runs.append(created)
    run_jobs([training_job(run, dataset) for run in runs])
    say(f"3/3 report -> {out / 'report' / 'report.html'}")
    page = report(runs, out / "report")
    print_summary(runs)
    minutes = (time.monotonic() - begun) / 60
    say(f"Done in {minutes:.1f} minutes. Open {page} in a browser.")
    return {"report": str(page), "runs": [str(run.path) for run in runs], "minutes": minutes}

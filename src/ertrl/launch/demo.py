"""The main job from start to end on the smallest family."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ertrl.api import collect
from ertrl.launch.local import run_jobs
from ertrl.launch.seeds import training_job
from ertrl.profiles import train_config
from ertrl.reporting import print_summary, report
from ertrl.training import Run

METHODS = ("er-trl", "focal")


def demo(
    family: str = "point-robot", seeds: int = 2, out: str | Path = "demo", profile: str = "laptop"
) -> dict[str, Any]:
    """Collect, meta-train ER-TRL and FOCAL, evaluate, report; called again, it goes on."""
    out, begun = Path(out), time.monotonic()
    console = Console(stderr=True)
    say = lambda text: console.print(text, highlight=False)  # noqa: E731
    say(f"[bold]1/3[/] behaviour data of all {family} tasks -> {out / 'data' / family}")
    dataset = collect(family, out / "data" / family, profile=profile)
    say(f"[bold]2/3[/] meta-training {' and '.join(METHODS)}, {seeds} seeds each -> {out / 'runs'}")
    runs = []
    for seed in range(seeds):
        for method in METHODS:
            learner, config = train_config(profile, family, method)
            config = replace(config, seed=seed)
            runs.append(Run.create(out / "runs", dataset, method, learner, config, profile))
    run_jobs([training_job(run, dataset, out / "logs") for run in runs])
    say(f"[bold]3/3[/] report -> {out / 'report' / 'report.html'}")
    page = report([run.path for run in runs], out / "report")
    print_summary([run.path for run in runs])
    minutes = (time.monotonic() - begun) / 60
    say(f"Done in {minutes:.1f} minutes. Open {page} in a browser.")
    return {"report": str(page), "runs": [str(run.path) for run in runs], "minutes": minutes}

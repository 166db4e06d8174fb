"""The main job from start to end: data, several methods, several seeds, one report."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from ertrl.api import collect
from ertrl.config import replace_from_json
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
    return compare(family, DEMO, range(seeds), out, profile)


def compare(
    family: str,
    contenders: Sequence[Contender],
    seeds: Sequence[int],
    out: str | Path,
    profile: str = "laptop",
) -> dict[str, Any]:
    """Collect data, train every contender with every seed, report; called again, it goes on."""
    out, begun = Path(out), time.monotonic()
    console = Console(stderr=True)
    say = lambda text: console.print(text, highlight=False)  # noqa: E731
    say(f"[bold]1/3[/] behaviour data of all {family} tasks -> {out / 'data' / family}")
    dataset = collect(family, out / "data" / family, profile=profile)
    names = ", ".join(dict.fromkeys(c.method for c in contenders))
    say(f"[bold]2/3[/] meta-training {names}, {len(seeds)} seeds each -> {out / 'runs'}")
    runs = []
    for seed in seeds:
        for method, learner, settings in contenders:
            learner, config = train_config(profile, family, method, learner)
            config = replace_from_json(config, {**settings, "seed": seed})
            runs.append(Run.create(out / "runs", dataset, method, learner, config, profile))
    run_jobs([training_job(run, dataset, out / "logs") for run in runs])
    say(f"[bold]3/3[/] report -> {out / 'report' / 'report.html'}")
    page = report([run.path for run in runs], out / "report")
    print_summary([run.path for run in runs])
    minutes = (time.monotonic() - begun) / 60
    say(f"Done in {minutes:.1f} minutes. Open {page} in a browser.")
    return {"report": str(page), "runs": [str(run.path) for run in runs], "minutes": minutes}

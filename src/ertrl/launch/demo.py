"""The main job from start to end: data, two methods, several seeds, one report."""

import time
from pathlib import Path
from typing import Any

from ertrl.api import collect
from ertrl.launch.grid import Contender, compare
from ertrl.progress import say
from ertrl.reporting import print_summary, report

DEMO = (Contender("er-trl"), Contender("focal"))


def demo(family: str = "point-robot", seeds: int = 3, out: str | Path = "demo") -> dict[str, Any]:
    """Collect, meta-train ER-TRL and FOCAL, evaluate, report; called again, it goes on."""
    out, begun = Path(out), time.monotonic()
    place = out / "data" / family
    say(f"1/3 behaviour data of all {family} tasks -> {place}")
    dataset = collect(family, place)
    names = " and ".join(contender.method for contender in DEMO)
    say(f"2/3 meta-training {names}, {seeds} seeds each -> {out / 'runs'}")
    runs = compare([dataset], DEMO, range(seeds), out)
    say(f"3/3 report -> {out / 'report' / 'report.html'}")
    page = report(runs, out / "report")
    print_summary(runs)
    minutes = (time.monotonic() - begun) / 60
    say(f"Done in {minutes:.1f} minutes. Open {page} in a browser.")
    return {"report": str(page), "runs": [str(run) for run in runs], "minutes": minutes}

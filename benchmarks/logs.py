"""Own logs, from CSV to adapted agent: how good is it in the simulator that the logs came from?

    .venv/bin/python benchmarks/logs.py        # or: make results-logs

The example examples/own_logs.py with several seeds, and beside it an agent that learned from the
same logs without knowing what a task is; some 10 minutes on one core. Writes
results/own-logs/pendulum.json, and into page.json how long the page docs/own-logs.md takes.
Training that is there already is not repeated.
"""

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import stats

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import own_logs  # noqa: E402  # ty: ignore[import-not-found]

import ertrl  # noqa: E402
from ertrl import store  # noqa: E402
from ertrl.methods.focal import Focal  # noqa: E402
from ertrl.provenance import provenance  # noqa: E402

SEEDS = (1, 2, 3, 4, 5)
"""Settings were chosen with seed 0, which therefore takes no part."""
EPISODES = 30
OUT, KEEP = ROOT / "build" / "own-logs", ROOT / "results" / "own-logs"


class Blind(Focal):
    """The same agent without a task: it learns with z = 0, and is never shown a context."""

    name = "blind"
    summary = "knows nothing of the task"

    def draw(self, state, context, key):
        return 0 * super().draw(state, context, key)


def measured(seed: int) -> dict[str, dict[str, Any]]:
    """Returns of all tasks by who acted.

    `logged` is whoever logged the data, in equal shares; `one_episode` is an agent that has seen
    the first logged episode instead of as many steps from all of them.
    """
    returns = own_logs.main(OUT, {"seed": seed}, EPISODES)
    data = own_logs.prepared(OUT)
    runs = [ertrl.train(m, data, seed=seed, out=OUT / "runs") for m in ("focal", Blind)]
    agent, blind = map(ertrl.load_agent, runs)
    for number, (task, found) in enumerate(returns.items()):
        found["blind"] = own_logs.measured([blind.begin().act] * EPISODES, task)
        first = own_logs.adapt(agent, data.task(number), np.arange(data.horizon))
        found["one_episode"] = own_logs.measured([first.act] * EPISODES, task)
        found["logged"] = float(np.mean([found[hand] for hand in own_logs.HANDS]))
    return returns


def page_minutes() -> float:
    """Processor time of the page's commands, from writing the CSV to the exported agent."""
    python, ertrl_ = sys.executable, [sys.executable, "-m", "ertrl"]
    columns = [
        "--columns",
        "action=torque",
        "policy=hand",
        "--action-low",
        "-2",
        "--action-high",
        "2",
    ]
    with TemporaryDirectory() as place:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for words in (
            [python, str(ROOT / "examples" / "pendulum_logs.py"), "pendulum.csv"],
            [*ertrl_, "data", "import", "pendulum.csv", "--out", "data/pendulum", *columns],
            [*ertrl_, "train", "focal", "--data", "data/pendulum"],
        ):
            subprocess.run(words, cwd=place, check=True)
        (run,) = (Path(place) / "runs").iterdir()
        subprocess.run([*ertrl_, "export", str(run), "--out", "agent"], cwd=place, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / 60


def interval(values: list[float]) -> dict[str, Any]:
    """Mean over seeds and its 95% interval by Student's t."""
    mean, error = np.mean(values), stats.sem(values)
    half = error * stats.t.ppf(0.975, len(values) - 1)
    return {"mean": float(mean), "low": float(mean - half), "high": float(mean + half)}


def main() -> None:
    origin = provenance()  # now: files may change while it runs
    seeds = {seed: measured(seed) for seed in SEEDS}
    summary: dict[str, dict[str, Any]] = {}
    kinds = ("logged", *own_logs.HANDS, "blind", "one_episode", "adapted")
    for group in ("train", "test-id"):
        of_seed = {
            kind: [
                float(np.mean([task[kind] for task in found.values() if task["group"] == group]))
                for found in seeds.values()
            ]
            for kind in kinds
        }
        summary[group] = {kind: interval(values) for kind, values in of_seed.items()}
        for other in ("logged", "steady", "blind"):
            gained = np.subtract(of_seed["adapted"], of_seed[other]).tolist()
            summary[group][f"adapted - {other}"] = interval(gained)
    content = {
        "kind": "ertrl-own-logs",
        "summary": summary,
        "seeds": {str(seed): returns for seed, returns in seeds.items()},
        "provenance": origin,
    }
    store.write_json(KEEP / "pendulum.json", content)
    print(f"wrote {KEEP / 'pendulum.json'}:", summary)
    page = {"kind": "ertrl-own-logs-page", "processor_minutes": page_minutes()}
    store.write_json(KEEP / "page.json", {**page, "provenance": origin})


if __name__ == "__main__":
    main()

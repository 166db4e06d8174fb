"""Many small runs on a few cores: one process with all threads, or a process of one thread each?

    .venv/bin/python benchmarks/processes.py       # or: make results-processes; a few minutes

Trains as many runs as there are cores, one after the other with a thread per core, and side by side
with one thread each, in turns, and keeps both wall-clocks in results/bench/processes.json.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from ertrl import store
from ertrl.launch.jobs import Job, LocalExecutor
from ertrl.launch.schedule import run_graph
from ertrl.provenance import available_cores, provenance
from shared import KEEP, data_of_methods


def train(data: Path, updates: int, threads: int, processes: int, out: Path) -> float:
    """Seconds until all runs are there."""
    words = ("train", "er-trl", "--data", str(data), "--out", str(out), "--threads", str(threads))
    words += (
        "--updates",
        str(updates),
        "--evaluate-every",
        str(updates),
        "--evaluation.repeats",
        "1",
    )
    jobs = [
        Job(f"seed {seed}", (*words, "--seed", str(seed)), out / f"{seed}.log", threads=threads)
        for seed in range(available_cores())
    ]
    begun = time.monotonic()
    failures = run_graph(jobs, LocalExecutor(slots=processes), "none")
    if failures:
        sys.exit("\n".join(failures))
    return time.monotonic() - begun


def main(family: str, updates: int, repeats: int) -> None:
    cores, data = available_cores(), data_of_methods(family).path
    ways = {"one process": (cores, 1), "one thread each": (1, cores)}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, (threads, processes) in ways.items():
            with TemporaryDirectory() as out:
                seconds[way].append(train(data, updates, threads, processes, Path(out)))
            print(f"{way}: {seconds[way][-1]:.1f} s", flush=True)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    ratio = medians["one process"] / medians["one thread each"]
    facts = {
        "kind": "ertrl-bench-processes",
        "family": family,
        "updates": updates,
        "runs": cores,
        "seconds": seconds,
        "speed_of_one_thread_each": ratio,
        "load_at_the_end": os.getloadavg()[0],
    }
    store.write_json(KEEP / "bench" / "processes.json", facts | {"provenance": provenance()})
    print(f"one thread each is {ratio:.2f} times as fast", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="point-robot")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    main(given.family, given.updates, given.repeats)

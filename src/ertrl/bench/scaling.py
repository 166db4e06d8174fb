"""How cost grows: time and memory of an update and of its batches, along one size at a time.

What is expected is counted: the matrix products of the update's program. On paper, the same count
says what the paper profile would take on accelerators.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ertrl import store
from ertrl.bench.updates import product_flops, program_memory, random_batch
from ertrl.config import replace_from_json
from ertrl.data import Dataset, Sampler, layout
from ertrl.data.dataset import TaskData
from ertrl.envs import make_family
from ertrl.profiles import train_config
from ertrl.provenance import device_text, provenance
from ertrl.text import markdown_table, readable_duration
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key, update
from ertrl.types import Dims

HORIZON = 200
SAMPLED = 20
"""Batches that are drawn at once."""


class Axis(NamedTuple):
    """One size that grows while all others stay."""

    title: str
    values: tuple[int, ...]
    settings: Callable[[int], dict[str, Any]] = lambda n: {}
    """Of the training."""


AXES = {
    "tasks": Axis("training tasks in the data", (20, 60, 200)),
    "transitions": Axis("transitions per task in the data", (10_000, 100_000, 1_000_000)),
    "meta_batch": Axis(
        "tasks per update", (20, 60, 200), lambda n: {"sampling": {"meta_batch": n}}
    ),
    "context": Axis(
        "transitions per context",
        (64, 512, 2048),
        lambda n: {"sampling": {"context_size": n}},
    ),
    "latent": Axis("size of z", (5, 20, 80), lambda n: {"method": {"encoder": {"latent_dim": n}}}),
    "seeds": Axis("seeds in one program", (1, 2, 4)),
}
DATA_AXES = ("tasks", "transitions")
"""Along these, batches are drawn from files as well."""


def scaling(
    methods: Sequence[str],
    profile: str = "laptop",
    family: str = "cheetah-vel",
    seconds: float = 0.5,
    axes: Sequence[str] = tuple(AXES),
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every method along every axis, each point for so many seconds."""
    made = make_family(family)
    points: list[dict[str, Any]] = []
    for name in axes:
        for value in AXES[name].values:
            tasks = value if name in ("tasks", "meta_batch") else len(made.split["train"])
            dims = Dims(made.observation_dim, made.action_dim, tasks)
            changes = AXES[name].settings(value)
            at = {"axis": name, "value": value}
            if name in DATA_AXES:
                transitions = value if name == "transitions" else AXES["transitions"].values[0]
                config = train_config(profile, family, methods[0])
                points.append(at | {"method": None} | _batches(config, dims, transitions, seconds))
                say(_told(points[-1]))
            if name == "transitions":
                continue  # the update does not see how many there are
            for method in methods:
                config = replace_from_json(train_config(profile, family, method), changes)
                runs = value if name == "seeds" else 1
                points.append(at | {"method": method} | _update(config, dims, runs, seconds))
                say(_told(points[-1]))
    return {
        "kind": "ertrl-bench-scaling",
        "profile": profile,
        "family": family,
        "points": points,
        "provenance": provenance(),
    }


def _told(point: dict[str, Any]) -> str:
    what = point["method"] or "batches"
    text = f"{point['axis']} {point['value']:,}, {what}: {1000 * point['seconds']:.2f} ms"
    return f"{text}, {point['memory_mib']:.0f} MiB"


def _update(config: TrainConfig, dims: Dims, runs: int, seconds: float) -> dict[str, Any]:
    """Of one update of one run, or of several in one program."""
    state, batch = init(config, dims), random_batch(config, dims)
    flops = runs * product_flops(partial(update, config, key=run_key(0)), state, batch)
    inputs = [state, jax.tree.map(lambda x: x[None], batch), run_key(0)]
    if runs > 1:
        inputs = jax.tree.map(lambda x: jnp.stack([x] * runs), inputs)
    program: Any = make_chunk(config, several_runs=runs > 1)
    compiled = program.lower(*inputs).compile()
    took = _median(lambda: jax.block_until_ready(compiled(*inputs)), seconds)
    memory = program_memory(compiled) / 2**20
    return {"seconds": took, "memory_mib": memory, "gflop": flops / 1e9}


def _batches(config: TrainConfig, dims: Dims, transitions: int, seconds: float) -> dict[str, Any]:
    """Of drawing the batches of one update from memory-mapped files."""
    with tempfile.TemporaryDirectory() as folder:
        before = _own_memory()
        data = _Logs(Path(folder), dims, transitions)
        sampler = Sampler(data, config.sampling, config.learner.extra_batches, seed=0)
        first = iter(range(10**9))
        took = _median(lambda: sampler.batches(next(first) * SAMPLED, SAMPLED), seconds)
        memory = (_own_memory() - before) / 2**20
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.npy")) / 2**20
        del data, sampler
    return {"seconds": took / SAMPLED, "memory_mib": max(memory, 0.0), "files_mib": size}


class _Logs(Dataset):
    """Tasks of equal length in files of the dataset's format; their values do not matter."""

    def __init__(self, path: Path, dims: Dims, transitions: int):
        self.path, self.dims = path, dims
        episodes = max(transitions // HORIZON, 1)
        self.tasks = {}
        for task in range(dims.training_tasks):
            files = {}
            specs = layout.task_arrays(episodes, HORIZON, dims.observation, dims.action)
            for name, spec in specs.items():
                files[name] = {"path": layout.file_of(task, name)}
                array = store.map_array(path / files[name]["path"], *spec)
                array[:] = HORIZON if name == "lengths" else 0
            entry = {"task": task, "group": "train", "parameters": [0.0], "reference": {}}
            entry |= {"episodes": episodes, "files": files}
            self.tasks[task] = TaskData(path, entry, HORIZON, dims)


def _own_memory() -> int:
    """Bytes of this process that are no mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def _median(call: Callable[[], Any], seconds: float) -> float:
    call()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


# --- growth ---


def slope(values: Sequence[float], costs: Sequence[float]) -> float:
    """Power of the growth from the first to the last point: 0 is constant, 1 proportional."""
    return math.log(costs[-1] / costs[0]) / math.log(values[-1] / values[0])


def growth(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Along each axis, of each method and of batches: measured and expected slopes."""
    keys = dict.fromkeys((p["axis"], p["method"]) for p in result["points"])
    for axis, method in keys:
        own = [p for p in result["points"] if (p["axis"], p["method"]) == (axis, method)]
        values = [p["value"] for p in own]
        found = {"axis": axis, "method": method, "time": slope(values, [p["seconds"] for p in own])}
        found["ends_ms"] = [1000 * own[0]["seconds"], 1000 * own[-1]["seconds"]]
        found["memory"] = slope(values, [max(p["memory_mib"], 0.1) for p in own])
        flops = [p["gflop"] for p in own] if method else []
        found["expected"] = slope(values, flops) if method else 0.0
        yield found


def growth_table(result: dict[str, Any]) -> str:
    """In Markdown."""
    rows = [
        [
            AXES[g["axis"]].title,
            g["method"] or "*drawing batches*",
            f"{g['ends_ms'][0]:.1f} to {g['ends_ms'][1]:.1f}",
            f"{g['time']:.2f}",
            f"{g['expected']:.2f}",
            f"{g['memory']:.2f}",
        ]
        for g in growth(result)
    ]
    head = ["size", "method", "ms per update", "slope of time", "expected", "slope of memory"]
    return markdown_table(head, rows, "llrrrr") + "\n"


# --- on paper ---


def paper_on_gpus(
    families: Sequence[str],
    methods: Sequence[str],
    seeds: int = 5,
    gpus: Sequence[int] = (1, 8, 64),
    teraflops: float = 5.0,
) -> dict[str, Any]:
    """Time of the paper profile's trainings, if a GPU sustains so many teraflops on them.

    Counted products over an assumed speed: nothing of it was run. Collection and evaluation, which
    simulate on CPUs, are not part of it.
    """
    hours = []
    for family in families:
        made = make_family(family)
        dims = Dims(made.observation_dim, made.action_dim, len(made.split["train"]))
        for method in methods:
            config = train_config("paper", family, method)
            state = eqx.filter_eval_shape(init, config, dims)
            step = partial(update, config, key=run_key(0))
            flops = product_flops(step, state, random_batch(config, dims))
            hours.append(flops * config.updates / (teraflops * 1e12) / 3600)
    jobs = sorted((h for h in hours for _ in range(seeds)), reverse=True)
    return {
        "kind": "ertrl-bench-paper-on-gpus",
        "families": list(families),
        "methods": list(methods),
        "seeds": seeds,
        "assumed_teraflops": teraflops,
        "runs": len(jobs),
        "exaflop": sum(jobs) * 3600 * teraflops * 1e12 / 1e18,
        "hours": {str(n): _makespan(jobs, n) for n in gpus},
        "provenance": provenance(),
    }


def _makespan(jobs: Sequence[float], machines: int) -> float:
    """Longest job first, each to the machine that is free first."""
    load = [0.0] * machines
    for job in jobs:
        load[load.index(min(load))] += job
    return max(load)


def describe(result: dict[str, Any]) -> str:
    head = f"{result['family']}, profile {result['profile']}, on {device_text()}"
    return f"{head}\n{growth_table(result)}"


def describe_gpus(result: dict[str, Any]) -> str:
    """A table in Markdown."""
    rows = [[n, readable_duration(3600 * hours)] for n, hours in result["hours"].items()]
    return markdown_table(["GPUs", "all trainings"], rows, "rr") + "\n"

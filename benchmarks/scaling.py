"""How time and memory of training grow: with tasks, context, data, z and seeds.

    .venv/bin/python benchmarks/scaling.py         # or: make results-scaling; a quarter of an hour
    .venv/bin/python benchmarks/scaling.py --toy   # a minute, to see the page: build/scaling-toy
    .venv/bin/python benchmarks/scaling.py --gpus  # a minute: only what is counted on paper

Writes the numbers and their pictures to results/scaling, what the paper profile's trainings would
take on GPUs, on paper, beside them, and the page docs/scaling.md from both. Needs 5 GB of disk for
the largest dataset. Leave the machine alone meanwhile. `--seconds` is the time for each point.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.extend import core as jax_core
from matplotlib.ticker import LogLocator

from ertrl import store
from ertrl.bench import product_flops, program_memory, random_batch
from ertrl.collection import sac
from ertrl.collection.config import CollectConfig
from ertrl.colours import PALETTE
from ertrl.config import replace_from_json
from ertrl.data import Dataset, Sampler, layout
from ertrl.data.dataset import TaskData
from ertrl.envs import make_family
from ertrl.launch.reproduce import paper_families
from ertrl.methods import methods
from ertrl.profiles import collect_config, train_config
from ertrl.progress import say
from ertrl.provenance import provenance
from ertrl.text import markdown_table, readable_duration
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key, update
from ertrl.types import Dims, Transitions
from shared import KEEP, ROOT, WORK

PLACE = KEEP / "scaling"
PAGE = """\
# How cost grows

`make results-scaling` measures a training step along one size at a time, and writes this page.
Profile {profile}, sizes of {family}, {threads} CPU thread(s).

A slope is the power of growth from the first to the last size: 0 is constant, 1 proportional.
What is *expected* is counted: for time the operations of all matrix products of an update,
for memory what goes in and comes out, and the results of these products.
Memory is that of the compiled program, which reuses some; less than {least:g} MiB counts as that.
How much data there is, an update of any method does not see: only the drawing of batches could.
*Drawing batches* reads memory-mapped files; its memory is what the process holds besides them:
lists of all transitions, to draw from, which grow with the data.

![Time of an update against six sizes; dashed: expected](../results/scaling/seconds.png)

![Memory against six sizes; dashed: expected](../results/scaling/memory.png)

{table}
## The paper profile on GPUs, on paper

Nothing of this was run.
{families} families, {methods} methods and {seeds} seeds are {runs} trainings.
Their matrix products are {exaflop:.0f} exaflop.
If a GPU sustains {teraflops:g} teraflops on them, an assumption, they take:

{gpus}
A training runs on one GPU, so more GPUs than trainings do not help.
Evaluation simulates on CPUs and comes on top.

Collecting takes more: SAC with one network per task, as in the paper, has
{collecting:.0f} exaflop of products in {families} families.
`ertrl reproduce` makes a collection one job on CPUs, where that is out of reach:
`ertrl collect FAMILY --profile paper --dry-run` says how far.
The profile is for those who bring such data, or collect with other settings
(`--collect-settings`), for example one network for all tasks.
"""
EXPECTED = {"time": "gflop", "memory": "held_mib"}
"""What was counted that each should grow with."""
LEAST_MIB = 1.0
"""Less is noise of the allocator."""
HORIZON = 200
SAMPLED = 20
"""Batches that are drawn at once."""
TERAFLOPS = 5.0
"""That a GPU is assumed to sustain."""


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
TOY = {
    "tasks": (20, 40),
    "transitions": (1_000, 2_000),
    "meta_batch": (4, 8),
    "context": (8, 16),
    "latent": (2, 4),
    "seeds": (1, 2),
}


def scaling(names: Sequence[str], profile: str, family: str, seconds: float) -> dict[str, Any]:
    """Measure every method along every axis, each point for so many seconds."""
    made, programs = make_family(family), Programs()
    points: list[dict[str, Any]] = []
    # What libraries hold from their first call on is not the data's.
    small = Dims(made.observation_dim, made.action_dim, len(made.split["train"]))
    _batches(train_config(profile, family, names[0]), small, HORIZON, seconds=0)
    for name, axis in AXES.items():
        for value in axis.values:
            tasks = value if name in ("tasks", "meta_batch") else len(made.split["train"])
            dims = Dims(made.observation_dim, made.action_dim, tasks)
            changes = axis.settings(value)
            at = {"axis": name, "value": value}
            if name in DATA_AXES:
                transitions = value if name == "transitions" else AXES["transitions"].values[0]
                config = train_config(profile, family, names[0])
                points.append(at | {"method": None} | _batches(config, dims, transitions, seconds))
                say(_told(points[-1]))
            if name == "transitions":
                continue  # the update does not see how many there are
            for method in names:
                config = replace_from_json(train_config(profile, family, method), changes)
                runs = value if name == "seeds" else 1
                program = programs.of(config, dims, runs)
                points.append(at | {"method": method} | program.measured(seconds))
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


class Program(NamedTuple):
    """One update of one run, or of several at once, compiled."""

    call: Callable[[], Any]
    facts: dict[str, float]

    def measured(self, seconds: float) -> dict[str, float]:
        return {"seconds": _median(self.call, seconds), **self.facts}


class Programs:
    """Compiling takes longer than measuring: axes share the programs that they have in common."""

    def __init__(self) -> None:
        self._known: dict[Any, Program] = {}

    def of(self, config: TrainConfig, dims: Dims, runs: int) -> Program:
        state = eqx.filter_eval_shape(init, config, dims)
        # Of the number of tasks most methods see nothing: then it is the same program.
        shapes = tuple((x.shape, x.dtype) for x in jax.tree.leaves(state))
        what = (config, shapes, runs)
        if what not in self._known:
            self._known[what] = _compiled(config, dims, runs)
        return self._known[what]


def _compiled(config: TrainConfig, dims: Dims, runs: int) -> Program:
    state, batch = init(config, dims), random_batch(config, dims)
    step = partial(update, config, key=run_key(0))
    flops = runs * product_flops(step, state, batch)
    inputs = [state, jax.tree.map(lambda x: x[None], batch), run_key(0)]
    if runs > 1:
        inputs = jax.tree.map(lambda x: jnp.stack([x] * runs), inputs)
    chunk: Any = make_chunk(config, several_runs=runs > 1)
    compiled = chunk.lower(*inputs).compile()
    facts = {
        "memory_mib": program_memory(compiled) / 2**20,
        "held_mib": runs * held_bytes(step, state, batch) / 2**20,
        "gflop": flops / 1e9,
    }
    return Program(lambda: jax.block_until_ready(compiled(*inputs)), facts)


def held_bytes(function: Callable, *arguments: Any) -> int:
    """Of what goes in and comes out, and of all matrix products, which wait for their gradients."""
    traced = jax.make_jaxpr(function)(*arguments)
    return _bytes([*traced.in_avals, *traced.out_avals]) + _product_bytes(traced.jaxpr)


def _product_bytes(jaxpr: jax_core.Jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            total += _bytes(v.aval for v in equation.outvars)
        parameters = jax.tree.leaves(list(equation.params.values()))
        parts = [getattr(p, "jaxpr", p) for p in parameters]  # with its constants, or without
        total += sum(_product_bytes(p) for p in parts if isinstance(p, jax_core.Jaxpr))
    return total


def _bytes(arrays: Iterable[Any]) -> int:
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in arrays)


def _batches(config: TrainConfig, dims: Dims, transitions: int, seconds: float) -> dict[str, Any]:
    """Of drawing the batches of one update from memory-mapped files."""
    with tempfile.TemporaryDirectory() as folder:
        before = _own_memory()
        data = _Logs(Path(folder), dims, transitions)
        sampler = Sampler(
            data, config.drawn, config.learner.extra_batches, seed=0, window=config.method.window
        )
        first = iter(range(10**9))
        took = _median(lambda: sampler.batches(next(first) * SAMPLED, SAMPLED), seconds)
        memory = (_own_memory() - before) / 2**20
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.npy")) / 2**20
        del data, sampler
    return {"seconds": took / SAMPLED, "memory_mib": max(memory, LEAST_MIB), "files_mib": size}


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
        found["memory"] = slope(values, [p["memory_mib"] for p in own])
        for what, counted in EXPECTED.items():
            expected = slope(values, [p[counted] for p in own]) if method else 0.0
            found[f"expected_{what}"] = expected
        yield found


def growth_table(result: dict[str, Any]) -> str:
    """In Markdown."""
    rows = [
        [
            AXES[g["axis"]].title,
            g["method"] or "*drawing batches*",
            f"{g['ends_ms'][0]:.1f} to {g['ends_ms'][1]:.1f}",
            f"{g['time']:.2f}",
            f"{g['expected_time']:.2f}",
            f"{g['memory']:.2f}",
            f"{g['expected_memory']:.2f}",
        ]
        for g in growth(result)
    ]
    head = ["size", "method", "ms per update"]
    head += ["slope of time", "expected", "slope of memory", "expected"]
    return markdown_table(head, rows, "llrrrrr") + "\n"


def paper_on_gpus(
    families: Sequence[str], names: Sequence[str], seeds: int = 5, gpus: Sequence[int] = (1, 8, 64)
) -> dict[str, Any]:
    """Time of the paper profile's trainings, if a GPU sustains TERAFLOPS on them.

    Counted products over an assumed speed: nothing of it was run. Evaluation, which simulates on
    CPUs, is not part of it, and the products of collecting are told apart.
    """
    hours = []
    for family in families:
        dims = make_family(family).dims
        for method in names:
            config = train_config("paper", family, method)
            state = eqx.filter_eval_shape(init, config, dims)
            step = partial(update, config, key=run_key(0))
            flops = product_flops(step, state, random_batch(config, dims))
            hours.append(flops * config.updates / (TERAFLOPS * 1e12) / 3600)
    jobs = sorted((h for h in hours for _ in range(seeds)), reverse=True)
    collecting = sum(collecting_flops(family) for family in families) / 1e18
    return {
        "kind": "ertrl-bench-paper-on-gpus",
        "families": list(families),
        "methods": list(names),
        "seeds": seeds,
        "assumed_teraflops": TERAFLOPS,
        "runs": len(jobs),
        "exaflop": sum(jobs) * 3600 * TERAFLOPS * 1e12 / 1e18,
        "exaflop_of_collecting": collecting,
        "hours": {str(n): _makespan(jobs, n) for n in gpus},
        "provenance": provenance(),
    }


def collecting_flops(family_name: str) -> float:
    """Matrix products of the paper profile's behaviour policies: SAC, one network per task."""
    family, config = make_family(family_name), collect_config("paper", family_name)
    assert isinstance(config, CollectConfig)
    dims, key = Dims(family.observation_dim, family.action_dim), jax.random.key(0)
    state = eqx.filter_eval_shape(lambda key: sac.init(config, dims, 0, key), key)
    rows = (jnp.zeros((config.batch_size, *width)) for width in dims.widths)
    told = jnp.zeros((config.batch_size, 0))
    flops = product_flops(partial(sac.update, config), state, Transitions(*rows), told, key)
    return flops * config.steps * config.updates_per_step * family.n_tasks


def _makespan(jobs: Sequence[float], machines: int) -> float:
    """Longest job first, each to the machine that is free first."""
    load = [0.0] * machines
    for job in jobs:
        load[load.index(min(load))] += job
    return max(load)


def describe_gpus(result: dict[str, Any]) -> str:
    """A table in Markdown."""
    rows = [[n, readable_duration(3600 * hours)] for n, hours in result["hours"].items()]
    return markdown_table(["GPUs", "all trainings"], rows, "rr") + "\n"


def page(result: dict[str, Any], paper: dict[str, Any]) -> str:
    return PAGE.format(
        least=LEAST_MIB,
        profile=result["profile"],
        family=result["family"],
        threads=result["provenance"]["threads"],
        table=growth_table(result),
        runs=paper["runs"],
        families=len(paper["families"]),
        methods=len(paper["methods"]),
        seeds=paper["seeds"],
        exaflop=paper["exaflop"],
        collecting=paper["exaflop_of_collecting"],
        teraflops=paper["assumed_teraflops"],
        gpus=describe_gpus(paper),
    )


def draw(
    result: dict[str, Any], what: str, counted: str, label: str, path: Path, scale: float = 1.0
) -> None:
    """One panel per size, a line per method; dashed: growth like that of what was counted."""
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for panel, (name, axis) in zip(panels.flat, AXES.items(), strict=True):
        here = [p for p in result["points"] if p["axis"] == name]
        for method in dict.fromkeys(p["method"] for p in here):
            own = [p for p in here if p["method"] == method]
            colour = PALETTE[list(methods()).index(method) if method else len(methods())]
            x, y = [p["value"] for p in own], [scale * p[what] for p in own]
            panel.plot(x, y, "o-", color=colour, label=method or "drawing batches", ms=4)
            growth = [p[counted] / own[0][counted] if method else 1.0 for p in own]
            panel.plot(x, [y[0] * g for g in growth], "--", color=colour, lw=0.9)
        panel.set(xscale="log", yscale="log", title=axis.title)
        sizes = sorted({p["value"] for p in here})
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    lines = {str(line.get_label()): line for p in panels.flat for line in p.get_lines()}
    named = {label: line for label, line in lines.items() if not label.startswith("_")}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=7, fontsize=9)
    figure.supylabel(label)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main(seconds: float, *, toy: bool, measuring: bool = True) -> None:
    names, families = tuple(methods()), paper_families()[1:]
    place, written = PLACE, ROOT / "docs" / "scaling.md"
    if toy:
        names, families = names[:2], families[:1]
        place = WORK / "scaling-toy"
        written = place / "scaling.md"
        AXES.update({name: AXES[name]._replace(values=values) for name, values in TOY.items()})
    if measuring:
        result = scaling(names, "laptop", "cheetah-vel", seconds)
        store.write_json(place / "scaling.json", result)
        milliseconds = "milliseconds per update"
        draw(result, "seconds", EXPECTED["time"], milliseconds, place / "seconds.png", 1e3)
        draw(result, "memory_mib", EXPECTED["memory"], "MiB", place / "memory.png")
    else:
        result = store.read_json(place / "scaling.json")
    paper = paper_on_gpus(families, names)
    store.write_json(place / "gpus.json", paper)
    store.write_bytes(written, page(result, paper).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--gpus", action="store_true", help="only the page's part on GPUs")
    parser.add_argument("--toy", action="store_true", help="two methods at small sizes")
    given = parser.parse_args()
    main(given.seconds, toy=given.toy, measuring=not given.gpus)

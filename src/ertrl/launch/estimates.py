"""What a grid takes before it starts: time, memory and disk of every job.

Disk and memory follow from the settings. Time comes from a short measurement, which is kept for the
next time: simulation and policies of each dataset, one training program of each family, and the
matrix products that the family's other ones have in comparison.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import equinox as eqx
import jax
from msgspec import Meta

from ertrl import store
from ertrl.bench import product_flops, random_batch, timed
from ertrl.collection.cost import estimate as estimate_collection
from ertrl.collection.cost import needs
from ertrl.config import fingerprint, to_json
from ertrl.errors import CorruptFileError
from ertrl.launch.jobs import Job
from ertrl.launch.place import Place
from ertrl.launch.plan import Cell, Data, Grid
from ertrl.shape import Name, Shape
from ertrl.text import markdown_table, readable_bytes, readable_duration
from ertrl.training.run import KEPT_CHECKPOINTS
from ertrl.training.update import init, make_chunk, run_key, update

START_SECONDS = 15.0
"""A process starts, reads its data and compiles its programs."""
PROBE_SECONDS_PER_TRANSITION = 0.06
PROGRAM_BYTES = 700 * 2**20
"""A process with JAX, MuJoCo and the programs of a laptop's run."""
MEASURED_SECONDS = 0.5
KIND = "ertrl-estimates"

Amount = Annotated[float, Meta(gt=0, le=1e30)]


class Notes(Shape):
    """estimates.json of a grid: what was measured on this machine, by what was measured."""

    kind: Literal["ertrl-estimates"]
    measured: dict[Name, Amount | dict[Name, Amount]]


class Cost(NamedTuple):
    seconds: float
    memory: int
    disk: int
    """Of what stays."""


class Estimator:
    """Knows what was measured on this machine, and measures what is missing."""

    def __init__(self, grid: Grid, notes: Path):
        """`notes` is the file that keeps measurements for the next time."""
        self._grid, self._notes = grid, notes
        try:
            known = store.read_json(notes, Notes)["measured"] if notes.exists() else {}
        except CorruptFileError as damage:
            told = str(damage).rstrip(".")
            raise CorruptFileError(f"{told}. Remove it: it is measured again.") from None
        self._known: dict[str, Any] = known

    def _measured(self, what: Any, measure: Callable[[], Any], *parts: str) -> Any:
        """What the notes say, a number or these parts; it is measured where they do not."""
        name = fingerprint({"threads": self._grid.threads, "what": what})
        known = self._known.get(name)
        if known is None or {*(known if isinstance(known, dict) else ())} != {*parts}:
            self._known[name] = measure()
            store.write_json(self._notes, {"kind": KIND, "measured": self._known})
        return self._known[name]

    def _simulation(self, data: Data) -> dict[str, float]:
        family, config = self._grid.family(data), self._grid.collect_config(data)

        def measure() -> dict[str, float]:
            found = estimate_collection(family, config, self._notes, MEASURED_SECONDS)
            speed = found["measured"]["recorded_env_steps_per_second"]
            return {
                # Of one core: other jobs have the one that a collection might simulate on.
                "seconds": sum(found["seconds_by_part"].values()),
                "memory_bytes": found["memory_bytes"],
                "steps_per_second": speed,
            }

        what = ["collect", data.family, family.options, to_json(config)]
        return self._measured(what, measure, "seconds", "memory_bytes", "steps_per_second")

    def collection(self, data: Data) -> Cost:
        measured, config = self._simulation(data), self._grid.collect_config(data)
        disk = needs(self._grid.family(data), config)["disk"]["dataset"]
        return Cost(measured["seconds"], int(measured["memory_bytes"]), disk)

    def training(self, cell: Cell) -> Cost:
        program = self._program(cell)
        config, family = self._grid.train_config(cell), self._grid.family(cell.data)
        updating = config.updates * program["flops"] / self._flops_per_second(cell)
        episodes = config.evaluation.episodes * config.evaluation.repeats * family.n_tasks
        # Three protocols, of which one has a single episode, and the oracle.
        steps = 2.5 * episodes * family.horizon
        evaluations = -(-config.updates // config.evaluate_every)
        evaluating = evaluations * steps / self._simulation(cell.data)["steps_per_second"]
        return Cost(
            START_SECONDS + updating + evaluating,
            PROGRAM_BYTES + 4 * program["weights"] + 3 * program["inputs"],
            KEPT_CHECKPOINTS * program["weights"],
        )

    def _program(self, cell: Cell) -> dict[str, int]:
        """Products of an update, bytes of all weights, bytes of the batches of a call."""
        config, dims = self._grid.train_config(cell), self._grid.family(cell.data).dims

        def count() -> dict[str, int]:
            state, batch = eqx.filter_eval_shape(init, config, dims), random_batch(config, dims)
            step = partial(update, config, key=run_key(0))
            weights = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
            inputs = sum(x.nbytes for x in jax.tree.leaves(batch)) * config.updates_per_call
            flops = int(product_flops(step, state, batch))
            return {"flops": flops, "weights": weights, "inputs": inputs}

        names = [config.method.name, config.learner.name]
        what = [*names, dims, to_json(replace(config, seed=0))]
        return self._measured(what, count, "flops", "weights", "inputs")

    def _flops_per_second(self, cell: Cell) -> float:
        """Of the first training on this family; the others go by it."""
        grid = self._grid
        like = next(c for c in grid.cells if c.data.family == cell.data.family)
        config, dims = grid.train_config(like), self._grid.family(like.data).dims

        def measure() -> float:
            state, batch = init(config, dims), random_batch(config, dims)
            calls = 10
            stacked = jax.tree.map(lambda x: jax.numpy.stack([x] * calls), batch)
            call = partial(make_chunk(config), state, stacked, run_key(0))
            timed(call)  # compiles
            taken: list[float] = []
            while sum(taken) < MEASURED_SECONDS:
                taken.append(timed(call))
            return self._program(like)["flops"] * calls * len(taken) / sum(taken)

        sizes = [config.learner.name, to_json(config.learner), to_json(config.sampling)]
        return self._measured(["flops/s", dims, *sizes], measure)

    def probing(self) -> Cost:
        seconds = START_SECONDS + PROBE_SECONDS_PER_TRANSITION * self._grid.probe_transitions
        return Cost(seconds, PROGRAM_BYTES, 2**16)


def with_costs(grid: Grid, place: Place) -> list[Job]:
    """The jobs of a grid, with estimates."""
    estimator = Estimator(grid, place.home / "estimates.json")

    def cost(job: Job, what: Data | Cell) -> Cost:
        if isinstance(what, Data):
            return estimator.collection(what)
        return estimator.probing() if job.name.startswith("probe-") else estimator.training(what)

    return [replace(job, **cost(job, what)._asdict()) for job, what in grid.subjects().values()]


def describe_plan(jobs: Sequence[Job], missing: Sequence[Job], slots: int) -> str:
    """The plan as a person reads it: by kind of job, then what all of it takes."""
    rows = []
    for kind in ("collect", "train", "probe"):
        own = [job for job in jobs if job.name.startswith(kind)]
        to_do = [job for job in missing if job.name.startswith(kind)]
        if own:
            seconds = sum(job.seconds for job in to_do)
            most = max((job.memory for job in to_do), default=0)
            disk = sum(job.disk for job in to_do)
            cells = [readable_duration(seconds), readable_bytes(most), readable_bytes(disk)]
            rows.append([kind, str(len(own)), str(len(to_do)), *cells])
    head = ["job", "all", "to do", "time of all", "memory of one", "disk of all"]
    seconds = sum(job.seconds for job in missing)
    wall = max(seconds / slots, longest_chain(missing))
    whole = f"{len(missing)} of {len(jobs)} jobs to do: about {readable_duration(wall)}"
    return "\n".join([markdown_table(head, rows, "lrrrrr"), f"{whole}, {slots} at once."])


def longest_chain(jobs: Sequence[Job]) -> float:
    """Seconds of jobs that wait for each other: no number of machines makes it shorter."""
    ends: dict[str, float] = {}
    for job in jobs:  # each after those it needs
        ends[job.name] = job.seconds + max((ends.get(name, 0.0) for name in job.after), default=0.0)
    return max(ends.values(), default=0.0)

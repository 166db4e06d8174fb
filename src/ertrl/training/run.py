"""A run on disk: what it is, how far it is, what it measured.

runs/point-robot-er-trl-td3bc-s0-1a2b3c4d5e/
config.json                what determines the run, sealed
contents.json              which of the numbered files below there must be, sealed
metrics.jsonl              one line per chunk of updates and per evaluation: source of truth
checkpoints/00001000.*     safetensors and its sealed description
evaluations/00005000.json  per-task returns of all protocols, sealed
probes/00005000.json       what z knows of task and behaviour policy, sealed
divergences/00001234.*     the update that made a NaN: state, batch and key
train.log                  error output, where it was trained among others
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from ertrl import store
from ertrl.config import fingerprint, replace_from_json, to_json
from ertrl.data import Dataset, Sampler
from ertrl.data.scaling import Scaling
from ertrl.errors import ConfigError, CorruptFileError, ErtrlError, RunError
from ertrl.evaluation import Agent, warn_of_scale
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.provenance import provenance
from ertrl.provenance import threads as process_threads
from ertrl.runtime import ActionRange
from ertrl.text import Described
from ertrl.training.beforehand import check_memory, check_own_code, own_code, try_own_parts
from ertrl.training.config import TrainConfig
from ertrl.training.metrics import MetricsLog, check_metrics, read_metrics
from ertrl.training.records import CONTENTS, FORMAT, ArrayRecords, Records, new_contents
from ertrl.training.shapes import RunSpec
from ertrl.training.update import TrainState, blank_batch, blank_state, init, not_finite
from ertrl.types import Dims, TaskBatch

KEPT_CHECKPOINTS = 2


class Run(Described):
    """A run directory."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not (self.path / "config.json").exists():
            raise RunError(_no_run(self.path))
        self.spec = store.read_json(self.path / "config.json", RunSpec)
        self.family: str = self.spec["family"]
        self.dims = Dims(**self.spec["dims"])
        try:
            method, learner = get_method(self.spec["method"]), get_learner(self.spec["learner"])
        except ConfigError as error:
            raise RunError(
                f"{self.path}: {error} If it is your own, name its file with --plugin FILE.py, or "
                "in Python give its class to ertrl.register"
            ) from None
        try:
            self.config = replace_from_json(TrainConfig(method(), learner()), self.spec["config"])
            self.config.validate()
        except ConfigError as error:
            raise CorruptFileError(f"{self.path / 'config.json'}, config: {error}") from None
        self.method, self.learner = self.config.method, self.config.learner
        stored = self.spec.get("scaling")
        self.scaling = None if stored is None else Scaling.of_json(stored)
        self.action_range = ActionRange.of_json(self.spec, self.dims.action)
        evaluate = f"run `ertrl evaluate {self.path}"
        self.checkpoints = ArrayRecords(
            self, "checkpoints", "checkpoint", "train it first", "weights_sha256"
        )
        self.evaluations = Records(self, "evaluations", "evaluation", f"{evaluate}`")
        self.probes = Records(self, "probes", "probes", f"{evaluate} --probes`")
        self.divergences = ArrayRecords(
            self, "divergences", "divergence", "no update of it failed", "arrays_sha256"
        )

    def _facts(self) -> dict[str, Any]:
        saved = self.checkpoints.steps()
        return {
            "path": self.path,
            "family": self.family,
            "method": self.method.name,
            "learner": self.learner.name,
            "seed": self.config.seed,
            "updates": f"{saved[-1] if saved else 0} of {self.config.updates}",
            "evaluated_at": self.evaluations.steps(),
        }

    @classmethod
    def of(cls, run: "str | Path | Run") -> "Run":
        """A run as it is, or the one in this folder."""
        if not isinstance(run, (str, os.PathLike, Run)):
            raise ConfigError(
                f"one run was expected, as its folder or an ertrl.Run, got a {type(run).__name__}; "
                "several are taken one after the other"
            )
        return run if isinstance(run, Run) else cls(run)

    @property
    def name(self) -> str:
        """The run's identity: its directory may be renamed, this stays."""
        return self.spec["name"]

    @staticmethod
    def identity(
        family: str, dims: Dims, dataset: str, config: TrainConfig, threads: int = 1
    ) -> dict[str, Any]:
        """All that determines a run on the dataset with this fingerprint."""
        return {
            "family": family,
            "dims": dims._asdict(),
            "dataset": dataset,
            "method": config.method.name,
            "learner": config.learner.name,
            "config": to_json(config),
            # Several threads add in another order: that is another run.
            **({} if threads == 1 else {"threads": threads}),
        }

    @staticmethod
    def name_of(identity: dict[str, Any]) -> str:
        """For people what it is, and ten digits of everything."""
        words = [identity[key] for key in ("family", "method", "learner")]
        return "-".join([*words, f"s{identity['config']['seed']}", fingerprint(identity)])

    @classmethod
    def create(
        cls,
        root: str | Path,
        dataset: Dataset,
        config: TrainConfig,
        profile: str = "custom",
        variant: str = "",
        threads: int | None = None,
    ) -> "Run":
        """Open the run of this configuration, making its directory if it is new.

        `profile` and its `variant` are notes of where the configuration comes from. `threads` are
        those of the process that will train it, where it is another one. What would stop a new run
        is found out now, not after hours of training.
        """
        config.validate()
        threads = process_threads() if threads is None else threads
        identity = cls.identity(dataset.family, dataset.dims, dataset.fingerprint, config, threads)
        name = cls.name_of(identity)
        path = Path(root) / name
        if not (path / "config.json").exists():
            Sampler(dataset, config.sampling, extra_batches=0, seed=0)
            try_own_parts(config, dataset.dims)  # first: it says what is wrong with their init
            check_memory(config, dataset.dims)
            if dataset.has_simulator:
                warn_of_scale(dataset)
            spec = {
                "kind": "ertrl-run",
                "format": FORMAT,
                "name": name,
                **identity,
                **({"scaling": Scaling.of(dataset).to_json()} if config.standardise else {}),
                **{k: v for k, v in dataset.manifest.items() if k in ("action_low", "action_high")},
                "dataset_path": str(dataset.path.resolve()),
                "profile": profile,
                "variant": variant,
                **({"code": code} if (code := own_code(config)) else {}),
                "provenance": {**provenance(), "threads": threads},
            }
            # Two may begin the same run at once: the slower must not empty the other's contents.
            with store.exclusive(path / "evaluations", wait=True):
                if not (path / "config.json").exists():
                    store.write_json(path / CONTENTS, new_contents(name))
                    store.write_json(path / "config.json", spec)
        return cls(path)

    def open_dataset(self, path: str | Path | None = None) -> Dataset:
        """The dataset the run was trained on; `path` where it has moved."""
        place = Path(path or self.spec["dataset_path"])
        if path is None and not place.exists():
            raise RunError(f"the dataset of {self.name} is no longer at {place}; give --data DIR")
        dataset = Dataset(place)
        if dataset.fingerprint != self.spec["dataset"]:
            raise RunError(
                f"{dataset.path} (content {dataset.fingerprint}) is not the dataset that "
                f"{self.name} was trained on (content {self.spec['dataset']}); "
                "give the right one with --data"
            )
        return dataset

    # --- checkpoints ---

    def save(self, state: TrainState, log: MetricsLog, runs_in_program: int = 1) -> None:
        """Write a checkpoint, then drop old ones."""
        step, length = int(state.step), log.flush()
        facts = {
            "metrics_bytes": length,
            "metrics_sha256": store.sha256(store.read_bytes(self.metrics_path)[:length]),
            **({} if runs_in_program == 1 else {"runs_in_program": runs_in_program}),
        }
        kept = sorted({*self.checkpoints.steps(), step})
        self.checkpoints.write(step, state, facts, drop=kept[:-KEPT_CHECKPOINTS])

    def fresh(self) -> TrainState:
        return init(self.config, self.dims)

    def load(self, step: int | None = None) -> tuple[TrainState, int]:
        """A checkpoint (the newest by default) and the length of metrics.jsonl at its time."""
        step = self.checkpoints.chosen(step)
        known = self.checkpoints.steps()
        if step not in known:
            raise RunError(f"{self.path} has checkpoints at updates {known}, not at {step}")
        description, blob, weights = self._checked(step)
        state = store.tree_from_bytes(blob, blank_state(self.config, self.dims), weights)
        if name := next(not_finite(state), ""):
            raise CorruptFileError(f"{weights}: {name} holds NaN or infinite numbers")
        if int(state.step) != step:
            raise CorruptFileError(f"{weights} holds update {int(state.step)}, expected {step}")
        return state, description["metrics_bytes"]

    def _checked(self, step: int) -> tuple[dict[str, Any], bytes, Path]:
        """A checkpoint's description and bytes, and where they are, compared with checksums."""
        found = self.checkpoints.read_arrays(step)
        at_end = step >= self.config.updates and not store.in_use(self.path)
        check_metrics(self.metrics_path, found[0], at_end=at_end)
        return found

    def verify(self) -> int:
        """Check every file but the log's newest lines; returns how many files are whole."""
        count = 1 + (self.path / CONTENTS).exists() + self.metrics_path.exists()
        self.metrics()
        for records, check in (
            (self.checkpoints, self.load),
            (self.evaluations, self.evaluations.read),
            (self.probes, self.probes.read),
            (self.divergences, self.load_divergence),
        ):
            records.check_folder()
            count += records.check_each(check) * len(records.suffixes)
        return count

    def check_contents(self) -> None:
        """Whether the files are there that the run lists, and no others."""
        for records in (self.checkpoints, self.evaluations, self.probes, self.divergences):
            records.check_folder()

    def check_seals(self) -> None:
        """As `verify`, but without looking into arrays: for whoever looks often."""
        self.checkpoints.check_each(self._checked)
        self.evaluations.check_each(self.evaluations.read)
        self.probes.check_each(self.probes.read)

    # --- an update that failed ---

    def keep_divergence(self, state: TrainState, batch: TaskBatch, key: Any, what: str) -> None:
        """Keep what one update needs to fail again: the state before it, its batch and the key."""
        arrays = state, batch, jax.random.key_data(key)
        facts = {"what": what, "provenance": provenance()}
        self.divergences.write(int(state.step) + 1, arrays, facts)

    def load_divergence(self, step: int | None = None) -> tuple[TrainState, TaskBatch, Any, str]:
        """The newest update that failed, or that of a step: state, batch, key, and what failed."""
        step = self.divergences.chosen(step)
        description, blob, file = self.divergences.read_arrays(step)
        like = (
            blank_state(self.config, self.dims),
            blank_batch(self.config, self.dims),
            jax.ShapeDtypeStruct((2,), "uint32"),
        )
        state, batch, key = store.tree_from_bytes(blob, like, file)
        return state, batch, jax.random.wrap_key_data(key), description["what"]

    def agent(self, state: TrainState) -> Agent:
        states = state.method, state.learner
        return Agent(self.config, self.dims, *states, self.scaling, self.action_range)

    # --- metrics and evaluations ---

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    def metrics(self) -> list[dict[str, Any]]:
        """All complete lines of metrics.jsonl."""
        return read_metrics(self.metrics_path)

    def add_evaluation(self, result: dict[str, Any]) -> dict[str, Any]:
        """Keep an evaluation, together with the protocols that others measured at this step."""
        path = self.evaluations.path(result["step"])
        with self.evaluations.changing(result["step"]):
            if path.exists():
                known = self.evaluations.read(result["step"])
                result = {**result, "protocols": {**known["protocols"], **result["protocols"]}}
            store.write_json(path, result)
        return result

    def add_probes(self, result: dict[str, Any]) -> None:
        with self.probes.changing(result["step"]):
            store.write_json(self.probes.path(result["step"]), result)


def _no_run(path: Path) -> str:
    """What a folder is that is no run, as far as that can be seen."""
    if (path / "agent.json").exists():
        return f"{path} is an exported agent, not a run: load it with ertrl.runtime.load"
    if inside := sorted(path.glob("*/config.json")):
        return f"{path} is a folder of runs; name one of them, such as {inside[0].parent}"
    return (
        f"{path} is not a run: it has no config.json. "
        "Start one with `ertrl train METHOD --data DIR`."
    )


def lengthen(run: Run, dataset: Dataset, updates: int) -> Run:
    """The run of the same configuration with more updates, beside this one, as far as this one is.

    It has the weights, log and measurements of one that was as long from the start. Where this run
    ended between two regular evaluations, the one that closed it is there, too.
    """
    if updates <= run.config.updates:
        raise ConfigError(
            f"{run.name} has {run.config.updates} updates; to train it further, ask for more than "
            f"that, not for {updates}"
        )
    if updates % (call := run.config.updates_per_call):
        raise ConfigError(
            f"{run.name} takes {call} updates at once, so it has a multiple of that, got "
            f"{updates}: give --updates {-(-updates // call) * call}"
        )
    if run.config.decay:
        raise ConfigError(
            f"{run.name} cannot be trained further: its step size falls to zero over its "
            f"{run.config.updates} updates (decay {run.config.decay:g}). Train a new run with "
            f"--updates {updates}"
        )
    check_own_code(run.path, run.spec, run.config)
    config = replace(run.config, updates=updates)
    origin = run.spec["profile"], run.spec["variant"], run.spec.get("threads", 1)
    longer = Run.create(run.path.parent, dataset, config, *origin)
    state, log_bytes = run.load()
    with store.exclusive(longer.path):
        if longer.checkpoints.steps():
            return longer  # it has begun before
        logged = store.read_bytes(run.metrics_path)[:log_bytes]
        store.write_bytes(longer.metrics_path, logged)
        own = {"run": longer.name}
        for step in run.evaluations.steps():
            longer.add_evaluation(run.evaluations.read(step) | own)
        for step in run.probes.steps():
            longer.add_probes(run.probes.read(step) | own)
        log = MetricsLog(longer.metrics_path, log_bytes)
        together = run.checkpoints.read(int(state.step)).get("runs_in_program", 1)
        longer.save(state, log, together)  # last: from now on it is as far
        log.close()
    return longer


Runs = str | Path | Run | Sequence[str | Path | Run]
"""Runs, or folders of them."""


def each_run(runs: Runs) -> Iterator[tuple[Path | Run, bool]]:
    """What is to be opened, and whether it was named itself or is in a folder that was."""
    for given in [runs] if isinstance(runs, (str, Path, Run)) else runs:
        inside = [] if isinstance(given, Run) else sorted(Path(given).glob("*/config.json"))
        if isinstance(given, Run):
            yield given, True
        elif Path(given, "config.json").exists() or not inside:
            yield Path(given), True
        else:
            yield from ((file.parent, False) for file in inside)


def open_runs(runs: Runs) -> tuple[list[Run], list[str]]:
    """Open runs; a folder that is no run itself stands for the runs in it.

    One in a folder that cannot be opened, for example because its method is in a file that nobody
    named, does not stop the others: a warning says why, and so does the second list.
    """
    opened: dict[Path, Run] = {}
    problems: dict[str, Exception] = {}
    for given, named in each_run(runs):
        try:
            run = Run.of(given)
        except (ErtrlError, OSError) as problem:
            if named:
                raise
            problems[str(problem)] = problem
        else:
            opened[run.path.resolve()] = run
    if not opened:
        nothing = RunError("there is no run to look at; make one with `ertrl train`")
        raise next(iter(problems.values()), nothing)
    for problem in problems:
        warnings.warn(f"a run is left out. {problem}", stacklevel=2)
    return list(opened.values()), list(problems)

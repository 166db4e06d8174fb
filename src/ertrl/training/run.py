"""A run on disk: what it is, how far it is, what it measured.

runs/point-robot-er-trl-td3bc-s0-1a2b3c4d5e/
config.json                what determines the run, sealed
metrics.jsonl              one line per chunk of updates and per evaluation: source of truth
checkpoints/00001000.*     safetensors and its sealed description
evaluations/00005000.json  per-task returns of all protocols, sealed
probes/00005000.json       what z knows of task and behaviour policy, sealed
train.log                  error output, where it was trained among others
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx

from ertrl import store
from ertrl.config import fingerprint, replace_from_json, to_json
from ertrl.data import Dataset, Sampler
from ertrl.data.scaling import ActionRange, Scaling
from ertrl.errors import ConfigError, CorruptFileError, RunError
from ertrl.evaluation import Agent, warn_of_scale
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.provenance import provenance
from ertrl.text import Described
from ertrl.training.config import TrainConfig
from ertrl.training.update import TrainState, init
from ertrl.types import Dims

KEPT_CHECKPOINTS = 2


class Records:
    """Sealed files of a run, one per number of updates."""

    def __init__(self, run: "Run", folder: str, what: str, remedy: str):
        """`what` they are, and how one gets the first of them."""
        self._run, self._what, self._remedy = run, what, remedy
        self.folder = run.path / folder

    def steps(self) -> list[int]:
        """Numbers of updates, in order; whatever else lies in the folder is not ours."""
        files = self.folder.glob("*.json")
        return sorted(int(p.stem) for p in files if re.fullmatch(r"\d{8}", p.stem))

    def newest(self) -> int:
        if not (steps := self.steps()):
            raise RunError(f"{self._run.path} has no {self._what} yet; {self._remedy}")
        return steps[-1]

    def path(self, step: int) -> Path:
        """Where the file after so many updates lives."""
        return self.folder / f"{step:08d}.json"

    def read(self, step: int | None = None) -> dict[str, Any]:
        """A file, by default the newest: this run's at this step, not one put in its place."""
        path = self.path(self.newest() if step is None else step)
        content = store.read_json(path, f"ertrl-{self._what}")
        found, expected = (content["run"], content["step"]), (self._run.name, int(path.stem))
        if found != expected:
            raise CorruptFileError(f"{path} belongs to (run, step) {found}, not to {expected}")
        return content


class Run(Described):
    """A run directory."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not (self.path / "config.json").exists():
            raise RunError(
                f"{self.path} is not a run: it has no config.json. "
                "Start one with `ertrl train METHOD --data DIR`."
            )
        self.spec = store.read_json(self.path / "config.json", "ertrl-run")
        self.family: str = self.spec["family"]
        self.dims = Dims(**self.spec["dims"])
        blank = TrainConfig(get_method(self.spec["method"])(), get_learner(self.spec["learner"])())
        self.config = replace_from_json(blank, self.spec["config"])
        self.method, self.learner = self.config.method, self.config.learner
        stored = self.spec.get("scaling")
        self.scaling = None if stored is None else Scaling.of_json(stored)
        self.action_range = ActionRange.of_json(self.spec, self.dims.action)
        evaluate = f"run `ertrl evaluate {self.path}"
        self.checkpoints = Records(self, "checkpoints", "checkpoint", "train it first")
        self.evaluations = Records(self, "evaluations", "evaluation", f"{evaluate}`")
        self.probes = Records(self, "probes", "probes", f"{evaluate} --probes`")

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
        return run if isinstance(run, Run) else cls(run)

    @property
    def name(self) -> str:
        """The run's identity: its directory may be renamed, this stays."""
        return self.spec["name"]

    @classmethod
    def create(
        cls,
        root: str | Path,
        dataset: Dataset,
        config: TrainConfig,
        profile: str = "custom",
        variant: str = "",
    ) -> "Run":
        """Open the run of this configuration, making its directory if it is new.

        `profile` and its `variant` are notes of where the configuration comes from. What
        would stop a new run is found out now, not after hours of training.
        """
        config.validate()
        method, learner = config.method.name, config.learner.name
        identity = {
            "family": dataset.family,
            "dims": dataset.dims._asdict(),
            "dataset": dataset.fingerprint,
            "method": method,
            "learner": learner,
            "config": to_json(config),
        }
        name = f"{dataset.family}-{method}-{learner}-s{config.seed}-{fingerprint(identity)}"
        path = Path(root) / name
        if not (path / "config.json").exists():
            Sampler(dataset, config.sampling, extra_batches=0, seed=0)
            eqx.filter_eval_shape(init, config, dataset.dims)
            if dataset.has_simulator:
                warn_of_scale(dataset)
            spec = {
                "kind": "ertrl-run",
                "name": name,
                **identity,
                **({"scaling": Scaling.of(dataset).to_json()} if config.standardise else {}),
                **{k: v for k, v in dataset.manifest.items() if k in ("action_low", "action_high")},
                "dataset_path": str(dataset.path.resolve()),
                "profile": profile,
                "variant": variant,
                "provenance": provenance(),
            }
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

    def save(self, state: TrainState, log: "MetricsLog") -> None:
        """Write a checkpoint, then drop old ones. It counts from its description on."""
        step, metrics_bytes = int(state.step), log.flush()
        blob = store.tree_to_bytes(state)
        path = self.checkpoints.path(step)
        store.write_bytes(path.with_suffix(".safetensors"), blob)
        description = {
            "kind": "ertrl-checkpoint",
            "step": step,
            "run": self.name,
            "weights_sha256": store.sha256(blob),
            "metrics_bytes": metrics_bytes,
            "metrics_sha256": store.sha256(store.read_bytes(self.metrics_path)[:metrics_bytes]),
        }
        store.write_json(path, description)
        for old in map(self.checkpoints.path, self.checkpoints.steps()[:-KEPT_CHECKPOINTS]):
            for suffix in (".json", ".safetensors"):
                old.with_suffix(suffix).unlink(missing_ok=True)

    def fresh(self) -> TrainState:
        return init(self.config, self.dims)

    def load(self, step: int | None = None) -> tuple[TrainState, int]:
        """A checkpoint (the newest by default) and the length of metrics.jsonl at its time."""
        step = self.checkpoints.newest() if step is None else step
        known = self.checkpoints.steps()
        if step not in known:
            raise RunError(f"{self.path} has checkpoints at updates {known}, not at {step}")
        description = self.checkpoints.read(step)
        weights = self.checkpoints.path(step).with_suffix(".safetensors")
        blob = store.read_bytes(weights)
        if store.sha256(blob) != description["weights_sha256"]:
            raise CorruptFileError(
                f"{weights} is damaged: its SHA-256 differs from the recorded one"
            )
        length = description["metrics_bytes"]
        logged = store.read_bytes(self.metrics_path)[:length]
        if store.sha256(logged) != description["metrics_sha256"]:
            raise CorruptFileError(
                f"{self.metrics_path} is damaged: its first {length} bytes are not those that were "
                "logged up to this checkpoint"
            )
        return store.tree_from_bytes(blob, self.fresh(), weights), length

    def verify(self) -> int:
        """Check every file but the log's newest lines; returns how many files are whole."""
        saved = [self.load(step) for step in self.checkpoints.steps()]
        measured = [r.read(step) for r in (self.evaluations, self.probes) for step in r.steps()]
        return 1 + 2 * len(saved) + len(measured)

    def agent(self, state: TrainState) -> Agent:
        states = state.method, state.learner
        return Agent(self.config, self.dims, *states, self.scaling, self.action_range)

    # --- metrics and evaluations ---

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    def metrics(self) -> list[dict[str, Any]]:
        """All complete lines of metrics.jsonl."""
        try:
            lines = self.metrics_path.read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def add_evaluation(self, result: dict[str, Any]) -> dict[str, Any]:
        """Keep an evaluation, together with the protocols that others measured at this step."""
        path = self.evaluations.path(result["step"])
        with store.exclusive(path.parent, wait=True):
            if path.exists():
                known = self.evaluations.read(result["step"])
                result = {**result, "protocols": {**known["protocols"], **result["protocols"]}}
            store.write_json(path, result)
        return result


Runs = str | Path | Run | Sequence[str | Path | Run]
"""Runs, or folders of them."""


def open_runs(runs: Runs) -> list[Run]:
    """Open runs; a folder that is no run itself stands for the runs in it."""
    opened: dict[Path, Run] = {}
    for given in [runs] if isinstance(runs, (str, Path, Run)) else runs:
        if isinstance(given, Run):
            found = [given]
        else:
            path = Path(given)
            inside = sorted(p.parent for p in path.glob("*/config.json"))
            is_run = (path / "config.json").exists()
            found = [Run(p) for p in ([path] if is_run or not inside else inside)]
        opened |= {run.path.resolve(): run for run in found}
    if not opened:
        raise RunError("there is no run to look at; make one with `ertrl train`")
    return list(opened.values())


class MetricsLog:
    """metrics.jsonl, cut back on resume to what the checkpoint knows."""

    def __init__(self, run: Run, keep_bytes: int):
        self._file = open(run.metrics_path, "ab")  # noqa: SIM115
        self._file.truncate(keep_bytes)

    def write(self, line: dict[str, Any]) -> None:
        """Append one line, for others to see at once; it is safe on the disk after `flush`."""
        self._file.write((json.dumps(line, allow_nan=False) + "\n").encode())
        self._file.flush()

    def flush(self) -> int:
        """Bring all lines to the disk; returns the file's length."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self.flush()
        self._file.close()


def lengthen(run: Run, dataset: Dataset, updates: int) -> Run:
    """The run of the same configuration with more updates, beside this one, as far as this one is.

    It has the weights, log and measurements of one that was as long from the start.
    """
    if updates <= run.config.updates:
        raise ConfigError(
            f"{run.name} has {run.config.updates} updates; to train it further, ask for more than "
            f"that, not for {updates}"
        )
    config = replace(run.config, updates=updates)
    longer = Run.create(run.path.parent, dataset, config, run.spec["profile"], run.spec["variant"])
    state, log_bytes = run.load()
    with store.exclusive(longer.path):
        if longer.checkpoints.steps():
            return longer  # it has begun before
        logged = store.read_bytes(run.metrics_path)[:log_bytes]
        store.write_bytes(longer.metrics_path, logged)
        own = {"run": longer.name}
        for old, new in ((run.evaluations, longer.evaluations), (run.probes, longer.probes)):
            for step in old.steps():
                store.write_json(new.path(step), old.read(step) | own)
        log = MetricsLog(longer, log_bytes)
        longer.save(state, log)  # last: from now on it is as far
        log.close()
    return longer

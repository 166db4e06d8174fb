"""Collect a dataset: train, record from poor to expert, measure the references, seal."""

import shutil
import time
from itertools import chain
from pathlib import Path
from typing import Any

from ertrl import store
from ertrl.collection.config import BehaviourConfig, ScriptedConfig
from ertrl.collection.cost import check_disk, check_memory, describe_needs, needs
from ertrl.collection.savepoints import RowSeal, Savepoint, Savepoints, sweep, unfinished_folder
from ertrl.collection.scripted import ScriptedPolicies
from ertrl.collection.trainer import PolicyTrainer
from ertrl.config import to_json
from ertrl.data import Dataset, DatasetWriter, Description, TaskRecord
from ertrl.envs import Family, anchor_returns, mean_returns, success_rates
from ertrl.errors import ConfigError, Interrupted, SimulationError, TrainingDiverged
from ertrl.progress import Meter, ProgressStyle, say
from ertrl.provenance import device_text
from ertrl.signals import stop_signals
from ertrl.types import Episodes

SECONDS_BETWEEN_SAVES = 60.0
SECONDS_BEFORE_A_RECORDING_IS_SAVED = 10.0
SHARE_OF_TIME_FOR_SAVING = 0.05


def collect(
    family: Family,
    config: BehaviourConfig,
    path: Path,
    progress: ProgressStyle = "auto",
    references: Dataset | None = None,
) -> Dataset:
    """Collect a dataset of the whole family into `path`; one that was stopped goes on.

    `references` is a dataset of the same family whose expert returns are to be this one's, too.
    """
    config.validate()
    if sorted(chain(*family.split.values())) != list(range(family.n_tasks)):
        raise ConfigError(f"{family.name}: every task must stand in exactly one group of the split")
    identity = {
        "family": family.name,
        "family_options": family.options,
        "config": to_json(config),
        "references": references.fingerprint if references else None,
    }
    folder = unfinished_folder(path)
    with store.exclusive(folder), stop_signals() as stop_signal:
        savepoints, collection = Savepoints(folder, identity, family), None
        try:
            wanted = needs(family, config)
            check_memory(family, config, wanted)
            point = savepoints.load()
            if point is None:
                check_disk(wanted, path)
                needed = f"{describe_needs(wanted)}; on {device_text()}"
                hint = "`ertrl collect --dry-run` tells how long it takes"
                say(f"collect {family.name}: {needed}. {hint}", progress)
            filled = point and point.facts["episodes"]["count"]
            collection = _Collection(family, config, path, savepoints, filled)
            if point is not None:
                collection.resume(point)
            collection.train(stop_signal, progress)
            collection.finish(references)
        except BaseException as error:
            # A policy or a simulation that diverged would do so again.
            discard = isinstance(error, (TrainingDiverged, SimulationError)) or savepoints.empty
            if collection:
                collection.writer.abandon() if discard else collection.writer.pause()
            if discard:
                shutil.rmtree(folder, ignore_errors=True)
            raise
    sweep(path)
    if stop_signal:  # too late to stop the collection, but whoever called it is to stop, too
        raise Interrupted(
            f"stopped; {path} is complete. The same command opens it.", stop_signal[0]
        )
    return Dataset(path, verify=False)


class _Collection:
    """One collection under way: the trainer, what it recorded, and how to save both."""

    def __init__(
        self,
        family: Family,
        config: BehaviourConfig,
        path: Path,
        savepoints: Savepoints,
        filled: list[int] | None,
    ):
        """`filled` says how many episodes of each task are there already."""
        self.family, self.config = family, config
        self._savepoints = savepoints
        self._curve: list[dict[str, Any]] = []
        self._begun = self._saved = time.monotonic()
        self._save_took = 0.0
        self._seconds_before = 0.0
        if isinstance(config, ScriptedConfig):
            self._trainer = ScriptedPolicies(family, config)
        else:
            self._trainer = PolicyTrainer(family, config, savepoints.folder / "replay")
        per_task = config.checkpoints * config.episodes_per_checkpoint
        episodes = dict.fromkeys(range(family.n_tasks), per_task)
        self.writer = DatasetWriter(path, Description.of(family), episodes, filled)
        self._replay_seal = RowSeal(self._trainer.replay.rows, family.n_tasks)
        self._episode_seal = RowSeal(self.writer.rows, family.n_tasks)

    def resume(self, point: Savepoint) -> None:
        trainer, folder = self._trainer, self._savepoints.folder
        self._savepoints.check_loop(point, trainer.progress())
        transitions = point.facts["transitions"]
        trainer.replay.resume(transitions["count"], point.facts["outcome_dim"])
        self._replay_seal.verify(transitions, folder)
        self._episode_seal.verify(point.facts["episodes"], folder)
        trainer.state = self._savepoints.load_state(point.block, trainer.state)
        trainer.resume(point.loop)
        self._curve, self._seconds_before = point.facts["curve"], point.facts["seconds"]

    @property
    def _seconds(self) -> float:
        """Time spent so far, in all processes together."""
        return self._seconds_before + time.monotonic() - self._begun

    def save(self) -> None:
        begun = time.monotonic()
        trainer = self._trainer
        trainer.replay.flush()
        if self.writer.filled != self._episode_seal.count:
            self.writer.flush()
        facts = {
            "seconds": self._seconds,
            "curve": self._curve,
            "outcome_dim": trainer.replay.outcome_dim,
            "transitions": self._replay_seal.extend(trainer.replay.count),
            "episodes": self._episode_seal.extend(self.writer.filled),
        }
        point = Savepoint(trainer.learned, trainer.progress(), facts)
        self._savepoints.save(point, trainer.state)
        self._saved = time.monotonic()
        self._save_took = self._saved - begun

    def _save_is_due(self, recorded: bool) -> bool:
        wait = SECONDS_BEFORE_A_RECORDING_IS_SAVED if recorded else SECONDS_BETWEEN_SAVES
        wait = max(wait, self._save_took / SHARE_OF_TIME_FOR_SAVING)
        return time.monotonic() - self._saved >= wait

    def train(self, stop_signal: list[int], progress: ProgressStyle) -> None:
        """Train to the end, recording at the blocks the configuration names."""
        label = f"collect {self.family.name}, blocks"
        blocks, at = self._trainer.blocks, self._trainer.recorded_blocks
        before = self._trainer.learned
        with Meter(label, blocks, start=before, style=progress) as meter:
            meter.update(before, self._note())
            for block in self._trainer.train():
                if block in at:
                    self._record(at.index(block))
                stopping = bool(stop_signal) and block < blocks
                if stopping or block == blocks or self._save_is_due(recorded=block in at):
                    self.save()
                meter.update(block, self._note())
                if stopping:
                    raise Interrupted(
                        f"stopped at block {block} of {blocks}; the state is saved in "
                        f"{self._savepoints.folder}. Go on with the same command.",
                        stop_signal[0],
                    )

    def _note(self) -> str:
        """Mean return of each group at the newest recording."""
        if not self._curve:
            return ""
        newest = self._curve[-1]
        return "return " + ", ".join(f"{g} {newest[g]:.1f}" for g in self.family.split)

    def _record(self, checkpoint: int) -> None:
        family, config = self.family, self.config
        per_task = config.episodes_per_checkpoint
        episodes = self._trainer.episodes(per_task, "record", checkpoint, stochastic=True)
        for task in range(family.n_tasks):
            rows = slice(task * per_task, (task + 1) * per_task)
            self.writer.add(
                task, Episodes(*(x[rows] for x in episodes if x is not None)), checkpoint
            )
        returns = mean_returns(episodes, range(family.n_tasks))
        point = self._trainer.effort() | {"seconds": round(self._seconds, 2)}
        means = {g: float(returns[list(t)].mean()) for g, t in family.split.items()}
        rates = success_rates(episodes, range(family.n_tasks))
        told = {} if rates is None else {"success": float(rates.mean())}
        self._curve.append(point | means | told)

    def finish(self, references: Dataset | None) -> None:
        """Measure the references and the distance of policies, then seal the dataset."""
        family, config = self.family, self.config
        final = self._trainer.episodes(config.reference_episodes, "expert", 0, stochastic=False)
        own = mean_returns(final, range(family.n_tasks))
        rates = success_rates(final, range(family.n_tasks))
        anchors = anchor_returns(
            family, range(family.n_tasks), config.reference_episodes, config.seed
        )
        groups = {task: group for group, tasks in family.split.items() for task in tasks}
        records = {}
        for task in range(family.n_tasks):
            reference = {"expert": own[task]} | {k: v[task] for k, v in anchors.items()}
            if references:
                reference |= {"expert": references.task(task).reference["expert"]}
            if getattr(config, "style", 0) or references:
                reference["collector"] = own[task]
            if rates is not None:
                reference["success"] = rates[task]
            records[task] = TaskRecord(groups[task], tuple(family.parameters[task]), reference)
        collector = {
            "name": self._trainer.name,
            "config": to_json(config),
            "curve": self._curve,
            **self._trainer.about(self.writer),
            "references": references.fingerprint if references else None,
            "seconds": round(self._seconds, 2),
        }
        self.writer.seal(records, collector)

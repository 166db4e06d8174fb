"""A world that is collected, trained, evaluated and reported in a second or two."""

import contextlib
import dataclasses
import functools
from pathlib import Path
from typing import ClassVar

import jax
import pytest

from conftest import TINY_COLLECT, TINY_TRAIN, tiny_config
from ertrl import api
from ertrl.collection import collect, trainer
from ertrl.collection.policies import POLICIES
from ertrl.collection.trainer import PolicyTrainer
from ertrl.data import Dataset, card
from ertrl.envs import families
from ertrl.envs.families.point_robot import PointRobot
from ertrl.evaluation.probes import ProbeSettings
from ertrl.reporting import compose
from ertrl.training import Run, loop

TASKS = [3, 15, 23, 33]
COLLECT = dataclasses.replace(
    TINY_COLLECT,
    hidden=(16,),
    batch_size=32,
    steps=80,
    steps_per_block=40,
    random_steps=40,
    updates_per_step=8,
)
PROBES = ProbeSettings(10, 5, leak_contexts=2, leak_checkpoints=2, swap_partners=2, projected=8)


class SmallRobot(PointRobot):
    """The point robot with four tasks and short episodes."""

    name = "small-robot"
    like = "point-robot"
    horizon = 8
    parameters = PointRobot.parameters[TASKS]
    split: ClassVar = {"train": (0, 1), "test-id": (2,), "test-ood": (3,)}


@contextlib.contextmanager
def small_world():
    """The family is known, a collection saves after every block, programs are compiled once."""
    known, chunk = families._families, functools.cache(loop.make_chunk)
    made: dict = {}

    def policies(family, config):
        return made.setdefault(config, POLICIES["conditioned"](family, config))

    def act(state, observation, key, t):
        key = None if key is None else jax.random.fold_in(key, t)
        return made[COLLECT].act(state, observation, key)

    act, rollouts = jax.jit(act), PolicyTrainer.__init__

    def prepared(trainer, *arguments):
        rollouts(trainer, *arguments)
        trainer._jitted_act = act

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "_families", lambda: {**known(), SmallRobot.name: SmallRobot})
        patch.setattr(collect, "SECONDS_BETWEEN_SAVES", 0.0)
        patch.setattr(collect, "SECONDS_BEFORE_A_RECORDING_IS_SAVED", 0.0)
        patch.setattr(collect, "SHARE_OF_TIME_FOR_SAVING", 1e9)
        patch.setattr(loop, "make_chunk", chunk)
        patch.setattr(trainer, "POLICIES", {"conditioned": policies})
        patch.setattr(PolicyTrainer, "__init__", prepared)
        patch.setattr(card, "draw", lambda summary: b"a picture")
        patch.setattr(compose, "say", lambda *_: None)
        yield


def train_config():
    config = tiny_config("focal", updates=20, evaluate_every=20, checkpoint_every=10)
    return dataclasses.replace(config, sampling=dataclasses.replace(config.sampling, meta_batch=2))


TRAIN_WORDS = [word if word != "4" else "2" for word in TINY_TRAIN]
"""On the command line; there are but two tasks to train on."""


def run_of(folder: Path) -> Run:
    """The only run of a folder."""
    (path,) = (folder / "runs").iterdir()
    return Run(path)


def do_collect(folder: Path) -> None:
    api.collect(SmallRobot.name, folder / "data", config=COLLECT, progress="none")


def do_train(folder: Path) -> None:
    dataset = Dataset(folder / "data")
    api.start(train_config(), dataset, out=folder / "runs", progress="none")


def do_evaluate(folder: Path) -> None:
    api.evaluate(run_of(folder), ("offline", "idaq"))


def do_probe(folder: Path) -> None:
    api.probe(run_of(folder), settings=PROBES)


def do_export(folder: Path) -> None:
    api.export(run_of(folder), folder / "agent")


def do_report(folder: Path) -> None:
    compose.report(folder / "runs", folder / "report")


STAGES = {
    "collect": do_collect,
    "train": do_train,
    "evaluate": do_evaluate,
    "report": do_report,
}

import os
from pathlib import Path

# Before JAX: one thread per process, for bit-exact results; and a place for compiled programs,
# which take most of the tests' time and are the same in many tests, workers and subprocesses.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
# Small programs compile longer than they run: without XLA's costly passes the suite is a fifth
# faster. `make test-slow`, whose programs run long, leaves them on.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import dataclasses
import shlex

import pytest

from ertrl.collection.config import CollectConfig
from ertrl.config import replace_from_json, to_json
from ertrl.training.config import TrainConfig

TINY_COLLECT = CollectConfig(
    hidden=(32, 32),
    learning_rate=3e-3,
    batch_size=128,
    discount=0.9,
    tau=0.02,
    steps=160,
    random_steps=20,
    checkpoints=2,
    episodes_per_checkpoint=3,
    reference_episodes=2,
    seed=7,
)

TINY_TRAIN = shlex.split("""
    --updates 20 --updates-per-call 10 --evaluate-every 20 --checkpoint-every 20
    --sampling.meta-batch 4 --sampling.batch-size 8 --sampling.context-size 6
    --method.encoder.hidden 16 16 --learner.hidden 16 16
    --evaluation.repeats 1 --evaluation.episodes 3 --progress none
""")
"""A run of a few small updates, as words of the command line."""


def options_of(config) -> list[str]:
    """A collection's settings as words of the command line."""
    words = []
    for name, value in to_json(config).items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
            continue
        values = value if isinstance(value, list) else [value]
        words += [f"--{option}", *map(str, values)]
    return words


@pytest.fixture(autouse=True)
def same_threads(monkeypatch):
    """A command that is called with --threads sets them for the process: not for later tests."""
    monkeypatch.setenv("NPROC", os.environ["NPROC"])


@pytest.fixture
def forgets_own_parts(monkeypatch):
    """Methods, learners and families that a test makes known are not known to later ones."""
    from ertrl.plugins import OWN, _loaded, _registered

    monkeypatch.setenv(OWN, "")
    yield
    _registered.clear()
    _loaded.clear()


@pytest.fixture(scope="session")
def tiny_dataset(tmp_path_factory):
    """A complete Point-Robot dataset, collected in a second or two."""
    from ertrl import api

    out = tmp_path_factory.mktemp("data") / "point-robot"
    return api.collect("point-robot", out, config=TINY_COLLECT, progress="none")


def tiny_config(method: str = "er-trl", learner: str = "td3bc", **changes) -> TrainConfig:
    """A run of a few small updates."""
    from ertrl.learners import get_learner
    from ertrl.methods import get_method

    config = TrainConfig(method=get_method(method)(), learner=get_learner(learner)())
    small = {"hidden": [16, 16]}
    values = {
        "method": {"encoder": {**small, "latent_dim": 4}},
        "learner": {**small, "discount": 0.9},
        "sampling": {"meta_batch": 4, "batch_size": 8, "context_size": 6},
        "evaluation": {"repeats": 1},
        "updates": 40,
        "updates_per_call": 10,
        "evaluate_every": 40,
        "checkpoint_every": 20,
    }
    if method == "er-trl":
        values["method"]["gan"] = {
            "generator_hidden": [16],
            "discriminator_hidden": [16],
            "rounds": 2,
        }
    return dataclasses.replace(replace_from_json(config, values), **changes)


@pytest.fixture(scope="session")
def tiny_run(tiny_dataset, tmp_path_factory):
    """A finished run on the tiny dataset."""
    from ertrl import api

    out = tmp_path_factory.mktemp("runs")
    return api.start(tiny_config(), tiny_dataset, out=out, progress="none")

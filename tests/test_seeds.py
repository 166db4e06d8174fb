"""Several seeds: as processes, in one program, and resumed from different steps."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from conftest import TINY_TRAIN, tiny_config
from ertrl.cli import main
from ertrl.cli.train import _print_several
from ertrl.errors import ConfigError
from ertrl.launch import parse_seeds, train_seeds
from ertrl.training import Run, lengthen, train_run, train_together

TOLERANCE = 1e-4
"""A batched product may add in another order than a plain one; stated in docs/determinism.md."""


def runs_of(seeds, root, dataset, **values):
    return [
        Run.create(root, dataset, tiny_config("er-trl", seed=s, **values), "test") for s in seeds
    ]


def assert_same_weights(one: Run, other: Run):
    a, b = one.load()[0], other.load()[0]
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.fixture(scope="module")
def alone(tiny_dataset, tmp_path_factory):
    """Two runs, each trained by itself."""
    runs = runs_of((0, 1), tmp_path_factory.mktemp("alone"), tiny_dataset)
    return [train_run(run, tiny_dataset, "none") for run in runs]


def test_seeds_in_one_program_are_the_runs_they_would_be_alone(alone, tiny_dataset, tmp_path):
    config = tiny_config("er-trl")
    together = train_seeds(
        config,
        tiny_dataset,
        (0, 1),
        how="program",
        out=tmp_path,
        progress="none",
    )
    for one, other in zip(alone, together, strict=True):
        assert one.name == other.name
        assert_same_weights(one, other)
        for a, b in zip(one.metrics(), other.metrics(), strict=True):
            assert (a["kind"], a["step"], a.keys()) == (b["kind"], b["step"], b.keys())
        assert other.evaluations.steps() == one.evaluations.steps()
        assert other.verify() > 0
    assert not np.allclose(
        jax.tree.leaves(together[0].load()[0])[0], jax.tree.leaves(together[1].load()[0])[0]
    )
    longer = lengthen(together[0], tiny_dataset, 2 * config.updates)
    assert longer.checkpoints.read()["runs_in_program"] == 2


def test_a_run_that_is_behind_catches_up_first(alone, tiny_dataset, tmp_path):
    ahead, behind = runs_of((0, 1), tmp_path, tiny_dataset)
    train_run(ahead, tiny_dataset, "none")
    train_together([ahead, behind], tiny_dataset, "none")
    for one, other in zip(alone, (ahead, behind), strict=True):
        assert_same_weights(one, other)


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [3]), ("0-4", [0, 1, 2, 3, 4]), ("0,2-3, 7", [0, 2, 3, 7])]
)
def test_seeds_are_parsed(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1..3", "2,", "1-2-3"])
def test_bad_seeds_are_explained(text):
    with pytest.raises(ConfigError, match="0-4 or 0,2,7"):
        parse_seeds(text)


@pytest.mark.parametrize("seeds", [(), (1, 1)])
def test_seeds_must_be_different_numbers(seeds, tiny_dataset, tmp_path):
    with pytest.raises(ConfigError, match="different numbers"):
        train_seeds(tiny_config("focal"), tiny_dataset, seeds, out=tmp_path)


def test_the_command_trains_all_seeds(tiny_dataset, tmp_path, capsys):
    words = ["train", "focal", "--data", str(tiny_dataset.path), "--out", str(tmp_path)]
    assert main([*words, "--seeds", "4-5", *TINY_TRAIN, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    runs = [Run(path) for path in value["runs"]]
    assert [run.config.seed for run in runs] == [4, 5]
    assert all(run.checkpoints.newest() == 20 for run in runs)
    assert value["scores"][0].keys() == value["scores"][1].keys()
    # As in the README: whatever training left beside the runs, `runs/*` takes it.
    beside = [str(p) for p in tmp_path.iterdir()]
    assert main(["evaluate", *beside, "--json"]) == 0
    evaluations = json.loads(capsys.readouterr().out)["evaluations"]
    assert {e["run"] for e in evaluations} == {run.name for run in runs}


def test_scores_of_several_seeds_stand_under_each_other(capsys, monkeypatch):
    """Shares of variance have three digits, as where one run tells its own."""
    long = "next state unexplained without z/test-ood"
    runs = [
        SimpleNamespace(path=f"run{i}", scores={"offline/train": 10.0 + i, long: 0.25 + i})
        for i in (0, 2)
    ]
    monkeypatch.setattr("ertrl.cli.train._scores", lambda run: run.scores)
    _print_several(runs, False)
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "normalised return (random 0, expert 100), 2 seeds: mean, min, max",
        f"{'offline/train':{len(long)}}   11.0   10.0   12.0",
        f"{long}  1.250  0.250  2.250",
    ]
    _print_several(runs[:1], False)
    *_, head, _, last = capsys.readouterr().out.splitlines()
    assert last == f"{long}  0.250"
    assert "mean" not in head, "there is one number"


def test_seed_and_threads_do_not_go_with_seeds(tiny_dataset, tmp_path, capsys):
    words = ["train", "focal", "--data", str(tiny_dataset.path), "--seeds", "0-1"]
    for option in ("--seed", "--threads"):
        assert main([*words, option, "2", "--out", str(tmp_path)]) == 2
        assert f"--seeds and {option} do not go together" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


FOUR_DEVICES = """
import sys
import jax
from pathlib import Path
from ertrl.data import Dataset
from ertrl.provenance import device_text
from ertrl.training import Run, train_together

assert len(jax.devices()) == 4, jax.devices()
assert device_text() == "4 x cpu (1 thread)"
train_together([Run(path) for path in sys.argv[2:]], Dataset(sys.argv[1]), "none")
"""


def test_seeds_spread_over_devices_are_the_runs_they_would_be_on_one(alone, tiny_dataset, tmp_path):
    """Five runs on four devices that XLA makes of the CPU; two of them are compared."""
    runs = runs_of(range(5), tmp_path, tiny_dataset)
    words = [sys.executable, "-c", FOUR_DEVICES, str(tiny_dataset.path)]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    subprocess.run([*words, *(str(r.path) for r in runs)], env=os.environ | flags, check=True)
    for one, other in zip(alone, runs, strict=False):
        assert_same_weights(one, other)
        assert one.evaluations.steps() == other.evaluations.steps()
    assert all(run.checkpoints.newest() == run.config.updates for run in runs)

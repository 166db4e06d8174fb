"""`ertrl data info`, the dataset card, and what a crash leaves behind."""

import itertools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import yaml
from huggingface_hub import DatasetCard

from conftest import TINY_COLLECT
from ertrl import store
from ertrl.cli import main
from ertrl.config import to_json
from ertrl.data import Dataset, DatasetWriter, Description, TaskRecord, describe, write_card
from ertrl.data import card as card_module
from ertrl.data.info import facts
from ertrl.types import Episodes


@pytest.fixture
def copy(tiny_dataset, tmp_path):
    return shutil.copytree(tiny_dataset.path, tmp_path / "copy")


def write_small(path, checkpoints=(0,)):
    """Two tasks, one episode of each checkpoint."""
    episodes = dict.fromkeys((0, 1), len(checkpoints))
    writer = DatasetWriter(path, Description("small", {}, (), 4, 3, 2, simulator=False), episodes)
    for task, checkpoint in itertools.product(episodes, checkpoints):
        writer.add(
            task,
            Episodes(
                observation=np.ones((1, 5, 3)),
                action=np.ones((1, 4, 2)),
                reward=np.ones((1, 4)),
                length=np.array([4]),
                terminated=np.array([False]),
                truncated=np.array([True]),
                diverged=np.array([False]),
            ),
            checkpoint,
        )
    records = {task: TaskRecord("train", (), {}) for task in (0, 1)}
    writer.seal(records, {"name": "hand", "config": {}, "curve": []})


# --- what is in it ---


def test_the_summary_says_what_the_arrays_hold(tiny_dataset):
    summary = describe(tiny_dataset)
    assert summary["transitions"] == 40 * 6 * 20
    assert summary["episodes"] == 240
    train = summary["groups"]["train"]
    assert train["tasks"] == list(range(20))
    second = train["checkpoints"][1]
    returns = [
        task.returns[task.checkpoints == 1].mean()
        for task in list(tiny_dataset.tasks.values())[:20]
    ]
    assert second["mean_return"] == pytest.approx(np.mean(returns))
    assert second["lowest_task"] == pytest.approx(np.min(returns))
    assert second["seconds"] == tiny_dataset.manifest["collector"]["curve"][1]["seconds"]
    assert second["updates"] == tiny_dataset.manifest["collector"]["curve"][1]["updates"]
    expert = np.mean([tiny_dataset.task(t).reference["expert"] for t in range(20)])
    assert train["reference"]["expert"] == pytest.approx(expert)
    assert summary["tasks"][7]["parameters"]["goal_x"] == tiny_dataset.task(7).parameters[0]
    files = [p for p in tiny_dataset.path.rglob("*") if p.suffix in (".npy", ".json")]
    assert summary["bytes"] == sum(p.stat().st_size for p in files)
    json.dumps(summary, allow_nan=False)


def test_info_for_people_and_for_programs(tiny_dataset, capsys):
    assert main(["data", "info", str(tiny_dataset.path)]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text, "no colours where there is no terminal"
    for words in (
        "point-robot",
        "40 (20 train, 10 test-id, 10 test-ood)",
        "goal_x",
        "4,800",
        "mujoco",
    ):
        assert words in text
    assert text.count("\n ... ") == 3, "of each group the first and last tasks"
    assert "Tasks  --json has all rows." in text
    assert main(["data", "info", str(tiny_dataset.path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["dataset"] == str(tiny_dataset.path)
    assert summary["curve"] == tiny_dataset.manifest["collector"]["curve"]
    assert summary["collector"]["config"] == to_json(TINY_COLLECT)


def test_mistakes_on_the_command_line(capsys, tmp_path):
    assert main(["data"]) == 2
    assert "say what to do with data: info" in capsys.readouterr().err
    assert main(["data", "inof"]) == 2
    assert "Did you mean 'info'?" in capsys.readouterr().err
    assert main(["data", "info", str(tmp_path)]) == 1
    assert "is not a dataset" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["info", "card", "export", "import", "push", "pull"])
def test_every_data_command_explains_itself(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main(["data", command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"ertrl data {command}" in out
    assert "--json" in out


def test_facts_show_what_collectors_add(tiny_dataset):
    """Collectors may say more of themselves; long lists stay in the JSON."""
    summary = describe(tiny_dataset)
    extra = {
        "policy_distance": {"train": 0.123456},
        "style": {"strength": 2.0, "directions": None},
        "curves": list(range(99)),
        "distances": [[0.0, 1.0], [1.0, 0.0]],
    }
    shown = facts(summary | {"collector": summary["collector"] | extra})
    assert shown["policy distance, train"] == "0.1235"
    assert shown["style, strength"] == "2"
    assert not {"curves", "distances", "style, directions"} & shown.keys()


# --- the card ---


def test_the_card_is_what_the_hub_expects(tiny_dataset):
    text = (tiny_dataset.path / "README.md").read_text()
    front = yaml.safe_load(text.split("---")[1])
    assert front["license"] == "mit"
    assert front["tags"][-1] == "point-robot"
    card = DatasetCard(text)
    assert card.data.pretty_name == "Point-Robot: behaviour data of 40 tasks"
    assert "](learning-curve.png)" in card.text
    for words in (store.sha256_file(tiny_dataset.path / "manifest.json"), tiny_dataset.fingerprint):
        assert words in card.text
    assert (tiny_dataset.path / "learning-curve.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    "change",
    [
        {"simulator": False},
        {"family": "my-robot"},
        {"family": "metaworld-reach"},
        {"family_code": {"robots.py": "0" * 64}},
    ],
)
def test_data_of_others_has_no_licence_of_ours(tiny_dataset, change):
    text = card_module.text(describe(tiny_dataset) | change)
    assert yaml.safe_load(text.split("---")[1])["license"] == "unknown"


def test_one_policy_has_no_learning_curve(tmp_path):
    write_small(tmp_path / "data")
    assert "learning-curve" not in (tmp_path / "data" / "README.md").read_text()
    assert not (tmp_path / "data" / "learning-curve.png").exists()
    write_small(tmp_path / "other", checkpoints=(0, 1))
    assert (tmp_path / "other" / "learning-curve.png").exists()


def test_equal_datasets_get_equal_cards(tiny_dataset, copy):
    names = ("README.md", "learning-curve.png")
    for name in names:
        (copy / name).unlink()
    assert main(["data", "card", str(copy)]) == 0
    for name in names:
        assert (copy / name).read_bytes() == (tiny_dataset.path / name).read_bytes()


def test_nothing_depends_on_the_card(tiny_dataset, copy):
    (copy / "README.md").write_text("my own words")
    (copy / "learning-curve.png").unlink()
    opened = Dataset(copy)
    assert opened.fingerprint == tiny_dataset.fingerprint
    assert opened.verify() == 281


def test_a_card_that_cannot_be_drawn_costs_no_data(tmp_path, monkeypatch):
    def breaks(summary):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(card_module, "draw", breaks)
    with pytest.warns(UserWarning, match=r"No space left.*ertrl data card"):
        write_small(tmp_path / "data", checkpoints=(0, 1))
    assert Dataset(tmp_path / "data").verify() == 15
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_opening_data_does_not_load_matplotlib_or_the_extras():
    code = (
        "import sys, ertrl.data\n"
        "sys.exit(bool({'matplotlib', 'minari', 'huggingface_hub', 'h5py'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- crashes ---


def test_directories_reach_the_disk_before_the_dataset_appears(tmp_path, monkeypatch):
    order = []
    sync, rename = store.sync_directory, os.rename
    monkeypatch.setattr(store, "sync_directory", lambda p: (order.append(p.name), sync(p)))
    monkeypatch.setattr(os, "rename", lambda a, b: (order.append("rename"), rename(a, b)))
    write_small(tmp_path / "data")
    before = order[: order.index("rename")]
    assert before[:3] == ["000", "001", "tasks"]
    assert ".data.partial" in before
    assert order[len(before) + 1] == tmp_path.name, "and the rename itself right after"


def test_stale_temporary_files_are_swept(copy):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale = copy / store.temporary_name("README.md", dead.pid)
    alive = store.temporary_name("manifest.json", os.getpid())
    elsewhere = f".manifest.json.other-host-{dead.pid}.tmp"
    kept = [copy / name for name in (alive, elsewhere, ".notes.tmp", ".x.1.tmp")]
    for file in (stale, *kept):
        file.write_text("half")
    write_card(Dataset(copy, verify=False))
    assert not stale.exists()
    assert all(file.exists() for file in kept), "living writers, other hosts, and what is not ours"

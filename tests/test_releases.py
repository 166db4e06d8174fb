"""Released data of others: small files in their layouts become datasets, or are refused clearly."""

import io
import shutil
import zipfile

import numpy as np
import pytest

import ertrl
from ertrl.cli import main
from ertrl.data import Dataset
from ertrl.errors import ConfigError, DataError

STEPS, EPISODES, SEEN, DONE = 6, 4, 3, 2


def transitions(seed, ends=()):
    """Rows of `EPISODES` episodes one after another; those in `ends` end in a terminal state."""
    draw = np.random.default_rng(seed)
    states = draw.normal(size=(EPISODES, STEPS + 1, SEEN)).astype(np.float32)
    over = np.zeros((EPISODES, STEPS, 1), np.float32)
    over[list(ends), -1] = 1
    parts = {
        "obs": states[:, :-1],
        "actions": draw.uniform(-1, 1, (EPISODES, STEPS, DONE)).astype(np.float32),
        "rewards": draw.normal(size=(EPISODES, STEPS, 1)).astype(np.float32),
        "next_obs": states[:, 1:],
        "terminals": over,
    }
    return {name: values.reshape(EPISODES * STEPS, -1) for name, values in parts.items()}


def unicorn(root, tasks=3, by_step=False, **options):
    for task in range(1, tasks + 1):
        folder = root / "AntDir-v0" / "data" / f"seed_{task}_goal_{0.5 * task}_-2.0"
        folder.mkdir(parents=True)
        for name, values in transitions(task, **options).items():
            if by_step:
                values = values.reshape(EPISODES, STEPS, -1).swapaxes(0, 1)
            np.save(folder / f"{name}.npy", values)
    return root / "AntDir-v0"


def torch_file(file, table, kind=b"FloatStorage"):
    """What torch.save writes of a tensor, written without torch."""

    def whole(number):
        return b"J" + int(number).to_bytes(4, "little")

    count, width = table.shape
    words = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(("
    words += (
        b"X\x07\x00\x00\x00storagectorch\n" + kind + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    )
    words += whole(table.size) + b"tQ" + whole(0)
    words += whole(count) + whole(width) + b"\x86" + whole(width) + whole(1) + b"\x86"
    words += b"\x89ccollections\nOrderedDict\n)RtR."
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("dataset/data.pkl", words)
        unused = np.full(7, np.nan, "<f4")  # a view of a larger buffer is saved with all of it
        archive.writestr("dataset/data/0", table.astype("<f4").tobytes() + unused.tobytes())


def spc(root, tasks=3, **options):
    for task in range(tasks):
        folder = root / "ant-dir" / f"goal_idx{task}"
        folder.mkdir(parents=True)
        rows = transitions(task, **options)
        order = ("obs", "actions", "rewards", "next_obs", "terminals")
        torch_file(folder / "dataset.pth", np.concatenate([rows[name] for name in order], axis=1))
    return root / "ant-dir"


def same(data, position, rows):
    task = data.task(position)
    assert task.lengths.tolist() == [STEPS] * EPISODES
    np.testing.assert_array_equal(task.observations[:, :-1].reshape(-1, SEEN), rows["obs"])
    np.testing.assert_array_equal(task.observations[:, 1:].reshape(-1, SEEN), rows["next_obs"])
    np.testing.assert_array_equal(task.actions.reshape(-1, DONE), rows["actions"])
    np.testing.assert_array_equal(task.rewards.reshape(-1, 1), rows["rewards"])


@pytest.mark.parametrize("by_step", [False, True], ids=["rows", "steps-by-episodes"])
def test_unicorns_folders_become_tasks_with_their_goals(tmp_path, by_step):
    source = unicorn(tmp_path, by_step=by_step)
    data = ertrl.import_logs(source, tmp_path / "out", held_out=["3"], progress="none")
    assert not data.has_simulator
    assert data.manifest["parameter_names"] == ["goal_0", "goal_1"]
    assert data.groups == {"train": [0, 1], "test-id": [2]}
    assert data.manifest["imported"]["format"] == "unicorn"
    for task in range(3):
        same(data, task, transitions(task + 1))
        assert data.task(task).parameters.tolist() == [0.5 * (task + 1), -2.0]
        assert data.task(task).truncated.all()
    assert data.manifest["action_low"] == [-1, -1], "the range of such policies, not of the data"


def test_spcs_tensors_become_tasks(tmp_path, capsys):
    source = spc(tmp_path, tasks=11, ends=[1])
    words = ["data", "import", str(source), "--out", str(tmp_path / "out"), "--progress", "none"]
    main([*words, "--ood", "10"])
    assert "11 tasks" in capsys.readouterr().out
    data = Dataset(tmp_path / "out")
    assert data.groups["test-ood"] == [10], "tasks are in the order of their numbers"
    assert data.manifest["imported"]["tasks"] == [str(i) for i in range(11)]
    for task in range(11):
        same(data, task, transitions(task))
        assert data.task(task).terminated.tolist() == [False, True, False, False]


def test_ends_that_are_the_clocks_are_no_ends(tmp_path):
    data = ertrl.import_logs(spc(tmp_path, ends=range(EPISODES)), tmp_path / "out", progress="none")
    assert not data.task(0).terminated.any()
    assert any("time limit" in note for note in data.manifest["imported"]["notes"])


def test_long_episodes_are_cut_and_own_ranges_are_kept(tmp_path):
    options = {"longest": 4, "action_low": -2.0, "action_high": 2.0, "progress": "none"}
    data = ertrl.import_logs(spc(tmp_path), tmp_path / "out", **options)
    assert data.task(0).lengths.tolist() == [4, 2] * EPISODES
    rows = transitions(0)
    np.testing.assert_allclose(data.task(0).actions[0], rows["actions"][:4] / 2, rtol=1e-6)
    np.testing.assert_array_equal(data.task(0).observations[0, 4], rows["next_obs"][3])


def shuffle(folder):
    np.save(folder / "obs.npy", transitions(1)["obs"][::-1])


def spoil(folder):
    rewards = transitions(1)["rewards"]
    rewards[6] = np.nan
    np.save(folder / "rewards.npy", rewards)


def shorten(folder):
    np.save(folder / "actions.npy", transitions(1)["actions"][:5])


def hide(folder):
    np.save(folder / "obs.npy", np.array([{}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (shuffle, "no row begins where the one before it ended"),
        (spoil, "reward is NaN, infinite or beyond 32 bits in row 7"),
        (shorten, "expected equally many rows"),
        (hide, "cannot be read"),
        (lambda folder: (folder / "terminals.npy").unlink(), "terminals.npy cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, damage, said):
    source = unicorn(tmp_path)
    damage(next((source / "data").glob("seed_1_*")))
    with pytest.raises(DataError, match=said):
        ertrl.import_logs(source, tmp_path / "out", progress="none")
    assert not (tmp_path / "out").exists()


def test_nothing_but_a_plain_tensor_is_read(tmp_path):
    source = spc(tmp_path)
    file, table = (
        source / "goal_idx1" / "dataset.pth",
        np.zeros((4, 2 * SEEN + DONE + 2), np.float32),
    )
    torch_file(file, table, kind=b"DoubleStorage")
    with pytest.raises(DataError, match="expected one float32 tensor"):
        ertrl.import_logs(source, tmp_path / "out", progress="none")
    torch_file(file, table)
    with pytest.raises(DataError, match="not plain which are the state"):
        ertrl.import_logs(source, tmp_path / "out", progress="none")
    content = io.BytesIO()
    np.save(content, table)
    file.write_bytes(content.getvalue())
    with pytest.raises(DataError, match=r"not a tensor that torch\.save wrote"):
        ertrl.import_logs(source, tmp_path / "out", progress="none")


def test_a_tensor_that_is_damaged_or_blown_up_is_refused(tmp_path):
    source = spc(tmp_path)
    file = source / "goal_idx1" / "dataset.pth"
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match="is compressed"):
        ertrl.import_logs(source, tmp_path / "out", progress="none")
    torch_file(file, np.zeros((0, 2 * SEEN + DONE + 2), np.float32))
    with pytest.raises(DataError, match="expected one float32 tensor"):
        ertrl.import_logs(source, tmp_path / "out", progress="none")


def test_names_pieces_and_ranges_that_cannot_be_are_told(tmp_path):
    source = unicorn(tmp_path)
    (first, *_) = sorted((source / "data").glob("seed_1_*"))
    options = {"out": tmp_path / "out", "progress": "none"}
    with pytest.raises(ConfigError, match="at least one step, got longest=0"):
        ertrl.import_logs(source, longest=0, **options)
    with pytest.raises(DataError, match="actions have no range"):
        ertrl.import_logs(source, action_low=2.0, action_high=2.0, **options)
    twin = shutil.copytree(first, first.with_name("seed_1_goal_7"))
    with pytest.raises(DataError, match="several folders are task 1"):
        ertrl.import_logs(source, **options)
    twin.rename(first.with_name("seed_9_goal_e"))
    with pytest.raises(DataError, match="seed_9_goal_e: the goal in its name is no number"):
        ertrl.import_logs(source, **options)
    assert not (tmp_path / "out").exists()


def test_a_release_knows_its_columns(tmp_path):
    with pytest.raises(ConfigError, match="is a spc release"):
        ertrl.import_logs(spc(tmp_path), tmp_path / "out", parameters=["mass"])

"""Datasets refuse what is wrong with them, and batches are what they claim to be."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ertrl import store
from ertrl.data import Dataset, Sampler, maps, numbers
from ertrl.data.sampler import SamplingConfig, cumulative_preference
from ertrl.errors import ConfigError, CorruptFileError, DataError
from ertrl.types import Transitions
from toys import write_dataset

SAMPLING = SamplingConfig(meta_batch=4, batch_size=8, context_size=5, contexts_per_task=2)


@pytest.fixture
def copy(tiny_dataset, tmp_path):
    return shutil.copytree(tiny_dataset.path, tmp_path / "copy")


def rewrite(folder, change):
    """Change the manifest and seal it again."""
    manifest = store.read_json(folder / "manifest.json")
    change(manifest)
    store.write_json(folder / "manifest.json", manifest)


def change(folder, task, name, place, value):
    """Change numbers of a file and seal it again."""
    file = folder / "tasks" / f"{task:03d}" / f"{name}.npy"
    array = np.load(file)
    array[place] = value
    np.save(file, array)
    digest = store.sha256_file(file)
    rewrite(folder, lambda m: m["tasks"][task]["files"][name].update(sha256=digest))


def test_not_a_dataset(tmp_path):
    with pytest.raises(DataError, match=r"has no manifest\.json.*ertrl collect"):
        Dataset(tmp_path)


def test_missing_task_folder_names_the_file(copy):
    shutil.rmtree(copy / "tasks" / "003")
    with pytest.raises(CorruptFileError, match=r"003/observations\.npy is missing"):
        Dataset(copy)


def test_asking_for_a_task_that_is_not_there(tiny_dataset):
    with pytest.raises(DataError, match="has no task 77"):
        tiny_dataset.task(77)


def test_foreign_version(copy):
    rewrite(copy, lambda m: m.update(format=99))
    with pytest.raises(DataError, match="99"):
        Dataset(copy)


def test_wrong_shape(copy):
    rewrite(copy, lambda m: m["tasks"][5].update(episodes=4))
    with pytest.raises(CorruptFileError, match=r"005/observations\.npy holds float32"):
        Dataset(copy)


def test_a_manifest_cannot_point_outside_its_folder(copy):
    rewrite(copy, lambda m: m["tasks"][0]["files"]["rewards"].update(path="../../secret.npy"))
    with pytest.raises(
        CorruptFileError, match=r"Expected the path tasks/000/rewards\.npy, got '\.\./"
    ):
        Dataset(copy)


def test_object_arrays_are_never_loaded(copy):
    path = copy / "tasks" / "000" / "rewards.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    digest = store.sha256_file(path)
    rewrite(copy, lambda m: m["tasks"][0]["files"]["rewards"].update(sha256=digest))
    with pytest.raises(CorruptFileError, match=r"rewards\.npy is not a readable"):
        Dataset(copy)


def test_content_decides_the_fingerprint(tiny_dataset, copy):
    assert Dataset(copy).fingerprint == tiny_dataset.fingerprint
    rewrite(copy, lambda m: m["tasks"][0].update(parameters=[0.0, 1.0]))
    assert Dataset(copy).fingerprint != tiny_dataset.fingerprint


def test_transitions_follow_the_physics(tiny_dataset):
    """Point-Robot: s' = s + 0.1 a and r = -|s' - goal|, so stored rows must fit together."""
    data = tiny_dataset.task(3)
    rows = data.transitions(np.arange(len(data.steps)))
    moved = rows.observation + 0.1 * rows.action
    np.testing.assert_allclose(rows.next_observation, moved, atol=1e-6)
    distance = np.linalg.norm(rows.next_observation - data.parameters, axis=1)
    np.testing.assert_allclose(rows.reward, -distance, atol=1e-6)
    assert not rows.terminated.any(), "a time-out is not a terminal state"
    assert data.truncated.all()


def test_early_ends_are_terminal_and_padding_is_never_read(copy):
    """Shorten episode 0 of task 0 to 4 steps, ending in a terminal state."""
    reward = np.load(copy / "tasks" / "000" / "rewards.npy")[0, :4].sum(dtype=float)
    for name, value in {"lengths": 4, "terminated": True, "truncated": False}.items():
        change(copy, 0, name, 0, value)
    change(copy, 0, "actions", (0, 4), 99.0)
    data = Dataset(copy).task(0)
    assert data.returns[0] == reward
    assert len(data.steps) == (data.episodes - 1) * 20 + 4
    terminated = data.transitions(np.arange(len(data.steps))).terminated
    assert np.flatnonzero(terminated).tolist() == [3]


def test_a_batch_depends_on_its_number_alone(tiny_dataset):
    sampler = Sampler(tiny_dataset, SAMPLING, extra_batches=2, seed=5)
    together = sampler.batches(10, 6)
    for i in range(6):
        alone = sampler.batches(10 + i, 1)
        for a, b in zip(_leaves(together), _leaves(alone), strict=True):
            assert np.array_equal(a[i], b[0])
    other = Sampler(tiny_dataset, SAMPLING, extra_batches=2, seed=6).batches(10, 1)
    assert not np.array_equal(other.rl.action, together.rl.action[:1])


def _leaves(batch):
    return [batch.task, *batch.context, *batch.rl, *batch.more_rl]


def test_batches_have_the_asked_shapes_and_only_training_tasks(tiny_dataset):
    batch = Sampler(tiny_dataset, SAMPLING, extra_batches=2, seed=0).batches(0, 50)
    assert batch.context.observation.shape == (50, 4, 2, 5, 2)
    assert batch.rl.action.shape == (50, 4, 8, 2)
    assert batch.more_rl.reward.shape == (50, 2, 4, 8)
    assert set(batch.task.ravel()) == set(tiny_dataset.group("train")), "all, and no other"
    assert all(len(set(row)) == 4 for row in batch.task), "without replacement"
    # Every row belongs to the task it is filed under: its reward fits that task's goal.
    goals = np.stack([tiny_dataset.task(t).parameters for t in range(40)])[batch.task]
    for rows, axes in ((batch.rl, (2,)), (batch.context, (2, 3))):
        goal = np.expand_dims(goals, axes)
        distance = np.linalg.norm(rows.next_observation - goal, axis=-1)
        np.testing.assert_allclose(rows.reward, -distance, atol=1e-5)
    # The two contexts of a task are different draws.
    assert not np.array_equal(batch.context.reward[:, :, 0], batch.context.reward[:, :, 1])


def test_every_transition_is_drawn_equally_often(tiny_dataset):
    sampling = SamplingConfig(meta_batch=20, batch_size=60, context_size=1, contexts_per_task=1)
    batch = Sampler(tiny_dataset, sampling, extra_batches=0, seed=0).batches(0, 100)
    drawn = batch.rl.observation[batch.task == 4][:, :].reshape(-1, 2)
    data = tiny_dataset.task(4)
    rows = data.transitions(np.arange(len(data.steps))).observation
    # Steps after the first have distinct observations; count how often each was drawn.
    distinct = rows[np.linalg.norm(rows, axis=1) > 0]
    counts = np.array([(drawn == row).all(axis=1).sum() for row in distinct])
    expected = len(drawn) / len(data.steps)
    assert abs(counts.mean() - expected) < 0.1 * expected
    assert counts.std() < 2 * np.sqrt(expected)


def test_good_episodes_are_preferred_as_much_as_asked(tiny_dataset):
    sampling = SamplingConfig(meta_batch=20, batch_size=400, context_size=400, prefer_good=3.0)
    batch = Sampler(tiny_dataset, sampling, extra_batches=1, seed=0).batches(0, 50)
    plain = replace(sampling, prefer_good=0.0)
    same = Sampler(tiny_dataset, plain, extra_batches=1, seed=0).batches(0, 50)
    for a, b in zip(batch.context, same.context, strict=True):
        assert np.array_equal(a, b), "contexts are drawn as before"

    data = tiny_dataset.task(4)
    relative = (data.returns - data.returns.min()) / np.ptp(data.returns)
    wanted = np.exp(3 * relative) / np.exp(3 * relative).sum()
    # A step is known by its action and reward: find the episode that each drawn one is from.
    logged = {
        (reward, *action): episode
        for episode in range(data.episodes)
        for reward, action in zip(data.rewards[episode], data.actions[episode], strict=True)
    }
    for rows in (batch.rl, Transitions(*(x[:, 0] for x in batch.more_rl))):
        drawn = rows.reward[batch.task == 4].ravel(), rows.action[batch.task == 4].reshape(-1, 2)
        episodes = [logged[reward, *action] for reward, action in zip(*drawn, strict=True)]
        counts = np.bincount(episodes, minlength=data.episodes)
        expected = wanted * counts.sum()
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 1).all()


def test_where_all_episodes_are_alike_none_is_preferred():
    share = cumulative_preference(np.full(3, -2.0), np.array([1, 2, 1]), 5.0)
    np.testing.assert_allclose(share, [0.25, 0.5, 0.75, 1.0])


def test_too_large_a_meta_batch_is_refused(tiny_dataset):
    sampling = SamplingConfig(meta_batch=21)
    with pytest.raises(ConfigError, match=r"only 20 training tasks.*give --sampling.meta-batch 20"):
        Sampler(tiny_dataset, sampling, extra_batches=0, seed=0)


@pytest.mark.parametrize("block", [1, 7, numbers.BLOCK])
@pytest.mark.parametrize(
    ("name", "place", "value", "told"),
    [
        ("actions", (4, 3, 1), -1.01, "step 3 of episode 4 of task 2 has an action of -1.01, outs"),
        ("actions", (4, 3, 1), np.nan, "NaN or infinite numbers, first in episode 4 of task 2"),
        ("observations", (5, 20, 0), np.inf, "NaN or infinite numbers, first in episode 5"),
        ("rewards", (0, 0), -np.inf, "NaN or infinite numbers, first in episode 0"),
        ("terminated", 1, True, "episode 1 of task 2 ended in a terminal state and was cut by"),
    ],
)
def test_what_the_format_forbids_is_told_with_its_place(
    copy, monkeypatch, block, name, place, value, told
):
    monkeypatch.setattr(numbers, "BLOCK", block)
    assert Dataset(copy).verify() == 7 * 40 + 1
    change(copy, 2, name, place, value)
    with pytest.raises(CorruptFileError, match=told) as caught:
        Dataset(copy)
    file = "truncated" if name == "terminated" else name
    assert f"{copy}/tasks/002/{file}.npy" in str(caught.value)
    assert "Restore the dataset from a copy, or collect or import it again." in str(caught.value)


def test_an_action_may_be_rounded(copy):
    change(copy, 2, "actions", (4, 3, 1), np.nextafter(np.float32(1), np.float32(2)))
    assert Dataset(copy).verify()


def test_one_training_task_is_too_few(tmp_path):
    data = write_dataset(tmp_path / "toy", tasks=1)
    with pytest.raises(ConfigError, match=r"has 1 training task, .* at least 2\. Collect"):
        Sampler(data, SAMPLING, extra_batches=0, seed=0)


MANY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import numpy as np
from ertrl.data import Dataset, Sampler, import_logs
from ertrl.data.sampler import SamplingConfig
rows = np.arange(200 * 6)
logs = {"task": rows // 6, "episode": rows // 3, "reward": 1.0 * rows,
        "observation": 1.0 * rows, "action": np.sin(rows)}
import_logs(logs, sys.argv[1], progress="none")
data = Dataset(sys.argv[1])
assert data.verify() == 1401
batch = Sampler(data, SamplingConfig(meta_batch=160), extra_batches=0, seed=0).batches(0, 2)
assert (batch.rl.reward == batch.rl.observation[..., 0]).all()
task = np.array(data.group("train"))[batch.task]
assert (batch.rl.reward // 6 == task[..., None]).all()
"""


def test_hundreds_of_tasks_need_few_open_files(tmp_path):
    subprocess.run([sys.executable, "-c", MANY, tmp_path / "many"], check=True)


def test_a_writer_that_cannot_begin_leaves_nothing(tmp_path, monkeypatch):
    made = store.map_array

    def full(path, *spec):
        if "002" in path.parts:
            raise OSError(28, "No space left on device")
        return made(path, *spec)

    monkeypatch.setattr(store, "map_array", full)
    with pytest.raises(OSError, match="No space left"):
        write_dataset(tmp_path / "toy")
    assert not list(tmp_path.iterdir())


def test_files_that_were_closed_meanwhile_keep_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "ENOUGH", 1)
    few = write_dataset(tmp_path / "few")
    monkeypatch.undo()
    assert few.fingerprint == write_dataset(tmp_path / "many").fingerprint

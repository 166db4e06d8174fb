"""Minari out and in, with the real library: bit for bit, an episode at a time, or a clear error."""

import json
import sys
import tracemalloc
import warnings

import gymnasium
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from minari import DataCollector
from minari.data_collector import EpisodeBuffer

from ertrl import api
from ertrl.data import (
    Dataset,
    DatasetWriter,
    Description,
    TaskRecord,
    export_minari,
    import_logs,
)
from ertrl.data.imports import minari as our_minari
from ertrl.data.imports.minari import import_minari
from ertrl.errors import ConfigError, DataError, MissingExtra
from ertrl.evaluation import summarise
from ertrl.types import Episodes
from toys import some_tasks

LINE, PUSH = Box(-np.inf, np.inf, (3,), np.float64), Box(-2.0, 2.0, (1,), np.float32)


@pytest.fixture(scope="module")
def dataset(tiny_dataset, tmp_path_factory):
    """A few tasks of the tiny dataset are enough."""
    path = tmp_path_factory.mktemp("few") / "point-robot"
    return some_tasks(tiny_dataset, (0, 1, 2, 4, 7, 25, 30), path)


@pytest.fixture(autouse=True)
def library(tmp_path, monkeypatch):
    """A Minari home of its own for every test."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def episode(steps=4, seed=0, **changes):
    draw = np.random.default_rng(seed)
    ends = np.zeros(steps, bool)
    values = {
        "observations": draw.normal(size=(steps + 1, 3)),
        "actions": draw.uniform(-2, 2, (steps, 1)).astype(np.float32),
        "rewards": draw.normal(size=steps),
        "terminations": ends.copy(),
        "truncations": ends.copy(),
        "infos": {},
    }
    return EpisodeBuffer(**(values | changes))


def foreign(identity, *episodes, observation=LINE, action=PUSH):
    """A Minari dataset that ertrl has not made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return minari.create_dataset_from_buffers(
            identity,
            buffer=list(episodes or [episode()]),
            observation_space=observation,
            action_space=action,
        )


# --- there and back ---


def test_what_was_exported_comes_back_bit_for_bit(dataset, tmp_path):
    ids = export_minari(dataset, "robots/pr", "none")
    assert ids[3] == "robots/pr/task-04-v0"
    assert len(ids) == 7
    back = import_minari(["robots/pr"], tmp_path / "back", progress="none")
    assert back.fingerprint == dataset.fingerprint, "every array, parameter and reference"
    assert back.manifest["collector"] == dataset.manifest["collector"]
    assert back.has_simulator
    assert back.manifest["imported"]["provenance"] == dataset.manifest["provenance"]
    assert Dataset(back.path).verify() == dataset.verify()


def test_others_can_use_the_export_without_ertrl_s_format(dataset):
    export_minari(dataset, "robots/pr", "none")
    made = minari.load_dataset("robots/pr/task-25-v0")
    ours = dataset.task(25)
    assert made.total_episodes == ours.episodes
    last = list(made.iterate_episodes())[-1]
    assert np.array_equal(last.observations, ours.observations[-1])
    assert np.array_equal(last.rewards, ours.rewards[-1])
    assert last.truncations.tolist() == [False] * 19 + [True]
    assert not last.terminations.any()
    env = made.recover_environment().unwrapped
    assert np.array_equal(env.parameters, ours.parameters)
    low, high = (made.storage.metadata[f"ref_{end}_score"] for end in ("min", "max"))
    assert (low, high) == (ours.reference["random"], ours.reference["expert"])


def test_some_tasks_in_any_order_with_other_groups(dataset, tmp_path):
    export_minari(dataset, "pr", "none")
    names = [f"pr/task-{task:02d}-v0" for task in (7, 2, 30, 4)]
    unseen = {"held_out": names[:1], "ood": names[2:3]}
    some = import_minari(names, tmp_path / "some", progress="none", **unseen)
    groups = {2: "train", 4: "train", 7: "test-id", 30: "test-ood"}
    assert {t: d.group for t, d in some.tasks.items()} == groups
    for task, data in some.tasks.items():
        assert np.array_equal(data.observations, dataset.task(task).observations)
        assert np.array_equal(data.checkpoints, dataset.task(task).checkpoints)
        assert np.array_equal(data.parameters, dataset.task(task).parameters)


def test_episodes_pass_one_at_a_time(tmp_path):
    """Neither way holds more than a few episodes in memory, whatever the size of the task."""
    horizon, episodes, numbers = 100, 150, 60
    megabytes = episodes * (horizon + 1) * numbers * 4 / 2**20
    description = Description("wide", {}, (), horizon, numbers, 2, simulator=False)
    writer = DatasetWriter(tmp_path / "wide", description, {0: episodes})
    draw = np.random.default_rng(0)
    for _ in range(episodes):
        one = Episodes(
            observation=draw.normal(size=(1, horizon + 1, numbers)).astype(np.float32),
            action=draw.uniform(-1, 1, (1, horizon, 2)).astype(np.float32),
            reward=draw.normal(size=(1, horizon)).astype(np.float32),
            length=np.array([horizon]),
            terminated=np.array([False]),
            truncated=np.array([True]),
            diverged=np.array([False]),
        )
        writer.add(0, one, 0)
    writer.seal({0: TaskRecord("train", (), {})}, {"name": "none", "config": {}, "curve": []})
    wide = Dataset(tmp_path / "wide")
    minari.list_local_datasets()  # what the libraries load once is not what is measured
    tracemalloc.start()
    export_minari(wide, "wide", "none")
    import_minari(["wide"], tmp_path / "back", progress="none")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Dataset(tmp_path / "back").fingerprint == wide.fingerprint
    assert peak / 2**20 < 0.8 * megabytes


def test_a_failed_export_leaves_no_half_dataset(dataset, monkeypatch):
    whole = our_minari._buffers

    def breaks(data):
        yield next(whole(data))
        if data.task == 1:
            raise OSError(28, "No space left on device")
        yield from list(whole(data))[1:]

    monkeypatch.setattr(our_minari, "_buffers", breaks)
    with pytest.raises(OSError, match="No space left"):
        export_minari(dataset, "pr", "none")
    assert list(minari.list_local_datasets()) == ["pr/task-00-v0"]


def test_an_export_that_was_killed_is_noticed(dataset, tmp_path):
    export_minari(dataset, "pr", "none")
    file = tmp_path / "minari" / "pr" / "task-04-v0" / "data" / "metadata.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"total_episodes": 2}))
    with pytest.raises(DataError, match=r"task-04-v0 has 2 of 6 episodes.*minari delete"):
        import_minari(["pr"], tmp_path / "back", progress="none")
    assert not (tmp_path / "back").exists()


def test_nothing_is_overwritten(dataset, tmp_path):
    foreign("pr/task-04-v0")
    with pytest.raises(DataError, match=r"already has pr/task-04-v0.*minari delete"):
        export_minari(dataset, "pr", "none")
    assert len(minari.list_local_datasets()) == 1
    with pytest.raises(DataError, match="already exists"):
        import_minari(["pr"], tmp_path, progress="none")
    with pytest.raises(ConfigError, match="cannot name Minari datasets"):
        export_minari(dataset, "a b", "none")


# --- from elsewhere ---


def pendulum(identity, seed):
    """Two episodes of Gymnasium's pendulum, whose actions lie in [-2, 2]."""
    env = DataCollector(gymnasium.make("Pendulum-v1", max_episode_steps=30))
    env.action_space.seed(seed)
    for i in range(2):
        env.reset(seed=seed + i)
        for _ in range(30):
            env.step(env.action_space.sample())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = env.create_dataset(identity)
    env.close()
    return made


def test_logs_without_a_simulator_train_and_adapt(tmp_path, capsys):
    recorded = [pendulum(f"pendulum/{word}-v0", seed) for word, seed in (("a", 0), ("b", 5))]
    data = import_minari(["pendulum"], tmp_path / "swing", progress="none")
    assert (data.family, data.has_simulator, data.horizon) == ("swing", False, 30)
    assert data.manifest["action_low"] == [-2.0]
    assert data.manifest["action_high"] == [2.0]
    for task, made in enumerate(recorded):
        for i, given in enumerate(made.iterate_episodes()):
            np.testing.assert_allclose(2 * data.task(task).actions[i], given.actions, rtol=1e-6)
            assert np.array_equal(data.task(task).observations[i], given.observations)
            assert np.array_equal(data.task(task).rewards[i], given.rewards.astype(np.float32))
        assert data.task(task).truncated.all()
    settings = {
        "updates": 20,
        "updates_per_call": 10,
        "evaluate_every": 20,
        "checkpoint_every": 20,
        "sampling": {"meta_batch": 2, "batch_size": 8, "context_size": 6},
        "method": {"encoder": {"hidden": [16, 16]}},
        "learner": {"hidden": [16, 16]},
    }
    run = api.train("focal", data, settings=settings, out=tmp_path / "runs", progress="none")
    assert run.config.method.encoder.next_observation, "what differs between tasks is not known"
    assert run.checkpoints.steps() == [20]
    agent = api.load_agent(run)
    adapted = agent.adapt(data.task(1).transitions(np.arange(20)))
    assert np.abs(adapted.act(np.zeros(3))).max() <= 2
    assert np.isfinite(list(summarise(api.evaluate(run)).values())).all()
    with pytest.raises(DataError, match=r"swing has no simulator.*nothing to film"):
        data.make_family()
    from ertrl.cli import main

    assert main(["train", str(run.path), "--json"]) == 0
    assert "value of policy/train" in json.loads(capsys.readouterr().out)["scores"]


def test_episodes_of_different_lengths_and_ends(tmp_path):
    died = np.array([False, False, True])
    foreign("logs/a-v0", episode(5), episode(3, terminations=died))
    foreign("logs/b-v0", episode(4, seed=1))
    data = import_minari(["logs/b-v0", "logs/a-v0"], tmp_path / "logs", progress="none")
    assert data.horizon == 5
    assert data.task(0).lengths.tolist() == [4], "tasks are numbered as they were named"
    second = data.task(1)
    assert second.lengths.tolist() == [5, 3]
    assert second.terminated.tolist() == [False, True]
    assert not second.observations[1, 4:].any(), "padding is zero"
    assert not second.actions[1, 3:].any()
    assert second.transitions(np.arange(8)).terminated.tolist() == [0] * 7 + [1]


def test_unbounded_actions_need_a_limit(tmp_path):
    foreign("logs/a-v0", action=Box(-np.inf, np.inf, (1,), np.float32))
    with pytest.raises(DataError, match=r"no bounds.*--action-low"):
        import_minari(["logs/a-v0"], tmp_path / "a", progress="none")
    with pytest.raises(DataError, match="leaves nothing to choose"):
        import_minari(["logs/a-v0"], tmp_path / "a", bounds=(1.0, 1.0), progress="none")
    with pytest.raises(ConfigError, match="2 action limits for 1 numbers"):
        import_minari(["logs/a-v0"], tmp_path / "a", bounds=(-4.0, [4, 4]), progress="none")
    data = import_minari(["logs/a-v0"], tmp_path / "a", bounds=(-4.0, 4.0), progress="none")
    given = next(iter(minari.load_dataset("logs/a-v0").iterate_episodes())).actions
    np.testing.assert_allclose(4 * data.task(0).actions[0], given, rtol=1e-6)


def test_limits_that_contradict_the_space_are_refused(tmp_path):
    foreign("logs/a-v0")
    for given in ({"action_low": -4}, {"action_high": [4]}, {"action_low": -4, "action_high": 4}):
        with pytest.raises(ConfigError, match=r"a-v0: action_\w+ is .*bounds \[-?2.0\].*Leave"):
            import_logs("minari:logs/a-v0", tmp_path / "a", progress="none", **given)
    same = import_logs("minari:logs/a-v0", tmp_path / "a", action_low=-2, progress="none")
    assert same.manifest["action_low"] == [-2.0]


def test_one_limit_is_for_what_has_none(tmp_path):
    half = Box(np.array([-2, 0]), np.array([2, np.inf], np.float32), dtype=np.float32)
    foreign("logs/a-v0", episode(actions=np.ones((4, 2), np.float32)), action=half)
    with pytest.raises(DataError, match=r"no bounds.*--action-low"):
        import_minari(["logs/a-v0"], tmp_path / "a", progress="none")
    with pytest.raises(ConfigError, match=r"action_high is given as \[3, 5\]"):
        import_minari(["logs/a-v0"], tmp_path / "a", bounds=(None, [3, 5]), progress="none")
    data = import_minari(["logs/a-v0"], tmp_path / "a", bounds=(None, 5.0), progress="none")
    assert data.manifest["action_low"] == [-2.0, 0.0]
    assert data.manifest["action_high"] == [2.0, 5.0]


def test_an_end_with_the_time_limit_is_an_end(tmp_path):
    """Gymnasium tells both in one step."""
    last = np.array([False, False, False, True])
    foreign("logs/a-v0", episode(terminations=last, truncations=last))
    import_minari(["logs/a-v0"], tmp_path / "a", progress="none")
    task = Dataset(tmp_path / "a").task(0)
    assert (task.terminated.tolist(), task.truncated.tolist()) == ([True], [False])


def bad(field, value):
    values = np.array(getattr(episode(), field), float)
    values[2] = value
    return episode(**{field: values})


STRANGE = {
    "dict observations": (
        {"observation": Dict({"x": LINE}), "buffer": {"observations": {"x": np.zeros((5, 3))}}},
        "observations are Dict.*Flatten",
    ),
    "discrete actions": (
        {"action": Discrete(3), "buffer": {"actions": np.zeros(4, int)}},
        r"actions are Discrete\(3\)",
    ),
    "other size": (
        {
            "observation": Box(-1, 1, (2,), np.float32),
            "buffer": {"observations": np.zeros((5, 2), np.float32)},
        },
        r"\(2,\), float32\).*, logs/good-v0 has .*share the size of observations",
    ),
    "other bounds": ({"action": Box(-3.0, 3.0, (1,), np.float32)}, "the bounds of actions"),
    "too large": ({"buffer": {"actions": np.full((4, 1), 2.5)}}, "outside of the action space"),
    "ends early": (
        {"buffer": {"terminations": np.array([False, True, False, False])}},
        "goes on after a terminal state",
    ),
    "rows": ({"buffer": {"observations": np.zeros((4, 3))}}, "4 observations, 4 actions"),
    "not a number": ({"episode": bad("rewards", np.nan)}, "episode 0: rewards are NaN.*step 2"),
    "infinite": ({"episode": bad("observations", 1e300)}, "observations are NaN, infinite or bey"),
    "bad action": ({"episode": bad("actions", np.nan)}, "actions are NaN"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_data_is_refused_by_name(kind, tmp_path):
    what, message = STRANGE[kind]
    one = what.get("episode") or episode(**what.get("buffer", {}))
    spaces = {k: what[k] for k in ("observation", "action") if k in what}
    foreign("logs/good-v0")
    foreign("logs/bad-v0", one, **spaces)
    with pytest.raises(DataError, match=message) as caught:
        import_minari(["logs/good-v0", "logs/bad-v0"], tmp_path / "out", progress="none")
    assert "logs/bad-v0" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["minari"], "nothing half-made is left"


def test_names_and_groups_are_checked(tmp_path):
    foreign("logs/walk-v0")
    foreign("logs/run-v0")

    def attempt(*names, **options):
        return import_minari(names, tmp_path / "out", progress="none", **options)

    with pytest.raises(DataError, match=r"Did you mean 'logs/walk-v0'.*minari download"):
        attempt("logs/wlak-v0")
    with pytest.raises(ConfigError, match="named twice"):
        attempt("logs/walk-v0", "logs")
    with pytest.raises(ConfigError, match="Did you mean 'logs/walk-v0'"):
        attempt("logs", held_out=["logs/wlak-v0"])
    with pytest.raises(ConfigError, match="1 of 2 tasks are left to train on"):
        attempt("logs", ood=["logs/walk-v0"])
    with pytest.raises(ConfigError, match="say which"):
        attempt()
    foreign("logs/limp-v0")
    groups = attempt("logs", ood=["logs/limp-v0"], name="gaits").groups
    assert {name: len(tasks) for name, tasks in groups.items()} == {"train": 2, "test-ood": 1}
    assert Dataset(tmp_path / "out").family == "gaits"


def test_without_the_extra_the_message_says_how_to_get_it(dataset, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[minari\]'"):
        export_minari(dataset, "pr")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[minari\]'"):
        import_minari(["pr"], tmp_path / "out")


def test_the_commands(dataset, tmp_path, capsys):
    from ertrl.cli import main

    export = ["data", "export", str(dataset.path), "--minari", "pr", "--progress", "none"]
    assert main([*export, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["minari"]) == 7
    out = tmp_path / "back"
    command = ["data", "import", "minari:pr", "--out", str(out), "--progress", "none"]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fingerprint"] == dataset.fingerprint
    assert main(export) == 1
    assert "already has pr/task-00-v0" in capsys.readouterr().err


def test_logs_with_units_of_their_own_survive_the_round_trip(tmp_path):
    rows = np.arange(120)
    logs = {
        "task": rows // 30,
        "episode": rows // 10,
        "observation": np.random.default_rng(0).normal(size=(120, 3)),
        "action": np.random.default_rng(1).uniform(-8, 8, size=(120, 1)),
        "reward": np.random.default_rng(2).normal(size=120),
    }
    ours = import_logs(logs, tmp_path / "ours", action_low=-8, action_high=8, progress="none")
    names = export_minari(ours, "arm", "none")
    back = import_minari(names, tmp_path / "back", progress="none")
    assert back.manifest["action_low"] == ours.manifest["action_low"] == [-8.0]
    assert back.fingerprint == ours.fingerprint

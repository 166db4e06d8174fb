"""Own logs: whatever they look like, they become a dataset, or every mistake in them is named."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import ertrl
from ertrl.cli import main
from ertrl.data import Dataset, import_logs
from ertrl.data.imports.rows import FEW
from ertrl.envs.tasks import split_tasks
from ertrl.errors import ConfigError, DataError
from ertrl.methods import methods
from ertrl.profiles import DataSize, default_profile, settings_for, train_config


def logs(tasks=5, episodes=3, steps=4, seed=0):
    """Arrays of logs: observations of two numbers, actions in [-8, 8]."""
    draw = np.random.default_rng(seed)
    task, episode, step = (
        x.ravel() for x in np.meshgrid(*map(range, (tasks, episodes, steps)), indexing="ij")
    )
    n = len(task)
    return {
        "task": task,
        "episode": episode,
        "step": step,
        "observation": draw.normal(size=(n, 2)),
        "action": draw.uniform(-8, 8, size=(n, 1)),
        "reward": draw.normal(size=n),
        "terminated": np.zeros(n, bool),
    }


def imported(tmp_path, given=None, **options):
    return import_logs(
        logs() if given is None else given, tmp_path / "own", progress="none", **options
    )


def test_arrays_become_episodes(tmp_path):
    given = logs()
    last = (given["task"] == 2) & (given["episode"] == 1) & (given["step"] == 3)
    given["terminated"] = last
    data = imported(tmp_path, given, action_low=-8, action_high=8)
    assert not data.has_simulator
    assert (data.dims.observation, data.dims.action, len(data.tasks)) == (2, 1, 5)
    task = data.task(2)
    # Without next observations, a row that does not end in a terminal state has no transition.
    assert task.lengths.tolist() == [3, 4, 3]
    assert task.terminated.tolist() == [False, True, False]
    assert task.truncated.tolist() == [True, False, True]
    rows = (given["task"] == 2) & (given["episode"] == 1)
    np.testing.assert_allclose(task.observations[1, :4], given["observation"][rows], rtol=1e-6)
    np.testing.assert_array_equal(task.observations[1, 4], task.observations[1, 3])
    np.testing.assert_allclose(8 * task.actions[1, :4], given["action"][rows], rtol=1e-5)
    np.testing.assert_allclose(task.rewards[1, :4], given["reward"][rows], rtol=1e-6)
    assert data.manifest["imported"]["notes"] == [
        "14 last rows have no next observation and are left out",
        "1 terminal rows have no next observation; their own stands for it",
        "5 of 5 tasks have fewer than 16 transitions (task 0 has 9): from so few, little can be "
        "learned or estimated",
    ]


def test_rows_in_any_order_give_the_same_dataset(tmp_path):
    given = logs()
    order = np.random.default_rng(1).permutation(len(given["task"]))
    one = imported(tmp_path / "a", given)
    other = imported(tmp_path / "b", {name: values[order] for name, values in given.items()})
    assert one.fingerprint == other.fingerprint


def test_next_observations_keep_the_last_row_and_show_where_logs_are_broken(tmp_path):
    given = logs(episodes=1)
    following = np.roll(given["observation"], -1, axis=0)
    following[5] += 1.0  # row 6: task 1, step 1
    data = imported(tmp_path, given | {"next_observation": following})
    assert [data.task(t).lengths.tolist() for t in range(3)] == [[4], [2, 2], [4]]
    np.testing.assert_allclose(data.task(1).observations[0, 2], following[5], rtol=1e-6)
    assert any("next observations are not those" in n for n in data.manifest["imported"]["notes"])


def test_episodes_may_be_told_by_their_ends_alone(tmp_path):
    given = logs(episodes=2)
    given["truncated"] = given["step"] == 3
    del given["episode"], given["step"], given["terminated"]
    assert imported(tmp_path, given).task(4).lengths.tolist() == [3, 3]


def test_long_episodes_are_cut_and_a_cut_is_no_end(tmp_path):
    given = logs(episodes=1, steps=10)
    given["terminated"] = given["step"] == 9
    data = imported(tmp_path, given, longest=4)
    assert data.horizon == 4
    task = data.task(0)
    assert task.lengths.tolist() == [4, 4, 2]
    assert task.terminated.tolist() == [False, False, True]
    np.testing.assert_array_equal(task.observations[0, 4], task.observations[1, 0])


def test_policies_and_parameters_are_kept(tmp_path):
    given = logs() | {
        "who": np.tile(np.repeat(["b", "a", "b"], 4), 5),
        "mass": np.repeat(range(5), 12),
    }
    data = imported(tmp_path, given, columns={"policy": "who"}, parameters=["mass"])
    assert data.task(3).checkpoints.tolist() == [1, 0, 1]
    assert data.task(3).parameters.tolist() == [3.0]
    given["mass"][0] = 7
    with pytest.raises(DataError, match=r"mass of task 0 has 2 values"):
        imported(tmp_path / "again", given, parameters=["mass"])


def write_csv(path, given):
    columns = {}
    for name, values in given.items():
        wide = values.reshape(len(values), -1)
        names = [name] if values.ndim == 1 else [f"{name}_{i}" for i in range(wide.shape[1])]
        columns |= dict(zip(names, wide.T.tolist(), strict=True))
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_parquet(path, given):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = {k: list(v) if v.ndim > 1 else v for k, v in given.items()}
    parquet.write_table(pyarrow.table(table), path)


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "folder"])
def test_files_hold_what_arrays_hold(kind, tmp_path):
    given, path = logs(), tmp_path / f"logs.{kind}"
    if kind == "csv":
        write_csv(path, given)
    elif kind == "npz":
        np.savez(path, **given)
    elif kind == "parquet":
        write_parquet(path, given)
    else:
        path = tmp_path / "logs"
        path.mkdir()
        for task in range(5):
            rows = given["task"] == task
            part = {k: v[rows] for k, v in given.items() if k != "task"}
            write_csv(path / f"{task}.csv", part)
    data = import_logs(path, tmp_path / "own", progress="none")
    assert data.fingerprint == imported(tmp_path / "arrays", given).fingerprint
    assert data.manifest["imported"]["format"] == kind
    assert data.manifest["imported"]["tasks"] == list("01234")


def changed(name, where, value):
    given = logs()
    given[name] = given[name].astype(object if isinstance(value, str) else given[name].dtype)
    given[name][where] = value
    if isinstance(value, str):
        given[name] = given[name].astype(str)
    return given


BAD = {
    "nan": (changed("reward", 4, np.nan), r"column 'reward' is empty, NaN, .*: row 5$"),
    "text": (changed("reward", 7, "n/a"), r"column 'reward' holds no number \('n/a'\): row 8$"),
    "infinite": (
        changed("observation", [0, 1], 1e300),
        r"'observation' is empty, NaN, .*: rows 1, 2$",
    ),
    "gap": (changed("step", 3, 9), r"step must count up by 1 .* order of rows: row 4$"),
    "twice": (changed("step", 3, 2), r"the same task, episode and step as another row: row 4$"),
    "no task": (changed("task", 4, ""), r"values\):\n  - column 'task' is empty: row 5$"),
    "goes on": (changed("terminated", 5, True), r"goes on after a terminal state: row 6$"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_told_with_its_rows(kind, tmp_path):
    given, message = BAD[kind]
    with pytest.raises(DataError, match=message):
        imported(tmp_path, given)
    assert not list(tmp_path.iterdir()), "nothing half-made is left"


def test_everything_that_is_wrong_is_told_at_once(tmp_path):
    given = changed("reward", 4, np.nan) | {
        "observation": changed("observation", 9, np.nan)["observation"]
    }
    given["step"][20] = 9
    given["action"][30] = 11
    with pytest.raises(DataError) as caught:
        imported(tmp_path, given, action_low=-8, action_high=8)
    told = str(caught.value).splitlines()[1:]
    assert [line.split("row ")[1] for line in told] == ["10", "5", "31", "21"], told


def test_every_line_of_a_wrong_length_is_told(tmp_path):
    write_csv(tmp_path / "logs.csv", logs())
    lines = (tmp_path / "logs.csv").read_text().splitlines()
    lines[3], lines[9] = lines[3].rpartition(",")[0], lines[9] + ",1"
    (tmp_path / "logs.csv").write_text("\n".join(lines))
    told = r"line 4 has 7, line 10 has 9 values; the first line has 8 names$"
    with pytest.raises(DataError, match=told):
        import_logs(tmp_path / "logs.csv", tmp_path / "own")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reward": 3.0}, "reward 1"),
        ({"episode": np.ones((60, 2))}, "episode must have 1 value per row, not 2"),
        ({"reward": np.ones((60, 0))}, "reward must have 1 value per row, not 0"),
        ({"observation": np.ones((60, 0))}, "observation must have 1 value per row, not 0"),
        ({"next_observation": np.ones((60, 3))}, "next_observation must have 2 values per row"),
    ],
)
def test_columns_of_a_wrong_width_are_told(change, told, tmp_path):
    with pytest.raises(DataError, match=told):
        imported(tmp_path, {**logs(), **change})


@pytest.mark.parametrize("limit", [np.nan, -np.inf, -1e300])
def test_action_limits_that_are_no_numbers_are_told(limit, tmp_path):
    with pytest.raises(ConfigError, match="actions must lie within"):
        imported(tmp_path, action_low=limit)
    assert not list(tmp_path.iterdir())


def test_broken_files_are_told(tmp_path):
    whole, file = tmp_path / "whole.npz", tmp_path / "logs.npz"
    np.savez(whole, **logs())
    data = whole.read_bytes()
    for broken in (b"", data[:-200], data[:200] + b"!" + data[201:], b"\x93NUMPY" + data):
        file.write_bytes(broken)
        with pytest.raises(DataError, match=r"logs\.npz cannot be read as npz"):
            import_logs(file, tmp_path / "own")
    with open(file, "wb") as out:
        np.save(out, np.ones(3))
    with pytest.raises(DataError, match="a single array that has no name"):
        import_logs(file, tmp_path / "own")


def test_files_of_a_folder_that_do_not_fit_are_told(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    np.savez(folder / "a.npz", **logs())
    np.savez(folder / "b.npz", **{**logs(), "observation": np.ones((60, 3))})
    with pytest.raises(DataError, match=r"'observation' of .*b\.npz holds \(3,\) per row"):
        import_logs(folder, tmp_path / "own")


def test_a_column_that_is_not_there_or_has_two_roles_is_named(tmp_path):
    with pytest.raises(DataError, match=r"unknown column 'rewart'. Did you mean 'reward'"):
        import_logs(logs(), tmp_path / "d", columns={"reward": "rewart"}, progress="none")
    with pytest.raises(DataError, match="reward cannot be reward and policy"):
        import_logs(logs(), tmp_path / "d", columns={"policy": "reward"}, progress="none")


def test_a_task_in_other_units_is_suspected(tmp_path):
    given = logs()
    first = given["task"] == given["task"][0]
    given["action"] = np.where(first[:, None], 1000, 1) * given["action"]
    data = import_logs(given, tmp_path / "d", progress="none")
    notes = " ".join(data.manifest["imported"]["notes"])
    assert "by the logs; if more is possible, give --action-low" in notes
    assert "are they in the same units?" in notes


def test_few_rows_and_what_is_not_given_are_told(tmp_path, capsys):
    write_csv(tmp_path / "short.csv", logs(tasks=2, episodes=1, steps=3))
    words = [str(tmp_path / "short.csv"), "--out", str(tmp_path / "short"), "--action-low", "-8"]
    assert main(["data", "import", *words, "--progress", "none"]) == 0
    told = capsys.readouterr().out
    assert "tasks: 2 train; none is held out (--held-out NAME)" in told
    assert "2 of 2 tasks have fewer than 16 transitions (task 0 has 2)" in told
    assert "if more is possible, give --action-high\n" in told
    enough = settings_for(DataSize(2, FEW, 2 * FEW, 3, 3))["sampling"]["context_size"]
    fewer = settings_for(DataSize(2, FEW - 1, 2 * FEW, 3, 3))["sampling"]["context_size"]
    assert enough == fewer == FEW / 4, "below, it is more than a quarter"


def test_missing_columns_and_limits_are_named(tmp_path):
    given = logs()
    with pytest.raises(DataError, match=r"^the table has the .* none for reward\..*--columns"):
        imported(tmp_path, {k: v for k, v in given.items() if k != "reward"})
    with pytest.raises(DataError, match="says nowhere where an episode ends"):
        imported(tmp_path, {k: v for k, v in given.items() if k not in ("episode", "terminated")})
    with pytest.raises(DataError, match=r"outside of \[-2.0\] to \[2.0\]: rows"):
        imported(tmp_path, given, action_low=-2, action_high=2)
    with pytest.raises(ConfigError, match="Did you mean 'reward'"):
        imported(tmp_path, given, columns={"rewrad": "r"})
    with pytest.raises(DataError, match="equally many rows"):
        imported(tmp_path, given | {"reward": np.zeros(3)})
    del given["step"]
    order = np.arange(len(given["task"])).reshape(-1, 4).T.ravel()
    with pytest.raises(DataError, match="rows must stand together"):
        imported(tmp_path, {k: v[order] for k, v in given.items()})


@pytest.mark.parametrize("name", ["../x", "a\\b", "a\nb", "a\x85b", ".", "..", "a" * 181, "ö" * 91])
def test_names_that_no_folder_of_a_run_can_have_are_refused_before_reading(name, tmp_path):
    for source in (tmp_path / "not-there.csv", "minari:not-there"):
        with pytest.raises(ConfigError, match=r"cannot be the name of data.*180.*with --name"):
            import_logs(source, tmp_path / "own", name=name, progress="none")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("parameters", [["reward", "reward"], ["a" * 201], [""]])
def test_names_of_parameters_that_cannot_be_stored_are_refused_before_reading(parameters, tmp_path):
    with pytest.raises(ConfigError, match="--parameters takes different names of 1 to 200 char"):
        import_logs(tmp_path / "not-there.csv", tmp_path / "own", parameters=parameters)
    assert not list(tmp_path.iterdir())


def test_tasks_are_split_by_share_or_by_name():
    names = [str(i) for i in range(12)]
    split = split_tasks(names)
    assert [n for n in names if split[n] == "test-id"] == ["3", "9"]
    assert set(split_tasks(["a", "b"]).values()) == {"train"}
    split = split_tasks(names, ["1"], ["11", "10"])
    assert (split["1"], split["10"], split["2"]) == ("test-id", "test-ood", "train")
    with pytest.raises(ConfigError, match="unknown task '13'"):
        split_tasks(names, ["13"])
    with pytest.raises(ConfigError, match="as held-out and as out of distribution"):
        split_tasks(names, ["1"], ["1"])


def test_the_command(tmp_path, capsys):
    file, out = tmp_path / "logs.csv", tmp_path / "own"
    given = logs()
    given["torque"] = given.pop("action")[:, 0]
    given["sensor"] = given.pop("observation")
    write_csv(file, given)
    words = ["data", "import", str(file), "--out", str(out), "--progress", "none"]
    assert main(words) == 1
    assert "none for observation, action" in capsys.readouterr().err
    words += ["--columns", "action=torque", "observation=sensor", "--held-out", "1", "3"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["simulator"] is False
    assert Dataset(out).groups == {"train": [0, 2, 4], "test-id": [1, 3]}


def test_agents_speak_the_units_of_the_logs(tmp_path):
    given = logs(episodes=8, steps=10)
    data = ertrl.import_logs(
        given, tmp_path / "own", action_low=-10, action_high=10, progress="none"
    )
    run = ertrl.train(
        "focal",
        data,
        settings={"updates": 100, "evaluate_every": 100},
        out=tmp_path,
        progress="none",
    )
    agent = ertrl.load_agent(run)
    stored = data.task(0).transitions(np.arange(20))
    own = stored._asdict() | {"action": 10 * stored.action}
    one, other = agent.adapt(stored), agent.adapt(own)
    np.testing.assert_allclose(one.z, other.z, atol=1e-5)
    raw = agent.act(stored.observation[:1], one.z[None])[0]
    np.testing.assert_allclose(one.act(stored.observation[0]), 10 * raw, rtol=1e-5)
    with pytest.raises(DataError, match=r"are they in other units"):
        agent.adapt(own | {"action": 1000 * stored.action})


@pytest.mark.usefixtures("forgets_own_parts")
def test_the_example_runs(tmp_path, monkeypatch):
    examples = Path(__file__).parent.parent / "examples"
    monkeypatch.syspath_prepend(examples)
    import own_logs
    import pendulum_logs

    for name in ("own_logs", "pendulum_logs"):
        assert len((examples / f"{name}.py").read_text().splitlines()) < 60
    pendulum_logs.write_logs(tmp_path / "pendulum.csv", episodes=2)
    tiny = {"updates": 100, "evaluate_every": 100, "learner": {"hidden": [16]}}
    returns = own_logs.main(tmp_path, tiny, episodes=1)
    assert len(returns) == 12
    assert {r["group"] for r in returns.values()} == {"train", "test-id"}


def test_settings_follow_from_the_data(tmp_path):
    size = DataSize(9, 5000, 45_000, 200, 4)
    chosen = settings_for(size)
    assert chosen["sampling"] == {"meta_batch": 9, "batch_size": 56, "context_size": 64}
    assert chosen["learner"]["discount"] == 0.97
    assert chosen["updates"] == 5000
    few = settings_for(DataSize(3, 20, 60, 10, 60))
    assert few["sampling"]["meta_batch"] == 3
    assert few["sampling"]["context_size"] == 5
    assert few["learner"] == {"hidden": [256] * 3, "discount": 0.9}
    data = imported(tmp_path)
    for profile in ("logs", "laptop", "paper"):
        for method in methods():
            config = train_config(profile, data.family, method, dataset=data)
            config.validate()
            assert config.sampling.meta_batch == 4
    assert default_profile(data) == "logs"

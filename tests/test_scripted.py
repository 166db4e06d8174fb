"""Scripted experts: recorded with noise instead of trained, and judged by success as well."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

import ertrl
from conftest import TINY_TRAIN
from ertrl import store
from ertrl.cli import main
from ertrl.collection import collect as module
from ertrl.collection.config import ScriptedConfig
from ertrl.data.info import describe
from ertrl.data.info import tables as tables_of
from ertrl.envs import rollout
from ertrl.envs.rollout import success_rates
from ertrl.errors import ConfigError, PluginError, SimulationError
from ertrl.reporting.measure.scores import success_rows
from ertrl.reporting.read.runs import read_runs
from ertrl.reporting.write import tables
from fake_runs import fake_run

pytestmark = pytest.mark.usefixtures("forgets_own_parts")
SMALL = ScriptedConfig(checkpoints=3, episodes_per_checkpoint=2, reference_episodes=2)


class Line(gymnasium.Env):
    """A point that must find its place on a line. Actions are in [-2, 2]."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Box(-2.0, 2.0, (1,), np.float32)

    def __init__(self, goal):
        self.goal = goal

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.02, 0.02)
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += 0.2 * float(action[0])
        far = abs(self.x - self.goal)
        return np.array([self.x], np.float32), -far, False, False, {"is_success": far < 0.05}


def expert(observation, task):
    return 5 * (task["goal"] - observation)


def lines(**options):
    goals = [{"goal": g} for g in (-1.0, -0.5, 0.5, 1.0, 1.5)]
    about = {"make": lambda task: Line(**task), "tasks": goals, "horizon": 15, "expert": expert}
    return ertrl.register_family("lines", **about | options)


@pytest.fixture
def data(tmp_path):
    return ertrl.collect(lines(), tmp_path / "data", config=SMALL, progress="none")


def test_checkpoints_are_strengths_of_noise_from_random_to_expert(data):
    told = data.manifest["collector"]
    assert told["name"] == "scripted"
    assert [point["noise"] for point in told["curve"]] == [1.0, 0.5, 0.0]
    assert [point["success"] for point in told["curve"]][-1] == 1.0
    by_checkpoint = tables_of(describe(data))[1]
    assert by_checkpoint.head[1] == "noise"
    assert [row[1] for row in by_checkpoint.rows] == ["1.00", "0.50", "0.00"]
    for task in data.tasks.values():
        means = [task.returns[task.checkpoints == c].mean() for c in range(3)]
        assert means[0] < means[1] < means[2]
        # The last ones are the expert's own, in [-1, 1] of [-2, 2].
        last = task.checkpoints == 2
        seen, done = task.observations[last, :-1], task.actions[last]
        own = np.clip(5 * (task.parameters[0] - seen) / 2, -1, 1)
        np.testing.assert_allclose(done, own, atol=1e-6)
        assert task.reference["success"] == 1.0
        assert task.reference["expert"] > max(task.reference["random"], task.reference["zero"])


def test_a_stopped_recording_goes_on_bit_for_bit(data, tmp_path, monkeypatch):
    recorded = module._Collection._record

    def killed(self, checkpoint):
        recorded(self, checkpoint)
        self.save()
        raise KeyboardInterrupt

    again = {"out": tmp_path / "again", "config": SMALL, "progress": "none"}
    with monkeypatch.context() as patch:
        patch.setattr(module._Collection, "_record", killed)
        with pytest.raises(KeyboardInterrupt):
            ertrl.collect(lines(), **again)
    assert ertrl.collect(lines(), **again).fingerprint == data.fingerprint
    assert ertrl.collect(lines(), **again).fingerprint == data.fingerprint, "and is opened again"


def test_a_recording_goes_on_after_a_repair_of_its_expert(data, tmp_path, monkeypatch):
    recorded, broken = module._Collection._record, []

    def failing(observation, task):
        return expert(observation, task if not broken else {})

    def record(self, checkpoint):
        recorded(self, checkpoint)
        self.save()
        broken.append(checkpoint)

    again = {"out": tmp_path / "again", "config": SMALL, "progress": "none"}
    with monkeypatch.context() as patch:
        patch.setattr(module._Collection, "_record", record)
        told = r"task 0 .*expert\(\) failed in test_scripted.py, line \d+: KeyError: 'goal'"
        with pytest.raises(PluginError, match=told):
            ertrl.collect(lines(expert=failing), **again)
    begun = ertrl.collect(lines(), **again)
    assert broken == [0]
    assert begun.fingerprint == data.fingerprint


def test_success_is_a_second_measure(data, tmp_path, capsys):
    words = ["--data", str(data.path), "--out", str(tmp_path / "runs"), *TINY_TRAIN]
    assert main(["train", "focal", *words]) == 0
    run = next((tmp_path / "runs").iterdir())
    result = ertrl.evaluate(run)
    assert result.success.keys() == result.scores.keys()
    assert result["references"]["success"] == [1.0] * 5
    for protocol in result["protocols"].values():
        flags = np.array(protocol["success"])
        assert flags.shape == (5, 1)
        assert set(flags.ravel()) <= {0.0, 1.0}
    capsys.readouterr()
    assert main(["evaluate", str(run)]) == 0
    assert "success % offline/test-id" in capsys.readouterr().out
    assert main(["evaluate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["success"] == result.success


def test_success_counts_at_any_step_and_is_unknown_where_nobody_says(tmp_path):
    family = lines()
    there_and_away = [np.full((5, 1), v) for v in [*[0.625] * 4, *[-0.625] * 11]]
    seen = rollout(family, family.parameters, lambda _, t: there_and_away[t], range(5))
    passed = (np.abs(seen.observation[:, 1:, 0] - family.parameters) < 0.05).any(axis=1)
    np.testing.assert_array_equal(seen.success, passed)
    assert len(set(passed)) == 2, "some goals are passed, others are not"
    only_successes = np.where(seen.success == 1, 1.0, np.nan)
    told = seen._replace(success=only_successes)
    np.testing.assert_array_equal(success_rates(told, range(5)), passed)
    other = ertrl.make_family("point-robot")
    seen = rollout(other, other.parameters[:2], lambda s, _: np.zeros((2, 2)), [0, 1])
    assert np.isnan(seen.success).all()


def test_gymnasium_is_told_of_success():
    lines()
    env = gymnasium.make("ertrl/Lines-v0")
    env.reset(seed=0)
    assert env.step(np.zeros(1))[-1]["success"] == 0.0


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [np.nan], None, ["left"]])
def test_an_expert_that_gives_something_else_is_refused(wrong, tmp_path):
    with pytest.raises(SimulationError, match="must give 1 finite numbers, got"):
        ertrl.collect(
            lines(expert=lambda o, t: wrong), tmp_path / "data", config=SMALL, progress="none"
        )


def test_settings_are_those_of_a_recording(tmp_path, capsys):
    family, wrong = lines(), ScriptedConfig(most_noise=0.2, least_noise=0.5)
    with pytest.raises(ConfigError, match=r"least_noise \(0.5\) must not be above most_noise"):
        ertrl.collect(family, tmp_path / "data", config=wrong)
    assert main(["collect", "lines", "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["seconds_by_part"]) == ["record", "references and checksums"]
    with pytest.raises(SystemExit):
        main(["collect", "lines", "--batch-size", "5"])
    with pytest.raises(ConfigError, match="has no scripted expert"):
        ertrl.make_family("point-robot").expert(np.zeros((1, 2)), np.zeros((1, 2)))


def test_a_report_shows_success_where_there_is_some(tmp_path):
    paths = [fake_run(tmp_path / "runs", "focal", seed, steps=(2000,)) for seed in (0, 1)]
    plain = read_runs(paths)
    assert success_rows(plain.families[0]) is None
    assert "success" not in tables.csv_table(plain) + tables.success_markdown(plain.families[0])
    for seed, path in enumerate(paths):
        file = path / "evaluations" / "00002000.json"
        content = store.read_json(file)
        content["references"]["success"] = [1.0] * 7 + [0.5]
        for protocol in content["protocols"].values():
            protocol["success"] = [[float(seed), 1.0]] * 8  # of two repeats
        store.write_json(file, content)
    made = ertrl.report(paths, tmp_path / "made").parent
    assert "Success rate" in (made / "report.html").read_text()
    *_, focal, expert = (made / "tables" / "summary.md").read_text().split("\n\n")[-2].splitlines()
    assert "| 75 ± " in focal, "the mean of 50 and 100"
    assert expert.endswith("| 75 | 75 | 75 |"), "the last group has two tasks"
    head, first, *_ = (made / "tables" / "summary.csv").read_text().splitlines()
    assert head.endswith(",success_percent")
    assert first.endswith(",50.000000")
    family = json.loads((made / "results.json").read_text())["families"]["point-robot"]
    rates = family["variants"][0]["runs"][1]["success_percent"]
    assert set(rates.values()) == {100.0}

"""Without a simulator: estimates from logs are right where the truth is known, and are reported."""

import re
from dataclasses import replace

import numpy as np
import pytest

import ertrl
from conftest import tiny_config
from ertrl import api
from ertrl.cli import main
from ertrl.config import replace_from_json
from ertrl.data.scaling import Scaling
from ertrl.errors import ConfigError, DataError
from ertrl.evaluation import summarise
from ertrl.evaluation.on_logs import _Rows as Rows
from ertrl.evaluation.on_logs import _value, measure_on_logs
from ertrl.evaluation.probes import ProbeSettings, leak

TASKS, EPISODES, STEPS, DISCOUNT = 6, 12, 15, 0.8


def drifting(seed=0):
    """A point moved by action and by the task's drift, rewarded for the action +1."""
    draw = np.random.default_rng(seed)
    rows = {name: [] for name in ("task", "episode", "step", "obs", "next_obs", "action", "reward")}
    for task in range(TASKS):
        for episode in range(EPISODES):
            x = draw.normal(size=2)
            for step in range(STEPS):
                action = draw.uniform(-1, 1, 1)
                after = 0.9 * x + 0.3 * np.array([action[0], task / 3 - 1])
                values = (task, episode, step, x, after, action, action[0])
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
                x = after
    return {name: np.array(values) for name, values in rows.items()}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    out = tmp_path_factory.mktemp("logs") / "drifting"
    return ertrl.import_logs(drifting(), out, action_low=-1, action_high=1, progress="none")


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    small = tiny_config("focal", updates=200, evaluate_every=200, standardise=True)
    config = replace_from_json(small, {"method": {"encoder": {"next_observation": True}}})
    return api.start(config, dataset, out=tmp_path_factory.mktemp("runs"), progress="none")


class Constant:
    """An agent that always does the same; its z is the task's drift."""

    z0 = np.zeros(1, np.float32)
    scaling = None

    def __init__(self, config, action):
        learner = replace(config.learner, discount=DISCOUNT)
        self.config, self._action = replace(config, learner=learner), action

    def act(self, observation, z):
        return np.full((len(observation), 1), self._action, np.float32)

    def encode(self, context):
        """What moved the second number: the drift itself."""
        return (context.next_observation - 0.9 * context.observation)[:, :, 1].mean(1)[:, None]


@pytest.mark.parametrize(("action", "truth"), [(1.0, 5.0), (-0.5, -2.5), (None, 0.0)])
def test_values_are_those_of_the_policy(dataset, run, action, truth):
    agent = Constant(run.config, action)
    z = None if action is None else agent.z0
    value = _value(agent, Rows.of(dataset, 2), z, Scaling.of(dataset))
    assert value == pytest.approx(truth, abs=0.6)  # rewards summed; ridge shrinks


def test_a_large_mean_of_rewards_is_no_error(dataset, run, tmp_path):
    """Pressures, temperatures in kelvin, money: their spread is small beside their mean."""
    logs = drifting()
    logs["reward"] = 1e6 + 10 * logs["reward"]
    shifted = ertrl.import_logs(
        logs, tmp_path / "shifted", action_low=-1, action_high=1, progress="none"
    )
    agent, of = Constant(run.config, 1.0), Scaling.of(shifted)
    assert measure_on_logs(agent, shifted)["prediction"]["reward"]["train"][1] < 0.05
    ours, theirs = (_value(agent, Rows.of(shifted, 2), z, of) for z in (agent.z0, None))
    assert ours - theirs == pytest.approx(50, abs=15)


@pytest.mark.parametrize("reading", [0.0, 25.3])
def test_a_sensor_that_never_changes_is_no_error(run, tmp_path, reading):
    logs = drifting()
    for name in ("obs", "next_obs"):
        logs[name] = np.column_stack([np.full(len(logs[name]), reading), logs[name]])
    dead = ertrl.import_logs(logs, tmp_path / "dead", action_low=-1, action_high=1, progress="none")
    agent = Constant(run.config, 1.0)
    agent.encode = lambda context: (context.reward * 0).mean(1)[:, None]
    assert measure_on_logs(agent, dead)["prediction"]["reward"]["train"][1] < 0.05
    value = _value(agent, Rows.of(dead, 2), agent.z0, Scaling.of(dead))
    assert value == pytest.approx(5.0, abs=0.6)


def test_a_z_that_knows_the_task_explains_what_a_model_without_it_cannot(dataset, run):
    found = measure_on_logs(Constant(run.config, 0.0), dataset)["prediction"]
    for group in dataset.groups:
        with_z, without = found["next state"][group]
        assert with_z < 0.02 < 0.05 < without
        assert found["reward"][group][0] < 0.02, "rewards need no z"


def test_what_an_episode_shares_is_not_explained_by_its_other_half(run, tmp_path):
    """Chance of an episode, of which its states tell nothing that holds in others."""
    logs, draw = drifting(), np.random.default_rng(1)
    episode = EPISODES * logs["task"] + logs["episode"]
    logs["obs"] = logs["next_obs"] = draw.normal(size=(TASKS * EPISODES, 8))[episode]
    logs["reward"] = draw.normal(size=TASKS * EPISODES)[episode]
    data = ertrl.import_logs(
        logs, tmp_path / "chance", action_low=-1, action_high=1, progress="none"
    )
    found = measure_on_logs(Constant(run.config, 0.0), data)["prediction"]["reward"]
    assert min(found["train"]) > 0.8


def test_z_does_not_tell_of_episodes_that_it_has_seen(run, tmp_path):
    """Tasks that are all the same: what rewards an episode has is luck, and z knows the luck."""
    draw, tasks, episodes = np.random.default_rng(2), 40, 2
    episode, step = np.divmod(np.arange(tasks * episodes * STEPS), STEPS)
    logs = {
        "task": episode // episodes,
        "episode": episode,
        "step": step,
        "obs": draw.normal(size=(len(step), 2)),
        "action": draw.uniform(-1, 1, (len(step), 1)),
        "reward": draw.normal(size=tasks * episodes)[episode],
    }
    data = ertrl.import_logs(logs, tmp_path / "luck", action_low=-1, action_high=1, progress="none")
    agent = Constant(run.config, 0.0)
    agent.encode = lambda context: context.reward.mean(1)[:, None]
    with_z, without = measure_on_logs(agent, data)["prediction"]["reward"]["train"]
    assert with_z > without


def test_what_logs_are_too_few_to_tell_is_left_out(run, tmp_path):
    """Of rewards that do not vary, and of a handful of rows, no share of variance is told."""

    def found(name, logs):
        options = {"action_low": -1, "action_high": 1, "progress": "none"}
        data = ertrl.import_logs(logs, tmp_path / name, **options)
        return measure_on_logs(Constant(run.config, 0.0), data)["prediction"]

    logs = drifting()
    flat = found("flat", {**logs, "reward": np.full(len(logs["task"]), 0.1)})
    assert list(flat) == ["next state"]
    rows = (logs["task"] < 2) & (logs["episode"] == 0) & (logs["step"] < 3)
    assert found("short", {name: values[rows] for name, values in logs.items()}) == {}


def test_training_says_how_good_it_is(run, capsys):
    scores = summarise(run.evaluations.read())
    assert {"value of policy/test-id", "next state unexplained/test-id"} <= set(scores)
    assert np.isfinite(list(scores.values())).all()
    assert any(line["kind"] == "evaluation" for line in run.metrics())
    with pytest.raises(ConfigError, match="oflin"):
        ertrl.evaluate(run, "oflin")
    assert main(["evaluate", str(run.path)]) == 0
    out = capsys.readouterr().out
    assert "no simulator: estimated from logs" in out
    assert "value of behaviour/train" in out


def test_a_protocol_needs_a_simulator(run, capsys):
    assert main(["evaluate", str(run.path), "--protocol", "online", "idaq"]) == 1
    told = "has no simulator: .* nothing to act in under the protocol online or idaq"
    assert re.search(told, capsys.readouterr().err)
    with pytest.raises(DataError, match=r"Name no protocol \(`ertrl evaluate RUN`\)"):
        ertrl.evaluate(run, "offline")


def test_probes_and_report_work_on_logs(run, tmp_path, capsys):
    words = ["evaluate", str(run.path), "--probes", "--probe-transitions", "20"]
    assert main(words) == 0
    assert "behaviour leak not measured" in capsys.readouterr().out
    assert main(["report", str(run.path), "--out", str(tmp_path / "report")]) == 0
    assert "discounted values estimated from logs" in capsys.readouterr().out
    page = (tmp_path / "report" / "report.html").read_text()
    for words in ("How good, as far as logs can tell", "Latent space", "What z explains"):
        assert words in page
    assert "Learning curves" not in page


def test_single_steps_and_short_tasks_are_no_end_of_a_run(tmp_path):
    """Logs may know what came next and yet hold no two steps in a row."""
    rows = drifting()
    lonely = {k: v for k, v in rows.items() if k not in ("episode", "step")}
    lonely["terminated"] = np.zeros(len(rows["task"]), bool)
    lonely["truncated"] = np.ones(len(rows["task"]), bool)
    few = rows["task"] == 0
    few[np.flatnonzero(few)[2:]] = False
    short = {k: v[few | (rows["task"] > 0)] for k, v in rows.items()}
    for name, logs in (("lonely", lonely), ("short", short)):
        data = ertrl.import_logs(
            logs, tmp_path / name, action_low=-1, action_high=1, progress="none"
        )
        small = tiny_config("focal", standardise=True)
        run = api.start(small, data, out=tmp_path / "runs", progress="none")
        result = ertrl.evaluate(run)
        if name == "lonely":
            assert result["logs"]["prediction"] == {}
            assert set(result["logs"]["value"]["policy"]) == {None}
        else:
            assert all(np.isfinite(v) for v in result.scores.values())
        assert "episodes" in repr(data.task(0)), "logs have no returns of experts to show"


def test_the_leak_takes_as_many_policies_as_every_task_has(tmp_path, run):
    rows = drifting()
    rows["policy"] = np.where(rows["task"] == 0, rows["episode"] % 2, rows["episode"] % 3)
    data = ertrl.import_logs(rows, tmp_path / "l", action_low=-1, action_high=1, progress="none")
    agent = api.load_agent(run)
    found = leak(agent, data, ProbeSettings(leak_contexts=3))
    assert found["checkpoints"] == 2
    assert found["chance"] == 0.5


def test_units_are_part_of_what_a_dataset_is(tmp_path):
    rows = drifting()
    wide = rows | {"action": 1024 * rows["action"]}
    one, other = (
        ertrl.import_logs(r, tmp_path / str(i), action_low=-k, action_high=k, progress="none")
        for i, (r, k) in enumerate(((rows, 1.5), (wide, 1536)))
    )
    assert one.fingerprint != other.fingerprint

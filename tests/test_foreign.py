"""Mistakes in environments of others are told by task, file and line, not as a traceback."""

import os
import re
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.wrappers import RescaleAction

import ertrl
from ertrl.cli import main
from ertrl.collection.config import CollectConfig
from ertrl.contracts import CHECKS, check_part
from ertrl.envs import env_id, family_names, foreign, rollout
from ertrl.errors import ConfigError, PluginError
from ertrl.plugins import _registered

pytestmark = pytest.mark.usefixtures("forgets_own_parts")
TASKS = [{"k": float(k)} for k in (1, 2, 3, 4)]


class Env(gymnasium.Env):
    """Does nothing, and something wrong in task 2."""

    def __init__(self, task, wrong=""):
        self.task, self.wrong = task, wrong if task["k"] == 3 else ""
        high = 3.0 if self.wrong == "range" else 1.0
        self.observation_space = Box(-1, 1, (3 if self.wrong == "wide" else 2,), np.float32)
        self.action_space = Box(-high, high, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        seen = np.zeros(self.observation_space.shape, np.float32)
        return {"no info": seen, "nan": (seen * np.nan, {})}.get(self.wrong, (seen, {}))

    def step(self, action):
        if self.wrong == "step":
            raise KeyError("sensor")
        if self.wrong == "hangs":
            time.sleep(60)
        moved = np.full(2, self.task["k"], np.float32), 0.0, False, False, {}
        unusual = {"narrow": moved[0][:1], "ragged": [[1], [2, 3]], "lost": moved[0] * np.nan}
        narrow = unusual.get(self.wrong, moved[0])
        given = {"four": moved[:3] + moved[4:], "nothing": None, "no reward": (moved[0], *"abcd")}
        given["nan reward"] = (moved[0], np.nan, *moved[2:])
        return given.get(self.wrong, (narrow, *moved[1:]))


class Old(Env):
    def reset(self):
        return np.zeros(2, np.float32)


def family(wrong="", name="mine", **options):
    about = {"make": lambda task: Env(task, wrong), "tasks": TASKS, "horizon": 4}
    return ertrl.register_family(name, **about | options)


def run(family):
    still = np.zeros((family.n_tasks, 1))
    return rollout(family, family.parameters, lambda *_: still, range(family.n_tasks))


HERE = r"failed in test_foreign.py, line \d+: "


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("step", rf"step\(\) {HERE}KeyError: 'sensor'$"),
        ("four", rf"step\(\) {HERE}ValueError: .*in Gymnasium, step\(\) gives \(observation, rew"),
        ("nothing", rf"step\(\) {HERE}TypeError: .*; in Gymnasium, step"),
        ("no reward", rf"step\(\) {HERE}.*; in Gymnasium, step"),
        ("ragged", rf"step\(\) {HERE}ValueError"),
        ("narrow", r"the observation of step\(\) has 1 numbers, its observation_space 2"),
        ("no info", rf"reset\(\) {HERE}.*in Gymnasium, reset\(seed=..., options=...\) gives"),
        ("nan", r"the observation of reset\(seed=2\) is not finite: \[nan, nan\]"),
    ],
)
def test_an_environment_that_fails_is_told_with_task_and_line(wrong, reason):
    with pytest.raises(PluginError, match=rf"^mine, task 2 \{{'k': 3.0\}}: {reason}"):
        run(family(wrong))


def test_an_old_reset_and_tasks_of_no_number():
    old = family(make=Old)
    with pytest.raises(
        PluginError, match=rf"^mine, task \{{'k': 9.0\}}: reset\(\) {HERE}TypeError"
    ):
        old.simulate(np.array([[9.0]])).reset([0])


@pytest.mark.parametrize(("wrong", "kind"), [("step", PluginError), ("range", ConfigError)])
def test_processes_tell_the_same(wrong, kind):
    told = []
    for processes in (0, 2):
        with pytest.raises(kind) as caught:
            run(family(wrong, processes=processes))
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_a_killed_process_is_not_a_simulation_that_diverged():
    """So a collection keeps what it has."""
    simulation = family(processes=2).simulate(family().parameters)
    simulation.reset([0, 1, 2, 3])
    worker = simulation._rows._workers[1]._process
    worker.kill()
    worker.wait()
    for _ in range(2):  # its pipe is closed the first time, broken the second
        with pytest.raises(PluginError, match="a process with environments has died"):
            simulation.step(np.zeros((4, 1)))


def test_control_c_leaves_the_processes_to_their_parent():
    """A terminal sends it to all of them, and the parent needs their answers to save."""
    simulation = family(processes=2).simulate(family().parameters)
    simulation.reset([0, 1, 2, 3])
    workers = [worker._process for worker in simulation._rows._workers]
    for number in (signal.SIGINT, signal.SIGTERM):
        for worker in workers:
            worker.send_signal(number)
        simulation.step(np.zeros((4, 1)))
    del simulation
    assert [worker.returncode for worker in workers] == [0, 0]


def test_a_process_that_hangs_is_killed_in_the_end(monkeypatch):
    monkeypatch.setattr(foreign, "SECONDS_TO_END", 0.2)
    simulation = family("hangs", processes=2).simulate(family().parameters)
    simulation.reset([0, 1, 2, 3])
    worker = simulation._rows._workers[1]
    worker.send(("step", np.arange(2), np.zeros((2, 1))))
    process = worker._process
    del simulation, worker
    assert process.returncode == -signal.SIGKILL


SLOW = """
import time
import gymnasium
import numpy as np
import ertrl
from gymnasium.spaces import Box

class Slow(gymnasium.Env):
    observation_space = action_space = Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        time.sleep(0.01)
        return np.zeros(1, np.float32), 0.0, False, False, {}

def family():
    tasks = [{"k": float(k)} for k in range(4)]
    about = {"make": lambda task: Slow(), "tasks": tasks, "horizon": 4, "processes": 2}
    return ertrl.register_family("slow", **about)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_a_collection_that_is_stopped_or_killed(number, tmp_path):
    """Control-C as a terminal sends it, to the whole group; the kill meets the parent alone."""
    (tmp_path / "slow.py").write_text(SLOW)
    words = [f"{tmp_path / 'slow.py'}:family", "--out", str(tmp_path / "d"), "--threads", "1"]
    words += ["--steps", "10000", "--steps-per-block", "5", "--random-steps", "5"]
    words += ["--hidden", "8", "--batch-size", "8", "--simulations-per-task", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "ertrl", "collect", *words, "--progress", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        for line in process.stdout:
            if '"done": 2' in line:
                break
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, errors = process.communicate(timeout=60)  # as long as a worker has the pipe open
    assert "Traceback" not in errors
    if number == signal.SIGINT:
        assert process.returncode == 130, errors
        assert "the state is saved" in errors


@pytest.mark.parametrize("reward", [None, lambda o, a, n, t: n[..., 0]])
def test_a_row_that_diverges_rests_and_the_others_go_on(reward):
    ours = family("lost", reward=reward)
    simulation = ours.simulate(ours.parameters)
    simulation.reset([0, 1, 2, 3])
    for _ in range(2):
        step = simulation.step(np.zeros((4, 1)))
        assert np.isfinite(step.observation).all()
        assert np.isfinite(step.outcome).all()
    assert step.observation[:, 0].tolist() == [1, 2, 0, 4], "it stays where it was"
    episodes = run(ours)
    assert episodes.diverged.tolist() == [False, False, True, False]
    assert episodes.length.tolist() == [4, 4, 1, 4]


SPACES = [
    ("range", r"actions are Box\(-3.0, 3.0.*family Box\(-1.0, 1.0, .*wrappers.RescaleAction"),
    ("wide", r"observations have 3 numbers, those of the family 2"),
]


@pytest.mark.parametrize(("wrong", "reason"), SPACES)
def test_all_tasks_have_the_same_spaces(wrong, reason, capsys):
    made = family(wrong)
    with pytest.raises(ConfigError, match=rf"^mine, task 2 \{{'k': 3.0\}}: {reason}"):
        run(made)
    assert main(["check-plugin", "mine"]) == 1
    assert "mine, task 2 {'k': 3.0}: " in capsys.readouterr().out
    run(family(make=lambda task: RescaleAction(Env(task, "range"), -1, 1)))


def test_check_plugin_names_a_line_once(capsys):
    family("step")
    assert main(["check-plugin", "mine"]) == 1
    told = capsys.readouterr().out
    assert told.count("failed in test_foreign.py, line ") == 1
    assert re.search(r"broken  \d+ more, by the failure above\n$", told)
    assert told.count("broken") == 2


def test_check_plugin_names_task_and_step_of_what_is_no_number(capsys):
    for wrong, what in (("nan reward", "reward of step 1 is nan"), ("lost", "observation of step")):
        family(wrong)
        assert main(["check-plugin", "mine"]) == 1
        assert capsys.readouterr().out.count(f"mine, task 2 {{'k': 3.0}}: the {what}") == 1
    family(reward=lambda o, a, n, t: np.where(t["k"] == 3, np.nan, n[..., 0]))
    assert main(["check-plugin", "mine"]) == 1
    assert "task 2: the reward of step 1 is nan" in capsys.readouterr().out


def test_a_part_of_any_kind_is_blamed_by_line(monkeypatch):
    def check(part):
        """It works."""
        return part["name"]

    monkeypatch.setitem(CHECKS, "method", [check, check])
    first, second = check_part("method", {})
    assert re.fullmatch(r"test_foreign.py, line \d+: KeyError: 'name'", first.problem)
    assert second == ("It works", "the same failure as above")


@pytest.mark.parametrize(
    ("reward", "reason"),
    [
        (
            lambda o, a, n, t: float(t["k"]),
            rf"reward\(\) {HERE}TypeError: .*; it gets arrays",
        ),
        (lambda o, a, n, t: 0.0, r"reward\(\) must give the shape \(4,\), got \(\)"),
        (lambda o, a, n, t: n[..., :1], r"reward\(\) must give the shape \(4,\), got \(4, 1\)"),
    ],
)
def test_a_reward_that_fails_is_told(reward, reason):
    with pytest.raises(PluginError, match=f"^mine: .*{reason}"):
        run(family(reward=reward))


def test_a_reward_may_depend_on_the_task_alone(capsys):
    alike = {"k": 1.0}
    family(make=lambda task: Env(alike), reward=lambda o, a, n, t: t["k"])
    assert main(["check-plugin", "mine"]) == 0, capsys.readouterr().out


def test_a_collection_says_that_reset_is_not_finite(tmp_path):
    small = CollectConfig(hidden=(8,), batch_size=8, simulations_per_task=1)
    with pytest.raises(PluginError, match=r"task 2 .*the observation of reset\(.*is not finite"):
        ertrl.collect(family("nan"), tmp_path / "data", config=small, progress="none")


def broken_make(task):
    raise OSError("no robot")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"make": None}, "make is a function, got None"),
        ({"make": lambda task: None}, r"task 0 .*must return a gymnasium.Env, got None; is `ret"),
        ({"make": broken_make}, rf"task 0 .*make\(\) {HERE}OSError: no robot"),
        ({"reward": 1.0}, "reward is a function, got 1.0"),
        ({"expert": "sac"}, "expert is a function, got 'sac'"),
        ({"tasks": None}, "at least two dictionaries"),
        ({"tasks": {"train": 3}}, "at least two dictionaries"),
        ({"tasks": [{"k": 1.0}, {"k": "2"}]}, "task 1 has k='2', but .* finite numbers$"),
        ({"tasks": [{"k": 1.0}, {"k": None}]}, "task 1 has k=None"),
        ({"tasks": [{"k": 1.0}, {"k": [[1], [2, 3]]}]}, "task 1 has k=.*several numbers"),
        ({"tasks": [{"k": np.nan}, {"k": 1.0}]}, "task 0 has k=nan"),
        ({"tasks": [{"goal": [1, 2]}] * 2}, r"goal=\[1, 2\].*several numbers: goal_x, goal_y"),
        ({"horizon": -1}, "horizon is a whole number of at least 1, got -1"),
        ({"horizon": 0}, "horizon is a whole number of at least 1, got 0"),
        ({"horizon": 5.5}, "horizon is a whole number of at least 1, got 5.5"),
        ({"processes": -1}, "processes is a whole number of at least 0, got -1"),
        ({"varies": "rewards"}, "varies is 'reward' or 'dynamics', got 'rewards'"),
        ({"like": "point-robto"}, "like: unknown family 'point-robto'. Did you mean 'point-robot'"),
        ({"name": "My Pendulum/1"}, "letters, digits, -, _ and dots, .*got 'My Pendulum/1'"),
        ({"name": "mine.py"}, "letters, digits, -, _ and dots, .*got 'mine.py'"),
        ({"name": "a" * 181}, "at most 180 letters, digits"),
        ({"name": None}, "letters, digits, -, _ and dots, .*got None"),
    ],
)
def test_a_family_with_a_mistake_is_refused_and_not_registered(options, reason):
    with pytest.raises((ConfigError, PluginError), match=reason):
        family(**options)
    assert not _registered.get("ertrl.envs.families")


def test_whole_numbers_of_any_kind_do():
    made = family(tasks=[{"k": np.float32(1)}, {"k": 2}, {"k": True}], horizon=np.int64(3))
    assert (made.horizon, made.parameters.tolist()) == (3, [[1.0], [2.0], [1.0]])
    assert "mine" in family_names()
    assert env_id("mine") in gymnasium.registry


FILE = """
import ertrl
def forgot():
    pass
def wrong():
    return ertrl.register_family("mine", make=None, tasks=[])
def number():
    return 3
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("forgot", "mine.py: forgot() returned None; return what ertrl.register_family gives\n"),
        ("wrong", "mine.py, line 6: mine: make is a function, got None\n"),
        ("number", "mine.py:number gives 3, which is no method, learner or family\n"),
    ],
)
def test_a_file_that_gives_no_part_says_why(name, told, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(FILE)
    assert main(["check-plugin", f"{tmp_path / 'mine.py'}:{name}"]) == 2
    assert capsys.readouterr().err.endswith(told)


OWN = """
from ertrl.methods.focal import Focal
class Mine(Focal):
    name, summary = "mine", "as FOCAL"
"""


@pytest.mark.parametrize(("last", "code"), [("", 2), ("ertrl.register(Mine)", 0)])
def test_a_file_that_registers_nothing_says_to_name_what_does(last, code, tmp_path, capsys):
    source = FILE + OWN + last
    (tmp_path / "mine.py").write_text(source)
    assert main(["list", "--plugin", str(tmp_path / "mine.py")]) == code
    told = capsys.readouterr()
    assert ("name what makes one: mine.py:NAME" in told.err) is (code == 2)
    assert ("  mine " in told.out) is (code == 0)

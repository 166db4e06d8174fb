"""Environments of one's own: simulated as they are, saved and restored, refused clearly."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit

import ertrl
from conftest import TINY_TRAIN, options_of
from ertrl.cli import main
from ertrl.collection.config import CollectConfig
from ertrl.collection.savepoints import Savepoints
from ertrl.config import to_json
from ertrl.data import Dataset
from ertrl.data.same_family import code_changes, family_code
from ertrl.envs import rollout
from ertrl.errors import ConfigError, DataError, PluginError, SimulationError
from ertrl.learners import get_learner
from ertrl.methods.encoder import EncoderConfig
from ertrl.plugins import OWN, _loaded, _registered, load

pytestmark = pytest.mark.usefixtures("forgets_own_parts")
EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = CollectConfig(
    hidden=(16,), batch_size=16, random_steps=20, steps=40, checkpoints=2,
    episodes_per_checkpoint=1, reference_episodes=1, simulations_per_task=1,
)  # fmt: skip


class Cart(gymnasium.Env):
    """A noisy cart that drifts with its task; it ends beyond 2."""

    observation_space = Box(-np.inf, np.inf, (2, 1), np.float32)
    action_space = Box(-3.0, 1.0, (1,), np.float32)

    def __init__(self, drift, late=0):
        self.drift, self.late = drift, late

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.age = self.np_random.uniform(-0.1, 0.1), 0
        return self._seen(), {}

    def step(self, action):
        assert -3 <= action[0] <= 1
        self.x += 0.1 * float(action[0]) + self.drift + 0.01 * self.np_random.normal()
        self.age += 1
        return self._seen(), -abs(self.x), abs(self.x) > 2, bool(0 < self.late <= self.age), {}

    def _seen(self):
        return np.array([[self.x], [self.x**2]], np.float32)


TASKS = [{"drift": d} for d in (-0.2, 0.0, 0.1, 0.2, 0.3)]


def carts(name="carts", **options):
    values = {"make": lambda task: Cart(task["drift"]), "tasks": TASKS, "horizon": 12} | options
    return ertrl.register_family(name, **values)


def plan(n, steps, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, n, 1)).astype(np.float32)


def test_a_family_says_what_its_environment_says():
    family = carts()
    assert (family.observation_dim, family.action_dim, family.horizon) == (2, 1, 12)
    assert (family.action_low, family.action_high) == ([-3.0], [1.0])
    assert family.split == {"train": [0, 1, 3, 4], "test-id": [2]}
    assert family.varies == "dynamics"
    assert ertrl.make_family("carts") is family
    split = carts(tasks={"train": TASKS[:3], "test-ood": TASKS[3:]}).split
    assert split == {"train": [0, 1, 2], "test-ood": [3, 4]}


@pytest.mark.parametrize("processes", [0, 2])
def test_rows_do_what_the_environment_does(processes):
    family = carts(processes=processes)
    actions = plan(5, 12)
    episodes = rollout(family, family.parameters, lambda _, t: actions[t], range(5))
    for row, task in enumerate(TASKS):
        env = Cart(task["drift"])
        env.reset(seed=row)
        for t in range(episodes.length[row]):
            seen, reward, over, _, _ = env.step(2 * actions[t, row] - 1)
            np.testing.assert_array_equal(episodes.observation[row, t + 1], seen.ravel())
            np.testing.assert_allclose(episodes.reward[row, t], reward, rtol=1e-6)
        assert episodes.terminated[row] == over
        assert episodes.truncated[row] == (not over)
    assert episodes.terminated.any(), "the strongest drift ends its episode"


@pytest.mark.parametrize("processes", [0, 2])
def test_a_simulation_that_has_been_used_is_as_good_as_new(processes):
    """Also where rows of the episode before ended early, or rested from its beginning."""
    family = carts(processes=processes)
    simulation = family.simulate(family.parameters)
    for seed, rows in ((0, None), (1, np.array([2])), (2, None)):
        actions = plan(5, 12, seed)
        parts = family, family.parameters, lambda _, t, a=actions: a[t], range(5), None, rows
        for used, new in zip(rollout(*parts, simulation), rollout(*parts), strict=True):
            np.testing.assert_array_equal(used, new)


def test_a_restored_simulation_goes_on_bit_for_bit():
    family, actions = carts(), plan(5, 9)
    one, other = (family.simulate(family.parameters) for _ in range(2))
    one.reset(range(5))
    for t in range(3):
        one.step(actions[t])
    one.reset([77], np.array([1]))  # rows of different age
    one.step(actions[3])
    other.restore(one.state())
    for t in range(4, 9):
        for a, b in zip(one.step(actions[t]), other.step(actions[t]), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_reward_of_ones_own_relabels():
    def reward(observation, action, next_observation, task):
        assert action.min() >= -3
        return -np.abs(next_observation[..., 0]) - 0 * task["drift"]

    family = carts(reward=reward)
    assert family.varies == "reward"
    plain = carts("plain")
    actions = plan(5, 12)
    one, other = (
        rollout(f, f.parameters, lambda _, t: actions[t], range(5)) for f in (family, plain)
    )
    np.testing.assert_allclose(one.reward, other.reward, rtol=1e-5)


class Odd(Cart):
    """With spaces that cannot be learned with."""

    def __init__(self, **spaces):
        super().__init__(0.0)
        for name, space in spaces.items():
            setattr(self, name, space)


@pytest.mark.parametrize(
    ("spaces", "reason"),
    [
        ({"action_space": Discrete(3)}, r"actions are Discrete\(3\), but ertrl needs a Box"),
        ({"observation_space": Discrete(3)}, "observations are Discrete"),
        ({"action_space": Box(-np.inf, np.inf, (1,))}, "actions have no bounds"),
    ],
)
def test_spaces_that_do_not_work_are_named(spaces, reason):
    with pytest.raises(ConfigError, match=reason):
        carts(make=lambda task: Odd(**spaces))


def test_a_time_limit_may_be_that_of_a_wrapper():
    family = carts(make=lambda task: TimeLimit(Cart(task["drift"]), 7), horizon=None)
    assert family.horizon == 7


def test_other_mistakes_are_named():
    with pytest.raises(ConfigError, match="has no time limit; give horizon"):
        carts(horizon=None)
    with pytest.raises(ConfigError, match="at least two dictionaries"):
        carts(tasks=[0.1, 0.2, 0.3])
    one = {"train": [{"drift": 0.1}], "test-id": [{"drift": 0.2}]}
    with pytest.raises(ConfigError, match="the group train has 1 tasks; at least 2 are needed"):
        carts(tasks=one)
    with pytest.raises(ConfigError, match="task 1 has"):
        carts(tasks=[{"drift": 1}, {"drfit": 1}, {"drift": 1}])
    with pytest.raises(PluginError, match=r"'point-robot' is the name of ertrl.envs.families"):
        carts("point-robot")
    family = carts(make=lambda task: Cart(task["drift"], late=5))
    with pytest.raises(SimulationError, match="cut its episode after 5 steps, before the family's"):
        rollout(family, family.parameters[:1], lambda _, t: np.zeros((1, 1)), [0])


def test_a_family_of_ones_own_keeps_its_promises(capsys):
    carts()
    assert main(["check-plugin", "carts"]) == 0
    assert "kept    A restored simulation goes on bit for bit" in capsys.readouterr().out

    class Unsteady(Cart):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=None)

    carts("unsteady", make=lambda task: Unsteady(task["drift"]))
    assert main(["check-plugin", "unsteady"]) == 1
    told = capsys.readouterr()
    assert "broken  The same seeds and actions give the same trajectories" in told.out
    assert "draw from self.np_random, after super().reset(seed=seed), and nothing else" in told.out
    assert "the family unsteady breaks" in told.err


def test_an_environment_that_fails_in_its_process_says_why():
    def make(task):
        if task["drift"] > 0.25:
            raise OSError("no such cart")
        return Cart(task["drift"])

    family = carts(make=make, processes=2)
    with pytest.raises(PluginError, match=r"task 4 .*make\(\) failed .*OSError: no such cart"):
        family.simulate(family.parameters)


@pytest.mark.filterwarnings("ignore:.*is not above random actions", "ignore:.*in no task is")
def test_an_object_collects_and_goes_on_where_it_was(tmp_path):
    from ertrl.collection import collect as module

    whole = ertrl.collect(carts(), tmp_path / "whole", config=SMALL, progress="none")
    assert whole.manifest["action_low"] == [-3.0]
    recorded, count = module._Collection._record, []

    def killed(self, checkpoint):
        recorded(self, checkpoint)
        self.save()
        count.append(checkpoint)
        raise KeyboardInterrupt

    module._Collection._record = killed
    try:
        with pytest.raises(KeyboardInterrupt):
            ertrl.collect(carts(), tmp_path / "again", config=SMALL, progress="none")
    finally:
        module._Collection._record = recorded
    again = ertrl.collect(carts(), tmp_path / "again", config=SMALL, progress="none")
    assert count == [0]
    assert again.fingerprint == whole.fingerprint


@pytest.mark.filterwarnings("ignore:.*is not above random actions", "ignore:.*in no task is")
def test_the_command_line_knows_families_of_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = f"{EXAMPLES / 'own_family.py'}:family"
    assert main(["collect", file, *options_of(SMALL), "--progress", "none"]) == 0
    assert Dataset("data/my-pendulum").family == "my-pendulum"
    _registered.clear()
    _loaded.clear()
    os.environ[OWN] = ""
    train = ["train", "focal", "--data", "data/my-pendulum", *TINY_TRAIN]
    assert main(train) == 1
    assert "--plugin FILE.py" in capsys.readouterr().err
    # A process of its own, as a user would start it: nothing is known there but the option.
    words = [sys.executable, "-m", "ertrl", *train, "--plugin", file]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "offline/train" in done.stdout
    with pytest.raises(DataError, match=r"--plugin FILE.py"):
        Dataset("data/my-pendulum").make_family()


TASKS_FILE = """
import json
import gymnasium
import numpy as np
import ertrl
from gymnasium.spaces import Box

class Slide(gymnasium.Env):
    observation_space = action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, goal):
        self.goal = goal

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.1, 0.1, 1)
        return self.x.astype(np.float32), {}

    def step(self, action):
        self.x = np.clip(self.x + 0.1 * action, -1, 1)
        return self.x.astype(np.float32), 1.0 - abs(self.x[0] - self.goal), False, False, {}

def family():
    tasks = [{"goal": g} for g in (-0.8, -0.4, 0.0, 0.4, 0.8)]
    return ertrl.register_family("slide", make=lambda t: Slide(t["goal"]), tasks=tasks, horizon=8)

if __name__ == "__main__":
    from ertrl.data.same_family import family_code
    print(json.dumps(family_code(family())))
"""


def slide(file, change=("", "")):
    """The family of the file, in which something is changed before."""
    file.write_text(TASKS_FILE.replace(*change) if change[0] else TASKS_FILE + change[1])
    _registered.clear()
    _loaded.clear()
    return load(f"{file}:family")[0]


@pytest.mark.filterwarnings("ignore:.*is not above random actions", "ignore:.*in no task is")
def test_data_of_other_code_is_opened_with_a_warning(tmp_path):
    file, folder = tmp_path / "my_tasks.py", tmp_path / "data"
    data = ertrl.collect(slide(file), folder, config=SMALL, progress="none")
    assert list(data.manifest["family_code"]) == ["my_tasks.py"]
    slide(file)
    data.make_family()
    doubled = slide(file, ("1.0 - abs", "2.0 - 2.0 * abs"))
    told = r"other code of slide than there is now: my_tasks.py has changed.*collect the data anew"
    with pytest.warns(UserWarning, match=told):
        Dataset(folder).make_family()
    with pytest.warns(UserWarning, match=told):
        ertrl.collect(doubled, folder, config=SMALL, progress="none")


def test_a_collection_that_goes_on_with_other_code_warns(tmp_path):
    file, folder = tmp_path / "my_tasks.py", tmp_path / ".data.collecting"
    identity = {"family": "slide", "family_options": {}, "config": {}, "references": None}
    folder.mkdir()
    Savepoints(folder, identity, slide(file))
    (folder / "00000001.json").touch()
    Savepoints(folder, identity, slide(file))
    with pytest.warns(UserWarning, match=r"other code of slide: my_tasks.py has changed. It goes"):
        Savepoints(folder, identity, slide(file, ("0.1 * action", "0.2 * action")))


def test_a_script_is_the_same_code_where_it_is_named_as_a_file(tmp_path):
    file = tmp_path / "my_tasks.py"
    whole = family_code(slide(file))
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    alone = json.loads(done.stdout)
    assert code_changes(whole, slide(file)) == code_changes(alone, slide(file)) == ""
    longer = slide(file, ("", "\nHELPS = 2\n"))
    assert (code_changes(whole, longer), code_changes(alone, longer)) == (
        "my_tasks.py has changed",
        "",
    )
    assert code_changes(alone, slide(file, ("1.0 - abs", "2 - abs"))) == "my_tasks.py has changed"
    assert family_code(ertrl.make_family("point-robot")) == {}


METHOD = """
import ertrl
from ertrl.methods.focal import Focal

class Mine(Focal):
    name, summary = "mine", "as FOCAL"

class Peeking(Focal):
    name, summary = "peeking", "the order counts"

    def encode(self, state, context):
        return super().encode(state, context) + context.reward[..., :1]

def both():
    return [Mine, Peeking]
"""


def test_methods_of_a_file_and_of_a_script(tiny_dataset, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(METHOD)
    assert main(["check-plugin", f"{file}:Peeking", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    broken = {check["promise"] for check in told["checks"] if check["problem"]}
    assert "The order of a context does not matter to encode" in broken
    assert "Settings survive JSON" not in broken
    assert main(["check-plugin", f"{file}:both"]) == 2
    assert "gives 2 parts" in capsys.readouterr().err
    words = ["--data", str(tiny_dataset.path), "--out", str(tmp_path / "runs"), *TINY_TRAIN]
    assert main(["train", f"{file}:Mine", *words]) == 0
    assert "-mine-td3bc-" in capsys.readouterr().out
    Mine = _loaded[f"{file}:Mine"][0]
    tiny = {"updates": 10, "updates_per_call": 10, "evaluate_every": 10, "checkpoint_every": 10}
    tiny |= {"sampling": {"meta_batch": 4, "batch_size": 8}, "evaluation": {"repeats": 1}}
    run = ertrl.train(
        Mine(encoder=EncoderConfig(latent_dim=3, hidden=(8,))), tiny_dataset,
        learner=get_learner("td3bc")(hidden=(8,)), settings=tiny, out=tmp_path, progress="none",
    )  # fmt: skip
    assert (run.method.latent_dim, run.learner.hidden) == (3, (8,))
    with pytest.raises(ConfigError, match=r"a method is a subclass of ertrl.methods.Method, got 3"):
        ertrl.train(3, tiny_dataset)
    with pytest.raises(ConfigError, match=r"a family is an object of ertrl.envs.Family, got 3"):
        ertrl.collect(3)


# So short a training gives returns of any size, and labels that do not fit their figure.
@pytest.mark.filterwarnings("ignore:.*is not above random actions", "ignore:constrained")
def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import own_family

    tiny = {"updates": 100, "evaluate_every": 100, "learner": {"hidden": [16]}}
    assert own_family.main(tmp_path, to_json(replace(SMALL, steps=200)), tiny).exists()
    text = (EXAMPLES / "own_family.py").read_text()
    assert "from ertrl." not in text, "the public surface is enough"
    assert len((EXAMPLES / "own_family.py").read_text().splitlines()) < 60


def test_the_gymnasium_environment_takes_the_same_units_as_its_agents():
    carts()
    env = gymnasium.make("ertrl/Carts-v0", task=1)
    assert (env.action_space.low, env.action_space.high) == (-3.0, 1.0)
    observation, _ = env.reset(seed=0)
    after, *_ = env.step(np.array([-3.0], np.float32))
    assert after[0] - observation[0] == pytest.approx(-0.3, abs=0.05)
    vector = gymnasium.make_vec("ertrl/Carts-v0", num_envs=2, task=1)
    first, _ = vector.reset(seed=0)
    then, *_ = vector.step(np.full((2, 1), 1.0, np.float32))
    np.testing.assert_allclose(then[:, 0] - first[:, 0], 0.1, atol=0.05)

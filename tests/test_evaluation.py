"""Normalised returns by hand."""

import numpy as np
import pytest

from ertrl.data import Dataset
from ertrl.envs import anchor_returns
from ertrl.errors import ConfigError, DataError, SimulationError
from ertrl.evaluation import (
    PAPER_PROTOCOLS,
    evaluate_agent,
    missing_repeats,
    normalise,
    references,
    summarise,
    warn_of_scale,
)
from ertrl.evaluation.protocols import best_checkpoint, steps_of_checkpoint
from toys import ToyFamily, ToySimulation


def test_random_is_0_and_expert_is_100():
    scale = {"random": [-20.0, 0.0], "expert": [-10.0, 200.0]}
    returns = np.array([[-20.0, -10.0], [100.0, 300.0]])
    # Task 0: (-20+20)/10 = 0, (-10+20)/10 = 1. Task 1: 100/200 = 0.5, 300/200 = 1.5.
    np.testing.assert_allclose(normalise(returns, scale), [[0, 100], [50, 150]])


def test_groups_are_means_over_their_tasks():
    result = {
        "tasks": [4, 7, 9],
        "groups": {"train": [4, 9], "test-id": [7]},
        "references": {"random": [0.0, 0.0, 0.0], "expert": [1.0, 2.0, 4.0]},
        "protocols": {"offline": {"returns": [[1.0, 0.0], [1.0, 1.0], [4.0, 2.0]]}},
    }
    # Task 4: 50, task 9: 75 -> train 62.5; task 7: 50.
    assert summarise(result) == {"offline/train": 62.5, "offline/test-id": 50.0}


def test_means_leave_out_what_a_diverged_simulation_did_not_measure():
    result = {
        "tasks": [0, 1, 2],
        "groups": {"train": [0, 1], "test-id": [2]},
        "references": {"random": [0.0] * 3, "expert": [1.0] * 3},
        "protocols": {"online": {"returns": [[0.2, None], [0.4, 0.6], [None, None]]}},
    }
    assert summarise(result) == {"online/train": pytest.approx(35.0)}
    assert missing_repeats(result) == {"online": 3}


def test_missing_numbers_are_null_on_disk(tiny_run, tiny_dataset, tmp_path, monkeypatch):
    from ertrl import api, store
    from ertrl.envs.families.point_robot import PointSimulation

    step = PointSimulation.step

    def broken(self, action):
        diverged = np.zeros(self.size, bool)
        diverged[3] = True
        return step(self, action)._replace(diverged=diverged)

    monkeypatch.setattr(PointSimulation, "step", broken)
    result = evaluate_agent(api.load_agent(tiny_run), tiny_dataset, step=40, run="x")
    store.write_json(tmp_path / "e.json", result)
    for measured in (*result["protocols"].values(), result["oracle"]):
        assert [i for i, repeats in enumerate(measured["returns"]) if None in repeats] == [3]
    assert set(summarise(result)) == {f"{p}/{g}" for p in PAPER_PROTOCOLS for g in result["groups"]}


def test_the_oracle_sees_the_best_policys_transitions_only(tiny_run, tiny_dataset):
    data = tiny_dataset.task(5)
    best = best_checkpoint(data)
    means = [data.returns[data.checkpoints == c].mean() for c in (0, 1)]
    assert means[best] == max(means)
    which = steps_of_checkpoint(data, tiny_dataset.horizon, best)
    assert len(which) == data.lengths[data.checkpoints == best].sum()
    from ertrl import api

    agent, seen = api.load_agent(tiny_run), []
    agent.encode = lambda context: seen.append(context) or np.zeros((40, 4), np.float32)
    evaluate_agent(agent, tiny_dataset, step=40, run="x", protocols=())
    allowed = {tuple(row) for row in data.transitions(which).observation.tolist()}
    shown = seen[0].observation[5][seen[0].mask[5] > 0]
    assert len(shown) == 3 * tiny_dataset.horizon
    assert {tuple(row) for row in shown.tolist()} <= allowed


def test_agents_of_one_configuration_share_their_compiled_programs(tiny_run):
    from ertrl import api
    from ertrl.evaluation.agent import _act, _encode

    def compiled(agent):
        agent.act(np.zeros((3, agent.dims.observation), np.float32), agent.encode(agent.nothing(3)))
        return _encode._cache_size(), _act._cache_size()

    assert compiled(api.load_agent(tiny_run)) == compiled(api.load_agent(tiny_run))


def test_two_evaluations_at_once_lose_nothing(tiny_run, tmp_path, monkeypatch):
    import shutil

    from ertrl import api

    copy = tmp_path / "run"
    shutil.copytree(tiny_run.path, copy)
    for file in (copy / "evaluations").glob("*.json"):
        file.unlink()
    evaluate = api.evaluate_agent

    def meanwhile(*arguments, protocols, **rest):
        if protocols == ("offline",):  # another process finishes first
            api.evaluate(copy, ("online",))
        return evaluate(*arguments, protocols=protocols, **rest)

    monkeypatch.setattr(api, "evaluate_agent", meanwhile)
    assert set(api.evaluate(copy, ("offline",))["protocols"]) == {"offline", "online"}


def test_only_what_is_missing_is_measured(tiny_run, tmp_path, monkeypatch):
    import shutil

    from ertrl import api
    from ertrl.evaluation import evaluate

    copy, ran = tmp_path / "run", []
    shutil.copytree(tiny_run.path, copy)
    known = api.evaluate(copy)
    online = evaluate.PROTOCOLS["online"]
    spies = {
        name: lambda trial, name=name: ran.append((name, trial.simulation)) or online(trial)
        for name in (*PAPER_PROTOCOLS, "idaq", "continual")
    }
    monkeypatch.setattr(evaluate, "PROTOCOLS", spies)
    monkeypatch.setattr(evaluate, "oracle", None)
    both = api.evaluate(copy, ("offline", "idaq", "continual"))
    assert [name for name, _ in ran] == ["idaq", "continual"]
    assert ran[0][1] is ran[1][1], "one simulation serves all"
    assert both["oracle"] == known["oracle"]
    assert set(both["protocols"]) == {*PAPER_PROTOCOLS, "idaq", "continual"}
    assert both["protocols"]["offline"] == known["protocols"]["offline"]
    assert api.evaluate(copy, "online") == both
    assert len(ran) == 2


def test_a_task_without_a_scale_is_left_out_by_name(tiny_dataset, monkeypatch):
    data = Dataset(tiny_dataset.path, verify=False)
    monkeypatch.setitem(data.task(12).reference, "expert", -30.0)
    with pytest.warns(UserWarning, match=r"not above random actions in task 12 \(-30, -"):
        warn_of_scale(data)
    scaled = normalise(np.zeros(len(data.tasks)), references(data))
    assert np.flatnonzero(np.isnan(scaled)).tolist() == [12]
    for task in data.tasks.values():
        monkeypatch.setitem(task.reference, "expert", -1e9)
    with pytest.raises(DataError, match=r"in no task is .*; collect with more steps"):
        warn_of_scale(data)
    monkeypatch.setitem(data.manifest["collector"], "name", "scripted")
    with pytest.raises(DataError, match="; write a better expert"):
        warn_of_scale(data)


def test_a_task_with_a_narrow_scale_is_named(tiny_dataset, monkeypatch):
    """0.9 of return from random to expert, where other tasks have hundreds, is noise."""
    data = Dataset(tiny_dataset.path, verify=False)
    for task in data.tasks.values():
        monkeypatch.setitem(task.reference, "expert", task.reference["random"] + 10.0)
    monkeypatch.setitem(data.task(12).reference, "expert", data.task(12).reference["random"] + 0.4)
    with pytest.warns(UserWarning, match=r"hardly above random actions in task 12 \(-.* noise"):
        warn_of_scale(data)


def test_unknown_protocol(tiny_run, tiny_dataset):
    from ertrl import api

    with pytest.raises(ConfigError, match="Did you mean 'online'"):
        evaluate_agent(
            api.load_agent(tiny_run), tiny_dataset, step=0, run="x", protocols=("onlin",)
        )


class Exploding(ToySimulation):
    """Every third row leaves the realm of numbers at its second step."""

    def step(self, action):
        step = super().step(action)
        gone = (np.arange(self.size) % 3 == 0) & (self._count == 2)
        return step._replace(outcome=np.where(gone[:, None], 1e9, step.outcome), diverged=gone)


class ExplodingFamily(ToyFamily):
    """What happened is what it is worth."""

    def simulate(self, parameters, threads=None):
        return Exploding(parameters[:, 0], self.events)

    def reward(self, outcome, action, parameters):
        return outcome[..., 0]


def test_diverged_simulations_are_no_part_of_the_scale():
    family = ExplodingFamily([3, 4], horizon=4)
    anchors = anchor_returns(family, [0, 1], episodes=3, seed=0)
    for name in ("zero", "random"):
        np.testing.assert_allclose(anchors[name], [1 + 2 + 3, 1 + 2 + 3 + 4])
    with pytest.raises(SimulationError, match="every simulation of task 0 diverged"):
        anchor_returns(family, [0, 1], episodes=1, seed=0)

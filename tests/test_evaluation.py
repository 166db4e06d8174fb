"""Normalised returns by hand."""

import numpy as np
import pytest

from ertrl.config import EvaluationConfig
from ertrl.data import Dataset
from ertrl.errors import ConfigError, DataError
from ertrl.evaluation import evaluate_agent, normalise, references, summarise
from ertrl.evaluation.evaluate import prior


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


def test_a_scale_without_extent_is_refused(tiny_dataset, monkeypatch):
    data = Dataset(tiny_dataset.path, verify=False)
    monkeypatch.setitem(data.task(12).reference, "expert", -30.0)
    with pytest.raises(DataError, match="task 12's expert return -30 is not above"):
        references(data)


def test_unknown_protocol(tiny_run, tiny_dataset):
    from ertrl import api

    with pytest.raises(ConfigError, match="Did you mean 'online'"):
        evaluate_agent(
            api.load_agent(tiny_run), tiny_dataset, step=0, run="x", protocols=("onlin",)
        )


def test_the_two_priors(tiny_run, tiny_dataset):
    from dataclasses import replace

    from ertrl import api

    agent = api.load_agent(tiny_run)
    assert not prior(agent, tiny_dataset).any()
    agent.config = replace(agent.config, evaluation=EvaluationConfig(prior="mean"))
    z0 = prior(agent, tiny_dataset)
    assert z0.shape == (4,)
    assert z0.any()
    assert (np.abs(z0) < 1).all()

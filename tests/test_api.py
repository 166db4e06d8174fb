"""What `import ertrl` offers: complete, documented, typed, and readable where it is printed."""

import inspect
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import ertrl
from ertrl.errors import ConfigError, DataError
from ertrl.progress import Meter

REFERENCE = Path(__file__).parent.parent / "docs" / "api.md"


def test_the_reference_lists_the_public_surface():
    """A new name needs a line there; a name that goes is missed."""
    listed = re.findall(r"^::: ertrl\.(\w+)$", REFERENCE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(name for name in ertrl.__all__ if name != "envs")
    assert {*ertrl.__all__, "__version__"} == set(dir(ertrl))


@pytest.mark.parametrize("name", ertrl.__all__)
def test_every_public_name_is_documented_and_typed(name):
    thing = getattr(ertrl, name)
    assert inspect.getdoc(thing), name
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert signature.return_annotation is not inspect.Signature.empty
        for parameter in signature.parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty, parameter


def test_a_name_that_does_not_exist_is_said_so():
    with pytest.raises(AttributeError, match="no attribute 'colect'"):
        ertrl.colect  # noqa: B018


def test_objects_say_what_they_are(tiny_dataset, tiny_run):
    agent = ertrl.load_agent(tiny_run)
    adapted = agent.adapt(tiny_dataset.task(25).transitions(np.arange(6)))
    said = {
        tiny_dataset: (
            "family=point-robot",
            "40 (20 train, 10 test-id, 10 test-ood)",
            "horizon=20",
        ),
        tiny_dataset.task(25): ("task=25", "group=test-id", "expert_return=-"),
        tiny_run: ("method=er-trl", "seed=0", "updates=40 of 40"),
        agent: ("method=er-trl", "observation=2", "z=4"),
        adapted: ("learner=td3bc", "z=["),
        agent.plain: ("observation=2", "action=2", "z=4"),
        agent.begin(): ("transitions=0", "z=[0. 0. 0. 0.]", "uncertainty=1"),
        ertrl.make_family("point-robot"): ("name=point-robot", "parameters=goal_x, goal_y"),
    }
    for thing, words in said.items():
        assert repr(thing).startswith(f"{type(thing).__name__}("), thing
        assert len(repr(thing)) < 500
        for word in words:
            assert word in repr(thing), word
            assert word.split("=")[-1] in thing._repr_html_()
    assert (
        "<b>"
        not in type("Evil", (type(agent),), {"_facts": lambda _: {"<b>": "<b>"}})(
            agent.config, agent.dims, None, None
        )._repr_html_()
    )


def test_an_evaluation_has_scores_and_is_short(tiny_run):
    result = ertrl.evaluate(tiny_run)
    assert result.scores.keys() == {
        f"{p}/{g}" for p in result["protocols"] for g in result["groups"]
    }
    assert len(repr(result)) < 500 < len(json.dumps(result))
    assert f"offline/test-id={result.scores['offline/test-id']:.1f}" in repr(result)
    assert result == tiny_run.evaluations.read()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reward": 1.0}, r"at least one: with 1 rewards the shapes are .*'reward': \(1,\)"),
        ({"reward": np.ones((5, 1))}, r"'reward': \(5,\), .* got .*'reward': \(5, 1\)"),
        ({"observation": np.ones((5, 3))}, r"'observation': \(5, 2\), .*'observation': \(5, 3\)"),
        ({"action": [["a"] * 2] * 5}, "a context is made of numbers"),
        ({"reward": []}, r"at least one transition, and 'reward' has none; `agent.begin\(\)` acts"),
    ],
)
def test_contexts_of_a_wrong_shape_are_refused(tiny_run, tiny_dataset, change, said):
    agent = ertrl.load_agent(tiny_run)
    context = tiny_dataset.task(25).transitions(np.arange(5))._asdict()
    with pytest.raises(DataError, match=said):
        agent.adapt({**context, **change})


def test_an_evaluation_needs_a_protocol(tiny_run):
    with pytest.raises(ConfigError, match=r"at least one protocol.*leave protocols out"):
        ertrl.evaluate(tiny_run, [])


def test_several_runs_are_no_run(tiny_run):
    with pytest.raises(ConfigError, match=r"one run was expected, .*, got a list"):
        ertrl.evaluate([tiny_run])  # ty: ignore[invalid-argument-type]


def test_observations_of_a_wrong_shape_are_refused(tiny_run, tiny_dataset):
    agent = ertrl.load_agent(tiny_run)
    with pytest.raises(DataError, match=r"adapt takes the transitions .*; got ndarray"):
        agent.adapt(np.zeros((5, 2)))
    adapted = agent.adapt(tiny_dataset.task(25).transitions(np.arange(5)))
    with pytest.raises(DataError, match=r"must be 2 numbers in a row, got shape \(3,\)"):
        adapted.act(np.zeros(3))
    with pytest.raises(DataError, match=r"observation must have shape \(rows, 2\), got \(2,\)"):
        agent.act(np.zeros(2), adapted.z[None])
    with pytest.raises(DataError, match=r"z must have shape \(rows, 4\), got \(1, 3\)"):
        agent.act(np.zeros((1, 2)), np.zeros((1, 3)))


def test_in_a_notebook_progress_is_one_line_that_moves(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr("ertrl.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Meter("train", 3) as meter:
        for done in range(4):
            meter.update(done)
    said = capsys.readouterr().err
    assert said.count("\r") == 4
    assert said.count("\n") == 1


def test_the_time_left_leaves_out_the_first_portion_which_compiles(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("ertrl.progress.time.monotonic", lambda: now[0])
    with Meter("collect", 10) as meter:
        for done, seconds in enumerate((0, 60, 10, 10)):
            now[0] += seconds
            meter.update(done)
    lines = ["0/10", "1/10", "2/10, 80 s left", "3/10, 70 s left"]
    assert capsys.readouterr().err.splitlines() == [f"collect: {line}" for line in lines]

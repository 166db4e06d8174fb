"""Configurations are strict: nothing misspelt, of the wrong type or out of range gets through."""

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from annotated_types import Gt, Lt, Predicate
from hypothesis import given, settings
from hypothesis import strategies as st

from ertrl.collection.config import CollectConfig
from ertrl.config import (
    Count,
    Seed,
    Share,
    Widths,
    check,
    fingerprint,
    replace_from_json,
    rising,
    to_json,
)
from ertrl.data.sampler import SamplingConfig
from ertrl.errors import ConfigError
from ertrl.evaluation.trial import EvaluationConfig
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.profiles import _own_layers
from ertrl.training.config import TrainConfig


@dataclass(frozen=True)
class Inner:
    widths: tuple[int, ...] = (1, 2)
    bounds: tuple[float, float] = (-1.0, 1.0)
    on: bool = False


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    count: int = 3
    rate: float = 0.5
    name: str = "x"
    mode: Literal["fast", "slow"] = "fast"
    order: Literal[1, 2] = 1
    limit: int | None = None


def train_config(**changes):
    config = TrainConfig(method=get_method("er-trl")(), learner=get_learner("brac")())
    return dataclasses.replace(config, **changes)


def refusal(values, config=None):
    """The message with which these values are refused."""
    with pytest.raises(ConfigError) as caught:
        replace_from_json(config or Outer(), values)
    return str(caught.value)


# --- keys ---


def test_unknown_keys_are_refused_with_the_nearest_name():
    message = refusal({"cuont": 1})
    assert "'cuont'" in message
    assert "Did you mean 'count'?" in message
    assert "inner, limit, mode, name, order, rate" in message  # all that there is


def test_unknown_nested_keys_say_where_they_are():
    message = refusal({"inner": {"width": [1]}})
    assert "unknown setting of inner 'width'" in message
    assert "'widths'" in message


@pytest.mark.parametrize("name", ["widths", "inner.widths"])
def test_a_nested_key_is_shown_where_it_belongs(name):
    told = f"unknown setting '{name}'. Did you mean {{'inner': {{'widths': ...}}}}? Known: count"
    assert refusal({name: [1]}).startswith(told)


def test_a_key_that_resembles_nothing_gets_no_advice():
    message = refusal({"zzzzzz": 1})
    assert "Did you mean" not in message
    assert "Known:" in message


def test_the_settings_that_the_released_code_ignored_are_errors():
    message = refusal({"sampling": {"meta_batch_size": 10}}, train_config())
    assert "Did you mean 'meta_batch'?" in message


@pytest.mark.parametrize("values", [None, 3, [], "x", [["count", 1]]])
def test_what_is_no_object_is_refused(values):
    assert "must be an object" in refusal(values)
    assert "inner must be an object" in refusal({"inner": values})


# --- types ---


@pytest.mark.parametrize(
    "values",
    [
        {"count": 1.0},
        {"count": "1"},
        {"count": None},
        {"count": [1]},
        {"count": True},
        {"rate": "0.5"},
        {"rate": None},
        {"rate": True},
        {"name": 1},
        {"name": None},
        {"mode": "medium"},
        {"mode": 0},
        {"mode": None},
        {"order": 3},
        {"order": True},
        {"mode": ["fast"]},
        {"limit": 1.5},
        {"limit": True},
        {"limit": "none"},
        {"inner": {"on": 1}},
        {"inner": {"on": "true"}},
        {"inner": {"widths": 64}},
        {"inner": {"widths": "64"}},
        {"inner": {"widths": [64.0]}},
        {"inner": {"widths": [64, True]}},
        {"inner": {"widths": [[64]]}},
        {"inner": {"bounds": [0.0, "1"]}},
    ],
    ids=str,
)
def test_values_of_the_wrong_type_are_refused_by_name(values):
    name = next(iter(values))
    inside = values[name]
    path = f"{name}.{next(iter(inside))}" if isinstance(inside, dict) else name
    assert path in refusal(values)


def test_a_wrong_element_is_named_by_its_place():
    assert "inner.widths[1]" in refusal({"inner": {"widths": [64, "64"]}})


def test_literals_list_what_they_allow():
    assert "fast, slow" in refusal({"mode": "medium"})
    assert "1, 2" in refusal({"order": 3})


def test_right_values_are_taken_deeply_and_the_rest_stays():
    values = {
        "inner": {"widths": [64, 32], "on": True},
        "rate": 2,
        "mode": "slow",
        "limit": 7,
    }
    changed = replace_from_json(Outer(), values)
    assert changed == Outer(Inner((64, 32), on=True), rate=2.0, mode="slow", limit=7)
    assert isinstance(changed.rate, float)  # 2 and 2.0 are the same number, and the same run
    assert isinstance(changed.inner.widths, tuple)
    assert replace_from_json(changed, {"limit": None}).limit is None
    assert Outer() == Outer(Inner((1, 2)))  # the original is as it was
    assert replace_from_json(Outer(), {}) == Outer()


def test_numbers_of_a_pair_must_be_two():
    assert "bounds" in refusal({"inner": {"bounds": [0.0]}})
    assert "bounds" in refusal({"inner": {"bounds": [0.0, 1.0, 2.0]}})
    pair = replace_from_json(Outer(), {"inner": {"bounds": [0, 1]}}).inner.bounds
    assert pair == (0.0, 1.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_must_be_finite(value):
    assert "rate" in refusal({"rate": value})


# --- JSON ---


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    st.builds(
        Outer,
        inner=st.builds(
            Inner,
            widths=st.lists(st.integers(1, 999), max_size=3).map(tuple),
            on=st.booleans(),
        ),
        count=st.integers(),
        rate=st.floats(allow_nan=False, allow_infinity=False),
        name=st.text(max_size=5),
        mode=st.sampled_from(["fast", "slow"]),
        limit=st.none() | st.integers(),
    )
)
def test_configurations_survive_json(config):
    text = json.dumps(to_json(config))
    assert replace_from_json(Outer(), json.loads(text)) == config
    assert fingerprint(json.loads(text)) == fingerprint(to_json(config))


def test_the_fingerprint_names_the_content_and_not_its_order():
    one, other = {"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}
    assert fingerprint(one) == fingerprint(other)
    assert len(fingerprint(one)) == 10
    assert fingerprint(one) != fingerprint({"a": 1, "b": [2, 1]})
    with pytest.raises(ValueError, match="JSON compliant"):
        fingerprint({"a": float("nan")})


def test_every_setting_makes_another_run():
    base = to_json(train_config())
    seen = {fingerprint(base)}

    def walk(values):
        for name, value in values.items():
            if isinstance(value, dict):
                yield from walk(value)
            else:
                values[name] = [*value, 1] if isinstance(value, list) else f"{value}!"
                yield fingerprint(base)
                values[name] = value

    found = list(walk(base))
    assert len(found) > 40
    assert len(seen | set(found)) == len(found) + 1


# --- limits ---


@dataclass(frozen=True)
class Limited:
    free: int = -5
    shift: float = -0.5
    count: Count = 1
    share: Share = 1.0
    step: Annotated[float, Gt(0)] = 0.1
    few: Annotated[int, Lt(3)] = 0
    widths: Widths = (8,)
    seed: Seed = 0
    ends: Annotated[tuple[float, float], Predicate(rising)] = (-1.0, 1.0)
    maybe: Count | None = None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"share": -0.1}, "share must be at least 0, got -0.1"),
        ({"share": 1.5}, "share must be at most 1, got 1.5"),
        ({"step": 0}, "step must be above 0, got 0.0"),
        ({"few": 3}, "few must be below 3, got 3"),
        ({"widths": [8, 0]}, r"widths\[1\] must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": 2**32}, "seed must be below 4294967296"),
        ({"ends": [1, 1]}, r"ends must be rising, got \(1.0, 1.0\)"),
        ({"maybe": 0}, "maybe must be at least 1"),
    ],
    ids=str,
)
def test_limits_stand_beside_the_field(values, message):
    assert re.fullmatch(f"{message}.*", refusal(values, Limited()))
    # However the configuration was made.
    made = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    with pytest.raises(ConfigError, match=next(iter(values))):
        check(Limited(**made))


def test_a_field_without_limits_has_none():
    check(Limited())
    values = {"free": 0, "shift": -1e9, "few": -7, "share": 0, "widths": [], "maybe": None}
    assert replace_from_json(Limited(), values).shift == -1e9


# --- what cannot be run ---


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"updates": 0}, "updates"),
        ({"updates": -100}, "updates"),
        ({"updates_per_call": 0}, "updates_per_call"),
        ({"evaluate_every": 0}, "evaluate_every"),
        ({"checkpoint_every": 0}, "checkpoint_every"),
        ({"updates": 150}, r"updates \(150\) .* give --updates 200, or --updates-per-call 50$"),
        ({"evaluate_every": 250}, "evaluate_every"),
        ({"checkpoint_every": 99}, "checkpoint_every"),
        ({"sampling": SamplingConfig(meta_batch=0)}, "sampling.meta_batch"),
        ({"sampling": SamplingConfig(batch_size=0)}, "sampling.batch_size"),
        ({"sampling": SamplingConfig(context_size=0)}, "sampling.context_size"),
        ({"sampling": SamplingConfig(contexts_per_task=0)}, "sampling.contexts_per_task"),
        ({"evaluation": EvaluationConfig(episodes=0)}, "evaluation.episodes"),
        ({"evaluation": EvaluationConfig(repeats=0)}, "evaluation.repeats"),
        ({"evaluation": EvaluationConfig(episodes=2)}, "evaluation.prior_episodes"),
        ({"evaluation": EvaluationConfig(prior_episodes=3)}, "evaluation.prior_episodes"),
        ({"evaluation": EvaluationConfig(prior_episodes=-1)}, "evaluation.prior_episodes"),
    ],
    ids=str,
)
def test_training_that_cannot_run_is_refused(changes, named):
    with pytest.raises(ConfigError, match=f"^{named}"):
        train_config(**changes).validate()


def test_a_method_that_lives_on_the_critic_refuses_a_learner_without_one():
    class Cloning(get_learner("td3bc")):
        has_critic = False

    TrainConfig(get_method("focal")(), Cloning()).validate()
    with pytest.raises(ConfigError, match="td3bc has no critic; choose another learner"):
        TrainConfig(get_method("offline-pearl")(), Cloning()).validate()


def test_the_defaults_can_run():
    train_config().validate()
    train_config(evaluation=EvaluationConfig(prior_episodes=0)).validate()
    CollectConfig().validate()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"steps": 601}, "steps"),
        ({"random_steps": 5}, "random_steps"),
        ({"checkpoints": 0}, "checkpoints"),
        ({"checkpoints": 31}, "checkpoints"),  # 600 steps are 30 blocks
    ],
    ids=str,
)
def test_collection_that_cannot_run_is_refused(changes, named):
    with pytest.raises(ConfigError, match=named):
        CollectConfig(**changes).validate()
    CollectConfig(checkpoints=30).validate()


@pytest.mark.parametrize(
    ("method", "learner", "values", "message"),
    [
        ("er-trl", "td3bc", {"method": {"gan": {"rounds": 0}}}, r"method\.gan\.rounds.*at least 1"),
        ("focal", "brac", {"learner": {"dual_updates": 0}}, r"learner\.dual_updates.*at least 1"),
        ("focal", "td3bc", {"learner": {"hidden": [0]}}, r"learner\.hidden.*at least 1"),
        ("focal", "td3bc", {"learner": {"tau": -0.1}}, r"learner\.tau.*at least 0"),
        ("focal", "td3bc", {"sampling": {"batch_size": 1}}, r"batch_size must be at least 2"),
        ("focal", "td3bc", {"sampling": {"meta_batch": 1}}, r"meta_batch must be at least 2"),
        ("focal", "brac", {"learner": {"log_std_range": [0, -5]}}, r"log_std_range must be rising"),
    ],
)
def test_numbers_that_cannot_work_are_refused_before_training(method, learner, values, message):
    config = TrainConfig(method=get_method(method)(), learner=get_learner(learner)())
    with pytest.raises(ConfigError, match=message):
        replace_from_json(config, values).validate()


def test_a_family_may_be_like_one_that_is_like_another():
    content = {"families": {"a": {"train": 1}, "b": {"like": "a", "collect": 2}}}
    assert _own_layers(content, "new", "b") == [{}, {"train": 1}, {"collect": 2}, {}]
    assert _own_layers(content, "b", "") == [{}, {"train": 1}, {"collect": 2}]

"""Styles make behaviour differ, leave rewards alone, and their effect is measured."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import sqrtm

from conftest import TINY_COLLECT
from ertrl import api
from ertrl.collection.buffer import Replay, style_bonus, style_directions
from ertrl.collection.distance import policy_distance, wasserstein
from ertrl.collection.policies import Eyes
from ertrl.envs import Step, make_family
from ertrl.errors import DataError

FAMILY = make_family("point-robot")
STYLED = dataclasses.replace(TINY_COLLECT, style=1.0)


@pytest.fixture(scope="module")
def styled_dataset(tiny_dataset, tmp_path_factory):
    """The tiny dataset again, but with styles, on the scale of the one without."""
    out = tmp_path_factory.mktemp("styled") / "d"
    return api.collect(
        "point-robot", out, config=STYLED, references=tiny_dataset.path, progress="none"
    )


def along_style(dataset) -> np.ndarray:
    """Mean action of each task at the last checkpoint, along the direction of its style."""
    directions = style_directions(FAMILY, STYLED)
    return np.array(
        [
            np.asarray(task.actions[task.checkpoints == 1]).mean(axis=(0, 1)) @ directions[t]
            for t, task in dataset.tasks.items()
        ]
    )


def test_styles_shift_actions_along_their_directions(tiny_dataset, styled_dataset):
    shift = along_style(styled_dataset) - along_style(tiny_dataset)
    assert shift.mean() > 0.2
    assert (shift > 0).mean() > 0.9


def test_recorded_rewards_are_the_true_ones(styled_dataset):
    for task in styled_dataset.tasks.values():
        after = np.asarray(task.observations[:, 1:])
        expected = FAMILY.reward(after, np.asarray(task.actions), task.parameters)
        np.testing.assert_allclose(task.rewards, expected, rtol=1e-5, atol=1e-6)


def test_the_manifest_tells_style_and_scale(tiny_dataset, styled_dataset):
    collector = styled_dataset.manifest["collector"]
    assert collector["style"]["strength"] == 1.0
    np.testing.assert_array_equal(
        collector["style"]["directions"], style_directions(FAMILY, STYLED)
    )
    assert collector["references"] == tiny_dataset.fingerprint
    for t, task in styled_dataset.tasks.items():
        assert task.reference["expert"] == tiny_dataset.task(t).reference["expert"]
        assert task.reference["collector"] < task.reference["expert"], "style costs true reward"
    assert "collector" not in tiny_dataset.task(0).reference
    assert tiny_dataset.manifest["collector"]["style"] == {"strength": 0.0, "directions": None}


def test_references_must_be_of_the_same_tasks(tiny_dataset, tmp_path):
    with pytest.raises(DataError, match="must come from the same tasks"):
        api.collect("point-robot-wind", tmp_path / "w", references=tiny_dataset)
    with pytest.raises(DataError, match="already holds another dataset"):
        api.collect("point-robot", tiny_dataset.path, config=TINY_COLLECT, references=tiny_dataset)


def test_directions_are_fixed_unit_vectors_of_their_own():
    directions = style_directions(FAMILY, STYLED)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    assert len(np.unique(directions, axis=0)) == FAMILY.n_tasks
    np.testing.assert_array_equal(
        directions, style_directions(FAMILY, dataclasses.replace(STYLED, style=3.0))
    )
    other_seed = dataclasses.replace(STYLED, seed=STYLED.seed + 1)
    assert not np.array_equal(directions, style_directions(FAMILY, other_seed))


def test_without_style_nothing_is_added():
    assert style_bonus(FAMILY, TINY_COLLECT) is None
    plain, styled = (Eyes(FAMILY, config).told for config in (TINY_COLLECT, STYLED))
    assert plain.shape == (40, 2)
    assert styled.shape == (40, 4)
    np.testing.assert_array_equal(styled[:, :2], plain)


def test_the_bonus_is_that_of_the_task_that_rewards():
    shape = {"steps_per_block": 5, "updates_per_step": 1, "batch_size": 64}
    replay = Replay(FAMILY, dataclasses.replace(STYLED, relabel_fraction=1.0, **shape))
    draw = np.random.default_rng(0)
    action = draw.uniform(-1, 1, (40, 2)).astype(np.float32)
    outcome = draw.normal(size=(40, 2)).astype(np.float32)
    no = np.zeros(40, bool)
    replay.add(np.arange(40), outcome, action, Step(outcome, outcome, no, no))
    replay.show()
    batch, rewarded_by = replay.relabelled(block=0)
    true = FAMILY.reward(batch.next_observation, batch.action, FAMILY.parameters[rewarded_by])
    directions = style_directions(FAMILY, STYLED)[rewarded_by]
    expected = true + (directions * batch.action).sum(axis=-1) / np.sqrt(2)
    np.testing.assert_allclose(batch.reward, expected, rtol=1e-5, atol=1e-5)


def test_wasserstein_is_the_papers():
    """Against the formula with full covariances and matrix square roots."""
    draw = np.random.default_rng(1)
    for _ in range(5):
        m1, m2 = draw.normal(size=(2, 4))
        s1, s2 = draw.uniform(0.1, 2, size=(2, 4))
        c1, c2 = np.diag(s1**2), np.diag(s2**2)
        root = sqrtm(c1)
        trace = np.trace(c1 + c2 - 2 * sqrtm(root @ c2 @ root)).real
        expected = np.sqrt(((m1 - m2) ** 2).sum() + trace)
        assert wasserstein(m1, s1, m2, s2) == pytest.approx(expected, rel=1e-9)


def test_policy_distance_averages_over_the_states_of_both_tasks():
    """Policies whose distance in a state is known: task i acts i x (the state's number)."""

    def gaussian(behaviour, observation):
        task = np.arange(FAMILY.n_tasks)[:, None, None]
        return task * observation[..., :1] * np.ones(2), np.zeros((*observation.shape[:2], 2))

    collector = SimpleNamespace(
        policies=SimpleNamespace(gaussian=gaussian),
        state=SimpleNamespace(behaviour=0),
        config=STYLED,
        family=FAMILY,
    )
    # All states of task i hold the number i.
    writer = SimpleNamespace(draw_states=lambda task, draw, size: np.full((size, 2), float(task)))
    found = policy_distance(collector, writer, (0, 1, 3))
    gap = np.sqrt(2) * np.abs(np.subtract.outer([0, 1, 3], [0, 1, 3]))
    expected = gap * np.add.outer([0, 1, 3], [0, 1, 3]) / 2
    np.testing.assert_allclose(found["pairwise"], expected, rtol=1e-6)
    assert found["mean"] == pytest.approx(expected.sum() / (9 * 2), rel=1e-6)


def test_a_dataset_knows_how_much_its_policies_differ(tiny_dataset, styled_dataset):
    plain, styled = (
        d.manifest["collector"]["policy_distance"] for d in (tiny_dataset, styled_dataset)
    )
    assert plain["tasks"] == list(range(20))
    pairwise = np.array(plain["pairwise"])
    np.testing.assert_array_equal(pairwise, pairwise.T)
    np.testing.assert_array_equal(np.diag(pairwise), 0)
    assert styled["mean"] > plain["mean"] > 0

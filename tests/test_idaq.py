"""IDAQ's choice of context, on a family in which the best z can be read off."""

from types import SimpleNamespace

import numpy as np
import pytest

from ertrl.data.sampler import SamplingConfig
from ertrl.evaluation.protocols import IDAQ_CANDIDATES, IDAQ_EPISODES, _least_like, idaq
from ertrl.evaluation.trial import EvaluationConfig, Trial
from ertrl.types import Transitions
from toys import DIMS, ToyFamily, second_row_diverges

HORIZON = 5
GOALS = np.linspace(-0.8, 0.8, 9).astype(np.float32)
"""Training tasks; task i's logs hold the action GOALS[i]."""


class GoalFamily(ToyFamily):
    """The closer the first action is to the task's goal, the better."""

    def __init__(self, goals):
        super().__init__([HORIZON] * len(goals), HORIZON)
        self.goals = np.asarray(goals)

    def simulate(self, parameters, threads=None):
        return super().simulate(np.full((len(parameters), 1), float(HORIZON)))

    def reward(self, outcome, action, parameters):
        return -np.square(action[..., 0] - parameters[..., 0])


class Imitator:
    """z is the mean action of the context, and the agent plays z."""

    config = SimpleNamespace(sampling=SamplingConfig(context_size=4))
    z0 = np.zeros(1, np.float32)

    def __init__(self):
        self.played = []

    def encode(self, context):
        total = (context.action[..., 0] * context.mask).sum(axis=-1)
        return (total / np.maximum(context.mask.sum(axis=-1), 1))[:, None].astype(np.float32)

    def act(self, observation, z):
        self.played.append(z[:, 0].copy())
        return np.stack([z[:, 0], np.zeros(len(z))], axis=1)


def stub_dataset(goals):
    def data(goal):
        def transitions(which):
            n = len(which)
            s, flat = np.zeros((n, DIMS.observation), np.float32), np.zeros(n, np.float32)
            action = np.full((n, DIMS.action), goal, np.float32)
            return Transitions(s, action, flat, s, flat)

        return SimpleNamespace(
            parameters=np.array([goal]), steps=np.arange(9), transitions=transitions
        )

    train = {i: data(goal) for i, goal in enumerate(GOALS)}
    tests = {100 + i: data(goal) for i, goal in enumerate(goals)}
    every = {**train, **tests}
    return SimpleNamespace(
        tasks=tests, task=every.__getitem__, group=lambda _: list(train), dims=DIMS
    )


def play(goals, seed=0, **config):
    agent = Imitator()
    settings = EvaluationConfig(**{"episodes": 12, "prior_episodes": 1, "repeats": 1} | config)
    trial = Trial("idaq", agent, GoalFamily(goals), stub_dataset(goals), settings, seed)
    idaq(trial)
    return trial.result(), np.stack(agent.played[::HORIZON])


def test_the_last_episode_is_as_good_as_the_best_and_half_of_them_explore():
    goals = [0.61, -0.33, 0.05]
    result, played = play(goals)
    assert len(played) == 12
    errors = np.square(played - goals)
    np.testing.assert_allclose(errors[-1], errors.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(result.returns[:, 0], -HORIZON * errors.min(axis=0), atol=1e-4)
    explored = played[:6]
    assert np.isin(explored.round(3), GOALS.round(3)).all()
    for row in range(3):
        assert len(set(explored[:, row].round(3))) == 6, "no training task is tried twice"
    # Only the best exploration episode is context, so the inferred z is that episode's.
    best = explored[errors[:6].argmin(axis=0), range(3)]
    np.testing.assert_allclose(played[6], best, atol=1e-6)
    np.testing.assert_array_equal(result.curve_context % HORIZON, 0)
    np.testing.assert_array_equal(result.interaction_steps, 12 * HORIZON)


def test_the_context_behind_the_reported_z_is_counted():
    # 6 of 12 episodes explore; then z comes from the best of them, or from better ones since.
    result, played = play([0.61, -0.33, 0.05])
    errors = np.square(played - [0.61, -0.33, 0.05])
    for row in range(3):
        counts = result.curve_context[row, 0]
        assert counts[:6].tolist() == [0] * 6, "a training task's code has none of its own"
        assert counts[6] == HORIZON
        winner = errors[:11, row].argmin()
        assert counts[11] == counts[winner]


def test_a_short_evaluation_is_prolonged():
    """Three episodes would leave nothing between trying and the last one."""
    result, played = play([0.61], episodes=3)
    assert len(played) == IDAQ_EPISODES
    assert result.interaction_steps.tolist() == [[IDAQ_EPISODES * HORIZON]]


@pytest.mark.parametrize("row", range(3))
def test_rows_do_not_know_of_each_other(row):
    # Task numbers address the randomness, so the lone task keeps its place in the list.
    goals = [0.61, -0.33, 0.05]
    together, alone = play(goals)[0], play([*goals[: row + 1]])[0]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one[row], other[row])


def test_a_diverged_episode_is_never_context():
    family = second_row_diverges(GoalFamily([0.2, 0.2]))
    settings = EvaluationConfig(repeats=1)
    trial = Trial("idaq", Imitator(), family, stub_dataset([0.2, 0.2]), settings, 0)
    idaq(trial)
    assert trial.buffer.count[1] == 0
    assert np.isnan(trial.result().returns[1]).all()
    assert np.isfinite(trial.result().returns[0]).all()


def test_the_candidate_farthest_from_all_tried_ones_is_taken():
    known = np.array([[0.0], [1.0], [5.0], [5.5], [10.0]])
    assert len(known) == IDAQ_CANDIDATES, "so that all are looked at"
    draw = np.random.default_rng(0)
    assert _least_like(known, [0], draw) == 4
    assert _least_like(known, [0, 4], draw) == 2  # min distances: 1, 5, 4.5
    assert _least_like(known[:1], [], draw) == 0

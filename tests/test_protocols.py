"""Adaptation protocols: who acts when, and what stands behind z, counted in steps.

The stub agent leaves marks: the first number of an action says who chose it, and its codes hold
how many transitions of each origin a context has. So the log shows what z was made of.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from ertrl.envs import make_family
from ertrl.errors import ConfigError
from ertrl.evaluation import PAPER_PROTOCOLS, Agent
from ertrl.evaluation import agent as agent_module
from ertrl.evaluation.context import ContextBuffer
from ertrl.evaluation.protocols import continual, thompson
from ertrl.evaluation.trial import EvaluationConfig, Trial
from ertrl.training.update import init
from ertrl.types import Dims, Transitions
from toys import DIMS, LATENT, METHODS, ToyFamily, random_state, second_row_diverges, small_config

ORIGINS = ("dataset", "agent", "random", "policy")
MARKS = {"dataset": -0.75, "agent": 0.5, "policy": 0.25}  # random actions hit none of them
every_protocol = pytest.mark.parametrize("name", PAPER_PROTOCOLS)


class StubAgent:
    """z counts a context's transitions by origin; its actions' second number is their sum."""

    z0 = np.zeros(4, np.float32)

    def __init__(self, events):
        self.events = events

    def encode(self, context):
        mark = context.action[..., 0]
        is_from = {origin: np.isclose(mark, value) for origin, value in MARKS.items()}
        is_from["random"] = ~np.any(list(is_from.values()), axis=0)
        counts = [(is_from[origin] * context.mask).sum(axis=1) for origin in ORIGINS]
        return np.stack(counts, axis=1).astype(np.float32)

    def _action(self, mark, z):
        return np.stack([np.full(len(z), mark), z.sum(axis=1) / 1000], axis=1)

    def act(self, observation, z):
        self.events.append(("act", z.copy()))
        return self._action(MARKS["agent"], z)

    def explore(self, observation, z, keys):
        assert len(keys) == len(z)
        self.events.append(("explore", z.copy()))
        return self._action(MARKS["policy"], z)


def stub_dataset(lengths):
    """Endless marked transitions for each task."""

    def data(length):
        def transitions(which):
            action = np.full((len(which), DIMS.action), MARKS["dataset"], np.float32)
            s = np.zeros((len(which), DIMS.observation), np.float32)
            flat = np.zeros(len(which), np.float32)
            return Transitions(s, action, flat, s, flat)

        return SimpleNamespace(
            parameters=np.array([float(length)]), steps=np.arange(100), transitions=transitions
        )

    tasks = {number: data(length) for number, length in lengths.items()}
    return SimpleNamespace(tasks=tasks, task=tasks.__getitem__, dims=DIMS)


def play(name, lengths, horizon=20, seed=0, **config):
    """Run a protocol; returns its result and, per evaluation round, z of each row."""
    family = ToyFamily(list(lengths.values()), horizon)
    trial = Trial(
        name,
        StubAgent(family.events),
        family,
        stub_dataset(lengths),
        EvaluationConfig(**config),
        seed,
    )
    PAPER_PROTOCOLS[name](trial)
    episodes = []
    for event in family.events:
        if event == "reset":
            episodes.append([])
        else:
            episodes[-1].append(event)
    for episode in episodes:  # z never changes inside an episode, whoever acts
        for _, z in episode:
            np.testing.assert_array_equal(z, episode[0][1])
    rounds = [e[0][1] for e in episodes if e and e[0][0] == "act"]
    return trial.result(), rounds


def told(z):
    """What a z says about its context."""
    return dict(zip(ORIGINS, map(int, z), strict=True))


# --- full-length episodes, by hand ---

NOTHING = dict.fromkeys(ORIGINS, 0)
FULL = {0: 20, 1: 20}


def behind(rounds, row=0):
    return [{o: n for o, n in told(z[row]).items() if n} for z in rounds]


def test_offline_adds_a_horizon_of_data_before_each_episode():
    result, rounds = play("offline", FULL, episodes=3, prior_episodes=2, repeats=1)
    assert behind(rounds) == [{"dataset": 20}, {"dataset": 40}, {"dataset": 60}]
    np.testing.assert_array_equal(result.curve_context[..., -1], [[60], [60]])
    np.testing.assert_array_equal(result.interaction_steps, [[60], [60]])
    # 20 steps whose reward is the context size / 1000.
    np.testing.assert_allclose(result.returns, 20 * 0.06, rtol=1e-5)
    np.testing.assert_array_equal(result.curve_context, [[[20, 40, 60]]] * 2)
    np.testing.assert_allclose(result.curve_returns, [[[0.4, 0.8, 1.2]]] * 2, rtol=1e-5)
    np.testing.assert_array_equal(result.z, [[[60, 0, 0, 0]]] * 2)


def test_online_acts_on_the_prior_for_two_episodes_and_reports_the_third():
    result, rounds = play("online", FULL, episodes=3, prior_episodes=2, repeats=1)
    assert behind(rounds) == [{}, {}, {"agent": 40}]
    np.testing.assert_array_equal(result.curve_context[..., -1], 40)
    np.testing.assert_array_equal(result.interaction_steps, 60)
    np.testing.assert_allclose(result.returns, 20 * 0.04, rtol=1e-5)


def test_online_with_four_episodes_infers_from_three():
    result, rounds = play("online", FULL, episodes=4, prior_episodes=2, repeats=1)
    assert behind(rounds) == [{}, {}, {"agent": 40}, {"agent": 60}]
    np.testing.assert_array_equal(result.curve_context[..., -1], 60)


def test_offline_with_four_episodes_ends_on_four_horizons():
    result, _ = play("offline", FULL, episodes=4, prior_episodes=2, repeats=1)
    np.testing.assert_array_equal(result.curve_context[..., -1], 80)


def test_non_prior_explores_at_random_for_half_of_the_evaluation():
    # 3 horizons of 20 steps: random while the evaluation counter is below 30, so the block before
    # the second episode (counter 20 to 39) is half random, half policy. The reported episode uses
    # two blocks, 1.5 + 0.5 horizons; the third block is played and not used.
    result, rounds = play("non-prior", FULL, episodes=3, prior_episodes=2, repeats=1)
    assert behind(rounds) == [{}, {}, {"random": 30, "policy": 10}]
    np.testing.assert_array_equal(result.curve_context[..., -1], 40)
    np.testing.assert_array_equal(result.interaction_steps, 120)
    np.testing.assert_allclose(result.returns, 20 * 0.04, rtol=1e-5)


def test_non_prior_with_four_episodes_has_two_random_blocks_and_one_of_the_policy():
    result, rounds = play("non-prior", FULL, episodes=4, prior_episodes=2, repeats=1)
    assert behind(rounds) == [{}, {}, {"random": 40}, {"random": 40, "policy": 20}]
    np.testing.assert_array_equal(result.interaction_steps, 160)


# --- episodes that end early: thresholds are in steps ---


def test_online_counts_steps_and_not_episodes():
    # Episodes of 7 steps: 9 of them exceed 60 steps (63). The first inference needs 40: after the
    # sixth (42). The reported ninth episode has the z of 8 x 7 = 56 transitions.
    result, rounds = play("online", {0: 7}, episodes=3, prior_episodes=2, repeats=1)
    counts = [told(z[0])["agent"] for z in rounds]
    assert counts == [0, 0, 0, 0, 0, 0, 42, 49, 56]
    # They begin at 0, 7, 14 | 21, 28, 35 | 42, 49, 56: the last of each horizon makes the curve.
    assert result.curve_context.tolist() == [[[0, 0, 56]]]
    np.testing.assert_allclose(result.curve_returns, [[[0, 0, 7 * 0.056]]], rtol=1e-5)
    assert result.interaction_steps == 63


def test_non_prior_explores_at_least_a_horizon_before_each_short_episode():
    # Three rollouts of 7 steps make a block of 21. The counter starts in each rollout at the
    # evaluation steps so far, 28 before the fifth episode: there 2 of 7 steps are random.
    _, rounds = play("non-prior", {0: 7}, episodes=3, prior_episodes=2, repeats=1)
    assert len(rounds) == 9
    assert told(rounds[6][0]) == NOTHING | {"random": 4 * 21 + 3 * 2, "policy": 3 * 5 + 21}


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(PAPER_PROTOCOLS)),
    st.integers(1, 9),
    st.data(),
    st.integers(1, 5),
)
def test_protocols_are_their_twins_row_by_row(name, horizon, data, episodes):
    prior_episodes = data.draw(st.integers(0, episodes - 1))
    lengths = dict(enumerate(data.draw(st.lists(st.integers(1, horizon), min_size=1, max_size=3))))
    result, rounds = play(
        name, lengths, horizon, episodes=episodes, prior_episodes=prior_episodes, repeats=1
    )
    for row, length in lengths.items():
        twin, interaction = ref.protocol(name, horizon, episodes, prior_episodes, length)
        assert [told(z[row]) for z in rounds[: len(twin)]] == twin
        reported = sum(twin[-1].values())
        assert result.curve_context[row, 0, -1] == reported
        assert result.interaction_steps[row, 0] == interaction
        np.testing.assert_allclose(result.returns[row, 0], length * reported / 1000, rtol=1e-4)


@pytest.mark.parametrize(("name", "useful"), [("offline", 3), ("online", 1), ("non-prior", 1)])
def test_nothing_is_encoded_that_nobody_acts_on(name, useful, monkeypatch):
    calls, encode = [], StubAgent.encode
    monkeypatch.setattr(StubAgent, "encode", lambda *args: calls.append(1) or encode(*args))
    play(name, FULL, episodes=3, prior_episodes=2, repeats=1)
    assert len(calls) == useful


# --- rows do not know of each other ---


@every_protocol
def test_results_do_not_depend_on_company(name):
    everyone = {3: 7, 5: 20, 8: 13, 9: 4}
    together, _ = play(name, everyone, episodes=3, prior_episodes=1, repeats=2)
    for i, (task, length) in enumerate(everyone.items()):
        alone, _ = play(name, {task: length}, episodes=3, prior_episodes=1, repeats=2)
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_array_equal(one[i], other[0])


def real_agent():
    config = small_config("focal", "td3bc")
    dims = Dims(2, 2)
    states = (
        random_state(config.method.init, dims),
        random_state(config.learner.init, dims, LATENT),
    )
    states = jax.tree.map(lambda x: jnp.asarray(3 * x), states)
    return Agent(config, dims, *states)


@pytest.fixture(scope="module")
def point_robot():
    """A real agent and made-up logs of a real family."""
    family = make_family("point-robot")
    draw = np.random.default_rng(0)

    def data(task):
        s, a, s2 = draw.normal(size=(3, 200, 2)).astype(np.float32)
        r = -np.linalg.norm(s2 - family.parameters[task], axis=1).astype(np.float32)

        def transitions(which):
            return Transitions(s[which], a[which], r[which], s2[which], np.zeros(len(which)))

        return SimpleNamespace(
            parameters=family.parameters[task], steps=np.arange(200), transitions=transitions
        )

    tasks = {task: data(task) for task in (0, 7, 21, 33)}
    agent = real_agent()

    def evaluate(name, chosen, seed=0):
        some = {task: tasks[task] for task in chosen}
        dataset = SimpleNamespace(tasks=some, task=some.__getitem__, dims=Dims(2, 2))
        config = EvaluationConfig(repeats=2)
        trial = Trial(name, agent, family, dataset, config, seed)
        PAPER_PROTOCOLS[name](trial)
        return trial.result()

    return evaluate


@every_protocol
def test_a_real_agent_is_not_influenced_by_company_either(name, point_robot):
    together, alone = point_robot(name, (0, 7, 21, 33)), point_robot(name, (21,))
    np.testing.assert_allclose(together.returns[2], alone.returns[0], rtol=1e-4)
    np.testing.assert_array_equal(together.curve_context[2], alone.curve_context[0])
    # Tasks do differ, and repeats differ where contexts are random.
    assert np.ptp(together.returns) > 0.1
    repeats_differ = (np.abs(np.diff(together.returns, axis=1)) > 1e-6).all()
    assert repeats_differ == (name != "online")  # Point-Robot and its agent have no noise


@every_protocol
def test_evaluation_is_reproducible_and_its_seed_counts(name, point_robot):
    one, again, other = (point_robot(name, (0, 7), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.returns, again.returns)
    if name != "online":
        assert (one.returns != other.returns).all()


@every_protocol
def test_a_diverged_simulation_costs_its_own_row_only(name):
    family = second_row_diverges(ToyFamily([5, 5], 5))
    trial = Trial(
        name,
        StubAgent(family.events),
        family,
        stub_dataset({4: 5, 6: 5}),
        EvaluationConfig(repeats=1),
        0,
    )
    PAPER_PROTOCOLS[name](trial)
    result, (intact, _) = trial.result(), play(name, {4: 5, 6: 5}, horizon=5, repeats=1)
    for found, expected in zip(result, intact, strict=True):
        np.testing.assert_array_equal(found[0], expected[0])
    assert np.isnan(result.returns[1]).all()
    assert np.isnan(result.curve_returns[1]).all()


# --- the growing context ---


def test_context_buffer_keeps_what_was_added_while_it_grows():
    buffer = ContextBuffer(rows=2, capacity=3, dims=DIMS)
    draw = np.random.default_rng(0)

    def some(n):
        s, a, s2 = (draw.normal(size=(n, k)).astype(np.float32) for k in (3, 2, 3))
        return Transitions(s, a, draw.normal(size=n).astype(np.float32), s2, np.zeros(n))

    first, second = some(2), some(5)
    buffer.add(1, first)
    assert buffer.context().mask.tolist() == [[0, 0, 0], [1, 1, 0]]
    buffer.add(1, second)
    context = buffer.context()
    np.testing.assert_array_equal(buffer.count, [0, 7])
    np.testing.assert_array_equal(context.mask.sum(axis=1), [0, 7])
    assert (context.mask[1, :7] == 1).all()
    for name in ("observation", "action", "reward", "next_observation"):
        both = np.concatenate([getattr(first, name), getattr(second, name)])
        np.testing.assert_array_equal(getattr(context, name)[1, :7], both)


# --- z within the episode, and draws of z ---


def real_trial(name, method, lengths, **config):
    """A trial of a random agent of this method."""
    settings = small_config(method, "td3bc")
    state = random_state(lambda key: init(settings, DIMS))
    agent = Agent(settings, DIMS, state.method, state.learner)
    family = ToyFamily(list(lengths.values()), 20)
    parts = agent, family, stub_dataset(lengths), EvaluationConfig(**config)
    return Trial(name, *parts, 0)


@pytest.mark.parametrize("method", METHODS)
def test_continual_infers_what_encoding_all_steps_anew_infers(method, monkeypatch):
    """Also where episodes end early: task 0 after 20 steps, task 1 after 7."""
    trial = real_trial("continual", method, {0: 20, 1: 7}, episodes=2, repeats=1)
    buffer = ContextBuffer(2, 64, DIMS)
    seen = []
    evaluate = Trial.evaluate

    def checked(self, watch=None):
        def both(s, a, r, s2, alive):
            watch(s, a, r, s2, alive)
            for row in np.flatnonzero(alive):
                buffer.add(row, [x[row : row + 1] for x in (s, a, r, s2)])
            known = trial.agent.encode(buffer.context())
            np.testing.assert_allclose(self.z, known, rtol=1e-4, atol=1e-4)
            seen.append(self.z.copy())

        return evaluate(self, both)

    monkeypatch.setattr(Trial, "evaluate", checked)
    continual(trial)
    result = trial.result()
    assert len(seen) > 40
    assert np.abs(seen[0]).max() > 0, "known from the first step on"
    curve = trial.step_curve
    np.testing.assert_array_equal(curve["step_context"], [1, 2, 5, 10, 20, 40])
    assert curve["step_returns"].shape == (2, 1, 6)
    assert np.isfinite(curve["step_returns"]).all()
    np.testing.assert_array_equal(result.curve_context[0], [[20, 40]])
    np.testing.assert_array_equal(result.interaction_steps[0], [40])


def test_continual_compiles_one_program():
    trial = real_trial("continual", "bayes-linear", FULL, episodes=2, repeats=1)
    before = agent_module._add._cache_size()
    continual(trial)
    assert agent_module._add._cache_size() <= before + 1


def test_thompson_draws_in_the_first_half():
    trial = real_trial("thompson", "bayes-linear", FULL, episodes=4, prior_episodes=1, repeats=2)
    used, evaluate = [], trial.evaluate

    def kept():
        used.append((trial.z.copy(), trial.agent.believe(trial.buffer.context()).z))
        return evaluate()

    trial.evaluate = kept
    thompson(trial)
    drawn = [not np.allclose(z, mean) for z, mean in used]
    assert drawn == [True, True, False, False]
    first = used[0][0]
    assert len(np.unique(first, axis=0)) == len(first), "every task and repeat has its own draw"
    np.testing.assert_array_equal(trial.result().interaction_steps, 80)
    np.testing.assert_array_equal(trial.result().curve_context[0, 0], [0, 20, 40, 60])


def test_thompson_needs_a_posterior():
    with pytest.raises(ConfigError, match="focal has no posterior"):
        thompson(real_trial("thompson", "focal", FULL))

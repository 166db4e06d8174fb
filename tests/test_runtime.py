"""Agents without JAX: equal to those in JAX, step by step, in NumPy and in ONNX."""

import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from ertrl import runtime
from ertrl.data.scaling import Scaling
from ertrl.deploy import graphs
from ertrl.errors import ConfigError, DataError, PluginError
from ertrl.evaluation import Agent
from ertrl.evaluation.agent import BufferedAgent, in_double
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.methods.prior import Prior
from ertrl.runtime.inference import LeastSquares
from ertrl.runtime.layers import MLP
from ertrl.training.update import init
from ertrl.types import Context
from toys import DIMS, LEARNERS, METHODS, random_state, small_config, with_fields

CASES = [
    *METHODS,
    "offline-pearl, probabilistic",
    "bayes-linear, trust",
    "bayes-linear, at_most",
    "bayes-linear, trust, at_most",
    "bayes-linear, prior",
    "bayes-linear, trust, at_most, prior",
]
every_case = pytest.mark.parametrize("case", CASES)


@cache
def agent(case, learner="td3bc", next_observation=True):
    method, *variant = case.split(", ")
    values = {"next_observation": next_observation}
    variants = {"probabilistic": True, "trust": 0.5, "at_most": 6, "prior": 2.0}
    values |= {n: variants[n] for n in variant}
    config = with_fields(small_config(method, learner), **values)
    state = random_state(lambda key: init(config, DIMS))
    if hasattr(state.method, "seen"):
        seen = state.method.seen
        seen = seen._replace(variance=1 + np.abs(seen.variance))
        state = state._replace(method=state.method._replace(seen=seen))
    if "prior" in case:
        # Tasks that lie far out, in two directions.
        draw, size = np.random.default_rng(0), len(state.method.prior.mean)
        z = 1 + draw.normal(0, 3, (50, 2)) @ draw.normal(size=(2, size))
        prior = Prior.of_nothing(size, 2.0)
        for _ in range(300):
            prior = prior.with_codes(np.asarray(z, np.float32), 2.0)
        state = state._replace(method=state.method._replace(prior=prior))
    return Agent(config, DIMS, state.method, state.learner)


def context(size, seed=0):
    draw = np.random.default_rng(seed)
    s, s2 = draw.normal(size=(2, 1, size, DIMS.observation))
    a, r = np.tanh(draw.normal(size=(1, size, DIMS.action))), draw.normal(size=(1, size))
    return Context.of([x.astype(np.float32) for x in (s, a, r, s2)])


def observed(adapted, one):
    for step in zip(*(x[0] for x in one[:4]), strict=True):
        adapted.observe(*step)
    return adapted


def exact_z(agent, one):
    """The batch result in JAX, in double precision."""
    with jax.enable_x64(True):
        return agent.doubled.encode(in_double(one))[0]


# --- equal to the batch result ---


@every_case
@pytest.mark.parametrize("next_observation", [False, True])
def test_step_by_step_equals_all_at_once(case, next_observation):
    """After one transition, after many, and with duplicates."""
    a = agent(case, next_observation=next_observation)
    many = context(600)
    for one in (context(1), context(7), many, Context(*(np.repeat(x, 9, axis=1) for x in many))):
        z = observed(a.begin(), one).z
        np.testing.assert_allclose(z, exact_z(a, one), rtol=0, atol=1e-5)
        logs = {name: x[0] for name, x in one._asdict().items() if name != "mask"}
        np.testing.assert_allclose(z, a.adapt(logs).z, rtol=0, atol=1e-5)
        # In 32 bits the batch result itself is off by more, where it solves equations.
        np.testing.assert_allclose(z, a.encode(one)[0], rtol=0, atol=1e-4)


@every_case
@pytest.mark.parametrize("next_observation", [False, True])
def test_scaled_observations_and_own_units_of_actions_come_along(case, next_observation):
    """An agent that standardises what it sees and whose actions are not in [-1, 1]."""
    plain = agent(case, next_observation=next_observation)
    draw = np.random.default_rng(5)
    o = DIMS.observation
    scaling = Scaling(draw.normal(size=o), 0.5 + draw.random(o), np.float32(0.3), np.float32(2.0))
    scaling = Scaling(*(np.asarray(x, np.float32) for x in scaling))
    ends = runtime.ActionRange(np.full(DIMS.action, -2.0), np.full(DIMS.action, 6.0))
    own = Agent(plain.config, DIMS, *plain.states, scaling, ends)
    one, adapted = context(20), own.begin()
    observed(adapted, one._replace(action=ends.outward(one.action)))
    np.testing.assert_allclose(adapted.z, exact_z(own, one), rtol=0, atol=1e-4)
    assert np.abs(adapted.z - observed(plain.begin(), one).z).max() > 1e-3
    s = one.observation[0, 0]
    expected = ends.outward(own.act(s[None], adapted.z[None])[0])
    np.testing.assert_allclose(adapted.act(s), expected, rtol=0, atol=1e-4)


@every_case
def test_nothing_known_is_z0_and_the_order_of_steps_does_not_matter(case):
    a, one = agent(case), context(30)
    np.testing.assert_array_equal(a.begin().z, a.z0)
    order = np.random.default_rng(1).permutation(30)
    shuffled = Context(*(x[:, order] for x in one))
    z, other = (observed(a.begin(), c).z for c in (one, shuffled))
    np.testing.assert_allclose(z, other, rtol=0, atol=1e-6)


@every_case
def test_uncertainty_begins_at_one_and_falls(case):
    adapted = agent(case).begin()
    found = [adapted.uncertainty]
    for seed in range(3):
        observed(adapted, context(100, seed))
        found.append(adapted.uncertainty)
    assert found[0] == 1
    level = 1.01 if "at_most" in case else 1.0  # what counts no more moves it to and fro
    assert (np.divide(found[1:], found[:-1]) <= level).all(), found
    assert 0 < found[-1] < 0.5


@pytest.mark.parametrize("learner", LEARNERS)
def test_actions_are_those_of_the_learner(learner):
    a, one = agent("focal", learner), context(20)
    adapted = observed(a.begin(), one)
    expected = a.act(one.observation[0], np.tile(adapted.z, (20, 1)))
    found = [adapted.act(s) for s in one.observation[0]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_layer_norm_and_standardised_inputs():
    draw = np.random.default_rng(0)
    w = tuple(draw.normal(size=s).astype(np.float32) for s in ((3, 8), (8, 2)))
    b = tuple(draw.normal(size=n).astype(np.float32) for n in (8, 2))
    centre, scale = np.array([[1, 2, 3], [2, 2, 2]], np.float32)
    x = draw.normal(size=3).astype(np.float32)
    h = (x - centre) / scale @ w[0] + b[0]
    h = np.maximum((h - h.mean()) / np.sqrt(h.var() + 1e-5), 0)
    net = MLP(w, b, layer_norm=True, centre=centre, scale=scale)
    np.testing.assert_allclose(net(x), h @ w[1] + b[1], rtol=1e-5)


def test_actions_have_the_range_of_the_robot():
    plain = agent("bayes-linear").plain
    ends = runtime.ActionRange(np.array([-2.0, 10.0]), np.array([2.0, 30.0]))
    wide = runtime.Agent(*DIMS[:2], plain.inference, plain.policy, ends).begin()
    usual, one = observed(plain.begin(), context(5)), context(5)
    scaled = one._replace(action=one.action * [2, 10] + [0, 20])
    observed(wide, scaled)
    np.testing.assert_allclose(wide.z, usual.z, atol=1e-5)
    s = np.ones(DIMS.observation)
    np.testing.assert_allclose(wide.act(s), usual.act(s) * [2, 10] + [0, 20], atol=1e-4)


# --- recursive least squares ---


@pytest.mark.parametrize("at_most", [0, 50])
@pytest.mark.parametrize("targets", [1, 4])
def test_recursive_least_squares_is_least_squares(targets, at_most):
    draw, d, noise = np.random.default_rng(0), 6, 0.7
    net = MLP((np.zeros((8, targets * (d + 1)), np.float32),), (np.zeros(targets * (d + 1)),))
    belief = LeastSquares(
        net, targets, np.zeros(9), np.ones(9), noise, 100.0, at_most=at_most
    ).begin()
    phi = np.tanh(draw.normal(size=(3000, targets, d)))
    rest = phi @ draw.normal(size=d) + 0.1 * draw.normal(size=(3000, targets))
    for f, y in zip(phi, rest, strict=True):
        belief.update(f, y)
    spread = noise * np.sqrt(1 + 3000 / at_most) if at_most else noise
    rows = np.concatenate([phi.reshape(-1, d), spread * np.eye(d)])
    y = np.concatenate([rest.reshape(-1), np.zeros(d)])
    np.testing.assert_allclose(belief.z, np.linalg.lstsq(rows, y, rcond=None)[0], atol=1e-9)
    inverse = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(belief.covariance, spread**2 * inverse, atol=1e-12)


def predicted_world(model, w):
    """Rewards and next states as the model with weights w has them, and something on top."""

    def world(step, on_top):
        s, act, _, s2 = step
        out = model.net(
            ((np.concatenate((s, act, s2 - s, [0])) - model.centre) / model.scale)[: -model.targets]
        ).reshape(model.targets, -1)
        y = out[:, -1] + np.tanh(out[:, :-1]) @ w + on_top
        y = y * model.scale[-model.targets :] + model.centre[-model.targets :]
        return s, act, y[-1], s + y[:-1]

    return world


def test_surprise_tells_a_world_that_follows_the_model_from_one_that_does_not():
    """Usual errors are about 1, from the first transition on; worse ones are that many times 1."""
    a, residual, draw = agent("bayes-linear"), 0.1, np.random.default_rng(3)
    known = a.begin()
    assert known.surprise is None
    known._belief = replace(a.plain.inference, residual=residual).begin()
    world = predicted_world(a.plain.inference, draw.normal(size=a.plain.inference.latent_dim))
    steps = list(zip(*(x[0] for x in context(600)[:4]), strict=True))
    found = []
    for step in steps[:400]:
        known.observe(*world(step, residual * draw.normal(size=known._belief._of.targets)))
        found.append(known.surprise)
    assert 0.5 < np.mean(found[5:50]) < 1.5
    assert 0.85 < np.mean(found[-200:]) < 1.15
    for step in steps[400:]:
        known.observe(*world(step, 5 * residual * draw.normal(size=known._belief._of.targets)))
        found.append(known.surprise)
    assert 4 < np.mean(found[-100:]) < 6
    assert agent("focal").begin().surprise is None


@pytest.mark.parametrize(("root", "at_most"), [(False, 0.0), (True, 0.0), (False, 8.0)])
def test_uncertainty_is_how_far_z_is_off_on_average(root, at_most):
    """Over many tasks that the prior holds possible, with errors smaller than the noise."""
    draw, d, n, residual = np.random.default_rng(5), 3, 40, 0.2
    scale = np.diag([2.0, 1.0, 0.1]) if root else np.eye(d)
    model = replace(
        agent("bayes-linear").plain.inference,
        noise=1.0,
        clip=100.0,
        trust=0.0,
        at_most=at_most,
        residual=residual,
        prior_mean=np.zeros(d),
        prior_root=scale,
        net=SimpleNamespace(outputs=2 * (d + 1)),
        targets=2,
    )
    phi = draw.normal(size=(n, 2, d)) @ scale
    off, told = [], []
    for _ in range(400):
        u, belief = draw.normal(size=d), model.begin()
        for row in phi:
            belief.update(row, row @ u + residual * draw.normal(size=2))
        off.append(scale @ (belief._u - u))
        told.append(belief.uncertainty)
    tasks = scale @ scale.T
    expected = np.sqrt(np.einsum("ij,ni,nj->n", tasks, off, off).mean() / (tasks * tasks).sum())
    assert np.median(told) == pytest.approx(expected, rel=0.2)
    assert model.begin().uncertainty == pytest.approx(1)


# --- mistakes ---


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((np.zeros(2), np.zeros(2), 0.0, np.zeros(3)), r"observation must be 3 .* shape \(2,\)"),
        ((0.0, np.zeros(2), 0.0, np.zeros(3)), r"observation must be 3 .* got 0\.0"),
        ((np.zeros(3), None, 0.0, np.zeros(3)), "action must be 2 numbers in a row, got None"),
        ((np.zeros(3), np.zeros(2), [0.0, 1.0], np.zeros(3)), "reward must be 1 number"),
        ((np.zeros(3), "up", 0.0, np.zeros(3)), "action must be 2 numbers, got 'up'"),
        ((np.zeros(3), np.zeros(2), np.nan, np.zeros(3)), "reward holds NaN"),
        ((np.zeros(3), np.zeros(2), 0.0, [np.inf, 0, 0]), "next_observation holds NaN"),
    ],
)
def test_a_step_that_is_none_is_explained_and_changes_nothing(step, message):
    adapted = agent("focal").begin()
    with pytest.raises(DataError, match=message):
        adapted.observe(*step)
    assert adapted.transitions == 0
    np.testing.assert_array_equal(adapted.z, 0)


def test_a_reward_may_come_from_a_vector_environment():
    one, other = agent("focal").begin(), agent("focal").begin()
    one.observe(np.zeros(3), np.zeros(2), np.array([1.5]), np.zeros(3))
    other.observe(np.zeros(3), np.zeros(2), 1.5, np.zeros(3))
    np.testing.assert_array_equal(one.z, other.z)


def test_no_agent_acts_on_what_is_no_observation_or_no_task():
    both = agent("focal")
    adapted = both.adapt({name: x[0] for name, x in context(5)._asdict().items()})
    for act in (adapted.act, both.plain.begin().act):
        with pytest.raises(DataError, match="observation holds NaN"):
            act(np.full(3, np.nan))
        with pytest.raises(DataError, match="observation must be 3 numbers, got 'x'"):
            act("x")
    with pytest.raises(DataError, match="z must be"):
        both.plain.act(np.zeros(3), np.zeros(1))


def test_a_method_of_its_own_kind_adapts_in_jax_and_cannot_leave_it():
    focal = get_method("focal")

    @dataclass(frozen=True)
    class Median(focal):
        def encode(self, state, context):
            return jax.numpy.median(state.encoder.net.per_transition(context), axis=-2)

    known = agent("focal")
    method = Median(**vars(known.config.method))
    config = with_fields(known.config)
    config = type(config)(method, config.learner, sampling=config.sampling)
    own = Agent(config, DIMS, *known.states)
    one = context(16)  # as many as fit without padding, which this method does not know
    adapted = own.begin()
    assert isinstance(adapted, BufferedAgent)
    observed(adapted, one)
    assert "transitions=16" in repr(adapted)
    np.testing.assert_allclose(adapted.z, own.encode(one)[0], atol=1e-6)
    assert adapted.act(np.zeros(3)).shape == (2,)
    with pytest.raises(DataError, match="the shapes are"):
        adapted.observe(np.zeros(2), np.zeros(2), 0.0, np.zeros(3))
    with pytest.raises(PluginError, match=r"works in JAX only.*inference"):
        _ = own.plain
    with pytest.raises(ConfigError, match="no posterior"):
        own.believe(own.nothing(1))


def test_a_learner_of_its_own_kind_adapts_in_jax():
    td3bc = get_learner("td3bc")

    @dataclass(frozen=True)
    class Other(td3bc):
        def policy(self, state):
            return None

    known = agent("focal")
    learner = Other(**vars(known.config.learner))
    config = type(known.config)(known.config.method, learner, sampling=known.config.sampling)
    own = Agent(config, DIMS, *known.states)
    assert isinstance(own.begin(), BufferedAgent)
    with pytest.raises(PluginError, match=r"td3bc works in JAX only.*policy"):
        _ = own.plain


def test_actions_in_other_units_are_refused_and_rounding_is_not():
    plain = agent("focal")
    ends = runtime.ActionRange(np.full(DIMS.action, -2.0), np.full(DIMS.action, 6.0))
    adapted = Agent(plain.config, DIMS, *plain.states, action_range=ends).begin()
    s = np.zeros(DIMS.observation)
    adapted.observe(s, np.full(DIMS.action, 6.0001), 0.0, s)
    with pytest.raises(DataError, match=r"to \[60.0.*actions from \[-2.0.*other units"):
        adapted.observe(s, np.full(DIMS.action, 60.0), 0.0, s)
    assert adapted.transitions == 1


# --- posterior ---


def test_the_posterior_is_that_of_the_runtime():
    for case in ("bayes-linear", "bayes-linear, prior", "offline-pearl, probabilistic"):
        a, one = agent(case), context(40)
        belief = a.believe(one)
        adapted = observed(a.begin(), one)
        np.testing.assert_allclose(belief.z[0], adapted.z, atol=1e-4)
        prior = a.believe(a.nothing(2))
        np.testing.assert_allclose(prior.z, [a.z0] * 2, atol=1e-6)
        if case.startswith("bayes"):
            np.testing.assert_allclose(belief.covariance[0], adapted._belief.covariance, atol=1e-5)
        else:
            spread = np.sqrt(np.trace(belief.covariance[0]) / np.trace(prior.covariance[0]))
            np.testing.assert_allclose(spread, adapted.uncertainty, rtol=1e-3)
        if "prior" not in case:
            np.testing.assert_allclose(prior.covariance, [np.eye(4)] * 2, atol=1e-6)


# --- ONNX ---


@every_case
def test_onnx_computes_the_same_for_any_number_of_transitions(case, tmp_path):
    a = agent(case, next_observation=case != "focal")
    (tmp_path / "encoder.onnx").write_bytes(graphs.encoder(a.plain))
    (tmp_path / "policy.onnx").write_bytes(graphs.policy(a.plain))
    other = graphs.OnnxAgent(tmp_path)
    for size in (1, 2, 50, 300):
        one = context(size, seed=size)
        z = other.encode(one)
        np.testing.assert_allclose(z, exact_z(a, one), rtol=0, atol=1e-5)
        actions = other.act(one.observation[0], z)
        expected = a.act(one.observation[0], np.tile(z, (size, 1)))
        np.testing.assert_allclose(actions, expected, rtol=0, atol=1e-5)
    nothing = Context(*(x[:, :0] for x in context(1)))
    np.testing.assert_allclose(other.encode(nothing), a.z0, rtol=0, atol=1e-6)


# --- alone ---


def test_the_runtime_needs_nothing_but_numpy():
    code = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        allowed = {"numpy", "ertrl", *sys.stdlib_module_names}
        if name.split(".")[0] not in allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import ertrl.runtime
foreign = {name.split(".")[0] for name in sys.modules}
print(sorted(foreign & {"jax", "jaxlib", "equinox", "mujoco", "gymnasium", "safetensors", "scipy"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_runtime_is_imported_alone_where_everything_is_installed():
    code = """
import sys
from ertrl import runtime
print([name for name in ("gymnasium", "jax", "ertrl.envs") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_more_than_the_runtime_needs_more_than_numpy():
    code = """
import sys
sys.modules["equinox"] = None  # as if it were not installed
import ertrl
try:
    ertrl.load_agent
except ertrl.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ertrl.load_agent needs the package equinox" in done.stdout
    assert "pip install" in done.stdout

"""Small configurations, states, batches and datasets that several test files share.

Compiling is what takes time here, so one program per learner and method serves many tests: the
numbers of a configuration are arguments of the program, and states are drawn by NumPy.
"""

import dataclasses
from contextlib import contextmanager
from functools import cache

import jax
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax.tree_util import keystr, tree_flatten_with_path

import reference as ref
from ertrl.contracts import small as contracts
from ertrl.contracts.small import (  # noqa: F401 (tests find them here)
    DIMS,
    LATENT,
    NOISE,
    SAMPLING,
    batches,
    field_names,
    one_batch,
    random_state,
    small,
    with_fields,
)
from ertrl.data import Dataset
from ertrl.data.writer import DatasetWriter, Description, TaskRecord
from ertrl.envs import render
from ertrl.envs.family import Family, Simulation, Step
from ertrl.learners import get_learner, learners
from ertrl.methods import get_method, methods
from ertrl.types import Episodes

NO_SLOPE = np.zeros((SAMPLING.meta_batch, LATENT))
"""What methods that do not hear the critic are told by it."""
METHODS, LEARNERS = sorted(methods()), sorted(learners())


def small_config(method, learner, **values):
    """As the contracts have it, by name."""
    return contracts.small_config(get_method(method), get_learner(learner), **values)


examples = settings(derandomize=True, deadline=None, max_examples=25)


def numbers(*shape, least=-2.0, most=2.0):
    """Arrays of a fixed shape (so that nothing is compiled twice)."""
    return arrays(np.float32, shape, elements=st.floats(least, most, width=32))


def numbers_of(config):
    """All settings of type float in a tree of dataclasses whose name occurs only once."""
    names = list(field_names(config))

    def of(part):
        for field in dataclasses.fields(part):
            current = getattr(part, field.name)
            if dataclasses.is_dataclass(current):
                yield from of(current)
            elif isinstance(current, float) and names.count(field.name) == 1:
                yield field.name, current

    return dict(of(config))


def double(tree):
    """In double precision."""
    return jax.tree.map(
        lambda x: np.asarray(x, np.float64) if np.issubdtype(x.dtype, np.floating) else x, tree
    )


# --- programs in double precision with fixed noise ---


def table(shape, kind):
    """Fixed noise of a shape: standard normal or uniform."""
    draw = np.random.default_rng(len(shape) * 1000 + sum(shape))
    return draw.normal(size=shape) if kind == "normal" else draw.uniform(size=shape)


@contextmanager
def fixed_noise():
    """Within, every draw of a shape is the same table, so a twin needs no knowledge of keys."""
    real = jax.random.normal, jax.random.uniform

    def normal(key, shape=(), dtype=None):
        return jax.numpy.asarray(table(shape, "normal"))

    def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
        return jax.numpy.asarray(minval + (maxval - minval) * table(shape, "uniform"))

    jax.random.normal, jax.random.uniform = normal, uniform
    try:
        yield
    finally:
        jax.random.normal, jax.random.uniform = real


def exact(function, config):
    """Compile `function(config, ...)` in double precision, with fixed noise, once per shape.

    All float settings may be changed at each call: `program(..., tau=1.0)`.
    """
    defaults = numbers_of(config)
    program = jax.jit(lambda values, *args: function(with_fields(config, **values), *args))

    def run(*args, **values):
        assert values.keys() <= defaults.keys()
        with jax.enable_x64(True), fixed_noise():
            result = program(defaults | values, *(double(a) for a in args), jax.random.key(0))
            return jax.tree.map(np.asarray, result)

    return run


@cache
def learner_program(learner, **values):
    """(state, rl, more_rl, z, **numbers) -> LearnerStep."""
    config = with_fields(small(get_learner(learner)()), **values)
    return config, exact(get_learner(learner).update, config)


@cache
def method_program(method, **values):
    """(state, batch, z_gradient, **numbers) -> state, metrics."""
    config = with_fields(small(get_method(method)()), **values)
    return config, exact(get_method(method).update, config)


# --- comparing trees ---


def method_setting(method, seed=0, **values):
    """Configuration, program in double precision, state and batch."""
    config, program = method_program(method, **values)
    batch = double(one_batch(small_config(method, "td3bc"), seed=seed))
    return config, program, double(random_state(config.init, DIMS, seed=seed)), batch


def leaves(tree):
    """Arrays by path, as NumPy."""
    found, _ = tree_flatten_with_path(tree)
    return {keystr(path): np.asarray(leaf) for path, leaf in found}


def assert_trees_equal(one, other):
    """Bit for bit."""
    one, other = leaves(one), leaves(other)
    assert one.keys() == other.keys()
    for name, leaf in one.items():
        np.testing.assert_array_equal(leaf, other[name], err_msg=name)


def trees_differ(one, other):
    """Whether any number differs."""
    one, other = leaves(one), leaves(other)
    return any(not np.array_equal(leaf, other[name]) for name, leaf in one.items())


def influences(function, *arguments):
    """Path of each output -> paths of the inputs it can depend on, from the traced program.

    An operation is taken to let all its inputs through to all its outputs.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    sources = {}
    names = [keystr(path) for path, _ in tree_flatten_with_path(arguments)[0]]
    for variable, name in zip(closed.jaxpr.invars, names, strict=True):
        sources[variable] = {name}

    def of(variable):
        return set() if hasattr(variable, "val") else sources.get(variable, set())

    for equation in closed.jaxpr.eqns:
        everything = set().union(*map(of, equation.invars))
        for variable in equation.outvars:
            sources[variable] = everything
    outputs = [keystr(path) for path, _ in tree_flatten_with_path(shape)[0]]
    return dict(zip(outputs, map(of, closed.jaxpr.outvars), strict=True))


# --- gradients ---


def assert_follows(loss, before, after, learning_rate, tolerance=1e-6):
    """A network took one Adam step, its first, against the gradient of `loss`.

    Adam's first moment after one step from zero is (1 - b1) times the gradient.
    """
    gradient = jax.tree.map(lambda m: np.asarray(m) / 0.1, after.adam.mu)
    assert_gradient(loss, before.net, gradient, tolerance)
    trees = before.net, gradient, after.net
    for old, slope, new in zip(*map(jax.tree.leaves, trees), strict=True):
        step = ref.first_adam_step(slope, learning_rate)
        np.testing.assert_allclose(new, old + step, rtol=1e-9, atol=1e-9)


def assert_gradient(loss, net, gradient, tolerance=1e-6):
    """Compare with central differences of `loss`, one random direction per array of the network.

    `loss` maps a network with NumPy arrays to a number in double precision.
    """
    arrays, structure = jax.tree.flatten(double(net))
    draw = np.random.default_rng(0)
    scale = np.sqrt(sum(np.square(g).sum() for g in jax.tree.leaves(gradient)))
    assert scale > 0
    for i, (array, slope) in enumerate(zip(arrays, jax.tree.leaves(gradient), strict=True)):
        direction = draw.normal(size=array.shape)
        direction /= np.linalg.norm(direction)
        ends = [
            loss(structure.unflatten([*arrays[:i], array + step * direction, *arrays[i + 1 :]]))
            for step in (1e-6, -1e-6)
        ]
        measured = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(
            (np.asarray(slope) * direction).sum(), measured, rtol=1e-4, atol=tolerance * scale
        )


# --- a family and a dataset of two episodes per task ---


class ToySimulation(Simulation):
    """Counts its steps and ends in a terminal state after as many as the task says."""

    def __init__(self, length, events):
        self.size, self._length, self._events = len(length), length, events
        self._count = np.zeros(self.size)

    def reset(self, seeds, rows=None):
        self._events.append("reset")
        self._count[slice(None) if rows is None else rows] = 0
        return self._observation()

    def step(self, action):
        self._count += 1
        never = np.zeros(self.size, bool)
        return Step(self._observation(), self._observation(), self._count >= self._length, never)

    def state(self):
        return {"count": self._count.copy()}

    def restore(self, state):
        self._count = state["count"].copy()

    def _observation(self):
        return np.stack([self._count] * DIMS.observation, axis=1).astype(np.float32)


class ToyFamily(Family):
    """Task i ends after so many steps; the reward is the second number of the action."""

    name = "toy"
    summary = "for tests"
    observation_dim, action_dim = DIMS.observation, DIMS.action
    layout = (("count", DIMS.observation),)
    parameter_names = ("length",)
    varies = "reward"

    def __init__(self, lengths, horizon):
        super().__init__()
        self.lengths, self.horizon, self.events = lengths, horizon, []

    @property
    def parameters(self):
        return np.array(self.lengths, float)[:, None]

    def simulate(self, parameters, threads=None):
        return ToySimulation(parameters[:, 0], self.events)

    def reward(self, outcome, action, parameters):
        return action[..., 1]


def second_row_diverges(family):
    """Of two simulations side by side, the second one blows up with its first step."""
    simulate = family.simulate

    def broken(parameters, threads=None):
        simulation = simulate(parameters)
        step = simulation.step
        simulation.step = lambda action: step(action)._replace(diverged=np.array([False, True]))
        return simulation

    family.simulate = broken
    return family


HORIZON = 4


def write_dataset(path, tasks=4):
    """Per task: an episode that ends in a terminal state after 2 steps, and one cut at 4.

    Observations say where they come from: (task, 10 x episode + step, 0). Rows behind an episode's
    end hold 99, and nobody may ever see them.
    """
    about = Description.of(ToyFamily([HORIZON] * tasks, HORIZON))
    writer = DatasetWriter(path, about, dict.fromkeys(range(tasks), 2))
    for task in range(tasks):
        observation = np.full((2, HORIZON + 1, DIMS.observation), 99.0, np.float32)
        action = np.full((2, HORIZON, DIMS.action), 99.0, np.float32)
        reward = np.full((2, HORIZON), 99.0, np.float32)
        for episode, length in enumerate((2, HORIZON)):
            for t in range(length + 1):
                observation[episode, t] = (task, 10 * episode + t, 0)
            action[episode, :length] = 0.1 * task
            reward[episode, :length] = np.arange(length)
        episodes = Episodes(
            observation,
            action,
            reward,
            length=np.array([2, HORIZON], np.int32),
            terminated=np.array([True, False]),
            truncated=np.array([False, True]),
            diverged=np.array([False, False]),
        )
        writer.add(task, episodes, checkpoint=0)
    reference = {"expert": 1.0, "random": 0.0, "zero": 0.0}
    records = {task: TaskRecord("train", (float(task),), reference) for task in range(tasks)}
    writer.seal(records, collector={})
    return Dataset(path)


def some_tasks(dataset, tasks, path):
    """A dataset of these tasks of another one."""
    names = ("family", "family_options", "parameter_names", "horizon")
    about = Description(*(dataset.manifest[n] for n in names), *dataset.dims[:2])
    writer = DatasetWriter(path, about, {t: dataset.task(t).episodes for t in tasks})
    records = {}
    for task in tasks:
        data = dataset.task(task)
        records[task] = TaskRecord(data.group, tuple(data.parameters), data.reference)
        arrays = (data.observations, data.actions, data.rewards, data.lengths)
        flags = (data.terminated, data.truncated, np.zeros(data.episodes, bool))
        for checkpoint in np.unique(data.checkpoints):
            rows = data.checkpoints == checkpoint
            writer.add(task, Episodes(*(x[rows] for x in (*arrays, *flags))), checkpoint)
    writer.seal(records, dataset.manifest["collector"])
    return Dataset(path)


def can_render():
    """Whether this machine can draw without a screen."""
    try:
        render._gl_context(16, 16).free()
    except render.RenderError:
        return False
    return True

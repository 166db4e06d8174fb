"""Small configurations, states and batches that any method and learner can be tried on."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_map_with_path

from ertrl import store
from ertrl.data.sampler import SamplingConfig
from ertrl.learners import Learner
from ertrl.methods import Method
from ertrl.training.config import TrainConfig
from ertrl.training.update import changed_types
from ertrl.types import Context, Dims, TaskBatch, Transitions

DIMS = Dims(observation=3, action=2, training_tasks=4)
LATENT, NOISE = 4, 3
SAMPLING = SamplingConfig(meta_batch=4, batch_size=12, context_size=5, contexts_per_task=2)


def demand(holds: Any, otherwise: str) -> None:
    """An assertion that no option of Python turns off."""
    if not holds:
        raise AssertionError(otherwise)


def demand_same_types(before: Any, after: Any) -> None:
    for problem in changed_types(before, after):
        demand(False, problem)


def demand_survives_disk(state: Any, blank: Any) -> None:
    back = store.tree_from_bytes(store.tree_to_bytes(state), blank, Path("state"))
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(back), strict=True):
        np.testing.assert_array_equal(one, other)


def with_fields(config: Any, **values: Any) -> Any:
    """Set these fields wherever they occur in a tree of dataclasses; each must occur."""
    missing = set(values) - set(field_names(config))
    if missing:
        raise KeyError(f"no field {missing} in {config}")
    return _with_fields(config, values)


def _with_fields(config: Any, values: dict[str, Any]) -> Any:
    """The same, where some need not occur."""
    changes = {}
    for field in dataclasses.fields(config):
        current = getattr(config, field.name)
        if dataclasses.is_dataclass(current):
            changes[field.name] = _with_fields(current, values)
        elif field.name in values:
            changes[field.name] = values[field.name]
    return dataclasses.replace(config, **changes)


def field_names(config: Any) -> Iterator[str]:
    """All names of fields in a tree of dataclasses."""
    for field in dataclasses.fields(config):
        current = getattr(config, field.name)
        yield field.name
        if dataclasses.is_dataclass(current):
            yield from field_names(current)


def small(config: Any) -> Any:
    """Narrow networks, whatever they are called."""
    widths = {name: (16,) for name in field_names(config) if name.endswith("hidden")}
    return _with_fields(config, {**widths, "latent_dim": LATENT, "noise_dim": NOISE})


def small_config(method: type[Method], learner: type[Learner], **values: Any) -> TrainConfig:
    """The defaults with narrow networks and whatever else is asked for."""
    config = TrainConfig(method=small(method()), learner=small(learner()), sampling=SAMPLING)
    return with_fields(config, **values)


def random_state(init: Callable[..., Any], *arguments: Any, seed: int = 0) -> Any:
    """A state in the shapes of `init(...)` with networks far from flat and fresh optimisers."""
    draw = np.random.default_rng(seed)

    def fill(path: Any, leaf: Any) -> np.ndarray:
        if ".adam" in keystr(path) or not np.issubdtype(leaf.dtype, np.floating) or not leaf.shape:
            return np.zeros(leaf.shape, leaf.dtype)
        scale = 1 / np.sqrt(leaf.shape[0]) if len(leaf.shape) > 1 else 0.1
        return draw.normal(scale=scale, size=leaf.shape).astype(leaf.dtype)

    shapes = jax.eval_shape(lambda: init(*arguments, jax.random.key(0)))
    return tree_map_with_path(fill, shapes)


def batches(count: int, config: TrainConfig, seed: int = 0) -> TaskBatch:
    """Random batches [K, T, ...] in which the reward tells the tasks apart."""
    draw = np.random.default_rng(seed)
    c = config.drawn
    extra = config.learner.extra_batches
    task = np.stack([draw.permutation(c.meta_batch) for _ in range(count)]).astype(np.int32)

    def rows(shape: tuple[int, ...], of_task: np.ndarray):
        s = draw.normal(size=(*shape, DIMS.observation))
        a = np.tanh(draw.normal(size=(*shape, DIMS.action)))
        r = s[..., 0] * np.cos(of_task) + a[..., 0] * np.sin(of_task)
        s2 = s + 0.1 * draw.normal(size=s.shape)
        return s, a, r, s2, draw.random(shape) < 0.2

    def rl(*lead: int) -> Transitions:
        shape = (count, *lead, c.meta_batch, c.batch_size)
        of_task = task.reshape(count, *(1 for _ in lead), c.meta_batch, 1)
        return Transitions(*(x.astype(np.float32) for x in rows(shape, of_task)))

    shape = (count, c.meta_batch, c.contexts_per_task, c.context_size)
    *drawn, _ = rows(shape, task[..., None, None])
    context = Context(*(x.astype(np.float32) for x in (*drawn, np.ones(shape))))
    batch = TaskBatch(task, context, rl(), rl(extra))
    if not (window := config.method.window):
        return batch
    shape = (count, c.meta_batch, c.windows(window), window)
    *drawn, _ = rows(shape, task[..., None, None])
    lengths = draw.integers(1, window + 1, size=(*shape[:-1], 1))
    inside = np.arange(window) < lengths
    return batch._replace(windows=Context(*(x.astype(np.float32) for x in (*drawn, inside))))


def one_batch(config: TrainConfig, seed: int = 0) -> TaskBatch:
    return jax.tree.map(lambda x: x[0], batches(1, config, seed))

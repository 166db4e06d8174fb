"""What a method promises, whatever it does inside."""

import dataclasses
import inspect
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ertrl.config import replace_from_json, to_json
from ertrl.contracts.small import (
    DIMS,
    LATENT,
    batches,
    demand,
    demand_same_types,
    demand_survives_disk,
    one_batch,
    random_state,
    small_config,
    with_fields,
)
from ertrl.learners import learners
from ertrl.methods import Method
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key, update
from ertrl.types import Context

TASKS, SLOTS = 5, 7


def _config(method: type[Method], **values: Any) -> TrainConfig:
    """With a learner that has a critic, as methods may need one."""
    with_critic = next(kind for kind in learners().values() if kind.has_critic)
    return small_config(method, with_critic, **values)


@cache
def _encoder(method: type[Method], next_observation: bool = True):
    config = with_fields(_config(method), next_observation=next_observation).method
    state = random_state(config.init, DIMS)
    return jax.jit(lambda context: config.encode(state, context))


def contexts(tasks: int = TASKS, seed: int = 0) -> Context:
    """Random contexts, nothing masked."""
    draw = np.random.default_rng(seed)
    shape = (tasks, SLOTS)
    s, a, s2 = (
        draw.normal(size=(*shape, n)) for n in (DIMS.observation, DIMS.action, DIMS.observation)
    )
    drawn = s, np.tanh(a), draw.normal(size=shape), s2, np.ones(shape)
    return Context(*(x.astype(np.float32) for x in drawn))


def _same(one: Any, other: Any, what: str) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=what)


def one_code_per_task(method: type[Method]) -> None:
    """Encode gives one finite code per task, and tells tasks apart."""
    z = np.asarray(_encoder(method)(contexts()))
    demand(z.shape == (TASKS, LATENT), f"z has the shape {z.shape}, not {(TASKS, LATENT)}")
    demand(np.isfinite(z).all(), "z is not finite")
    demand(np.abs(z[0] - z[1]).max() > 1e-3, "two different contexts have the same z")


def order_does_not_matter(method: type[Method]) -> None:
    """The order of a context does not matter to encode."""
    context = contexts()
    order = np.random.default_rng(1).permutation(SLOTS)
    shuffled = jax.tree.map(lambda x: x[:, order], context)
    _same(_encoder(method)(context), _encoder(method)(shuffled), "shuffled context")


def masked_slots_do_not_count(method: type[Method]) -> None:
    """Masked slots count for nothing, not even in number."""
    context, junk = contexts(), contexts(seed=1)
    mask = np.ones((TASKS, SLOTS), np.float32)
    mask[:, 4:] = 0

    def filled(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(mask.reshape(*mask.shape, *(1,) * (x.ndim - 2)), x, 1e3 * y)

    other = Context(*map(filled, context[:4], junk[:4]), mask)
    z = _encoder(method)(context._replace(mask=mask))
    _same(z, _encoder(method)(other), "junk in masked slots")
    _same(z, _encoder(method)(jax.tree.map(lambda x: x[:, :4], context)), "without the slots")
    demand(np.abs(z - _encoder(method)(context)).max() > 1e-3, "the mask has no effect")


def an_empty_context_is_finite(method: type[Method]) -> None:
    """An empty context has a finite code, which is z0."""
    context = contexts()
    z = _encoder(method)(context._replace(mask=0 * context.mask))
    demand(np.isfinite(z).all(), "z of an empty context is not finite")
    config = with_fields(_config(method), next_observation=True).method
    first = np.asarray(config.z0(random_state(config.init, DIMS)))
    demand(first.shape == (LATENT,), f"z0 has the shape {first.shape}, not {(LATENT,)}")
    _same(z, np.tile(first, (TASKS, 1)), "z of an empty context is not z0")


def tasks_are_treated_alike(method: type[Method]) -> None:
    """Encode treats tasks alike and apart."""
    context, order = contexts(), np.array([3, 0, 4, 1, 2])
    z = np.asarray(_encoder(method)(context))
    _same(_encoder(method)(jax.tree.map(lambda x: x[order], context)), z[order], "other order")
    one = np.eye(TASKS, dtype=np.float32)[2][:, None]
    changed = _encoder(method)(context._replace(reward=context.reward + one))
    moved = np.abs(changed - z).max(axis=1) > 1e-6
    demand(
        moved.tolist() == [False, False, True, False, False],
        f"a reward of task 2 was changed, and the z of tasks {np.flatnonzero(moved)} moved",
    )


def any_leading_axes(method: type[Method]) -> None:
    """Encode takes any leading axes."""
    context = contexts(tasks=6)
    folded = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), context)
    flat = np.asarray(_encoder(method)(context)).reshape(2, 3, LATENT)
    _same(_encoder(method)(folded), flat, "folded contexts")


def next_states_only_if_asked(method: type[Method]) -> None:
    """The encoder sees next states if and only if asked (always_sees_next_state)."""
    context = contexts()
    other = context._replace(next_observation=context.next_observation + 1)
    for shown in (False, True):
        encode = _encoder(method, shown)
        sees = bool(np.abs(encode(context) - encode(other)).max() > 1e-6)
        expected = shown or method.always_sees_next_state
        demand(sees == expected, f"with next_observation={shown} it sees them: {sees}")


def sums_say_what_encode_says(method: type[Method]) -> None:
    """Contexts add up, and the agent without JAX comes to the same; for methods of such a kind."""
    config = with_fields(_config(method), next_observation=True).method
    state, context = random_state(config.init, DIMS), contexts()
    inference = config.sums(state)
    if inference is None:
        return
    parts = (jax.tree.map(lambda x, c=c: x[:, c], context) for c in (slice(3), slice(3, SLOTS)))
    evidence = jax.tree.map(jnp.add, *map(inference.evidence, parts))
    expected = np.asarray(config.encode(state, context))
    np.testing.assert_allclose(inference.belief(evidence).z, expected, rtol=1e-4, atol=1e-5)
    plain = inference.plain()
    demand(plain.fits(DIMS.observation, DIMS.action), "the runtime takes other sizes")
    demand(plain.latent_dim == LATENT, f"the runtime's z has {plain.latent_dim} numbers")
    for task in range(TASKS):
        belief = plain.begin()
        for s, a, r, s2 in zip(*(np.asarray(x[task]) for x in context[:4]), strict=True):
            belief.add((s, a, r[None], s2))
        np.testing.assert_allclose(belief.z, expected[task], rtol=1e-4, atol=1e-5)


def settings_survive_json(method: type[Method]) -> None:
    """Settings survive JSON."""
    config = _config(method, learning_rate=1e-5, seed=9)
    blank = TrainConfig(method=method(), learner=type(config.learner)())
    demand(replace_from_json(blank, to_json(config)) == config, "settings changed on the way")


def settings_are_explained(method: type[Method]) -> None:
    """Every setting has a docstring, its text in --help."""

    def look(config: Any) -> None:
        kinds = [kind for kind in type(config).__mro__ if dataclasses.is_dataclass(kind)]
        lines = [x.strip() for kind in kinds for x in inspect.getsource(kind).splitlines()]
        for name in (field.name for field in dataclasses.fields(config)):
            place = next(i for i, line in enumerate(lines) if line.startswith(f"{name}:"))
            demand(lines[place + 1].startswith('"""'), f"{type(config).__name__}.{name} has none")
            if dataclasses.is_dataclass(getattr(config, name)):
                look(getattr(config, name))

    look(method())


def states_survive_the_disk(method: type[Method]) -> None:
    """A state survives the disk bit by bit."""
    config = _config(method)
    state, blank = (random_state(lambda key: init(config, DIMS), seed=seed) for seed in (0, 1))
    demand_survives_disk(state, blank)


def updates_keep_types(method: type[Method]) -> None:
    """An update returns the shapes, dtypes and weak types it was given, so one program serves."""
    config = _config(method)
    batch = one_batch(config)
    given = jax.eval_shape(lambda: init(config, DIMS))
    returned = jax.eval_shape(lambda s: update(config, s, batch, run_key(0))[0], given)
    demand_same_types(given, returned)


def losses_fall(method: type[Method]) -> None:
    """Its loss falls on a toy batch, the critic's too, and the encoder moves."""
    demand(
        method.loss != "critic_loss" or method.hears_critic,
        'it has no `loss`: write loss = "NAME" of the metric that update drives down',
    )
    config = _config(method, learning_rate=5e-3)
    one = batches(1, config)
    data = jax.tree.map(lambda x: np.repeat(x, 10, axis=0), one)
    chunk = make_chunk(config)
    fresh = jax.jit(lambda: init(config, DIMS))()
    state, metrics = fresh, []
    for _ in range(5):
        state, measured = chunk(state, data, run_key(0))
        metrics.append({name: float(np.mean(v)) for name, v in measured.items()})
    demand(
        all(np.isfinite(list(found.values())).all() for found in metrics), "a metric is not finite"
    )
    # The critic's target moves, and so does the z it sees: it may take longer than the encoder.
    for name, share in ((method.loss, 0.8), ("critic_loss", 0.9)):
        demand(name in metrics[0], f"update returns no metric {name}")
        first, last = metrics[0][name], metrics[-1][name]
        demand(
            last < share * first,
            f"in 50 updates on one batch {name} went from {first:.4g} to {last:.4g}, and should "
            f"fall below {share:.0%} of that; where its target moves, name a part of it that falls",
        )
    context = jax.tree.map(lambda x: x[0, :, 0], one.context)
    before, after = (config.method.encode(s.method, context) for s in (fresh, state))
    demand(np.abs(after - before).max() > 1e-3, "the encoder has not moved")


METHOD_CHECKS = (
    one_code_per_task,
    order_does_not_matter,
    masked_slots_do_not_count,
    an_empty_context_is_finite,
    tasks_are_treated_alike,
    any_leading_axes,
    next_states_only_if_asked,
    sums_say_what_encode_says,
    settings_survive_json,
    settings_are_explained,
    states_survive_the_disk,
    updates_keep_types,
    losses_fall,
)

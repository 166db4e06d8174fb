"""FLOPs are counted right: the benchmark's claim rests on it."""

import jax
import jax.numpy as jnp
import pytest

from ertrl.bench import updates
from ertrl.bench.behaviour import collection_speed, describe
from ertrl.bench.updates import product_flops, update_speed
from ertrl.profiles import collect_config


def test_products_loops_and_branches():
    x, w = jnp.ones((5, 3)), jnp.ones((3, 7))
    flops = product_flops
    assert flops(lambda a, b: jax.nn.relu(a @ b), x, w) == 2 * 5 * 3 * 7
    square = jnp.ones((4, 4))

    def loop(m):
        return jax.lax.scan(lambda c, _: (c @ m, None), m, length=6)[0]

    assert flops(loop, square) == 6 * 2 * 4**3
    assert flops(jax.jit(loop), square) == 6 * 2 * 4**3

    def branch(m):
        return jax.lax.cond(m.sum() > 0, lambda: m @ m, lambda: m)

    assert flops(branch, square) == 0, "only what surely runs is credited"
    # The gradient of sum(x @ w) by both factors takes two more products of the same size.
    both = jax.grad(lambda a, b: jnp.sin(a @ b).sum(), argnums=(0, 1))
    assert flops(both, x, w) == 3 * 2 * 5 * 3 * 7


def test_what_nobody_uses_is_not_credited():
    x, w = jnp.ones((5, 3)), jnp.ones((3, 7))

    def wasteful(a, b):
        inner = jax.jit(lambda p, q: (p @ q, q.T @ p.T))
        used, _ = inner(a, b)
        return used

    assert product_flops(wasteful, x, w) == 2 * 5 * 3 * 7


def test_benchmark_reports_what_it_measured(monkeypatch):
    monkeypatch.setattr(updates, "PEAK_SHAPE", (64, 32, 32))
    result = update_speed(("focal",), "laptop", "point-robot", seconds=0.1)
    focal = result["methods"]["focal"]
    assert focal["gflop_per_second"] == pytest.approx(
        focal["gflop_per_update"] * focal["updates_per_second"]
    )
    assert focal["program_memory_mib"] > 0
    fraction = focal["gflop_per_second"] / focal["peak_gflop_per_second"]
    assert focal["fraction_of_peak"] == pytest.approx(fraction)
    assert result["provenance"]["versions"]["jax"] == jax.__version__


def test_the_parts_of_a_collection_add_up(monkeypatch):
    monkeypatch.setattr(updates, "PEAK_SHAPE", (64, 32, 32))
    result = collection_speed(["point-robot"], "laptop", seconds=0.1)
    found, config = result["families"]["point-robot"], collect_config("laptop", "point-robot")
    whole, each = found["seconds_of_a_collection"], found["milliseconds_per_update"]
    n = config.steps * config.updates_per_step
    assert whole["update"] == pytest.approx(n * each["update"] / 1000)
    assert whole["sample"] == pytest.approx(n * each["sample"] / 1000)
    assert whole["record"] > 0
    share = found["gflop_per_second"] / found["peak_gflop_per_second"]
    assert found["fraction_of_peak"] == pytest.approx(share)
    assert "point-robot" in describe(result)

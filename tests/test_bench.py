"""FLOPs are counted right: the benchmark's claim rests on it."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import adapt
import scaling
from ertrl import bench
from ertrl.bench import product_flops, update_speed
from ertrl.config import replace_from_json
from ertrl.profiles import collect_config, train_config
from ertrl.types import Dims

ROOT = Path(__file__).parent.parent


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
    monkeypatch.setattr(bench, "PEAK_SHAPE", (64, 32, 32))
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
    monkeypatch.setattr(bench, "PEAK_SHAPE", (64, 32, 32))
    result = bench.collection_speed(["point-robot"], "laptop", seconds=0.1)
    found, config = result["families"]["point-robot"], collect_config("laptop", "point-robot")
    whole, each = found["seconds_of_a_collection"], found["milliseconds_per_update"]
    n = config.steps * config.updates_per_step
    assert whole["update"] == pytest.approx(n * each["update"] / 1000)
    assert whole["sample"] == pytest.approx(n * each["sample"] / 1000)
    assert whole["record"] > 0
    share = found["gflop_per_second"] / found["peak_gflop_per_second"]
    assert found["fraction_of_peak"] == pytest.approx(share)
    assert "point-robot" in bench.describe_collection(result)


def test_the_benchmark_of_deployed_agents_says_what_it_measured():
    result = adapt.adaptation_speed(("bayes-linear",), "laptop", "point-robot", seconds=0.1)
    found = result["methods"]["bayes-linear"]
    assert list(found) == [
        *("numpy_act", "numpy_observe", "onnx_act", "onnx_encode_1", "onnx_encode_100")
    ]
    assert all(0 < size < 1e5 for size in found.values())
    assert result["least_squares"]["size"] == 20
    assert "numpy observe" in adapt.describe(result)


def test_a_step_of_least_squares_is_quick():
    """50 microseconds are wanted on a free machine; this one may be shared."""
    stored = json.loads((ROOT / "results" / "bench" / "adapt.json").read_text())
    assert stored["least_squares"]["update"] < 50
    calls = [found[c] for found in stored["methods"].values() for c in found if "100" not in c]
    assert max(calls) < 100


class Free:
    """In place of a program: nothing is compiled, and calls take no time."""

    lower = compile = lambda self, *_: self

    def __call__(self, *_):
        return 0


def grow(monkeypatch, **values):
    """Measure along these axes, with these values."""
    axes = {name: scaling.AXES[name]._replace(values=own) for name, own in values.items()}
    monkeypatch.setattr(scaling, "AXES", axes)
    monkeypatch.setattr(scaling, "say", lambda text: None)
    small = {"sampling": {"meta_batch": 4}}
    monkeypatch.setattr(
        scaling, "train_config", lambda *a: replace_from_json(train_config(*a), small)
    )
    return scaling.scaling(("focal",), "laptop", "point-robot", seconds=0.01)


def test_growth_is_expected_from_counted_products(monkeypatch):
    monkeypatch.setattr(scaling, "make_chunk", lambda *_, **__: Free())
    monkeypatch.setattr(scaling, "program_memory", lambda compiled: 2**20)
    sizes = {"tasks": (4, 8), "transitions": (400, 4000), "meta_batch": (4, 16)}
    result = grow(monkeypatch, **sizes, context=(8, 64), latent=(2, 4), seeds=(1, 2))
    found = {(g["axis"], g["method"]): g for g in scaling.growth(result)}
    assert found.keys() == {
        *((axis, "focal") for axis in scaling.AXES if axis != "transitions"),
        ("tasks", None),
        ("transitions", None),
    }
    assert found["tasks", "focal"]["expected_time"] == 0, "an update sees as many as it draws"
    assert found["meta_batch", "focal"]["expected_time"] == pytest.approx(1, abs=0.1)
    assert 0 < found["context", "focal"]["expected_time"] < 1
    assert 0 < found["context", "focal"]["expected_memory"] < 1
    assert found["seeds", "focal"]["expected_time"] == pytest.approx(1)
    files = [p["files_mib"] for p in result["points"] if p["axis"] == "transitions"]
    assert files[1] == pytest.approx(10 * files[0], rel=0.1)
    assert scaling.growth_table(result).count("\n") == 2 + len(found)


def test_axes_share_the_programs_that_they_have_in_common(monkeypatch):
    compiled = []
    monkeypatch.setattr(scaling, "_compiled", lambda *what: compiled.append(what))
    programs, config = scaling.Programs(), train_config("laptop", "point-robot", "focal")
    for tasks, runs in [(20, 1), (200, 1), (20, 2), (20, 2)]:
        programs.of(config, Dims(2, 2, tasks), runs)
    assert [runs for _, _, runs in compiled] == [1, 2], "FOCAL has nothing that grows with tasks"


def test_memory_that_a_program_holds_is_counted():
    def step(x, w):
        return jnp.sum(jax.jit(lambda x: x @ w)(x) ** 2)

    x, w = jnp.ones((5, 3)), jnp.ones((3, 7))
    assert scaling.held_bytes(step, x, w) == 4 * (15 + 21 + 1 + 35)


def test_growth_is_measured(monkeypatch):
    points = grow(monkeypatch, seeds=(1, 2))["points"]
    assert all(point["seconds"] > 0 for point in points)
    assert points[0]["memory_mib"] < points[1]["memory_mib"]


def test_the_power_of_growth():
    assert scaling.slope([1, 10, 100], [3, 3, 3]) == 0
    assert scaling.slope([2, 4, 8], [5, 9, 20]) == pytest.approx(1)


def test_on_paper_more_gpus_take_less_until_the_longest_run(monkeypatch):
    paper = train_config("laptop", "point-robot", "focal")
    monkeypatch.setattr(scaling, "train_config", lambda *a: paper)
    found = scaling.paper_on_gpus(["point-robot"], ["focal"], seeds=3, gpus=(1, 2, 64))
    one, two, many = found["hours"].values()
    assert one == pytest.approx(3 * many)
    assert two == pytest.approx(2 * many)
    assert found["exaflop"] == pytest.approx(one * 3600 * 5e12 / 1e18)

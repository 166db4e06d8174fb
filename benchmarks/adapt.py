"""How long an exported agent takes: per action, and per transition it observes, on one core.

    .venv/bin/python benchmarks/adapt.py           # or: make results-adapt; two minutes

Measures every method at the sizes of the laptop profile on Cheetah-Vel and keeps microseconds per
call in results/bench/adapt.json.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ertrl import runtime, store
from ertrl.deploy.export import export_agent, random_sample
from ertrl.deploy.graphs import OnnxAgent
from ertrl.envs import make_family
from ertrl.evaluation import Agent
from ertrl.methods import methods
from ertrl.profiles import train_config
from ertrl.provenance import provenance
from ertrl.runtime.inference import LeastSquares
from ertrl.runtime.layers import MLP
from ertrl.training.update import init
from shared import KEEP

UPDATE_SIZE = 20
"""Numbers of z in the measurement of one step of recursive least squares."""


def adaptation_speed(
    names: Sequence[str], profile: str, family: str, seconds: float
) -> dict[str, Any]:
    """Microseconds per call, medians; fresh weights, because speed does not depend on them.

    A graph keeps no sums, so with ONNX z is inferred from one transition, or from 100. Where
    onnxruntime is not installed, only NumPy is measured.
    """
    dims = make_family(family).dims
    onnx = all(map(find_spec, ("onnx", "onnxruntime")))
    results = {}
    with threadpool_limits(1):
        for name in names:
            config = train_config(profile, family, name)
            state = init(config, dims)
            agent = Agent(config, dims, state.method, state.learner)
            results[name] = _measure(agent, seconds, onnx)
        update = _update_microseconds(seconds)
    return {
        "kind": "ertrl-bench-adapt",
        "profile": profile,
        "family": family,
        "onnx": onnx,
        "methods": results,
        "least_squares": {"size": UPDATE_SIZE, "update": update},
        "provenance": provenance(),
    }


def _measure(agent: Agent, seconds: float, onnx: bool) -> dict[str, Any]:
    sample = random_sample(agent)
    context = sample.contexts[-1]
    step = tuple(x[0, 0] for x in context[:4])
    observation, z = sample.observations[0], np.zeros_like(agent.z0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "agent"
        export_agent(agent, folder, {}, None, onnx=onnx)
        adapted = runtime.load(folder).begin()
        calls: dict[str, Callable[[], Any]] = {
            "numpy_act": lambda: adapted.act(observation),
            "numpy_observe": lambda: adapted.observe(*step),
        }
        if onnx:
            graphs = OnnxAgent(folder)
            rows = observation[None]
            calls["onnx_act"] = lambda: graphs.act(rows, z)
            for one in (sample.contexts[0], context):
                size = one.reward.shape[1]
                calls[f"onnx_encode_{size}"] = lambda one=one: graphs.encode(one)
        share = seconds / len(calls)
        return {name: microseconds(call, share) for name, call in calls.items()}


def _update_microseconds(seconds: float) -> float:
    """One transition of recursive least squares where one number is predicted, features given."""
    d = UPDATE_SIZE
    net = MLP((np.zeros((3, d + 1), np.float32),), (np.zeros(d + 1, np.float32),))
    scale = np.zeros(4, np.float32), np.ones(4, np.float32)
    belief = LeastSquares(net, 1, *scale, noise=1.0, clip=5.0).begin()
    draw = np.random.default_rng(0)
    phi, rest = np.tanh(draw.normal(size=(1, d))), draw.normal(size=1)
    return microseconds(lambda: belief.update(phi, rest), seconds)


def microseconds(call: Callable[[], Any], seconds: float) -> float:
    """Median over calls, for as long as this."""
    for _ in range(10):
        call()
    taken, end = [], time.perf_counter() + seconds
    while not taken or time.perf_counter() < end:
        begun = time.perf_counter_ns()
        call()
        taken.append(time.perf_counter_ns() - begun)
    return float(np.median(taken)) / 1000


def describe(result: dict[str, Any]) -> str:
    """The result as a person reads it."""
    lines = [f"{result['family']}, profile {result['profile']}: microseconds per call, one core"]
    for name, found in result["methods"].items():
        told = "  ".join(f"{what.replace('_', ' ')} {size:6.1f}" for what, size in found.items())
        lines.append(f"  {name:14} {told}")
    update = result["least_squares"]
    lines.append(f"  one step of least squares, {update['size']} numbers: {update['update']:.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    result = adaptation_speed(tuple(methods()), "laptop", "cheetah-vel", seconds=20.0)
    store.write_json(KEEP / "bench" / "adapt.json", result)
    print(describe(result))

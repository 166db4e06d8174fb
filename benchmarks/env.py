"""How fast the families simulate, next to Gymnasium's own environment of the same robot.

    .venv/bin/python benchmarks/env.py             # or: make results-env; two minutes

Keeps control steps per second of all families in results/bench/env.json. Leave the machine alone
meanwhile; on a busy one, `cores_used` shows how much of it the batch got.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import gymnasium
import numpy as np

from ertrl import store
from ertrl.envs import Family, family_names, make_family
from ertrl.envs.gym_family import GymFamily
from ertrl.provenance import available_cores, provenance
from shared import KEEP

_WALKER = ("Walker2d-v5", {"frame_skip": 5})
TWINS: dict[str, tuple[str, dict[str, Any]]] = {
    "cheetah-vel": ("HalfCheetah-v5", {}),
    "ant-goal": ("Ant-v5", {"terminate_when_unhealthy": False}),
    "ant-dir": ("Ant-v5", {}),
    "humanoid-dir": ("Humanoid-v5", {}),
    "hopper-mass": ("Hopper-v5", {}),
    "hopper-friction": ("Hopper-v5", {}),
    "walker-mass": _WALKER,
    "walker-friction": _WALKER,
}
"""The Gymnasium environment with the same robot and length of a control step."""


def simulation_speed(
    families: Sequence[str],
    threads: int,
    batch: int = 128,
    seconds: float = 1.0,
    rounds: int = 5,
) -> dict[str, Any]:
    """Control steps per second, closed loop: step, observe, reward, restart what ended.

    Each round times Gymnasium and then the batch, so that both see the same load of the machine;
    the ratio is the median over rounds. Families without a twin in Gymnasium have none.
    `cores_used` tells how many cores the batch got: fewer than `threads` means that other programs
    were running, and that the ratio is too low.
    """
    results = {}
    for name in families:
        family = make_family(name)
        batched = _batched(family, batch, threads)
        twin = _gymnasium(family) if name in TWINS else None
        fast, slow, cores = [], [], []
        for _ in range(rounds):
            if twin is not None:
                slow.append(_rate(twin, 1, seconds)[0])
            rate, used = _rate(batched, batch, seconds)
            fast.append(rate)
            cores.append(used)
        results[name] = {"steps_per_second": median(fast), "cores_used": median(cores)}
        if twin is not None:
            results[name] |= {
                "gymnasium": TWINS[name][0],
                "gymnasium_steps_per_second": median(slow),
                "ratio": median(f / s for f, s in zip(fast, slow, strict=True)),
                "ratios": [f / s for f, s in zip(fast, slow, strict=True)],
            }
    return {
        "kind": "ertrl-bench-env",
        "threads": threads,
        "batch": batch,
        "rounds": rounds,
        "seconds": seconds,
        "families": results,
        "provenance": provenance(),
    }


def _rate(advance: Callable[[], None], steps: int, seconds: float) -> tuple[float, float]:
    """Control steps per second when every call does that many, and cores used on average."""
    calls, start, cpu = 0, time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - start) < seconds:
        advance()
        calls += 1
    return calls * steps / elapsed, (time.process_time() - cpu) / elapsed


def _batched(family: Family, batch: int, threads: int) -> Callable[[], None]:
    parameters = family.parameters[np.arange(batch) % family.n_tasks]
    simulation = family.simulate(parameters, threads)
    random = np.random.default_rng(0)
    simulation.reset(range(batch))
    # Staggered, so that restarts spread over time as they do in a long run.
    age = random.integers(family.horizon, size=batch)

    def advance() -> None:
        action = random.uniform(-1, 1, (batch, family.action_dim)).astype(np.float32)
        step = simulation.step(action)
        family.reward(step.outcome, action, parameters)
        age[:] += 1
        ended = np.flatnonzero(step.terminated | step.diverged | (age >= family.horizon))
        if len(ended):
            simulation.reset(random.integers(2**31, size=len(ended)).tolist(), ended)
            age[ended] = 0

    return advance


def _gymnasium(family: Family) -> Callable[[], None]:
    name, options = TWINS[family.name]
    env = gymnasium.make(name, max_episode_steps=family.horizon, **options)
    random = np.random.default_rng(0)
    env.reset(seed=0)
    limit = getattr(env.action_space, "high")  # noqa: B009 (a Box, which the type does not say)

    def advance() -> None:
        action = (random.uniform(-1, 1, family.action_dim) * limit).astype(np.float32)
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()

    return advance


def describe(result: dict[str, Any]) -> str:
    lines = [f"control steps per second, {result['threads']} threads, {result['batch']} at once"]
    for name, r in result["families"].items():
        line = f"  {name:18} {r['steps_per_second']:10,.0f}"
        if "ratio" in r:
            line += f"   {r['ratio']:4.2f} x {r['gymnasium']}"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    batched = [n for n in family_names() if not isinstance(make_family(n), GymFamily)]
    result = simulation_speed(batched, available_cores())
    store.write_json(KEEP / "bench" / "env.json", result)
    print(describe(result))

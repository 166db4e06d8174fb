"""Run an exported agent with nothing but NumPy.

`ertrl demo`, then `ertrl export demo/runs/RUN --out agent` make the folder that this uses. Copy it
to a machine that has only NumPy and `pip install --no-deps .` of this repository.
"""

import sys
from pathlib import Path

import numpy as np

from ertrl import runtime

if not Path("agent").exists():
    raise SystemExit("no folder agent: run `ertrl export RUN --out agent` here first")
adapted = runtime.load("agent").begin()

goal = np.array([0.0, 1.0])  # the agent never sees it
for episode in range(3):
    position, total = np.zeros(2), 0.0
    for _ in range(20):
        action = adapted.act(position)
        after = position + 0.1 * action
        reward = -float(np.linalg.norm(after - goal))
        adapted.observe(position, action, reward, after)
        position, total = after, total + reward
    print(f"episode {episode + 1}: return {total:.2f}, uncertainty {adapted.uncertainty:.3f}")
print("JAX is loaded" if "jax" in sys.modules else "no JAX was needed")

"""Adapt a trained agent to a task it has never seen, from 20 logged transitions, and let it act.

Run `make demo` or `ertrl demo` first; it makes the data and the run that this uses.
"""

from pathlib import Path

import gymnasium
import numpy as np

import ertrl

found = sorted(Path("demo/runs").glob("point-robot-er-trl-*"))
if not found:
    raise SystemExit("no run in demo/runs: run `make demo` or `ertrl demo` here first")
run = ertrl.Run(found[0])
agent = ertrl.load_agent(run)
logs = run.open_dataset().task(25)  # held out: no method has trained on it

context = logs.transitions(np.random.default_rng(0).integers(len(logs.steps), size=20))
adapted = agent.adapt(context)

env = gymnasium.make("ertrl/PointRobot-v0", task=25)
observation, _ = env.reset(seed=0)
total, over = 0.0, False
while not over:
    observation, reward, terminated, truncated, _ = env.step(adapted.act(observation))
    total, over = total + float(reward), terminated or truncated
scale = logs.reference
print(f"return {total:.2f}; random {scale['random']:.2f}, expert {scale['expert']:.2f}")

"""Put a trained agent into a task it knows nothing of, and let it find out step by step.

Run `make demo` or `ertrl demo` first; it makes the run that this uses.
"""

from pathlib import Path

import gymnasium

import ertrl

found = sorted(Path("demo/runs").glob("point-robot-*"))
if not found:
    raise SystemExit("no run in demo/runs: run `make demo` or `ertrl demo` here first")
agent = ertrl.load_agent(found[0])
adapted = agent.begin()

env = gymnasium.make("ertrl/PointRobot-v0", task=25)  # held out: no method has trained on it
for episode in range(3):
    observation, _ = env.reset(seed=episode)
    total, over = 0.0, False
    while not over:
        action = adapted.act(observation)
        after, reward, terminated, truncated, _ = env.step(action)
        adapted.observe(observation, action, float(reward), after)
        observation, total, over = after, total + float(reward), terminated or truncated
    told = f"episode {episode + 1}: return {total:.2f} after {adapted.transitions} transitions"
    print(f"{told}, uncertainty {adapted.uncertainty:.3f}")
    if adapted.surprise is not None:  # only methods that predict can be surprised
        print(f"  surprise {adapted.surprise:.3f}")

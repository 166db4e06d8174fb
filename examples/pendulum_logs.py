"""Write pendulum.csv: logs of twelve pendulums of different gravity and mass, by mediocre hands."""

import csv
import sys

import gymnasium
import numpy as np

TASKS = {f"g{g}-m{m}": (g, m) for g in (2, 6, 10) for m in (0.4, 0.7, 1.0, 1.3)}


def pendulum(task):
    """Gymnasium's pendulum with the gravity and mass of a task; torques lie in [-2, 2]."""
    gravity, mass = TASKS[task]
    env = gymnasium.make("Pendulum-v1", g=gravity)
    setattr(env.unwrapped, "m", mass)  # noqa: B010
    return env


def controller(task, draw):
    """Pumps energy, then balances; believes in a wrong mass, and its hand shakes."""
    gravity, mass = TASKS[task]
    mass *= draw.uniform(0.5, 2.0)

    def act(observation):
        cos, sin, speed = observation
        energy = mass * speed**2 / 6 + mass * gravity * (cos - 1) / 2
        pump = -2 * np.sign(energy * speed)
        balance = -(gravity * mass / 2 + 4) * np.arctan2(sin, cos) - speed
        return np.clip([(balance if cos > 0.9 else pump) + draw.normal()], -2, 2)

    return act


def episode(env, act, seed):
    """Observation, action, reward and next observation of every step."""
    rows, over, observation = [], False, env.reset(seed=seed)[0]
    while not over:
        before, action = observation, np.asarray(act(observation), np.float32)
        observation, reward, _, over, _ = env.step(action)
        rows.append((before, action, float(reward), observation))
    return rows


def write_logs(path="pendulum.csv", episodes=30):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        seen, after = ([f"{name}_{i}" for i in range(3)] for name in ("obs", "next_obs"))
        table.writerow(["task", "episode", "step", *seen, "torque", "reward", *after])
        for number, task in enumerate(TASKS):
            env, draw = pendulum(task), np.random.default_rng(number)
            for e in range(episodes):
                rows = episode(env, controller(task, draw), seed=1000 * number + e)
                for step, (s, a, r, s2) in enumerate(rows):
                    table.writerow([task, e, step, *s, *a, r, *s2])


if __name__ == "__main__":
    write_logs(*sys.argv[1:2])

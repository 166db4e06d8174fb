"""Write pendulum.csv: logs of twelve pendulums of different gravity and mass, by mediocre hands."""

import csv
import sys

import gymnasium
import numpy as np

TASKS = {f"g{g}-m{m}": (g, m) for g in (2, 6, 10) for m in (0.4, 0.7, 1.0, 1.3)}
EPISODES = 30


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
    """Lists observation, action, reward and next observation of every step."""
    observation, over, rows = env.reset(seed=seed)[0], False, []
    while not over:
        action = np.asarray(act(observation), np.float32)
        after, reward, _, over, _ = env.step(action)
        rows.append((observation, action, float(reward), after))
        observation = after
    return rows


def write_logs(path, episodes=EPISODES):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        names = "task episode step obs_0 obs_1 obs_2 torque reward next_obs_0 next_obs_1 next_obs_2"
        table.writerow(names.split())
        for number, task in enumerate(TASKS):
            env, draw = pendulum(task), np.random.default_rng(number)
            for e in range(episodes):
                rows = episode(env, controller(task, draw), seed=1000 * number + e)
                for step, (s, a, r, s2) in enumerate(rows):
                    table.writerow([task, e, step, *s, *a, r, *s2])


if __name__ == "__main__":
    write_logs(sys.argv[1] if len(sys.argv) > 1 else "pendulum.csv")

"""Write pendulum.csv: logs of twelve pendulums of different gravity and mass, by three hands."""

import csv
import sys

import gymnasium
import numpy as np

TASKS = {f"g{g}-m{m}": (g, m) for g in (2, 6, 10) for m in (0.4, 0.7, 1.0, 1.3)}
HANDS = {"steady": (2, 1), "timid": (1, 1), "slow": (2, 5)}  # torque it dares, steps to decide


def pendulum(task):
    """Gymnasium's pendulum with the gravity and mass of a task; torques lie in [-2, 2]."""
    env = gymnasium.make("Pendulum-v1", g=TASKS[task][0])
    setattr(env.unwrapped, "m", TASKS[task][1])  # noqa: B010
    return env


def controller(task, hand, draw):
    """Pumps energy, then balances; believes in a wrong mass, and shakes."""
    gravity, mass = TASKS[task][0], TASKS[task][1] * draw.uniform(0.5, 2.0)
    (most, pause), torques = HANDS[hand], []

    def act(observation):
        cos, sin, speed = observation
        energy = mass * speed**2 / 6 + mass * gravity * (cos - 1) / 2
        balance = -(gravity * mass / 2 + 4) * np.arctan2(sin, cos) - speed
        decided = balance if cos > 0.9 else -2 * np.sign(energy * speed)
        torques.append(torques[-1] if len(torques) % pause else decided)
        return np.clip([torques[-1] + draw.normal(0, most / 2)], -most, most)

    return act


def episode(env, act, seed):
    """Observation, action, reward and next observation of every step."""
    over, observation = False, env.reset(seed=seed)[0]
    while not over:
        before, action = observation, np.asarray(act(observation), np.float32)
        observation, reward, _, over, _ = env.step(action)
        yield before, action, float(reward), observation


def write_logs(path="pendulum.csv", episodes=30):
    seen, after = ([f"{name}_{i}" for i in range(3)] for name in ("obs", "next_obs"))
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["task", "episode", "step", "hand", *seen, "torque", "reward", *after])
        for number, task in enumerate(TASKS):
            env, draw = pendulum(task), np.random.default_rng(number)
            for e in range(episodes):
                act = controller(task, hand := [*HANDS][e % 3], draw)
                for step, (s, a, r, s2) in enumerate(episode(env, act, seed=1000 * number + e)):
                    table.writerow([task, e, step, hand, *s, *a, r, *s2])


if __name__ == "__main__":
    write_logs(*sys.argv[1:2])

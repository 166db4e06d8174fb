"""From a CSV of logs to an agent that adapts to a pendulum it never saw: docs/own-logs.md."""

import sys
from pathlib import Path

import numpy as np
from pendulum_logs import HANDS, controller, episode, pendulum, write_logs

import ertrl


def prepared(out):
    """The dataset of the logs, both made where they are missing."""
    logs, folder = Path(out) / "pendulum.csv", Path(out) / "data"
    if not logs.exists():
        logs.parent.mkdir(parents=True, exist_ok=True)
        write_logs(logs)
    if not folder.exists():
        columns = {"action": "torque", "policy": "hand"}
        ertrl.import_logs(logs, folder, columns=columns, action_low=-2, action_high=2)
    return ertrl.Dataset(folder)


def adapt(agent, logged, rows):
    """Show an agent some of the logged steps of a task."""
    robot = agent.begin()
    s, a, r, s2, _ = logged.transitions(rows)
    for step in zip(s, 2 * a, r, s2, strict=True):  # a torque: datasets have actions in [-1, 1]
        robot.observe(*step)
    return robot


def measured(controllers, task):
    """Mean return in the simulator that the logs came from, on starts that are in no log."""
    env = pendulum(task)
    played = [episode(env, act, 10**6 + e) for e, act in enumerate(controllers)]
    return float(np.mean([sum(reward for _, _, reward, _ in rows) for rows in played]))


def main(out="own-logs", settings=None, episodes=30):
    data, draw = prepared(out), np.random.default_rng(0)
    run = ertrl.train("focal", data, settings=settings, out=f"{out}/runs")
    exported = Path(out) / "agents" / run.name
    if not exported.exists():
        ertrl.export(run, exported)
    agent, returns = ertrl.runtime.load(exported), {}  # from here on it needs NumPy alone
    for number, task in enumerate(data.manifest["imported"]["tasks"]):
        logged = data.task(number)
        rows = draw.integers(len(logged.steps), size=200)  # as many as one episode has
        found = {"adapted": measured([adapt(agent, logged, rows).act] * episodes, task)}
        for hand in HANDS:
            found[hand] = measured([controller(task, hand, draw) for _ in range(episodes)], task)
        print(task, logged.group, {name: round(value) for name, value in found.items()})
        returns[task] = {"group": logged.group, **found}
    return returns


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""From a CSV of logs to an agent that adapts to a pendulum it never saw: docs/own-logs.md."""

import sys
from pathlib import Path

import numpy as np
from pendulum_logs import episode, pendulum, write_logs

import ertrl
from ertrl.methods.focal import Focal


class Blind(Focal):
    """The same agent without a task: its z is always zero."""

    name = "blind"
    summary = "knows nothing of the task"

    def encode(self, state, context):
        return 0 * super().encode(state, context)


def measured(act, task, episodes):
    """Mean return in the simulator that the logs came from, on starts that are in no log."""
    env = pendulum(task)
    rewards = [[r for _, _, r, _ in episode(env, act, 10**6 + e)] for e in range(episodes)]
    return float(np.sum(rewards, axis=1).mean())


def main(out="own-logs", settings=None, episodes=10):
    logs, folder = Path(out) / "pendulum.csv", Path(out) / "data"
    if not logs.exists():
        logs.parent.mkdir(parents=True, exist_ok=True)
        write_logs(logs)
    if not folder.exists():
        torque = {"action": "torque"}
        ertrl.import_logs(logs, folder, columns=torque, action_low=-2, action_high=2)
    data = ertrl.Dataset(folder)
    runs = [ertrl.train(m, data, settings=settings, out=f"{out}/runs") for m in ("focal", Blind)]
    agents = {run.method.name: ertrl.load_agent(run) for run in runs}
    returns = {}
    for number, task in enumerate(data.manifest["imported"]["tasks"]):
        logged = data.task(number)
        context = logged.transitions(np.arange(data.horizon))  # as many steps as one episode has
        found = {name: measured(a.adapt(context).act, task, episodes) for name, a in agents.items()}
        behaviour = float(logged.returns.mean())
        returns[task] = {"group": logged.group, "behaviour": behaviour, **found}
        print(task, logged.group, {k: round(v) for k, v in found.items()}, f"data {behaviour:.0f}")
    return returns


if __name__ == "__main__":
    main(*sys.argv[1:2])

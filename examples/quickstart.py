"""Collect, train, evaluate, adapt, report: the whole way in a few minutes on two cores."""

import numpy as np

import ertrl

data = ertrl.collect("point-robot")  # 40 tasks; called again, it opens what is there
print(data)

run = ertrl.train("er-trl", data)  # called again, it goes on where it was
result = ertrl.evaluate(run)
for name, score in result.scores.items():  # random 0, expert 100
    print(f"{name:22} {score:6.1f}")

agent = ertrl.load_agent(run)
unseen = data.task(25)  # no method has trained on it
adapted = agent.adapt(unseen.transitions(np.arange(20)))
print(f"goal {unseen.parameters.round(2)}, first action {adapted.act(np.zeros(2)).round(2)}")

print("open", ertrl.report([run]))

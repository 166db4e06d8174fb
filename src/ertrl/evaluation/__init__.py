"""Adaptation to unseen tasks: protocols, agents, normalised returns.

agent.py           a trained agent: infers z, acts
context.py         contexts as they grow, and their z
protocols.py       where contexts come from; each protocol is a function of a trial
trial.py           an agent on all tasks at once, under one protocol
evaluate.py        all protocols, and the common scale
on_logs.py         what can be known without a simulator
probes.py swap.py  what z knows, and whether it follows the task or the behaviour
shapes.py          what the files hold
"""

from ertrl.evaluation.agent import AdaptedAgent, Agent
from ertrl.evaluation.evaluate import (
    Evaluation,
    evaluate_agent,
    mean_of_measured,
    missing_repeats,
    normalise,
    references,
    success_percentages,
    summarise,
    warn_of_scale,
)
from ertrl.evaluation.protocols import PAPER_PROTOCOLS, PROTOCOLS

__all__ = [
    "PAPER_PROTOCOLS",
    "PROTOCOLS",
    "AdaptedAgent",
    "Agent",
    "Evaluation",
    "evaluate_agent",
    "mean_of_measured",
    "missing_repeats",
    "normalise",
    "references",
    "success_percentages",
    "summarise",
    "warn_of_scale",
]

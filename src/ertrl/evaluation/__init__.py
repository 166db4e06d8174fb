"""Adaptation to unseen tasks: protocols, agents, normalised returns."""

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

"""Adaptation to unseen tasks: protocols, agents, normalised returns."""

from ertrl.evaluation.agent import AdaptedAgent, Agent
from ertrl.evaluation.evaluate import (
    evaluate_agent,
    mean_of_measured,
    missing_repeats,
    normalise,
    references,
    summarise,
)
from ertrl.evaluation.protocols import PROTOCOLS, ProtocolResult

__all__ = [
    "PROTOCOLS",
    "AdaptedAgent",
    "Agent",
    "ProtocolResult",
    "evaluate_agent",
    "mean_of_measured",
    "missing_repeats",
    "normalise",
    "references",
    "summarise",
]

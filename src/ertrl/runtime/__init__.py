"""Agents without JAX: adapt step by step and act, with NumPy alone.

    agent = ertrl.runtime.load("agent/")  # made by `ertrl export`
    adapted = agent.begin()
    adapted.observe(observation, action, reward, next_observation)
    adapted.act(next_observation)

`begin` of an agent in JAX gives the same object, made of that agent's weights.
"""

from ertrl.runtime.actions import ActionRange
from ertrl.runtime.agent import Adapted, Agent
from ertrl.runtime.files import load

__all__ = ["ActionRange", "Adapted", "Agent", "load"]

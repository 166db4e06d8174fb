"""Offline meta-reinforcement learning on a laptop."""

__version__ = "0.1.0"

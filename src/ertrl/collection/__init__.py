"""Behaviour data: train policies in simulation, record them from poor to expert."""

from ertrl.collection.collector import Collector, collect

__all__ = ["Collector", "collect"]

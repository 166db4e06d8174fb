"""Behaviour data: train policies in simulation, record them from poor to expert."""

from ertrl.collection.collector import Collector
from ertrl.collection.estimate import describe_estimate, estimate
from ertrl.collection.record import collect
from ertrl.collection.resume import sweep

__all__ = ["Collector", "collect", "describe_estimate", "estimate", "sweep"]

"""Task families. A file of this folder with a tuple `FAMILIES` of classes adds families."""

from ertrl.envs.family import GROUPS, Family, Simulation, Split, Step
from ertrl.envs.registry import family_names, make_family
from ertrl.envs.rollout import anchor_returns, rollout

__all__ = [
    "GROUPS",
    "Family",
    "Simulation",
    "Split",
    "Step",
    "anchor_returns",
    "family_names",
    "make_family",
    "rollout",
]

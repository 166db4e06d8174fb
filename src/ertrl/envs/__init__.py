"""Task families, their simulations and their Gymnasium environments."""

from ertrl.envs.family import GROUPS, Family, Simulation, Split, Step
from ertrl.envs.gym import FamilyEnv, FamilyVectorEnv, env_id
from ertrl.envs.registry import family_names, make_family
from ertrl.envs.rollout import anchor_returns, mean_returns, rollout

__all__ = [
    "GROUPS",
    "Family",
    "FamilyEnv",
    "FamilyVectorEnv",
    "Simulation",
    "Split",
    "Step",
    "anchor_returns",
    "env_id",
    "family_names",
    "make_family",
    "mean_returns",
    "rollout",
]

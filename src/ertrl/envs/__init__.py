"""Task families, their simulations and their Gymnasium environments."""

from ertrl.envs.families import family_names, make_family
from ertrl.envs.family import Family, Simulation, Step, parse_options
from ertrl.envs.gym import FamilyEnv, FamilyVectorEnv, env_id
from ertrl.envs.own import register_family
from ertrl.envs.rollout import Watch, anchor_returns, mean_returns, rollout, success_rates
from ertrl.envs.tasks import GROUP_TITLES, GROUPS, group_title

__all__ = [
    "GROUPS",
    "GROUP_TITLES",
    "Family",
    "FamilyEnv",
    "FamilyVectorEnv",
    "Simulation",
    "Step",
    "Watch",
    "anchor_returns",
    "env_id",
    "family_names",
    "group_title",
    "make_family",
    "mean_returns",
    "parse_options",
    "register_family",
    "rollout",
    "success_rates",
]

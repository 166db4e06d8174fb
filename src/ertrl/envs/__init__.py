"""Task families, their simulations and their Gymnasium environments.

family.py          what a family of tasks is, and a simulation of many at once
tasks.py           which tasks it has, and in which groups
families/          ours, one file each
physics.py         batched MuJoCo
rollout.py         whole episodes; returns of doing nothing and of random actions
gym.py             our families as Gymnasium environments
own.py gym_family.py foreign.py    Gymnasium environments of others as families
symmetry.py        views in which tasks look alike
render.py          pictures
"""

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

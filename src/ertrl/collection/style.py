"""A dial for how much behaviour policies differ between tasks beyond what the tasks demand.

Each task has a fixed random direction u in action space, and its collector earns
K (u . a) / sqrt(action size) per step on top of the true reward. (u . a) / sqrt(action size) stays
within about 0.8 of zero whatever the size of actions, so K counts in units of reward per step.
"""

import numpy as np

from ertrl import rng
from ertrl.collection.config import CollectConfig
from ertrl.envs import Family


def style_directions(family: Family, config: CollectConfig) -> np.ndarray:
    """Unit vectors [tasks, A], each addressed by seed and task."""
    drawn = [
        rng.generator(config.seed, "style", task).standard_normal(family.action_dim)
        for task in range(family.n_tasks)
    ]
    return np.stack([u / np.linalg.norm(u) for u in drawn])


def style_bonus(family: Family, config: CollectConfig) -> np.ndarray | None:
    """What an action is worth on top of the reward, as weights [tasks, A]; None without style."""
    if not config.style:
        return None
    scale = config.style / np.sqrt(family.action_dim)
    return (scale * style_directions(family, config)).astype(np.float32)

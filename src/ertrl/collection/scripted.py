"""Behaviour of a scripted expert with noise: what a collection records where nothing is learned.

An expert that is disturbed with strength s takes (1 - s) times its own action and s times a
uniformly random one: 1 is a random policy, 0 the expert. Checkpoints are strengths, from the
strongest to the weakest.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ertrl import rng
from ertrl.collection.config import ScriptedConfig
from ertrl.data import DatasetWriter
from ertrl.envs import Family, rollout
from ertrl.types import Episodes


class ScriptedPolicies:
    """Stands where `PolicyTrainer` does; a block is a checkpoint."""

    name = "scripted"
    state = ()

    def __init__(self, family: Family, config: ScriptedConfig):
        self.family, self.config = family, config
        self.replay = NoReplay(family)
        self.learned = 0
        self.blocks = config.checkpoints
        self.recorded_blocks = list(range(1, config.checkpoints + 1))
        self.noise = np.linspace(config.most_noise, config.least_noise, config.checkpoints)

    def progress(self) -> dict[str, np.ndarray]:
        return {"block": np.array(self.learned)}

    def resume(self, progress: dict[str, np.ndarray]) -> None:
        self.learned = int(progress["block"])

    def train(self) -> Iterator[int]:
        while self.learned < self.blocks:
            self.learned += 1
            yield self.learned

    def episodes(self, per_task: int, stream: str, index: int, *, stochastic: bool) -> Episodes:
        """`per_task` episodes of every task, tasks in order, with the noise of a checkpoint."""
        family, seed = self.family, self.config.seed
        parameters = np.repeat(family.parameters, per_task, axis=0)
        noise = self.noise[index] if stochastic else 0.0
        size = len(parameters), family.action_dim

        def act(observation: np.ndarray, t: int) -> np.ndarray:
            random = rng.generator(seed, f"{stream}-noise", index, t).uniform(-1, 1, size)
            return (1 - noise) * family.expert(observation, parameters) + noise * random

        seeds = rng.generator(seed, f"{stream}-reset", index).integers(2**31, size=len(parameters))
        return rollout(family, parameters, act, seeds.tolist())

    def effort(self) -> dict[str, float]:
        return {"noise": float(self.noise[self.learned - 1])}

    def about(self, writer: DatasetWriter) -> dict[str, Any]:
        """Distances between policies are for Gaussians, which these are not."""
        return {"policy_distance": None}


class NoReplay:
    """Nothing is kept to learn from."""

    outcome_dim = 1

    def __init__(self, family: Family):
        self.count = [0] * family.n_tasks

    def rows(self, task: int) -> list[np.ndarray]:
        return []

    def flush(self) -> None: ...
    def resume(self, count: list[int], outcome_dim: int) -> None: ...

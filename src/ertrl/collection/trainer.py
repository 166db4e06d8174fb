"""Train behaviour policies for all tasks of a family, in blocks of simulation and updates.

Blocks of simulation and of updates alternate or, side by side, simulation is a block ahead: while
a block of updates learns from what was simulated so far, another thread simulates the next block
with the policies as they were before. What happens does not depend on which of them is faster.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ertrl import rng
from ertrl.collection import sac
from ertrl.collection.buffer import Replay, style_directions
from ertrl.collection.config import CollectConfig
from ertrl.collection.distance import policy_distance
from ertrl.collection.policies import POLICIES
from ertrl.data import DatasetWriter
from ertrl.envs import Family, rollout
from ertrl.errors import TrainingDiverged
from ertrl.types import Episodes

SIMULATION = "simulation/"
"""Before the names of a simulation's own arrays in a saved state."""


class PolicyTrainer:
    """Trains behaviour policies on parallel simulations of all tasks."""

    name = "sac"

    def __init__(self, family: Family, config: CollectConfig, folder: Path | None = None):
        """Nothing runs yet. With a folder, the replay lives in files there."""
        self.family, self.config = family, config
        self.policies = policies = POLICIES[config.policy](family, config)
        state = policies.init(rng.key(config.seed, "sac-init"))
        # A buffer that is donated must not be two parts of the state at once.
        target = jax.tree.map(jnp.copy, state.target_critic)
        self.state: sac.SacState = state._replace(target_critic=target)
        self.random_blocks = config.random_steps // config.steps_per_block
        self.blocks = config.steps // config.steps_per_block
        self.recorded_blocks = config.recorded_blocks()
        self.replay = Replay(family, config, folder)
        self._tasks = np.repeat(np.arange(family.n_tasks), config.simulations_per_task)
        self.learned = 0
        """Blocks of updates so far; blocks of random actions come before them."""
        self._simulated = 0
        self._simulation = family.simulate(family.parameters[self._tasks])
        self._observation = self._reset(self._reset_seeds(0))
        self._age = np.zeros(len(self._tasks), int)
        self._learn = jax.jit(policies.learn, donate_argnums=0)
        size = family.n_tasks // policies.groups

        # Programs of their own, so that `put` works in place: within `learn`, all would be copied.
        def take(state: sac.SacState, group: Array) -> sac.SacState:
            cut = jax.lax.dynamic_slice_in_dim
            return jax.tree.map(lambda x: cut(x, group * size, size), state)

        def put(state: sac.SacState, part: sac.SacState, group: Array) -> sac.SacState:
            paste = jax.lax.dynamic_update_slice_in_dim
            return jax.tree.map(lambda x, y: paste(x, y, group * size, axis=0), state, part)

        def act(behaviour: sac.Behaviour, observation: Array, key: Array | None, t: Array) -> Array:
            key = None if key is None else jax.random.fold_in(key, t)
            return policies.act(behaviour, observation, key)

        self._take, self._put = jax.jit(take), jax.jit(put, donate_argnums=0)
        self._jitted_act = jax.jit(act)

    # --- what survives a crash, next to `state` and the replay's files ---

    def progress(self) -> dict[str, np.ndarray]:
        """Where the loop stands, as plain arrays."""
        simulation = {SIMULATION + k: v for k, v in self._simulation.state().items()}
        loop = {
            "learned": np.array(self.learned),
            "simulated": np.array(self._simulated),
            "observation": self._observation,
            "age": self._age,
        }
        return loop | simulation

    def resume(self, progress: dict[str, np.ndarray]) -> None:
        self.learned, self._simulated = int(progress["learned"]), int(progress["simulated"])
        self._observation, self._age = progress["observation"].copy(), progress["age"].copy()
        own = {
            k.removeprefix(SIMULATION): v for k, v in progress.items() if k.startswith(SIMULATION)
        }
        self._simulation.restore(own)

    # --- acting ---

    def _act(
        self, behaviour: sac.Behaviour, observation: np.ndarray, key: Array | None, t: int
    ) -> np.ndarray:
        """Actions of all rows; without a key, the most probable ones."""
        by_task = observation.reshape(self.family.n_tasks, -1, self.family.observation_dim)
        action = np.asarray(self._jitted_act(behaviour, by_task, key, t))
        return action.reshape(len(observation), -1)

    def episodes(self, per_task: int, stream: str, index: int, *, stochastic: bool) -> Episodes:
        """Run the current policies: `per_task` episodes of every task, tasks in order."""
        parameters = np.repeat(self.family.parameters, per_task, axis=0)
        draw = rng.generator(self.config.seed, f"{stream}-reset", index)
        key = rng.key(self.config.seed, stream)
        key = jax.random.fold_in(key, index) if stochastic else None
        return rollout(
            self.family,
            parameters,
            lambda observation, t: self._act(self.state.behaviour, observation, key, t),
            draw.integers(2**31, size=len(parameters)).tolist(),
        )

    # --- what is recorded of it ---

    def effort(self) -> dict[str, float]:
        """What it took so far."""
        steps = self.learned * self.config.steps_per_block
        return {
            "updates": steps * self.config.updates_per_step,
            "env_steps": (steps + self.config.random_steps) * len(self._tasks),
        }

    def about(self, writer: DatasetWriter) -> dict[str, Any]:
        """What a dataset tells of its policies, next to their settings."""
        family, config = self.family, self.config
        directions = style_directions(family, config).tolist() if config.style else None
        return {
            "policy_distance": policy_distance(self, writer, family.split["train"]),
            "style": {"strength": config.style, "directions": directions},
        }

    # --- learning ---

    def train(self) -> Iterator[int]:
        """Simulate and learn; yields after every block of updates."""
        side_by_side, end = self.config.side_by_side, self.random_blocks + self.blocks
        while self._simulated < self.random_blocks + side_by_side:
            self._simulate_block(self.state.behaviour)
        with ThreadPoolExecutor(1, "simulation") as beside:
            while self.learned < self.blocks:
                simulation = None
                if not side_by_side:
                    self._simulate_block(self.state.behaviour)
                self.replay.show()
                if side_by_side and self._simulated < end:
                    # Updates write over the state they start from: those who act have a copy.
                    behaviour = jax.tree.map(jnp.copy, self.state.behaviour)
                    simulation = beside.submit(self._simulate_block, behaviour)
                self._learn_block()
                if simulation:
                    simulation.result()
                yield self.learned

    def _simulate_block(self, behaviour: sac.Behaviour) -> None:
        self.simulate(self.config.steps_per_block, behaviour)
        self._simulated += 1

    def simulate(self, steps: int, behaviour: sac.Behaviour) -> None:
        """So many control steps of the present block, at random before learning starts."""
        family, config = self.family, self.config
        act_key = rng.key(config.seed, "collect-act")
        size = len(self._tasks)
        begin = self._simulated * config.steps_per_block
        for t in range(begin, begin + steps):
            if self._simulated < self.random_blocks:
                draw = rng.generator(config.seed, "random-action", t)
                action = draw.uniform(-1, 1, (size, family.action_dim))
            else:
                action = self._act(behaviour, self._observation, act_key, t)
            step = self._simulation.step(action)
            after = family.check_observations(step.observation, size, "step")
            self.replay.add(self._tasks, self._observation, action, step)
            self._age += 1
            self._observation = after
            over = np.flatnonzero(step.terminated | step.diverged | (self._age == family.horizon))
            if over.size:
                self._observation = self._reset(self._reset_seeds(t + 1)[over], over)
                self._age[over] = 0

    def _learn_block(self) -> None:
        block = self.random_blocks + self.learned
        key = jax.random.fold_in(rng.key(self.config.seed, "sac-update"), block)
        for group in range(self.policies.groups):
            self.update(block, group, key)
        self.learned += 1

    def update(self, block: int, group: int, key: Array) -> None:
        """One block of updates of one group of policies."""
        batches = self.policies.draw(self.replay, block, group)
        if self.policies.groups == 1:
            self.state, metrics = self._learn(self.state, *batches, key, group)
        else:
            part = self._take(self.state, group)
            part, metrics = self._learn(part, *batches, key, group)
            self.state = self._put(self.state, part, group)
        if not np.isfinite(metrics["critic_loss"]).all():
            raise TrainingDiverged(
                f"behaviour policy training on {self.family.name} diverged in block {block}; "
                "try a smaller learning_rate"
            )

    def _reset(self, seeds: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Observations of all simulations after these have started anew."""
        seen = self._simulation.reset(seeds.tolist(), rows)
        return self.family.check_observations(seen, len(self._tasks), "reset")

    def _reset_seeds(self, step: int) -> np.ndarray:
        draw = rng.generator(self.config.seed, "collect-reset", step)
        return draw.integers(2**31, size=len(self._tasks))

"""Train behaviour policies for a whole family and record what they do along the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from ertrl import rng
from ertrl.collection import sac
from ertrl.collection.policies import POLICIES
from ertrl.collection.replay import Replay
from ertrl.config import CollectConfig, to_json
from ertrl.data import Dataset, DatasetWriter, TaskRecord
from ertrl.envs import Family, anchor_returns, rollout
from ertrl.errors import SimulationError, TrainingDiverged
from ertrl.progress import Meter, ProgressStyle
from ertrl.types import Episodes, Transitions


class Collector:
    """Trains behaviour policies on parallel simulations of all tasks."""

    def __init__(self, family: Family, config: CollectConfig):
        """Nothing runs yet."""
        config.validate()
        self.family, self.config = family, config
        policies = POLICIES[config.policy](family, config)
        self.state = policies.init(rng.key(config.seed, "sac-init"))
        self._draw = policies.draw

        @jax.jit
        def learn(state: sac.SacState, batches: Transitions, task: Array, key: Array):
            def step(state, inputs):
                batch, task, i = inputs
                return policies.update(state, batch, task, jax.random.fold_in(key, i))

            return jax.lax.scan(step, state, (batches, task, np.arange(len(task))))

        @jax.jit
        def sample(state: sac.SacState, observation: Array, key: Array, t: Array):
            return policies.act(state, observation, jax.random.fold_in(key, t))

        @jax.jit
        def mode(state: sac.SacState, observation: Array, key: Array, t: Array):
            return policies.act(state, observation, None)

        self._learn, self._sample, self._mode = learn, sample, mode

    def _act(self, how, observation: np.ndarray, key: Array, t: int) -> np.ndarray:
        by_task = observation.reshape(self.family.n_tasks, -1, self.family.observation_dim)
        action = np.asarray(how(self.state, by_task, key, t))
        return action.reshape(len(observation), -1)

    def episodes(self, per_task: int, stream: str, index: int, *, stochastic: bool) -> Episodes:
        """Run the current policies: `per_task` episodes of every task, tasks in order."""
        parameters = np.repeat(self.family.parameters, per_task, axis=0)
        draw = rng.generator(self.config.seed, f"{stream}-reset", index)
        key = jax.random.fold_in(rng.key(self.config.seed, stream), index)
        how = self._sample if stochastic else self._mode
        return rollout(
            self.family,
            parameters,
            lambda observation, t: self._act(how, observation, key, t),
            draw.integers(2**31, size=len(parameters)).tolist(),
        )

    def train(self) -> Iterator[int]:
        """Alternate blocks of simulation and updates; yields after every learning block."""
        family, config = self.family, self.config
        tasks = np.repeat(np.arange(family.n_tasks), config.simulations_per_task)
        replay = Replay(family, config.simulations_per_task * (config.random_steps + config.steps))
        simulation = family.simulate(family.parameters[tasks])
        observation = simulation.reset(self._reset_seeds(0, len(tasks)).tolist())
        age = np.zeros(len(tasks), int)
        act_key, learn_key = (rng.key(config.seed, n) for n in ("collect-act", "sac-update"))
        random_blocks = config.random_steps // config.steps_per_block
        for block in range(random_blocks + config.steps // config.steps_per_block):
            for t in range(block * config.steps_per_block, (block + 1) * config.steps_per_block):
                if block < random_blocks:
                    draw = rng.generator(config.seed, "random-action", t)
                    action = draw.uniform(-1, 1, (len(tasks), family.action_dim))
                else:
                    action = self._act(self._sample, observation, act_key, t)
                step = simulation.step(action)
                replay.add(tasks, observation, action, step)
                age += 1
                observation = step.observation
                over = np.flatnonzero(step.terminated | step.diverged | (age == family.horizon))
                if over.size:
                    seeds = self._reset_seeds(t + 1, len(tasks))[over]
                    observation = simulation.reset(seeds.tolist(), over)
                    age[over] = 0
            if block < random_blocks:
                continue
            key = jax.random.fold_in(learn_key, block)
            self.state, metrics = self._learn(self.state, *self._draw(replay, block), key)
            if not np.isfinite(metrics["critic_loss"]).all():
                raise TrainingDiverged(
                    f"behaviour policy training on {family.name} diverged in block {block}; "
                    "try a smaller learning_rate"
                )
            yield block - random_blocks + 1

    def _reset_seeds(self, step: int, size: int) -> np.ndarray:
        return rng.generator(self.config.seed, "collect-reset", step).integers(2**31, size=size)


def collect(
    family: Family, config: CollectConfig, path: Path, progress: ProgressStyle = "auto"
) -> Dataset:
    """Collect a dataset of the whole family into `path`."""
    collector = Collector(family, config)
    blocks = config.steps // config.steps_per_block
    at = np.linspace(1, blocks, config.checkpoints).round().astype(int).tolist()
    writer = DatasetWriter(path, family, config.checkpoints * config.episodes_per_checkpoint)
    try:
        _fill(writer, collector, at, progress)
    except BaseException:
        writer.abandon()
        raise
    return Dataset(path, verify=False)


def _fill(
    writer: DatasetWriter, collector: Collector, at: list[int], progress: ProgressStyle
) -> None:
    """Train, record at the blocks `at`, measure the references and seal the dataset."""
    family, config = collector.family, collector.config
    blocks = config.steps // config.steps_per_block
    curve: list[dict[str, Any]] = []
    with Meter(f"collect {family.name}", blocks, style=progress) as meter:
        note = ""
        for block in collector.train():
            if block in at:
                checkpoint = at.index(block)
                episodes = collector.episodes(
                    config.episodes_per_checkpoint, "record", checkpoint, stochastic=True
                )
                returns = _record(writer, episodes, checkpoint, family.n_tasks)
                curve.append(_curve_point(family, config, block, returns))
                note = f"train return {curve[-1]['train']:.1f}"
            meter.update(block, note)
    final = collector.episodes(config.reference_episodes, "expert", 0, stochastic=False)
    expert = _returns(final, family.n_tasks)
    anchors = anchor_returns(family, range(family.n_tasks), config.reference_episodes, config.seed)
    records = {
        task: TaskRecord(
            group=family.split.group_of(task),
            parameters=tuple(family.parameters[task]),
            reference={"expert": expert[task]} | {k: v[task] for k, v in anchors.items()},
        )
        for task in range(family.n_tasks)
    }
    writer.seal(records, {"name": "sac", "config": to_json(config), "curve": curve})


def _record(writer: DatasetWriter, episodes: Episodes, checkpoint: int, n_tasks: int) -> np.ndarray:
    per_task = len(episodes.length) // n_tasks
    for task in range(n_tasks):
        rows = slice(task * per_task, (task + 1) * per_task)
        writer.add(task, Episodes(*(x[rows] for x in episodes)), checkpoint)
    return _returns(episodes, n_tasks)


def _returns(episodes: Episodes, n_tasks: int) -> np.ndarray:
    returns = episodes.reward.sum(axis=1, dtype=np.float64)
    usable = ~episodes.diverged.reshape(n_tasks, -1)
    if not usable.any(axis=1).all():
        task = int(np.argmin(usable.any(axis=1)))
        raise SimulationError(f"every simulation of task {task} diverged; nothing was written")
    return np.mean(returns.reshape(n_tasks, -1), axis=1, where=usable)


def _curve_point(
    family: Family, config: CollectConfig, block: int, returns: np.ndarray
) -> dict[str, Any]:
    groups = {g: float(returns[list(tasks)].mean()) for g, tasks in family.split.groups().items()}
    return {"updates": block * config.steps_per_block * config.updates_per_step, **groups}

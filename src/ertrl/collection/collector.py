"""Train behaviour policies for a whole family and record what they do along the way."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from ertrl import rng
from ertrl.collection import sac
from ertrl.collection.replay import Replay
from ertrl.config import CollectConfig, to_json
from ertrl.data import Dataset, DatasetWriter, TaskRecord
from ertrl.envs import Family, anchor_returns, rollout
from ertrl.errors import SimulationError
from ertrl.progress import Meter, ProgressStyle
from ertrl.types import Dims, Episodes, Transitions


class Collector:
    """One task-conditioned SAC on parallel simulations of all tasks."""

    def __init__(self, family: Family, config: CollectConfig):
        """Nothing runs yet."""
        config.validate()
        self.family, self.config = family, config
        self._scale = family.parameters.std(axis=0) + 1e-8
        self._centre = family.parameters.mean(axis=0)
        dims = Dims(family.observation_dim, family.action_dim)
        self.state = sac.init(
            config, dims, family.parameters.shape[1], rng.key(config.seed, "sac-init")
        )

        @jax.jit
        def learn(state: sac.SacState, batches: Transitions, task: Array, key: Array):
            def step(state, inputs):
                batch, task, i = inputs
                return sac.update(config, state, batch, task, jax.random.fold_in(key, i))

            return jax.lax.scan(step, state, (batches, task, np.arange(len(task))))

        @jax.jit
        def sample(actor, observation, task, key, t):
            return actor.sample(jax.random.fold_in(key, t), observation, task).action

        @jax.jit
        def mode(actor, observation, task, key, t):
            return actor.mode(observation, task)

        self._learn, self._sample, self._mode = learn, sample, mode

    def _task_input(self, parameters: np.ndarray) -> np.ndarray:
        return ((parameters - self._centre) / self._scale).astype(np.float32)

    def episodes(self, per_task: int, stream: str, index: int, *, stochastic: bool) -> Episodes:
        """Run the current policy: `per_task` episodes of every task, tasks in order."""
        family = self.family
        tasks = np.repeat(np.arange(family.n_tasks), per_task)
        parameters = family.parameters[tasks]
        seeds = rng.generator(self.config.seed, f"{stream}-reset", index).integers(
            2**31, size=len(tasks)
        )
        key = jax.random.fold_in(rng.key(self.config.seed, stream), index)
        act = self._sample if stochastic else self._mode
        task_input = self._task_input(parameters)
        return rollout(
            family,
            parameters,
            lambda observation, t: act(self.state.actor, observation, task_input, key, t),
            seeds.tolist(),
        )

    def train(self):
        """Alternate blocks of simulation and updates; yields after every learning block."""
        family, config = self.family, self.config
        tasks = np.repeat(np.arange(family.n_tasks), config.simulations_per_task)
        parameters = family.parameters[tasks]
        task_input = self._task_input(parameters)
        replay = Replay(family, len(tasks) * (config.random_steps + config.steps))
        simulation = family.simulate(parameters)
        seeds = partial(rng.generator, config.seed, "collect-reset")
        observation = simulation.reset(seeds(0).integers(2**31, size=len(tasks)).tolist())
        age = np.zeros(len(tasks), int)
        act_key, learn_key = (rng.key(config.seed, n) for n in ("collect-act", "sac-update"))
        random_blocks = config.random_steps // config.steps_per_block
        for block in range(random_blocks + config.steps // config.steps_per_block):
            for i in range(config.steps_per_block):
                t = block * config.steps_per_block + i
                if block < random_blocks:
                    action = rng.generator(config.seed, "random-action", t).uniform(
                        -1, 1, (len(tasks), family.action_dim)
                    )
                else:
                    action = self._sample(self.state.actor, observation, task_input, act_key, t)
                action = np.asarray(action, np.float32)
                step = simulation.step(action)
                good = ~step.diverged
                replay.add(
                    tasks[good],
                    observation[good],
                    action[good],
                    step.outcome[good],
                    step.observation[good],
                    step.terminated[good],
                )
                age += 1
                over = step.terminated | step.diverged | (age == family.horizon)
                observation = step.observation
                if over.any():
                    rows = np.flatnonzero(over)
                    fresh = seeds(t + 1).integers(2**31, size=len(tasks))[rows]
                    observation = simulation.reset(fresh.tolist(), rows)
                    age[rows] = 0
            if block < random_blocks:
                continue
            shape = (config.steps_per_block * config.updates_per_step, config.batch_size)
            batches, rewarded = replay.batches(config.seed, block, shape, config.relabel_fraction)
            self.state, metrics = self._learn(
                self.state,
                batches,
                self._task_input(rewarded),
                jax.random.fold_in(learn_key, block),
            )
            if not np.isfinite(metrics["critic_loss"]).all():
                raise SimulationError(
                    f"behaviour policy training on {family.name} diverged in block {block}; "
                    "try a smaller learning_rate"
                )
            yield block - random_blocks + 1


def collect(
    family: Family, config: CollectConfig, path: Path, progress: ProgressStyle = "auto"
) -> Dataset:
    """Collect a dataset of the whole family into `path`."""
    collector = Collector(family, config)
    blocks = config.steps // config.steps_per_block
    at = np.linspace(1, blocks, config.checkpoints).round().astype(int).tolist()
    writer = DatasetWriter(
        path,
        range(family.n_tasks),
        config.checkpoints * config.episodes_per_checkpoint,
        family.horizon,
        family.observation_dim,
        family.action_dim,
    )
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
    anchors = anchor_returns(
        family, range(family.n_tasks), config.reference_episodes, config.seed
    )
    records = {
        task: TaskRecord(
            group=family.split.group_of(task),
            parameters=tuple(family.parameters[task]),
            reference={"expert": expert[task]} | {k: v[task] for k, v in anchors.items()},
        )
        for task in range(family.n_tasks)
    }
    writer.seal(
        family.name,
        records,
        {"name": "task-conditioned SAC", "config": to_json(config), "curve": curve},
        parameter_names=list(family.parameter_names),
    )
    return Dataset(path, verify=False)


def _record(writer: DatasetWriter, episodes: Episodes, checkpoint: int, n_tasks: int) -> np.ndarray:
    per_task = len(episodes.length) // n_tasks
    for task in range(n_tasks):
        rows = slice(task * per_task, (task + 1) * per_task)
        writer.add(task, Episodes(*(x[rows] for x in episodes)), checkpoint)
    return _returns(episodes, n_tasks)


def _returns(episodes: Episodes, n_tasks: int) -> np.ndarray:
    returns = episodes.reward.sum(axis=1, dtype=np.float64)
    returns[episodes.diverged] = np.nan
    return np.nanmean(returns.reshape(n_tasks, -1), axis=1)


def _curve_point(
    family: Family, config: CollectConfig, block: int, returns: np.ndarray
) -> dict[str, Any]:
    groups = {g: float(returns[list(tasks)].mean()) for g, tasks in family.split.groups().items()}
    return {"updates": block * config.steps_per_block * config.updates_per_step, **groups}

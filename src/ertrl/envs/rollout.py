"""Whole episodes, many at once."""

from collections.abc import Callable, Sequence

import numpy as np

from ertrl import rng
from ertrl.envs.family import Family, Simulation
from ertrl.errors import SimulationError
from ertrl.types import Episodes

Policy = Callable[[np.ndarray, int], np.ndarray]
"""(observations [N, O], step) -> actions [N, A] in [-1, 1]."""
Watch = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
"""(s, a, r, s') of one step of every row, and which of them it counts for."""


def rollout(
    family: Family,
    parameters: np.ndarray,
    policy: Policy,
    seeds: Sequence[int],
    watch: Watch | None = None,
    rows: np.ndarray | None = None,
    simulation: Simulation | None = None,
) -> Episodes:
    """Run one episode per row of `parameters`; row i starts from seeds[i]. `watch` sees each step.

    Rows that end early stay in the batch (so that a jitted policy sees one shape), but need not
    move, and what they do from then on is not recorded. Where only some `rows` are wanted, the
    others rest from the beginning, and their episodes are empty. `simulation` is one of these
    parameters, if there is one already; whatever it did before, it starts anew.
    """
    n, horizon = len(parameters), family.horizon
    episodes = Episodes(
        observation=np.zeros((n, horizon + 1, family.observation_dim), np.float32),
        action=np.zeros((n, horizon, family.action_dim), np.float32),
        reward=np.zeros((n, horizon), np.float32),
        length=np.zeros(n, np.int32),
        terminated=np.zeros(n, bool),
        truncated=np.zeros(n, bool),
        diverged=np.zeros(n, bool),
    )
    simulation = family.simulate(parameters) if simulation is None else simulation
    observation = family.check_observations(simulation.reset(seeds), n, "reset")
    episodes.observation[:, 0] = observation
    alive, success = np.ones(n, bool), np.full(n, np.nan, np.float32)
    if rows is not None:
        alive[:] = False
        alive[rows] = True
        simulation.rest(np.flatnonzero(~alive))
    for t in range(horizon):
        action = np.clip(np.asarray(policy(observation, t), np.float32), -1, 1)
        step = simulation.step(action)
        before = observation
        observation = family.check_observations(step.observation, n, "step")
        reward = family.reward(step.outcome, action, parameters)
        episodes.action[alive, t] = action[alive]
        episodes.reward[alive, t] = reward[alive]
        episodes.observation[alive, t + 1] = observation[alive]
        episodes.length[alive] += 1
        episodes.diverged[alive & step.diverged] = True
        if step.success is not None:
            success[alive] = np.fmax(success, step.success)[alive]
        if watch is not None:
            watch(before, action, reward, observation, alive & ~step.diverged)
        episodes.terminated[alive & step.terminated] = True
        over = alive & (step.terminated | step.diverged)
        alive &= ~over
        if not alive.any():
            break
        if over.any():
            simulation.rest(np.flatnonzero(over))
    episodes.truncated[alive] = True
    return episodes._replace(success=success)


def anchor_returns(
    family: Family, tasks: Sequence[int], episodes: int, seed: int
) -> dict[str, np.ndarray]:
    """Mean return per task of doing nothing and of uniformly random actions."""
    rows = [(task, episode) for task in tasks for episode in range(episodes)]
    parameters = family.parameters[[task for task, _ in rows]]
    seeds = [int(rng.generator(seed, "anchor-reset", *row).integers(2**31)) for row in rows]
    shape = (family.horizon, family.action_dim)
    actions = {
        "zero": np.zeros((len(rows), *shape)),
        "random": np.stack(
            [rng.generator(seed, "anchor-action", *row).uniform(-1, 1, shape) for row in rows]
        ),
    }

    def mean_return(plan: np.ndarray) -> np.ndarray:
        return mean_returns(rollout(family, parameters, lambda _, t: plan[:, t], seeds), tasks)

    return {name: mean_return(plan) for name, plan in actions.items()}


def success_rates(episodes: Episodes, tasks: Sequence[int]) -> np.ndarray | None:
    """Share of each task's episodes that fulfilled it, as `mean_returns`; None: nobody says."""
    if episodes.success is None or np.isnan(episodes.success).all():
        return None
    told = told_success(episodes.success).reshape(len(tasks), -1)
    usable = ~episodes.diverged.reshape(len(tasks), -1)
    return (told * usable).sum(axis=1) / np.maximum(usable.sum(axis=1), 1)


def told_success(success: np.ndarray) -> np.ndarray:
    """Where some episodes tell of a success and others of none, those failed."""
    return success if np.isnan(success).all() else np.nan_to_num(success)


def mean_returns(episodes: Episodes, tasks: Sequence[int]) -> np.ndarray:
    """Mean return of each task, equally many episodes each, over those that did not diverge."""
    usable = ~episodes.diverged.reshape(len(tasks), -1)
    if not usable.any(axis=1).all():
        task = tasks[int(np.argmin(usable.any(axis=1)))]
        raise SimulationError(f"every simulation of task {task} diverged; nothing was written")
    return np.mean(episodes.returns.reshape(len(tasks), -1), axis=1, where=usable)

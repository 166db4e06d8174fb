"""How much behaviour policies differ: the paper's measure of when its objective should help."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from ertrl import rng
from ertrl.data import DatasetWriter

if TYPE_CHECKING:
    from ertrl.collection.trainer import PolicyTrainer

STATES_PER_TASK = 256


def wasserstein(
    mean: Float[np.ndarray, "*b A"],
    std: Float[np.ndarray, "*b A"],
    other_mean: Float[np.ndarray, "*b A"],
    other_std: Float[np.ndarray, "*b A"],
) -> Float[np.ndarray, "*b"]:
    """W_2 of Gaussians, Eq. (def_wasserstein), for diagonal covariances."""
    squares = np.square(mean - other_mean) + np.square(std - other_std)
    return np.sqrt(squares.sum(axis=-1))


def policy_distance(
    trainer: "PolicyTrainer", writer: DatasetWriter, tasks: Sequence[int]
) -> dict[str, Any]:
    """Mean distance of the final policies of these tasks, and that of each pair.

    `pairwise[i][j]` is W_2 between the Gaussians before tanh of tasks i and j, averaged over states
    of which half were recorded in i and half in j; `mean` is the paper's d, the sum over all pairs
    (a task with itself among them) divided by the number of pairs and the size of actions.
    """
    gaussian = jax.jit(trainer.policies.gaussian)
    n, chosen = len(tasks), list(tasks)
    in_own_states = np.zeros((n, n))
    for i, task in enumerate(chosen):
        draw = rng.generator(trainer.config.seed, "distance-states", task)
        states = writer.draw_states(task, draw, STATES_PER_TASK)
        shape = (trainer.family.n_tasks, *states.shape)
        mean, log_std = gaussian(trainer.state.behaviour, np.broadcast_to(states, shape))
        mean = np.asarray(mean, np.float64)[chosen]
        std = np.exp(np.asarray(log_std, np.float64)[chosen])
        in_own_states[i] = wasserstein(mean[i], std[i], mean, std).mean(axis=1)
    pairwise = (in_own_states + in_own_states.T) / 2
    return {
        "measure": "Wasserstein-2 between the final policies' Gaussians before tanh",
        "tasks": chosen,
        "states_per_task": STATES_PER_TASK,
        "mean": float(pairwise.mean() / trainer.family.action_dim),
        "pairwise": pairwise.tolist(),
    }

"""The critic step that learners share."""

import jax
from jaxtyping import Array, Float

from ertrl import losses
from ertrl.nets import Trained, Twin, over_batch
from ertrl.types import Metrics, Transitions


def critic_step(
    critic: Trained[Twin],
    rl: Transitions,
    z: Float[Array, "T Z"],
    y: Float[Array, "T B"],
    learning_rate: float,
) -> tuple[Trained[Twin], Float[Array, "T Z"], Metrics]:
    """One step of both critics towards y; also the gradient of their loss at z."""

    def loss(critic: Twin, z: Float[Array, "T Z"]):
        q1, q2 = critic(rl.observation, rl.action, over_batch(z, rl.observation))
        error = losses.twin_error(q1, q2, y)
        return error, {"critic_loss": error, "q_mean": q1.mean()}

    (gradient, z_gradient), metrics = jax.grad(loss, argnums=(0, 1), has_aux=True)(critic.net, z)
    return critic.step(gradient, learning_rate), z_gradient, metrics

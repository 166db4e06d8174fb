"""SPC (Nakhaei et al., 2026): z is what a model of the world has to know of the task.

Next to InfoNCE (as in DORA), z conditions a latent model that starts at a state and predicts the
rewards and the latent states of the steps that follow; its error reaches the encoder through z.
Targets are the latent states of a slowly following copy. The authors' actor and critic see latent
states; here they see observations, as with every method.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ertrl import losses
from ertrl.config import Amount, Count, Positive, Share, Size, Widths
from ertrl.methods.base import Method
from ertrl.methods.encoder import MeanEncoder, spread
from ertrl.methods.prototypes import contrast, fresh_prototypes
from ertrl.nets import MLP, Trained, over_batch, toward
from ertrl.types import Context, Dims, TaskBatch


class World(eqx.Module):
    """A latent state of s, and how it and the reward follow from (latent, a, z)."""

    state: MLP
    change: MLP
    reward: MLP

    def __init__(
        self, dims: Dims, latent_dim: int, size: int, hidden: tuple[int, ...], key: PRNGKeyArray
    ):
        keys, inputs = jax.random.split(key, 3), size + dims.action + latent_dim
        self.state = MLP(dims.observation, hidden, size, keys[0], layer_norm=True)
        self.change = MLP(inputs, hidden, size, keys[1], layer_norm=True)
        self.reward = MLP(inputs, hidden, 1, keys[2], layer_norm=True)

    def follow(
        self, s: Float[Array, "T B O"], actions: Float[Array, "W T B A"], z: Float[Array, "T Z"]
    ) -> tuple[Float[Array, "W T B L"], Float[Array, "W T B 1"]]:
        """Latent states after each action, and the reward of each, from the first state alone."""
        zs, latents = over_batch(z, s), [self.state(s)]
        for action in actions:
            latents.append(latents[-1] + self.change(latents[-1], action, zs))
        path, every_z = jnp.stack(latents), jnp.broadcast_to(zs, (len(actions), *zs.shape))
        return path[1:], self.reward(path[:-1], actions, every_z)


class SpcState(NamedTuple):
    nets: Trained[tuple[MeanEncoder, World]]
    """Context encoder and model of the world: trained by one loss and one optimiser."""
    target: MLP
    """The slow copy of the model's latent state."""
    prototypes: Float[Array, "N Z"]


@dataclass(frozen=True)
class Spc(Method):
    """Settings of SPC. The encoder's step size is the model's, too."""

    name = "spc"
    summary = "InfoNCE + z that a latent model needs to predict the next steps"
    paper = "https://arxiv.org/abs/2603.02935"
    loss = "info_nce"

    horizon: Count = 5
    """Steps that are predicted from one state."""
    radius: Positive = 0.1
    """Distances to prototypes are divided by this; the smaller, the more the nearest ones count."""
    prototype_rate: Share = 0.05
    """How far a task's prototype moves toward its codes in one update."""
    consistency_weight: Amount = 1.0
    """Weight of the error of predicted latent states against InfoNCE."""
    reward_weight: Amount = 1.0
    """Weight of the error of predicted rewards against InfoNCE."""
    rho: Share = 0.99
    """Factor by which each further step ahead counts less."""
    target_rate: Share = 0.005
    """How far the slow copy moves in one update."""
    state_size: Size = 512
    """Size of a latent state."""
    world_hidden: Widths = (512, 512)
    """Widths of the model's networks."""

    @property
    def window(self) -> int:
        """The steps it predicts."""
        return self.horizon

    def init(self, dims: Dims, key):
        keys = jax.random.split(key)
        encoder = MeanEncoder(self.encoder, dims, keys[0])
        world = World(dims, self.latent_dim, self.state_size, self.world_hidden, keys[1])
        prototypes = fresh_prototypes(dims, self.latent_dim)
        return SpcState(Trained.of((encoder, world)), world.state, prototypes)

    def update(self, state: SpcState, batch: TaskBatch, z_gradient, key):
        """One step of encoder and model on InfoNCE and on what the model predicts."""
        assert batch.windows is not None
        steps = Context(*(jnp.moveaxis(x, 2, 0) for x in batch.windows))
        to_reach = state.target(steps.next_observation)

        def loss(nets: tuple[MeanEncoder, World]):
            encoder, world = nets
            codes = encoder(batch.context)
            info_nce, prototypes, metrics = contrast(
                state.prototypes, codes, batch.task, self.prototype_rate, self.radius
            )
            latents, rewards = world.follow(steps.observation[0], steps.action, codes[:, 0])
            consistency = losses.window_error(latents, to_reach, steps.mask, self.rho)
            target = steps.reward[..., None]
            reward = losses.window_error(rewards, target, steps.mask, self.rho)
            metrics |= {"consistency_loss": consistency, "reward_loss": reward}
            total = info_nce + self.consistency_weight * consistency + self.reward_weight * reward
            return total, (prototypes, metrics | spread(codes[:, 0]))

        nets, (prototypes, metrics) = state.nets.minimise(loss, self.encoder.learning_rate)
        target = toward(state.target, nets.net[1].state, self.target_rate)
        return SpcState(nets, target, prototypes), metrics


METHOD = Spc

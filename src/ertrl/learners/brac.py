"""BRAC (Wu et al., 2019) as ER-TRL uses it: SAC with a penalty on KL(pi || beta).

The divergence is estimated in its dual form by a critic c of its own, or against a learned model of
beta, and its weight alpha is learned so that the divergence stays at a target. Which settings
learn, and why, is in results/brac.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
from annotated_types import Predicate
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ertrl import losses
from ertrl.config import Amount, Count, CountOrZero, Share, Widths, rising
from ertrl.learners.base import Learner, LearnerStep
from ertrl.learners.critic import critic_step
from ertrl.nets import MLP, Sample, TanhGaussian, Trained, Twin, log_density, over_batch, toward
from ertrl.types import Dims, Transitions


class BracState(NamedTuple):
    """Everything that must survive a crash."""

    actor: Trained[TanhGaussian]
    critic: Trained[Twin]
    value: Trained[MLP]
    target_value: MLP
    """Slow copy of the V-function."""
    estimator: Trained
    """What measures the divergence: dual critic (MLP) or model of the data (TanhGaussian)."""
    alpha: Float[Array, ""]
    updates: Int[Array, ""]


@dataclass(frozen=True)
class Brac(Learner):
    """Settings of the BRAC learner."""

    name = "brac"
    summary = "SAC held near the data by a dual-form KL penalty: the paper's learner"
    paper = "https://arxiv.org/abs/1911.11361"

    hidden: Widths = (256, 256, 256)
    """Widths of actor, critics, value function and dual critic or model of the data."""
    learning_rate: Amount = 3e-4
    """Adam step size of actor, critics, value function and model of the data."""
    divergence: Literal["dual", "primal"] = "dual"
    """Estimate KL(pi || beta) by a dual critic [paper], or as KL(pi || beta') with a Gaussian
    model beta' of the data, fitted alongside; the original BRAC has both."""
    dual_learning_rate: Amount = 1e-4
    """Adam step size of the dual critic."""
    dual_updates: Count = 3
    """Dual-critic steps per update, each on a fresh RL batch."""
    penalty: Literal["gradient", "value"] = "gradient"
    """Keep the dual critic's slope in the action below 1, as BRAC derives it, or its value
    [released], which caps the divergence it can measure at about 1."""
    penalty_weight: Amount = 5.0
    """Weight of that penalty."""
    discount: Share = 0.99
    """gamma."""
    tau: Share = 0.005
    """Step of the target value function per update."""
    reward_scale: Amount = 5.0
    """Factor on rewards."""
    entropy_weight: Amount = 1.0
    """SAC's bonus for entropy; divided by reward_scale it is the temperature. The original BRAC
    has 0: the divergence alone keeps the policy as wide as the data."""
    alpha_init: Amount = 50.0
    """Weight of the divergence at the start."""
    alpha_max: Amount = 2000.0
    """Upper bound of that weight."""
    project_alpha: bool = True
    """Put alpha back into [0, alpha_max] after every step. The released code only clips it where
    it is used, so that it may wind up far outside and take long to come back."""
    alpha_learning_rate: Amount = 1.0
    """Plain gradient step size of alpha."""
    divergence_target: Amount = 0.05
    """alpha grows while the divergence is above this."""
    regularisation: Amount = 1e-3
    """Weight of the squared mean and log-std of the policy."""
    log_std_range: Annotated[tuple[float, float], Predicate(rising)] = (-20.0, 0.0)
    """Bounds of the policy's log-std."""
    plain_clip: bool = False
    """Pass no gradient outside of these bounds [released], so that a log-std that left them stays
    there; else one that leads back."""
    warm_start: CountOrZero = 0
    """Updates at the start in which the actor only imitates the data (maximum likelihood) and
    alpha rests, while critics and dual critic learn. BRAC clones first, too."""

    @property
    def extra_batches(self) -> int:
        """One for each dual-critic step but the first."""
        return self.dual_updates - 1 if self.divergence == "dual" else 0

    def init(self, dims: Dims, latent_dim: int, key):
        """Fresh networks; the target starts as a copy."""
        keys = jax.random.split(key, 4)
        inputs = dims.observation + latent_dim

        def policy(key: PRNGKeyArray) -> TanhGaussian:
            bounds = {"log_std_range": self.log_std_range, "plain_clip": self.plain_clip}
            return TanhGaussian(inputs, self.hidden, dims.action, key, **bounds)

        value = MLP(inputs, self.hidden, 1, keys[2])
        dual = self.divergence == "dual"
        return BracState(
            actor=Trained.of(policy(keys[0])),
            critic=Trained.of(Twin(inputs + dims.action, self.hidden, keys[1])),
            value=Trained.of(value),
            target_value=value,
            estimator=Trained.of(
                MLP(inputs + dims.action, self.hidden, 1, keys[3]) if dual else policy(keys[3])
            ),
            alpha=jnp.asarray(self.alpha_init, dtype=float),  # not weakly typed: one program
            updates=jnp.zeros((), jnp.int32),
        )

    def update(self, state: BracState, rl: Transitions, more_rl: Transitions, z, key):
        """Divergence estimator, then critics, actor, value function and alpha."""
        s, a, r, s2, terminated = rl
        zs = over_batch(z, s)
        key_actor, _, *dual_keys = jax.random.split(key, 2 + self.dual_updates)

        if self.divergence == "primal":
            estimator = self.fit_data(state.estimator, rl, z)
        else:
            estimator = self.dual_step(state.estimator, state.actor.net, rl, z, dual_keys[0])
            for i, dual_key in enumerate(dual_keys[1:]):
                fresh = jax.tree.map(lambda x, i=i: x[i], more_rl)
                estimator = self.dual_step(estimator, state.actor.net, fresh, z, dual_key)

        next_value = state.target_value(s2, zs)[..., 0]
        y = losses.temporal_difference(self.reward_scale * r, terminated, next_value, self.discount)
        critic, z_gradient, metrics = critic_step(state.critic, rl, z, y, self.learning_rate)

        alpha = self.used(state.alpha)
        cloning = state.updates < self.warm_start

        def actor_loss(actor: TanhGaussian):
            sampled = actor.sample(key_actor, s, zs)
            q = critic.net.least(s, sampled.action, zs)
            kl = self.kl(estimator.net, s, zs, sampled, a)
            small = jnp.square(sampled.mean).mean() + jnp.square(sampled.log_std).mean()
            loss = (self.entropy_weight * sampled.log_prob - q + alpha * kl).mean()
            if self.warm_start:
                likelihood = log_density(a, sampled.mean, sampled.log_std).mean()
                loss = jnp.where(cloning, -likelihood, loss)
            loss += self.regularisation * small
            return loss, (loss, sampled, q, kl.mean())

        actor, (pi_loss, sampled, q, kl) = state.actor.minimise(actor_loss, self.learning_rate)

        v_target = q - self.entropy_weight * sampled.log_prob

        def value_loss(value: MLP):
            loss = jnp.square(value(s, zs)[..., 0] - v_target).mean()
            return loss, loss

        value, v_loss = state.value.minimise(value_loss, self.learning_rate)

        moved = state.alpha + self.alpha_learning_rate * (kl - self.divergence_target)
        if self.project_alpha:
            moved = self.used(moved)
        if self.warm_start:
            moved = jnp.where(cloning, state.alpha, moved)
        new = BracState(
            actor=actor,
            critic=critic,
            value=value,
            target_value=toward(state.target_value, value.net, self.tau),
            estimator=estimator,
            alpha=moved,
            updates=state.updates + 1,
        )
        metrics |= {
            "actor_loss": pi_loss,
            "q_policy": q.mean(),
            "divergence": kl,
            "alpha": self.used(moved),
            "log_prob": sampled.log_prob.mean(),
            "log_std": sampled.log_std.mean(),
            "value_loss": v_loss,
        }
        return LearnerStep(new, z_gradient, metrics)

    def used(self, alpha: Float[Array, ""]) -> Float[Array, ""]:
        """The divergence's weight in the losses."""
        return jnp.clip(alpha, 0, self.alpha_max)

    def kl(
        self,
        estimator: MLP | TanhGaussian,
        s: Float[Array, "T B O"],
        zs: Float[Array, "T B Z"],
        sampled: Sample,
        data_action: Float[Array, "T B A"],
    ) -> Float[Array, "T B"]:
        """KL(pi || beta) per row, as the estimator in use sees it."""
        if isinstance(estimator, TanhGaussian):
            beta = estimator.gaussian(s, zs)
            return losses.gaussian_kl(sampled.mean, sampled.log_std, *beta)
        c_policy, c_data = (estimator(s, a, zs)[..., 0] for a in (sampled.action, data_action))
        return losses.dual_kl(c_policy, c_data)

    def dual_step(
        self,
        dual: Trained[MLP],
        actor: TanhGaussian,
        rl: Transitions,
        z: Float[Array, "T Z"],
        key: PRNGKeyArray,
    ) -> Trained[MLP]:
        """One step of the dual critic towards a tight bound on KL(pi || beta)."""
        key_policy, key_mix = jax.random.split(key)
        s, a = rl.observation, rl.action
        zs = over_batch(z, s)
        sampled = actor.sample(key_policy, s, zs).action
        share = jax.random.uniform(key_mix, (*a.shape[:-1], 1))
        mixed = sampled + share * (a - sampled)

        def loss(dual: MLP):
            c = dual(
                jnp.concatenate([s, s], axis=1),
                jnp.concatenate([sampled, a], axis=1),
                jnp.concatenate([zs, zs], axis=1),
            )[..., 0]
            bound = losses.dual_kl(*jnp.split(c, 2, axis=1)).mean()
            return -bound + self.penalty_weight * self.excess(dual, s, mixed, zs), None

        return dual.minimise(loss, self.dual_learning_rate)[0]

    def excess(self, dual: MLP, s: Array, mixed: Array, zs: Array) -> Float[Array, ""]:
        """Mean max(x - 1, 0)^2 at actions between the policy's and the data's.

        x is |grad_a c(s, a, z)|, or [released] |c(s, a, z)|, which is not a slope.
        """
        if self.penalty == "value":
            size = jnp.abs(dual(s, mixed, zs))
        else:
            slope = jax.grad(lambda a: dual(s, a, zs).sum())(mixed)
            size = jnp.sqrt(jnp.square(slope).sum(axis=-1) + 1e-8)
        return jnp.square(jnp.maximum(size - 1, 0)).mean()

    def fit_data(
        self, model: Trained[TanhGaussian], rl: Transitions, z: Float[Array, "T Z"]
    ) -> Trained[TanhGaussian]:
        """One maximum-likelihood step of the model of the data."""

        def surprise(model: TanhGaussian):
            gaussian = model.gaussian(rl.observation, over_batch(z, rl.observation))
            return -log_density(rl.action, *gaussian).mean(), None

        return model.minimise(surprise, self.learning_rate)[0]

    def policy(self, state: BracState):
        return state.actor.net.plain()

    def act(self, state: BracState, observation, z, key=None):
        return state.actor.net.act(key, observation, z)


LEARNER = Brac

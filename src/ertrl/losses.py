"""One published equation, one pure function; symbols as in the paper.

`[paper]` and `[released]` mark where paper and released code differ and which one this is.
docs/paper-map.md lists equation, function and test.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def distance_metric(
    z: Float[Array, "N Z"],
    task: Int[Array, "N"],
    positive_epsilon: float,
    negative_epsilon: float,
    beta: float,
) -> Float[Array, ""]:
    """L_DML, Eq. (focal): representations of one task together, those of different tasks apart.

    Mean over positive pairs of sqrt(d^2 + eps) plus beta times the mean over negative pairs of
    1 / (d^2 + eps_0), with d^2 the squared difference averaged over the dimensions of z.
    [released] The paper writes the plain squared norm for both; it leaves the constants open.
    """
    d2 = jnp.square(z[:, None] - z[None, :]).mean(axis=-1)
    once = jnp.triu(jnp.ones_like(d2), k=1)
    same = (task[:, None] == task[None, :]).astype(z.dtype)
    positive, negative = once * same, once * (1 - same)
    pull = jnp.sqrt(d2 + positive_epsilon)
    push = 1 / (d2 + negative_epsilon)
    return _mean_over(pull, positive) + beta * _mean_over(push, negative)


def _mean_over(x: Array, selected: Array) -> Array:
    # A batch without any such pair contributes nothing.
    return (x * selected).sum() / jnp.maximum(selected.sum(), 1)


def discriminator_loss(
    real_logit: Float[Array, "..."], fake_logit: Float[Array, "..."]
) -> Float[Array, ""]:
    """L_D, Eq. (discrimantor_objective): -log D(a_real) - log(1 - D(a_fake)).

    D is the probability of being real: the paper's formula says so, its text the opposite.
    """
    return jax.nn.softplus(-real_logit).mean() + jax.nn.softplus(fake_logit).mean()


def generator_loss(fake_logit: Float[Array, "..."]) -> Float[Array, ""]:
    """L_G, Eq. (generator_objective): non-saturating, -log D(G(s, z, eps)).

    [released] The paper's equation lacks the minus sign.
    """
    return jax.nn.softplus(-fake_logit).mean()


def entropy_of_actions(actions: Float[Array, "T B A"], ridge: float = 1e-5) -> Float[Array, "T"]:
    """H(pi_hat(a | s, z)), Eq. (entropy_samples): a Gaussian fitted to each task's actions.

    [released] The covariance pools the actions of all states of a task.
    """
    b, k = actions.shape[1:]
    centred = actions - actions.mean(axis=1, keepdims=True)
    sigma = jnp.einsum("tbi,tbj->tij", centred, centred) / (b - 1) + ridge * jnp.eye(k)
    log_det = 2 * jnp.log(jnp.diagonal(jnp.linalg.cholesky(sigma), axis1=1, axis2=2)).sum(axis=1)
    return 0.5 * log_det + 0.5 * k * jnp.log(2 * jnp.pi * jnp.e)


def mutual_information(actions: Float[Array, "T B A"], ridge: float = 1e-5) -> Float[Array, ""]:
    """L_MI, Eq. (mi_loss): minus the entropy of generated actions, averaged over tasks.

    Includes the constant k/2 log(2 pi e), which has no gradient.
    """
    return -entropy_of_actions(actions, ridge).mean()


def entropy_per_state(actions: Float[Array, "T S M A"], ridge: float = 1e-5) -> Float[Array, "T"]:
    """H(pi_hat(a | s, z)) as the paper writes it: a Gaussian per state, averaged over states.

    M independent draws of the generator in each of S states, instead of one draw in each.
    """
    t, s, m, a = actions.shape
    return entropy_of_actions(actions.reshape(t * s, m, a), ridge).reshape(t, s).mean(axis=1)


def club_likelihood(
    z: Float[Array, "*b H Z"],
    mean: Float[Array, "*b H Z"],
    variance: Float[Array, "*b H Z"],
    mask: Float[Array, "*b H"],
) -> Float[Array, ""]:
    """CSRO: -log q(z_t | s_t, a_t) of a diagonal Gaussian, without its constant.

    [released] Averaged over the dimensions of z.
    """
    surprise = jnp.square(z - mean) / (2 * variance) + 0.5 * jnp.log(variance)
    return _mean_over(surprise.mean(axis=-1), mask)


def club_bound(
    z: Float[Array, "*b H Z"],
    mean: Float[Array, "*b H Z"],
    variance: Float[Array, "*b H Z"],
    mask: Float[Array, "*b H"],
) -> Float[Array, ""]:
    """CSRO: CLUB's upper bound on I(z_t; (s_t, a_t)), negatives from the same context.

    mean_t [-(z_t - mu_t)^2 / var_t] - mean_t mean_t' [-(z_t' - mu_t)^2 / var_t]. The mean over t'
    is exactly ((mean z - mu_t)^2 + var z) / var_t, so H^2 pairs cost O(H).
    [released] Without CLUB's factor 1/2, and averaged over the dimensions of z, not summed.
    """
    weight = mask[..., None]
    count = jnp.maximum(weight.sum(axis=-2, keepdims=True), 1)
    centre = (z * weight).sum(axis=-2, keepdims=True) / count
    scatter = (jnp.square(z - centre) * weight).sum(axis=-2, keepdims=True) / count
    unmatched = jnp.square(centre - mean) + scatter
    return _mean_over(((unmatched - jnp.square(z - mean)) / variance).mean(axis=-1), mask)


def prediction_error(
    predicted: Float[Array, "... N"], target: Float[Array, "... N"]
) -> Float[Array, ""]:
    """UNICORN-SS: squared error of the predicted change of state and reward.

    [released] UNICORN's own code has a Gaussian likelihood; ER-TRL's has this.
    """
    return jnp.square(predicted - target).mean()


def task_cross_entropy(logits: Float[Array, "T C N"], task: Int[Array, "T"]) -> Float[Array, ""]:
    """UNICORN-SUP: -log p(task | z), averaged over tasks and contexts."""
    log_p = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_p, task[:, None, None], axis=-1).mean()


def prototype_logits(
    z: Float[Array, "T C Z"], prototypes: Float[Array, "N Z"], radius: float
) -> Float[Array, "T C N"]:
    """DORA, SPC: InfoNCE's scores -|z - p_k| / radius; `task_cross_entropy` of them is InfoNCE.

    [released] SPC's code asks which code is nearest to a prototype, and counts the match twice.
    """
    d2 = jnp.square(z[:, :, None] - prototypes).sum(axis=-1)
    return -jnp.sqrt(d2 + 1e-6) / radius  # finite slope where z is its prototype


def debiasing(z: Float[Array, "..."]) -> Float[Array, ""]:
    """DORA: the bound on what z tells of the data's actions, KL(N(z, I) || N(0, I)).

    [released] As SPC's code has it for codes without a variance: z^2, averaged over dimensions.
    """
    return jnp.square(z).mean()


def window_error(
    predicted: Float[Array, "W *b N"],
    target: Float[Array, "W *b N"],
    mask: Float[Array, "W *b"],
    rho: float,
) -> Float[Array, ""]:
    """SPC: squared error of a prediction t steps ahead, weighted by rho^t.

    Steps behind an episode's end do not count; in the released code there are none.
    """
    decay = (rho ** jnp.arange(len(mask))).reshape(-1, *(1,) * (mask.ndim - 1))
    return _mean_over(decay * jnp.square(predicted - target).mean(axis=-1), mask)


def kl_to_standard_normal(
    mean: Float[Array, "*b Z"], variance: Float[Array, "*b Z"]
) -> Float[Array, "*b"]:
    """PEARL: KL(N(mean, variance) || N(0, I)), summed over dimensions."""
    return 0.5 * (variance + jnp.square(mean) - 1 - jnp.log(variance)).sum(axis=-1)


def temporal_difference(
    reward: Float[Array, "..."],
    terminated: Float[Array, "..."],
    next_value: Float[Array, "..."],
    discount: float,
) -> Float[Array, "..."]:
    """y, Eq. (critic): r + gamma (1 - terminated) V(s'). Time-outs bootstrap.

    [released] The paper writes a minus sign before gamma.
    """
    return reward + discount * (1 - terminated) * next_value


def twin_error(
    q1: Float[Array, "..."], q2: Float[Array, "..."], y: Float[Array, "..."]
) -> Float[Array, ""]:
    """L_Q, Eq. (critic): squared errors of both critics."""
    return jnp.square(q1 - y).mean() + jnp.square(q2 - y).mean()


def dual_kl(c_policy: Float[Array, "..."], c_data: Float[Array, "..."]) -> Float[Array, "..."]:
    """BRAC's dual estimate of KL(pi || beta) per row: log g(a~) - g(a) + 1 with g = softplus(c).

    For any c its mean is at most the divergence; the dual critic c is trained to make it tight.
    """
    return jnp.log(jax.nn.softplus(c_policy) + 1e-8) - jax.nn.softplus(c_data) + 1


def gaussian_kl(
    mean: Float[Array, "... A"],
    log_std: Float[Array, "... A"],
    other_mean: Float[Array, "... A"],
    other_log_std: Float[Array, "... A"],
) -> Float[Array, "..."]:
    """KL between two diagonal Gaussians, and so between their images under tanh."""
    variance_ratio = jnp.exp(2 * (log_std - other_log_std))
    shift = jnp.square((mean - other_mean) * jnp.exp(-other_log_std))
    return 0.5 * (variance_ratio + shift - 1 - 2 * (log_std - other_log_std)).sum(axis=-1)


def td3bc_actor(
    q: Float[Array, "..."],
    action: Float[Array, "... A"],
    data_action: Float[Array, "... A"],
    weight: float,
) -> Float[Array, ""]:
    """TD3+BC: -weight Q / mean|Q| + (pi(s) - a)^2."""
    scale = weight / (jax.lax.stop_gradient(jnp.abs(q).mean()) + 1e-8)
    return -scale * q.mean() + jnp.square(action - data_action).mean()


def expectile_error(difference: Float[Array, "..."], expectile: float) -> Float[Array, ""]:
    """IQL: |expectile - 1(difference < 0)| difference^2, least where V is that expectile of Q."""
    weight = jnp.where(difference < 0, 1 - expectile, expectile)
    return (weight * jnp.square(difference)).mean()


def advantage_weight(
    advantage: Float[Array, "..."], temperature: float, weight_max: float
) -> Float[Array, "..."]:
    """IQL: min(exp(temperature x advantage), weight_max), without overflow."""
    return jnp.exp(jnp.minimum(temperature * advantage, jnp.log(weight_max)))

"""Slow, plain twins of the equations, in NumPy and SciPy, written from the papers.

Nothing here imports the package: whoever doubts an equation reads it here in loops and scalars.
Equation names are the labels of the ER-TRL paper (Nakhaei et al., 2025).
"""

import numpy as np
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

# --- representation learning ---


def distance_metric(z, task, positive_epsilon, negative_epsilon, beta):
    """Eq. (focal), pair by pair; the distance is the mean over dimensions of the squares."""
    z = np.asarray(z, np.float64)
    pulls, pushes = [], []
    for i in range(len(z)):
        for j in range(i + 1, len(z)):
            distance = sum((a - b) ** 2 for a, b in zip(z[i], z[j], strict=True)) / z.shape[1]
            if task[i] == task[j]:
                pulls.append((distance + positive_epsilon) ** 0.5)
            else:
                pushes.append(1 / (distance + negative_epsilon))
    pull = sum(pulls) / len(pulls) if pulls else 0.0
    push = sum(pushes) / len(pushes) if pushes else 0.0
    return pull + beta * push


def discriminator_loss(real_logit, fake_logit):
    """Eq. (discrimantor_objective) with D the probability of being real."""
    real, fake = np.asarray(real_logit, np.float64), np.asarray(fake_logit, np.float64)
    log_d_real = np.log(expit(real))
    log_one_minus_d_fake = np.log(expit(-fake))  # 1 - expit(x) = expit(-x), without cancellation
    return -log_d_real.mean() - log_one_minus_d_fake.mean()


def generator_loss(fake_logit):
    """Eq. (generator_objective) with the sign that fools the discriminator."""
    return -np.log(expit(np.asarray(fake_logit, np.float64))).mean()


def action_entropy(actions, ridge):
    """Eq. (entropy_samples), a Gaussian per task; SciPy knows its entropy."""
    entropies = []
    for of_task in np.asarray(actions, np.float64):
        covariance = np.atleast_2d(np.cov(of_task, rowvar=False)) + ridge * np.eye(of_task.shape[1])
        entropies.append(multivariate_normal(cov=covariance).entropy())
    return np.array(entropies)


def mutual_information(actions, ridge):
    """Eq. (mi_loss): the more entropy, the less z tells about who acted."""
    return -action_entropy(actions, ridge).mean()


def encode(net, context, next_observation):
    """Eq. (encoder), one transition after the other."""
    rows = context.reward.shape[:-1]
    z = np.zeros((*rows, len(net.biases[-1])))
    for row in np.ndindex(*rows):
        codes = []
        for h in range(context.reward.shape[-1]):
            if context.mask[(*row, h)]:
                parts = [
                    context.observation[(*row, h)],
                    context.action[(*row, h)],
                    [context.reward[(*row, h)]],
                ]
                if next_observation:
                    parts.append(context.next_observation[(*row, h)])
                codes.append(np.tanh(mlp(net, np.concatenate(parts))))
        if codes:
            z[row] = np.mean(codes, axis=0)
    return z


# --- networks ---


def mlp(net, *inputs):
    """Any object with `weights` and `biases`; ReLU between the layers, normalised before it."""
    x = np.concatenate(inputs, axis=-1)
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        x = x @ np.asarray(weight) + np.asarray(bias)
        if getattr(net, "layer_norm", False):
            x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        x = np.maximum(x, 0)
    return x @ np.asarray(net.weights[-1]) + np.asarray(net.biases[-1])


def for_rows(z, batch_size):
    """Every row of a task's batch gets that task's z: [T, Z] -> [T, B, Z]."""
    return np.stack([np.stack([of_task] * batch_size) for of_task in np.asarray(z)])


def twin_error(critic, s, a, z, y):
    """Squared errors of two critics."""
    zs = for_rows(z, s.shape[1])
    nets = critic.first, critic.second
    return sum(((mlp(q, s, a, zs)[..., 0] - y) ** 2).mean() for q in nets)


def tanh_gaussian_log_density(u, mean, log_std):
    """Change of variables a = tanh(u): log N(u) - sum log |da/du|, with da/du = 1 / cosh(u)^2."""
    u = np.asarray(u, np.float64)
    log_cosh = np.logaddexp(u, -u) - np.log(2)
    return (norm.logpdf(u, mean, np.exp(log_std)) + 2 * log_cosh).sum(axis=-1)


def gaussian_policy(net, log_std_range, *inputs):
    """Mean and log-std (before tanh) of a network with twice as many outputs as actions."""
    out = mlp(net, *inputs)
    k = out.shape[-1] // 2
    return out[..., :k], np.minimum(np.maximum(out[..., k:], log_std_range[0]), log_std_range[1])


# --- actor and critic ---


def td_target(reward, terminated, next_value, discount):
    """y of Eq. (critic), with the sign of every other paper, row by row."""
    y = np.zeros(np.shape(reward))
    for i in np.ndindex(*y.shape):
        y[i] = reward[i] if terminated[i] else reward[i] + discount * next_value[i]
    return y


def dual_kl(c_policy, c_data):
    """BRAC: KL(pi || beta) >= E_pi[log g] - E_beta[g] + 1 for every g > 0; g = log(1 + e^c)."""
    g_policy = np.logaddexp(0, np.asarray(c_policy, np.float64))
    g_data = np.logaddexp(0, np.asarray(c_data, np.float64))
    return np.log(g_policy + 1e-8) - g_data + 1


def kl_of_gaussians(mean_p, std_p, mean_q, std_q):
    """KL(N(mean_p, std_p^2) || N(mean_q, std_q^2))."""
    return np.log(std_q / std_p) + (std_p**2 + (mean_p - mean_q) ** 2) / (2 * std_q**2) - 0.5


def td3bc_actor(q, action, data_action, weight):
    """TD3+BC: -weight Q / mean|Q| + (pi(s) - a)^2, where mean|Q| is only a scale."""
    q = np.asarray(q, np.float64)
    return -weight * q.mean() / np.abs(q).mean() + np.mean(
        (np.asarray(action, np.float64) - data_action) ** 2
    )


def expectile_error(difference, expectile):
    """IQL, row by row: what lies above counts `expectile`, what lies below the rest of 1."""
    rows = np.ravel(np.asarray(difference, np.float64))
    return np.mean([(expectile if d >= 0 else 1 - expectile) * d * d for d in rows])


def advantage_weight(advantage, temperature, weight_max):
    """IQL: exp(temperature x advantage), at most weight_max."""
    with np.errstate(over="ignore"):
        return np.minimum(np.exp(temperature * np.asarray(advantage, np.float64)), weight_max)


def slope_penalty(c, actions, step=1e-5):
    """BRAC: mean over rows of max(|dc/da| - 1, 0)^2, the slope by central differences.

    `c` maps actions [..., A] to values [...], row by row.
    """
    slopes = np.zeros(np.shape(actions))
    for k in range(slopes.shape[-1]):
        nudge = np.zeros(slopes.shape[-1])
        nudge[k] = step
        slopes[..., k] = (c(actions + nudge) - c(actions - nudge)) / (2 * step)
    return np.mean(np.maximum(np.sqrt((slopes**2).sum(axis=-1)) - 1, 0) ** 2)


def size_penalty(c, actions):
    """The released BRAC: mean over rows of max(|c| - 1, 0)^2, the value in place of the slope."""
    return np.mean(np.maximum(np.abs(c(actions)) - 1, 0) ** 2)


def projected_alpha(alpha, divergence, target, rate, largest):
    """Gradient ascent on alpha (KL - target), projected into [0, largest] after each step."""
    return min(max(alpha + rate * (divergence - target), 0.0), largest)


def soft_update(target, source, tau):
    """omega_bar <- tau omega + (1 - tau) omega_bar."""
    return tau * np.asarray(source) + (1 - tau) * np.asarray(target)


def first_adam_step(gradient, learning_rate, epsilon=1e-8):
    """Adam's first step: both bias-corrected moments are those of the gradient itself."""
    g = np.asarray(gradient, np.float64)
    return -learning_rate * g / (np.sqrt(g**2) + epsilon)


# --- adaptation protocols ---


def protocol(name, horizon, episodes, prior_episodes, length):
    """What stands behind z in each evaluation episode of one task, in steps and loops.

    Every episode of the task, whoever acts, lasts `length` <= horizon steps. Returns one dict per
    evaluation episode with the transitions of its context by origin, and the steps explored.
    """
    budget, threshold = episodes * horizon, prior_episodes * horizon
    context = {"dataset": 0, "agent": 0, "random": 0, "policy": 0}
    behind_z = dict(context)
    evaluated = explored = 0
    reports = []
    while evaluated < budget:
        if name == "offline":
            context["dataset"] += horizon
            behind_z = dict(context)
        if name == "non-prior":
            gathered = 0
            while gathered < horizon:
                counter = evaluated  # restarts here in every rollout of the block
                for _ in range(length):
                    context["random" if counter < budget / 2 else "policy"] += 1
                    counter += 1
                gathered += length
            explored += gathered
        reports.append(dict(behind_z))
        evaluated += length
        if name == "online":
            context["agent"] += length
        if name != "offline" and evaluated >= threshold:
            behind_z = dict(context)
    return reports, evaluated + explored


# --- the other methods' losses ---


def entropy_per_state(actions, ridge):
    """Eq. (entropy_samples) with a Gaussian in every state: [T, S, M, A] -> [T]."""
    return np.array([action_entropy(of_task, ridge).mean() for of_task in actions])


def club_net(net, context):
    """CSRO's q(z | s, a): tanh on both halves of the output, softplus for the variance."""
    out = np.tanh(mlp(net, context.observation, context.action))
    mean, raw = np.split(out, 2, axis=-1)
    return mean, np.log1p(np.exp(raw))


def club_likelihood(z, mean, variance, mask):
    """-log N(z; mean, variance) averaged over dimensions, up to its constant."""
    surprises = []
    for place in np.argwhere(np.asarray(mask) > 0):
        z_t, mean_t, variance_t = (x[tuple(place)] for x in (z, mean, variance))
        log_density = norm.logpdf(z_t, mean_t, np.sqrt(variance_t))
        surprises.append(-(log_density + 0.5 * np.log(2 * np.pi)).mean())
    return np.mean(surprises)


def club_bound(z, mean, variance, mask):
    """Matched pairs against all pairs (t, t') of a context, one by one."""
    values = []
    for context in np.ndindex(*np.shape(mask)[:-1]):
        slots = np.flatnonzero(np.asarray(mask)[context])
        for t in slots:
            mean_t, variance_t = mean[context][t], variance[context][t]

            def score(z_t, mean_t=mean_t, variance_t=variance_t):
                return -np.mean((z_t - mean_t) ** 2 / variance_t)

            unmatched = [score(z[context][other]) for other in slots]
            values.append(score(z[context][t]) - np.mean(unmatched))
    return np.mean(values)


def cross_entropy(logits, task):
    """-log of the softmax probability of the right task; logits [T, C, N]."""
    values = []
    for of_task, number in zip(np.asarray(logits, np.float64), task, strict=True):
        for row in of_task:
            p = np.exp(row - row.max())
            values.append(-np.log(p[number] / p.sum()))
    return np.mean(values)


def product_of_gaussians(means, variances):
    """Density of z up to a constant, one factor at a time: [H, Z] -> mean and variance."""
    mean, variance = means[0], variances[0]
    for m, v in zip(means[1:], variances[1:], strict=True):
        mean, variance = (mean * v + m * variance) / (variance + v), variance * v / (variance + v)
    return mean, variance


def kl_to_standard_normal(mean, variance):
    """KL(N(mean, variance) || N(0, I)) by integration of each dimension on a grid."""
    total = 0.0
    for m, v in zip(mean, variance, strict=True):
        x = np.linspace(m - 12 * np.sqrt(v), m + 12 * np.sqrt(v), 20_001)
        p = norm.pdf(x, m, np.sqrt(v))
        log_ratio = norm.logpdf(x, m, np.sqrt(v)) - norm.logpdf(x)
        total += np.trapezoid(p * log_ratio, x)
    return total


# --- DORA, SPC, GENTLE ---


def info_nce(codes, task, prototypes, radius):
    """One code after the other: minus the log of its own prototype's share."""
    terms = []
    for of_task, own in zip(codes, task, strict=True):
        for z in of_task:
            near = [np.exp(-np.sqrt(((z - p) ** 2).sum() + 1e-6) / radius) for p in prototypes]
            terms.append(-np.log(near[own] / sum(near)))
    return np.mean(terms)


def moved_prototypes(prototypes, codes, task, rate):
    """(1 - rate) old + rate new, for the tasks of the batch."""
    moved = np.array(prototypes, np.float64)
    for of_task, own in zip(codes, task, strict=True):
        moved[own] = (1 - rate) * moved[own] + rate * np.mean(of_task, axis=0)
    return moved


def world_errors(world, target, windows, z, rho):
    """SPC's consistency and reward loss, window by window and step by step."""
    consistency, reward, count = 0.0, 0.0, 0.0
    for row in np.ndindex(*windows.reward.shape[:2]):
        latent = mlp(world.state, windows.observation[(*row, 0)])
        for t in range(windows.reward.shape[2]):
            at = (*row, t)
            inputs = (latent, windows.action[at], z[row[0]])
            latent, guess = latent + mlp(world.change, *inputs), mlp(world.reward, *inputs)
            if windows.mask[at]:
                goal = mlp(target, windows.next_observation[at])
                consistency += rho**t * np.mean((latent - goal) ** 2)
                reward += rho**t * (guess[0] - windows.reward[at]) ** 2
                count += 1
    return consistency / count, reward / count

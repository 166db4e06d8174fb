"""How the task is inferred, one transition at a time: sums, and a small function of them.

A kind of inference is a frozen description that `arrays` and JSON (`settings`) can hold; `fits`
says which transitions it takes, `scaled` gives the same for inputs that are standardised first.
`begin` gives a belief that knows nothing yet; it grows with `add` and can be read at any time:

- `z` is what the agent acts on, [Z];
- `uncertainty` is how far z is expected to be off, against how far at the beginning: 1 where
  nothing is known, towards 0 as experience grows. It counts transitions as independent and
  believes in the model: with a high surprise, z is not to be trusted however low it is;
- `surprise` is how badly the latest transitions were predicted, in units of the error that is
  usual in training tasks and with as little known of z: about 1 where all is well, several times
  that in a task outside of what is known. None where nothing is predicted.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ertrl.runtime.layers import MLP, Arrays

Transition = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""(s [O], a [A], r [1], s' [O])."""
RECENT = 20
"""Transitions that surprise looks back on: one counts 1 / RECENT, and less with each later one."""


@dataclass(frozen=True)
class OfCodes:
    """What the encoders share: a network that looks at (s, a, r) or at (s, a, r, s')."""

    net: MLP
    next_observation: bool
    codes: ClassVar[int] = 1
    """Numbers of the network's output per number of z."""

    @property
    def latent_dim(self) -> int:
        return self.net.outputs // self.codes

    def fits(self, observation: int, action: int) -> bool:
        wide = observation * (2 if self.next_observation else 1) + action + 1
        return self.net.inputs == wide and self.net.outputs % self.codes == 0

    def output(self, transition: Transition) -> np.ndarray:
        return self.net(np.concatenate(transition if self.next_observation else transition[:3]))

    def scaled(
        self, mean: np.ndarray, deviation: np.ndarray, reward_mean: Any, reward_deviation: Any
    ):
        actions = self.net.inputs - 1 - len(mean) * (2 if self.next_observation else 1)
        centre = np.concatenate([mean, np.zeros(actions), [reward_mean], mean])
        scale = np.concatenate([deviation, np.ones(actions), [reward_deviation], deviation])
        seen = self.net.inputs
        return replace(self, net=self.net.scaled(centre[:seen], scale[:seen]))

    def settings(self) -> dict[str, Any]:
        return {"next_observation": self.next_observation, "layer_norm": self.net.layer_norm}

    def arrays(self) -> Arrays:
        return self.net.arrays("encoder")

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: Arrays):
        net = MLP.of_arrays(arrays, "encoder", bool(settings["layer_norm"]))
        return cls(net, bool(settings["next_observation"]))


@dataclass(frozen=True)
class Mean(OfCodes):
    """z = mean of tanh(net(transition))."""

    kind = "mean"

    def begin(self) -> "MeanBelief":
        return MeanBelief(self)


class MeanBelief:
    """A running mean of codes and of their squares."""

    surprise = None

    def __init__(self, of: Mean):
        self._of, self._count = of, 0
        self._total, self._squares = np.zeros((2, of.latent_dim))

    def add(self, transition: Transition) -> None:
        code = np.tanh(self._of.output(transition))
        self._count += 1
        self._total += code
        self._squares += code.astype(np.float64) ** 2

    @property
    def z(self) -> np.ndarray:
        return self._total / max(self._count, 1)

    @property
    def uncertainty(self) -> float:
        """The mean's standard error. Codes lie in [-1, 1], so 1 is the most they can spread."""
        n = self._count
        if n < 2:
            return 1.0
        spread = np.maximum(self._squares - self._total**2 / n, 0) / (n - 1)
        return float(np.sqrt(spread.mean() / n))


@dataclass(frozen=True)
class Gaussian(OfCodes):
    """Each transition votes with a Gaussian; their product is the belief, N(0, I) without any."""

    kind = "gaussian"
    codes = 2

    def begin(self) -> "GaussianBelief":
        return GaussianBelief(self)


class GaussianBelief:
    """Running sums of the votes' precisions, and of their means weighted by them."""

    surprise = None

    def __init__(self, of: Gaussian):
        self._of, self._known = of, False
        self._weighted, self._precision = np.zeros((2, of.latent_dim))

    def add(self, transition: Transition) -> None:
        mean, raw = np.split(self._of.output(transition).astype(np.float64), 2)
        vote = 1 / np.maximum(np.logaddexp(raw, 0), 1e-7)
        self._precision += vote
        self._weighted += vote * mean
        self._known = True

    @property
    def variance(self) -> np.ndarray:
        return 1 / self._precision if self._known else np.ones_like(self._precision)

    @property
    def z(self) -> np.ndarray:
        return self.variance * self._weighted

    @property
    def uncertainty(self) -> float:
        """The posterior's standard deviation."""
        return float(np.sqrt(self.variance.mean()))


@dataclass(frozen=True)
class LeastSquares:
    """z = posterior mean of w ~ N(0, I) in y = b(x) + Phi(x) w + noise, kept within +-clip.

    x and y are parts of the standardised columns (s, a, s' - s, r): y the last `targets` of them.
    With `trust`, a transition counts less if what is left of its y has a larger mean square before
    anything is known. With `at_most`, n transitions count as n / (1 + n / at_most): the noise's
    variance grows with n. With a prior, w = prior_mean + prior_root u and u ~ N(0, I).

    The noise is larger than what the model really leaves open, so that z changes with care. What
    that is in training tasks, `residual` says; 0: not known, and taken for the noise.
    """

    net: MLP
    targets: int
    centre: np.ndarray
    scale: np.ndarray
    noise: float
    clip: float
    trust: float = 0.0
    at_most: float = 0.0
    prior_mean: np.ndarray | None = None
    prior_root: np.ndarray | None = None
    residual: float = 0.0
    kind: ClassVar[str] = "least-squares"

    @property
    def latent_dim(self) -> int:
        return self.net.outputs // self.targets - 1

    def fits(self, observation: int, action: int) -> bool:
        columns = 2 * observation + action + 1
        return (
            self.targets in (1, observation + 1)
            and self.centre.shape == self.scale.shape == (columns,)
            and self.net.inputs == columns - self.targets
            and self.net.outputs % self.targets == 0
            and self.latent_dim > 0
            and self.noise**2 > 0
            and self.clip > 0
            and 0 <= self.trust < np.inf
            and 0 <= self.at_most < np.inf
            and 0 <= self.residual < np.inf
            and bool((self.scale > 0).all())
            and (self.prior_mean is None) == (self.prior_root is None)
            and (self.prior_mean is None or self.prior_mean.shape == (self.latent_dim,))
            and (self.prior_root is None or self.prior_root.shape == (self.latent_dim,) * 2)
        )

    def scaled(
        self, mean: np.ndarray, deviation: np.ndarray, reward_mean: Any, reward_deviation: Any
    ) -> "LeastSquares":
        actions = len(self.centre) - 1 - 2 * len(mean)
        idle = np.zeros(actions + len(mean))  # neither actions nor changes of state are shifted
        centre = np.concatenate([mean, idle, [reward_mean]])
        scale = np.concatenate([deviation, np.ones(actions), deviation, [reward_deviation]])
        return replace(
            self,
            centre=(centre + scale * self.centre).astype(np.float32),
            scale=(scale * self.scale).astype(np.float32),
        )

    def settings(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("targets", "noise", "clip")}
        used = {k: v for k in ("trust", "at_most", "residual") if (v := getattr(self, k))}
        return {**own, **used, "layer_norm": self.net.layer_norm}

    def arrays(self) -> Arrays:
        arrays = {**self.net.arrays("features")}
        arrays |= {"columns.centre": self.centre, "columns.scale": self.scale}
        if self.prior_mean is not None and self.prior_root is not None:
            arrays |= {"prior.mean": self.prior_mean, "prior.root": self.prior_root}
        return arrays

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: Arrays) -> "LeastSquares":
        return cls(
            net=MLP.of_arrays(arrays, "features", bool(settings["layer_norm"])),
            targets=int(settings["targets"]),
            centre=arrays["columns.centre"],
            scale=arrays["columns.scale"],
            noise=float(settings["noise"]),
            clip=float(settings["clip"]),
            trust=float(settings.get("trust", 0.0)),
            at_most=float(settings.get("at_most", 0.0)),
            prior_mean=arrays.get("prior.mean"),
            prior_root=arrays.get("prior.root"),
            residual=float(settings.get("residual", 0.0)),
        )

    def begin(self) -> "Posterior":
        return Posterior(self)

    def features(self, transition: Transition) -> tuple[np.ndarray, np.ndarray]:
        """Phi [targets, Z] and y - b [targets], in double precision; those of u with a prior."""
        s, a, r, s2 = transition
        columns = (np.concatenate((s, a, s2 - s, r)) - self.centre) / self.scale
        x, y = columns[: -self.targets], columns[-self.targets :]
        out = self.net(x).astype(np.float64).reshape(self.targets, -1)
        phi, rest = np.tanh(out[:, :-1]), y - out[:, -1]
        if self.prior_root is not None:
            phi, rest = phi @ self.prior_root, rest - phi @ self.prior_mean
        return phi, rest

    def bounded(self, w: np.ndarray) -> np.ndarray:
        """The z of a w, or of a u with a prior."""
        if self.prior_root is not None:
            w = self.prior_mean + self.prior_root @ w
        return np.clip(w, -self.clip, self.clip)

    def spread(self, covariance: np.ndarray) -> np.ndarray:
        """The covariance of w, given that of u if there is a prior."""
        root = self.prior_root
        return covariance if root is None else root @ covariance @ root.T

    def weight(self, rest: np.ndarray) -> float:
        """How much a transition counts that leaves so much of its targets open."""
        return self.trust / max(float((rest * rest).mean()), self.trust) if self.trust else 1.0


class Posterior:
    """Recursive least squares: u, and the inverse of A = S + variance I with S = sum Phi^T Phi.

    As the noise is not the residual, the posterior's covariance is not how far u is off: with
    errors of variance r that is A^-1 (r S + variance^2 I) A^-1, for u ~ N(0, I).
    """

    def __init__(self, of: LeastSquares):
        self._of, self._count, self._missed = of, 0, 0.0
        self._variance, d = of.noise**2, of.latent_dim
        self._residual = (of.residual or of.noise) ** 2
        self._u, self._products = np.zeros((2, d))
        self._squares = np.zeros((d, d))
        self._inverse = np.eye(d) / self._variance

    def add(self, transition: Transition) -> None:
        phi, rest = self._of.features(transition)
        self.update(phi, rest, self._of.weight(rest))

    def update(self, phi: np.ndarray, rest: np.ndarray, weight: float = 1.0) -> None:
        """Take in what `features` gave."""
        error, reach = rest - phi @ self._u, phi @ self._inverse
        of_u = self._residual * (reach @ self._squares) + self._variance**2 * reach
        expected = self._residual + (of_u * reach).sum(axis=-1)
        self._count += 1
        missed = float((error * error / expected).mean())
        self._missed += (missed - self._missed) / min(self._count, RECENT)
        self._squares += weight * phi.T @ phi
        if len(phi) == 1 and not self._of.at_most:  # rank one
            gain = weight * reach[0] / (1 + weight * float(reach[0] @ phi[0]))
            self._inverse -= gain[:, None] * reach
            self._u += gain * error[0]
            return
        if self._of.at_most:
            self._variance += weight * self._of.noise**2 / self._of.at_most
        self._products += weight * rest @ phi
        self._inverse = np.linalg.inv(self._squares + self._variance * np.eye(len(self._u)))
        self._u = self._inverse @ self._products

    @property
    def z(self) -> np.ndarray:
        return self._of.bounded(self._u)

    @property
    def covariance(self) -> np.ndarray:
        """Of w, if the noise were real: what exploring draws from."""
        return self._of.spread(self._variance * self._inverse)

    @property
    def uncertainty(self) -> float:
        """Root mean square error that is expected of z, in directions as tasks differ in them.

        Errors that are larger than usual leave more open.
        """
        residual = self._residual * max(self._missed, 1.0)
        middle = residual * self._squares + self._variance**2 * np.eye(len(self._u))
        off = self._of.spread(self._inverse @ middle @ self._inverse)
        tasks = self._of.spread(np.eye(len(self._u)))
        return float(np.sqrt((tasks * off).sum() / (tasks * tasks).sum()))

    @property
    def surprise(self) -> float | None:
        """Size of the latest errors of prediction, against what was to be expected."""
        return None if not self._count else float(np.sqrt(self._missed))


Inference = Mean | Gaussian | LeastSquares
Belief = MeanBelief | GaussianBelief | Posterior
KINDS = {kind.kind: kind for kind in (Mean, Gaussian, LeastSquares)}
"""By the name that files give it."""

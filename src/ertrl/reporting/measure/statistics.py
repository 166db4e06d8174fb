"""Statistics over seeds. Standard deviations use n - 1; one seed never gets an interval."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats as scipy_stats

LEVEL = 0.95
RESAMPLES = 2_000
BOOTSTRAP_SEED = 20_250
MIN_BOOTSTRAP_SEEDS = 3
"""A percentile bootstrap of two seeds has three possible outcomes: that is not an interval."""


class Estimate(NamedTuple):
    """A value with its uncertainty over seeds, where there is one to speak of."""

    value: float
    n: int
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval: the number after the plus-minus sign."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def mean_estimate(values: Sequence[float] | np.ndarray) -> Estimate:
    """Mean over seeds with Student's t interval; no interval for a single seed."""
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not x.size:
        raise ValueError(f"one number per seed, at least one, is needed; got shape {x.shape}")
    mean, n = float(x.mean()), x.size
    if n < 2:
        return Estimate(mean, n)
    half = float(scipy_stats.t.ppf((1 + LEVEL) / 2, n - 1) * x.std(ddof=1) / np.sqrt(n))
    return Estimate(mean, n, mean - half, mean + half)


def estimate_of(values: Collection[float]) -> Estimate | None:
    """The same of what may not have been measured at all."""
    return mean_estimate(list(values)) if values else None


class Difference(NamedTuple):
    """Mean of the one minus mean of the other, by Welch's unequal-variances t-test."""

    value: float
    low: float
    high: float
    p: float
    """Two-sided, of this comparison alone; see `holm` for several."""


def welch(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """Compare two samples of seeds; None where they cannot be: under two seeds or no variance."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if min(x.size, y.size) < 2 or (np.ptp(x) == 0 and np.ptp(y) == 0):
        return None
    test = scipy_stats.ttest_ind(x, y, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    return Difference(float(x.mean() - y.mean()), float(low), float(high), float(test.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: compare the results with the level as if there were one test."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted.tolist()


def drawn_seeds(counts: Sequence[int]) -> list[np.ndarray]:
    """Which of so many seeds each resample draws, apart for every count: [resamples, seeds]."""
    draw = np.random.default_rng(BOOTSTRAP_SEED)
    return [draw.integers(count, size=(RESAMPLES, count)) for count in counts]


def resampled(strata: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Bootstrap every stratum [seeds, ...] on its own: [resamples, seeds, ...] each.

    A stratum is a family. Its tasks are not strata of their own, because one agent serves them
    all: a seed that is bad at one task tends to be bad at the next, and drawing tasks apart from
    each other would promise more certainty than there is. So a seed is drawn with all its tasks.
    """
    return [s[seeds] for s, seeds in zip(strata, drawn_seeds([*map(len, strata)]), strict=True)]


def _with_interval(value: float, n: int, outcomes: np.ndarray) -> Estimate:
    if n < MIN_BOOTSTRAP_SEEDS:
        return Estimate(value, n)
    low, high = np.quantile(outcomes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, n, float(low), float(high))


def iqm_estimate(strata: Sequence[np.ndarray]) -> Estimate:
    """Interquartile mean over all seeds and tasks of all strata [seeds, tasks]."""
    value = float(scipy_stats.trim_mean(np.concatenate([s.ravel() for s in strata]), 0.25))
    drawn = [d.reshape(RESAMPLES, -1) for d in resampled(strata)]
    outcomes = scipy_stats.trim_mean(np.concatenate(drawn, axis=1), 0.25, axis=-1)
    return _with_interval(value, min(len(s) for s in strata), outcomes)


def profile(strata: Sequence[np.ndarray], levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Performance profile: the share of seeds and tasks whose return exceeds each level.

    Also its band [2, levels] of 95%, by the bootstrap over seeds; NaN with too few of them.
    """
    pooled = np.concatenate([s.ravel() for s in strata])
    share = (pooled[:, None] > levels).mean(axis=0)
    if min(len(s) for s in strata) < MIN_BOOTSTRAP_SEEDS:
        return share, np.full((2, len(levels)), np.nan)
    drawn = np.concatenate([d.reshape(RESAMPLES, -1) for d in resampled(strata)], axis=1)
    outcomes = np.stack([(drawn > level).mean(axis=1) for level in levels], axis=1)
    return share, np.quantile(outcomes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)


def pearson(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """The coefficient and its two-sided p-value.

    None with fewer than three points or without variance: then there is nothing to say.
    """
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    found = scipy_stats.pearsonr(x, y)
    return float(found.statistic), float(found.pvalue)


def improvement_estimate(x: np.ndarray, y: np.ndarray) -> Estimate:
    """P(a seed of x [seeds, tasks] beats one of y [other seeds, tasks] on the same task).

    Mean over tasks; ties count half. A seed is drawn with all its tasks, so all pairs of seeds are
    compared once, and resamples only count their wins.
    """
    won = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    wins, (one, other) = won.sum(axis=-1), drawn_seeds([len(x), len(y)])
    outcomes = wins[one[:, :, None], other[:, None, :]].sum(axis=(1, 2)) / won.size
    return _with_interval(float(won.mean()), min(len(x), len(y)), outcomes)

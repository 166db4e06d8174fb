"""Factorial experiments: what each switch does, alone and together with others."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import stats as scipy_stats

from ertrl.reporting.measure.statistics import LEVEL, Estimate


class Effect(NamedTuple):
    """Of one factor, averaged over the others; or of several, beyond what they do alone."""

    factors: tuple[str, ...]
    estimate: Estimate
    """`n` is the smallest number of seeds of a cell; without two in every cell, no interval."""


def effects(
    names: Sequence[str], cells: Mapping[tuple[bool, ...], Sequence[float]]
) -> list[Effect]:
    """Main effects and interactions of two-level factors, from the seeds of every cell.

    The effect of a factor is the mean with it minus the mean without it. That of two is half of how
    much the effect of one changes with the other, and so on. Intervals are Welch's: cells may vary
    unequally.
    """
    if len(cells) != 2 ** len(names):
        raise ValueError(f"{len(names)} factors have {2 ** len(names)} cells, got {len(cells)}")
    values = {levels: np.asarray(seeds, np.float64) for levels, seeds in cells.items()}
    share = 2 / len(cells)
    found = []
    for size in range(1, len(names) + 1):
        for chosen in combinations(range(len(names)), size):
            weights = {
                levels: share * float(np.prod([1 if levels[i] else -1 for i in chosen]))
                for levels in values
            }
            told = tuple(names[i] for i in chosen)
            found.append(Effect(told, _contrast(weights, values)))
    return found


def _contrast(
    weights: Mapping[tuple[bool, ...], float], values: Mapping[tuple[bool, ...], np.ndarray]
) -> Estimate:
    value = sum(weights[key] * x.mean() for key, x in values.items())
    fewest = min(len(x) for x in values.values())
    if fewest < 2:
        return Estimate(float(value), fewest)
    parts = np.array([weights[k] ** 2 * x.var(ddof=1) / len(x) for k, x in values.items()])
    counts = np.array([len(x) for x in values.values()])
    if not parts.sum():
        return Estimate(float(value), fewest, float(value), float(value))
    freedom = parts.sum() ** 2 / (parts**2 / (counts - 1)).sum()
    half = scipy_stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(parts.sum())
    return Estimate(float(value), fewest, float(value - half), float(value + half))

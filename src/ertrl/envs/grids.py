"""Where the tasks of a family lie: the paper's ranges and the released code's grid.

Both are lines for families with one number per task: a value per task, training tasks first, then
held-out tasks midway between two training ones, then tasks beyond the ends of the training range.
"""

import numpy as np

from ertrl.envs.family import PAPER_SPLIT, Split

RELEASED_SPLIT = Split(
    tuple(range(20)), tuple(range(20, 30)), tuple(range(30, 40)), tuple(range(40, 50))
)
"""As the paper's, with 10 tasks still further out that only the released code has."""

SPLITS = {"paper": PAPER_SPLIT, "released": RELEASED_SPLIT}


def paper_line(low: float, high: float, margin: float) -> np.ndarray:
    """20 values over [low, high], 10 between them, 5 + 5 that reach `margin` beyond the ends."""
    train = np.linspace(low, high, 20)
    between = (train[0:-1:2] + train[1::2]) / 2
    beyond = margin * np.arange(1, 6) / 5
    return np.concatenate([train, between, low - beyond, high + beyond])


def released_line(first: float, step: float) -> np.ndarray:
    """The released grid is first + step x k, k = 0 to 39, with the training tasks in its middle.

    It has no held-out tasks inside the training range; half steps serve as such.
    """
    train = np.arange(10, 30)
    between = np.arange(10, 30, 2) + 0.5
    moderate = np.r_[5:10, 30:35]
    extreme = np.r_[0:5, 35:40]
    return first + step * np.concatenate([train, between, moderate, extreme])

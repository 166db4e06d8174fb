"""Which tasks a family has: their groups, and where they lie.

The paper's ranges and the released code's grid are columns for families with one number per task: a
row per task, training tasks first, then held-out tasks midway between two training ones, then tasks
beyond the ends of the training range.
"""

from collections.abc import Sequence

import numpy as np

GROUP_TITLES = {
    "train": "Training tasks",
    "test-id": "Held-out tasks",
    "test-ood": "Out of distribution",
    "test-extreme": "Far out of distribution",
}
"""What a reader calls the groups of a split, in their order. Held-out tasks come from the same
distribution as training tasks; few splits have tasks far out."""

GROUPS = ("train", "test-id", "test-ood")
"""The groups that every split has."""


def group_title(group: str) -> str:
    """What a reader calls a group; logs of others may have groups of their own."""
    return GROUP_TITLES.get(group, group)


Split = dict[str, Sequence[int]]
"""Group -> its tasks. Every task stands in one group."""

PAPER_SPLIT: Split = {"train": range(20), "test-id": range(20, 30), "test-ood": range(30, 40)}
"""20 training tasks, 10 held-out in-distribution and 10 out-of-distribution test tasks."""

RELEASED_SPLIT: Split = PAPER_SPLIT | {"test-extreme": range(40, 50)}
"""As the paper's, with 10 tasks still further out that only the released code has."""


def paper_line(low: float, high: float, margin: float) -> np.ndarray:
    """20 values over [low, high], 10 between them, 5 + 5 that reach `margin` beyond the ends."""
    train = np.linspace(low, high, 20)
    between = (train[0:-1:2] + train[1::2]) / 2
    beyond = margin * np.arange(1, 6) / 5
    return np.concatenate([train, between, low - beyond, high + beyond])[:, None]


def released_line(first: float, step: float) -> np.ndarray:
    """The released grid is first + step x k, k = 0 to 39, with the training tasks in its middle.

    It has no held-out tasks inside the training range; half steps serve as such.
    """
    train = np.arange(10, 30)
    between = np.arange(10, 30, 2) + 0.5
    moderate = np.r_[5:10, 30:35]
    extreme = np.r_[0:5, 35:40]
    return first + step * np.concatenate([train, between, moderate, extreme])[:, None]

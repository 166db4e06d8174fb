"""Which tasks a family has: their groups, and where they lie.

The paper's ranges and the released code's grid are columns for families with one number per task: a
row per task, training tasks first, then held-out tasks midway between two training ones, then tasks
beyond the ends of the training range.
"""

from collections.abc import Sequence

import numpy as np

from ertrl.errors import ConfigError, unknown

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


def box_of_tasks(low: Sequence[float], high: Sequence[float], margin: float) -> np.ndarray:
    """20 tasks that fill a box, 10 others in it, and 10 on a larger box around it.

    That one is larger by `margin` times the half width, on all sides. For PAPER_SPLIT.
    """
    middle, half = np.add(low, high) / 2, np.subtract(high, low) / 2
    # Powers of the root of x^(d+1) = x + 1 spread points evenly: the plastic number, for d = 2.
    root = np.max(np.roots([1.0, *[0.0] * (len(low) - 1), -1.0, -1.0]).real)
    steps = root ** -np.arange(1.0, len(low) + 1)
    unit = 2 * ((0.5 + np.arange(1, 41)[:, None] * steps) % 1) - 1
    inside, outside = unit[:30], unit[30:]
    held_out = np.arange(30) % 3 == 2
    outside = (1 + margin) * outside / np.abs(outside).max(axis=1, keepdims=True)
    unit = np.concatenate([inside[~held_out], inside[held_out], outside])
    return middle + half * unit


HELD_OUT = 0.2
"""Share of tasks that stay unseen unless somebody says otherwise."""
FEWEST = 2
"""Training tasks that are left in any case: of one, nothing can be told apart."""


def split_tasks(
    names: Sequence[str],
    held_out: float | Sequence[str] | None = None,
    ood: Sequence[str] = (),
) -> dict[str, str]:
    """Task -> group. Held-out tasks by name, or as a share: evenly spread over the others."""
    held_out = HELD_OUT if held_out is None else held_out
    ood = [str(name) for name in ood]
    if isinstance(held_out, (int, float)):
        if not 0 <= held_out < 1:
            raise ConfigError(f"the share of held-out tasks lies between 0 and 1, got {held_out}")
        inside = [name for name in names if name not in ood]
        count = max(0, min(round(held_out * len(inside)), len(inside) - FEWEST))
        chosen = [inside[(2 * i + 1) * len(inside) // (2 * count)] for i in range(count)]
    else:
        chosen = [str(name) for name in held_out]
    for name in (*chosen, *ood):
        if name not in names:
            raise ConfigError(unknown("task", name, names))
    if both := sorted(set(chosen) & set(ood)):
        raise ConfigError(f"task {both[0]} is named as held-out and as out of distribution")
    groups = dict.fromkeys(names, "train")
    groups |= dict.fromkeys(chosen, "test-id") | dict.fromkeys(ood, "test-ood")
    left = sum(group == "train" for group in groups.values())
    if left < FEWEST:
        raise ConfigError(
            f"{left} of {len(names)} tasks are left to train on; at least {FEWEST} are needed, "
            "because an agent learns from how tasks differ"
        )
    return groups

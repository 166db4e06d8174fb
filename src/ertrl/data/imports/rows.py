"""The rows of somebody's logs: their tasks, episodes in order, everything wrong with them."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from ertrl.data.imports.columns import LogColumns
from ertrl.data.imports.common import Limit, outside, range_of_actions
from ertrl.data.writer import Episode
from ertrl.errors import ConfigError, DataError
from ertrl.runtime import ActionRange
from ertrl.shape import MOST_DIGITS

OTHER_UNITS = 0.02
"""Share of the range of all actions below which one task's own range is suspicious."""
FEW = 16
"""Transitions of a task, below which a context of the profile `logs`, of at least 4, is more than
the quarter of them that it should be: contexts of a task are hardly different ones."""


class Piece(NamedTuple):
    """Consecutive rows of one episode."""

    task: int
    rows: np.ndarray
    """Of the table, in the order of time; the last may be there for its observation only."""
    length: int
    terminated: bool
    policy: int


class LogRows(LogColumns):
    """Checked rows, and what had to be decided about them."""

    # --- actions ---

    def action_range(self, low: Limit, high: Limit) -> ActionRange:
        """The range that [-1, 1] stands for: as given, or that of the data."""
        actions = self.values["action"]
        span = range_of_actions((low, high), (actions.min(axis=0), actions.max(axis=0)))
        lowest, highest = span.low, span.high
        if not (np.abs([lowest, highest]) <= MOST_DIGITS).all():
            raise ConfigError(
                f"actions must lie within +-{MOST_DIGITS:.0e}, got limits of {lowest.tolist()} and "
                f"{highest.tolist()}"
            )
        if low is not None and high is not None and not (lowest < highest).all():
            raise ConfigError(f"action_low {low} is not below action_high {high}")
        wrong = outside(actions, span)
        if wrong.any() and "action" not in self._doubtful:
            told = f"an action lies outside of {lowest.tolist()} to {highest.tolist()}"
            self.problem(told, np.flatnonzero(wrong))
        ends = {"--action-low": low, "--action-high": high}
        if missing := " and ".join(name for name, end in ends.items() if end is None):
            self.notes.append(
                f"actions reach from {_short(lowest)} to {_short(highest)}, by the logs; if more "
                f"is possible, give {missing}"
            )
        self._compare_ranges(highest - lowest)
        still = lowest >= highest
        if still.any():
            which = ", ".join(map(str, np.flatnonzero(still)))
            self.notes.append(f"action {which} never changes; its range is taken as that +- 1")
        return ActionRange(
            np.where(still, lowest - 1, lowest), np.where(still, highest + 1, highest)
        )

    def _compare_ranges(self, whole: np.ndarray) -> None:
        """A task whose actions are tiny beside another's may have been logged in other units."""
        for task, label in enumerate(self.tasks):
            own = np.ptp(self.values["action"][self._task == task], axis=0)
            if ((own > 0) & (own < OTHER_UNITS * whole)).any():
                self.notes.append(
                    f"actions of task {label} span less than {OTHER_UNITS:.0%} of that range: are "
                    "they in the same units?"
                )

    # --- episodes ---

    def pieces(self, longest: int) -> list[Piece]:
        """All episodes, in pieces that one dataset episode can hold."""
        if longest < 1:
            raise ConfigError(f"longest must be at least 1 step, got {longest}")
        nothing = np.zeros(len(self._task))
        terminated, truncated = (
            self.values.get(role, nothing) != 0 for role in ("terminated", "truncated")
        )
        episode = self._episodes(terminated | truncated)
        step = self.values.get("step", np.arange(len(nothing)))
        order = np.lexsort((step, episode, self._task))
        starts = np.flatnonzero(
            np.r_[True, (np.diff(self._task[order]) != 0) | (np.diff(episode[order]) != 0)]
        )
        if "step" in self.values and "step" not in self._doubtful:
            self._check_steps(order, starts)
        policy = np.unique(self.values.get("policy", nothing), return_inverse=True)[1]
        pieces, late, counts = [], [], Counter()
        for rows in np.split(order, starts[1:]):
            late += rows[:-1][terminated[rows[:-1]]].tolist()
            for part in self._unbroken(rows, truncated, counts):
                over = bool(terminated[part[-1]])
                pieces += self._cut(part, over, policy, longest, counts)
        if late:
            self.problem("an episode goes on after a terminal state", late)
        told = {
            "dropped": "last rows have no next observation and are left out",
            "repeated": "terminal rows have no next observation; their own stands for it",
            "apart": "next observations are not those of the next row; episodes are cut there",
            "stopped": "truncated rows are not the last of their episode; it is cut behind them",
            "cut": f"episodes are longer than {longest} steps and are cut into pieces",
        }
        self.notes += [f"{counts[kind]} {words}" for kind, words in told.items() if counts[kind]]
        found = np.zeros(len(self.tasks), int)
        for piece in pieces:
            found[piece.task] += piece.length
        for task in np.flatnonzero(found == 0):
            self.problem(f"task {self.tasks[task]} has no complete transition")
        if few := int((found < FEW).sum()):
            self.notes.append(
                f"{few} of {len(found)} tasks have fewer than {FEW} transitions (task "
                f"{self.tasks[found.argmin()]} has {found.min()}): from so few, little can be "
                "learned or estimated"
            )
        return pieces

    def _episodes(self, ends: np.ndarray) -> np.ndarray:
        """A number per row that tells the episodes of a task apart."""
        if "episode" not in self.values:
            order = np.argsort(self._task, kind="stable")
            number = np.empty(len(order), int)
            number[order] = np.cumsum(np.r_[False, ends[order][:-1]])
            return number
        episode = np.unique(self.values["episode"], return_inverse=True)[1]
        if "step" not in self.values:
            change = np.r_[True, (np.diff(self._task) != 0) | (np.diff(episode) != 0)]
            begun = np.flatnonzero(change)
            keys = np.stack([self._task[begun], episode[begun]], axis=1)
            _, first = np.unique(keys, axis=0, return_index=True)
            again = np.setdiff1d(np.arange(len(begun)), first)
            if again.size:
                self.problem(
                    "an episode begins again after another one; without a column step its rows "
                    "must stand together",
                    begun[again],
                )
        return episode

    def _check_steps(self, order: np.ndarray, starts: np.ndarray) -> None:
        """Within an episode, steps count up by one."""
        step = self.values["step"][order]
        inside = np.ones(len(order) - 1, bool)
        inside[starts[1:] - 1] = False
        change = np.diff(step)
        for wrong, told in (
            (change == 0, "the same task, episode and step as another row"),
            (
                (change != 0) & (change != 1),
                "step must count up by 1 within an episode; leave it out to use the order of rows",
            ),
        ):
            if (wrong & inside).any():
                self.problem(told, np.sort(order[1:][wrong & inside]))

    def _unbroken(
        self, rows: np.ndarray, truncated: np.ndarray, counts: Counter
    ) -> list[np.ndarray]:
        """Split where a log ended, or the next observation is not the one of the next row."""
        split = truncated[rows[:-1]]
        counts["stopped"] += int(split.sum())
        if "next_observation" in self.values:
            seen = self.values["observation"][rows[1:]]
            expected = self.values["next_observation"][rows[:-1]]
            apart = ~np.isclose(seen, expected, rtol=1e-3, atol=1e-5).all(axis=1) & ~split
            counts["apart"] += int(apart.sum())
            split = split | apart
        return np.split(rows, np.flatnonzero(split) + 1)

    def _cut(
        self, rows: np.ndarray, over: bool, policy: np.ndarray, longest: int, counts: Counter
    ) -> list[Piece]:
        length = len(rows)
        if "next_observation" not in self.values:
            counts["repeated" if over else "dropped"] += 1
            length -= not over
        counts["cut"] += length > longest
        return [
            Piece(
                int(self._task[rows[0]]),
                rows[first : first + longest + 1],
                min(longest, length - first),
                over and first + longest >= length,
                int(policy[rows[first]]),
            )
            for first in range(0, length, longest)
        ]

    # --- writing ---

    def parameters(self, task: int) -> tuple[float, ...]:
        rows = self._task == task
        found = {
            n: np.unique(v[rows]) for n, v in self.values.items() if n.startswith("parameter ")
        }
        for name, values in found.items():
            if len(values) > 1:
                raise DataError(
                    f"{self.origin}: {name} of task {self.tasks[task]} has {len(values)} "
                    "values; a parameter is the same in all rows of a task"
                )
        return tuple(float(values[0]) for values in found.values())

    def episode(self, piece: Piece, bounds: ActionRange) -> Episode:
        """A piece as a dataset stores it."""
        own = piece.rows[: piece.length]
        if "next_observation" in self.values:
            last = self.values["next_observation"][own[-1]]
        else:  # of a terminal row, its own
            last = self.values["observation"][piece.rows[min(len(own), len(piece.rows) - 1)]]
        return Episode(
            observations=np.vstack([self.values["observation"][own], last]),
            actions=bounds.cut(self.values["action"][own]),
            rewards=self.values["reward"][own],
            terminated=piece.terminated,
            truncated=not piece.terminated,
            checkpoint=piece.policy,
        )


def _short(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"

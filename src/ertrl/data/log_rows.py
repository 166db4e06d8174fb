"""The rows of somebody's logs: checked columns, episodes in order, everything wrong with them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ertrl.data.importing import Limit, limit_of_actions
from ertrl.data.tables import SHOWN, Columns
from ertrl.data.writer import Episode
from ertrl.errors import ConfigError, DataError, unknown
from ertrl.runtime import ActionRange
from ertrl.shape import MOST_DIGITS

VECTORS = {"observation": ("obs",), "action": (), "next_observation": ("next_obs",)}
"""Columns that may be several, and what else they may be called."""
ROLES = ("task", "episode", "step", *VECTORS, "reward", "terminated", "truncated", "policy")
OTHER_UNITS = 0.02
"""Share of the range of all actions below which one task's own range is suspicious."""


class Piece(NamedTuple):
    """Consecutive rows of one episode."""

    task: int
    rows: np.ndarray
    """Of the table, in the order of time; the last may be there for its observation only."""
    length: int
    terminated: bool
    policy: int


class LogRows:
    """Checked columns, what is wrong with them, and what had to be decided about them."""

    def __init__(
        self,
        origin: str,
        table: Columns,
        names: Mapping[str, str | Sequence[str]],
        parameters: Sequence[str],
    ):
        self._origin, self._problems = origin, []
        self._doubtful: set[str] = set()  # roles with values that are no numbers
        self.notes: list[str] = []
        for role in names:
            if role not in ROLES:
                raise ConfigError(unknown("column to map", role, ROLES))
        found = {role: _find(role, table, names.get(role)) for role in ROLES}
        self._check_names(table, found, names)
        found |= {f"parameter {name}": [name] for name in parameters}
        self._check_presence(table, found)
        table = {name: np.atleast_1d(values) for name, values in table.items()}
        lengths = {name: len(values) for name, values in table.items()}
        if len(set(lengths.values())) > 1 or not max(lengths.values()):
            told = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise DataError(f"{origin}: all columns need equally many rows, at least one: {told}")
        self.values: dict[str, np.ndarray] = {}
        for role, columns in found.items():
            if not columns:
                continue
            if role in ("task", "episode", "policy"):
                self.values[role] = table[columns[0]].reshape(max(lengths.values()), -1)
                if role != "policy":
                    self._check_labels(self.values[role], columns[0])
            else:
                read = [self._numbers(table[name], name, role) for name in columns]
                self.values[role] = np.concatenate(read, axis=1)
        widths = {role: values.shape[1] for role, values in self.values.items()}
        allowed = {"next_observation": widths["observation"]}
        for role, width in widths.items():
            wanted = allowed.get(role, max(width, 1) if role in VECTORS else 1)
            if width != wanted:
                told = f"{role} must have {wanted} value{'s' * (wanted > 1)} per row"
                self._problem(f"{told}, not {width}")
                self.refuse_problems()  # what is wrong with episodes cannot be told
        for role in self.values.keys() - VECTORS:
            self.values[role] = self.values[role][:, 0]
        self.rows = len(self.values["task"])
        labels, self._task = np.unique(self.values["task"], return_inverse=True)
        order = _natural_order(labels)
        self._task = np.argsort(order)[self._task]
        self.tasks = [str(label) for label in labels[order]]

    # --- reading ---

    def _check_names(
        self,
        table: Columns,
        found: Mapping[str, list[str]],
        names: Mapping[str, str | Sequence[str]],
    ) -> None:
        """Columns that were named are there, and none has two roles."""
        for role, given in names.items():
            for name in [given] if isinstance(given, str) else given:
                if not found[role] and name not in table:
                    raise DataError(f"{self._origin}: {unknown('column', name, table)}")
        roles: dict[str, str] = {}
        for role, columns in found.items():
            for name in columns:
                if name in roles:
                    raise DataError(f"{self._origin}: {name} cannot be {roles[name]} and {role}")
                roles[name] = role

    def _check_presence(self, table: Columns, found: Mapping[str, list[str]]) -> None:
        needed = ("task", "observation", "action", "reward")
        missing = [role for role in needed if not found[role]]
        missing += [
            c[0] for r, c in found.items() if r.startswith("parameter") and c[0] not in table
        ]
        if missing:
            raise DataError(
                f"{self._origin} has the columns {', '.join(table)}, but none for "
                f"{', '.join(missing)}. Say what yours are called with --columns "
                f"{missing[0]}=NAME (in Python columns={{'{missing[0]}': 'NAME'}}). A vector is "
                "one column of arrays, or columns that end in _0, _1, ...; a folder with one file "
                "per task needs no column for it."
            )
        if not any(found[role] for role in ("episode", "terminated", "truncated")):
            raise DataError(
                f"{self._origin} says nowhere where an episode ends: it needs a column episode, "
                "terminated or truncated"
            )

    def _check_labels(self, values: np.ndarray, name: str) -> None:
        """Every row belongs to a task and an episode."""
        blank = values == "" if values.dtype.kind in "US" else values != values
        if blank.any():
            self._problem(f"column '{name}' is empty", np.flatnonzero(blank.any(axis=1)))

    def _numbers(self, values: np.ndarray, name: str, role: str) -> np.ndarray:
        """The column as float64 [rows, numbers]; what is no number is a problem, and 0 here."""
        flat = values.reshape(len(values), -1)
        if flat.dtype.kind in "US":
            flat = _truth(flat) if role in ("terminated", "truncated") else flat
            try:
                flat = flat.astype(np.float64)
            except ValueError:
                bad = [i for i, row in enumerate(flat) if not all(map(_is_number, row))]
                example = flat[bad[0]][0]
                self._problem(f"column '{name}' holds no number ({str(example)!r})", bad)
                self._doubtful.add(role)
                return np.zeros(flat.shape)
        if flat.dtype.kind not in "biuf":
            self._problem(f"column '{name}' holds {flat.dtype}, which are no real numbers")
            self._doubtful.add(role)
            return np.zeros(flat.shape)
        flat = flat.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            bad = ~np.isfinite(flat.astype(np.float32))
        if bad.any():
            rows = np.flatnonzero(bad.any(axis=1))
            self._problem(f"column '{name}' is NaN, infinite or beyond 32 bits", rows)
            self._doubtful.add(role)
        return np.where(bad, 0.0, flat)

    def _problem(self, what: str, rows: Sequence[int] | np.ndarray = ()) -> None:
        if len(rows):
            named = ", ".join(str(int(row) + 1) for row in rows[:SHOWN])
            more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
            what = f"{what}: row{'s' if len(rows) > 1 else ''} {named}{more}"
        self._problems.append(what)

    def refuse_problems(self) -> None:
        """Everything that is wrong so far, at once."""
        if self._problems:
            told = "\n".join(f"  - {problem}" for problem in self._problems)
            raise DataError(
                f"{self._origin} was not imported, nothing was written (row 1 is the first one "
                f"with values):\n{told}"
            )

    # --- actions ---

    def action_range(self, low: Limit, high: Limit) -> ActionRange:
        """The range that [-1, 1] stands for: as given, or that of the data."""
        actions = self.values["action"]
        size = actions.shape[1]
        ends = []
        for given, measured in ((low, actions.min(axis=0)), (high, actions.max(axis=0))):
            ends.append(measured if given is None else limit_of_actions(given, size))
        lowest, highest = np.array(ends)
        if not (np.abs([lowest, highest]) <= MOST_DIGITS).all():
            raise ConfigError(
                f"actions must lie within +-{MOST_DIGITS:.0e}, got limits of {lowest.tolist()} and "
                f"{highest.tolist()}"
            )
        if low is not None and high is not None and not (lowest < highest).all():
            raise ConfigError(f"action_low {low} is not below action_high {high}")
        slack = 1e-5 * (highest - lowest)
        outside = ((actions < lowest - slack) | (actions > highest + slack)).any(axis=1)
        if outside.any() and "action" not in self._doubtful:
            told = f"an action lies outside of {lowest.tolist()} to {highest.tolist()}"
            self._problem(told, np.flatnonzero(outside))
        if low is None or high is None:
            self.notes.append(
                f"actions reach from {_short(lowest)} to {_short(highest)}, by the logs; if more "
                "is possible, give --action-low and --action-high"
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
        ended = {
            r: self.values.get(r, np.zeros(self.rows)) != 0 for r in ("terminated", "truncated")
        }
        episode = self._episodes(ended["terminated"] | ended["truncated"])
        step = self.values.get("step", np.arange(self.rows))
        order = np.lexsort((step, episode, self._task))
        starts = np.flatnonzero(
            np.r_[True, (np.diff(self._task[order]) != 0) | (np.diff(episode[order]) != 0)]
        )
        if "step" in self.values and "step" not in self._doubtful:
            self._check_steps(order, starts)
        policy = np.unique(self.values.get("policy", np.zeros(self.rows)), return_inverse=True)[1]
        pieces, counts = [], dict.fromkeys(("dropped", "repeated", "apart", "cut"), 0)
        late = []
        for rows in np.split(order, starts[1:]):
            late += rows[:-1][ended["terminated"][rows[:-1]]].tolist()
            for part in self._unbroken(rows, counts):
                pieces += self._cut(part, ended["terminated"], policy, longest, counts)
        if late:
            self._problem("an episode goes on after a terminal state", late)
        told = {
            "dropped": "last rows have no next observation and are left out",
            "repeated": "terminal rows have no next observation; their own stands for it",
            "apart": "next observations are not those of the next row; episodes are cut there",
            "cut": f"episodes are longer than {longest} steps and are cut into pieces",
        }
        self.notes += [f"{counts[kind]} {words}" for kind, words in told.items() if counts[kind]]
        for task in set(range(len(self.tasks))) - {piece.task for piece in pieces}:
            self._problem(f"task {self.tasks[task]} has no complete transition")
        return pieces

    def _episodes(self, ends: np.ndarray) -> np.ndarray:
        """A number per row that tells the episodes of a task apart."""
        if "episode" not in self.values:
            order = np.argsort(self._task, kind="stable")
            number = np.empty(self.rows, int)
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
                self._problem(
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
            ((change != 0) & (change != 1), "a step that does not follow the one before it"),
        ):
            if (wrong & inside).any():
                self._problem(told, np.sort(order[1:][wrong & inside]))

    def _unbroken(self, rows: np.ndarray, counts: dict[str, int]) -> list[np.ndarray]:
        """Split where a logged next observation is not the one of the next row."""
        if "next_observation" not in self.values or len(rows) < 2:
            return [rows]
        seen, expected = (
            self.values["observation"][rows[1:]],
            self.values["next_observation"][rows[:-1]],
        )
        apart = ~np.isclose(seen, expected, rtol=1e-3, atol=1e-5).all(axis=1)
        counts["apart"] += int(apart.sum())
        return np.split(rows, np.flatnonzero(apart) + 1)

    def _cut(
        self,
        rows: np.ndarray,
        terminated: np.ndarray,
        policy: np.ndarray,
        longest: int,
        counts: dict[str, int],
    ) -> list[Piece]:
        over = bool(terminated[rows[-1]])
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
                    f"{self._origin}: {name} of task {self.tasks[task]} has {len(values)} values; "
                    "a parameter is the same in all rows of a task"
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
            actions=np.clip(bounds.inward(self.values["action"][own]), -1, 1),
            rewards=self.values["reward"][own],
            terminated=piece.terminated,
            truncated=not piece.terminated,
            checkpoint=piece.policy,
        )


def _find(role: str, table: Columns, name: str | Sequence[str] | None) -> list[str]:
    """The columns of a role, in order; none if there are none."""
    if name is not None and not isinstance(name, str):
        return [n for n in name if n in table] if set(name) <= set(table) else []
    for candidate in [name] if name else [role, *VECTORS.get(role, ())]:
        if candidate in table:
            return [candidate]
        count = next(i for i in range(len(table) + 1) if f"{candidate}_{i}" not in table)
        if count and role in VECTORS:
            return [f"{candidate}_{i}" for i in range(count)]
    return []


def _short(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"


def _natural_order(labels: np.ndarray) -> np.ndarray:
    """Numbers by size, even as text; other names by their letters."""
    if labels.dtype.kind in "US" and all(map(_is_number, labels)):
        return np.argsort(labels.astype(np.float64), kind="stable")
    return np.arange(len(labels))


def _is_number(word: Any) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _truth(words: np.ndarray) -> np.ndarray:
    """'True' and 'false' as 1 and 0; other words stay what they are."""
    lower = np.char.lower(words)
    return np.where(lower == "true", "1", np.where(lower == "false", "0", words))

"""The columns of somebody's logs by what they are for, and everything wrong with them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ertrl.data.imports.common import unusable
from ertrl.data.imports.tables import Columns, Table, plain
from ertrl.errors import ConfigError, DataError, unknown

VECTORS = {"observation": ("obs",), "action": (), "next_observation": ("next_obs",)}
"""Columns that may be several, and what else they may be called."""
ROLES = ("task", "episode", "step", *VECTORS, "reward", "terminated", "truncated", "policy")


class LogColumns:
    """Values by role, as numbers except for labels; what is wrong with them."""

    def __init__(
        self,
        origin: str,
        table: Table,
        names: Mapping[str, str | Sequence[str]],
        parameters: Sequence[str],
    ):
        self.origin, self._table = origin, table
        self._problems: list[str] = []
        self._doubtful: set[str] = set()
        """Roles with values that are no numbers."""
        self.notes: list[str] = []
        self._commas: list[str] = []
        self.values: dict[str, np.ndarray] = {}
        found = self._columns_of_roles(names, parameters)
        try:
            used = {n: plain(table.columns[n], n, table) for given in found.values() for n in given}
        except ValueError as error:
            kind = ConfigError if table.in_memory else DataError
            raise kind(f"{origin}: {error}") from None
        lengths = {name: len(values) for name, values in used.items()}
        if len(set(lengths.values())) > 1 or not max(lengths.values()):
            told = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise DataError(f"{origin}: all columns need equally many rows, at least one: {told}")
        self._read(found, used)
        self._check_widths()
        self.tasks, self._task = _numbered_tasks(self.values["task"])
        """Names of tasks, and the position of each row's among them."""

    # --- which columns ---

    def _columns_of_roles(
        self, names: Mapping[str, str | Sequence[str]], parameters: Sequence[str]
    ) -> dict[str, list[str]]:
        for role in names:
            if role not in ROLES:
                raise ConfigError(unknown("column to map", role, ROLES))
        found = {role: self._find(role, names.get(role)) for role in ROLES}
        roles: dict[str, str] = {}
        for role, columns in found.items():
            for name in columns:
                if name in roles:
                    raise DataError(f"{self.origin}: {name} cannot be {roles[name]} and {role}")
                roles[name] = role
        self._check_presence(found)
        for name in parameters:
            self._check_name(name, " --parameters takes the names of columns as they are")
            found[f"parameter {name}"] = [name]
        return {role: given for role, given in found.items() if given}

    def _find(self, role: str, name: str | Sequence[str] | None) -> list[str]:
        """The columns of a role, in order: those that were named, or what there is."""
        if name is not None and not isinstance(name, str):
            for one in name:
                self._check_name(one)
            return list(name)
        for candidate in [name] if name else [role, *VECTORS.get(role, ())]:
            if candidate in self._table.columns:
                return [candidate]
            if role in VECTORS and (numbered := self._numbered(role, candidate)):
                return numbered
        if name:
            self._check_name(name)
        return []

    def _check_name(self, name: str, hint: str = "") -> None:
        if name not in self._table.columns:
            told = unknown("column", name, self._table.columns)
            raise DataError(f"{self.origin}: {told}{hint}")

    def _numbered(self, role: str, name: str) -> list[str]:
        """The columns NAME_0, NAME_1, ...: a gap may be a number that was lost."""
        form = re.compile(re.escape(name) + r"_(\d+)")
        found = {c: int(match[1]) for c in self._table.columns if (match := form.fullmatch(c))}
        ordered = sorted(found, key=lambda column: found[column])
        for expected, column in enumerate(ordered):
            if found[column] != expected:
                raise DataError(
                    f"{self.origin} has {', '.join(ordered)}: the columns of a vector are numbered "
                    f"0, 1, 2, ... without a gap, but {column} stands where {name}_{expected} was "
                    f"expected. If these are all, name them: --columns {role}={','.join(ordered)}"
                )
        return ordered

    def _check_presence(self, found: Mapping[str, list[str]]) -> None:
        needed = ("task", "observation", "action", "reward")
        missing = [role for role in needed if not found[role]]
        if missing:
            uneven = ", ".join(self._table.uneven)
            left_out = f" ({uneven} of other lengths are no columns)" if uneven else ""
            raise DataError(
                f"{self.origin} has the columns {', '.join(self._table.columns)}{left_out}, but "
                f"none for {', '.join(missing)}. Say what yours are called with --columns "
                f"{missing[0]}=NAME (in Python columns={{'{missing[0]}': 'NAME'}}). A vector is "
                "one column of arrays, or columns that end in _0, _1, ...; a folder with one file "
                "per task needs no column for it."
            )
        if not any(found[role] for role in ("episode", "terminated", "truncated")):
            raise DataError(
                f"{self.origin} says nowhere where an episode ends: it needs a column episode, "
                "terminated or truncated"
            )

    # --- what is in them ---

    def _read(self, found: Mapping[str, list[str]], used: Columns) -> None:
        """Labels as they are, all others as numbers; every column as [rows, numbers]."""
        used = {name: values.reshape(len(values), -1) for name, values in used.items()}
        nameless = False
        for role, columns in found.items():
            if role in ("task", "episode", "policy"):
                self.values[role] = words = used[columns[0]]
                blank = np.char.strip(words) == "" if words.dtype.kind == "U" else words != words
                if role != "policy" and blank.any():
                    rows = np.flatnonzero(blank.any(axis=1))
                    self.problem(f"column '{columns[0]}' is empty", rows)
                    nameless = True
            else:
                read = [self._numbers(used[name], name, role) for name in columns]
                self.values[role] = np.concatenate(read, axis=1)
        if self._commas:
            self.notes.append(f"commas are read as decimal points in {', '.join(self._commas)}")
        if nameless:  # what else could be said of episodes would only follow from it
            self.refuse_problems()

    def _check_widths(self) -> None:
        """Vectors stay [rows, numbers], all others become [rows]."""
        size = self.values["observation"].shape[1]
        for role, values in self.values.items():
            width = values.shape[1]
            wanted = max(width, 1) if role in VECTORS else 1
            wanted = size if role == "next_observation" else wanted
            if width != wanted:
                told = f"{role} must have {wanted} value{'s' * (wanted > 1)} per row"
                self.problem(f"{told}, not {width}")
                self.refuse_problems()  # what is wrong with episodes cannot be told
            self.values[role] = values if role in VECTORS else values[:, 0]

    def _numbers(self, flat: np.ndarray, name: str, role: str) -> np.ndarray:
        """The column as float64 [rows, numbers]; what is no number is a problem, and 0 here."""
        if flat.dtype.kind == "U":
            flat = _truth(flat) if role in ("terminated", "truncated") else flat
            flat = self._with_points(flat, name)
            try:
                flat = flat.astype(np.float64)
            except ValueError:
                bad = [i for i, row in enumerate(flat) if not all(map(_is_number, row))]
                example = next(word for word in flat[bad[0]] if not _is_number(word))
                self.problem(f"column '{name}' holds no number ({str(example)!r})", bad)
                self._doubtful.add(role)
                return np.zeros(flat.shape)
        if flat.dtype.kind not in "biuf":
            self.problem(f"column '{name}' holds {flat.dtype}, which are no real numbers")
            self._doubtful.add(role)
            return np.zeros(flat.shape)
        flat = flat.astype(np.float64)
        bad = unusable(flat)
        if bad.any():
            rows = np.flatnonzero(bad.any(axis=1))
            self.problem(f"column '{name}' is empty, NaN, infinite or beyond 32 bits", rows)
            self._doubtful.add(role)
        return np.where(bad, 0.0, flat)

    def _with_points(self, words: np.ndarray, name: str) -> np.ndarray:
        """0,5 as 0.5 where that is plain: beside points, a comma may part thousands."""
        if not self._table.decimal_comma:
            return words
        if not np.char.count(words, ",").any() or np.char.count(words, ".").any():
            return words
        self._commas.append(name)
        return np.char.replace(words, ",", ".")

    def problem(self, what: str, rows: Sequence[int] | np.ndarray = ()) -> None:
        self._problems.append(f"{what}: {self._table.told_rows(rows)}" if len(rows) else what)

    def refuse_problems(self) -> None:
        """Everything that is wrong so far, at once."""
        if self._problems:
            told = "\n".join(f"  - {problem}" for problem in self._problems)
            raise DataError(
                f"{self.origin} was not imported, nothing was written (row 1 is the first one "
                f"with values):\n{told}"
            )


def _numbered_tasks(labels: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Tasks in order and where each row's stands: numbers by size, even as text, else by name."""
    names, rows = np.unique(labels, return_inverse=True)
    if names.dtype.kind == "U" and all(map(_is_number, names)):
        order = np.argsort(names.astype(np.float64), kind="stable")
        names, rows = names[order], np.argsort(order)[rows]
    return [str(name) for name in names], rows


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

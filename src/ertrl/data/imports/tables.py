"""Columns of logs: from CSV, Parquet, NPZ, a folder of them with one task each, or from memory."""

import csv
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np

from ertrl.errors import ConfigError, DataError, ErtrlError
from ertrl.plugins import require

SHOWN = 6
"""Rows that a message names before it says how many more there are."""
SEPARATORS = ",;\t"
Columns = dict[str, Any]
"""Name -> values [rows] or [rows, numbers], as they were found; `plain` makes arrays of them."""


@dataclass(frozen=True)
class Table:
    """Columns, and what their rows are called where they come from."""

    columns: Columns
    numbers: np.ndarray | None = None
    """Of rows in their file, from 1; None: one after another."""
    files: tuple[tuple[int, str], ...] = ()
    """First row and name of each file of a folder."""
    uneven: tuple[str, ...] = ()
    """What files of a folder hold beside columns: it has other numbers of rows."""
    decimal_comma: bool = False
    """Whether 0,5 may be a number."""
    in_memory: bool = False
    """Whether it was given in Python and not read from a file."""

    def row_name(self, row: int) -> str:
        number = str(row + 1 if self.numbers is None else self.numbers[row])
        if not self.files:
            return number
        return f"{self.files[bisect_right(self.files, row, key=lambda f: f[0]) - 1][1]}:{number}"

    def told_rows(self, rows: Sequence[int] | np.ndarray) -> str:
        """'row 3', or 'rows 3, 4 and 10 more'."""
        named = ", ".join(self.row_name(int(row)) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        return f"row{'s' if len(rows) > 1 else ''} {named}{more}"


# --- files ---


def read_table(path: Path) -> Table:
    """All columns of a file, or of a folder's files one after another, where each is a task."""
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if path.is_dir():
        return _read_folder(path)
    kind = path.suffix.lower()
    if kind not in READERS:
        raise DataError(f"{path} must be a folder or end in one of {', '.join(READERS)}")
    try:
        return READERS[kind](path)
    except ErtrlError:
        raise
    except UnicodeDecodeError as error:
        told = f"it has the byte {error.object[error.start]:#x}, not UTF-8; save it as UTF-8"
        raise DataError(f"{path} cannot be read as {kind[1:]}: {told}") from None
    except Exception as error:  # a file may hold anything, and fail in as many ways
        raise DataError(f"{path} cannot be read as {kind[1:]}: {error}") from None


def _read_folder(folder: Path) -> Table:
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in READERS)
    if not files:
        raise DataError(f"{folder} holds no file that ends in one of {', '.join(READERS)}")
    tables = {file: read_table(file) for file in files}
    parts = {
        file: {name: np.atleast_1d(values) for name, values in table.columns.items()}
        for file, table in tables.items()
    }
    names = list(parts[files[0]])
    for file, columns in parts.items():
        if set(columns) != set(names):
            raise DataError(
                f"{file} has the columns {', '.join(sorted(columns))}, {files[0].name} has "
                f"{', '.join(sorted(names))}: files of one folder must have the same"
            )
    rows = [mode([len(values) for values in part.values()] or [0]) for part in parts.values()]
    counted = list(zip(parts.values(), rows, strict=True))
    uneven = tuple(n for n in names if any(len(part[n]) != count for part, count in counted))
    names = [name for name in names if name not in uneven]
    for name in names:
        for file, columns in parts.items():
            widths = [part[name].shape[1:] for part in (columns, parts[files[0]])]
            if widths[0] != widths[1]:
                raise DataError(
                    f"column '{name}' of {file} holds {widths[0] or 'a value'} per row, that of "
                    f"{files[0].name} {widths[1] or 'a value'}: they must be the same"
                )
    joined = {name: np.concatenate([columns[name] for columns in parts.values()]) for name in names}
    if names and "task" not in names:
        joined["task"] = np.repeat([file.stem for file in files], rows)
    own = [table.numbers for table in tables.values()]
    numbers = [
        np.arange(1, n + 1) if known is None else known for known, n in zip(own, rows, strict=True)
    ]
    starts = np.cumsum([0, *rows[:-1]]).tolist()
    return Table(
        joined,
        np.concatenate(numbers),
        tuple(zip(starts, (file.name for file in files), strict=True)),
        uneven,
        any(table.decimal_comma for table in tables.values()),
    )


def _read_csv(path: Path) -> Table:
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = next((line for line in file if line.strip()), "")
        separator = max(SEPARATORS, key=first.count)
        file.seek(0)
        rows = csv.reader(file, delimiter=separator)
        head = [name.strip() for name in next((row for row in rows if not _blank(row)), [])]
        if not head or len(set(head)) != len(head):
            raise ValueError("its first line must name every column, each once")
        table, numbers, wrong = [], [], []
        for number, row in enumerate(rows, start=1):
            if _blank(row):
                continue
            if len(row) != len(head):
                wrong.append(f"line {rows.line_num} has {len(row)}")
            table.append(row)
            numbers.append(number)
    if wrong:
        more = f" and {len(wrong) - SHOWN} lines more" if len(wrong) > SHOWN else ""
        told = f"{', '.join(wrong[:SHOWN])} values{more}"
        raise ValueError(f"{told}; the first line has {len(head)} names")
    values = np.array(table, dtype=str).reshape(len(table), len(head))
    columns = {name: np.char.strip(values[:, i]) for i, name in enumerate(head)}
    return Table(columns, np.array(numbers, int), decimal_comma=separator == ";")


def _blank(row: list[str]) -> bool:
    return len(row) < 2 and not "".join(row).strip()


def _read_npz(path: Path) -> Table:
    file = np.load(path, allow_pickle=False)
    if isinstance(file, np.ndarray):
        raise ValueError("it is a single array that has no name")
    with file:
        return Table({name: file[name] for name in file.files})


def _read_parquet(path: Path) -> Table:
    return Table(_arrow_columns(require("pyarrow.parquet", "parquet").read_table(path)))


READERS = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}


# --- from memory ---


def as_table(given: Any) -> Table | None:
    """Arrays by name, a structured array, an Arrow table or a data frame; None: none of them."""
    if hasattr(given, "column_names"):
        return Table(_arrow_columns(given), in_memory=True)
    if isinstance(given, np.ndarray):
        if (names := given.dtype.names) is None:
            raise ConfigError(
                "an array of logs needs named fields; give a mapping of arrays instead"
            )
    elif hasattr(given, "columns") and hasattr(given, "__getitem__"):
        names = given.columns
    elif isinstance(given, Mapping):
        names = given
    else:
        return None
    return Table({str(name): given[name] for name in names}, in_memory=True)


def _arrow_columns(table: Any) -> Columns:
    columns = {name: table.column(name) for name in table.column_names}
    for name, values in columns.items():
        if hasattr(values.type, "index_type"):  # a dictionary, which gives null a neighbour's word
            columns[name] = values.cast(values.type.value_type)
    return {name: values.to_numpy() for name, values in columns.items()}


# --- values ---


def plain(given: Any, name: str, table: Table) -> np.ndarray:
    """A column as numbers or text: what is missing is NaN or '', vectors are rows.

    Raises ValueError where vectors are missing or differ in length.
    """
    values = given
    if isinstance(given, (list, tuple)):
        try:
            values = np.asarray(given)
        except ValueError:  # rows of several lengths
            values = np.fromiter(given, object, len(given))
        if values.dtype.kind in "US" and values.ndim == 1:  # NumPy would write NaN as a word
            values = np.fromiter(given, object, len(given))
    values = np.atleast_1d(np.asarray(values))
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace")
    if values.dtype != object:
        return values
    missing = np.array([_missing(value) for value in values.flat], bool).reshape(values.shape)
    if values.ndim == 1 and any(map(_is_vector, values)):
        return _stacked(values, missing, name, table)
    if not any(isinstance(value, str) for value in values.flat):
        found = np.asarray(np.where(missing, np.nan, values).tolist())
        if found.dtype.kind in "biuf":
            return found
    return np.where(missing, "", values).astype(str)


def _stacked(values: np.ndarray, missing: np.ndarray, name: str, table: Table) -> np.ndarray:
    if missing.any():
        rows = table.told_rows(np.flatnonzero(missing))
        raise ValueError(f"column '{name}' has no vector in {rows}; every row needs one")
    vectors = [plain(value, name, table) for value in values]
    sizes = np.array([vector.size for vector in vectors])
    if odd := np.flatnonzero(sizes != sizes[0]).tolist():
        raise ValueError(
            f"the vectors of column '{name}' differ in length: {sizes[0]} in row "
            f"{table.row_name(0)}, {sizes[odd[0]]} in row {table.row_name(odd[0])}; all rows need "
            "as many numbers"
        )
    return np.stack([vector.ravel() for vector in vectors])


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # those of pandas
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))

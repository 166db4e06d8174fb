"""Columns of logs from files: CSV, Parquet, NPZ, or a folder of them with one task each."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ertrl.errors import DataError, ErtrlError
from ertrl.plugins import require

SHOWN = 6
"""Rows that a message names before it says how many more there are."""
Columns = dict[str, np.ndarray]
"""Name -> values [rows] or [rows, numbers]; text as it stands in a CSV."""


def read_columns(path: Path) -> Columns:
    """All columns of a file, or of a folder's files one after another, where each is a task."""
    if path.is_dir():
        return _read_folder(path)
    if path.suffix not in READERS:
        kinds = ", ".join(READERS)
        raise DataError(f"{path} must be a folder or end in one of {kinds}")
    if not path.exists():
        raise DataError(f"{path} does not exist")
    try:
        return READERS[path.suffix](path)
    except ErtrlError:
        raise
    except Exception as error:  # a file may hold anything, and fail in as many ways
        raise DataError(f"{path} cannot be read as {path.suffix[1:]}: {error}") from None


def as_columns(given: Mapping[str, Any] | np.ndarray) -> Columns:
    """Arrays by name, or a structured array, as columns."""
    if isinstance(given, np.ndarray):
        if given.dtype.names is None:
            raise DataError("an array of logs needs named fields; give a mapping of arrays instead")
        given = {name: given[name] for name in given.dtype.names}
    return {str(name): np.asarray(values) for name, values in given.items()}


def _read_folder(folder: Path) -> Columns:
    files = sorted(f for f in folder.iterdir() if f.suffix in READERS)
    if not files:
        raise DataError(f"{folder} holds no file that ends in one of {', '.join(READERS)}")
    parts = {
        file: {name: np.atleast_1d(values) for name, values in read_columns(file).items()}
        for file in files
    }
    names = list(parts[files[0]])
    for file, columns in parts.items():
        if set(columns) != set(names):
            raise DataError(
                f"{file} has the columns {', '.join(sorted(columns))}, {files[0].name} has "
                f"{', '.join(sorted(names))}: files of one folder must have the same"
            )
        for name in names:
            widths = [part[name].shape[1:] for part in (columns, parts[files[0]])]
            if widths[0] != widths[1]:
                raise DataError(
                    f"column '{name}' of {file} holds {widths[0] or 'a value'} per row, that of "
                    f"{files[0].name} {widths[1] or 'a value'}: they must be the same"
                )
    joined = {name: np.concatenate([columns[name] for columns in parts.values()]) for name in names}
    if names and "task" not in names:
        rows = [len(next(iter(columns.values()))) for columns in parts.values()]
        joined["task"] = np.repeat([file.stem for file in files], rows)
    return joined


def _read_csv(path: Path) -> Columns:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        head = [name.strip() for name in next(rows, [])]
        if not head or len(set(head)) != len(head):
            raise ValueError("its first line must name every column, each once")
        table, wrong = [], []
        for row in rows:
            if len(row) != len(head):
                wrong.append(f"line {rows.line_num} has {len(row)}")
            table.append(row)
        if wrong:
            more = f" and {len(wrong) - SHOWN} lines more" if len(wrong) > SHOWN else ""
            told = f"{', '.join(wrong[:SHOWN])} values{more}"
            raise ValueError(f"{told}; the first line has {len(head)} names")
    values = np.array(table, dtype=str).reshape(len(table), len(head))
    return {name: np.char.strip(values[:, i]) for i, name in enumerate(head)}


def _read_npz(path: Path) -> Columns:
    file = np.load(path, allow_pickle=False)
    if isinstance(file, np.ndarray):
        raise ValueError("it is a single array that has no name")
    with file:
        return {name: file[name] for name in file.files}


def _read_parquet(path: Path) -> Columns:
    parquet = require("pyarrow.parquet", "parquet")
    table = parquet.read_table(path)
    columns = {}
    for name in table.column_names:
        values = table[name].to_numpy()
        if values.dtype == object and len(values) and isinstance(values[0], np.ndarray):
            if len({np.shape(v) for v in values}) > 1:
                raise ValueError(f"the vectors of column '{name}' differ in length")
            values = np.stack(list(values))
        columns[name] = values.astype(str) if values.dtype == object else values
    return columns


READERS = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}

"""Logs of one's own become a dataset: columns of any names, episodes of any lengths.

Everything that is wrong is told at once, with its rows; nothing is written unless all is right.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ertrl.data.dataset import Dataset
from ertrl.data.imports.common import ImportedTask, Limit, check_names, write_imported
from ertrl.data.imports.minari import import_minari
from ertrl.data.imports.releases import find_release, import_release
from ertrl.data.imports.rows import LogRows
from ertrl.data.imports.tables import as_table, read_table
from ertrl.data.writer import Description, TaskRecord, place_of
from ertrl.envs.tasks import split_tasks
from ertrl.errors import ConfigError
from ertrl.progress import ProgressStyle

LONGEST = 1000
MINARI = "minari:"


def import_logs(
    source: str | Path | Sequence[str] | Mapping[str, Any] | np.ndarray | Any,
    out: str | Path,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    parameters: str | Sequence[str] = (),
    held_out: float | str | Sequence[str] | None = None,
    ood: str | Sequence[str] = (),
    action_low: Limit = None,
    action_high: Limit = None,
    longest: int = LONGEST,
    name: str = "",
    progress: ProgressStyle = "auto",
) -> Dataset:
    """Make a dataset of logs: a row is one step of one task.

    `source` is a CSV, Parquet or NPZ file, a folder with one such file per task, arrays by name, a
    data frame or Arrow table, or "minari:ID" (several in a list), where every Minari dataset is a
    task and knows its columns. The folder of UNICORN's or SPC's released data is recognised and
    knows them, too.

    Columns are `task`, `observation`, `action`, `reward` and, as far as they are known, `episode`,
    `step`, `next_observation`, `terminated`, `truncated` and `policy` (who acted). Vectors are
    arrays [rows, numbers] or columns `observation_0`, `observation_1`, ...; `columns` says where
    yours have other names, `{"observation": "sensor", "action": ["left", "right"]}`. `parameters`
    names columns with a task's known numbers. `held_out` is a share of the tasks (a fifth if
    nothing is said) or their names, `ood` names those out of distribution. Actions have the range
    of the data unless `action_low` and `action_high` give it; episodes are cut into pieces of at
    most `longest` steps.
    """
    out = place_of(out)
    parameters = [parameters] if isinstance(parameters, str) else list(parameters)
    name = name or out.name
    check_names(name, parameters)
    held_out = [held_out] if isinstance(held_out, str) else held_out
    ood = [ood] if isinstance(ood, str) else list(ood)
    origin, kind, table = "the table", "arrays", as_table(source)
    if table is None:
        names = _paths(source)
        options: dict[str, Any] = {"held_out": held_out, "ood": ood, "name": name}
        options |= {"bounds": (action_low, action_high), "progress": progress}
        if minari := [n.removeprefix(MINARI) for n in names if n.startswith(MINARI)]:
            if len(minari) < len(names) or columns or parameters:
                raise ConfigError("minari:ID stands alone: such datasets know their own columns")
            return import_minari(minari, out, **options)
        if len(names) != 1:
            raise ConfigError(f"name one file or folder, got {len(names)}; a folder may hold many")
        if release := find_release(Path(names[0])):
            if columns or parameters:
                raise ConfigError(f"{names[0]} is a {release[0]} release, which knows its columns")
            return import_release(*release, out, longest=longest, **options)
        origin = names[0]
        table = read_table(Path(origin))
        kind = "folder" if table.files else Path(origin).suffix[1:].lower()
    logs = LogRows(origin, table, columns or {}, parameters)
    bounds = logs.action_range(action_low, action_high)
    pieces = logs.pieces(longest)
    logs.refuse_problems()
    groups = split_tasks(logs.tasks, held_out, ood)
    horizon = max(piece.length for piece in pieces)
    sizes = logs.values["observation"].shape[1], logs.values["action"].shape[1]
    about = Description.of_logs(name, parameters, horizon, sizes, bounds)
    tasks = {}
    for task, label in enumerate(logs.tasks):
        found = [piece for piece in pieces if piece.task == task]
        record = TaskRecord(groups[label], logs.parameters(task), {})
        episodes = (logs.episode(piece, bounds) for piece in found)
        tasks[task] = ImportedTask(label, record, len(found), episodes)
    told = {"datasets": [Path(origin).name], "tasks": logs.tasks, "notes": logs.notes}
    return write_imported(out, about, tasks, "logs", {"format": kind, **told}, progress)


def _paths(source: Any) -> list[str]:
    """What was named; anything else is not understood."""
    names = [source] if isinstance(source, (str, Path)) else source
    if isinstance(names, (list, tuple)):
        odd = [name for name in names if not isinstance(name, (str, Path))]
        if not odd:
            return [str(name) for name in names]
        found = f"a {type(source).__name__} of {type(odd[0]).__name__}"
    else:
        found = type(source).__name__
    raise ConfigError(
        f"logs are a file, a folder, a mapping of columns ({{'task': [...], 'reward': [...]}}), a "
        f"data frame, an Arrow table or a structured array; got {found}"
    )

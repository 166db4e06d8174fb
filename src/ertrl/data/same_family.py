"""Whether a family is still the one that data was collected with, as far as files can tell.

They record sizes, units and tasks, and of code that is no library's its checksum: whether physics
or rewards are others where it has changed, only who changed it knows.
"""

import inspect
import math
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ertrl import store
from ertrl.envs.family import Family
from ertrl.plugins import LIBRARIES
from ertrl.shape import Name, Real, Shape, Size, Text, Whole


class RecordedTask(Shape):
    """A task of the family."""

    task: Whole
    group: Text
    parameters: list[Real]


class FamilyRecord(Shape):
    """What `family_record` writes."""

    observation_dim: Size
    layout: list[tuple[Text, Whole]]
    action_dim: Size
    action_low: list[Real]
    action_high: list[Real]
    horizon: Whole
    varies: Text
    parameter_names: list[Name]
    tasks: list[RecordedTask]


def family_record(family: Family) -> dict[str, Any]:
    """What a family says of itself, in the words of a manifest and a little more."""
    groups = {task: group for group, tasks in family.split.items() for task in tasks}
    return {
        "observation_dim": family.observation_dim,
        "layout": [list(part) for part in family.layout],
        "action_dim": family.action_dim,
        "action_low": family.actions.low.tolist(),
        "action_high": family.actions.high.tolist(),
        "horizon": family.horizon,
        "varies": family.varies,
        "parameter_names": list(family.parameter_names),
        "tasks": [
            {"task": task, "group": groups.get(task, ""), "parameters": row.tolist()}
            for task, row in enumerate(family.parameters)
        ],
    }


def family_changes(recorded: Mapping[str, Any], family: Family) -> list[str]:
    """What was recorded with data (its tasks may be some of all) and is otherwise in the family."""
    now = family_record(family)
    ends = {"action_low": -1.0, "action_high": 1.0}  # where a manifest says nothing of them
    before = {name: [end] * now["action_dim"] for name, end in ends.items()} | dict(recorded)
    found = [
        f"{name} was {before[name]} and is {now[name]}"
        for name in now
        if name != "tasks" and before.get(name, now[name]) != now[name]
    ]
    if found:
        return found
    told = [change for task in before["tasks"] if (change := _changed_task(task, now))]
    others = f" ({len(told)} of {len(before['tasks'])} tasks have changed)" if told[1:] else ""
    return [told[0] + others] if told else []


def _changed_task(task: dict[str, Any], now: dict[str, Any]) -> str:
    number, last = task["task"], len(now["tasks"]) - 1
    if number > last:
        return f"there was a task {number}, and the tasks are 0 to {last}"
    same, names = now["tasks"][number], now["parameter_names"]
    if task["group"] != same["group"]:
        return f"task {number} was of the group {task['group']} and is of {same['group'] or 'none'}"
    for name, old, new in zip(names, task["parameters"], same["parameters"], strict=False):
        # Another machine may compute the last digits of a table differently.
        if not math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-9):
            return f"{name} of task {number} was {old:.6g} and is {new:.6g}"
    return ""


# --- code of one's own ---


def family_code(family: Family) -> dict[str, str]:
    """Checksums of the files of one's own that a family is made of, by their names.

    Of a script, which does more, the checksum is that of the family's parts alone.
    """
    files = _own_files(family).items()
    return {name: alone if is_script else whole for name, (whole, alone, is_script) in files}


def code_changes(recorded: Mapping[str, str], family: Family) -> str:
    """Which of the recorded files have changed, in words; '' if none has."""
    now = {checksum for found in _own_files(family).values() for checksum in found[:2]}
    changed = [name for name, checksum in recorded.items() if checksum not in now]
    return f"{' and '.join(changed)} {'have' if changed[1:] else 'has'} changed" if changed else ""


def _own_files(family: Family) -> dict[str, tuple[str, str, bool]]:
    """Name -> checksum of the whole file, that of the family's parts in it, whether it is run."""
    parts: dict[str, dict[str, bool]] = defaultdict(dict)
    for part in family.written:
        part = getattr(part, "func", part)  # of a partial
        part = part if inspect.isclass(part) or inspect.isroutine(part) else type(part)
        try:
            file = inspect.getsourcefile(part) or ""
            if os.path.isfile(file) and not file.startswith(LIBRARIES):
                parts[file][inspect.getsource(part)] = part.__module__ == "__main__"
        except (TypeError, OSError):  # built in, or typed at a prompt
            continue
    return {
        os.path.basename(file): (
            store.sha256(store.read_bytes(Path(file))),
            store.sha256("\0".join(texts).encode()),
            any(texts.values()),
        )
        for file, texts in parts.items()
    }

"""What is in a dataset: the source of `ertrl data info` and of the card."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ertrl import store
from ertrl.data import layout
from ertrl.data.dataset import Dataset, TaskData
from ertrl.text import readable_bytes, readable_groups

# --- numbers ---


def describe(dataset: Dataset) -> dict[str, Any]:
    """Everything a person wants to know of a dataset, as JSON values; equal for equal folders."""
    manifest = dataset.manifest
    collector = dict(manifest["collector"])
    curve = collector.pop("curve", [])
    tasks: list[dict[str, Any]] = [
        {
            "task": data.task,
            **({"name": data.name} if data.name else {}),
            "group": data.group,
            "parameters": dict(
                zip(manifest["parameter_names"], data.parameters.tolist(), strict=True)
            ),
            **_totals([data]),
            "reference": data.reference,
        }
        for data in dataset.tasks.values()
    ]
    files = [*dataset.files, layout.MANIFEST]
    return {
        "family": dataset.family,
        "family_options": dataset.family_options,
        "family_code": manifest.get("family_code", {}),
        "simulator": dataset.has_simulator,
        "fingerprint": dataset.fingerprint,
        "manifest_sha256": store.sha256_file(dataset.path / layout.MANIFEST),
        "files": len(files),
        "bytes": sum((dataset.path / file).stat().st_size for file in files),
        "horizon": dataset.horizon,
        "observation_dim": dataset.dims.observation,
        "action_dim": dataset.dims.action,
        "parameter_names": manifest["parameter_names"],
        "episodes": sum(task["episodes"] for task in tasks),
        "transitions": sum(task["transitions"] for task in tasks),
        "groups": {
            name: _group([dataset.task(t) for t in members], curve)
            for name, members in dataset.groups.items()
        },
        "tasks": tasks,
        "curve": curve,
        "collector": collector,
        "imported": manifest.get("imported"),
        "provenance": manifest["provenance"],
    }


def _totals(members: list[TaskData]) -> dict[str, Any]:
    return {
        "episodes": sum(data.episodes for data in members),
        "transitions": sum(int(data.lengths.sum()) for data in members),
        "mean_return": float(np.mean([data.returns.mean() for data in members])),
        "reference": {
            kind: float(np.mean([data.reference[kind] for data in members]))
            for kind in layout.SCALE
            if all(kind in data.reference for data in members)
        },
    }


def _group(members: list[TaskData], curve: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = np.unique(np.concatenate([data.checkpoints for data in members])).tolist()
    return {
        "tasks": [data.task for data in members],
        **_totals(members),
        "checkpoints": [_checkpoint(members, number, curve) for number in numbers],
    }


def _checkpoint(
    members: list[TaskData], number: int, curve: list[dict[str, Any]]
) -> dict[str, Any]:
    """Returns of the episodes that one behaviour-policy checkpoint collected, task by task."""
    point = curve[number] if 0 <= number < len(curve) else {}
    there = [(data, data.checkpoints == number) for data in members]
    means = [float(data.returns[rows].mean()) for data, rows in there if rows.any()]
    return {
        "checkpoint": number,
        **{name: point.get(name) for name in ("updates", "noise", "seconds")},
        "episodes": sum(int(rows.sum()) for _, rows in there),
        "mean_return": float(np.mean(means)),
        "lowest_task": min(means),
        "highest_task": max(means),
    }


# --- words and tables, for a terminal and for the card ---


def facts(summary: dict[str, Any]) -> dict[str, str]:
    """The short facts as words."""
    options = ", ".join(f"{k} {v}" for k, v in summary["family_options"].items())
    found = {
        "family": summary["family"] + (f" ({options})" if options else ""),
        "simulator": "yes" if summary["simulator"] else "none: imported from logs",
        "tasks": readable_groups({name: g["tasks"] for name, g in summary["groups"].items()}),
        "task parameters": ", ".join(summary["parameter_names"]) or "unknown",
        "episodes": f"{summary['episodes']:,} of up to {summary['horizon']} steps",
        "transitions": f"{summary['transitions']:,}",
        "observation, action": f"{summary['observation_dim']} and {summary['action_dim']} numbers",
        "size": f"{readable_bytes(summary['bytes'])} in {summary['files']} files",
        "collector": summary["collector"].get("name", "unknown"),
    }
    for name, value in summary["collector"].items():
        if name not in ("name", "config"):
            found |= _flat(name.replace("_", " "), value)
    if summary["imported"]:
        imported = summary["imported"]
        found["imported from"] = f"{imported['format']}: {', '.join(imported['datasets'])}"
    origin = summary["provenance"]
    return {
        **found,
        "command": origin["command"],
        "commit": origin["commit"],
        "versions": ", ".join(f"{k} {v}" for k, v in origin["versions"].items()),
        "machine": f"{origin['machine']['cpu']}, {origin['machine']['system']}",
        "content": summary["fingerprint"],
        "SHA-256 of manifest.json": summary["manifest_sha256"],
    }


def _flat(name: str, value: Any) -> dict[str, str]:
    """What collectors add to their section: numbers and words, however nested; no tables."""
    if isinstance(value, dict):
        return {
            k: v
            for key, inner in value.items()
            for k, v in _flat(f"{name}, {key.replace('_', ' ')}", inner).items()
        }
    values = value if isinstance(value, list) else [value]
    if value is None or len(values) > 8 or any(isinstance(v, list) for v in values):
        return {}
    return {name: ", ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values)}


ENDS = (
    " Expert is the final behaviour policy without noise, random acts uniformly, zero does not act:"
    " they end the scale of normalised returns."
)


class Table(NamedTuple):
    title: str
    note: str
    head: Sequence[str]
    rows: list[Sequence[str]]


def tables(summary: dict[str, Any]) -> list[Table]:
    """Returns per group, per checkpoint and per task; no column is empty."""
    groups, tasks = summary["groups"], summary["tasks"]
    scale = [kind for kind in layout.SCALE if any(kind in task["reference"] for task in tasks)]
    count = ("episodes", "transitions", "data", *scale)
    named = any("name" in task for task in tasks)
    return [
        Table(
            "Returns",
            "Mean over tasks of the undiscounted return of an episode." + (ENDS if scale else ""),
            ("group", "tasks", *count),
            [
                (name, str(len(group["tasks"])), *_numbers(group, scale))
                for name, group in groups.items()
            ],
        ),
        *_by_checkpoint(summary),
        Table(
            "Tasks",
            "",
            ("task", *(["name"] if named else []), "group", *summary["parameter_names"], *count),
            [
                (
                    str(task["task"]),
                    *([task.get("name", "")] if named else []),
                    task["group"],
                    *(f"{round(value, 9):.4g}" for value in task["parameters"].values()),
                    *_numbers(task, scale),
                )
                for task in tasks
            ],
        ),
    ]


def _by_checkpoint(summary: dict[str, Any]) -> list[Table]:
    """Logs know nothing of their policies but which is which, and one alone says nothing new."""
    groups, curve = summary["groups"], summary["curve"]
    by_number = [{p["checkpoint"]: p for p in group["checkpoints"]} for group in groups.values()]
    numbers = sorted(set().union(*by_number))
    if not curve and len(numbers) < 2:
        return []
    who, ages = "policy", {}
    if curve:  # with what a checkpoint's number stands for
        scripted = any("noise" in point for point in curve)
        who, ages = "checkpoint", {"noise": ".2f"} if scripted else {"updates": ",.0f"}
        ages["seconds"] = ",.0f"
    rows: list[Sequence[str]] = []
    for number in numbers:
        found = [points.get(number) for points in by_number]  # not every group need have it
        own = next(point for point in found if point)
        age = ["" if own[k] is None else format(own[k], form) for k, form in ages.items()]
        returns = "{mean_return:.1f} ({lowest_task:.1f} to {highest_task:.1f})"
        rows.append((str(number), *age, *(returns.format(**p) if p else "" for p in found)))
    note = "Mean over tasks (lowest to highest task)."
    return [Table(f"Returns by {who}", note, (who, *ages, *groups), rows)]


def _numbers(entry: dict[str, Any], scale: Sequence[str]) -> list[str]:
    """Sizes and returns of a task or group; an unknown reference is empty."""
    known = entry["reference"]
    return [
        f"{entry['episodes']:,}",
        f"{entry['transitions']:,}",
        f"{entry['mean_return']:.1f}",
        *(f"{known[kind]:.1f}" if kind in known else "" for kind in scale),
    ]

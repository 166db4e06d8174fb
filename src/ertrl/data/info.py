"""What is in a dataset, as plain JSON values: the source of `ertrl data info` and of the card."""

from typing import Any

import numpy as np

from ertrl import store
from ertrl.data import layout
from ertrl.data.dataset import Dataset, TaskData
from ertrl.text import readable_bytes

REFERENCES = ("expert", "random", "zero")


def describe(dataset: Dataset) -> dict[str, Any]:
    """Everything a person wants to know of a dataset; equal for equal folders."""
    manifest = dataset.manifest
    collector = dict(manifest["collector"])
    curve = collector.pop("curve", [])
    tasks = [_task(data, manifest["parameter_names"]) for data in dataset.tasks.values()]
    files = [file["path"] for entry in manifest["tasks"] for file in entry["files"].values()]
    return {
        "family": dataset.family,
        "family_options": dataset.family_options,
        "simulator": dataset.has_simulator,
        "fingerprint": dataset.fingerprint,
        "manifest_sha256": store.sha256_file(dataset.path / layout.MANIFEST),
        "files": len(files) + 1,
        "bytes": sum((dataset.path / f).stat().st_size for f in [*files, layout.MANIFEST]),
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


def _task(data: TaskData, parameter_names: list[str]) -> dict[str, Any]:
    return {
        "task": data.task,
        "group": data.group,
        "parameters": dict(zip(parameter_names, data.parameters.tolist(), strict=True)),
        "episodes": data.episodes,
        "transitions": int(data.lengths.sum()),
        "mean_return": float(data.returns.mean()),
        "reference": data.reference,
    }


def _group(members: list[TaskData], curve: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = np.unique(np.concatenate([data.checkpoints for data in members])).tolist()
    return {
        "tasks": [data.task for data in members],
        "episodes": sum(data.episodes for data in members),
        "transitions": sum(int(data.lengths.sum()) for data in members),
        "mean_return": float(np.mean([data.returns.mean() for data in members])),
        "reference": {
            kind: float(np.mean([data.reference[kind] for data in members]))
            for kind in REFERENCES
            if all(kind in data.reference for data in members)
        },
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
        "updates": point.get("updates"),
        "seconds": point.get("seconds"),
        "episodes": sum(int(rows.sum()) for _, rows in there),
        "mean_return": float(np.mean(means)),
        "lowest_task": min(means),
        "highest_task": max(means),
    }


def facts(summary: dict[str, Any]) -> dict[str, str]:
    """The short facts as words, for a terminal and for the card."""
    options = ", ".join(f"{k} {v}" for k, v in summary["family_options"].items())
    names = ", ".join(summary["parameter_names"])
    split = ", ".join(f"{len(g['tasks'])} {name}" for name, g in summary["groups"].items())
    found = {
        "family": summary["family"] + (f" ({options})" if options else ""),
        "simulator": "yes" if summary["simulator"] else "none: imported from logs",
        "tasks": f"{len(summary['tasks'])} ({split})",
        "task parameters": names or "unknown",
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
    """What collectors add to their section: numbers and words, however nested; no long lists."""
    if isinstance(value, dict):
        return {
            k: v
            for key, inner in value.items()
            for k, v in _flat(f"{name}, {key.replace('_', ' ')}", inner).items()
        }
    if value is None:
        return {}
    if isinstance(value, list):
        return {} if len(value) > 8 else {name: ", ".join(map(number, value))}
    return {name: number(value)}


def number(value: Any) -> str:
    """Four digits of a number; words as they are."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)

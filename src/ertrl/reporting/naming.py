"""Names of variants: the method, and what sets its configuration apart."""

import json
from typing import Any

from ertrl.config import to_json
from ertrl.errors import ConfigError
from ertrl.profiles import train_config
from ertrl.training import Run

WITHOUT_EFFECT = ("seed", "updates_per_call", "evaluate_every", "checkpoint_every")
"""Settings in which runs of one variant may differ."""


def _flat(config: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(config, dict):
        return {prefix: config}
    return {
        path: value
        for key, inner in config.items()
        for path, value in _flat(inner, f"{prefix}.{key}" if prefix else key).items()
    }


def identity(run: Run) -> dict[str, Any]:
    """Everything in which runs of different variants differ, flat."""
    config = {k: v for k, v in to_json(run.config).items() if k not in WITHOUT_EFFECT}
    return {"name": run.spec["method"], "by": run.spec["learner"], **_flat(config)}


def usual(run: Run) -> dict[str, Any]:
    """The settings that the run's profile would have given it; nothing, where it had none."""
    spec = run.spec
    try:
        _, config = train_config(spec["profile"], run.family, spec["method"], spec["learner"])
    except ConfigError:
        return {}
    return _flat(to_json(config))


def names(identities: list[dict[str, Any]], usual: list[dict[str, Any]]) -> list[str]:
    """The method's name, and as much of the configuration as it takes to tell variants apart.

    The variant that is as its profile has it needs no more than its name.
    """
    short, full = _told(identities, usual), _told(identities, [{}] * len(identities))
    return [f if short.count(s) > 1 else s for s, f in zip(short, full, strict=True)]


def _told(identities: list[dict[str, Any]], usual: list[dict[str, Any]]) -> list[str]:
    learners = {one["by"] for one in identities}
    labels = []
    for one, expected in zip(identities, usual, strict=True):
        kind = (one["name"], one["by"])
        alike = [other for other in identities if (other["name"], other["by"]) == kind]
        telling = [
            key
            for key, value in one.items()
            if any(other.get(key) != value for other in alike)
            and (key not in expected or expected[key] != value)
        ]
        label = one["name"].upper()
        if len(learners) > 1:
            label += f" + {one['by']}"
        if telling:
            told = ", ".join(f"{key.split('.')[-1]}={json.dumps(one[key])}" for key in telling)
            label += f" ({told})"
        labels.append(label)
    return labels

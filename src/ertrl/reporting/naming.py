"""Names of variants: the method, and what sets its configuration apart."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ertrl.config import to_json
from ertrl.errors import ConfigError
from ertrl.profiles import DEFAULT_VARIANT, train_config
from ertrl.training import Run

WITHOUT_EFFECT = ("seed", "updates_per_call", "evaluate_every", "checkpoint_every")
"""Settings in which runs of one variant may differ."""
TITLES = {"offline-pearl": "OfflinePEARL"}
"""Names that are not written in capitals."""


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
    profile, _, variant = origin(run).partition(", ")
    try:
        _, config = train_config(
            profile, run.family, spec["method"], spec["learner"], variant or DEFAULT_VARIANT
        )
    except ConfigError:
        return {}
    return _flat(to_json(config))


def origin(run: Run) -> str:
    """The profile and its variant, where it is not the usual one: 'paper, released'."""
    return run.spec["profile"].replace(" (", ", ").removesuffix(")")


def names(runs: Sequence[Run]) -> list[str]:
    """The method's name, and as much of the configuration as it takes to tell variants apart.

    The variant that is as its profile has it needs no more than its name; where two profiles have
    theirs, they are named as well.
    """
    identities = [identity(run) for run in runs]
    labels = _told(identities, [usual(run) for run in runs])
    with_origin = [f"{name} ({origin(r)})" for name, r in zip(labels, runs, strict=True)]
    in_full = _told(identities, [{}] * len(runs))
    for better in (with_origin, in_full):
        pairs = zip(labels, better, strict=True)
        labels = [b if labels.count(name) > 1 else name for name, b in pairs]
    return labels


def _told(identities: list[dict[str, Any]], usual: list[dict[str, Any]]) -> list[str]:
    count = Counter(one["by"] for one in identities)
    usual_learner, most = count.most_common(1)[0]
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
        label = TITLES.get(one["name"], one["name"].upper())
        # What most of them share goes without saying.
        if one["by"] != usual_learner or 2 * most <= len(identities):
            label += f" + {one['by']}"
        if telling:
            told = ", ".join(f"{key.split('.')[-1]}={json.dumps(one[key])}" for key in telling)
            label += f" ({told})"
        labels.append(label)
    return labels

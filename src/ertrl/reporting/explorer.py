"""The latent space to explore: every seed, every context, with the task under the pointer.

The page holds the points as JSON; assets/script.js draws them. Without JavaScript, on paper and
for screen readers, the figure above it says the same of the first seed.
"""

import json
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from ertrl.evaluation.probes import principal_plane
from ertrl.reporting.figures.common import task_colours
from ertrl.reporting.markup import Markup, tag
from ertrl.reporting.material import Material, Replay
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.summary import group_title

DIGITS = 3


def explorer(key: str, family: FamilyResults, material: Material) -> Markup:
    """A place for the drawing and the data to draw."""
    data = {
        "axis": material.axis.label,
        "tasks": _tasks(family, material),
        "runs": [
            {"label": label, "seed": replay.seed, **_points(replay)}
            for label, replays in material.replays.items()
            for replay in replays
        ],
    }
    # A closing script tag inside a string would end the data; JSON has another way to write '<'.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    script = tag("script", Markup(text), type="application/json")
    title = tag("h3", "Every seed, context by context")
    return tag("div", title, script, class_="explorer", id=key, hidden="")


def _tasks(family: FamilyResults, material: Material) -> list[dict[str, Any]]:
    values = material.axis.values
    scale = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    colours = task_colours(material.axis)
    group_of = {row: group for group, rows in family.rows.items() for row in rows.tolist()}
    return [
        {
            "task": task,
            "group": group_title(group_of[row]).lower(),
            "shape": list(family.groups).index(group_of[row]),
            "value": f"{values[row]:.4g}".replace("-", "\N{MINUS SIGN}"),
            "colour": to_hex(colours(scale[row])),
        }
        for row, task in enumerate(family.tasks)
    ]


def _points(replay: Replay) -> dict[str, Any]:
    """Points [task][context][x, y] of offline, and [task][x, y] of online contexts."""
    centre, axes, share = principal_plane(replay.codes.reshape(-1, replay.codes.shape[-1]))

    def projected(codes: np.ndarray) -> list[Any]:
        plane = ((codes - centre) @ axes.T).astype(np.float64)
        return (np.round(plane, DIGITS) + 0.0).tolist()  # + 0.0 turns -0.0 into 0.0

    online = replay.online_z
    return {
        "offline": projected(replay.codes),
        "online": None if online is None else projected(online),
        "share": [round(100 * float(s)) for s in share],
    }

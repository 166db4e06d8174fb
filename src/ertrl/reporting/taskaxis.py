"""One number per task to plot against: the parameter itself, or an angle where there are two."""

from typing import NamedTuple

import numpy as np


class TaskAxis(NamedTuple):
    """A number for each task and what to call it."""

    label: str
    values: np.ndarray
    circular: bool = False
    """The values go all the way round: their two ends are neighbours."""


def task_axis(names: tuple[str, ...], parameters: np.ndarray, train: np.ndarray) -> TaskAxis:
    """Choose the axis of a family; `train` are the rows of the training tasks."""
    if len(names) == 1:
        label, values = names[0].replace("_", " "), parameters[:, 0]
        if names[0] == "direction":
            return TaskAxis("direction (degrees)", np.degrees(values))
        return TaskAxis(label, values)
    if len(names) == 2 and names[0].endswith("_x") and names[1].endswith("_y"):
        angles = _unwrapped(np.arctan2(parameters[:, 1], parameters[:, 0]), train)
        what = names[0].removesuffix("_x").replace("_", " ")
        circular = bool(np.ptp(angles[train]) > 300)
        angles = angles % 360 if circular else angles
        return TaskAxis(f"{what} angle (degrees)", angles, circular)
    return TaskAxis("task", np.arange(len(parameters), dtype=np.float64))


def _unwrapped(angles: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Degrees, cut open opposite to the training tasks, so that these stay together."""
    middle = np.angle(np.exp(1j * angles[train]).mean())
    turned = np.angle(np.exp(1j * (angles - middle)))
    values = np.degrees(turned + middle)
    return np.round(values, 9)

"""Families whose agent moves in the plane: where it is, where it should go, and a picture of it."""

import numpy as np

from ertrl.colours import COLOURS
from ertrl.envs.family import Family


def position_slice(family: Family) -> slice | None:
    """Where the observation holds a position in the plane; None if it has none."""
    start = 0
    for name, size in family.layout:
        if name == "position" and size == 2:
            return slice(start, start + 2)
        start += size
    return None


def goal_of(family: Family, parameters: np.ndarray) -> np.ndarray | None:
    """Where a task's goal lies in the plane, for families that have one."""
    if tuple(family.parameter_names) == ("goal_x", "goal_y"):
        return parameters
    return getattr(family, "goal", None)


class PlanePainter:
    """Draws the way of a point so far, and its goal as a star."""

    def __init__(self, family: Family, parameters: np.ndarray, width: int, height: int):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        where = position_slice(family)
        assert where is not None
        self._where, self._way = where, np.empty((0, 2))
        figure = Figure(figsize=(width / 100, height / 100), dpi=100, layout="constrained")
        self._canvas = FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.set(aspect="equal", xlim=(-2, 2), ylim=(-1.4, 1.6), xticks=[-1, 0, 1])
        axes.set_yticks([-1, 0, 1])
        trained = goal_of(family, family.parameters[list(family.split["train"])])
        goal, muted = goal_of(family, parameters), COLOURS["muted"][0]
        if trained is not None:
            axes.scatter(*np.atleast_2d(trained).T, s=6, color=muted)
        if goal is not None:
            axes.scatter(*goal, s=180, marker="*", color=COLOURS["c4"][0])
        (self._line,) = axes.plot([], [], color=COLOURS["c0"][0], linewidth=1.6)
        (self._point,) = axes.plot([], [], "o", color=COLOURS["c0"][0], markersize=8)

    def draw(self, observation: np.ndarray) -> np.ndarray:
        """A picture [height, width, 3] of all positions up to this one."""
        self._way = np.concatenate([self._way, observation[None, self._where]])
        self._line.set_data(*self._way.T)
        self._point.set_data(*self._way[-1:].T)
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Nothing is held open."""

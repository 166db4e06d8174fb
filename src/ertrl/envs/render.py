"""Pictures and videos of rollouts, drawn without a screen: MuJoCo, and points in the plane.

    frames = render_rollout(make_family("ant-goal"), task=3, policy=policy)
    write_video("clip.mp4", frames.images, frames.fps)

The task is drawn into the scene where it has a place there: a goal as a ball, a direction as an
arrow.
"""

import importlib
import math
import os
import platform
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ertrl.colours import COLOURS
from ertrl.envs.family import Family, Simulation, Task
from ertrl.envs.physics import Data, Model, MujocoSimulation, mujoco_module
from ertrl.envs.rollout import Policy
from ertrl.errors import ErtrlError

MARK = (0.9, 0.2, 0.2, 0.9)
MAX_FPS = 30.0
STEPS_PER_SECOND = 4.0
"""Of families whose steps take no simulated time."""
SHORTEST = 5.0
"""Seconds that a clip takes at least: shorter episodes are shown in slow motion."""
STRIP = 22
"""Height of a line of text above pictures."""
HELP = (
    "On Debian or Ubuntu install one of them: `apt-get install libegl1` (or `libosmesa6`); "
    "MUJOCO_GL=egl or MUJOCO_GL=osmesa chooses one."
)


class RenderError(ErtrlError):
    """No picture can be drawn, or none of this."""


class Frames(NamedTuple):
    """A clip."""

    images: np.ndarray
    """[frames, height, width, 3], uint8."""
    fps: float
    """Frames per second of simulated time."""
    reward: float
    """Sum of rewards over the episode shown."""


def _gl_context(width: int, height: int) -> Any:
    """An off-screen OpenGL context from the first backend that works.

    Asked for directly, because MuJoCo settles on one when it is imported, and then on one that
    needs a screen.
    """
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    default = ("egl", "osmesa") if platform.system() == "Linux" else ("glfw",)
    backends = (wanted,) if wanted in ("egl", "osmesa", "glfw", "cgl") else default
    failures = []
    for backend in backends:
        try:
            context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
            context.make_current()
        except Exception as error:  # missing libraries show as almost any kind of error
            failures.append(f"{backend} ({type(error).__name__}: {error})")
        else:
            return context
    raise RenderError(f"no off-screen OpenGL here; tried {'; '.join(failures)}. {HELP}")


class Painter:
    """Draws states of one model, following its torso."""

    def __init__(self, model: Model, width: int = 320, height: int = 240):
        mujoco = mujoco_module()
        self._context = _gl_context(width, height)
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, height)
        self._model = model
        self._canvas = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_150.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._canvas)
        self._scene = mujoco.MjvScene(model, maxgeom=200)
        # Without a GPU these two take most of the time.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION.value] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW.value] = 0
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING.value
        self._camera.trackbodyid = model.body("torso").id
        self._camera.distance, self._camera.azimuth, self._camera.elevation = 3.0, 100, -20
        self._shape = (height, width, 3)

    def draw(self, data: Data, parameters: dict[str, float] | None = None) -> np.ndarray:
        """A picture [height, width, 3] of the state, with the task's goal or direction in it."""
        mujoco = mujoco_module()
        self._context.make_current()
        everything, options = mujoco.mjtCatBit.mjCAT_ALL.value, mujoco.MjvOption()
        mujoco.mjv_updateScene(
            self._model, data, options, None, self._camera, everything, self._scene
        )
        self._mark(data, parameters or {})
        picture = np.empty(self._shape, np.uint8)
        viewport = mujoco.MjrRect(0, 0, self._shape[1], self._shape[0])
        mujoco.mjr_render(viewport, self._scene, self._canvas)
        mujoco.mjr_readPixels(picture, None, viewport, self._canvas)
        return picture[::-1].copy()

    def close(self) -> None:
        self._context.make_current()
        self._canvas.free()
        self._context.free()

    def _mark(self, data: Data, parameters: dict[str, float]) -> None:
        shapes = mujoco_module().mjtGeom
        if "goal_x" in parameters:
            goal = np.array([parameters["goal_x"], parameters["goal_y"], 0.1])
            self._add(shapes.mjGEOM_SPHERE, np.full(3, 0.1), goal)
        if "direction" in parameters:
            angle = parameters["direction"]
            start = data.body("torso").xpos + np.array([0, 0, 0.6])
            end = start + np.array([np.cos(angle), np.sin(angle), 0])
            arrow = self._add(shapes.mjGEOM_ARROW, np.zeros(3), start)
            mujoco_module().mjv_connector(arrow, shapes.mjGEOM_ARROW.value, 0.04, start, end)

    def _add(self, shape: Any, size: np.ndarray, position: np.ndarray) -> Any:
        geom = self._scene.geoms[self._scene.ngeom]
        upright, colour = np.eye(3).ravel(), np.array(MARK, np.float32)
        mujoco_module().mjv_initGeom(geom, shape.value, size, position, upright, colour)
        self._scene.ngeom += 1
        return geom


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


def drawable(family: Family, simulation: Simulation) -> MujocoSimulation:
    """The simulation, if it is one that can be drawn."""
    if not isinstance(simulation, MujocoSimulation):
        raise RenderError(f"{family.name} has no picture: only MuJoCo families can be drawn")
    return simulation


def render_rollout(
    family: Family,
    task: Task,
    policy: Policy,
    seed: int = 0,
    width: int = 320,
    height: int = 240,
) -> Frames:
    """Run one episode and draw it, at most 30 pictures per simulated second.

    The policy sees observations [1, O] and the number of the step, as in `rollout`.
    """
    parameters = family.task_parameters(task)[None]
    names = dict(zip(family.parameter_names, parameters[0].tolist(), strict=True))
    simulation = family.simulate(parameters, threads=1)
    painter: Painter | PlanePainter
    if isinstance(simulation, MujocoSimulation) or position_slice(family) is None:
        physics = drawable(family, simulation)
        painter = robot = Painter(physics.snapshot(0)[0], width, height)
        dt, picture = physics.dt, lambda _: robot.draw(physics.snapshot(0)[1], names)
    else:
        painter = point = PlanePainter(family, parameters[0], width, height)
        dt, picture = 1 / STEPS_PER_SECOND, lambda observation: point.draw(observation[0])
    with closing(painter):
        observation = simulation.reset([seed])
        images, total = [picture(observation)], 0.0
        every = max(1, math.ceil(1 / (MAX_FPS * dt) - 1e-9))
        for t in range(family.horizon):
            action = np.clip(np.asarray(policy(observation, t), np.float32), -1, 1)
            step = simulation.step(action)
            if step.diverged[0]:
                raise RenderError(f"{family.name}: the simulation diverged at step {t}")
            observation = step.observation
            total += float(family.reward(step.outcome, action, parameters)[0])
            if (t + 1) % every == 0 or step.terminated[0]:
                images.append(picture(observation))
            if step.terminated[0]:
                break
    return Frames(np.stack(images), 1 / (dt * every), total)


def render_side_by_side(*clips: np.ndarray) -> np.ndarray:
    """Clips in one; shorter ones wait on their last picture."""
    length = max(map(len, clips))
    waiting = [c[np.minimum(np.arange(length), len(c) - 1)] for c in clips]
    gap = np.full((*waiting[0].shape[:2], 4, 3), 255, np.uint8)
    parts = [part for clip in waiting for part in (gap, clip)]
    return np.concatenate(parts[1:], axis=2)


def caption(images: np.ndarray, text: str) -> np.ndarray:
    """The same pictures with a line of text above them."""
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("RGB", (images.shape[2], STRIP), "white")
    ImageDraw.Draw(strip).text((6, 3), text, fill="black", font=ImageFont.load_default(14))
    above = np.broadcast_to(np.asarray(strip), (len(images), STRIP, images.shape[2], 3))
    return np.concatenate([above, images], axis=1)


def watchable(pictures: int, fps: float) -> float:
    """Pictures per second at which so many of them can be followed."""
    return min(fps, pictures / SHORTEST)


def check_suffix(path: str | Path) -> None:
    if Path(path).suffix not in (".mp4", ".gif"):
        name = Path(path).name
        raise RenderError(f"'{name}' is neither .mp4 nor .gif; those are what can be written")


def write_video(path: str | Path, images: np.ndarray, fps: float) -> Path:
    """Write an .mp4 or a .gif; the file appears when it is complete."""
    import imageio.v2 as imageio

    from ertrl.store import write_bytes

    check_suffix(path)
    path = Path(path)
    options: dict[str, Any] = {"duration": 1000 / fps, "loop": 0}
    if path.suffix == ".mp4":
        images = images[:, : images.shape[1] // 2 * 2, : images.shape[2] // 2 * 2]
        options = {"fps": fps, "macro_block_size": 2}
    with warnings.catch_warnings():
        # JAX warns of every fork; the encoder is another program, which shares nothing.
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
        video = imageio.mimwrite("<bytes>", list(images), path.suffix, **options)
    write_bytes(path, video)
    return path

"""Drawing rollouts."""

import os

import imageio.v2 as imageio
import numpy as np
import pytest

import ertrl
from env import TWINS
from ertrl.envs import make_family
from ertrl.envs.render import (
    STRIP,
    RenderError,
    caption,
    render_rollout,
    render_side_by_side,
    watchable,
    write_video,
)
from toys import can_render

needs_opengl = pytest.mark.skipif(
    not can_render() and "ERTRL_MUST_DRAW" not in os.environ, reason="neither EGL nor OSMesa here"
)


def stand_still(family):
    return lambda observation, step: np.zeros((len(observation), family.action_dim))


@pytest.fixture(autouse=True)
def few_pictures(monkeypatch):
    monkeypatch.setattr("ertrl.envs.render.MAX_FPS", 2.0)


@needs_opengl
@pytest.mark.parametrize("name", sorted(TWINS))
def test_every_robot_can_be_drawn(name):
    family = make_family(name)
    clip = render_rollout(family, 0, stand_still(family), width=64, height=48)
    assert clip.images.shape[1:] == (48, 64, 3)
    assert clip.images.dtype == np.uint8
    assert clip.images[0].std() > 5
    assert clip.fps <= 2
    assert np.isfinite(clip.reward)


@needs_opengl
def test_the_task_is_in_the_picture():
    family = make_family("ant-dir")
    one, other = (
        render_rollout(family, task, stand_still(family), width=64, height=48).images
        for task in (0, 19)
    )
    assert (one[0] != other[0]).any()


def test_clips_side_by_side():
    left = np.zeros((3, 40, 50, 3), np.uint8)
    right = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((40, 50, 3), np.uint8)
    both = render_side_by_side(left, right)
    assert both.shape == (5, 40, 104, 3)
    assert not both[4, :, :50].any()
    np.testing.assert_array_equal(both[:, 0, -1, 0], np.arange(5))
    assert render_side_by_side(left, left, right).shape == (5, 40, 158, 3)
    labelled = caption(left, "before")
    assert labelled[0, :STRIP].std() > 0
    np.testing.assert_array_equal(labelled[:, STRIP:], left)


def test_short_episodes_are_shown_in_slow_motion():
    assert watchable(300, 30.0) == 30.0
    assert watchable(20, 30.0) == 4.0


def test_a_point_is_drawn_with_its_way_and_its_goal():
    family = make_family("point-robot")

    def towards(observation, step):
        return np.clip((family.parameters[25] - observation) / 0.1, -1, 1)

    clip = render_rollout(family, 25, towards, width=96, height=80)
    assert clip.images.shape == (11, 80, 96, 3), "the start and every other of 20 steps"
    assert (clip.images[0] != clip.images[-1]).any()
    other = render_rollout(family, 3, towards, width=96, height=80)
    assert (clip.images[0] != other.images[0]).any(), "the goal is in the picture"


def test_a_film_has_a_title_and_the_expert_beside_the_agent(tmp_path, tiny_run):
    path = ertrl.render(tiny_run, 25, tmp_path / "clip.gif")
    film = imageio.mimread(path)
    assert film[0].shape[:2] == (360 + 2 * STRIP, 3 * 480 + 2 * 4)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_videos_can_be_read_again(tmp_path, suffix):
    images = np.random.default_rng(0).integers(256, size=(6, 32, 49, 3), dtype=np.uint8)
    path = write_video(tmp_path / "new" / f"clip{suffix}", images, fps=20)
    assert len(imageio.mimread(path)) == 6
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(RenderError, match=r"'clip.avi' is neither .mp4 nor .gif"):
        write_video(tmp_path / "clip.avi", np.zeros((1, 2, 2, 3), np.uint8), 20)


def test_without_opengl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    monkeypatch.setattr("importlib.import_module", lambda name: None)
    family = make_family("hopper-mass")
    with pytest.raises(RenderError, match=r"tried egl .*apt-get install libegl1"):
        render_rollout(family, 0, stand_still(family))

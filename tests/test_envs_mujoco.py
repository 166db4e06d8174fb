"""The MuJoCo families against Gymnasium, bare MuJoCo and numbers worked out by hand."""

import hashlib
import re
from importlib import resources

import gymnasium
import mujoco
import numpy as np
import pytest

from env import TWINS, simulation_speed
from ertrl.envs import FamilyEnv, FamilyVectorEnv, make_family, rollout
from ertrl.envs.physics import load_model

ASSETS = resources.files("ertrl.envs").joinpath("assets")
STEPS = 60
every_robot = pytest.mark.parametrize("name", sorted(TWINS))


def stock(family):
    """Parameters of a task whose dynamics are those of the stock model."""
    return np.ones((1, len(family.parameter_names)))


def actions(family, steps=STEPS):
    return np.random.default_rng(0).uniform(-1, 1, (steps, family.action_dim)).astype(np.float32)


@every_robot
def test_steps_are_gymnasiums_steps(name):
    """Bit by bit: positions, velocities, and what Gymnasium reports of the motion."""
    family = make_family(name)
    twin, options = TWINS[name]
    asset = family.simulate(stock(family)).asset
    env = gymnasium.make(twin, xml_file=str(ASSETS / asset), **options).unwrapped
    simulation = family.simulate(stock(family), threads=1)
    simulation.reset([1])
    env.reset(seed=0)
    env.set_state(simulation.qpos[0], simulation.qvel[0])
    for action in actions(family):
        before = env.data.qpos[:2].copy()
        step = simulation.step(action[None])
        *_, info = env.step(simulation.control_limit * action.astype(np.float64))
        np.testing.assert_array_equal(simulation.qpos[0], env.data.qpos)
        np.testing.assert_array_equal(simulation.qvel[0], env.data.qvel)
        if name == "ant-goal":
            expected = env.data.qpos[:2]
        elif name == "ant-dir":  # Gymnasium's own ant takes positions that are a physics step old
            expected = (env.data.qpos[:2] - before) / env.dt
        else:
            keys = ("x_velocity", "y_velocity")[: step.outcome.shape[1]]
            expected = [info[key] for key in keys]
        np.testing.assert_allclose(step.outcome[0], expected, rtol=1e-6, atol=1e-6)


@every_robot
def test_observations_are_laid_out_as_documented(name):
    """Every documented part, from a simulation in bare MuJoCo."""
    for options in [{}, {"observation_dim": 27}] if name == "ant-dir" else [{}]:
        family = make_family(name, **options)
        simulation = family.simulate(stock(family))
        observation = simulation.reset([3])[0]
        model = load_model(simulation.asset)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = simulation.qpos[0], simulation.qvel[0]
        mujoco.mj_forward(model, data)
        for action in actions(family, 8):
            parts = {
                "qpos": data.qpos,
                "qpos[1:]": data.qpos[1:],
                "qpos[2:]": data.qpos[2:],
                "qvel": data.qvel,
                "clipped qvel": data.qvel.clip(-10, 10),
                "torso position": data.body("torso").xpos,
                "cinert": data.cinert,
                "cvel": data.cvel,
                "qfrc_actuator": data.qfrc_actuator,
                "contact forces (zero)": np.zeros(84),
            }
            start = 0
            for part, size in family.layout:
                piece = observation[start : start + size]
                np.testing.assert_array_equal(piece, parts[part].ravel().astype(np.float32))
                start += size
            data.ctrl[:] = simulation.control_limit * action.astype(np.float64)
            mujoco.mj_step(model, data, simulation.frame_skip)
            observation = simulation.step(action[None]).observation[0]


def bare_run(family, factor, refresh):
    """The same task on a model of its own, without the batch."""
    model = mujoco.MjModel.from_xml_path(str(ASSETS / family.simulation.asset))
    model.body_mass *= factor
    model.body_inertia *= factor
    data = mujoco.MjData(model)
    if refresh:
        mujoco.mj_setConst(model, data)
    simulation = family.simulate(np.array([[factor]]))
    simulation.reset([5])
    data.qpos[:], data.qvel[:] = simulation.qpos[0], simulation.qvel[0]
    mujoco.mj_forward(model, data)
    for action in actions(family):
        data.ctrl[:] = action
        mujoco.mj_step(model, data, simulation.frame_skip)
        simulation.step(action[None])
    return simulation.qpos[0], data.qpos


@pytest.mark.parametrize("name", ["hopper-mass", "walker-mass"])
def test_masses_with_and_without_refreshed_constants(name):
    """Either way it is what MuJoCo does with such a model, and the two ways differ."""
    refreshed, expected = bare_run(make_family(name), 2.0, True)
    np.testing.assert_array_equal(refreshed, expected)
    stale, expected = bare_run(make_family(name, refresh_constants=False), 2.0, False)
    np.testing.assert_array_equal(stale, expected)
    assert np.abs(refreshed - stale).max() > 1e-3
    model, _ = make_family(name).simulate(np.array([[1.0], [2.0]])).snapshot(1)
    reference = load_model(make_family(name).simulation.asset)
    np.testing.assert_array_equal(model.body_mass, 2 * reference.body_mass)
    np.testing.assert_array_equal(model.body_inertia, 2 * reference.body_inertia)
    np.testing.assert_allclose(model.body_subtreemass, 2 * reference.body_subtreemass)


@pytest.mark.parametrize("name", ["hopper-friction", "walker-friction"])
def test_friction_reaches_the_contact(name):
    family = make_family(name)
    simulation = family.simulate(np.array([[1.0], [0.5], [3.0]]))
    simulation.reset([1, 1, 1])
    simulation.qpos[:, 1] -= 0.1  # into the floor
    one, half, three = (simulation.snapshot(row)[1].contact.friction[0] for row in range(3))
    np.testing.assert_allclose(half, 0.5 * one)
    np.testing.assert_allclose(three, 3 * one)


def test_models_are_the_recorded_ones(capfd):
    provenance = (ASSETS / "PROVENANCE.md").read_text()
    rows = re.findall(r"\| `(\w+\.xml)` \| `(\w{64})` \| (.*) \|", provenance)
    assert len(rows) == 5
    for name, digest, change in rows:
        same = hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
        assert same == (change == "nothing")
        load_model.__wrapped__(name)
    assert capfd.readouterr().err == ""
    assert load_model("half_cheetah.xml").body_mass.sum() == pytest.approx(14, rel=1e-12)
    assert (load_model("ant.xml").actuator_gear[:, 0] == 150).all()


@pytest.mark.parametrize(
    ("name", "outcome", "parameters", "expected"),
    [
        # action 0.5 in every joint
        ("cheetah-vel", [1.2], [1.5], -0.3 - 0.05 * 6 * 0.25),
        ("ant-goal", [0.5, -0.2], [0.8, 0.1], -0.6 - 0.1 * 8 * 0.25),
        ("ant-dir", [1.0, 2.0], [np.pi / 2], 2.0 + 1 - 0.5 * 8 * 0.25),
        ("humanoid-dir", [1.0, 2.0], [np.pi], -1.25 + 5 - 0.1 * 17 * 0.2**2),
        ("hopper-mass", [2.0], [1.1], 3 - 1e-3 * 3 * 0.25),
        ("walker-friction", [2.0], [1.1], 3 - 1e-3 * 6 * 0.25),
    ],
)
def test_rewards_by_hand(name, outcome, parameters, expected):
    family = make_family(name)
    action = np.full(family.action_dim, 0.5)
    reward = family.reward(np.array(outcome), action, np.array(parameters))
    assert reward == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "index", "healthy", "terminal"),
    [
        ("ant-dir", 2, [0.21, 0.99], [0.19, 1.01]),
        ("humanoid-dir", 2, [1.01, 1.99], [0.99, 2.01]),
        ("hopper-mass", 1, [0.71, 5.0], [0.69, 0.7]),
        ("hopper-mass", 2, [-0.19, 0.19], [-0.2, 0.21]),
        ("hopper-mass", 3, [99.0], [-100.0]),
        ("walker-mass", 1, [0.81, 1.99], [0.8, 2.0]),
        ("walker-mass", 2, [-0.99, 0.99], [1.0, -1.1]),
        ("cheetah-vel", 1, [-9.0, 9.0], []),
        ("ant-goal", 2, [0.0, 9.0], []),
    ],
)
def test_episodes_end_at_the_documented_limits(name, index, healthy, terminal):
    family = make_family(name)
    simulation = family.simulate(stock(family))
    simulation.reset([0])
    for value in healthy + terminal:
        simulation.qpos[0, index] = value
        assert simulation.terminated()[0] == (value in terminal)


def test_tasks_of_the_papers_text():
    velocity = make_family("cheetah-vel").parameters[:, 0]
    np.testing.assert_allclose(velocity[[0, 19]], [1, 2])
    np.testing.assert_allclose(np.sort(velocity[30:])[[0, 4, 5, 9]], [0.5, 0.9, 2.1, 2.5])
    radius = np.linalg.norm(make_family("ant-goal").parameters, axis=1)
    np.testing.assert_allclose(radius, [0.8] * 10 + [1.2] * 10 + [0.8] * 5 + [1.2] * 5 + [1.6] * 10)
    for name in ("ant-dir", "humanoid-dir"):
        angle = np.degrees(make_family(name).parameters[:, 0])
        np.testing.assert_allclose(angle[[0, 19]], [-90, 90])
        np.testing.assert_allclose(np.abs(angle[30:]), [99, 108, 117, 126, 135] * 2)
    for name in ("hopper-mass", "walker-friction"):
        power = np.log(make_family(name).parameters[:, 0]) / np.log(1.5)
        np.testing.assert_allclose(power[[0, 19]], [-1, 1])
        np.testing.assert_allclose(np.abs(power[30:]), [1.1, 1.2, 1.3, 1.4, 1.5] * 2)


def test_tasks_of_the_released_code():
    velocity = make_family("cheetah-vel", split="released").parameters[:, 0]
    np.testing.assert_allclose(velocity[:20], np.arange(1.1, 3.05, 0.1))
    np.testing.assert_allclose(velocity[20:30], np.arange(1.15, 3.0, 0.2))
    np.testing.assert_allclose(velocity[30:40], [0.6, 0.7, 0.8, 0.9, 1, 3.1, 3.2, 3.3, 3.4, 3.5])
    np.testing.assert_allclose(velocity[40:], [0.1, 0.2, 0.3, 0.4, 0.5, 3.6, 3.7, 3.8, 3.9, 4])
    angle = np.degrees(make_family("ant-dir", split="released").parameters[:, 0])
    np.testing.assert_allclose(angle[[0, 19, 30, 39, 40, 49]], [90, 261, 45, 306, 0, 351])
    factor = make_family("hopper-mass", split="released").parameters[:, 0]
    expected = [0.674, 1.484, 0.547, 1.828, 0.444, 2.25]
    np.testing.assert_allclose(factor[[0, 19, 30, 39, 40, 49]], expected, atol=1e-3)
    goals = make_family("ant-goal", split="released").parameters
    assert (goals[40:, 0] < 0).all()


def test_rewards_follow_from_stored_observations():
    """Where the observation shows the position, stored episodes are enough to relabel."""
    plan = actions(make_family("ant-goal"), 200)
    for name in ("ant-goal", "ant-dir"):
        family = make_family(name)
        parameters = family.parameters[[2, 31]]
        episodes = rollout(family, parameters, lambda _, t: plan[[t, t]], [1, 2])
        position = episodes.observation[..., :2].astype(np.float64)
        outcome = position[:, 1:] if name == "ant-goal" else np.diff(position, axis=1) / 0.05
        again = family.reward(outcome, episodes.action, parameters[:, None])
        for row, length in enumerate(episodes.length):
            np.testing.assert_allclose(
                again[row, :length], episodes.reward[row, :length], atol=2e-5
            )


@every_robot
def test_a_blow_up_is_reported_and_kept_out(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log file where it stands
    family = make_family(name)
    parameters = family.parameters[:3]
    simulation = family.simulate(parameters)
    simulation.reset([0, 1, 2])
    rest = np.zeros((3, family.action_dim))
    simulation.qvel[1] = 1e12
    step = simulation.step(rest)
    assert step.diverged.tolist() == [False, True, False]
    assert not step.terminated[1]
    assert np.isfinite(step.observation).all()  # which is why looking for NaN is not enough
    assert simulation.step(rest).diverged[1]
    simulation.reset([7], np.array([1]))
    assert not simulation.step(rest).diverged.any()


@every_robot
def test_rows_that_rest_change_nothing_for_the_others(name):
    """Rows that nobody wants, or whose episode is over, are not simulated."""
    family = make_family(name)
    parameters, seeds = family.parameters[:4], [5, 6, 7, 8]
    plan = actions(family, 60)
    plan = np.stack([plan, -plan, np.roll(plan, 7, axis=0), 0 * plan])

    def policy(_, t):
        return plan[:, t % 60]

    whole = rollout(family, parameters, policy, seeds)
    some = rollout(family, parameters, policy, seeds, rows=np.array([1, 3]))
    for one, other in zip(whole, some, strict=True):
        np.testing.assert_array_equal(one[[1, 3]], other[[1, 3]])
    assert some.length[[0, 2]].tolist() == [0, 0]
    assert not some.truncated[[0, 2]].any()
    simulation = family.simulate(parameters)
    rollout(family, parameters, policy, seeds[::-1], rows=np.array([1, 3]), simulation=simulation)
    again = rollout(family, parameters, policy, seeds, simulation=simulation)
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_row_that_rests_stays_until_it_is_reset():
    family = make_family("walker-mass")
    simulation = family.simulate(family.parameters[:2])
    simulation.reset([1, 2])
    simulation.rest(np.array([0]))
    before = simulation.qpos.copy()
    push = np.full((2, family.action_dim), 0.5)
    simulation.step(push)
    np.testing.assert_array_equal(simulation.qpos[0], before[0])
    assert (simulation.qpos[1] != before[1]).any()
    simulation.reset([1], np.array([0]))
    simulation.step(push)
    assert (simulation.qpos[0] != before[0]).any()


def test_a_policy_that_says_nan_fails_its_own_episode(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    family = make_family("hopper-mass")

    def policy(observation, step):
        action = np.zeros((3, 3), np.float32)
        action[1] = np.nan if step == 4 else 0
        return action

    def healthy(observation, step):
        return np.zeros((3, 3))

    parts = family, family.parameters[:3]
    simulation = family.simulate(parts[1])
    episodes = rollout(*parts, policy, [1, 2, 3], simulation=simulation)
    again = rollout(*parts, healthy, [1, 2, 3], simulation=simulation)
    for used, new in zip(again, rollout(*parts, healthy, [1, 2, 3]), strict=True):
        np.testing.assert_array_equal(used, new)
    assert episodes.diverged.tolist() == [False, True, False]
    assert episodes.length[1] == 5
    assert not episodes.terminated[1]
    assert not episodes.truncated[1]


def test_gymnasium_environments_warn_and_truncate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = FamilyEnv("hopper-mass")
    env.reset(seed=0)
    env._simulation.qvel[0] = 1e12
    with pytest.warns(UserWarning, match="hopper-mass: the simulation diverged"):
        _, _, terminated, truncated, info = env.step(np.zeros(3))
    assert (terminated, truncated, info["diverged"]) == (False, True, True)
    many = FamilyVectorEnv("hopper-mass", tasks=[0, 1, 2])
    many.reset(seed=0)
    many._simulation.qvel[2] = 1e12
    with pytest.warns(UserWarning, match=r"diverged in rows \[2\]"):
        _, _, terminated, truncated, info = many.step(np.zeros((3, 3)))
    assert truncated.tolist() == info["diverged"].tolist() == [False, False, True]
    *_, truncated, info = many.step(np.zeros((3, 3)))
    assert not truncated.any()


@pytest.mark.filterwarnings("ignore")
def test_benchmark_compares_with_gymnasium():
    result = simulation_speed(
        ["hopper-mass", "point-robot"], threads=1, batch=8, seconds=0.05, rounds=2
    )
    hopper = result["families"]["hopper-mass"]
    assert hopper["gymnasium"] == "Hopper-v5"
    assert hopper["ratio"] > 0
    assert len(hopper["ratios"]) == 2
    assert 0 < hopper["cores_used"] < 1.5
    assert set(result["families"]["point-robot"]) == {"steps_per_second", "cores_used"}


def test_physics_keeps_to_the_threads_of_the_process(monkeypatch):
    family = make_family("cheetah-vel")
    for threads in (1, 3):
        monkeypatch.setenv("NPROC", str(threads))
        assert family.simulate(family.parameters[:4])._batch.nthread == threads
    assert family.simulate(family.parameters[:4], threads=2)._batch.nthread == 2

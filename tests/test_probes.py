"""What z knows, measured on representations whose knowledge is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from ertrl import api, store
from ertrl.cli import main
from ertrl.envs import rollout
from ertrl.errors import ConfigError, RunError
from ertrl.evaluation import probes, swap
from ertrl.evaluation.context import held_back
from ertrl.evaluation.probes import (
    ProbeSettings,
    regress,
    tell_apart,
    variance_components,
    variance_shares,
)
from ertrl.evaluation.shapes import Probes
from ertrl.types import Transitions
from toys import write_dataset

SMALL = ProbeSettings(
    transitions=20, contexts=10, leak_contexts=4, leak_checkpoints=2, swap_partners=2, projected=10
)


def noisy_codes(parameters, samples=200, noise=0.1, seed=0):
    """Codes that are the parameters, mixed and disturbed."""
    draw = np.random.default_rng(seed)
    mixed = parameters @ draw.normal(size=(parameters.shape[1], 5))
    return mixed[:, None] + noise * draw.normal(size=(len(parameters), samples, 5))


def test_constant_prediction_errs_by_the_standard_deviation():
    parameters = np.array([[1.0], [2.0], [6.0]])
    train, test = regress(noisy_codes(parameters), parameters, "constant")
    # Mean 3: deviations -2, -1, 3, so the root mean square is sqrt(14 / 3).
    assert train == test == pytest.approx(np.sqrt(14 / 3))


def test_principal_plane_finds_the_plane():
    plane = np.eye(4)[[1, 3]]
    points = np.random.default_rng(0).normal(size=(200, 2)) * [5, 2] @ plane + 7
    centre, axes, share = probes.principal_plane(points)
    np.testing.assert_allclose(centre, points.mean(axis=0))
    np.testing.assert_allclose(np.abs(axes), plane, atol=0.1)
    assert share[0] > 0.7
    assert share.sum() == pytest.approx(1)
    assert probes.principal_plane(np.ones((9, 4)))[2].tolist() == [0, 0]


def test_linear_regression_reads_a_linear_code_and_no_noise():
    parameters = np.linspace(-1, 1, 12)[:, None]
    _, exact = regress(noisy_codes(parameters, noise=0.0), parameters, "linear")
    assert exact == pytest.approx(0, abs=1e-9)
    nothing = np.random.default_rng(0).normal(size=(12, 200, 5))
    constant = regress(nothing, parameters, "constant")[1]
    assert regress(nothing, parameters, "linear")[1] == pytest.approx(constant, rel=0.03)


def test_errors_are_those_of_samples_that_were_not_learned_from():
    draw = np.random.default_rng(1)
    parameters = draw.normal(size=(6, 1))
    useless = draw.normal(size=(6, 10, 40))  # 48 training samples in 40 dimensions
    train, test = regress(useless, parameters, "linear")
    assert train < 0.6 * regress(useless, parameters, "constant")[0] < test


def test_support_vectors_read_a_curved_code_whatever_the_scale_of_the_parameter():
    angle = np.linspace(0, np.pi, 15)
    codes = noisy_codes(np.stack([np.cos(2 * angle), np.sin(2 * angle)], 1), noise=0.05)
    for scale in (1.0, 0.01):  # 0.01: less than the tube of the regression is wide
        parameters = scale * np.abs(angle - np.pi / 2)[:, None]
        errors = {m: regress(codes, parameters, m)[1] for m in ("constant", "linear", "svr")}
        assert errors["svr"] < 0.35 * errors["constant"]


def test_angles_are_compared_along_the_circle():
    # Two tasks on either side of the cut at 180 degrees: to a raw regression they are far apart.
    angles = np.radians([[-179.0], [179.0], [-175.0], [175.0]])
    same = np.zeros((4, 50, 3))
    raw = regress(same, angles, "constant")[1]
    round_the_corner = regress(same, angles, "constant", angular=True)[1]
    assert raw > 3.0
    assert round_the_corner == pytest.approx(np.radians(np.sqrt((1 + 1 + 25 + 25) / 4)), rel=1e-6)


def test_a_leak_is_found_and_chance_is_chance():
    draw = np.random.default_rng(0)
    noise = draw.normal(size=(5, 2, 40, 3))
    assert tell_apart(noise) == pytest.approx(0.2, abs=0.07)
    assert tell_apart(0.1 * noise + draw.normal(size=(5, 1, 1, 3))) > 0.9
    assert tell_apart(np.zeros((5, 2, 40, 3))) == pytest.approx(0.2)


def test_marks_of_episodes_do_not_count_as_a_leak():
    """A code that knows the episode but not the checkpoint helps on no other episode."""
    draw = np.random.default_rng(3)
    episode = draw.normal(size=(8, 2, 1, 4))
    score = tell_apart(episode + 0.01 * draw.normal(size=(8, 2, 30, 4)))
    assert score < 0.35


def levels(draw, sizes, spread, width=3):
    """Codes [tasks, checkpoints, 2, contexts, Z] of known variances: task, checkpoint in all tasks,
    checkpoint in one task, episodes of a half, context."""
    tasks, checkpoints, contexts = sizes
    shapes = (
        (tasks, 1, 1, 1),
        (1, checkpoints, 1, 1),
        (tasks, checkpoints, 1, 1),
        (tasks, checkpoints, 2, 1),
        (tasks, checkpoints, 2, contexts),
    )
    return sum(
        np.sqrt(variance / width) * draw.normal(size=(*shape, width))
        for variance, shape in zip(spread, shapes, strict=True)
    )


def test_shares_of_variance():
    draw = np.random.default_rng(0)
    shares = variance_shares(levels(draw, (400, 6, 5), (6, 0, 3, 0, 1)))
    assert shares["task"] == pytest.approx(0.6, abs=0.08)
    assert shares["checkpoint"] == pytest.approx(0.3, abs=0.06)
    assert shares["context"] == pytest.approx(0.1, abs=0.02)
    no_leak = variance_shares(levels(draw, (400, 6, 5), (6, 0, 0, 0, 1)))
    assert no_leak["checkpoint"] < 0.005


def test_marks_of_episodes_are_no_variance_of_checkpoints():
    draw = np.random.default_rng(0)
    shares = variance_shares(levels(draw, (400, 6, 20), (1, 0, 0, 1, 1)))
    assert shares["checkpoint"] < 0.01


@pytest.mark.parametrize("sizes", [(40, 10, 20), (2, 2, 4)], ids=["default", "smallest"])
@pytest.mark.parametrize(
    "spread", [(0, 0, 0, 0, 1), (0, 0, 2, 0, 1), (3, 0, 0, 0, 1), (3, 1, 0, 0, 1), (3, 1, 2, 1, 1)]
)
def test_variance_components_are_right_in_expectation(sizes, spread):
    """Mean of many simulations, whose true variances are known; noise alone is 0 above contexts."""
    draw = np.random.default_rng(0)
    often = 200 if sizes[0] > 2 else 4000
    found = [list(variance_components(levels(draw, sizes, spread)).values()) for _ in range(often)]
    task, shared, own, episodes, context = spread
    # Half of the variance between halves is within the two of them.
    contexts = 2 * sizes[2]
    truth = task, shared + own, context + episodes * contexts / 2 / (contexts - 1)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - truth) < 4 * error).all()
    assert error.max() < 0.15


def logs_of_episodes(tasks, episodes, steps, short=()):
    """Logs whose observation is the number of the episode; tasks of `short` have one of them."""

    def data(task):
        count = 1 if task in short else episodes
        rows = np.arange(count * steps)

        def transitions(which):
            where = np.stack([np.full_like(which, task), rows[which] // steps, which], -1)
            flat = np.zeros(which.shape, np.float32)
            return Transitions(where.astype(np.float32), where[..., :1], flat, where, flat)

        return SimpleNamespace(steps=rows, parameters=np.array([task]), transitions=transitions)

    return SimpleNamespace(
        tasks=range(tasks),
        horizon=steps,
        task={t: data(t) for t in range(tasks)}.__getitem__,
        group=lambda name: list(range(tasks)) if name == "test-id" else [],
        manifest={"parameter_names": ["number"]},
    )


class Wanderer:
    """Its z wanders within an episode, starting anew in each, and knows nothing of the task."""

    config = SimpleNamespace(sampling=SimpleNamespace(context_size=4))

    def __init__(self, tasks, episodes, steps):
        draw = np.random.default_rng(0)
        starts = 3 * draw.normal(size=(tasks, episodes, 1, 8))
        self.walk = starts + 0.1 * draw.normal(size=(tasks, episodes, steps, 8)).cumsum(axis=2)
        self.shown = []

    def encode(self, context):
        task, episode, row = np.moveaxis(context.observation.astype(int), -1, 0)
        self.shown.append((task[:, 0], row))
        return self.walk[task, episode, row % self.walk.shape[2]].mean(axis=1)


def test_the_time_of_a_transition_is_not_taken_for_its_task():
    """Samples of one episode on either side would let models recognise the episode."""
    sizes = 16, 8, 50
    found = probes.regression(Wanderer(*sizes), logs_of_episodes(*sizes), ProbeSettings(100, 20))
    errors = {(e["context"], e["model"]): e["test_rmse"] for e in found}
    for context in ("transition", "context"):
        assert errors[context, "svr"] > errors[context, "constant"]


@pytest.mark.parametrize("short", [(), (1, 2)], ids=["many episodes", "one episode"])
def test_no_transition_is_on_both_sides_of_the_regression(short):
    sizes = 3, 5, 20
    agent, settings = Wanderer(*sizes), ProbeSettings(transitions=100, contexts=10)
    probes.regression(agent, logs_of_episodes(*sizes, short), settings)
    for tasks, rows in agent.shown:
        tests = len(rows) // 5
        kind = rows if tasks[0] in short else rows // 20
        assert not set(kind[:tests].ravel()) & set(kind[tests:].ravel())
        assert len(np.unique(tasks)) == 1


def test_every_other_episode_is_held_back():
    assert held_back(np.array([3, 3, 7, 7, 7, 8])).tolist() == [False] * 2 + [True] * 3 + [False]
    assert held_back(np.array([3, 3, 3])).tolist() == [False, False, True]
    assert held_back(np.array([3])).tolist() == [False]
    assert held_back(np.array([], int)).tolist() == []


def test_probes_of_a_run_are_kept_and_complete(tiny_run, tmp_path, monkeypatch):
    result = api.probe(tiny_run, settings=SMALL)
    assert result == store.read_json(tiny_run.probes.path(40), Probes)
    kinds = {(e["context"], e["target"], e["model"]) for e in result["regression"]}
    assert kinds == {
        (c, "parameters", m)
        for c in ("transition", "context")
        for m in ("constant", "linear", "svr")
    }
    assert result["leak"]["chance"] == 0.5
    assert set(result["leak"]["accuracy"]) == {"train", "test-id", "test-ood"}
    assert sum(result["leak"]["variance"].values()) == pytest.approx(1)
    assert set(result["swap"]["followed_task"]) == {"train", "test-id", "test-ood"}
    assert result["swap"]["episodes"] == 2 * 40
    assert result["projection"]["tasks"] == [0, 4, 9, 15, 18, 30, 35, 39]
    assert np.shape(result["projection"]["tsne"]) == (8, 10, 2)
    monkeypatch.setattr(probes, "probe_agent", None)  # a second time nothing is computed
    assert api.probe(tiny_run, settings=SMALL) == result
    with pytest.raises(RunError, match="is not the dataset"):
        api.probe(tiny_run, settings=SMALL, data=write_dataset(tmp_path / "toy").path)


def test_probes_on_the_command_line(tiny_run, capsys):
    command = ["evaluate", str(tiny_run.path), "--probes", "--probe-transitions", "20"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "offline/test-id" in text
    assert "parameters from one transition, svr" in text
    assert "checkpoint from z (chance 0.500)" in text
    assert "z follows the task" in text
    assert main([*command[:-1], "3"]) == 2
    assert "transitions must be at least 5, got 3" in capsys.readouterr().err


def test_a_direction_is_also_regressed_as_an_angle(tiny_run, tiny_dataset, monkeypatch):
    names = {**tiny_dataset.manifest, "parameter_names": ["direction"]}
    monkeypatch.setattr(tiny_dataset, "manifest", names)
    for data in tiny_dataset.tasks.values():
        monkeypatch.setattr(data, "parameters", data.parameters[:1])
    found = probes.regression(api.load_agent(tiny_run), tiny_dataset, SMALL)
    assert {e["target"] for e in found} == {"parameters", "angle"}


def test_the_task_is_not_asked_of_tasks_the_agent_was_trained_on(
    tiny_run, tiny_dataset, monkeypatch
):
    monkeypatch.setattr(type(tiny_dataset), "group", lambda *_: [])
    assert probes.regression(api.load_agent(tiny_run), tiny_dataset, SMALL) == []


def test_a_leak_that_cannot_be_measured_says_why(tiny_run, tiny_dataset, monkeypatch):
    data = tiny_dataset.task(0)
    monkeypatch.setattr(data, "checkpoints", np.zeros_like(data.checkpoints))
    found = probes.leak(api.load_agent(tiny_run), tiny_dataset, SMALL)
    assert "task 0 has fewer than two checkpoints" in found["missing"]


def test_too_little_data_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="transitions must be at least 5, got 2"):
        api.probe(tiny_run, settings=ProbeSettings(transitions=2))


def test_whom_a_code_follows_is_told_by_where_it_is_on_the_way():
    own, other = np.array([[2.0, 0.0]] * 3), np.array([[0.0, 0.0]] * 3)
    found = np.array([[0.2, 5.0], [1.5, -1.0], [3.0, 0.0]])
    way = swap.way(found, own, other)
    assert way.tolist() == pytest.approx([0.1, 0.75, 1.5])
    distances = [np.linalg.norm(found - end, axis=1) for end in (own, other)]
    assert (way > 0.5).tolist() == (distances[0] < distances[1]).tolist() == [False, True, True]
    assert swap.way(1e-9 * found, 1e-9 * own, other).tolist() == pytest.approx([0.1, 0.75, 1.5])
    assert swap.way(found, own, own).tolist() == [0, 0, 0]


def test_tasks_are_acted_that_are_not_the_own_one(tiny_dataset):
    tasks, acted = swap.draw_pairs(tiny_dataset, 2)
    assert (tasks != acted).all()
    assert set(acted) <= set(tiny_dataset.group("train"))
    assert sorted(set(tasks)) == sorted(tiny_dataset.tasks)
    assert len(tasks) == 2 * len(tiny_dataset.tasks)
    tasks, acted = swap.draw_pairs(tiny_dataset, 1000)
    first = tiny_dataset.group("train")[0]
    assert set(acted[tasks == first]) == set(tiny_dataset.group("train")[1:])


def test_the_order_of_tasks_in_a_manifest_does_not_matter(tiny_dataset, monkeypatch):
    def goals(_agent, dataset, tasks, _shape, _stream):
        return np.stack([dataset.task(task).parameters for task in tasks])[:, None]

    monkeypatch.setattr(swap, "random_codes", goals)
    found = swap.swap(Walker("task"), tiny_dataset, 2)
    backwards = dict(reversed(tiny_dataset.tasks.items()))
    monkeypatch.setattr(tiny_dataset, "tasks", backwards)
    again = swap.swap(Walker("task"), tiny_dataset, 2)
    assert again["control"] == found["control"] == dict.fromkeys(again["control"], 1.0)


class Walker:
    """Walks to z in a curve, and takes for the task what rewards say, or where it came to."""

    def __init__(self, reads: str):
        self._reads = reads

    def act(self, observation, z):
        return np.clip((z - observation) @ np.array([[4.0, 2.0], [-2.0, 4.0]]), -1, 1)

    def encode(self, context):
        if self._reads == "behaviour":
            return context.next_observation[:, -1]
        goals = []  # r = -|s' - g|, so r^2 - |s'|^2 = |g|^2 - 2 s' g: linear in g and |g|^2
        for place, reward in zip(context.next_observation, context.reward, strict=True):
            sides = np.column_stack([-2 * place, np.ones(len(place))])
            goals.append(np.linalg.lstsq(sides, reward**2 - (place**2).sum(1), rcond=None)[0][:2])
        return np.array(goals)


@pytest.mark.parametrize(("reads", "followed", "way"), [("task", 1.0, 1.0), ("behaviour", 0, 0)])
def test_the_swap_tells_a_reader_of_the_task_from_one_of_behaviour(
    tiny_dataset, monkeypatch, reads, followed, way
):
    def goals(_agent, dataset, tasks, _shape, _stream):
        return np.stack([dataset.task(task).parameters for task in tasks])[:, None]

    monkeypatch.setattr(swap, "random_codes", goals)
    found = swap.swap(Walker(reads), tiny_dataset, 2)
    assert found["episodes"] == 2 * len(tiny_dataset.tasks)
    assert found["followed_task"] == {"train": followed, "test-id": followed, "test-ood": followed}
    assert list(found["way"].values()) == pytest.approx([way] * 3, abs=0.1)
    assert set(found["control"].values()) == {1.0}, "unswapped, either knows its task"


def test_what_diverges_does_not_count(tiny_dataset, monkeypatch):
    def goals(_agent, dataset, tasks, _shape, _stream):
        return np.stack([dataset.task(task).parameters for task in tasks])[:, None]

    def diverging(*arguments):
        episodes = rollout(*arguments)
        episodes.diverged[lost] = True
        return episodes

    monkeypatch.setattr(swap, "random_codes", goals)
    monkeypatch.setattr(swap, "rollout", diverging)
    lost = np.arange(3)
    assert swap.swap(Walker("task"), tiny_dataset, 2)["episodes"] == 2 * 40 - 3
    lost = np.arange(3 * 40)
    assert "diverged" in swap.swap(Walker("task"), tiny_dataset, 2)["missing"]


def test_codes_that_are_all_the_same_say_nothing(tiny_dataset, monkeypatch):
    monkeypatch.setattr(swap, "random_codes", lambda *a: np.ones((len(a[2]), 1, 2)))
    assert "does not tell tasks apart" in swap.swap(Walker("task"), tiny_dataset, 2)["missing"]


def test_a_swap_that_cannot_be_measured_says_why(tiny_dataset, monkeypatch):
    only = {"train": [0], "test-id": [20], "test-ood": [30]}
    monkeypatch.setattr(type(tiny_dataset), "group", lambda _, name: only[name])
    assert "only one training task" in swap.swap(Walker("task"), tiny_dataset, 2)["missing"]
    monkeypatch.setattr(tiny_dataset, "has_simulator", False)
    assert "no simulator" in swap.swap(Walker("task"), tiny_dataset, 2)["missing"]

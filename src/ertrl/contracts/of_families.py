"""What a family promises, whatever it simulates."""

import json
from itertools import chain, zip_longest

import numpy as np

from ertrl.contracts.small import demand
from ertrl.envs import Family, make_family
from ertrl.envs.gym_family import GymFamily
from ertrl.profiles import collect_config

STEPS = 25


def some_tasks(family: Family, count: int) -> np.ndarray:
    """So many tasks, from each group of the split in turn."""
    in_turn = chain(*zip_longest(*family.split.values()))
    return np.array([task for task in in_turn if task is not None][:count])


def steps(family: Family) -> int:
    return min(STEPS, family.horizon)


def plan(rows, family: Family, count: int | None = None) -> np.ndarray:
    """Actions [steps, N, A] that belong to row numbers, wherever these stand in a batch."""
    shape = (steps(family) if count is None else count, family.action_dim)
    each = [np.random.default_rng(row).uniform(-1, 1, shape) for row in rows]
    return np.stack(each, axis=1).astype(np.float32)


def run(family: Family, rows, threads: int | None = None, tasks=None) -> tuple[np.ndarray, ...]:
    """Observations [steps + 1, N, O], outcomes and terminations [steps, N, ...] of the rows."""
    tasks = rows if tasks is None else tasks
    simulation = family.simulate(family.parameters[tasks], threads)
    seen = simulation.reset([100 + r for r in rows])
    observations, outcomes, terminated = [np.array(seen)], [], []  # copies of what may be changed
    for t, action in enumerate(plan(rows, family), start=1):
        step = simulation.step(action)
        observations.append(np.array(step.observation))
        outcomes.append(np.array(step.outcome))
        terminated.append(np.array(step.terminated))
        if step.diverged.any():
            lost = f"{family.name}, task {tasks[int(step.diverged.argmax())]}: diverged at step {t}"
            demand(False, f"{simulation.fault or lost} (under random actions)")
    return np.stack(observations), np.stack(outcomes), np.stack(terminated)


def _same(one, other, otherwise: str) -> None:
    """Demand that arrays are equal in pairs; `otherwise` says what is wrong where they are not."""
    for a, b in zip(one, other, strict=True):
        if a is None and b is None:  # no success to tell of
            continue
        demand(np.shape(a) == np.shape(b), f"{otherwise} (shapes {np.shape(a)} and {np.shape(b)})")
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if not np.array_equal(a, b, equal_nan=True):
            demand(False, f"{otherwise} (numbers differ by up to {np.nanmax(np.abs(a - b)):.3g})")


def same_seeds_same_trajectories(family: Family) -> None:
    """The same seeds and actions give the same trajectories, bit for bit."""
    rows = some_tasks(family, 3)
    source = "a row must draw from its own seed"
    if isinstance(family, GymFamily):
        source = "draw from self.np_random, after super().reset(seed=seed),"
    otherwise = f"a second run went elsewhere: {source} and nothing else"
    _same(run(family, rows), run(family, rows), otherwise)


def actions_are_cut(family: Family) -> None:
    """Actions beyond 1 are cut."""
    steps, ones = [], np.ones((1, family.action_dim), np.float32)
    for action in (ones, ones, 3 * ones):
        simulation = family.simulate(family.parameters[:1])
        simulation.reset([0])
        steps.append(simulation.step(action))
    _same(steps[0], steps[1], "one seed and one action lead to two places, so nobody can tell")
    otherwise = "an action of 3 does more than one of 1: clip actions to [-1, 1] in step()"
    _same(steps[0], steps[2], otherwise)


def a_reset_gives_all_rows(family: Family) -> None:
    """A reset of some rows gives the observations of all rows and leaves the others alone."""
    parameters = family.parameters[some_tasks(family, 3)]
    n = len(parameters)
    simulation, fresh = family.simulate(parameters), family.simulate(parameters)
    simulation.reset(list(range(n)))
    seen = simulation.step(plan(range(n), family, 1)[0]).observation
    again, first = simulation.reset([7], np.array([1])), fresh.reset([7] * n)
    shape = (n, family.observation_dim)
    for array, how in ((first, ""), (again, f", of which 1 of {n} was reset")):
        demand(
            np.shape(array) == shape,
            f"reset() gave observations of shape {np.shape(array)}, expected {shape}: those of "
            f"all rows{how}",
        )
    others = np.arange(n) != 1
    _same([again[others]], [seen[others]], "reset() of a row changed what other rows see")
    _same([again[1]], [first[1]], "a row that was reset did not start as its seed says")


def observations_are_left_alone(family: Family) -> None:
    """An observation stays what it was when the simulation goes on."""
    rows = some_tasks(family, 3)
    simulation = family.simulate(family.parameters[rows])
    given = [simulation.reset(list(range(len(rows))))]
    kept = [np.array(given[0])]
    for action in plan(rows, family):
        given.append(simulation.step(action).observation)
        kept.append(np.array(given[-1]))
    given.append(simulation.reset([7], np.array([0])))
    kept.append(np.array(given[-1]))
    simulation.step(plan(rows, family, 1)[0])
    otherwise = "an observation changed after it was given: return a copy of it"
    _same(given, kept, otherwise)


def company_does_not_matter(family: Family) -> None:
    """Trajectories depend neither on company nor on order nor on threads."""
    rows = some_tasks(family, 7)
    whole = run(family, rows, threads=1)
    order = np.random.default_rng(0).permutation(len(rows))
    for some, threads, how in (
        (order, 2, "in another order"),
        (slice(2, 5), 3, "with fewer others"),
        (slice(1), 1, "alone"),
    ):
        otherwise = f"a row did something else {how}: rows must not influence each other"
        _same([x[:, some] for x in whole], run(family, rows[some], threads=threads), otherwise)


def a_restored_simulation_goes_on(family: Family) -> None:
    """A restored simulation goes on bit for bit."""
    draw = np.random.default_rng(0)
    parameters = family.parameters[some_tasks(family, 3)]
    n = len(parameters)
    first, second = family.simulate(parameters), family.simulate(parameters)
    first.reset(list(range(n)))
    second.reset(list(range(4, 4 + n)))
    half = steps(family) // 3
    for _ in range(half):
        first.step(draw.uniform(-1, 1, (n, family.action_dim)))
    first.reset([7], np.array([1]))
    second.restore({name: array.copy() for name, array in first.state().items()})
    for _ in range(half):
        action = draw.uniform(-1, 1, (n, family.action_dim))
        otherwise = "a step after restore() is another: state() must hold all that steps depend on"
        _same(first.step(action), second.step(action), otherwise)
    rows = np.array([0])
    otherwise = "a reset after restore() starts elsewhere"
    _same([first.reset([8], rows)], [second.reset([8], rows)], otherwise)


def tasks_differ_as_declared(family: Family) -> None:
    """Tasks differ in what `varies` says: in rewards alone, or in what happens."""
    rows, tasks = [0] * family.n_tasks, np.arange(family.n_tasks)
    observations, outcomes, _ = run(family, rows, tasks=tasks)
    actions = plan(rows, family)
    each = np.broadcast_to(family.parameters, (len(actions), *family.parameters.shape))
    rewards = family.reward(outcomes, actions, each)
    demand(rewards.shape == actions.shape[:2], f"rewards have the shape {rewards.shape}")
    for t, task in np.argwhere(~np.isfinite(rewards))[:1]:
        demand(False, f"task {task}: the reward of step {t + 1} is {rewards[t, task]}")
    if family.varies == "reward":
        demand((observations == observations[:, :1]).all(), "tasks move differently, too")
        demand(len(np.unique(rewards.sum(axis=0))) > 1, "all tasks have the same rewards")
    else:
        moved = np.concatenate([observations[1:], outcomes], axis=-1)
        differ = len(np.unique(moved.swapaxes(0, 1).reshape(len(tasks), -1), axis=0))
        demand(differ > 1, "all tasks do the same under the same actions")


def observations_are_as_declared(family: Family) -> None:
    """Observations are finite 32-bit numbers of the declared size."""
    observations, outcomes, _ = run(family, [0, 1])
    expected = (steps(family) + 1, 2, family.observation_dim)
    demand(
        observations.shape == expected,
        f"observations [steps, rows, numbers] have the shape {observations.shape}, expected "
        f"{expected}: `layout` has {family.observation_dim} numbers",
    )
    for name, array in (("observations", observations), ("outcomes", outcomes)):
        demand(array.dtype == np.float32, f"{name} are {array.dtype}, not float32")
    demand(np.isfinite(observations).all(), "an observation is not finite")


def a_scripted_expert_acts_for_itself(family: Family) -> None:
    """A scripted expert gives actions in [-1, 1], in each row as if it were alone."""
    if not family.scripted:
        return
    parameters = family.parameters[some_tasks(family, 3)]
    seen = family.simulate(parameters).reset(list(range(len(parameters))))
    action = family.expert(seen, parameters)
    demand(action.shape == (len(seen), family.action_dim), f"actions have shape {action.shape}")
    demand(bool((np.abs(action) <= 1).all()), "an action lies outside of [-1, 1]")
    _same([action[1:2]], [family.expert(seen[1:2], parameters[1:2])], "a row alone acts otherwise")


def every_task_has_a_group(family: Family) -> None:
    """Every task stands in exactly one group, and at least two are trained on."""
    numbers = sorted(chain(*family.split.values()))
    demand(numbers == list(range(family.n_tasks)), f"the split holds the tasks {numbers}")
    demand(len(family.split["train"]) > 1, "there are fewer than two training tasks")


def settings_are_found(family: Family) -> None:
    """A profile has settings for it: where it is `like` another family, that one is known."""
    collect_config("laptop", family.name)


def options_survive_json(family: Family) -> None:
    """Its options make the same family again."""
    again = make_family(family.name, **json.loads(json.dumps(family.options)))
    demand(again.describe() == family.describe(), "the family made again is another one")


FAMILY_CHECKS = (
    every_task_has_a_group,
    options_survive_json,
    settings_are_found,
    observations_are_as_declared,
    same_seeds_same_trajectories,
    actions_are_cut,
    a_reset_gives_all_rows,
    observations_are_left_alone,
    company_does_not_matter,
    a_restored_simulation_goes_on,
    tasks_differ_as_declared,
    a_scripted_expert_acts_for_itself,
)

"""Environments of one's own as a family: anything that Gymnasium knows, with Box spaces."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ertrl.envs.families import family_names, own_family
from ertrl.envs.family import Family
from ertrl.envs.foreign import Make
from ertrl.envs.gym import register_env
from ertrl.envs.gym_family import Expert, GymFamily, Reward
from ertrl.envs.tasks import FEWEST, split_tasks
from ertrl.errors import ConfigError, unknown
from ertrl.plugins import check_name

Tasks = Sequence[Mapping[str, float]] | Mapping[str, Sequence[Mapping[str, float]]]


def register_family(
    name: str,
    *,
    make: Make,
    tasks: Tasks,
    horizon: int | None = None,
    reward: Reward | None = None,
    varies: Literal["reward", "dynamics"] | None = None,
    expert: Expert | None = None,
    like: str = "",
    summary: str = "",
    processes: int = 0,
) -> Family:
    """Make a family of Gymnasium environments known by a name, in this process.

    `make(task)` makes the environment of a task, which is a dictionary of its numbers. `tasks` is a
    list of such dictionaries, a fifth of which is held out, or {"train": [...], "test-id": [...],
    "test-ood": [...]}. Episodes last `horizon` steps, or as long as the environment's time limit.

    Tasks are taken to differ in anything, unless `reward(observation, action, next_observation,
    task)` says what a step is worth in any task: then they differ in nothing else (or say
    `varies="dynamics"`), and behaviour policies learn from each other's transitions. It gets arrays
    with the same leading axes, and must work on all of them at once.

    `expert(observation, task)` is a scripted expert: the action, in the environment's units, that
    it takes in one task, which it knows. `collect` then records it with noise of several strengths
    instead of training SAC.

    An environment whose `info` has "success" or "is_success" is also judged by that. `like` names a
    family whose settings suit this one. An environment that takes over a millisecond per step is
    faster in `processes` of its own, as many as there are cores.
    """
    check_name(name, "family")
    for argument, function in {"make": make, "reward": reward, "expert": expert}.items():
        if not callable(function) and (function is not None or argument == "make"):
            raise ConfigError(f"{name}: {argument} is a function, got {function!r}")
    for argument, number, least in (("horizon", horizon, 1), ("processes", processes, 0)):
        if number is None and argument == "horizon":  # then the environment says it
            continue
        if not hasattr(number, "__index__") or isinstance(number, bool) or number < least:
            raise ConfigError(
                f"{name}: {argument} is a whole number of at least {least}, got {number!r}"
            )
    if varies not in (None, "reward", "dynamics"):
        raise ConfigError(f"{name}: varies is 'reward' or 'dynamics', got {varies!r}")
    if like and like not in family_names():
        raise ConfigError(f"{name}: like: {unknown('family', like, family_names())}")
    groups, table = _split(name, tasks)
    about = {
        "name": name,
        "summary": summary or f"{name}, tasks of one's own",
        "split": groups,
        "like": like,
        "varies": varies or ("reward" if reward else "dynamics"),
        "processes": processes,
    }
    kind = type("OwnFamily", (GymFamily,), about)
    family = kind(make, table, horizon=horizon, reward=reward, expert=expert)
    register_env(own_family(family))
    return family


def _split(name: str, tasks: Tasks) -> tuple[dict[str, list[int]], list[Mapping[str, float]]]:
    """Groups as numbers of rows, and the rows."""
    given = tasks if isinstance(tasks, Mapping) else {"": tasks}
    lists = {g: list(tasks) if isinstance(tasks, Iterable) else [] for g, tasks in given.items()}
    table = [task for members in lists.values() for task in members]
    if len(table) < 2 or not all(isinstance(task, Mapping) and task for task in table):
        raise ConfigError(
            f"{name}: tasks is a list of at least two dictionaries of numbers, such as "
            "[{'mass': 0.5}, {'mass': 1.0}], or such lists by group"
        )
    if isinstance(tasks, Mapping):
        if "train" in lists and len(lists["train"]) < FEWEST:
            raise ConfigError(
                f"{name}: the group train has {len(lists['train'])} tasks; at least {FEWEST} are "
                "needed, because an agent learns from how tasks differ"
            )
        groups = [group for group, members in lists.items() for _ in members]
    else:
        groups = list(split_tasks([str(i) for i in range(len(table))]).values())
    split = {g: [i for i, of in enumerate(groups) if of == g] for g in dict.fromkeys(groups)}
    return split, table

"""Minari: one Minari dataset per task, written and read an episode at a time.

What Minari has no word for (family, group, parameters, references, collector) travels as the key
`ertrl` of a Minari dataset's metadata and the checkpoint as metadata of each episode, so that
`import_minari` brings back what `export_minari` wrote, bit for bit. Minari datasets from elsewhere
become tasks without a simulator.
"""

import copy
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.data import layout
from ertrl.data.dataset import Dataset, TaskData
from ertrl.data.imports.common import (
    ImportedTask,
    Limit,
    outside,
    range_of_actions,
    unusable,
    write_imported,
)
from ertrl.data.writer import Description, Episode, TaskRecord
from ertrl.envs import env_id
from ertrl.envs.tasks import split_tasks
from ertrl.errors import ConfigError, DataError, unknown
from ertrl.plugins import require
from ertrl.progress import Meter, ProgressStyle
from ertrl.runtime import ActionRange
from ertrl.shape import Shape, Text, fit

OURS = "ertrl"
"""Key of our own part of a Minari dataset's metadata."""
SHARED = (
    *("family", "family_options", "parameter_names", "horizon", "simulator"),
    *("collector", "provenance", "action_low", "action_high", "family_code"),
)
"""What tasks have in common, in the manifest's words; it may lack the last three."""


def _library(part: str = "minari") -> Any:
    """The library, or a part of it, with the file format that it writes by default."""
    require("h5py", "minari")
    return require(part, "minari")


# --- export ---


def export_minari(dataset: Dataset, name: str, progress: ProgressStyle = "auto") -> list[str]:
    """Write every task as the Minari dataset NAME/task-NN-v0; returns their ids."""
    parse_dataset_id = _library("minari.dataset.minari_dataset").parse_dataset_id
    get_dataset_path = _library("minari.storage").get_dataset_path
    ids = {task: f"{name}/task-{task:02d}-v0" for task in dataset.tasks}
    for identity in ids.values():
        try:
            parse_dataset_id(identity)
        except ValueError:
            raise ConfigError(
                f"'{name}' cannot name Minari datasets: use at least two letters, digits, '-', '_' "
                "and '/', for example robots/point-robot"
            ) from None
        if get_dataset_path(identity).exists():
            raise DataError(
                f"Minari already has {identity} ({get_dataset_path(identity)}). Choose another "
                f"name, or remove it with `minari delete {identity}`."
            )
    with Meter(f"export {name}", len(ids), style=progress) as meter:
        for done, (task, identity) in enumerate(ids.items(), start=1):
            try:
                _export_task(dataset, dataset.task(task), identity)
            except BaseException:
                # A dataset that is not whole must not be found under its name.
                if get_dataset_path(identity).exists():
                    _library().delete_dataset(identity)
                raise
            meter.update(done, identity)
    return list(ids.values())


def _export_task(dataset: Dataset, data: TaskData, identity: str) -> None:
    with warnings.catch_warnings():
        # Minari recommends authors and links, which only the owner of the data knows.
        warnings.simplefilter("ignore", UserWarning)
        env = None
        if dataset.has_simulator:  # what `recover_environment` needs to make the task again
            env = copy.deepcopy(gymnasium.spec(env_id(dataset.family)))
            env.kwargs |= {"task": data.task, **dataset.family_options}
        made = _library().create_dataset_from_buffers(
            identity,
            buffer=[],
            env=env,
            observation_space=Box(-np.inf, np.inf, (dataset.dims.observation,), np.float32),
            action_space=Box(-1.0, 1.0, (dataset.dims.action,), np.float32),
            algorithm_name=dataset.manifest["collector"].get("name", "unknown"),
            description=f"Task {data.task} ({data.group}) of {dataset.family}, exported by ertrl.",
        )
    # First the metadata: it says how many episodes follow, so a half-written dataset is noticed.
    words = {"expert": "ref_max_score", "random": "ref_min_score"}
    scores = {words[kind]: value for kind, value in data.reference.items() if kind in words}
    made.storage.update_metadata({OURS: _about(dataset, data), **scores})
    made.storage.update_episodes(_buffers(data))
    made.storage.update_episode_metadata(
        [{"checkpoint": int(checkpoint)} for checkpoint in data.checkpoints]
    )


def _about(dataset: Dataset, data: TaskData) -> dict[str, Any]:
    entry = next(e for e in dataset.manifest["tasks"] if e["task"] == data.task)
    shared = {name: dataset.manifest[name] for name in SHARED if name in dataset.manifest}
    return {
        "dataset": shared | {"content": dataset.fingerprint},
        "task": {k: entry[k] for k in ("task", "group", "parameters", "reference", "episodes")},
    }


def _buffers(data: TaskData) -> Iterator[Any]:
    buffer = _library("minari.data_collector").EpisodeBuffer
    for episode, length in enumerate(data.lengths.tolist()):
        ends = np.zeros((2, length), bool)
        ends[:, -1] = data.terminated[episode], data.truncated[episode]
        yield buffer(
            observations=np.asarray(data.observations[episode, : length + 1]),
            actions=np.asarray(data.actions[episode, :length]),
            rewards=np.asarray(data.rewards[episode, :length]),
            terminations=ends[0],
            truncations=ends[1],
            infos={},
        )


# --- import ---


class SharedOurs(layout.Shared, kw_only=True):
    """What `export_minari` wrote of the dataset."""

    content: Text


class Ours(Shape):
    """The key `ertrl` of a Minari dataset's metadata."""

    dataset: SharedOurs
    task: layout.Task


class Source(NamedTuple):
    """One Minari dataset that becomes a task."""

    identity: str
    minari: Any
    lengths: list[int]
    checkpoints: list[int]
    ours: dict[str, Any] | None
    """What ertrl wrote there when it exported the task."""


def import_minari(
    names: Sequence[str],
    out: Path,
    *,
    held_out: float | Sequence[str] | None = None,
    ood: Sequence[str] = (),
    name: str = "",
    bounds: tuple[Limit, Limit] = (None, None),
    progress: ProgressStyle = "auto",
) -> Dataset:
    """Make one dataset of several Minari datasets, each of them a task.

    A name is a Minari id or a namespace, which stands for all in it. `held_out` is a share of the
    tasks or their ids, `ood` are ids of tasks out of distribution. Actions are scaled from the
    bounds of their space to [-1, 1], or from `bounds`, lowest and highest, where the space has
    none. What `export_minari` wrote comes back as it was; everything else has no simulator and
    goes by the name `name`.
    """
    sources = [_open(identity) for identity in _expand(names)]
    span = _common_bounds(sources, bounds)
    sizes = (sources[0].minari.observation_space.shape[0], len(span.low))
    origin = {}
    if exported := _exported(sources):
        shared, tasks = exported
        collector, origin = shared["collector"], {"provenance": shared["provenance"]}
        own = {k: v for k, v in shared.items() if k not in ("collector", "provenance", "content")}
        about = Description(observation_dim=sizes[0], action_dim=sizes[1], **own)
    else:  # logs from elsewhere: nothing is known of their parameters
        collector, horizon = "minari", max(max(source.lengths) for source in sources)
        about = Description.of_logs(name or out.name, (), horizon, sizes, span)
        tasks = {i: (source, TaskRecord("train", (), {})) for i, source in enumerate(sources)}
    identities = [source.identity for source, _ in tasks.values()]
    imported = {"format": "minari", "datasets": identities, **origin}
    chosen = {}
    if held_out is not None or ood:
        chosen = split_tasks(identities, 0.0 if held_out is None else held_out, ood)
    found = {}
    for task, (source, record) in tasks.items():
        record = record._replace(group=chosen.get(source.identity, record.group))
        episodes = _episodes(source, about.horizon, span)
        found[task] = ImportedTask(source.identity, record, len(source.lengths), episodes)
    return write_imported(out, about, found, collector, imported, progress)


def _expand(names: Sequence[str]) -> list[str]:
    """Ids as they are; a namespace becomes the ids in it, in order."""
    if not names:
        raise ConfigError("say which Minari datasets to import")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        local = list(_library().list_local_datasets())
    found: list[str] = []
    for name in names:
        inside = [identity for identity in local if identity.startswith(name.rstrip("/") + "/")]
        if name not in local and not inside:
            raise DataError(
                f"{unknown('Minari dataset', name, local)} Only datasets on this "
                f"machine can be imported: `minari download {name}` fetches one."
            )
        found += [name] if name in local else inside
    if len(set(found)) != len(found):
        raise ConfigError("the same Minari dataset is named twice; each is one task")
    return found


def _open(identity: str) -> Source:
    try:
        dataset = _library().load_dataset(identity)
        about = list(dataset.storage.get_episode_metadata(range(dataset.storage.total_episodes)))
        metadata = dataset.storage.metadata
    except (ValueError, OSError, KeyError, AssertionError) as error:
        raise DataError(f"Minari dataset {identity} cannot be read: {error}") from None
    spaces = {"observations": dataset.observation_space, "actions": dataset.action_space}
    for kind, space in spaces.items():
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise DataError(
                f"{identity}: {kind} are {space}, but ertrl needs a vector of real numbers (a Box "
                "with one axis). Flatten them, for example with Gymnasium's FlattenObservation, "
                "and record the dataset again."
            )
    if not about:
        raise DataError(f"{identity} has no episode; leave it out")
    if (ours := metadata.get(OURS)) is not None:
        fit(ours, Ours, f"Minari dataset {identity}, metadata '{OURS}',")
    if ours and ours["task"]["episodes"] != len(about):
        raise DataError(
            f"{identity} has {len(about)} of {ours['task']['episodes']} episodes: its export was "
            f"interrupted. Remove it with `minari delete {identity}` and export again."
        )
    return Source(
        identity,
        dataset,
        [int(episode["total_steps"]) for episode in about],
        [int(episode.get("checkpoint", 0)) for episode in about],
        ours,
    )


def _common_bounds(sources: list[Source], given: tuple[Limit, Limit]) -> ActionRange:
    """Lowest and highest action: tasks of one agent must agree on sizes and bounds."""
    first = sources[0]
    seen, done = first.minari.observation_space, first.minari.action_space
    for source in sources[1:]:
        also_seen, also_done = source.minari.observation_space, source.minari.action_space
        same_bounds = np.array_equal((also_done.low, also_done.high), (done.low, done.high))
        if also_seen.shape != seen.shape or not same_bounds:
            raise DataError(
                f"{source.identity} has observations {also_seen} and actions {also_done}, "
                f"{first.identity} has {seen} and {done}: tasks of one dataset share the size of "
                "observations and the bounds of actions"
            )
    bounds = np.stack([done.low, done.high]).astype(np.float64)
    span = range_of_actions(given, bounds)
    own = np.stack([span.low, span.high])
    for limit, name, end, wanted in zip(given, ("low", "high"), bounds, own, strict=True):
        fixed = np.isfinite(end)
        if limit is None:
            if fixed.all():
                continue
            raise DataError(
                f"{first.identity}: actions have no bounds ({done}), so they cannot be scaled to "
                "[-1, 1]; give the lowest and the highest with --action-low and --action-high"
            )
        # One number beside known bounds stands for the unknown ones; several speak of all.
        speaks_of_all = fixed.all() or np.size(limit) > 1
        if speaks_of_all and not np.allclose(wanted[fixed], end[fixed]):
            raise ConfigError(
                f"{first.identity}: action_{name} is given as {limit}, but its action space has "
                f"the bounds {end.tolist()}, which its actions are scaled from. Leave out "
                f"--action-{name}; if the space is wrong, correct it in the Minari dataset"
            )
    bounds = np.where(np.isfinite(bounds), bounds, own)
    if not (bounds[0] < bounds[1]).all():
        raise DataError(f"{first.identity}: the action space {done} leaves nothing to choose")
    return ActionRange(*bounds)


def _exported(
    sources: list[Source],
) -> tuple[dict[str, Any], dict[int, tuple[Source, TaskRecord]]] | None:
    """What `export_minari` wrote, if all are tasks of one dataset: what they share, and each."""
    written = [source.ours for source in sources if source.ours]
    if len(written) < len(sources) or len({w["dataset"]["content"] for w in written}) > 1:
        return None
    numbers = [about["task"]["task"] for about in written]
    if len(set(numbers)) != len(numbers):
        raise DataError(f"two of the Minari datasets are the same task; the tasks are {numbers}")
    tasks = {}
    for source, about in zip(sources, written, strict=True):
        task = about["task"]
        record = TaskRecord(task["group"], tuple(task["parameters"]), task["reference"])
        tasks[task["task"]] = source, record
    return written[0]["dataset"], dict(sorted(tasks.items()))


def _episodes(source: Source, horizon: int, bounds: ActionRange) -> Iterator[Episode]:
    stored = source.minari.storage.get_episodes(range(len(source.lengths)))
    for number, (episode, length) in enumerate(zip(stored, source.lengths, strict=True)):
        where = f"{source.identity}, episode {number}"
        given = {k: np.asarray(episode[k]) for k in ("observations", "actions", "rewards")}
        rows = [len(values) for values in given.values()]
        if rows != [length + 1, length, length] or not 1 <= length <= horizon:
            raise DataError(
                f"{where} has {rows[0]} observations, {rows[1]} actions and {rows[2]} rewards; "
                f"expected {length + 1}, {length} and {length}, with 1 to {horizon} steps"
            )
        if np.asarray(episode["terminations"])[:-1].any():
            raise DataError(f"{where} goes on after a terminal state; cut it there")
        for kind, values in given.items():
            if (bad := unusable(values)).any():
                step = int(np.argwhere(bad)[0][0])
                raise DataError(
                    f"{where}: {kind} are NaN, infinite or beyond 32 bits at step {step}"
                )
        if outside(given["actions"], bounds).any():
            raise DataError(
                f"{where}: an action lies outside of the action space, {bounds.low.tolist()} to "
                f"{bounds.high.tolist()}; the data and its description do not fit together"
            )
        yield Episode(
            observations=given["observations"],
            actions=bounds.cut(given["actions"]),
            rewards=given["rewards"].reshape(length),
            terminated=episode["terminations"][-1],
            truncated=episode["truncations"][-1],
            checkpoint=source.checkpoints[number],
        )

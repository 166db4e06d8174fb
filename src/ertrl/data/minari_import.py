"""Import from Minari: several Minari datasets become the tasks of one dataset.

What `export_minari` wrote comes back bit for bit; Minari datasets from elsewhere become tasks
without a simulator. Episodes are copied one at a time.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from ertrl.data.dataset import Dataset
from ertrl.data.minari_export import OURS, minari_library
from ertrl.data.writer import DatasetWriter, Description, TaskRecord
from ertrl.envs import GROUP_TITLES
from ertrl.errors import ConfigError, DataError, unknown
from ertrl.progress import Meter, ProgressStyle
from ertrl.types import Episodes


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
    out: str | Path,
    *,
    groups: Sequence[str] = (),
    label: str = "",
    action_limit: float | None = None,
    progress: ProgressStyle = "auto",
) -> Dataset:
    """Make one dataset of several Minari datasets, each of them a task.

    A name is a Minari id or a namespace, which stands for all in it. `groups` gives one group per
    dataset or one for all. Actions are scaled from the bounds of their space to [-1, 1];
    `action_limit` L says that an unbounded space means [-L, L]. What `export_minari` wrote comes
    back as it was; everything else has no simulator and goes by the name `label`.
    """
    minari_library()
    out = Path(out)
    if out.exists():
        raise DataError(f"{out} already exists. Choose another place, or remove it.")
    sources = [_open(identity) for identity in _expand(names)]
    low, high = _common_bounds(sources, action_limit)
    chosen = _groups(groups, [source.identity for source in sources])
    restored = _same_origin(sources)
    if restored:
        sources.sort(key=lambda source: source.ours["task"]["task"] if source.ours else 0)
    description, records = _restore(sources) if restored else _adopt(sources, label or out.name)
    if chosen:
        records = {
            task: record._replace(group=chosen[source.identity])
            for (task, record), source in zip(records.items(), sources, strict=True)
        }
    episodes = {t: len(s.lengths) for t, s in zip(records, sources, strict=True)}
    writer = DatasetWriter(out, description, episodes)
    try:
        with Meter(f"import {description.family}", len(sources), style=progress) as meter:
            for done, (task, source) in enumerate(zip(records, sources, strict=True), start=1):
                _fill(writer, task, source, description.horizon, _scaler(low, high, source))
                meter.update(done, source.identity)
        imported = {
            "format": "minari",
            "datasets": [source.identity for source in sources],
            "action_low": low.tolist(),
            "action_high": high.tolist(),
        }
        collector: dict[str, Any] = {"name": "minari", "config": {}, "curve": []}
        if restored and sources[0].ours:
            collector = sources[0].ours["dataset"]["collector"]
            imported["provenance"] = sources[0].ours["dataset"]["provenance"]
        writer.seal(records, collector, imported)
    except BaseException:
        writer.abandon()
        raise
    return Dataset(out, verify=False)


def _expand(names: Sequence[str]) -> list[str]:
    """Ids as they are; a namespace becomes the ids in it, in order."""
    if not names:
        raise ConfigError("say which Minari datasets to import")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        local = list(minari_library().list_local_datasets())
    found: list[str] = []
    for name in names:
        inside = [identity for identity in local if identity.startswith(name.rstrip("/") + "/")]
        if name not in local and not inside:
            raise DataError(
                f"{unknown('Minari dataset', name, local or ['(none)'])} Only datasets on this "
                f"machine can be imported: `minari download {name}` fetches one."
            )
        found += [name] if name in local else inside
    if len(set(found)) != len(found):
        raise ConfigError("the same Minari dataset is named twice; each is one task")
    return found


def _open(identity: str) -> Source:
    try:
        dataset = minari_library().load_dataset(identity)
        about = list(dataset.storage.get_episode_metadata(range(dataset.storage.total_episodes)))
        metadata = dataset.storage.metadata
    except (ValueError, OSError, KeyError, AssertionError) as error:
        raise DataError(f"Minari dataset {identity} cannot be read: {error}") from None
    for kind, space in (
        ("observations", dataset.observation_space),
        ("actions", dataset.action_space),
    ):
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise DataError(
                f"{identity}: {kind} are {space}, but ertrl needs a vector of real numbers (a Box "
                "with one axis). Flatten them, for example with Gymnasium's FlattenObservation, "
                "and record the dataset again."
            )
    if not about:
        raise DataError(f"{identity} has no episode; leave it out")
    source = Source(
        identity,
        dataset,
        [int(episode["total_steps"]) for episode in about],
        [int(episode.get("checkpoint", 0)) for episode in about],
        metadata.get(OURS),
    )
    if source.ours and source.ours["task"]["episodes"] != len(about):
        raise DataError(
            f"{identity} has {len(about)} of {source.ours['task']['episodes']} episodes: its "
            f"export was interrupted. Remove it with `minari delete {identity}` and export again."
        )
    return source


def _common_bounds(
    sources: list[Source], action_limit: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest action: tasks of one agent must agree on sizes and bounds."""
    if action_limit is not None and not 0 < action_limit < np.inf:
        raise ConfigError(f"the action limit must be a number above 0, got {action_limit}")
    first = sources[0]
    for source in sources[1:]:
        for kind in ("observation_space", "action_space"):
            one, other = getattr(first.minari, kind), getattr(source.minari, kind)
            if one.shape != other.shape:
                raise DataError(
                    f"{source.identity} has an {kind.replace('_', ' ')} of {other.shape[0]} "
                    f"numbers, {first.identity} of {one.shape[0]}: tasks of one dataset share "
                    "their spaces"
                )
    bounds = []
    for source in sources:
        space = source.minari.action_space
        pair = np.stack([space.low, space.high]).astype(np.float64)
        if not np.isfinite(pair).all():
            if action_limit is None:
                raise DataError(
                    f"{source.identity}: actions have no bounds ({space}), so they cannot be "
                    "scaled to [-1, 1]; give the largest action with --action-limit"
                )
            pair = np.clip(pair, -action_limit, action_limit)
        if not (pair[0] < pair[1]).all():
            raise DataError(f"{source.identity}: the action space {space} leaves nothing to choose")
        bounds.append(pair)
        if not np.array_equal(pair, bounds[0]):
            raise DataError(
                f"{source.identity} has actions in {space}, {first.identity} in "
                f"{first.minari.action_space}: tasks of one dataset share their action bounds"
            )
    return bounds[0][0], bounds[0][1]


def _same_origin(sources: list[Source]) -> bool:
    """Whether all are tasks of one dataset that ertrl exported."""
    origins = [source.ours and source.ours["dataset"]["content"] for source in sources]
    if not origins[0] or set(origins) != {origins[0]}:
        return False
    tasks = [source.ours["task"]["task"] for source in sources if source.ours]
    if len(set(tasks)) != len(tasks):
        raise DataError(f"two of the Minari datasets are the same task; the tasks are {tasks}")
    return True


def _restore(sources: list[Source]) -> tuple[Description, dict[int, TaskRecord]]:
    """What `export_minari` wrote."""
    assert sources[0].ours is not None
    shared = sources[0].ours["dataset"]
    first = sources[0].minari
    description = Description(
        family=shared["family"],
        family_options=shared["family_options"],
        parameter_names=tuple(shared["parameter_names"]),
        horizon=shared["horizon"],
        observation_dim=first.observation_space.shape[0],
        action_dim=first.action_space.shape[0],
        simulator=shared["simulator"],
    )
    tasks = [source.ours["task"] for source in sources if source.ours]
    return description, {
        t["task"]: TaskRecord(t["group"], tuple(t["parameters"]), t["reference"]) for t in tasks
    }


def _adopt(sources: list[Source], label: str) -> tuple[Description, dict[int, TaskRecord]]:
    """Logs from elsewhere: tasks numbered as they were named, nothing known of their parameters."""
    first = sources[0].minari
    description = Description(
        family=label,
        family_options={},
        parameter_names=(),
        horizon=max(max(source.lengths) for source in sources),
        observation_dim=first.observation_space.shape[0],
        action_dim=first.action_space.shape[0],
        simulator=False,
    )
    return description, {
        task: TaskRecord("train", (), _reference(source)) for task, source in enumerate(sources)
    }


def _reference(source: Source) -> dict[str, float]:
    metadata = source.minari.storage.metadata
    words = {"expert": "ref_max_score", "random": "ref_min_score"}
    return {k: float(metadata[word]) for k, word in words.items() if metadata.get(word) is not None}


def _groups(given: Sequence[str], identities: list[str]) -> dict[str, str]:
    """Minari id -> group, as the user named them; empty if they did not."""
    for name in given:
        if name not in GROUP_TITLES:
            raise ConfigError(unknown("group", name, GROUP_TITLES))
    if len(given) == 1:
        return dict.fromkeys(identities, given[0])
    if given and len(given) != len(identities):
        raise ConfigError(
            f"{len(given)} groups for {len(identities)} Minari datasets ({', '.join(identities)}): "
            "give one group per dataset in this order, or one for all"
        )
    return dict(zip(identities, given, strict=True)) if given else {}


def _scaler(low: np.ndarray, high: np.ndarray, source: Source) -> Callable[..., np.ndarray]:
    """Scale actions to [-1, 1]; those that lie there already stay the same bit for bit."""
    slack = 1e-5 * (high - low)  # rounding of whoever recorded them
    is_unit = bool((low == -1).all() and (high == 1).all())

    def scale(actions: np.ndarray, episode: int) -> np.ndarray:
        if ((actions < low - slack) | (actions > high + slack)).any():
            raise DataError(
                f"{source.identity}, episode {episode}: an action lies outside of the action space "
                f"{source.minari.action_space}; the data and its description do not fit together"
            )
        if not is_unit:
            actions = 2 * (actions.astype(np.float64) - low) / (high - low) - 1
        return np.clip(actions, -1, 1)

    return scale


def _fill(
    writer: DatasetWriter,
    task: int,
    source: Source,
    horizon: int,
    scale: Callable[..., np.ndarray],
) -> None:
    """Copy one Minari dataset, an episode at a time."""
    stored = source.minari.storage.get_episodes(range(len(source.lengths)))
    for number, (episode, length) in enumerate(zip(stored, source.lengths, strict=True)):
        where = f"{source.identity}, episode {number}"
        given = {k: np.asarray(episode[k]) for k in ("observations", "actions", "rewards")}
        rows = [len(given[k]) for k in given]
        if rows != [length + 1, length, length] or not 1 <= length <= horizon:
            raise DataError(
                f"{where} has {rows[0]} observations, {rows[1]} actions and {rows[2]} rewards; "
                f"expected {length + 1}, {length} and {length}, with 1 to {horizon} steps"
            )
        if np.asarray(episode["terminations"])[:-1].any():
            raise DataError(f"{where} goes on after a terminal state; cut it there")
        for kind, values in given.items():
            with np.errstate(over="ignore"):
                given[kind] = values = values.astype(np.float32, copy=False)
            if not np.isfinite(values).all():
                step = int(np.argwhere(~np.isfinite(values))[0][0])
                raise DataError(
                    f"{where}: {kind} are NaN, infinite or beyond 32 bits at step {step}"
                )
        padded = {
            "observations": np.zeros((1, horizon + 1, given["observations"].shape[1]), np.float32),
            "actions": np.zeros((1, horizon, given["actions"].shape[1]), np.float32),
            "rewards": np.zeros((1, horizon), np.float32),
        }
        padded["observations"][0, : length + 1] = given["observations"]
        padded["actions"][0, :length] = scale(np.asarray(episode["actions"]), number)
        padded["rewards"][0, :length] = given["rewards"].reshape(length)
        one = Episodes(
            observation=padded["observations"],
            action=padded["actions"],
            reward=padded["rewards"],
            length=np.array([length]),
            terminated=np.array([bool(episode["terminations"][-1])]),
            truncated=np.array([bool(episode["truncations"][-1])]),
            diverged=np.zeros(1, bool),
        )
        writer.add(task, one, source.checkpoints[number])

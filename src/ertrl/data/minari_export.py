"""Export to Minari: one Minari dataset per task, written an episode at a time.

What Minari has no word for (family, group, parameters, references, collector) travels as the key
`ertrl` of a Minari dataset's metadata and the checkpoint as metadata of each episode, so that
`import_minari` brings back what was exported, bit for bit.
"""

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ertrl.data.dataset import Dataset, TaskData
from ertrl.envs import env_id
from ertrl.errors import ConfigError, DataError
from ertrl.plugins import require
from ertrl.progress import Meter, ProgressStyle

OURS = "ertrl"
"""Key of our own part of a Minari dataset's metadata."""
SHARED = ("family", "family_options", "parameter_names", "horizon", "simulator")
"""What tasks have in common, in the manifest's words."""
UNITS = ("action_low", "action_high")
"""The same, where the manifest has them."""


def minari_library() -> Any:
    """The library, with the file format that it writes by default."""
    require("h5py", "minari")
    return require("minari", "minari")


def export_minari(dataset: Dataset, name: str, progress: ProgressStyle = "auto") -> list[str]:
    """Write every task as the Minari dataset NAME/task-NN-v0; returns their ids."""
    minari = minari_library()
    parse_dataset_id = require("minari.dataset.minari_dataset", "minari").parse_dataset_id
    get_dataset_path = require("minari.storage", "minari").get_dataset_path
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
                _export_task(minari, dataset, dataset.task(task), identity)
            except BaseException:
                # A dataset that is not whole must not be found under its name.
                if get_dataset_path(identity).exists():
                    minari.delete_dataset(identity)
                raise
            meter.update(done, identity)
    return list(ids.values())


def _export_task(minari: Any, dataset: Dataset, data: TaskData, identity: str) -> None:
    with warnings.catch_warnings():
        # Minari recommends authors and links, which only the owner of the data knows.
        warnings.simplefilter("ignore", UserWarning)
        made = minari.create_dataset_from_buffers(
            identity,
            buffer=[],
            env=_env_spec(dataset, data.task),
            observation_space=Box(-np.inf, np.inf, (dataset.dims.observation,), np.float32),
            action_space=Box(-1.0, 1.0, (dataset.dims.action,), np.float32),
            algorithm_name=dataset.manifest["collector"].get("name", "unknown"),
            description=f"Task {data.task} ({data.group}) of {dataset.family}, exported by ertrl.",
        )
    # First the metadata: it says how many episodes follow, so a half-written dataset is noticed.
    made.storage.update_metadata({OURS: _about(dataset, data), **_scores(data)})
    made.storage.update_episodes(_buffers(data))
    made.storage.update_episode_metadata(
        [{"checkpoint": int(checkpoint)} for checkpoint in data.checkpoints]
    )


def _env_spec(dataset: Dataset, task: int) -> Any:
    """What `recover_environment` needs to make the task again."""
    if not dataset.has_simulator:
        return None
    spec = copy.deepcopy(gymnasium.spec(env_id(dataset.family)))
    spec.kwargs |= {"task": task, **dataset.family_options}
    return spec


def _about(dataset: Dataset, data: TaskData) -> dict[str, Any]:
    entry = next(e for e in dataset.manifest["tasks"] if e["task"] == data.task)
    told = [*SHARED, "collector", "provenance", *(u for u in UNITS if u in dataset.manifest)]
    shared = {name: dataset.manifest[name] for name in told}
    return {
        "dataset": shared | {"content": dataset.fingerprint},
        "task": {k: entry[k] for k in ("task", "group", "parameters", "reference", "episodes")},
    }


def _scores(data: TaskData) -> dict[str, Any]:
    """The ends of the normalised scale in Minari's own words."""
    words = {"expert": "ref_max_score", "random": "ref_min_score"}
    return {words[kind]: value for kind, value in data.reference.items() if kind in words}


def _buffers(data: TaskData) -> Iterator[Any]:
    buffer = require("minari.data_collector", "minari").EpisodeBuffer
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

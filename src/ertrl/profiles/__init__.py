"""Profiles are data: JSON files that say how the defaults change for a scale and a family.

learner                     which learner trains actor and critic
collect, train, encoder     settings for every family
scripted                    the same as collect, where a scripted expert is recorded
methods.NAME, learners.NAME settings of one method or learner
families.NAME               the same keys again, for one family; `like` names another family
whose settings apply first (a family can also name it itself: `Family.like`); `options` chooses a
variant of the family itself
variants.NAME               all of the above again, applied last: `released` is what the authors'
released code does where that differs from the paper (docs/released.md)
The profile `logs` also takes sizes that follow from the data: `settings_for`.
"""

import json
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from ertrl.collection.config import BehaviourConfig, CollectConfig, ScriptedConfig
from ertrl.config import replace_from_json
from ertrl.data import Dataset
from ertrl.envs import family_names, make_family
from ertrl.errors import ConfigError, unknown
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.training.config import TrainConfig

SECTIONS = {"collect", "scripted", "train", "encoder", "methods", "learners", "options"}
DEFAULT_VARIANT = "paper"
LOGS = "logs"
"""The profile whose sizes follow from the data: the default where there is no simulator."""


@cache
def profiles() -> dict[str, dict[str, Any]]:
    """All profiles by name."""
    files = sorted(resources.files(__name__).iterdir(), key=lambda f: f.name)
    return {f.name[:-5]: json.loads(f.read_text()) for f in files if f.name.endswith(".json")}


def get_profile(name: str) -> dict[str, Any]:
    """Find the profile of that name."""
    if name not in profiles():
        raise ConfigError(unknown("profile", name, profiles()))
    return profiles()[name]


def variants(profile: str) -> list[str]:
    """The variants of a profile; the first is the profile as it is."""
    return [DEFAULT_VARIANT, *get_profile(profile).get("variants", {})]


def _layers(profile: str, family: str, variant: str) -> list[dict[str, Any]]:
    """What applies to a family: the general settings, then its own, then the variant's."""
    content = get_profile(profile)
    if variant not in variants(profile):
        raise ConfigError(unknown(f"variant of profile {profile}", variant, variants(profile)))
    like = make_family(family).like if family in family_names() else ""
    known = {*content["families"], *family_names()}
    if like and like not in known:
        told = unknown(f"family of profile {profile}", like, known)
        raise ConfigError(f"{family}.like: {told}")
    layers = _own_layers(content, family, like)
    if variant != DEFAULT_VARIANT:
        layers += _own_layers(content["variants"][variant], family, like)
    for layer in layers:
        for key in layer:
            if key not in SECTIONS:
                raise ConfigError(f"profile {profile}: {unknown('section', key, SECTIONS)}")
    return layers


def _own_layers(content: dict[str, Any], family: str, like: str) -> list[dict[str, Any]]:
    """For all families, then for the one that this is like, which may be like another, then own."""
    families, found = content.get("families", {}), []
    while family:
        own = dict(families.get(family, {}))
        family, like = own.pop("like", like), ""
        found.append(own)
    return [{k: content[k] for k in SECTIONS & content.keys()}, *reversed(found)]


def family_options(profile: str, family: str, variant: str = DEFAULT_VARIANT) -> dict[str, Any]:
    """Which variant of the family itself a profile collects."""
    options: dict[str, Any] = {}
    for layer in _layers(profile, family, variant):
        options |= layer.get("options", {})
    return options


def collect_config(profile: str, family: str, variant: str = DEFAULT_VARIANT) -> BehaviourConfig:
    """How a profile collects data of a family."""
    if "collect" not in get_profile(profile):
        known = [name for name, content in profiles().items() if "collect" in content]
        raise ConfigError(
            f"the profile {profile} is for data that is there already: nothing is collected with "
            f"it; use {' or '.join(known)}"
        )
    scripted = make_family(family).scripted
    section, config = ("scripted", ScriptedConfig()) if scripted else ("collect", CollectConfig())
    for layer in _layers(profile, family, variant):
        config = replace_from_json(config, layer.get(section, {}), section)
    return config


def train_config(
    profile: str,
    family: str,
    method: str,
    learner: str | None = None,
    variant: str = DEFAULT_VARIANT,
    *,
    dataset: Dataset | None = None,
) -> TrainConfig:
    """How a profile trains a method on a family, with its own learner unless another is named.

    With a dataset, settings that do not fit its size are made to fit.
    """
    learner = learner or get_profile(profile)["learner"]
    # Of logs nobody knows what differs between tasks: a context with next states shows both.
    shows_dynamics = dataset is not None and not dataset.has_simulator
    if not shows_dynamics:
        made = make_family(family) if dataset is None else dataset.make_family()
        shows_dynamics = made.varies == "dynamics"
    default = get_method(method)()
    encoder = replace(default.encoder, next_observation=shows_dynamics)
    config = TrainConfig(replace(default, encoder=encoder), get_learner(learner)())
    size = None if dataset is None else DataSize.of(dataset)
    if size is not None and profile == LOGS:
        follows, known = settings_for(size), config.learner
        # Not every learner has a discount.
        follows["learner"] = {k: v for k, v in follows["learner"].items() if hasattr(known, k)}
        config = replace_from_json(config, follows)
    for layer in _layers(profile, family, variant):
        parts = {
            **layer.get("train", {}),
            "method": {"encoder": layer.get("encoder", {})},
            "learner": layer.get("learners", {}).get(learner, {}),
        }
        config = replace_from_json(config, parts)
        config = replace_from_json(config, {"method": layer.get("methods", {}).get(method, {})})
    if size is not None:  # no more tasks per step than there are to draw from
        meta_batch = max(2, min(config.sampling.meta_batch, size.training_tasks))
        config = replace_from_json(config, {"sampling": {"meta_batch": meta_batch}})
    return config


def default_profile(dataset: Dataset | None) -> str:
    """What is used where nobody names a profile."""
    return "laptop" if dataset is None or dataset.has_simulator else LOGS


class DataSize(NamedTuple):
    """What a dataset's size says about the settings that suit it."""

    training_tasks: int
    fewest_transitions: int
    """Of a training task."""
    transitions: int
    """Of all training tasks."""
    horizon: int
    numbers: int
    """Of an observation and an action together."""

    @classmethod
    def of(cls, dataset: Dataset) -> "DataSize":
        counts = [len(dataset.task(task).steps) for task in dataset.group("train")]
        numbers = dataset.dims.observation + dataset.dims.action
        return cls(len(counts), min(counts, default=0), sum(counts), dataset.horizon, numbers)


def settings_for(size: DataSize) -> dict[str, Any]:
    """The profile `logs`: widths, batches, discount and updates for data of this size."""
    width = 128 if size.numbers <= 40 else 256
    hidden = [width] * (2 if size.numbers <= 12 else 3)
    meta_batch = max(2, min(16, size.training_tasks))
    batch_size = min(256, 512 // meta_batch)
    # Twenty looks at each transition; from far fewer than these updates no critic learns.
    wanted = 20 * size.transitions / (meta_batch * batch_size)
    updates = int(min(max(wanted, 5_000), 20_000) // 1000 * 1000)
    return {
        "sampling": {
            "meta_batch": meta_batch,
            "batch_size": batch_size,
            "context_size": max(4, min(64, size.fewest_transitions // 4)),
        },
        # A reward a sixth of an episode away still counts about a third; critics that look further
        # have not learned to within these updates.
        "learner": {"hidden": hidden, "discount": min(max(1 - 6 / size.horizon, 0.9), 0.99)},
        "method": {
            "encoder": {"hidden": hidden, "latent_dim": min(max(size.training_tasks, 4), 16)}
        },
        "updates": updates,
        "evaluate_every": updates,
        "checkpoint_every": 1000,
    }

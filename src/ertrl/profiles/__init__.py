"""Profiles are data: JSON files that say how the defaults change for a scale and a family.

learner                     which learner trains actor and critic
collect, train, encoder     settings for every family
methods.NAME, learners.NAME settings of one method or learner
families.NAME               the same keys again, for one family; `like` names another family
whose settings apply first
"""

import json
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from ertrl.config import CollectConfig, TrainConfig, replace_from_json
from ertrl.envs import make_family
from ertrl.errors import ConfigError, unknown
from ertrl.learners import get_learner
from ertrl.methods import get_method

SECTIONS = {"collect", "train", "encoder", "methods", "learners"}


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


def _layers(profile: str, family: str) -> list[dict[str, Any]]:
    """What applies to a family: the general settings, then its own."""
    content = get_profile(profile)
    families = content.get("families", {})
    own = dict(families.get(family, {}))
    like = families[own.pop("like")] if "like" in own else {}
    layers = [{k: content[k] for k in SECTIONS & content.keys()}, like, own]
    for layer in layers:
        for key in layer:
            if key not in SECTIONS:
                raise ConfigError(f"profile {profile}: {unknown('section', key, SECTIONS)}")
    return layers


def collect_config(profile: str, family: str) -> CollectConfig:
    """How a profile collects data of a family."""
    config = CollectConfig()
    for layer in _layers(profile, family):
        config = replace_from_json(config, layer.get("collect", {}), "collect")
    return config


def train_config(
    profile: str,
    family: str,
    method: str,
    learner: str | None = None,
    has_simulator: bool = True,
) -> tuple[str, TrainConfig]:
    """How a profile trains a method on a family; also says which learner it uses."""
    learner = learner or get_profile(profile)["learner"]
    method_config = get_method(method).config()
    # Of logs nobody knows what differs between tasks: a context with next states shows both.
    shows_dynamics = not has_simulator or make_family(family).varies == "dynamics"
    encoder = replace(method_config.encoder, next_observation=shows_dynamics)
    config = TrainConfig(
        method=replace(method_config, encoder=encoder), learner=get_learner(learner).config()
    )
    for layer in _layers(profile, family):
        parts = {
            **layer.get("train", {}),
            "method": {
                "encoder": layer.get("encoder", {}),
                **layer.get("methods", {}).get(method, {}),
            },
            "learner": layer.get("learners", {}).get(learner, {}),
        }
        config = replace_from_json(config, parts)
    return learner, config

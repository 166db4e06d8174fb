"""Everything that can be named on the command line, with its settings."""

from typing import Any

from ertrl.config import to_json
from ertrl.envs import family_names, make_family
from ertrl.evaluation import PROTOCOLS
from ertrl.learners import learners
from ertrl.methods import methods
from ertrl.profiles import collect_config, family_options, profiles, train_config, variants


def _training(profile: str, families: list[str], *variant: str) -> dict[str, Any]:
    """Family -> method -> complete settings, with those of every learner."""
    found: dict[str, Any] = {}
    for family in families:
        found[family] = {}
        for method in methods():
            config = train_config(profile, family, method, None, *variant)
            others = {
                name: to_json(train_config(profile, family, method, name, *variant).learner)
                for name in learners()
                if name != config.learner.name
            }
            found[family][method] = {**to_json(config), "other_learners": others}
    return found


def catalogue() -> dict[str, dict[str, Any]]:
    """Kind -> name -> description, ready for JSON."""
    families = {name: make_family(name).describe() for name in family_names()}
    return {
        "families": families,
        "methods": {m.name: {"summary": m.summary, "paper": m.paper} for m in methods().values()},
        "learners": {x.name: {"summary": x.summary, "paper": x.paper} for x in learners().values()},
        "protocols": {
            name: {"summary": (protocol.__doc__ or "").strip()}
            for name, protocol in PROTOCOLS.items()
        },
        "profiles": {
            name: {
                "summary": content["summary"],
                "learner": content["learner"],
                "variants": variants(name),
                "collect": {f: to_json(collect_config(name, f)) for f in families},
                "train": _training(name, list(families)),
                "released": {
                    "options": {f: family_options(name, f, "released") for f in families},
                    "train": _training(name, list(families), "released"),
                },
            }
            for name, content in profiles().items()
        },
    }

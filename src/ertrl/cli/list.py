"""`ertrl list`."""

from typing import Any

from ertrl.cli.common import output
from ertrl.cli.options import Json, command


@command("list")
def run(json: Json = False) -> None:
    """Show families, methods, learners, protocols and profiles; as JSON with all details."""
    parts, lines = _catalogue(), []
    width = max(len(name) for entries in parts.values() for name in entries)
    for kind, entries in parts.items():
        lines.append(f"{kind}:")
        lines += [f"  {name:{width}}  {e['summary']}{_choices(e)}" for name, e in entries.items()]
    output(parts, None if json else "\n".join(lines))


def _choices(entry: dict[str, Any]) -> str:
    """The options of a family, as `--option` takes them."""
    options = [f"{k}={'|'.join(map(str, v))}" for k, v in entry.get("choices", {}).items()]
    return f" [{', '.join(options)}]" if options else ""


def _catalogue() -> dict[str, dict[str, Any]]:
    """Kind -> name -> description, ready for JSON."""
    from ertrl.envs import family_names, make_family
    from ertrl.evaluation import PROTOCOLS
    from ertrl.learners import learners
    from ertrl.methods import methods
    from ertrl.profiles import profiles, variants

    return {
        "families": {name: make_family(name).describe() for name in family_names()},
        "methods": {m.name: {"summary": m.summary, "paper": m.paper} for m in methods().values()},
        "learners": {x.name: {"summary": x.summary, "paper": x.paper} for x in learners().values()},
        "protocols": {
            name: {"summary": (protocol.__doc__ or "").strip().split("\n")[0]}
            for name, protocol in PROTOCOLS.items()
        },
        "profiles": {
            name: {
                "summary": content["summary"],
                "learner": content["learner"],
                "variants": {variant: _settings(name, variant) for variant in variants(name)},
            }
            for name, content in profiles().items()
        },
    }


def _settings(profile: str, variant: str) -> dict[str, Any]:
    """Of every family: its options, how it is collected, and how each method trains on it."""
    from ertrl.config import to_json
    from ertrl.envs import family_names
    from ertrl.methods import methods
    from ertrl.profiles import collect_config, family_options, profiles, train_config

    collects = "collect" in profiles()[profile]

    def training(family: str) -> dict[str, Any]:
        configs = {m: train_config(profile, family, m, None, variant) for m in methods()}
        return {m: to_json(config, in_full=True) for m, config in configs.items()}

    names = family_names()
    return {
        "options": {f: family_options(profile, f, variant) for f in names},
        "collect": {f: to_json(collect_config(profile, f, variant)) for f in names if collects},
        "train": {f: training(f) for f in names},
    }

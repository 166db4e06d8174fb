"""`ertrl collect`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import UseAppendAction, arg

from ertrl.cli.common import first_word, output, output_dataset, own_part, peek
from ertrl.cli.options import Json, Profile, Progress, Variant, parse, plainly, unset
from ertrl.collection.config import CollectConfig, ScriptedConfig
from ertrl.errors import ConfigError


@plainly
@dataclass
class Collect:
    """Train behaviour policies for all tasks of a family and record them, poor to expert.

    FAMILY is one of those that `ertrl list` shows, or your own: FILE.py:NAME. A collection that
    was stopped or killed goes on when the same command is given again. Defaults depend on family,
    profile and variant: --help shows those of the words before it.
    """

    config: Annotated[CollectConfig, arg(name="")]
    profile: Profile = "laptop"
    variant: Variant = "paper"
    option: UseAppendAction[tuple[str, ...]] = ()
    """Variant of the family as NAME=VALUE, for example split=released; may be repeated."""
    out: Annotated[Path | None, unset("DIR")] = None
    """Dataset folder; data/FAMILY if not given."""
    references: Annotated[Path | None, unset("DIR")] = None
    """Dataset of the same tasks whose expert returns are to be the upper end of this one's
    scale, too; for comparing several --style."""
    dry_run: bool = False
    """Measure for some seconds and print the time, memory and disk that all of it would take;
    nothing is written."""
    threads: int = 0
    """CPU threads; 0 takes all (in Python it is 1). With 1, data repeat bit for bit."""
    progress: Progress = "auto"
    json: Json = False


@dataclass
class CollectScripted(Collect):
    """Record the scripted expert of a family in all tasks, with less and less noise.

    A collection that was stopped or killed goes on when the same command is given again.
    """

    config: Annotated[ScriptedConfig, arg(name="")]  # ty: ignore[incompatible-attribute-override]


def run(argv: Sequence[str]) -> None:
    family = first_word(argv)
    if family is None:
        parse(Collect, "collect FAMILY", argv, default=Collect(CollectConfig()))
        from ertrl.envs import family_names

        raise ConfigError(
            "say which FAMILY first: ertrl collect FAMILY [options]. `ertrl list` says what they "
            f"are: {', '.join(family_names())}"
        )
    from ertrl import api
    from ertrl.collection.cost import describe_estimate
    from ertrl.envs import make_family, parse_options
    from ertrl.profiles import collect_config

    family = own_part(family)
    known = make_family(family).options
    profile, variant = peek(argv, "--profile", "laptop"), peek(argv, "--variant", "paper")
    config = collect_config(profile, family, variant)
    kind = CollectScripted if isinstance(config, ScriptedConfig) else Collect
    default = kind(config, profile, variant)  # ty: ignore[invalid-argument-type]
    command = parse(kind, f"collect {family}", argv[1:], default=default)
    options = parse_options(command.option, known)
    settings: dict[str, Any] = {"profile": profile, "variant": variant, "config": command.config}
    if command.dry_run:
        value = api.estimate_collection(family, command.out, options=options, **settings)
        output(value, None if command.json else describe_estimate(value))
        return
    dataset = api.collect(
        family,
        command.out,
        options=options,
        references=command.references,
        progress=command.progress,
        **settings,
    )
    output_dataset(dataset, command.json)

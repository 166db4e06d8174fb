"""Who a variant is: its method, and as much of its configuration as tells it from the others."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from ertrl.colours import PALETTE
from ertrl.config import flat, to_json
from ertrl.errors import ConfigError
from ertrl.methods import methods
from ertrl.profiles import DEFAULT_VARIANT, train_config
from ertrl.training import Run
from ertrl.training.config import TrainConfig

WITHOUT_EFFECT = ("seed", "updates_per_call", "evaluate_every", "checkpoint_every")
"""Settings in which runs of one variant may differ."""

FIXED = (
    *("bayes-linear", "er-trl", "focal", "csro", "unicorn", "offline-pearl"),
    *("dora", "spc", "gentle"),
)
"""Methods in the order of their colours: a reader of two reports meets each in the same one."""


@dataclass(frozen=True)
class Identity:
    """What tells a variant from the others of its family; what goes without saying is left out."""

    method: str
    learner: str | None = None
    """None: the learner that most variants share."""
    settings: tuple[tuple[str, str], ...] = ()
    """Dotted name and JSON value of settings that differ from the profile's."""
    profile: str | None = None
    """The profile and its variant, where several profiles have their own plain variant."""
    variant: str | None = None
    published: str | None = None
    """That its numbers were read from a file, or also from which, where another has its name."""

    @property
    def plain(self) -> bool:
        """Whether it is as its profile has it: the one to compare others with."""
        return not (self.learner or self.settings or self.variant)

    @property
    def label(self) -> str:
        text = method_title(self.method)
        if self.learner:
            text += f" + {self.learner}"
        if self.settings:
            short = [name.split(".")[-1] for name, _ in self.settings]
            pairs = zip(short, self.settings, strict=True)
            told = (f"{s if short.count(s) == 1 else name}={value}" for s, (name, value) in pairs)
            text += f" ({', '.join(told)})"
        if self.profile:
            text += f" ({', '.join(filter(None, (self.profile, self.variant)))})"
        return f"{text} ({self.published})" if self.published else text


def method_title(method: str) -> str:
    return getattr(methods().get(method), "title", "") or method.upper()


def configuration(config: TrainConfig) -> dict[str, Any]:
    """Everything in which runs of different variants differ, flat."""
    told = {k: v for k, v in to_json(config, in_full=True).items() if k not in WITHOUT_EFFECT}
    return {"name": config.method.name, "by": config.learner.name, **dict(flat(told))}


def places_of(found: Sequence[Identity]) -> dict[Identity, int]:
    """Where a variant stands in the list of colours and markers, the same in all families.

    A known method has a place of its own in every report, for its plain variant or else its first.
    Everything else takes what no known method has, and at last what none of this report has.
    """
    places: dict[Identity, int] = {}
    for place, method in enumerate(FIXED):
        own = [one for one in found if one.method == method]
        if own:
            places[min(own, key=lambda one: (not one.plain, bool(one.published)))] = place
    taken, some = set(places.values()), len(PALETTE)
    free = [*range(len(FIXED), some), *(p for p in range(len(FIXED)) if p not in taken)]
    others = chain(free, count(some))
    return places | {one: next(others) for one in dict.fromkeys(found) if one not in places}


def unspoken_learner(learners: Sequence[str]) -> str | None:
    """The learner that goes without saying, because most variants share it."""
    learner, count = Counter(learners).most_common(1)[0]
    return learner if 2 * count > len(learners) else None


def identities(runs: Sequence[Run], unspoken: str | None) -> list[Identity]:
    """Identities of variants, one run of each; one learner goes without saying.

    The variant that is as its profile has it needs no more than its name; where two profiles have
    theirs, they are told as well; and where that is not enough, every difference is.
    """
    configurations = [configuration(run.config) for run in runs]
    found = _told(configurations, [_usual(run) for run in runs], unspoken)
    with_profile = [
        replace(one, profile=profile, variant=variant)
        for one, (profile, variant) in zip(found, map(profile_of, runs), strict=True)
    ]
    in_full = _told(configurations, [{}] * len(runs), unspoken)
    for better in (with_profile, in_full):
        labels = Counter(one.label for one in found)
        pairs = zip(found, better, strict=True)
        found = [more if labels[one.label] > 1 else one for one, more in pairs]
    return found


def profile_of(run: Run) -> tuple[str, str | None]:
    """The run's profile, and its variant where it is not the usual one."""
    variant = run.spec["variant"]
    return run.spec["profile"], None if variant in ("", DEFAULT_VARIANT) else variant


def _usual(run: Run) -> dict[str, Any]:
    """The settings that the run's profile would have given it; nothing, where it had none."""
    profile, variant = profile_of(run)
    kind = run.spec["method"], run.spec["learner"]
    try:
        config = train_config(profile, run.family, *kind, variant or DEFAULT_VARIANT)
    except ConfigError:
        return {}
    return dict(flat(to_json(config, in_full=True)))


def _told(
    configurations: list[dict[str, Any]], usual: list[dict[str, Any]], unspoken: str | None
) -> list[Identity]:
    found = []
    for one, expected in zip(configurations, usual, strict=True):
        kind = (one["name"], one["by"])
        alike = [other for other in configurations if (other["name"], other["by"]) == kind]
        telling = tuple(
            (key, json.dumps(value))
            for key, value in one.items()
            if any(other.get(key) != value for other in alike)
            and (key not in expected or expected[key] != value)
        )
        learner = None if one["by"] == unspoken else one["by"]
        found.append(Identity(one["name"], learner, telling))
    return found

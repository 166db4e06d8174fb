"""What every method, learner and family promises, as checks that anybody can run.

`ertrl check-plugin NAME` runs them on a part of one's own; the tests of ertrl run the same ones on
ours. A check is a function whose docstring says what holds; it raises AssertionError where not.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ertrl.contracts.of_families import FAMILY_CHECKS
from ertrl.contracts.of_learners import LEARNER_CHECKS
from ertrl.contracts.of_methods import METHOD_CHECKS
from ertrl.envs import Family, family_names, make_family
from ertrl.errors import ConfigError, ErtrlError, unknown
from ertrl.learners import Learner, learners
from ertrl.methods import Method, methods
from ertrl.plugins import raised_at

Check = Callable[[Any], None]
AGAIN = "the same failure as above"


class Finding(NamedTuple):
    """One promise of a part, and why it is broken."""

    promise: str
    problem: str | None


def find_part(name: str) -> tuple[str, type[Method] | type[Learner] | Family]:
    """Kind and part of that name."""
    if name in methods():
        return "method", methods()[name]
    if name in learners():
        return "learner", learners()[name]
    if name in family_names():
        return "family", make_family(name)
    known = [*methods(), *learners(), *family_names()]
    raise ConfigError(unknown("method, learner or family", name, known))


CHECKS: dict[str, Sequence[Check]] = {
    "method": METHOD_CHECKS,
    "learner": LEARNER_CHECKS,
    "family": FAMILY_CHECKS,
}


def check_part(kind: str, part: Any) -> Iterator[Finding]:
    """Run every check of the kind; an error of the part itself is a broken promise, too.

    One that several checks run into, in whichever task, is told once.
    """
    known: set[str] = set()
    for check in CHECKS[kind]:
        promise = (check.__doc__ or "").strip().splitlines()[0].rstrip(".")
        try:
            check(part)
        except Exception as error:
            told = _told(error)
            gist = re.sub(r", task.*?\}|(?<!line )\b\d+", "", told)
            yield Finding(promise, AGAIN if gist in known else told)
            known.add(gist)
        else:
            yield Finding(promise, None)


def _told(error: Exception) -> str:
    """In one line; what nobody meant for a reader has its kind and place before it."""
    told = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, (AssertionError, ErtrlError)):
        at = raised_at(error)
        told = f"{f'{at}: ' if at else ''}{type(error).__name__}: {told}"
    return told[:500]

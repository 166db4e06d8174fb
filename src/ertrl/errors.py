"""Errors that tell a person what was found, what was expected and what to do next.

The command line prints these without a traceback; anything else that escapes is a bug of ours.
"""

import difflib
from collections.abc import Iterable


class ErtrlError(Exception):
    """A problem the user can act on."""

    exit_code = 1
    """Of the command line. 2: what was asked is wrong. 3: it would happen in the same way again."""


class ConfigError(ErtrlError):
    """A setting is unknown, of the wrong type or out of range."""

    exit_code = 2


class DataError(ErtrlError):
    """A dataset is incomplete or does not fit what is asked of it."""


class MissingExtra(ErtrlError, ImportError):
    """A package that only some commands need is not installed."""

    exit_code = 3


class PluginError(ErtrlError):
    """The file of a method, learner or family does not work, ours or an installed one."""


class CorruptFileError(ErtrlError):
    """A file on disk is not what was written there."""


class RunError(ErtrlError):
    """A run directory is missing, in use or does not fit the request."""


class ReportError(ErtrlError):
    """Runs cannot stand in one table."""


class SimulationError(ErtrlError):
    """The physics left the realm of numbers."""

    exit_code = 3


class TrainingDiverged(ErtrlError):
    """A loss became NaN or infinite."""

    exit_code = 3


class Interrupted(ErtrlError):
    """SIGINT or SIGTERM arrived; the state is saved. Carries the conventional exit code."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number


def unknown(kind: str, word: str, known: Iterable[str], meant: str = "") -> str:
    """'unknown family 'point-robt'. Did you mean 'point-robot'? Known: ...'.

    Where it is clear what was `meant`, that is said in place of the nearest word.
    """
    known = sorted(known)
    near = difflib.get_close_matches(word.lower(), known, n=1)
    meant = meant or "".join(f"'{word}'" for word in near)
    hint = f" Did you mean {meant}?" if meant else ""
    return f"unknown {kind} '{word}'.{hint} Known: {', '.join(known) or 'none'}."

"""Find the parts of the program, and the packages that only some of its commands need.

A part (a method, learner or family) is found by its place in a package of ours, as an installed
entry point, or because a script registered it. `--plugin FILE.py`, which any command takes, runs
such a script first.
"""

import dataclasses
import importlib
import importlib.machinery
import inspect
import os
import pkgutil
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, entry_points, requires
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from ertrl.errors import ConfigError, ErtrlError, MissingExtra, PluginError, unknown

P = TypeVar("P")
ATTRIBUTES = ("METHOD", "LEARNER", "FAMILIES")
"""Where a file of parts holds them."""
OWN = "ERTRL_PLUGINS"
"""Environment variable: FILE.py or FILE.py:NAME with parts of one's own, one per line. Processes
that this one starts see it, too."""
LONGEST_NAME = 180
"""Of a part or a dataset: the names of runs, which are folders, hold it and have 255 bytes."""
FILE_PREFIX = "ertrl_plugin_"
"""Before the module name of such a file."""
_HOMES = (sysconfig.get_path(of) for of in ("stdlib", "platstdlib", "purelib", "platlib"))
LIBRARIES = ("<frozen", *(home + os.sep for home in (os.path.dirname(__file__), *_HOMES)))
"""How the names of files begin that are no user's."""

_registered: dict[str, dict[str, Any]] = {}
"""Package -> name -> a part that a script gave us."""
_loaded: dict[str, list[Any]] = {}
"""FILE.py:NAME -> what it gave us."""


def parts(package: str, attribute: str, needed: tuple[str, ...], kind: type) -> dict[str, Any]:
    """All parts of a kind by name: those that are installed, then those of scripts."""
    known = installed(package, attribute, needed)
    for told in filter(None, os.environ.get(OWN, "").split("\n")):
        for part in load(told):
            if isinstance(part, kind) or (isinstance(part, type) and issubclass(part, kind)):
                register(package, part, known)
    return known | _registered.get(package, {})


def register(package: str, part: Any, known: Mapping[str, Any]) -> None:
    """Make a part known in this process; one of the same name that a script gave is replaced."""
    missing = [n for n in ("name", "summary") if not getattr(part, n, "")]
    missing += sorted(getattr(part, "__abstractmethods__", ()))
    if missing:
        raise PluginError(f"{part!r} has no {', '.join(missing)}")
    check_name(part.name, "part")
    _check_settings(part)
    own = _registered.setdefault(package, {})
    other = known.get(part.name, part)
    if other is not part and part.name not in own:
        kind = other if isinstance(other, type) else type(other)
        there = f"{kind.__module__}.{kind.__qualname__}"
        raise PluginError(f"'{part.name}' is the name of {there} already; choose another one")
    own[part.name] = part


def is_ours(kind: type) -> bool:
    """Whether a class is part of ertrl."""
    return kind.__module__.split(".")[0] == "ertrl"


def check_name(name: Any, of: str) -> None:
    """Names are parts of folders and words of the command line."""
    form = rf"\w[\w.-]{{0,{LONGEST_NAME - 1}}}(?<!\.py)"
    if not isinstance(name, str) or not re.fullmatch(form, name):
        raise ConfigError(
            f"the name of a {of} consists of at most {LONGEST_NAME} letters, digits, -, _ and "
            f"dots, such as 'my-{of}', got {name!r}"
        )


def _check_settings(part: Any) -> None:
    """Settings of a method or learner are fields of a dataclass, and values that files can hold."""
    kinds = [kind for kind in getattr(part, "__mro__", ()) if dataclasses.is_dataclass(kind)]
    ours = [kind for kind in kinds if is_ours(kind)]
    if not ours:
        return
    shared = {name for kind in ours for name in inspect.get_annotations(kind)}
    for kind in kinds:
        if "__dataclass_fields__" in vars(kind):
            continue
        hints = inspect.get_annotations(kind).items()
        told = {name for name, hint in hints if "ClassVar" not in str(hint)} - shared
        if told:
            raise PluginError(
                f"{kind.__name__} says '{min(told)}: ...', but that is no setting: write "
                "@dataclass(frozen=True) above the class"
            )
    for field in dataclasses.fields(part):
        made = field.default_factory
        value = field.default if made is dataclasses.MISSING else made()
        try:
            hash(value)
        except TypeError:
            raise PluginError(
                f"the setting '{field.name}' of {part.__name__} is a {type(value).__name__}. A "
                "setting is a bool, a number, a word, a Literal, one of these or None, a tuple of "
                "them, or a frozen dataclass"
            ) from None


def use(told: str) -> list[Any]:
    """Take parts from FILE.py or FILE.py:NAME, in this process and in those it starts."""
    found = load(told := os.path.abspath(told))
    named = [other for other in os.environ.get(OWN, "").split("\n") if other]
    if told not in named:
        os.environ[OWN] = "\n".join([*named, told])
    return found


def names_file(word: str) -> bool:
    """Whether a word names a part as FILE.py or FILE.py:NAME."""
    return word.endswith(".py") or ".py:" in word


def load(told: str) -> list[Any]:
    """Run FILE.py once; what it gives is NAME (called, if a function) or its parts."""
    if told in _loaded:
        return _loaded[told]
    if not names_file(told):
        raise ConfigError(f"{told} is no Python file; parts are taken from FILE.py or FILE.py:NAME")
    path, name = _split(told)
    if not os.path.isfile(path):
        raise PluginError(f"there is no file {path} to load parts from")
    _loaded[told] = []  # what it registers by itself may ask for parts in turn
    before = _registered_now()
    try:
        module = _load(path, partial(_run, path))
        if name and not hasattr(module, name):
            raise PluginError(f"{path} has no {name}")
        found = [getattr(module, n, ()) for n in ([name] if name else ATTRIBUTES)]
        for held in found:
            made = _load(path, held) if isinstance(held, FunctionType) else held
            _loaded[told] += made if isinstance(made, (list, tuple)) else [made]
        _check_classes(path, module)
        if _loaded[told] in ([], [None]) and _registered_now() == before:
            raise ConfigError(gave_nothing(told))
    except BaseException:
        del _loaded[told]
        raise
    return _loaded[told]


def gave_nothing(told: str) -> str:
    """What to do about FILE.py or FILE.py:NAME from which no part was handed over."""
    path, name = _split(told)
    if name:
        return f"{path}: {name}() returned None; return what ertrl.register_family gives"
    return (
        f"{path} has no METHOD, LEARNER or FAMILIES = ...; or name what makes one: "
        f"{os.path.basename(path)}:NAME"
    )


def _split(told: str) -> tuple[str, str]:
    """File and name, which may be empty."""
    path, _, name = told.rpartition(":") if ".py:" in told else (told, "", "")
    return path, name


def _registered_now() -> set[int]:
    return {id(part) for own in _registered.values() for part in own.values()}


def _check_classes(path: str, module: ModuleType) -> None:
    """Methods and learners are given as classes, so that settings can be chosen."""
    for attribute in ("METHOD", "LEARNER"):
        part = getattr(module, attribute, None)
        if part is not None and not isinstance(part, type):
            kind = type(part).__name__
            raise PluginError(f"{path}: {attribute} is an object; write {attribute} = {kind}")


def _run(path: str) -> ModuleType:
    name = FILE_PREFIX + os.path.splitext(os.path.basename(path))[0]
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


@cache
def installed(package: str, attribute: str, needed: tuple[str, ...]) -> dict[str, Any]:
    """What the modules of a package hold under this attribute (one class or several), by name.

    In order of file name. Modules of other installed distributions follow that name the package as
    an entry point's group. Each class has the attributes that are `needed`.
    """
    named: dict[str, Any] = {}
    homes: dict[str, str] = {}
    for home, module in _modules(package, attribute):
        held = getattr(module, attribute)
        for part in held if isinstance(held, (list, tuple)) else (held,):
            missing = [name for name in needed if not hasattr(part, name)]
            missing += sorted(getattr(part, "__abstractmethods__", ()))
            if missing:
                name = getattr(part, "__name__", part)
                raise PluginError(f"{home}: the class {name} has no {', '.join(missing)}")
            _check_settings(part)
            if part.name in named:
                raise PluginError(
                    f"two things are named '{part.name}', in {homes[part.name]} and in {home}; "
                    "give one of them another name, or remove it"
                )
            named[part.name], homes[part.name] = part, home
    return named


def _modules(package: str, attribute: str) -> Iterator[tuple[str, ModuleType]]:
    """Where a module comes from, in words, and the module."""
    folder = importlib.import_module(package).__path__
    for name in sorted(m.name for m in pkgutil.iter_modules(folder)):
        home = f"{folder[0]}/{name}.py"
        module = _load(home, partial(importlib.import_module, f"{package}.{name}"))
        if hasattr(module, attribute):  # others help
            yield home, module
    for entry in sorted(entry_points(group=package)):
        home = f"the installed plug-in {entry.name} ({entry.value}, group {entry.group})"
        module = _load(home, entry.load)
        if not hasattr(module, attribute):
            raise PluginError(f"{home} has no {attribute}, which the group is for")
        yield home, module


def _load(home: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except Exception as error:
        # A syntax error says its line itself.
        lines = [line for file, line in _frames(error) if file == home]
        where = f"{home}, line {lines[-1]}" if lines else home
        if isinstance(error, ErtrlError):  # it says what to do
            kind = ConfigError if isinstance(error, ConfigError) else PluginError
            raise kind(f"{where}: {error}") from error
        told = f"{type(error).__name__}: {error}".rstrip(".")
        where += "," if lines else ""
        raise PluginError(f"{where} cannot be loaded: {told}. Repair or remove it.") from error


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """File and line of every call that an error went through, the innermost last."""
    return [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]


def raised_at(error: BaseException, called: Any = None) -> str:
    """'my_tasks.py, line 31': the innermost place of an error in a user's code, '' if in none.

    That is the file of the function that was called, and all that is neither ours nor a library.
    """
    own = _code(called)
    theirs = [at for at in _frames(error) if at[0] == own[0] or not at[0].startswith(LIBRARIES)]
    return _at(theirs[-1]) if theirs else ""


def written_at(function: Any) -> str:
    """File and line of a function, '' if it has none."""
    return _at(_code(function)) if _code(function)[0] else ""


def _code(function: Any) -> tuple[str, int]:
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def _at(place: tuple[str, int]) -> str:
    return f"{os.path.basename(place[0])}, line {place[1]}"


def choose(kind: str, name: str, known: Mapping[str, P], package: str, attribute: str) -> P:
    """The part of that name; a wrong name is told the nearest right one."""
    if name in known:
        return known[name]
    message = unknown(kind, name, known)
    file = sys.modules.get(f"{package}.{name.replace('-', '_')}")
    if file and not hasattr(file, attribute):
        message += f" {file.__file__} is not among them because it has no {attribute} = ..."
    raise ConfigError(message)


def require(package: str, extra: str) -> ModuleType:
    """Import a package that comes with an extra of ertrl, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the package {package} ({error}). Install it in the folder of ertrl's "
            f"repository: pip install '.[{extra}]'"
        ) from None


def only_runtime(wanted: str, missing: ModuleNotFoundError) -> Exception:
    """What to tell whoever wants more than the runtime where only NumPy is installed."""
    if (missing.name or "").split(".")[
        0
    ] not in _required():  # of somebody's own file, or our mistake
        return missing
    return MissingExtra(
        f"{wanted} needs the package {missing.name}, which is not installed: here is only what "
        "`ertrl.runtime` needs. Install all of ertrl in the folder of its repository: pip install ."
    )


def _required() -> set[str]:
    """Modules of the packages that ertrl does not install without."""
    try:
        told = [one for one in requires("ertrl") or () if "extra ==" not in one]
    except PackageNotFoundError:
        return set()
    names = {re.split(r"[^\w.-]", one)[0] for one in told}
    return {name.replace("scikit-learn", "sklearn").replace("-", "_") for name in names}

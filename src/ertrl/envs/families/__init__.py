"""The families. A file of this folder with a tuple `FAMILIES` of classes adds families.

Importing them is cheap: MuJoCo loads when the first simulation starts.
"""

from ertrl.envs.declared import check_declared
from ertrl.envs.family import Family, Option
from ertrl.errors import ConfigError, ErtrlError, PluginError
from ertrl.plugins import choose, installed, parts, raised_at, register

NEEDED = ("name", "summary")


def _families() -> dict[str, type[Family] | Family]:
    return parts(__name__, "FAMILIES", NEEDED, Family)


def installed_families() -> list[type[Family]]:
    """Those that are there without any script."""
    return list(installed(__name__, "FAMILIES", NEEDED).values())


def family_names() -> list[str]:
    return sorted(_families())


def make_family(name: str, **options: Option) -> Family:
    """Make the family of that name; `options` change what the family allows to change."""
    found = choose("family", name, _families(), __name__, "FAMILIES")
    if not isinstance(found, Family):
        return made_of(found, **options)
    if options not in ({}, found.options):
        raise ConfigError(f"{name} is there with the options {found.options}, got {options}")
    return check_declared(found)


def made_of(kind: type[Family], **options: Option) -> Family:
    """An object of that class, which may be somebody's own."""
    try:
        return check_declared(kind(**options))
    except ErtrlError:  # it says what to do
        raise
    except Exception as error:
        told, at = f"{type(error).__name__}: {error}", raised_at(error)
        name = getattr(kind, "name", kind.__name__)
        raise PluginError(f"{name} cannot be made: {f'{at}: ' if at else ''}{told}") from error


def own_family(family: Family | type[Family]) -> Family:
    """Make a family of one's own known by its name, for this process."""
    made = family
    if isinstance(family, type) and issubclass(family, Family):
        made = made_of(family)
    if not isinstance(made, Family):
        raise ConfigError(f"a family is an object of ertrl.envs.Family, got {family!r}")
    check_declared(made)
    if _families().get(made.name) is not type(made):
        register(__name__, made, _families())
    return made

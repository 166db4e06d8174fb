"""The families. A file of this folder with a tuple `FAMILIES` of classes adds families.

Importing them is cheap: MuJoCo loads when the first simulation starts.
"""

from ertrl.envs.family import Family, Option
from ertrl.errors import ConfigError
from ertrl.plugins import choose, installed, parts, register

NEEDED = ("name", "summary")


def _families() -> dict[str, type[Family] | Family]:
    return parts(__name__, "FAMILIES", NEEDED, Family)


def installed_families() -> list[Family]:
    """Those that are there without any script."""
    return [kind() for kind in installed(__name__, "FAMILIES", NEEDED).values()]


def family_names() -> list[str]:
    return sorted(_families())


def make_family(name: str, **options: Option) -> Family:
    """Make the family of that name; `options` change what the family allows to change."""
    found = choose("family", name, _families(), __name__, "FAMILIES")
    if not isinstance(found, Family):
        return found(**options)
    if options not in ({}, found.options):
        raise ConfigError(f"{name} is there with the options {found.options}, got {options}")
    return found


def own_family(family: Family | type[Family]) -> Family:
    """Make a family of one's own known by its name, for this process."""
    made = family() if isinstance(family, type) else family
    if not isinstance(made, Family):
        raise ConfigError(f"a family is an object of ertrl.envs.Family, got {family!r}")
    if _families().get(made.name) is not type(made):
        register(__name__, made, _families())
    return made

"""The families. A file of this folder with a tuple `FAMILIES` of classes adds families.

Importing them is cheap: MuJoCo loads when the first simulation starts.
"""

from functools import cache

from ertrl.envs import families
from ertrl.envs.family import Family, Option
from ertrl.errors import ConfigError, unknown
from ertrl.plugins import by_name, discover


@cache
def _families() -> dict[str, type[Family]]:
    found = discover(families, "FAMILIES")
    return by_name(family for group in found for family in group)


def family_names() -> list[str]:
    """All families, in alphabetical order."""
    return sorted(_families())


def make_family(name: str, **options: Option) -> Family:
    """Make the family of that name; `options` change what the family allows to change."""
    if name not in _families():
        raise ConfigError(unknown("family", name, _families()))
    return _families()[name](**options)

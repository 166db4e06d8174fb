"""The families. A file of this folder with a tuple `FAMILIES` of classes adds families.

Importing them is cheap: MuJoCo loads when the first simulation starts.
"""

from ertrl.envs.family import Family, Option
from ertrl.plugins import choose, parts


def _families() -> dict[str, type[Family]]:
    return parts(__name__, "FAMILIES", ("name", "summary"))


def family_names() -> list[str]:
    return sorted(_families())


def make_family(name: str, **options: Option) -> Family:
    """Make the family of that name; `options` change what the family allows to change."""
    return choose("family", name, _families(), __name__, "FAMILIES")(**options)

"""`ertrl check-plugin`."""

from typing import Annotated

from tyro.conf import Positional, arg

from ertrl.cli.common import output, own_part
from ertrl.cli.options import Json, command
from ertrl.errors import PluginError


@command("check-plugin")
def run(
    name: Annotated[Positional[str], arg(metavar="NAME|FILE.py[:NAME]")], json: Json = False
) -> None:
    """Check that a method, learner or family keeps every promise that ertrl relies on.

    Args:
        name: Its name, or the file that it is in.
    """
    from ertrl.contracts import AGAIN, check_part, find_part

    kind, part = find_part(own_part(name))
    found = []
    for finding in check_part(kind, part):
        found.append(finding)
        if not json and finding.problem != AGAIN:
            mark = "broken" if finding.problem else "kept"
            told = f"\n        {finding.problem}" if finding.problem else ""
            print(f"{mark:6}  {finding.promise}{told}", flush=True)
    if (again := sum(finding.problem == AGAIN for finding in found)) and not json:
        print(f"broken  {again} more, by the failure above")
    broken = sum(finding.problem is not None for finding in found)
    if json:
        checks = [finding._asdict() for finding in found]
        output({"kind": kind, "name": part.name, "broken": broken, "checks": checks})
    if broken:
        raise PluginError(f"the {kind} {part.name} breaks {broken} of {len(found)} promises")

"""The paper's own numbers, to stand beside ours."""

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Published(NamedTuple):
    """Mean and population standard deviation over the paper's seeds."""

    mean: float
    std: float


@cache
def paper_results() -> dict[str, Any]:
    """All tables of the paper as printed, with notes on how to read them."""
    file = resources.files("ertrl.reporting.read") / "paper_results.json"
    return json.loads(file.read_text())


def published(
    family: str, method: str, group: str, protocol: str, *, normalised: bool = True
) -> Published | None:
    """Look up one number by our names of family, method, group and protocol."""
    results = paper_results()
    scale = results["normalised" if normalised else "unnormalised"]
    entry = (
        scale.get(results["groups"].get(group), {}).get(protocol, {}).get(family, {}).get(method)
    )
    return None if entry is None else Published(*entry)


def in_paper(family: str) -> bool:
    """Whether the paper reports this family at all."""
    return family in paper_results()["normalised"]["ID"]["offline"]

"""The paper's own numbers, to stand beside ours."""

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def paper_results() -> dict[str, Any]:
    """All tables of the paper as printed, with notes on how to read them."""
    file = resources.files("ertrl.reporting.read") / "paper_results.json"
    return json.loads(file.read_text())


def published(family: str, method: str, group: str, protocol: str) -> list[float] | None:
    """Normalised mean and population standard deviation over seeds, by our names."""
    results = paper_results()
    by_protocol = results["normalised"].get(results["groups"].get(group), {})
    return by_protocol.get(protocol, {}).get(family, {}).get(method)


def in_paper(family: str) -> bool:
    """Whether the paper reports this family at all."""
    return family in paper_results()["normalised"]["ID"]["offline"]

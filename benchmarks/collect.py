"""How fast and how good: behaviour data of whole families at laptop scale.

    .venv/bin/python benchmarks/collect.py cheetah-vel hopper-mass ...    # all if none is named

Collects into build/collect (killed, it goes on where it was) and keeps what a collection took and
reached in results/collect/FAMILY.json. The clock runs while other programs do: leave the machine
alone.
"""

import os
import sys
from pathlib import Path

import numpy as np

from ertrl import api, store
from ertrl.data import Dataset

ROOT = Path(__file__).parent.parent
WORK, KEEP = ROOT / "build" / "collect", ROOT / "results" / "collect"
TARGETS = {
    "cheetah-vel": (12, -35),
    "hopper-mass": (20, 500),
    "hopper-friction": (20, 500),
    "walker-mass": (30, 500),
    "walker-friction": (30, 500),
    "ant-goal": (30, -200),
    "ant-dir": (30, 500),
    "humanoid-dir": (60, 700),
}
"""Minutes on two cores, and mean deterministic return over training tasks."""


def facts(dataset: Dataset) -> dict:
    """What a collection took and reached."""
    manifest, (minutes, wanted) = dataset.manifest, TARGETS[dataset.family]
    collector = manifest["collector"]
    final = {
        group: float(np.mean([dataset.task(t).reference["expert"] for t in tasks]))
        for group, tasks in dataset.groups.items()
    }
    return {
        "kind": "ertrl-collection",
        "family": dataset.family,
        "dataset": dataset.fingerprint,
        "config": collector["config"],
        "minutes": collector["seconds"] / 60,
        "updates": collector["curve"][-1]["updates"],
        "env_steps": collector["curve"][-1]["env_steps"],
        "curve": collector["curve"],
        "deterministic_return": final,
        "target": {"minutes": minutes, "deterministic_return": wanted},
        "met": collector["seconds"] / 60 <= minutes and final["train"] >= wanted,
        "load_at_the_end": os.getloadavg()[0],
        "provenance": manifest["provenance"],
    }


def main(families: list[str]) -> None:
    for family in families:
        dataset = api.collect(family, WORK / family)
        found = facts(dataset)
        store.write_json(KEEP / f"{family}.json", found)
        print(
            f"{family}: {found['deterministic_return']['train']:.1f} in {found['minutes']:.1f} min "
            f"(wanted {found['target']['deterministic_return']} in {found['target']['minutes']})"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or list(TARGETS))

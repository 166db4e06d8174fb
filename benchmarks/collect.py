"""How fast and how good: behaviour data of whole families at laptop scale.

    .venv/bin/python benchmarks/collect.py cheetah-vel hopper-mass ...    # all if none is named

Collects into build/collect (killed, it goes on where it was) and keeps what a collection took and
reached in results/collect/FAMILY.json, with a table and a picture of all families there. The clock
runs while other programs do: leave the machine alone.
"""

import os
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from ertrl import api, store
from ertrl.colours import PALETTE
from ertrl.data import Dataset
from ertrl.envs import GROUPS
from ertrl.launch.plan import parse_data
from ertrl.text import markdown_table
from shared import KEEP, WORK

TARGETS = {
    "cheetah-vel": (60, -25),
    "cheetah-vel:split=released": (60, -25),
    "hopper-mass": (60, 650),
    "hopper-friction": (60, 610),
    "walker-mass": (60, 750),
    "walker-friction": (60, 750),
    "ant-goal": (60, -130),
    "ant-dir": (60, 900),
    "humanoid-dir": (60, 1000),
}
"""Minutes on two cores, and mean deterministic return over training tasks: about the paper's."""


def facts(dataset: Dataset, minutes: int, wanted: int) -> dict:
    """What a collection took and reached."""
    manifest = dataset.manifest
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


def table(collections: dict[str, dict[str, Any]]) -> str:
    """What every collection took and reached, in Markdown."""
    head = ("family", "minutes", "updates", "env steps", "training tasks", "held-out", "OOD")
    rows = [
        [
            family,
            f"{found['minutes']:.1f}",
            f"{found['updates']:,}",
            f"{found['env_steps']:,}",
            *(f"{found['deterministic_return'][group]:.0f}" for group in GROUPS),
            "{deterministic_return} in {minutes}".format(**found["target"]),
        ]
        for family, found in collections.items()
    ]
    return markdown_table([*head, "wanted"], rows, "llllllll") + "\n"


def draw(collections: dict[str, dict[str, Any]], path: Path) -> None:
    """Return of the recorded (stochastic) episodes of training tasks against time."""
    figure, axes = plt.subplots(3, 3, figsize=(10, 6.6), layout="constrained")
    for axis in axes.flat[len(collections) :]:
        axis.axis("off")
    for axis, (family, found) in zip(axes.flat, collections.items(), strict=False):
        minutes = [point["seconds"] / 60 for point in found["curve"]]
        axis.plot(minutes, [point["train"] for point in found["curve"]], ".-", color=PALETTE[0])
        axis.axhline(found["target"]["deterministic_return"], color="#888", ls="--", lw=1)
        axis.set_title(family, fontsize=10)
        axis.set_xlim(left=0)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("minutes", fontsize=10)
    figure.supylabel("return of recorded episodes", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main(words: list[str]) -> None:
    unknown = set(words) - TARGETS.keys()
    if unknown:
        sys.exit(f"no target for {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    folders = {word: parse_data(word).folder for word in TARGETS}
    for word in words:
        data, place = parse_data(word), WORK / "collect" / folders[word]
        dataset = api.collect(data.family, place, options=data.options)
        found = facts(dataset, *TARGETS[word])
        store.write_json(KEEP / "collect" / f"{folders[word]}.json", found)
        print(
            f"{word}: {found['deterministic_return']['train']:.1f} in {found['minutes']:.1f} min "
            f"(wanted {found['target']['deterministic_return']} in {found['target']['minutes']})",
            flush=True,
        )
    kept = {f: KEEP / "collect" / f"{f}.json" for f in folders.values()}
    collections = {f: store.read_json(path) for f, path in kept.items() if path.exists()}
    store.write_bytes(KEEP / "collect" / "summary.md", table(collections).encode())
    draw(collections, KEEP / "collect" / "curves.png")


if __name__ == "__main__":
    main(sys.argv[1:] or list(TARGETS))

"""Is the paper right, and why? Positive pairs x entropy term x behaviour policies, on or off each.

    .venv/bin/python benchmarks/factors.py                 # or: make results-factors; hours
    .venv/bin/python benchmarks/factors.py point-robot     # one family
    .venv/bin/python benchmarks/factors.py cheetah-vel --shared cheetah-vel  # one network
    .venv/bin/python benchmarks/factors.py --toy           # a minute, to see the figure

A run with the entropy term is ER-TRL, one without is FOCAL. Positive pairs are two contexts per
task. Policies are independent networks, or one that all tasks share; where they were collected
twice, both are normalised with the experts of the shared one. Works in build/grid with `ertrl
reproduce` (killed, it goes on where it was; runs that results/laptop or results/factors have are
not made again) and keeps small files of its runs, every effect with its interval, the table and
the figure in results/factors. There is one dataset of each kind: the effect of the policies is
that of these two datasets.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from ertrl import store
from ertrl.colours import PALETTE
from ertrl.envs import GROUPS, group_title
from ertrl.evaluation import PAPER_PROTOCOLS
from ertrl.launch.plan import Cell, Contender, Data, Grid
from ertrl.launch.reproduce import reproduce
from ertrl.provenance import provenance
from ertrl.reporting.measure.statistics import LEVEL, Estimate
from ertrl.text import markdown_table
from shared import KEEP, WORK, known_runs

PAIRS, ENTROPY, POLICIES = "positive pairs", "entropy term", "independent policies"
SEEDS = {"point-robot": 5, "cheetah-vel": 5, "hopper-mass": 3, "walker-mass": 3}
INDEPENDENT = {
    "point-robot": {"policy": "independent"},
    "cheetah-vel": {
        "policy": "independent", "hidden": [64, 64], "batch_size": 128, "steps": 20000,
    },
}  # fmt: skip
"""Families that are collected with a network per task, too, at a size that two cores can do."""
TOY: dict[str, Any] = {
    "collect_settings": {"steps": 200, "checkpoints": 2, "episodes_per_checkpoint": 3},
    "train_settings": {"updates": 300, "evaluate_every": 300, "evaluation": {"episodes": 3}},
}


class Effect(NamedTuple):
    """Of one factor, averaged over the others; or of several, beyond what they do alone."""

    factors: tuple[str, ...]
    estimate: Estimate
    """`n` is the smallest number of seeds of a cell; without two in every cell, no interval."""


def effects(
    names: Sequence[str], cells: Mapping[tuple[bool, ...], Sequence[float]]
) -> list[Effect]:
    """Main effects and interactions of two-level factors, from the seeds of every cell.

    The effect of a factor is the mean with it minus the mean without it. That of two is half of how
    much the effect of one changes with the other, and so on. Intervals are Welch's: cells may vary
    unequally.
    """
    if len(cells) != 2 ** len(names):
        raise ValueError(f"{len(names)} factors have {2 ** len(names)} cells, got {len(cells)}")
    values = {levels: np.asarray(seeds, np.float64) for levels, seeds in cells.items()}
    share = 2 / len(cells)
    found = []
    for size in range(1, len(names) + 1):
        for chosen in combinations(range(len(names)), size):
            weights = {
                levels: share * float(np.prod([1 if levels[i] else -1 for i in chosen]))
                for levels in values
            }
            told = tuple(names[i] for i in chosen)
            found.append(Effect(told, _contrast(weights, values)))
    return found


def _contrast(
    weights: Mapping[tuple[bool, ...], float], values: Mapping[tuple[bool, ...], np.ndarray]
) -> Estimate:
    value = sum(weights[key] * x.mean() for key, x in values.items())
    fewest = min(len(x) for x in values.values())
    if fewest < 2:
        return Estimate(float(value), fewest)
    parts = np.array([weights[k] ** 2 * x.var(ddof=1) / len(x) for k, x in values.items()])
    counts = np.array([len(x) for x in values.values()])
    if not parts.sum():
        return Estimate(float(value), fewest, float(value), float(value))
    freedom = parts.sum() ** 2 / (parts**2 / (counts - 1)).sum()
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(parts.sum())
    return Estimate(float(value), fewest, float(value - half), float(value + half))


def grid(
    families: list[str], *, toy: bool, independent: Mapping[str, Any] = INDEPENDENT
) -> tuple[Grid, dict[tuple[str, tuple], list[Cell]]]:
    """All runs, and those of each family and combination of levels."""
    found: dict[tuple[str, tuple], list[Cell]] = {}
    for family in families:
        shared = Data(family)
        kinds = {False: shared}
        if family in independent:
            kinds[True] = Data(family, settings=independent[family], references=shared)
        for pairs, entropy, apart in product((False, True), (False, True), kinds):
            settings = {"sampling": {"contexts_per_task": 2 if pairs else 1}}
            contender = Contender("er-trl" if entropy else "focal", settings=settings)
            levels = (pairs, entropy, apart)[: 1 + len(kinds)]
            seeds = range(2 if toy else SEEDS[family])
            found[family, levels] = [Cell(kinds[apart], contender, seed) for seed in seeds]
    every = tuple(cell for own in found.values() for cell in own)
    return Grid(every, **(TOY if toy else {})), found


def measure(
    found: dict[tuple[str, tuple], list[Cell]], runs: Mapping[str, dict[str, float]]
) -> dict[str, Any]:
    """Family -> 'protocol/group' -> effects; a family of which a cell is missing is left out.

    `runs` has the scores of every run by the label of its cell.
    """
    told: dict[str, Any] = {}
    for family in dict.fromkeys(name for name, _ in found):
        own = {levels: cells for (name, levels), cells in found.items() if name == family}
        scores = {
            levels: [runs[c.label] for c in cells if c.label in runs]
            for levels, cells in own.items()
        }
        if not all(scores.values()):
            print(f"{family}: a cell has no run, so there are no effects", flush=True)
            continue
        names = (PAIRS, ENTROPY, POLICIES)[: len(next(iter(own)))]
        told[family] = {
            key: effects(
                names, {levels: [s[key] for s in every] for levels, every in scores.items()}
            )
            for key in (f"{p}/{g}" for p, g in product(PAPER_PROTOCOLS, GROUPS))
        }
    return told


def name_of(effect: Effect) -> str:
    return " x ".join(effect.factors)


def table(told: dict[str, Any]) -> str:
    """Every effect in points of normalised return, with its 95% interval."""
    texts = []
    for family, by_key in told.items():
        rows = []
        for i, effect in enumerate(next(iter(by_key.values()))):
            cells = [_cell(found[i]) for found in by_key.values()]
            rows.append([name_of(effect), *cells])
        texts.append(
            f"### {family}\n\n" + markdown_table(["", *by_key], rows, "l" + "r" * len(by_key))
        )
    return "\n\n".join(texts) + "\n"


def _cell(effect: Effect) -> str:
    value, _, low, high = effect.estimate
    return f"{value:+.1f}" if low is None else f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def draw(told: dict[str, Any], path: Path) -> None:
    """Rows are families, columns groups of tasks; a point and its interval per context."""
    figure, panels = plt.subplots(
        len(told), len(GROUPS), figsize=(11, 0.9 + 2.3 * len(told)),
        layout="constrained", sharey="row", squeeze=False,
    )  # fmt: skip
    colours = dict(zip(PAPER_PROTOCOLS, PALETTE, strict=False))
    for row, (family, by_key) in zip(panels, told.items(), strict=True):
        for panel, group in zip(row, GROUPS, strict=True):
            panel.axvline(0, color="#888", lw=1)
            for shift, (protocol, colour) in zip((-0.22, 0, 0.22), colours.items(), strict=True):
                found = by_key[f"{protocol}/{group}"]
                for place, effect in enumerate(found):
                    value, _, low, high = effect.estimate
                    y = place + shift
                    if low is not None:
                        panel.plot([low, high], [y, y], color=colour, lw=1.5)
                    panel.plot(value, y, "o", color=colour, ms=4)
            names = [name_of(effect) for effect in by_key[f"offline/{group}"]]
            panel.set_yticks(range(len(names)), names, fontsize=8)
            panel.set_title(f"{family}, {group_title(group)}", fontsize=9)
            panel.spines[["top", "right"]].set_visible(False)
        row[0].invert_yaxis()
    handles = [plt.Line2D([], [], color=c, marker="o", lw=1.5) for c in colours.values()]
    figure.legend(handles, colours, loc="outside upper center", ncols=3, fontsize=9)
    figure.supxlabel("effect on normalised return, with 95% interval", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def scores_of(known: Mapping[str, str], folders: Sequence[Path]) -> dict[str, dict[str, float]]:
    """Scores of kept runs by the label of their cell."""
    files = {file.stem: file for folder in folders for file in folder.glob("*.json")}
    return {label: store.read_json(files[name])["scores"] for label, name in known.items()}


def main(families: list[str], *, toy: bool, shared: Sequence[str] = ()) -> None:
    place = WORK / "factors-toy" / "kept" if toy else KEEP / "factors"
    apart = {name: INDEPENDENT[name] for name in INDEPENDENT if name not in shared}
    runs, found = grid(families, toy=toy, independent=apart)
    # With pairs and shared policies they are those of the paper's grid: nothing is run twice.
    folders = [place / "runs" / name for name in families]
    folders += [] if toy else [KEEP / "laptop" / name for name in families]
    known = known_runs(runs, *folders)
    missing = replace(runs, cells=tuple(c for c in runs.cells if c.label not in known))
    work = WORK / ("factors-toy" if toy else "grid")
    done = reproduce(missing, work, keep=place / "runs", reporting=False)
    for failure in done.failures:
        print(failure, flush=True)
    told = measure(found, scores_of(known_runs(runs, *folders), folders))
    plain = {
        family: {
            key: [{"factors": e.factors, **e.estimate._asdict()} for e in every]
            for key, every in by_key.items()
        }
        for family, by_key in told.items()
    }
    facts = {"kind": "ertrl-factors", "effects": json.loads(json.dumps(plain))}
    store.write_json(place / "effects.json", facts | {"provenance": provenance()})
    store.write_bytes(place / "effects.md", table(told).encode())
    draw(told, place / "effects.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help=f"of {', '.join(SEEDS)}; all if not given")
    parser.add_argument("--toy", action="store_true", help="small, on Point-Robot")
    parser.add_argument(
        "--shared", nargs="*", default=[], help="families without independent policies"
    )
    given = parser.parse_args()
    if wrong := [name for name in given.families if name not in SEEDS]:
        parser.error(f"{', '.join(wrong)}: families are {', '.join(SEEDS)}")
    if wrong := [name for name in given.shared if name not in INDEPENDENT]:
        parser.error(f"{', '.join(wrong)}: independent policies are of {', '.join(INDEPENDENT)}")
    chosen = ["point-robot"] if given.toy else given.families or list(SEEDS)
    main(chosen, toy=given.toy, shared=given.shared)

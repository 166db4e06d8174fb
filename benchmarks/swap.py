"""Whom z follows where task and behaviour disagree, by family and method: results/swap.

    .venv/bin/python benchmarks/swap.py ant-dir cheetah-vel   # or: make results-swap ARGS="..."
    .venv/bin/python benchmarks/swap.py point-robot --methods focal er-trl --seeds 0 1 2

Takes the agents of benchmarks/laptop.py, trains those that are missing in build/grid, and lets each
act in every task as if it were in another (ertrl/evaluation/swap.py). Five to ten seconds per
agent. Keeps FAMILY.json, and makes the table (summary.md) and the picture (swap.png) of all
families that are there.
"""

import argparse
import json
from typing import Any

from ertrl import api, store
from ertrl.data import Dataset
from ertrl.evaluation.swap import swap
from ertrl.launch.plan import parse_data
from ertrl.launch.reproduce import paper_families, paper_grid, paper_methods
from ertrl.provenance import provenance
from ertrl.reporting.draw.look import colour_of, house_style, new_figure, to_bytes
from ertrl.reporting.measure.statistics import mean_estimate
from ertrl.reporting.read.identity import method_title
from ertrl.text import markdown_table
from ertrl.training import Run
from shared import KEEP, SEEDS, WORK, done

PLACE = KEEP / "swap"
PARTNERS = 4
GROUP = "test-id"
"""Of which tasks table and picture tell."""


def measure(word: str, methods: list[str], seeds: list[int]) -> None:
    """Ask all agents of a family; those of other methods that are kept stay."""
    data = parse_data(word)
    grid = paper_grid([word], methods, seeds, probe_transitions=0)
    dataset = Dataset(WORK / "grid" / grid.collection(data).makes, verify=False)
    path = PLACE / f"{data.folder}.json"
    known = json.loads(path.read_text()) if path.exists() else {"methods": {}}
    found: dict[str, dict[str, Any]] = known["methods"]
    for folder in done(grid).runs.values():
        run = Run.of(folder)
        result = swap(api.load_agent(run), dataset, PARTNERS)
        found.setdefault(run.method.name, {})[str(run.config.seed)] = result
        print(f"{run.name}: {result['followed_task']}", flush=True)
    content = {"kind": "ertrl-swap", "family": data.family, "dataset": dataset.fingerprint}
    store.write_json(path, {**content, "methods": found, "provenance": provenance()})


def kept() -> dict[str, dict[str, list[float]]]:
    """Family -> method -> percentage of each seed."""
    families = {}
    for path in sorted(PLACE.glob("*.json")):
        found = json.loads(path.read_text())["methods"]
        families[path.stem] = {
            method: [100 * seed["followed_task"][GROUP] for seed in seeds.values()]
            for method, seeds in found.items()
        }
    return families


def table(families: dict[str, dict[str, list[float]]]) -> str:
    """A row per family, a column per method that any of them has."""
    columns = sorted({method for found in families.values() for method in found})
    rows = []
    for family, found in families.items():
        means = [mean_estimate(found[m]).value if m in found else None for m in columns]
        rows.append([family, *("" if mean is None else f"{mean:.0f}" for mean in means)])
    head = ["family", *map(method_title, columns)]
    return markdown_table(head, rows, "l" + "r" * len(columns))


def picture(families: dict[str, dict[str, list[float]]]) -> bytes:
    """A row of dots per family, one for every agent."""
    methods = sorted({method for found in families.values() for method in found})
    with house_style():
        figure, ((panel,),) = new_figure(1.2 + 0.45 * len(families), 1, 1)
        for row, found in enumerate(families.values()):
            for place, method in enumerate(methods):
                seeds = found.get(method, [])
                aside = (place - (len(methods) - 1) / 2) * 0.08
                style = {"color": colour_of(place), "markersize": 4, "alpha": 0.8}
                panel.plot(seeds, [row + aside] * len(seeds), "o", **style)
        for place, method in enumerate(methods):
            panel.plot([], [], "o", color=colour_of(place), label=method_title(method))
        panel.set_yticks(range(len(families)), list(families))
        panel.invert_yaxis()
        panel.set_xlim(-3, 103)
        panel.set_xlabel("z follows the task, % of episodes (else the behaviour)")
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        return to_bytes(figure, "png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=paper_families())
    parser.add_argument("--methods", nargs="*", default=paper_methods())
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    given = parser.parse_args()
    for name in given.families:
        measure(name, given.methods, given.seeds)
    store.write_bytes(PLACE / "summary.md", f"{table(kept())}\n".encode())
    store.write_bytes(PLACE / "swap.png", picture(kept()))

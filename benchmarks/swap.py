"""Whom z follows where task and behaviour disagree, by family and method: results/swap.

    .venv/bin/python benchmarks/swap.py ant-dir cheetah-vel   # or: make results-swap ARGS="..."
    .venv/bin/python benchmarks/swap.py point-robot --methods focal er-trl --seeds 0 1 2

Takes the agents of benchmarks/laptop.py, trains those that are missing in build/grid, and lets each
act in every task as if it were in another (ertrl/evaluation/swap.py). Five to ten seconds per
agent. Keeps FAMILY.json, and makes the table (summary.md) and the picture (swap.png) of all
families that are there.
"""

import json
from typing import Any

from ertrl import api, store
from ertrl.data import Dataset
from ertrl.evaluation.probes import ProbeSettings
from ertrl.evaluation.swap import swap
from ertrl.launch.plan import parse_data
from ertrl.launch.reproduce import paper_grid
from ertrl.provenance import provenance
from ertrl.reporting.draw.look import colour_of, house_style, new_figure, to_bytes
from ertrl.reporting.measure.statistics import mean_estimate
from ertrl.reporting.read.identity import method_title
from ertrl.text import markdown_table
from ertrl.training import Run
from shared import KEEP, WORK, asked_for, done

PLACE = KEEP / "swap"
GROUP = "test-id"
"""Of which tasks table and picture tell."""


def measure(word: str, methods: list[str], seeds: list[int]) -> None:
    """Ask all agents of a family; others that are kept stay, if they learned from the same data."""
    data = parse_data(word)
    grid = paper_grid([word], methods, seeds, probe_transitions=0)
    runs = done(grid).runs.values()
    dataset = Dataset(WORK / "grid" / grid.collection(data).makes, verify=False)
    path = PLACE / f"{data.folder}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    same = known.get("dataset") == dataset.fingerprint
    found: dict[str, dict[str, Any]] = known["agents"] if same else {}
    for run in map(Run.of, runs):
        result = swap(api.load_agent(run), dataset, ProbeSettings().swap_partners)
        about = {"run": run.name, "commit": provenance()["commit"]}
        found.setdefault(run.method.name, {})[str(run.config.seed)] = {**about, **result}
        print(f"{run.name}: {result}", flush=True)
    content = {"kind": "ertrl-swap", "family": data.family, "dataset": dataset.fingerprint}
    store.write_json(path, {**content, "agents": found, "provenance": provenance()})


Kept = dict[str, dict[str, list[float]]]
"""Family -> method -> percentage of each seed."""


def kept(kind: str = "followed_task") -> Kept:
    """What was measured; agents of which nothing could be are left out."""
    families = {}
    for path in sorted(PLACE.glob("*.json")):
        found = json.loads(path.read_text())["agents"]
        families[path.stem] = {
            method: [100 * seed[kind][GROUP] for seed in seeds.values() if kind in seed]
            for method, seeds in found.items()
        }
    return families


def table(families: Kept, control: Kept) -> str:
    """A row per family, a column per method that all of them have; in parentheses the control."""
    columns = sorted(set.intersection(*map(set, families.values())))
    rows = [
        [family, *(_told(found[method], control[family][method]) for method in columns)]
        for family, found in families.items()
    ]
    head = ["family", *map(method_title, columns)]
    return markdown_table(head, rows, "l" + "r" * len(columns))


def all_methods(family: str, found: Kept, control: Kept) -> str:
    """A row per method, the one that follows the task most first."""
    of_methods = sorted(found[family].items(), key=lambda item: -mean_estimate(item[1]).value)
    rows = [[method_title(m), _told(seeds, control[family][m])] for m, seeds in of_methods]
    return markdown_table([family, "z follows the task (control)"], rows, "lr")


def summary() -> str:
    """Table of all families, and one of each that has more methods than all have."""
    families, control = kept(), kept("control")
    few = min(map(len, families.values()))
    tables = [all_methods(f, families, control) for f in families if len(families[f]) > few]
    return "\n\n".join([table(families, control), *tables]) + "\n"


def _told(seeds: list[float], control: list[float]) -> str:
    return f"{mean_estimate(seeds).value:.0f} ({mean_estimate(control).value:.0f})"


def picture(families: Kept) -> bytes:
    """A row of dots per family, one for every agent."""
    methods = sorted({method for found in families.values() for method in found})
    with house_style():
        figure, ((panel,),) = new_figure(1.2 + 0.45 * len(families), 1, 1)
        for row, found in enumerate(families.values()):
            for place, (method, seeds) in enumerate(sorted(found.items())):
                aside = (place - (len(found) - 1) / 2) * 0.08
                colour = colour_of(methods.index(method))
                panel.plot(
                    seeds, [row + aside] * len(seeds), "o", color=colour, markersize=4, alpha=0.8
                )
        for place, method in enumerate(methods):
            panel.plot([], [], "o", color=colour_of(place), label=method_title(method))
        panel.set_yticks(range(len(families)), list(families))
        panel.invert_yaxis()
        panel.set_xlim(-3, 103)
        panel.axvline(50, linewidth=0.8, linestyle=":")
        panel.set_xlabel("z follows the task, % of episodes (else the behaviour)")
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        return to_bytes(figure, "png")


if __name__ == "__main__":
    given = asked_for(__doc__)
    for name in given.families:
        measure(name, given.methods, given.seeds)
    store.write_bytes(PLACE / "summary.md", summary().encode())
    store.write_bytes(PLACE / "swap.png", picture(kept()))

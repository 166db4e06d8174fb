"""How time and memory of training grow: with tasks, context, data, z and seeds.

    .venv/bin/python benchmarks/scaling.py       # or: make results-scaling; about ten minutes

Writes the numbers, their table and a picture to results/scaling, and beside them what the paper
profile's trainings would take on GPUs, on paper. `--seconds` is the time for each point.
"""

import argparse
from typing import Any

import matplotlib.pyplot as plt

from ertrl import store
from ertrl.bench.scaling import AXES, describe_gpus, growth_table, paper_on_gpus, scaling
from ertrl.colours import PALETTE
from ertrl.launch.reproduce import paper_families
from ertrl.methods import methods
from ertrl.progress import say
from shared import KEEP

PLACE = KEEP / "scaling"


def draw(result: dict[str, Any], what: str, label: str) -> None:
    """One panel per size, a line per method; dashed: what the counted products promise."""
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for panel, (name, axis) in zip(panels.flat, AXES.items(), strict=True):
        here = [p for p in result["points"] if p["axis"] == name]
        for method in dict.fromkeys(p["method"] for p in here):
            own = [p for p in here if p["method"] == method]
            place = list(methods()).index(method) if method else len(methods())
            x, y = [p["value"] for p in own], [max(p[what], 1e-6) for p in own]
            panel.plot(x, y, "o-", color=PALETTE[place], label=method or "drawing batches", ms=4)
            if method and what == "seconds":
                expected = [y[0] * p["gflop"] / own[0]["gflop"] for p in own]
                panel.plot(x, expected, "--", color=PALETTE[place], lw=0.9)
            elif method is None and what == "seconds":
                panel.plot(x, [y[0]] * len(x), "--", color=PALETTE[place], lw=0.9)
        panel.set(xscale="log", yscale="log", title=axis.title)
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    lines = {line.get_label(): line for p in panels.flat for line in p.get_lines()}
    named = {k: v for k, v in lines.items() if not str(k).startswith("_")}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=7, fontsize=9)
    figure.supylabel(label)
    PLACE.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLACE / f"{what.split('_')[0]}.png", dpi=110, metadata={"Software": None})


def main(seconds: float) -> None:
    result = scaling(tuple(methods()), seconds=seconds, say=say)
    store.write_json(PLACE / "scaling.json", result)
    store.write_bytes(PLACE / "summary.md", growth_table(result).encode())
    draw(result, "seconds", "seconds per update")
    draw(result, "memory_mib", "MiB")
    paper = paper_on_gpus(paper_families()[1:], tuple(methods()))
    store.write_json(PLACE / "gpus.json", paper)
    store.write_bytes(PLACE / "gpus.md", describe_gpus(paper).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    main(parser.parse_args().seconds)

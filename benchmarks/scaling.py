"""How time and memory of training grow: with tasks, context, data, z and seeds.

    .venv/bin/python benchmarks/scaling.py       # or: make results-scaling; about ten minutes

Writes the numbers and their pictures to results/scaling, what the paper profile's trainings would
take on GPUs, on paper, beside them, and the page docs/scaling.md from both. Leave the machine alone
meanwhile. `--seconds` is the time for each point.
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
from shared import KEEP, ROOT

PLACE = KEEP / "scaling"
PAGE = """\
# How cost grows

`make results-scaling` measures a training step along one size at a time, and writes this page.
`ertrl bench scaling` prints the same table.
Profile {profile}, sizes of {family}, {threads} CPU thread(s).

A slope is the power of growth from the first to the last size: 0 is constant, 1 proportional.
What is *expected* is counted: the matrix products of the update's program.
Memory is that of the compiled program.
*Drawing batches* reads memory-mapped files; its memory is what the process holds besides them.

![Time of an update against six sizes; dashed: expected](../results/scaling/seconds.png)

![Memory against six sizes](../results/scaling/memory.png)

{table}
## The paper profile on GPUs, on paper

Nothing of this was run.
{families} families, {methods} methods and {seeds} seeds are {runs} trainings.
Their matrix products are {exaflop:.0f} exaflop.
If a GPU sustains {teraflops:g} teraflops on them, an assumption, they take:

{gpus}
A training runs on one GPU, so more GPUs than trainings do not help.
Collection and evaluation simulate on CPUs and come on top.
"""


def page(result: dict[str, Any], paper: dict[str, Any]) -> str:
    return PAGE.format(
        profile=result["profile"],
        family=result["family"],
        threads=result["provenance"]["threads"],
        table=growth_table(result),
        runs=paper["runs"],
        families=len(paper["families"]),
        methods=len(paper["methods"]),
        seeds=paper["seeds"],
        exaflop=paper["exaflop"],
        teraflops=paper["assumed_teraflops"],
        gpus=describe_gpus(paper),
    )


def draw(result: dict[str, Any], what: str, label: str) -> None:
    """One panel per size, a line per method; dashed: what the counted products promise."""
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for panel, (name, axis) in zip(panels.flat, AXES.items(), strict=True):
        here = [p for p in result["points"] if p["axis"] == name]
        for method in dict.fromkeys(p["method"] for p in here):
            own = [p for p in here if p["method"] == method]
            colour = PALETTE[list(methods()).index(method) if method else len(methods())]
            x, y = [p["value"] for p in own], [max(p[what], 1e-6) for p in own]
            panel.plot(x, y, "o-", color=colour, label=method or "drawing batches", ms=4)
            if what == "seconds":
                growth = [p["gflop"] / own[0]["gflop"] if method else 1.0 for p in own]
                panel.plot(x, [y[0] * g for g in growth], "--", color=colour, lw=0.9)
        panel.set(xscale="log", yscale="log", title=axis.title)
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    lines = {str(line.get_label()): line for p in panels.flat for line in p.get_lines()}
    named = {label: line for label, line in lines.items() if not label.startswith("_")}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=7, fontsize=9)
    figure.supylabel(label)
    PLACE.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLACE / f"{what.split('_')[0]}.png", dpi=110, metadata={"Software": None})


def main(seconds: float) -> None:
    result = scaling(tuple(methods()), seconds=seconds, say=say)
    store.write_json(PLACE / "scaling.json", result)
    draw(result, "seconds", "seconds per update")
    draw(result, "memory_mib", "MiB")
    paper = paper_on_gpus(paper_families()[1:], tuple(methods()))
    store.write_json(PLACE / "gpus.json", paper)
    store.write_bytes(ROOT / "docs" / "scaling.md", page(result, paper).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    main(parser.parse_args().seconds)

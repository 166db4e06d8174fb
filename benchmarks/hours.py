"""How long the whole grid takes on two cores, summed from what was measured in results/laptop.

    .venv/bin/python benchmarks/hours.py    # or: make results-hours; a second

The grid is that of the paper and Bayes-linear on eight MuJoCo families and Point-Robot, three
seeds, on Point-Robot and Cheetah-Vel five. Collections have both cores, of runs two go on at once.
A cell that was not run yet takes as long as FOCAL on its family, times what its method costs in
updates of FOCAL (results/bench/train-laptop.json). Writes the table into docs/reproduce.md.
"""

import json
from statistics import mean

from ertrl.launch.reproduce import paper_families, paper_methods
from ertrl.profiles import get_profile
from ertrl.text import markdown_table
from overview import costs, rewrite
from shared import KEEP, ROOT

SEEDS = {"point-robot": 5, "cheetah-vel": 5}
CORES = 2
LEARNER = get_profile("laptop")["learner"]
HEAD = ("family", "hours of collecting", "hours of runs", "runs measured")


def hours_of(family: str) -> tuple[float, float, int, int]:
    """Hours of collecting and of all runs of a family, and how many runs of all were measured."""
    place, seeds, cost = KEEP / "laptop" / family, SEEDS.get(family, 3), costs()
    (data,) = (json.loads(file.read_text())["seconds"] for file in place.glob("data-*.json"))
    found: dict[str, list[float]] = {}
    for file in place.glob(f"{family}-*.json"):
        run = json.loads(file.read_text())
        # Those of the profile's learner, if they were not interrupted.
        if run["learner"] == LEARNER and run["seconds"]:
            found.setdefault(run["method"], []).append(run["seconds"])
    if "focal" not in found:
        raise SystemExit(f"{place}: no run of FOCAL was measured in one go, to go by")
    one = mean(found["focal"])
    seconds, measured = 0.0, 0
    for method in paper_methods():
        own = found.get(method, [])[:seeds]
        measured += len(own)
        usual = mean(own) if own else one * cost[method] / cost["focal"]
        seconds += sum(own) + usual * (seeds - len(own))
    return data / 3600, seconds / CORES / 3600, measured, seeds * len(paper_methods())


def table() -> str:
    rows, total = [], 0.0
    for family in paper_families():
        collecting, running, measured, runs = hours_of(family)
        total += collecting + running
        rows.append([family, f"{collecting:.1f}", f"{running:.1f}", f"{measured} of {runs}"])
    rows.append(["**all, both together**", "", f"**{total:.1f}**", ""])
    return markdown_table(
        ["family", "hours of collecting", "hours of runs", "runs measured"], rows, "lrrr"
    )


if __name__ == "__main__":
    rewrite(ROOT / "docs" / "reproduce.md", table())
    print(table())

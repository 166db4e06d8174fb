"""The dataset card: README.md and learning-curve.png beside the data, as the Hub shows it.

It is derived from the rest of the folder, so it carries no checksum, no part of the content's
fingerprint depends on it, and nothing reads it back. Equal datasets get equal cards.
"""

import io
import json
from pathlib import Path
from typing import Any

from ertrl import store
from ertrl.colours import COLOURS
from ertrl.data import layout
from ertrl.data.dataset import Dataset
from ertrl.data.info import describe, facts, tables
from ertrl.envs import group_title
from ertrl.envs.families import installed_families
from ertrl.envs.gym_family import GymFamily
from ertrl.plugins import is_ours
from ertrl.text import markdown_table

CARD, PICTURE = "README.md", "learning-curve.png"
AS_CODE = ("command", "commit", "content", "SHA-256 of manifest.json")
USE = f"""\
```python
from ertrl import Dataset

data = Dataset("DIR")  # this folder; every SHA-256 is checked
data.task(0).observations, data.task(0).actions, data.task(0).rewards
```

`ertrl verify DIR` checks the files, `ertrl train METHOD --data DIR` trains on them.
Without ertrl: `{layout.MANIFEST}` is JSON and the arrays are `.npy` files,
`tasks/NNN/observations.npy` of shape [episodes, steps + 1, numbers] and so on;
rows beyond `lengths.npy` are zero."""


def write_card(dataset: Dataset) -> list[Path]:
    """Write or renew the card of a dataset; returns its files."""
    store.sweep(dataset.path)
    summary = describe(dataset)
    parts = {PICTURE: draw(summary)} if _learned(summary) else {}
    parts[CARD] = text(summary).encode()  # last: where it is, all of it is
    for name, content in parts.items():
        store.write_bytes(dataset.path / name, content)
    return [dataset.path / name for name in parts]


def _learned(summary: dict[str, Any]) -> bool:
    """Whether there is a curve to draw: logs of one policy have none."""
    return any(len(group["checkpoints"]) > 1 for group in summary["groups"].values())


def text(summary: dict[str, Any]) -> str:
    """The card as Markdown with the Hub's front matter."""
    name, number = summary["family"], len(summary["tasks"])
    if summary["simulator"]:
        name = "-".join(word.capitalize() for word in name.split("-"))
    title = f"{name}: behaviour data of {number} tasks"
    policies = max(len(group["checkpoints"]) for group in summary["groups"].values())
    who = f" collected by {policies} checkpoints of each task's behaviour policy,"
    if not summary["curve"]:
        who = f" logged by {policies} policies,"
    parts = [
        _front_matter(summary, title),
        f"# {title}",
        f"{summary['transitions']:,} logged transitions ({summary['episodes']:,} episodes) of "
        f"{number} related tasks,{who if policies > 1 else ''} for offline meta-reinforcement "
        "learning.",
    ]
    if _learned(summary):
        parts.append(f"![Return of the behaviour policies]({PICTURE})")
    words = facts(summary)
    words |= {k: f"`{v}`" for k, v in words.items() if k in AS_CODE}
    parts += ["## Facts", markdown_table(("", ""), list(words.items()), "ll")]
    for table in tables(summary):
        parts += [f"## {table.title}", *([table.note] if table.note else [])]
        parts.append(markdown_table(table.head, table.rows, "l" + "r" * (len(table.head) - 1)))
    first = summary["tasks"][0]
    parts += ["## Use", USE.replace("(0)", f"({json.dumps(first.get('name', first['task']))})")]
    if summary["collector"].get("config"):
        settings = json.dumps(summary["collector"]["config"], indent=1)
        parts += ["## Collector settings", f"```json\n{settings}\n```"]
    return "\n\n".join(parts) + "\n"


def _is_all_ours(summary: dict[str, Any]) -> bool:
    """Whether the data is of a family of ertrl, and not of environments of others."""
    if not summary["simulator"] or summary["family_code"]:
        return False
    kinds = [kind for kind in installed_families() if kind.name == summary["family"]]
    return any(is_ours(kind) and not issubclass(kind, GymFamily) for kind in kinds)


def _front_matter(summary: dict[str, Any], title: str) -> str:
    """What the Hub reads; JSON values are YAML."""
    values = {
        "license": "mit" if _is_all_ours(summary) else "unknown",
        "pretty_name": title,
        "task_categories": ["reinforcement-learning"],
        "tags": ["reinforcement-learning", "offline-rl", "meta-rl", "ertrl", summary["family"]],
        # The arrays are for memory-mapping, not for the Hub's table viewer.
        "viewer": False,
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---"])


# --- the picture ---

MUTED, LINE, COLOUR = (COLOURS[name][0] for name in ("muted", "line", "c0"))
ENDS = {"expert": ("expert", "--"), "random": ("random actions", ":"), "zero": ("no action", "-.")}
"""Ends of the scale: label and dashes."""


def draw(summary: dict[str, Any]) -> bytes:
    """The learning curve of the behaviour policies as PNG, the same bytes every time."""
    from matplotlib import style
    from matplotlib.figure import Figure

    groups = summary["groups"]
    with style.context(["default", "ertrl.house", {"grid.color": LINE}]):
        figure = Figure(figsize=(3.2 * max(len(groups), 2), 2.9), layout="constrained")
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for panel, (name, group) in zip(panels, groups.items(), strict=True):
            _panel(panel, group)
            panel.set_title(f"{group_title(name)} ({len(group['tasks'])})")
        panels[0].set_ylabel("return of an episode")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels))
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()


def _panel(panel: Any, group: dict[str, Any]) -> None:
    """One group: mean over tasks, the range of tasks around it, and the ends of the scale."""
    points = group["checkpoints"]
    by_updates = all(p["updates"] is not None for p in points)
    x = [p["updates" if by_updates else "checkpoint"] for p in points]
    low, mean, high = (
        [p[name] for p in points] for name in ("lowest_task", "mean_return", "highest_task")
    )
    panel.fill_between(
        x, low, high, label="lowest to highest task", color=COLOUR, alpha=0.15, linewidth=0
    )
    # A dot each, or a group with a single checkpoint would show nothing.
    panel.plot(x, mean, color=COLOUR, marker="o", markersize=3, label="mean over tasks")
    for kind, value in group["reference"].items():
        label, dashes = ENDS[kind]
        panel.axhline(value, color=MUTED, linewidth=1, linestyle=dashes, label=label)
    panel.set_xlabel("updates of the behaviour policy" if by_updates else "checkpoint")
    panel.xaxis.get_major_locator().set_params(integer=True, nbins=4)

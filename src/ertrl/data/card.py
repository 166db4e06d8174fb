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
from ertrl.data.info import REFERENCES, describe, facts
from ertrl.envs import group_title
from ertrl.text import markdown_table

CARD, PICTURE = "README.md", "learning-curve.png"
SIZES = (("n<1K", 1e3), ("1K<n<10K", 1e4), ("10K<n<100K", 1e5), ("100K<n<1M", 1e6),
         ("1M<n<10M", 1e7), ("10M<n<100M", 1e8), ("100M<n<1B", 1e9))  # fmt: skip
"""The Hub's words for the number of rows."""


def write_card(dataset: Dataset) -> list[Path]:
    """Write or renew the card of a dataset; returns its files."""
    store.sweep(dataset.path)
    summary = describe(dataset)
    parts = {CARD: text(summary).encode()}
    if _learned(summary):
        parts[PICTURE] = draw(summary)
    for name, content in parts.items():
        store.write_bytes(dataset.path / name, content)
    return [dataset.path / name for name in parts]


def text(summary: dict[str, Any]) -> str:
    """The card as Markdown with the Hub's front matter."""
    collector = summary["collector"].get("config") or {}
    parts = [
        front_matter(summary),
        f"# {title(summary)}\n\n{_introduction(summary)}",
        *([f"![Return of the behaviour policies]({PICTURE})"] if _learned(summary) else []),
        "## Facts\n\n" + _table(("", ""), [(k, _code(k, v)) for k, v in facts(summary).items()]),
        "## Returns\n\nMean over tasks of the undiscounted return of an episode. Expert is the "
        "final behaviour policy without noise, random acts uniformly, zero does not act: they "
        "end the scale of normalised returns.\n\n" + _table(GROUP_HEAD, group_rows(summary)),
        "## Returns by checkpoint\n\nMean over tasks (lowest to highest task).\n\n"
        + _table(checkpoint_head(summary), checkpoint_rows(summary)),
        "## Tasks\n\n" + _table(task_head(summary), task_rows(summary)),
        f"## Use\n\n{_use(summary)}",
    ]
    if collector:
        settings = json.dumps(collector, indent=1)
        parts.append(f"## Collector settings\n\n```json\n{settings}\n```")
    return "\n\n".join(parts) + "\n"


def title(summary: dict[str, Any]) -> str:
    """'Cheetah-Vel: behaviour data of 40 tasks'."""
    words = summary["family"]
    if summary["simulator"]:
        words = "-".join(word.capitalize() for word in words.split("-"))
    return f"{words}: behaviour data of {len(summary['tasks'])} tasks"


def front_matter(summary: dict[str, Any]) -> str:
    """What the Hub reads; JSON values are YAML."""
    size = next((word for word, limit in SIZES if summary["transitions"] < limit), "n>1T")
    values = {
        "license": "unknown" if not summary["simulator"] else "mit",
        "pretty_name": title(summary),
        "task_categories": ["reinforcement-learning"],
        "tags": ["reinforcement-learning", "offline-rl", "meta-rl", "ertrl", summary["family"]],
        "size_categories": [size],
        # The arrays are for memory-mapping, not for the Hub's table viewer.
        "viewer": False,
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---"])


def _introduction(summary: dict[str, Any]) -> str:
    number = max(len(group["checkpoints"]) for group in summary["groups"].values())
    who = (
        f" collected by {number} checkpoints of each task's behaviour policy," if number > 1 else ""
    )
    return (
        f"{summary['transitions']:,} logged transitions ({summary['episodes']:,} episodes) of "
        f"{len(summary['tasks'])} related tasks,{who} for offline meta-reinforcement learning."
    )


def _learned(summary: dict[str, Any]) -> bool:
    """Whether there is a curve to draw: logs of one policy have none."""
    return any(len(group["checkpoints"]) > 1 for group in summary["groups"].values())


def _code(name: str, value: str) -> str:
    return f"`{value}`" if name in ("command", "commit", "content") or "SHA" in name else value


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Of more than two columns, all but the first are numbers."""
    return markdown_table(head, rows, "l" + ("r" if len(head) > 2 else "l") * (len(head) - 1))


GROUP_HEAD = ("group", "tasks", "episodes", "transitions", "data", *REFERENCES)


def group_rows(summary: dict[str, Any]) -> list[tuple[str, ...]]:
    """Per group: name, tasks, episodes, transitions, mean return, references."""
    return [
        (
            name,
            str(len(group["tasks"])),
            f"{group['episodes']:,}",
            f"{group['transitions']:,}",
            f"{group['mean_return']:.1f}",
            *references(group),
        )
        for name, group in summary["groups"].items()
    ]


def references(entry: dict[str, Any]) -> list[str]:
    """Reference returns of a task or group; an unknown one is empty."""
    known = entry["reference"]
    return [f"{known[kind]:.1f}" if kind in known else "" for kind in REFERENCES]


def checkpoint_head(summary: dict[str, Any]) -> tuple[str, ...]:
    """Titles of `checkpoint_rows`."""
    return ("checkpoint", "updates", "seconds", *summary["groups"])


def checkpoint_rows(summary: dict[str, Any]) -> list[tuple[str, ...]]:
    """Per checkpoint: number, updates, seconds and each group's mean (lowest to highest task)."""
    groups = [
        {c["checkpoint"]: c for c in group["checkpoints"]} for group in summary["groups"].values()
    ]
    rows = []
    for number in sorted(set().union(*groups)):
        found = [group.get(number) for group in groups]
        when = next(c for c in found if c)
        age = [f"{when[k]:,.0f}" if when[k] is not None else "" for k in ("updates", "seconds")]
        cells = [
            f"{c['mean_return']:.1f} ({c['lowest_task']:.1f} to {c['highest_task']:.1f})"
            if c
            else ""
            for c in found
        ]
        rows.append((str(number), *age, *cells))
    return rows


def task_rows(summary: dict[str, Any]) -> list[tuple[str, ...]]:
    """Per task: number, group, parameters, episodes, transitions, mean return, references."""
    return [
        (
            str(task["task"]),
            task["group"],
            *(f"{round(value, 9):.4g}" for value in task["parameters"].values()),
            f"{task['episodes']:,}",
            f"{task['transitions']:,}",
            f"{task['mean_return']:.1f}",
            *references(task),
        )
        for task in summary["tasks"]
    ]


def task_head(summary: dict[str, Any]) -> tuple[str, ...]:
    """Titles of `task_rows`."""
    names = summary["parameter_names"]
    return ("task", "group", *names, "episodes", "transitions", "data", *REFERENCES)


def _use(summary: dict[str, Any]) -> str:
    return (
        "```python\nfrom ertrl import Dataset\n\n"
        f'data = Dataset("{summary["family"]}")  # this folder; every SHA-256 is checked\n'
        "data.task(0).observations, data.task(0).actions, data.task(0).rewards\n```\n\n"
        f"`ertrl verify DIR` checks the files, `ertrl train METHOD --data DIR` trains on them. "
        f"Without ertrl: `{layout.MANIFEST}` is JSON and the arrays are `.npy` files, "
        "`tasks/NNN/observations.npy` of shape [episodes, steps + 1, numbers] and so on; rows "
        "beyond `lengths.npy` are zero."
    )


# --- the picture ---

INK, MUTED, LINE, COLOUR = (COLOURS[name][0] for name in ("ink", "muted", "line", "c0"))
LOOK: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "grid.color": LINE,
    "legend.frameon": False,
    "text.color": INK,
}


def draw(summary: dict[str, Any]) -> bytes:
    """The learning curve of the behaviour policies as PNG, the same bytes every time."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = summary["groups"]
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)
        figure = Figure(figsize=(3.2 * max(len(groups), 2), 2.9), layout="constrained")
        FigureCanvasAgg(figure)
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
    x = [p["updates"] if by_updates else p["checkpoint"] for p in points]
    low, mean, high = (
        [p[name] for p in points] for name in ("lowest_task", "mean_return", "highest_task")
    )
    shade = {"color": COLOUR, "alpha": 0.15, "linewidth": 0}
    panel.fill_between(x, low, high, label="lowest to highest task", **shade)
    # A dot each, or a group with a single checkpoint would show nothing.
    panel.plot(x, mean, color=COLOUR, marker="o", markersize=3, label="mean over tasks")
    dashes = {"expert": "--", "random": ":", "zero": "-."}
    words = {"expert": "expert", "random": "random actions", "zero": "no action"}
    for kind, value in group["reference"].items():
        panel.axhline(value, color=MUTED, linewidth=1, linestyle=dashes[kind], label=words[kind])
    panel.set_xlabel("updates of the behaviour policy" if by_updates else "checkpoint")
    panel.xaxis.get_major_locator().set_params(integer=True, nbins=4)

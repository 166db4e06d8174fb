"""The behaviour data: how good the policies were that collected it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ertrl.data import Dataset
from ertrl.evaluation import normalise
from ertrl.reporting.figures.common import limits, reference_lines
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import PALETTE, new_figure
from ertrl.reporting.summary import group_title


def behaviour_data(family: FamilyResults, dataset: Dataset) -> Figure:
    """Normalised returns of the recorded episodes against the checkpoint that collected them."""
    figure = new_figure(2.7)
    axes = figure.subplots(1, len(family.groups), sharey=True, squeeze=False)[0]
    colour, shown = PALETTE[0], []
    for (group, tasks), panel in zip(family.groups.items(), axes, strict=True):
        reference_lines(panel, family, group, words=panel is axes[-1])
        checkpoints, returns = zip(*(_episodes(dataset, task) for task in tasks), strict=True)
        checkpoint, value = np.concatenate(checkpoints), np.concatenate(returns)
        numbers = np.unique(checkpoint)
        low, middle, high = np.array(
            [np.quantile(value[checkpoint == n], [0.1, 0.5, 0.9]) for n in numbers]
        ).T
        shown += [low, high]
        panel.fill_between(numbers + 1, low, high, color=colour, alpha=0.18, linewidth=0)
        panel.plot(numbers + 1, middle, color=colour)
        panel.set_title(f"{group_title(group)} ({len(tasks)})")
        panel.set_xlabel("checkpoint of the behaviour policy")
        panel.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylim(*limits(shown))
    axes[0].set_ylabel("normalised return")
    handles = [
        Line2D([], [], color=colour, label="median episode"),
        Patch(color=colour, alpha=0.18, linewidth=0, label="10% to 90% of episodes"),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def _episodes(dataset: Dataset, task: int) -> tuple[np.ndarray, np.ndarray]:
    data = dataset.task(task)
    references: dict[str, Sequence[float]] = {
        kind: [data.reference[kind]] for kind in ("expert", "random")
    }
    return data.checkpoints, normalise(data.returns[None], references)[0]

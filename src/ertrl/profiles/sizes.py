"""Settings that follow from how much data there is, and of what size."""

from typing import Any, NamedTuple

from ertrl.data import Dataset


class DataSize(NamedTuple):
    """What a dataset's size says about the settings that suit it."""

    training_tasks: int
    fewest_transitions: int
    """Of a training task."""
    transitions: int
    """Of all training tasks."""
    horizon: int
    numbers: int
    """Of an observation and an action together."""

    @classmethod
    def of(cls, dataset: Dataset) -> "DataSize":
        counts = [len(dataset.task(task).steps) for task in dataset.group("train")]
        numbers = dataset.dims.observation + dataset.dims.action
        return cls(len(counts), min(counts, default=0), sum(counts), dataset.horizon, numbers)


def fitting_batch(meta_batch: int, size: DataSize) -> dict[str, Any]:
    """Any profile: no more tasks per step than there are to draw from."""
    return {"sampling": {"meta_batch": max(2, min(meta_batch, size.training_tasks))}}


def settings_for(size: DataSize) -> dict[str, Any]:
    """The profile `logs`: widths, batches, discount and updates for data of this size."""
    width = 128 if size.numbers <= 40 else 256
    hidden = [width] * (2 if size.numbers <= 12 else 3)
    meta_batch = max(2, min(16, size.training_tasks))
    batch_size = min(256, 512 // meta_batch)
    # Twenty looks at each transition; from far fewer than these updates no critic learns.
    wanted = 20 * size.transitions / (meta_batch * batch_size)
    updates = int(min(max(wanted, 5_000), 20_000) // 1000 * 1000)
    return {
        "sampling": {
            "meta_batch": meta_batch,
            "batch_size": batch_size,
            "context_size": max(4, min(64, size.fewest_transitions // 4)),
        },
        # A reward a sixth of an episode away still counts about a third; critics that look further
        # have not learned to within these updates.
        "learner": {"hidden": hidden, "discount": min(max(1 - 6 / size.horizon, 0.9), 0.99)},
        "method": {
            "encoder": {"hidden": hidden, "latent_dim": min(max(size.training_tasks, 4), 16)}
        },
        "updates": updates,
        "evaluate_every": updates,
        "checkpoint_every": 1000,
    }

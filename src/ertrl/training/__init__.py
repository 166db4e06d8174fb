"""Meta-training: a pure update, a run on disk, one loop."""

from ertrl.training.loop import train_run, train_together
from ertrl.training.run import Run, Runs, lengthen, open_runs
from ertrl.training.sinks import SinkName, check_sinks

__all__ = [
    "Run",
    "Runs",
    "SinkName",
    "check_sinks",
    "lengthen",
    "open_runs",
    "train_run",
    "train_together",
]

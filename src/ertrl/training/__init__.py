"""Meta-training: a pure update, a run on disk, one loop."""

from ertrl.training.further import lengthened
from ertrl.training.loop import check_start, train_run, train_together
from ertrl.training.run import Run
from ertrl.training.sinks import SinkName
from ertrl.training.update import TrainState

__all__ = [
    "Run",
    "SinkName",
    "TrainState",
    "check_start",
    "lengthened",
    "train_run",
    "train_together",
]

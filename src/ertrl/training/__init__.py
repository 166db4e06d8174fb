"""Meta-training: a pure update, a run on disk, one loop.

config.py          settings of a run
update.py          the numerical core: one step, compiled, many per call
loop.py            the only training loop
run.py             a run's folder; records.py and metrics.py its files, shapes.py what they hold
beforehand.py      what would stop a run, found out before it starts
replay.py          the update at which a run diverged, once more
sinks.py           TensorBoard, Weights & Biases
"""

from ertrl.training.loop import train_run, train_together
from ertrl.training.run import Run, Runs, each_run, lengthen, open_runs
from ertrl.training.sinks import SinkName, check_sinks

__all__ = [
    "Run",
    "Runs",
    "SinkName",
    "check_sinks",
    "each_run",
    "lengthen",
    "open_runs",
    "train_run",
    "train_together",
]

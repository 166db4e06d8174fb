"""Where metrics go besides metrics.jsonl: TensorBoard and Weights & Biases, if asked for.

metrics.jsonl stays the source of truth; a sink sees each of its lines once more. A resumed run goes
on where its checkpoint stands: what a sink holds beyond that is overwritten.
"""

from collections.abc import Sequence
from typing import Any, Literal

from ertrl.errors import ConfigError, unknown
from ertrl.plugins import require
from ertrl.training.run import Run

SinkName = Literal["tensorboard", "wandb"]


def _values(line: dict[str, Any]) -> dict[str, float]:
    return {f"{line['kind']}/{k}": v for k, v in line.items() if k not in ("kind", "step")}


class TensorBoard:
    """Event files in the run's folder, for `tensorboard --logdir runs`."""

    package = "tensorboardX"

    def __init__(self, run: Run, step: int):
        """Events behind `step`, of a run that was killed, are hidden."""
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(run.path / "tensorboard"), purge_step=step + 1)

    def write(self, line: dict[str, Any]) -> None:
        for name, value in _values(line).items():
            self._writer.add_scalar(name, value, line["step"])

    def close(self) -> None:
        self._writer.close()


class Wandb:
    """A W&B run of the same name; WANDB_MODE=offline keeps it on this machine."""

    package = "wandb"

    def __init__(self, run: Run, step: int):
        """A resumed run goes on in the same W&B run."""
        import wandb  # ty: ignore[import-not-found]

        self._run = wandb.init(
            project="ertrl",
            id=run.name,
            name=run.name,
            group=f"{run.family} {run.spec['method']} {run.spec['learner']}",
            config=run.spec["config"],
            dir=str(run.path),
            resume="allow",
        )

    def write(self, line: dict[str, Any]) -> None:
        """Our step is the step, whatever W&B counts."""
        self._run.log({**_values(line), "step": line["step"]})

    def close(self) -> None:
        self._run.finish()


SINKS: dict[str, type[TensorBoard] | type[Wandb]] = {"tensorboard": TensorBoard, "wandb": Wandb}


def check_sinks(names: Sequence[str]) -> None:
    """Sinks are extras of the package: say so before anything is trained."""
    for name in names:
        if name not in SINKS:
            raise ConfigError(unknown("sink", name, SINKS))
        require(SINKS[name].package, extra=name)

"""Train a finished run further."""

from dataclasses import replace

from ertrl import store
from ertrl.data import Dataset
from ertrl.errors import ConfigError
from ertrl.training.metrics import MetricsLog
from ertrl.training.run import Run


def lengthen(run: Run, dataset: Dataset, updates: int) -> Run:
    """The run of the same configuration with more updates, beside this one, as far as this one is.

    It has the weights, log and measurements of one that was as long from the start.
    """
    if updates <= run.config.updates:
        raise ConfigError(
            f"{run.name} has {run.config.updates} updates; to train it further, ask for more than "
            f"that, not for {updates}"
        )
    if run.config.decay:
        raise ConfigError(
            f"{run.name} cannot be trained further: its step size falls to zero over its "
            f"{run.config.updates} updates (decay {run.config.decay:g}). Train a new run with "
            f"--updates {updates}"
        )
    config = replace(run.config, updates=updates)
    origin = run.spec["profile"], run.spec["variant"], run.spec.get("threads", 1)
    longer = Run.create(run.path.parent, dataset, config, *origin)
    state, log_bytes = run.load()
    with store.exclusive(longer.path):
        if longer.checkpoints.steps():
            return longer  # it has begun before
        logged = store.read_bytes(run.metrics_path)[:log_bytes]
        store.write_bytes(longer.metrics_path, logged)
        own = {"run": longer.name}
        for step in run.evaluations.steps():
            longer.add_evaluation(run.evaluations.read(step) | own)
        for step in run.probes.steps():
            longer.add_probes(run.probes.read(step) | own)
        log = MetricsLog(longer.metrics_path, log_bytes)
        together = run.checkpoints.read(int(state.step)).get("runs_in_program", 1)
        longer.save(state, log, together)  # last: from now on it is as far
        log.close()
    return longer

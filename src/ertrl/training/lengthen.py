"""A finished run goes on: a longer run that begins with what it has."""

from dataclasses import replace

from ertrl import store
from ertrl.data import Dataset
from ertrl.errors import ConfigError
from ertrl.training.run import MetricsLog, Run


def lengthen(run: Run, dataset: Dataset, updates: int) -> Run:
    """The run of the same configuration with more updates, beside this one, as far as this one is.

    It has the weights, log and measurements of one that was as long from the start.
    """
    if updates <= run.config.updates:
        raise ConfigError(
            f"{run.name} has {run.config.updates} updates; to train it further, ask for more than "
            f"that, not for {updates}"
        )
    config = replace(run.config, updates=updates)
    origin = run.spec["profile"], run.spec.get("variant", "")
    longer = Run.create(run.path.parent, dataset, config, *origin)
    state, log_bytes = run.load()
    with store.exclusive(longer.path):
        if longer.checkpoints.steps():
            return longer  # it has begun before
        logged = store.read_bytes(run.metrics_path)[:log_bytes]
        store.write_bytes(longer.metrics_path, logged)
        own = {"run": longer.name}
        for step in run.evaluations.steps():
            store.write_json(longer.evaluations.path(step), run.evaluations.read(step) | own)
        for step in run.probes.steps():
            store.write_json(longer.probes.path(step), run.probes.read(step) | own)
        log = MetricsLog(longer, log_bytes)
        longer.save(state, log)  # last: from now on it is as far
        log.close()
    return longer

"""The only training loop: restore, sample, update many steps, log, evaluate, checkpoint."""

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import equinox as eqx
import jax
import numpy as np

from ertrl import store
from ertrl.config import TrainConfig
from ertrl.data import Dataset, Sampler
from ertrl.errors import Interrupted, TrainingDiverged
from ertrl.evaluation import Agent, evaluate_agent, references, summarise
from ertrl.progress import Meter, ProgressStyle
from ertrl.training.run import MetricsLog, Run
from ertrl.training.update import TrainState, make_chunk


def train_run(run: Run, dataset: Dataset, progress: ProgressStyle = "auto") -> Run:
    """Train a run to its end, from wherever it stands."""
    if dataset.has_simulator:
        references(dataset)  # a scale that cannot be used is better known now than after hours
    with store.exclusive(run.path), _signals() as stop_signal:
        _train(run, dataset, progress, stop_signal)
    return run


def _train(run: Run, dataset: Dataset, progress: ProgressStyle, stop_signal: list[int]) -> None:
    config = run.config
    state, log_bytes = run.load() if run.checkpoint_steps() else (run.fresh(), 0)
    step = int(state.step)
    log = MetricsLog(run, log_bytes)
    if _evaluation_due(config, step) and not _logged_evaluation(run, step):
        _evaluate(run, dataset, state, log)  # it was killed while it evaluated
    sampler = Sampler(
        dataset, config.sampling, run.learner.extra_batches(config.learner), config.seed
    )
    chunk = make_chunk(run.method, run.learner, config)
    size = config.updates_per_call
    label = f"train {run.spec['method']} seed {config.seed}"
    with Meter(label, config.updates, start=step, style=progress) as meter:
        meter.update(step)
        upcoming = sampler.batches(step, size)
        note = ""
        while step < config.updates:
            state, pending = chunk(state, upcoming)
            # The device works on this chunk while the host gathers the next one.
            upcoming = sampler.batches(step + size, size)
            metrics = {name: np.asarray(values) for name, values in pending.items()}
            _check_finite(metrics, step, run)
            step += size
            log.write({"kind": "train", "step": step, **_means(metrics)})
            evaluating, stopping = _evaluation_due(config, step), bool(stop_signal)
            if evaluating or step % config.checkpoint_every == 0 or stopping:
                _check_weights(state, step, run)
                run.save(state, log)
            if evaluating:
                note = _evaluate(run, dataset, state, log)
                stopping = bool(stop_signal)
            meter.update(step, note)
            if stopping and step < config.updates:
                log.close()
                raise Interrupted(
                    f"stopped at update {step} of {config.updates}; the state is saved. "
                    f"Go on with `ertrl train {run.path}`.",
                    stop_signal[0],
                )
    log.close()


def _evaluation_due(config: TrainConfig, step: int) -> bool:
    return step == config.updates or (step > 0 and step % config.evaluate_every == 0)


def _logged_evaluation(run: Run, step: int) -> bool:
    lines = run.metrics()
    return bool(lines) and (lines[-1]["kind"], lines[-1]["step"]) == ("evaluation", step)


def _evaluate(run: Run, dataset: Dataset, state: TrainState, log: MetricsLog) -> str:
    """Evaluate a state that is already saved, and log it; returns what the meter shows."""
    if not dataset.has_simulator:
        return ""  # logs alone: there is nothing to measure a return in
    step = int(state.step)
    agent = Agent(run.method, run.learner, run.config, run.dims, state.method, state.learner)
    result = run.add_evaluation(evaluate_agent(agent, dataset, step=step, run=run.name))
    scores = summarise(result)
    log.write({"kind": "evaluation", "step": step, **scores})
    run.save(state, log)  # once more: the checkpoint vouches for the log up to this line
    return ", ".join(f"{k.split('/')[0]} {v:.0f}" for k, v in scores.items() if "/test-id" in k)


def _means(metrics: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: float(np.mean(values, dtype=np.float64)) for name, values in metrics.items()}


def _check_finite(metrics: dict[str, np.ndarray], step: int, run: Run) -> None:
    bad = [
        (int(np.argmin(np.isfinite(v))), name)
        for name, v in metrics.items()
        if not np.isfinite(v).all()
    ]
    if bad:
        offset, name = min(bad)
        kept = run.checkpoint_steps()
        raise TrainingDiverged(
            f"{run.name}: {name} became {metrics[name][offset]} at update {step + offset + 1}. "
            f"The last good checkpoint is at update {kept[-1] if kept else 0}. A smaller learning "
            "rate or checking the dataset's rewards (`ertrl verify`) usually helps."
        )


def _check_weights(state: TrainState, step: int, run: Run) -> None:
    """Metrics are computed before the optimiser's step: look at what it made, too."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(state, eqx.is_inexact_array)):
        if not np.isfinite(leaf).all():
            name = jax.tree_util.keystr(path)
            raise TrainingDiverged(f"{run.name}: {name} is not finite after update {step}")


@contextmanager
def _signals() -> Generator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying from them; a second one kills as usual."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def note(number, frame):
        received.append(number)
        print("stopping after this call; once more stops at once", file=sys.stderr)
        signal.signal(number, previous[number])

    previous = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

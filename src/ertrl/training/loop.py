"""The only training loop: restore, sample, update many steps, log, evaluate, checkpoint."""

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ertrl import store
from ertrl.data import Dataset, Sampler
from ertrl.errors import Interrupted, RunError, TrainingDiverged
from ertrl.evaluation import evaluate_agent, summarise
from ertrl.progress import Meter, ProgressStyle, say
from ertrl.provenance import device_text, threads
from ertrl.signals import stop_signals
from ertrl.training.beforehand import check_memory, check_own_code
from ertrl.training.config import TrainConfig
from ertrl.training.metrics import MetricsLog
from ertrl.training.records import settle
from ertrl.training.run import Run
from ertrl.training.sinks import SINKS, SinkName, check_sinks
from ertrl.training.update import TrainState, make_chunk, not_finite, run_key
from ertrl.types import TaskBatch

COLLAPSED = 0.01
"""Mean standard deviation of z over tasks below which z hardly tells them apart."""
STILL_YOUNG = 1000
"""Updates in which an encoder may not have spread out yet: it begins near 0."""


def train_run(
    run: Run, dataset: Dataset, progress: ProgressStyle = "auto", sinks: Sequence[SinkName] = ()
) -> Run:
    """Train a run to its end, from wherever it stands."""
    return train_together([run], dataset, progress, sinks)[0]


def train_together(
    runs: Sequence[Run],
    dataset: Dataset,
    progress: ProgressStyle = "auto",
    sinks: Sequence[SinkName] = (),
) -> list[Run]:
    """Train runs that differ in nothing but their seed to their end, in one program.

    With several runs, all seeds take each step at once: what an accelerator likes; on several
    devices each takes its share of them. Every run has its own folder, as if it had been alone, and
    may have started alone.
    """
    check_sinks(sinks)
    say(f"train: on {device_text()}", progress)
    with ExitStack() as stack:
        for run in runs:
            _check_threads(run)
            check_own_code(run.path, run.spec, run.config)
            check_memory(run.config, run.dims, len(runs))
            stack.enter_context(store.exclusive(run.path))
            settle(run)
        stop_signal = stack.enter_context(stop_signals())
        trainees = []
        for run in runs:
            trainees.append(_Trainee(run, dataset, sinks))
            stack.callback(trainees[-1].close)
        trained = any(t.step < t.run.config.updates for t in trainees)
        if not trained and not any(t.caught_up for t in trainees):
            say("train: finished before, opened as it is", progress)
        furthest = max(trainee.step for trainee in trainees)
        for trainee in trainees:  # in step from there on
            _train([trainee], furthest, progress, stop_signal)
        _train(trainees, runs[0].config.updates, progress, stop_signal)
    for run in runs if trained else ():
        _warn_of_collapse(run)
    if stop_signal:  # too late to stop the training, but whoever called it is to stop, too
        told = f"{runs[0].path} is" if len(runs) == 1 else f"all {len(runs)} runs are"
        raise Interrupted(f"stopped; {told} complete. The same command opens it.", stop_signal[0])
    return list(runs)


class _Trainee:
    """A run in training: its state, its batches, its log."""

    def __init__(self, run: Run, dataset: Dataset, sinks: Sequence[SinkName]):
        config = run.config
        self.run, self._dataset = run, dataset
        self.state, log_bytes = run.load() if run.checkpoints.steps() else (run.fresh(), 0)
        self.step = int(self.state.step)
        self._sinks = [SINKS[name](run, self.step) for name in sinks]
        self.log = MetricsLog(run.metrics_path, log_bytes)
        self.note, self._together = "", 1
        self.key = run_key(config.seed)
        self.sampler = Sampler(
            dataset,
            config.drawn,
            config.learner.extra_batches,
            config.seed,
            config.method.window,
        )
        newest = (run.metrics() or [{}])[-1]
        evaluated = (newest.get("kind"), newest.get("step")) == ("evaluation", self.step)
        self.caught_up = _evaluation_due(config, self.step) and not evaluated
        if self.caught_up:
            self.evaluate()  # it was killed while it evaluated

    def advance(
        self, state: TrainState, metrics: dict[str, np.ndarray], batches: TaskBatch, together: int
    ) -> None:
        """Take over what a chunk of updates of these batches made; so many runs took part."""
        config = self.run.config
        self._check_finite(state, metrics, batches)
        self.state, self._together = state, together
        self.step += config.updates_per_call
        means = {name: float(np.mean(v, dtype=np.float64)) for name, v in metrics.items()}
        self._note_down("train", means)
        evaluating = _evaluation_due(config, self.step)
        if evaluating or self.step % config.checkpoint_every == 0:
            self.save()
        if evaluating:
            self.evaluate()

    def _note_down(self, kind: str, values: dict[str, float]) -> None:
        line = {"kind": kind, "step": self.step, **values}
        for log in (self.log, *self._sinks):
            log.write(line)

    def close(self) -> None:
        for log in (self.log, *self._sinks):
            log.close()

    def _check_finite(
        self, state: TrainState, metrics: dict[str, np.ndarray], batches: TaskBatch
    ) -> None:
        """Stop at the first number that is none, and keep the update that made it."""
        # Metrics are computed before the optimiser's step: look at what it made, too.
        if all(np.isfinite(x).all() for x in metrics.values()) and _all_finite(state):
            return
        run, after, bad = self.run, self.state, {}
        chunk = make_chunk(run.config, run.scaling)
        for offset in range(len(batches.task)):
            before, batch = after, jax.tree.map(lambda x, i=offset: x[i : i + 1], batches)
            bad = {name: x[offset] for name, x in metrics.items() if not np.isfinite(x[offset])}
            if not bad:
                after, _ = chunk(before, batch, self.key)  # the same bits as all at once
                bad = dict.fromkeys(not_finite(after), "not finite")
            if bad:
                break
        # Runs in one program may round otherwise than one by one, and then none is to blame.
        name, value = next(iter(bad.items()), ("the state", "not finite"))
        what = f"{name} became {value} at update {self.step + offset + 1}"
        run.keep_divergence(before, jax.tree.map(lambda x: x[0], batch), self.key, what)
        kept = run.checkpoints.steps()
        raise TrainingDiverged(
            f"{run.name}: {what}. The last good checkpoint is at update {kept[-1] if kept else 0}. "
            f"`ertrl replay {run.path}` names the operation that failed. A smaller learning rate "
            "or checking the dataset's rewards (`ertrl verify`) usually helps."
        )

    def save(self) -> None:
        self.run.save(self.state, self.log, self._together)

    def evaluate(self) -> None:
        """Evaluate a state that is already saved, and log it."""
        run, agent = self.run, self.run.agent(self.state)
        result = evaluate_agent(agent, self._dataset, step=self.step, run=run.name)
        scores = summarise(run.add_evaluation(result))
        self._note_down("evaluation", scores)
        self.save()  # once more: it vouches for the log up to this line
        self.note = ", ".join(
            f"{k.split('/')[0]} {v:.3g}" for k, v in scores.items() if "/test-id" in k
        )


def _train(
    trainees: list[_Trainee], until: int, progress: ProgressStyle, stop_signal: list[int]
) -> None:
    """Train runs of one configuration, all at the same step, until they have so many updates."""
    run, step = trainees[0].run, trainees[0].step
    if step >= until:
        return
    size = run.config.updates_per_call
    devices = tuple(jax.devices()[: len(trainees)])
    several = len(trainees) > 1
    chunk = make_chunk(run.config, run.scaling, several_runs=several, devices=devices)
    stack, unstack = _stacking(len(trainees), len(devices))
    key = stack([t.key for t in trainees])
    state = stack([t.state for t in trainees])
    seeds = ", ".join(str(t.run.config.seed) for t in trainees)

    def gather(first: int) -> TaskBatch:
        return stack([t.sampler.batches(first, size) for t in trainees])

    label = f"train {run.spec['method']} seed {seeds}"
    with (
        Meter(label, until, start=step, style=progress) as meter,
        ThreadPoolExecutor(1, "sampler") as beside,
    ):
        meter.update(step, "compiling")
        upcoming = beside.submit(gather, step)
        while step < until:
            batches = upcoming.result()
            if step + size < until:  # gathered while this chunk is computed
                upcoming = beside.submit(gather, step + size)
            state, pending = chunk(state, batches, key)
            metrics = unstack({name: np.asarray(values) for name, values in pending.items()})
            for trainee, *made in zip(
                trainees, unstack(state), metrics, unstack(batches), strict=True
            ):
                trainee.advance(*made, together=len(trainees))
            step += size
            meter.update(step, trainees[0].note)
            if stop_signal and step < run.config.updates:
                for trainee in trainees:
                    trainee.save()
                raise Interrupted(
                    f"stopped at update {step} of {run.config.updates}; the state is saved. "
                    f"Go on with the same command, or with `ertrl train {run.path}`.",
                    stop_signal[0],
                )


def _stacking(count: int, devices: int):
    """How to put trees of several runs side by side, and to take them apart; nothing for one.

    All devices get equally many: where runs do not suffice, the first one is there several times.
    """
    if count == 1:
        return (lambda trees: trees[0]), (lambda tree: [tree])

    def stack(trees):
        trees = [*trees, *[trees[0]] * (-count % devices)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)

    def one(x, i: int):
        """Of the device that has it: to ask all of them would make them wait for each other."""
        parts = x.addressable_shards if isinstance(x, jax.Array) else []
        if len(parts) < 2:
            return x[i]
        each = len(x) // len(parts)
        return parts[i // each].data[i % each]

    def unstack(tree):
        return [jax.tree.map(partial(one, i=i), tree) for i in range(count)]

    return stack, unstack


def _evaluation_due(config: TrainConfig, step: int) -> bool:
    return step == config.updates or (step > 0 and step % config.evaluate_every == 0)


def _check_threads(run: Run) -> None:
    """What changes bits is part of what a run is."""
    begun, now = run.spec.get("threads", 1), threads()
    if jax.default_backend() == "cpu" and begun != now:
        raise RunError(
            f"{run.name} is a run of {begun} CPU thread{'s' * (begun > 1)}, and this process has "
            f"{now}: it would end with other bits. Give --threads {begun}, or in Python set the "
            f"environment variable NPROC={begun} before JAX starts."
        )


def _warn_of_collapse(run: Run) -> None:
    """A z that is the same for all tasks cannot tell them apart, however low the losses are."""
    measured = [m["z_spread"] for m in run.metrics() if m["kind"] == "train" and "z_spread" in m]
    if not measured or (spread := measured[-1]) >= COLLAPSED:
        return
    if spread < measured[0] or run.config.updates >= STILL_YOUNG:
        warnings.warn(
            f"{run.name}: z hardly differs between tasks at the end (z_spread {spread:.2g} in "
            "metrics.jsonl): the encoder has collapsed, or never learned",
            stacklevel=2,
        )


@eqx.filter_jit
def _all_finite(state: TrainState) -> jax.Array:
    arrays = jax.tree.leaves(eqx.filter(state, eqx.is_inexact_array))
    return jnp.all(jnp.stack([jnp.isfinite(x).all() for x in arrays]))

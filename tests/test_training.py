"""Runs: resumed equals uninterrupted, stopped cleanly, stopped by NaN with a reason."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conftest import tiny_config
from ertrl import api
from ertrl.data import Sampler
from ertrl.errors import ConfigError, CorruptFileError, Interrupted, RunError, TrainingDiverged
from ertrl.learners.td3bc import Td3bc
from ertrl.training import Run, open_runs, train_run
from ertrl.training.update import init, make_chunk, run_key
from toys import assert_trees_equal, write_dataset

ENVIRONMENT = {**os.environ, "NPROC": "1"}


def digest(run: Run) -> str:
    """What the final weights and the log amount to."""
    final = run.path / "checkpoints" / f"{run.config.updates:08d}.json"
    return json.loads(final.read_text())["weights_sha256"], run.metrics(), run.evaluations.read()


def start(run: Run) -> subprocess.Popen:
    command = [sys.executable, "-m", "ertrl", "train", str(run.path), "--progress", "json"]
    return subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def long_config():
    return tiny_config(updates=400, evaluate_every=200, checkpoint_every=20)


@pytest.fixture(scope="module")
def uninterrupted(tiny_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("whole")
    run = Run.create(root, tiny_dataset, long_config(), "test")
    return digest(train_run(run, tiny_dataset, "none"))


def wait_for_step(process: subprocess.Popen, step: int) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and json.loads(line).get("done", -1) >= step:
            return


def test_killed_and_resumed_is_bit_identical(tiny_dataset, tmp_path, uninterrupted):
    run = Run.create(tmp_path, tiny_dataset, long_config(), "test")
    for step, delay in ((0, 0.0), (250, 0.011)):
        with start(run) as process:
            wait_for_step(process, step)
            if step == 0:  # a second process is refused meanwhile
                with pytest.raises(RunError, match=f"in use by process {process.pid}"):
                    train_run(run, tiny_dataset, "none")
            time.sleep(delay)
            process.kill()
    assert 0 < run.checkpoints.newest() < 400
    assert digest(train_run(run, tiny_dataset, "none")) == uninterrupted


def test_a_run_killed_while_it_evaluates_is_saved_and_evaluates_on_resume(
    tiny_dataset, tmp_path, uninterrupted, monkeypatch
):
    from ertrl.training import loop

    run = Run.create(tmp_path, tiny_dataset, long_config(), "test")

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "evaluate_agent", killed)
        with pytest.raises(KeyboardInterrupt):
            train_run(run, tiny_dataset, "none")
    assert run.checkpoints.newest() == run.config.evaluate_every == 200
    assert not run.evaluations.steps()
    train_run(run, tiny_dataset, "none")
    assert run.evaluations.steps() == [200, 400]
    assert digest(run) == uninterrupted


def test_sigterm_saves_and_exits_cleanly(tiny_dataset, tmp_path, uninterrupted):
    run = Run.create(tmp_path, tiny_dataset, long_config(), "test")
    with start(run) as process:
        wait_for_step(process, 60)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 143
    assert "the state is saved" in errors
    assert "Traceback" not in errors
    stopped_at = run.checkpoints.newest()
    assert 60 <= stopped_at < 400
    train_run(run, tiny_dataset, "none")
    assert digest(run) == uninterrupted


@pytest.mark.parametrize("killed_before", [False, True])
def test_a_stop_in_the_last_evaluation_stops_the_caller_and_the_run_is_complete(
    tiny_dataset, tmp_path, monkeypatch, killed_before
):
    from ertrl.training import loop

    run = Run.create(tmp_path, tiny_dataset, tiny_config(), "test")
    real = loop.evaluate_agent

    def killed(*_, **__):
        raise KeyboardInterrupt

    def stopped(*arguments, **options):
        signal.raise_signal(signal.SIGTERM)
        return real(*arguments, **options)

    if killed_before:  # then the evaluation is all that is left to do
        monkeypatch.setattr(loop, "evaluate_agent", killed)
        with pytest.raises(KeyboardInterrupt):
            train_run(run, tiny_dataset, "none")
    monkeypatch.setattr(loop, "evaluate_agent", stopped)
    with pytest.raises(Interrupted, match=f"{run.path} is complete") as told:
        train_run(run, tiny_dataset, "none")
    assert told.value.exit_code == 143
    assert run.evaluations.steps() == [40]
    assert train_run(run, tiny_dataset, "none") is run, "nothing is left to do"


@pytest.mark.parametrize("learner", ["td3bc", "brac"])
def test_results_do_not_depend_on_updates_per_call(tiny_dataset, learner):
    config, key = tiny_config("focal", learner), run_key(0)
    sampler = Sampler(tiny_dataset, config.sampling, config.learner.extra_batches, seed=0)
    chunk, start = make_chunk(config), init(config, tiny_dataset.dims)
    once, _ = chunk(start, sampler.batches(0, 8), key)
    halfway, _ = chunk(start, sampler.batches(0, 4), key)
    twice, _ = chunk(halfway, sampler.batches(4, 4), key)
    assert_trees_equal(once, twice)


def test_the_same_configuration_is_the_same_run(tiny_dataset, tiny_run):
    again = api.start(tiny_config(), tiny_dataset, out=tiny_run.path.parent, progress="none")
    assert again.path == tiny_run.path
    other = Run.create(tiny_run.path.parent, tiny_dataset, tiny_config(seed=1), "test")
    assert other.path != tiny_run.path


def test_nan_stops_the_run_with_step_and_loss_named(tiny_dataset, tmp_path, monkeypatch):
    learn = Td3bc.update

    def poisoned(learner, state, *args):
        step = learn(learner, state, *args)
        bad = jnp.where(state.updates == 26, jnp.nan, 1.0)
        metrics = {**step.metrics, "critic_loss": step.metrics["critic_loss"] * bad}
        return step._replace(metrics=metrics)

    run = Run.create(tmp_path, tiny_dataset, tiny_config("focal"), "test")
    monkeypatch.setattr(Td3bc, "update", poisoned)
    with pytest.raises(TrainingDiverged, match=r"critic_loss became nan at update 27.*update 20"):
        train_run(run, tiny_dataset, "none")
    assert run.checkpoints.steps() == [20], "what was good is kept, nothing bad is added"


def test_nan_in_the_data_stops_the_run(tiny_dataset, tmp_path):
    class Poisoned:
        def __getattr__(self, name):
            return getattr(tiny_dataset, name)

        def task(self, number):
            data = tiny_dataset.task(number)

            class Bad:
                steps = data.steps

                def transitions(self, which, **how):
                    rows = data.transitions(which)
                    return rows._replace(reward=np.full_like(rows.reward, np.nan))

            return Bad()

    run = Run.create(tmp_path, tiny_dataset, tiny_config("focal"), "test")
    with pytest.raises(TrainingDiverged, match="at update 1"):
        train_run(run, Poisoned(), "none")


def test_a_run_knows_its_dataset(tiny_run, tiny_dataset, tmp_path):
    other = write_dataset(tmp_path / "toy")
    with pytest.raises(RunError, match="is not the dataset"):
        tiny_run.open_dataset(other.path)
    assert tiny_run.open_dataset().fingerprint == tiny_dataset.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": 45}, "multiple of updates_per_call"),
        ({"updates": 0}, "updates must be at least 1"),
        ({"evaluate_every": 7}, "evaluate_every"),
    ],
)
def test_impossible_schedules_are_refused(tiny_dataset, tmp_path, changes, message):
    config = tiny_config(**changes)
    with pytest.raises(ConfigError, match=message):
        Run.create(tmp_path, tiny_dataset, config, "test")


def test_the_step_size_falls_at_the_end_and_only_there(tiny_dataset):
    constant, falling = (tiny_config("focal", updates=10, decay=decay) for decay in (0.0, 0.5))
    sampler = Sampler(tiny_dataset, constant.sampling, 0, seed=0)
    states = {}
    for config in (constant, falling):
        chunk, start = make_chunk(config), init(config, tiny_dataset.dims)
        half, _ = chunk(start, sampler.batches(0, 5), run_key(0))
        whole, _ = chunk(half, sampler.batches(5, 5), run_key(0))
        states[config.decay] = half, whole
    assert_trees_equal(states[0.0][0], states[0.5][0])  # it has not begun to fall

    def moved(decay: float) -> float:
        half, whole = (jax.tree.leaves(state.learner.critic.net) for state in states[decay])
        return sum(float(jnp.abs(a - b).sum()) for a, b in zip(half, whole, strict=True))

    assert 0 < moved(0.5) < 0.8 * moved(0.0)


def test_a_step_size_that_has_fallen_does_not_rise_again(tiny_dataset, tmp_path):
    run = api.start(tiny_config(decay=1.0), tiny_dataset, out=tmp_path, progress="none")
    with pytest.raises(ConfigError, match=r"falls to zero over its 40 updates.*--updates 80"):
        api.resume(run, updates=80, progress="none")


def test_further_updates_are_whole_calls(tiny_run):
    with pytest.raises(ConfigError, match=r"10 updates at once.*got 45: give --updates 50$"):
        api.resume(tiny_run, updates=45, progress="none")


def test_evaluations_are_reused_and_reproducible(tiny_run):
    first = tiny_run.evaluations.read()
    assert api.evaluate(tiny_run) == first
    tiny_run.evaluations.path(40).unlink()
    again = api.evaluate(tiny_run, ("offline", "online", "non-prior"))
    assert again == first


def test_agent_adapts_and_acts(tiny_run, tiny_dataset):
    agent = api.load_agent(tiny_run)
    rows = tiny_dataset.task(22).transitions(np.arange(30))
    adapted = agent.adapt(rows)
    action = adapted.act(np.zeros(2))
    assert action.shape == (2,)
    assert (np.abs(action) <= 1).all()
    order = np.random.default_rng(0).permutation(30)
    shuffled = agent.adapt({k: v[order] for k, v in rows._asdict().items()})
    np.testing.assert_allclose(shuffled.z, adapted.z, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("reward"), "missing: reward"),
        (lambda c: c.update(reward=c["reward"][:3]), "equally many rows"),
        (lambda c: c.update(reward=np.full(30, np.nan)), "NaN"),
        (lambda c: c.update(action=np.zeros((30, 3))), r"action.*2.*3"),
    ],
)
def test_bad_contexts_are_explained(tiny_run, tiny_dataset, change, message):
    from ertrl.errors import DataError

    context = tiny_dataset.task(22).transitions(np.arange(30))._asdict()
    change(context)
    with pytest.raises(DataError, match=message):
        api.load_agent(tiny_run).adapt(context)


@pytest.mark.parametrize("at", [11, 20])
def test_weights_that_are_not_finite_are_never_saved(tiny_dataset, tmp_path, monkeypatch, at):
    """The update that made them is named, not the next one, whose losses show it first."""
    learn = Td3bc.update

    def poisoned(learner, state, *args):
        step = learn(learner, state, *args)
        bad = jnp.where(state.updates == at - 1, jnp.nan, 0.0)
        spoilt = jax.tree.map(lambda w: w + bad, step.state.target_actor)
        return step._replace(state=step.state._replace(target_actor=spoilt))

    run = Run.create(tmp_path, tiny_dataset, tiny_config("focal"), "test")
    monkeypatch.setattr(Td3bc, "update", poisoned)
    said = rf"target_actor.* became not finite at update {at}\."
    with pytest.raises(TrainingDiverged, match=said):
        train_run(run, tiny_dataset, "none")
    assert run.checkpoints.steps() == []


@pytest.mark.parametrize("damage", [lambda p: p.unlink(), lambda p: p.write_text("x{")])
def test_a_damaged_log_is_noticed(tiny_run, tmp_path, damage):
    copy = Run(shutil.copytree(tiny_run.path, tmp_path / "copy"))
    damage(copy.metrics_path)
    with pytest.raises(CorruptFileError, match=r"metrics\.jsonl"):
        api.verify(copy.path)
    with pytest.raises(CorruptFileError, match=r"metrics\.jsonl"):
        api.load_agent(copy)


def test_a_renamed_run_and_foreign_files_do_no_harm(tiny_run, tmp_path):
    copy = Run(shutil.copytree(tiny_run.path, tmp_path / "best"))
    (copy.path / "checkpoints" / "00000020 copy.json").write_text("{}")
    assert copy.name == tiny_run.name
    assert copy.checkpoints.steps() == tiny_run.checkpoints.steps()
    assert api.evaluate(copy) == tiny_run.evaluations.read()


def test_a_method_that_cannot_start_leaves_no_run(tiny_dataset, tmp_path):
    settings = {"method": {"entropy": "per-state", "draws_per_state": 2}}
    with pytest.raises(ConfigError, match="draws_per_state"):
        api.train("er-trl", tiny_dataset, settings=settings, out=tmp_path)
    with pytest.raises(ConfigError, match="unknown sink 'tensorbord'"):
        api.train("er-trl", tiny_dataset, sinks=["tensorbord"], out=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["seed", "updates"])
def test_seed_and_updates_may_be_settings_but_not_twice(tiny_dataset, monkeypatch, name):
    monkeypatch.setattr(api, "start", lambda config, *_, **__: getattr(config, name))
    train = partial(api.train, "focal", tiny_dataset)
    assert (train(**{name: 300}), train(settings={name: 500})) == (300, 500)
    assert train(**{name: 500}, settings={name: 500}) == 500
    with pytest.raises(ConfigError, match=f"{name} is 300 and settings say 500"):
        train(**{name: 300}, settings={name: 500})


def test_one_protocol_and_one_run_need_no_list(tiny_run, tmp_path):
    assert "offline" in api.evaluate(tiny_run, "offline")["protocols"]
    for one in (tiny_run, tiny_run.path, str(tiny_run.path)):
        opened, left_out = open_runs(one)
        assert ([run.name for run in opened], left_out) == ([tiny_run.name], [])


def test_a_run_trained_further_is_one_that_was_as_long_from_the_start(
    tiny_run, tiny_dataset, tmp_path
):
    once = api.start(tiny_config(updates=80), tiny_dataset, out=tmp_path, progress="none")
    short = tmp_path / "short" / tiny_run.path.name
    shutil.copytree(tiny_run.path, short)
    longer = api.resume(short, updates=80, progress="none")
    assert (longer.name, longer.path.parent) == (once.name, short.parent)
    for one, other in zip(
        jax.tree.leaves(once.load()[0]), jax.tree.leaves(longer.load()[0]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert longer.metrics() == once.metrics()
    assert longer.evaluations.steps() == once.evaluations.steps() == [40, 80]
    for step in (40, 80):
        one, other = longer.evaluations.read(step), once.evaluations.read(step)
        assert one["protocols"] == other["protocols"]
    assert api.resume(short, updates=80, progress="none").path == longer.path
    assert Run(short).checkpoints.newest() == 40, "the short one stays as it is"
    with pytest.raises(ConfigError, match=r"has 40 updates.*not for 20"):
        api.resume(short, updates=20, progress="none")

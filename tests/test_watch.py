"""Following training from outside."""

import json
import os
import subprocess
import sys
import time

import pytest

from conftest import tiny_config
from ertrl.cli import main
from ertrl.launch.watch import look
from ertrl.training import Run
from fake_runs import fake_run


def test_a_finished_run(tiny_run):
    seen = look(tiny_run)
    assert (seen.status, seen.step, seen.updates, seen.seconds_left) == ("finished", 40, 40, None)
    assert set(seen.scores) >= {"offline/test-id", "online/test-id", "non-prior/test-id"}


def test_a_run_is_seen_running_and_then_stopped(tiny_dataset, tmp_path):
    config = tiny_config(updates=200_000, evaluate_every=200_000, checkpoint_every=20)
    run = Run.create(tmp_path, tiny_dataset, "er-trl", "td3bc", config, "test")
    command = [sys.executable, "-m", "ertrl", "train", str(run.path), "--progress", "none"]
    with subprocess.Popen(
        command, env={**os.environ, "NPROC": "1"}, stderr=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while (seen := look(run)).seconds_left is None and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            process.kill()
    assert seen.status == "running"
    assert 0 < seen.step < 200_000
    assert seen.seconds_left > 1
    later = look(run)
    assert (later.status, later.seconds_left) == ("stopped", None)
    assert later.step >= seen.step


def test_nothing_was_written_yet(tmp_path):
    seen = look(Run(fake_run(tmp_path, steps=())))
    assert (seen.status, seen.step, seen.scores) == ("stopped", 0, {})


def test_once_on_the_command_line(tiny_run, capsys):
    assert main(["watch", str(tiny_run.path.parent), "--once"]) == 0
    text = capsys.readouterr().out
    assert "finished" in text
    assert "100%" in text
    assert main(["watch", str(tiny_run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["step"] == 40


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["nowhere"], "is not a run"), (["x", "--every", "0"], "--every must lie between")],
)
def test_mistakes_are_explained(words, reason, capsys):
    assert main(["watch", *words]) > 0
    assert reason in capsys.readouterr().err


def test_a_damaged_log_is_an_error(tmp_path, capsys):
    run = fake_run(tmp_path)
    (run / "metrics.jsonl").write_text("{oops\n")
    assert main(["watch", str(run)]) == 1
    assert "holds a line that is not JSON" in capsys.readouterr().err

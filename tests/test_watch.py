"""Following training from outside."""

import json
import os

import pytest
from rich.console import Console

from ertrl import store
from ertrl.cli import main
from ertrl.launch.watch import Snapshot, look, table
from ertrl.training import Run
from fake_runs import fake_run


def test_a_finished_run(tiny_run):
    seen = look(tiny_run)
    assert (seen.status, seen.step, seen.updates, seen.seconds_left) == ("finished", 40, 40, None)
    assert set(seen.scores) >= {"offline/test-id", "online/test-id", "non-prior/test-id"}


def test_a_run_is_seen_running_and_then_stopped(tmp_path):
    run = Run(fake_run(tmp_path, steps=()))
    run.metrics_path.write_text('{"kind": "train", "step": 500}\n')
    checkpoint = run.checkpoints.path(100)
    store.write_bytes(checkpoint.with_suffix(".safetensors"), b"")
    seals = {"weights_sha256": store.sha256(b""), "metrics_sha256": store.sha256(b"")}
    about = {"kind": "ertrl-checkpoint", "run": run.name, "step": 100, "metrics_bytes": 0}
    store.write_json(checkpoint, about | seals)
    written = run.metrics_path.stat().st_mtime
    os.utime(checkpoint, (written - 40, written - 40))
    with store.exclusive(run.path):
        seen = look(run)
    assert (seen.status, seen.step) == ("running", 500)
    # 400 updates in 40 s, and 1500 are left.
    assert seen.seconds_left == pytest.approx(150, rel=1e-3)
    assert look(run).status == "stopped"
    (run.path / ".lock").write_text(f"99999999 1 {store.HOST}")  # killed: its number is still there
    later = look(run)
    assert (later.status, later.step, later.seconds_left) == ("stopped", 500, None)


def test_a_run_without_its_last_evaluation_is_not_finished(tmp_path):
    run = Run(fake_run(tmp_path, steps=()))
    trained = '{"kind": "evaluation", "step": 1000}\n{"kind": "train", "step": 2000}\n'
    run.metrics_path.write_text(trained)
    assert look(run).status == "stopped"
    run.metrics_path.write_text(trained + '{"kind": "evaluation", "step": 2000}\n')
    assert look(run).status == "finished", "although all that was measured diverged"


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


def test_an_odd_run_does_not_hide_the_others(tiny_run, tmp_path, capsys):
    (tmp_path / "good").symlink_to(tiny_run.path)
    damaged = fake_run(tmp_path)
    (damaged / "metrics.jsonl").write_text("{oops\n")
    assert main(["watch", str(tmp_path), "--once"]) == 0
    text = capsys.readouterr().out
    assert "finished" in text
    assert "unreadable" in text
    assert "holds a line that is not JSON" in " ".join(text.split())
    assert main(["watch", str(tmp_path), "--json"]) == 0
    seen = {run["status"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert seen["finished"]["step"] == 40
    assert "metrics.jsonl" in seen["unreadable"]["problem"]


def drawn(name, scores, left=None, count=1):
    """The lines of a table of so many runs, on a narrow terminal."""
    runs = [Snapshot(f"{name}-{i:010}", "running", 50, 100, left, scores) for i in range(count)]
    console = Console(width=80)
    with console.capture() as got:
        console.print(table(runs))
    return got.get()


def test_names_stay_whole_on_a_narrow_terminal_and_only_protocols_are_columns():
    returns = dict.fromkeys(("offline/test-id", "online/test-id", "non-prior/test-id"), -100.0)
    assert "cheetah-vel-er-trl-td3bc-s10 " in drawn("cheetah-vel-er-trl-td3bc-s10", returns, 600.0)
    alike = drawn("point-robot-er-trl-td3bc-s0", returns, count=2)
    assert "point-robot-er-trl-td3bc-s0-0000000001 " in alike
    assert alike.count("-100.0") == 6
    logs = drawn("mine-focal-td3bc-s0", {"value of policy/test-id": 0.1, "reward/test-id": 0.2})
    assert "mine-focal-td3bc-s0 " in logs
    assert "normalised" not in logs
    assert "0.2" not in logs
    assert "no simulator: `ertrl evaluate`" in logs

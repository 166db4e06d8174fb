"""Jobs as processes: a failure is told, a stop reaches the children (test_seeds.py trains)."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from conftest import tiny_config
from ertrl.errors import Interrupted, RunError
from ertrl.launch import Job, run_jobs, schedule
from ertrl.progress import rich_bars
from ertrl.training import Run


def test_a_failing_job_is_named_with_its_reason(tmp_path):
    broken = Job("broken", ("train", "er-trl", "--data", "nowhere"), tmp_path / "b.log")
    fine = Job("fine", ("list",), tmp_path / "fine.log", silent=True)
    with pytest.raises(RunError, match=r"broken failed(.|\n)*nowhere is not a dataset") as raised:
        run_jobs([broken, fine])
    assert "fine" not in str(raised.value)
    assert (tmp_path / "fine.log").exists(), "one failure does not keep the others from running"


def test_a_job_that_cannot_even_start_is_an_error(tmp_path):
    (tmp_path / "afile").write_text("")
    with pytest.raises(RunError, match=r"stuck failed.*afile"):
        run_jobs([Job("stuck", ("list",), tmp_path / "afile" / "x.log")])


def test_sigterm_stops_the_children_and_saves(tiny_dataset, tmp_path):
    config = tiny_config("focal", updates=100_000, evaluate_every=100_000, checkpoint_every=50_000)
    run = Run.create(tmp_path, tiny_dataset, config, "test")
    log = tmp_path / "job.log"

    def stop_me_when_it_trains():
        while len(run.metrics()) < 3:  # by then its first call has been heard of
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_me_when_it_trains, daemon=True).start()
    with pytest.raises(Interrupted) as stopped:
        run_jobs([Job("j", ("train", str(run.path)), log)])
    assert stopped.value.exit_code == 143
    assert "the state is saved" in log.read_text()
    assert 0 < run.checkpoints.newest() < 100_000
    assert run.metrics()[-1]["step"] == run.checkpoints.newest()


def test_a_process_that_has_done_nothing_yet_is_stopped_at_once(tiny_dataset, tmp_path):
    """Starting and compiling take a minute at the paper's sizes, and there is nothing to save."""
    config = tiny_config("er-trl", updates=100_000, evaluate_every=100_000)
    run = Run.create(tmp_path, tiny_dataset, config, "test")
    begun = []

    def stop_me_when_it_starts():
        while not (tmp_path / "job.log").exists():
            time.sleep(0.01)
        begun.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=stop_me_when_it_starts, daemon=True).start()
    with pytest.raises(Interrupted) as stopped:
        run_jobs([Job("j", ("train", str(run.path)), tmp_path / "job.log")])
    assert stopped.value.exit_code == 130
    assert time.monotonic() - begun[0] < 1.5
    assert not run.checkpoints.steps()


def test_a_line_of_progress_is_said_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(schedule, "SECONDS_BETWEEN_LINES", 0.0)
    run_jobs([Job("slow", ("list",), tmp_path / "slow.log", silent=True)])
    assert capsys.readouterr().err.count("0 of 1 done\n") == 1


def works(*names: str) -> list[schedule.Work]:
    return [schedule.Work(Job(name, (), Path("log"))) for name in names]


def test_bars_of_many_jobs_fit_on_a_screen():
    for count in (4, 30):
        some = works(*(f"job {i}" for i in range(count)))
        some[0].done, some[0].total = 7, 7
        some[1].done, some[1].total, some[1].note = 3, 7, "half way"
        bars = rich_bars(Console())
        schedule._move(bars, some)
        *own, every = bars.tasks
        shown = [bar.description for bar in own if bar.visible]
        assert shown == (["job 1"] if count == 30 else [work.job.label for work in some])
        assert every.completed == 1


def test_the_time_left_is_judged_by_work_that_was_done_now():
    a, b, c, d = works("a", "b", "c", "d")
    a.done, b.done, c.done, c.total = 1, 1, 3, 4
    a.before, b.before, c.before = 1.0, 0.75, 0.5
    # Half a job in 10 s, and one and a quarter are left.
    line = schedule._line([a, b, c, d], elapsed=10.0)
    assert line == "2 of 4 done, c 75%, about 25 s left"
    b.before, c.before = 1.0, 0.75
    line = schedule._line([a, b, c, d], elapsed=10.0)
    assert "left" not in line, "nothing to judge by"

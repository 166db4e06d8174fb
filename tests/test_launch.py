"""Jobs as processes: all of them run, a failure is told, a stop reaches the children."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from conftest import tiny_config
from ertrl.errors import RunError
from ertrl.launch import Job, processes, run_jobs
from ertrl.progress import rich_bars
from ertrl.training import Run


def job(run: Run, tmp_path) -> Job:
    return Job(run.name, ("train", str(run.path)), tmp_path / "logs" / f"{run.name}.log")


def test_jobs_run_to_their_end(tiny_dataset, tmp_path):
    runs = [
        Run.create(tmp_path, tiny_dataset, "focal", "td3bc", tiny_config("focal", seed=s), "test")
        for s in (0, 1)
    ]
    run_jobs([job(run, tmp_path) for run in runs], workers=2)
    assert [run.latest_checkpoint() for run in runs] == [40, 40]


def test_a_failing_job_is_named_with_its_reason(tmp_path):
    broken = Job("broken", ("train", "er-trl", "--data", "nowhere"), tmp_path / "b.log")
    with pytest.raises(RunError, match=r"broken failed(.|\n)*nowhere is not a dataset"):
        run_jobs([broken])


def test_a_job_that_cannot_even_start_is_an_error(tmp_path):
    (tmp_path / "afile").write_text("")
    with pytest.raises(RunError, match=r"stuck failed.*afile"):
        run_jobs([Job("stuck", ("list",), tmp_path / "afile" / "x.log")])


def test_sigterm_stops_the_children_and_saves(tiny_dataset, tmp_path):
    config = tiny_config("focal", updates=100_000, evaluate_every=100_000, checkpoint_every=50_000)
    run = Run.create(tmp_path, tiny_dataset, "focal", "td3bc", config, "test")
    log = tmp_path / "job.log"
    code = (
        "import sys; from pathlib import Path; from ertrl.launch import Job, run_jobs\n"
        "from ertrl.errors import Interrupted\n"
        "try: run_jobs([Job('j', ('train', sys.argv[1]), Path(sys.argv[2]))])\n"
        "except Interrupted as stop: sys.exit(stop.exit_code)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(run.path), str(log)], env={**os.environ, "NPROC": "1"}
    )
    metrics = run.path / "metrics.jsonl"
    while not metrics.exists():
        assert parent.poll() is None
        os.sched_yield()
    parent.send_signal(signal.SIGTERM)
    assert parent.wait() == 143
    assert "the state is saved" in log.read_text()
    assert 0 < run.latest_checkpoint() < 100_000
    assert json.loads(metrics.read_text().splitlines()[-1])["step"] == run.latest_checkpoint()


def test_bars_of_many_jobs_fit_on_a_screen():
    jobs = [Job(f"job {i}", (), Path("log")) for i in range(30)]
    for few in (jobs[:4], jobs):
        state = processes._State(few)
        state.progress["job 0"] = (7, 7, "done")
        state.progress["job 1"] = (3, 7, "half way")
        bars = rich_bars(Console())
        ids = {
            name: bars.add_task(name, total=1, note="") for name in (*state.progress, processes.ALL)
        }
        processes._move(bars, ids, state)
        shown = [
            task.description
            for task in bars.tasks
            if task.visible and task.id != ids[processes.ALL]
        ]
        assert shown == (["job 1"] if few is jobs else [job.label for job in few])
        assert bars.tasks[ids[processes.ALL]].completed == 1


def test_the_time_left_is_judged_by_work_that_was_done_now(capsys):
    state = processes._State([Job(name, (), Path("log")) for name in "abcd"])
    state.progress |= {"a": (9, 9, ""), "b": (9, 9, ""), "c": (3, 4, "")}
    state.before = {"a": 1.0, "b": 0.75, "c": 0.5}
    # Half a job in 10 s, and one and a quarter are left.
    processes._print_line(state, Console(stderr=True), elapsed=10.0)
    assert "2 of 4 done, c 75%, about 25 s left" in capsys.readouterr().err
    state.before = {"a": 1.0, "b": 1.0, "c": 0.75}
    processes._print_line(state, Console(stderr=True), elapsed=10.0)
    assert "left" not in capsys.readouterr().err, "nothing to judge by"

"""Grids of jobs: planned by what they are made from, done once, gone on with after anything."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from fsspec.implementations.local import LocalFileSystem

from conftest import TINY_COLLECT
from ertrl import store
from ertrl.cli import main
from ertrl.config import to_json
from ertrl.envs import GROUPS
from ertrl.errors import (
    ConfigError,
    CorruptFileError,
    MissingExtra,
    SimulationError,
    TrainingDiverged,
)
from ertrl.evaluation import PAPER_PROTOCOLS
from ertrl.launch import estimates
from ertrl.launch import plan as planning
from ertrl.launch.estimates import describe_plan, longest_chain
from ertrl.launch.jobs import PERMANENT, Job, JobFailed
from ertrl.launch.place import Address, place_of, record_of, records
from ertrl.launch.plan import Cell, Contender, Data, Grid, cells, parse_data, words_of
from ertrl.launch.reproduce import coverage, lacking_cells, paper_grid, plan, reproduce
from ertrl.launch.schedule import run_graph
from ertrl.methods import methods
from ertrl.signals import FOLLOW
from ertrl.training import Run

COLLECT = to_json(TINY_COLLECT)
COSTS = "ertrl.launch.reproduce.with_costs"


def train_settings(**changes):
    return {
        "updates": 20,
        "updates_per_call": 10,
        "evaluate_every": 20,
        "checkpoint_every": 10,
        "sampling": {"meta_batch": 4, "batch_size": 8, "context_size": 6},
        "method": {"encoder": {"hidden": [16, 16]}},
        "learner": {"hidden": [16, 16]},
        "evaluation": {"repeats": 1, "episodes": 3},
        **changes,
    }


def small_grid(methods=("focal",), seeds=(0,), probe_transitions=0, **changes):
    settings = train_settings(evaluate_every=changes.get("updates", 20), **changes)
    return paper_grid(
        ["point-robot"],
        methods,
        seeds,
        probe_transitions=probe_transitions,
        collect_settings=COLLECT,
        train_settings=settings,
    )


@pytest.fixture(autouse=True)
def free_estimates(monkeypatch):
    """Measuring takes seconds; one test does."""
    if "measured" not in os.environ.get("PYTEST_CURRENT_TEST", ""):
        monkeypatch.setattr(COSTS, lambda grid, place: grid.jobs())


def free(estimator, what, measure, *parts):
    """In place of a measurement."""
    return dict.fromkeys(parts, 1.0) or 1.0


# --- plan ---


def test_jobs_are_named_by_what_they_are_made_from():
    names = {job.name for job in small_grid(("focal", "er-trl"), (0, 1)).jobs()}
    assert len(names) == 5
    assert names < {job.name for job in small_grid(("focal", "er-trl"), (0, 1, 2)).jobs()}
    assert names < {job.name for job in small_grid(("focal", "er-trl", "csro"), (0, 1)).jobs()}
    longer = {job.name for job in small_grid(("focal", "er-trl"), (0, 1), updates=40).jobs()}
    assert len(names & longer) == 1, "only the data are the same"
    grid = small_grid()
    other = replace(grid, collect_settings={**COLLECT, "seed": 8})
    assert not {j.name for j in grid.jobs()} & {j.name for j in other.jobs()}


def test_the_whole_paper_is_the_default():
    grid = paper_grid()
    assert len({cell.data.family for cell in grid.cells}) == 9
    assert len(grid.cells) == 9 * 6 * 5
    assert len(grid.jobs()) == 9 + 2 * 9 * 6 * 5


def test_all_methods_is_a_word():
    contenders = {cell.contender.method for cell in paper_grid(["point-robot"], ["all"], [0]).cells}
    assert contenders == set(methods())
    more = paper_grid(["point-robot"], ["all", "focal+brac"], [0])
    assert len(more.cells) == len(methods()) + 1


def test_settings_are_put_together_once_however_many_cells_ask(monkeypatch, tmp_path):
    """Planning the whole paper takes a moment, and a seed adds next to nothing."""
    asked = Counter()

    def counted(name, function):
        return lambda *args, **kwargs: asked.update([name]) or function(*args, **kwargs)

    for name in ("make_family", "collect_config", "train_config"):
        known = getattr(planning, name)
        monkeypatch.setattr(planning, name, counted(name, known))
    monkeypatch.setattr(estimates.Estimator, "_measured", free)
    grid = paper_grid()
    estimates.with_costs(grid, place_of(tmp_path))
    # A family is also made where its name is read.
    assert asked == {"make_family": 9 + 9, "collect_config": 9, "train_config": 9 * 6}


def test_a_job_waits_for_its_data_and_references_come_first():
    plain = Data("point-robot", settings=COLLECT)
    apart = Data("point-robot", settings={**COLLECT, "policy": "independent"}, references=plain)
    grid = Grid(cells([apart], [Contender("focal")], [0]))
    first, second, third = grid.jobs()
    assert first.after == ()
    assert second.after == (first.name,)
    assert second.arguments[-2:] == ("--references", first.makes)
    assert third.after == (second.name,)


def test_settings_become_words_of_the_command_line():
    settings = {"updates": 5, "method": {"use_dml": False, "gan": {"rounds": 2}}, "hidden": [3, 4]}
    words = "--updates 5 --method.no-use-dml --method.gan.rounds 2 --hidden 3 4"
    assert words_of(settings) == words.split()


def test_families_have_options():
    assert parse_data("hopper-mass:refresh_constants=true").options == {"refresh_constants": True}
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        parse_data("cheetah-vel:split")


def test_what_is_missing_stands_out():
    grid = small_grid(("focal", "csro"), (0, 1))
    present = [c for c in grid.cells if (c.contender.method, c.seed) != ("csro", 1)]
    assert "| point-robot | 2 | **1 of 2** |" in coverage(grid, present)


# --- schedule ---


class Pretend:
    """An executor without processes: `fails` says how often a job does."""

    slots = 2

    def __init__(self, fails=None, permanent=False):
        self.fails, self.permanent, self.order = dict(fails or {}), permanent, []

    def width(self, threads):
        return self.slots

    def submit(self, job, hear):
        self.order.append(job.name)
        future = Future()
        if self.fails.get(job.name, 0):
            self.fails[job.name] -= 1
            future.set_exception(JobFailed(f"{job.label} broke", self.permanent))
        else:
            future.set_result({})
        return future

    def poll(self):
        pass

    def stop(self):
        pass


def graph():
    def job(name, *after):
        return Job(f"job {name}", ("list",), Path("log"), name, after)

    return [job("a"), job("b", "a"), job("c"), job("d", "c"), job("e", "b", "d")]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("ertrl.launch.schedule.SECONDS_BEFORE_ANOTHER", 0.01)


def test_a_failure_stops_only_what_needs_it():
    executor, told = Pretend({"a": 9}), []
    failures = run_graph(graph(), executor, "none", done=lambda job: told.append(job.name))
    assert told == ["c", "d"]
    assert executor.order.count("a") == 3, "tried again, but not for ever"
    assert failures == [
        "job a broke (3 attempts)",
        "job b was not run: it needs job a",
        "job e was not run: it needs job b",
    ]


def test_what_crashed_once_is_done_the_second_time():
    assert run_graph(graph(), Pretend({"a": 1, "d": 2}), "none") == []


def test_a_full_disk_stops_only_what_met_it():
    def keep(job):
        if job.name == "a":
            raise OSError(28, "No space left on device")

    failures = run_graph(graph(), Pretend(), "none", done=keep)
    assert failures[0] == "job a: [Errno 28] No space left on device (3 attempts)"
    assert len(failures) == 3


@pytest.mark.parametrize("error", [ConfigError, MissingExtra, SimulationError, TrainingDiverged])
def test_what_would_fail_again_says_so_in_its_exit_code(error, monkeypatch):
    def fail(words):
        raise error("as it always will")

    monkeypatch.setattr("ertrl.cli.list.run", fail)
    assert main(["list"]) in PERMANENT
    assert not {1, *(128 + signal for signal in range(1, 65))} & set(PERMANENT)


def test_what_would_fail_again_is_not_tried_again():
    executor = Pretend({"a": 1}, permanent=True)
    assert len(run_graph(graph(), executor, "none")) == 3
    assert executor.order.count("a") == 1


# --- the whole way ---


GRID = small_grid(probe_transitions=12)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A grid of one run, its small files and its report."""
    out = tmp_path_factory.mktemp("grid")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(COSTS, lambda grid, place: grid.jobs())
        done = reproduce(GRID, out / "all", keep=out / "kept", progress="none")
    assert done.failures == []
    assert done.reports[0].exists()
    return out / "all"


def test_a_grid_is_done_once_and_grows(finished):
    """Nothing runs twice, and a new seed runs alone."""
    kept = finished.parent / "kept"
    files = [p for p in finished.rglob("*") if p.is_file() and "report" not in p.parts]
    before = {p: p.stat().st_mtime_ns for p in files}
    assert plan(GRID, finished)[1] == []
    more = small_grid(seeds=(0, 1))
    again = reproduce(more, finished, keep=kept, reporting=False, progress="none")
    assert len(again.runs) == 2
    assert {p: p.stat().st_mtime_ns for p in before} == before
    (folder,) = kept.iterdir()
    files = [store.read_json(path) for path in sorted(folder.glob("point-robot*.json"))]
    assert [file["seed"] for file in files] == [0, 1]
    cells = product(PAPER_PROTOCOLS, GROUPS)
    assert files[0]["scores"].keys() == {f"{protocol}/{group}" for protocol, group in cells}
    assert files[0]["probes"]["settings"]["transitions"] == 12
    assert files[0]["seconds"] > 0
    (data,) = folder.glob("data-*.json")
    assert len(store.read_json(data)["references"]["expert"]) == 40
    store.write_json(data, {**store.read_json(data), "seconds": 1e-3})  # collected somewhere else
    reproduce(small_grid(seeds=(0,)), finished, keep=kept, reporting=False, progress="none")
    assert store.read_json(data)["seconds"] == 1e-3  # of the same data the first record stays


def test_a_run_that_is_gone_is_made_again(finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    name = store.read_json(next(copy.glob("jobs/train-*-s0-*.json")))["made"]
    shutil.rmtree(copy / name)
    assert [job.name.split("-")[0] for job in plan(GRID, copy)[1]] == ["train", "probe"]


def test_a_killed_grid_goes_on(tmp_path):
    """SIGKILL of the parent in mid-run: the child follows, and the next start resumes its run."""
    settings = train_settings(updates=4000, evaluate_every=4000, checkpoint_every=50)
    words = ["--families", "point-robot", "--methods", "focal", "--seeds", "0"]
    words += ["--collect-settings", json.dumps(COLLECT), "--train-settings", json.dumps(settings)]
    words += ["--probe-transitions", "0", "--out", str(tmp_path), "--no-report"]
    command = [sys.executable, "-m", "ertrl", "reproduce", *words, "--progress", "none"]
    parent = subprocess.Popen(command)
    while not list(tmp_path.glob("runs/*/checkpoints/*.json")):
        assert parent.poll() is None
        time.sleep(0.1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    (path,) = (tmp_path / "runs").iterdir()
    while store.in_use(path):
        time.sleep(0.1)
    run = Run(path)
    assert run.checkpoints.newest() < 4000
    assert subprocess.run(command).returncode == 0
    assert run.checkpoints.newest() == 4000
    (name,) = [n for n in (tmp_path / "jobs").glob("train-*.json")]
    record = record_of(place_of(tmp_path), name.stem)
    assert record["began_at"] > 0


def test_a_damaged_run_is_named_and_the_rest_is_reported(finished, tmp_path):
    """One flipped byte costs its cell, not the report; what to do is said, and works."""
    out, grid = shutil.copytree(finished, tmp_path / "out"), small_grid(seeds=(0, 1))
    both = reproduce(grid, out, reporting=False, progress="none")
    run = both.runs[grid.cells[0].label]
    (weights,) = run.glob("checkpoints/00000020.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    done = reproduce(grid, out, keep=tmp_path / "kept", progress="none")
    (failure,) = done.failures
    assert "is damaged" in failure
    record = re.search(r"remove (jobs/\S+\.json)", failure)[1]
    assert list(done.runs) == [grid.cells[1].label]
    assert "seed 0 is missing." in done.reports[0].read_text()
    (out / record).unlink()
    shutil.rmtree(run)
    again = reproduce(grid, out, reporting=False, progress="none")
    assert again.failures == []
    assert len(again.runs) == 2


def test_missing_cells_are_told_by_method():
    grid = small_grid(methods=("focal", "csro"), seeds=(0, 1, 2))
    there = {cell.label for cell in grid.cells if cell.contender.method == "focal" and cell.seed}
    assert lacking_cells(grid, there) == [
        "point-robot focal: seed 0 is missing.",
        "point-robot csro: seeds 0, 1, 2 are missing.",
    ]


def test_a_chain_of_jobs_takes_as_long_as_all_of_them():
    jobs = [
        replace(job, seconds=seconds)
        for job, seconds in zip(GRID.jobs(), (10, 15, 27), strict=True)
    ]
    assert longest_chain(jobs) == 52
    assert longest_chain(jobs[1:]) == 42, "what is there already takes no time"
    assert "about 52 s" in describe_plan(jobs, jobs, 2)


def test_listings_of_an_address_are_those_of_now(tmp_path, monkeypatch):
    """Some file systems keep them, and would not see what other machines added."""
    kept = {}

    def ls(self, path, **options):
        return kept.setdefault(path, [str(p) for p in Path(path).iterdir()])

    monkeypatch.setattr(LocalFileSystem, "ls", ls)
    monkeypatch.setattr(LocalFileSystem, "invalidate_cache", lambda self, path=None: kept.clear())
    place = place_of(f"file://{tmp_path / 'far'}", tmp_path)
    (tmp_path / "far" / "jobs").mkdir(parents=True)
    assert place.names("jobs") == set()
    (tmp_path / "far" / "jobs" / "one.json").touch()
    assert records(place, []) == {}
    assert place.names("jobs") == {"one.json"}


def test_an_upload_that_fails_is_tried_again(tmp_path, monkeypatch, capsys):
    """Whatever the address's package raises."""
    put, calls = Address._put_file, []

    def put_file(self, files, source, target):
        calls.append(target)
        if len(calls) == 1:
            raise TimeoutError("the bucket is slow")
        put(self, files, source, target)

    monkeypatch.setattr(Address, "_put_file", put_file)
    place = Address(f"file://{tmp_path / 'far'}", tmp_path / "work", every=0.05)
    arrived = tmp_path / "far" / "partial" / "train-x" / "run" / "config.json"
    with place.desk(Job("x", (), Path("x.log"), name="train-x")) as desk:
        (desk / "runs" / "run").mkdir(parents=True)
        (desk / "runs" / "run" / "config.json").write_text("{}")
        (desk / "runs" / "run" / "metrics.jsonl").write_text("")
        end = time.monotonic() + 20
        while not arrived.exists():
            assert time.monotonic() < end, "it gave up"
            time.sleep(0.05)
    assert "an upload failed" in capsys.readouterr().err


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_child_ends_with_its_parent(stubborn):
    """By its standard input; one that does not answer, for it evaluates, is killed."""
    code = (
        "import signal, time\n"
        "from ertrl import signals\n"
        "signals.SECONDS_TO_SAVE = 0.5\n"
        f"{'signal.signal(signal.SIGTERM, signal.SIG_IGN)' if stubborn else ''}\n"
        "signals.follow_parent()\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, FOLLOW: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    child.stdin.close()
    assert child.wait(20) == (-signal.SIGKILL if stubborn else -signal.SIGTERM)
    child.stdout.close()


def test_a_failing_method_leaves_the_rest(finished, tmp_path):
    """Its cell is missing from the report, and the outcome says so."""
    out, grid = shutil.copytree(finished, tmp_path / "out"), small_grid()
    broken = Cell(
        Data("point-robot"), Contender("focal", settings={"sampling": {"meta_batch": 999}}), 0
    )
    done = reproduce(replace(grid, cells=(*grid.cells, broken)), out, progress="none")
    assert len(done.runs) == 1
    assert len(done.failures) == 1
    assert "only 20 training tasks" in done.failures[0]
    page = done.reports[0]
    assert "is missing." in page.read_text()
    assert "**0 of 1**" in (page.parent / "tables" / "coverage.md").read_text()


def test_a_place_behind_an_address_has_the_same_results(finished, tmp_path):
    far = tmp_path / "far"
    there = reproduce(GRID, f"file://{far}", work=tmp_path, reporting=False, progress="none")
    assert there.failures == []
    (one,), (other,) = ((p / "runs").glob("*-s0-*") for p in (far, finished))
    assert one.name == other.name
    for name in ("metrics.jsonl", "checkpoints/00000020.safetensors", "probes/00000020.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert not list(far.glob("partial/*"))


def test_another_machine_goes_on_from_what_was_uploaded(finished, tmp_path):
    """Half of a run is at the address, and nothing of it on this machine."""
    far, grid = tmp_path / "far", small_grid()
    collection, training = grid.jobs()
    shutil.copytree(finished / collection.makes, far / collection.makes)
    (far / "jobs").mkdir()
    shutil.copy(finished / "jobs" / f"{collection.name}.json", far / "jobs")
    (run,) = (finished / "runs").glob("*-s0-*")
    half = far / "partial" / training.name / run.name
    shutil.copytree(run, half, ignore=shutil.ignore_patterns("00000020*", "probes", ".lock"))
    listed = store.read_json(half / "contents.json")
    listed |= {"checkpoints": [10], "evaluations": [], "probes": []}
    store.write_json(half / "contents.json", listed)
    done = reproduce(grid, f"file://{far}", work=tmp_path, reporting=False, progress="none")
    assert done.failures == []
    record = store.read_json(far / "jobs" / f"{training.name}.json")
    assert record["began_at"] == 0.5
    last = "checkpoints/00000020.safetensors"
    assert (far / "runs" / run.name / last).read_bytes() == (run / last).read_bytes()
    assert not list(far.glob("partial/*"))


def test_what_is_under_way_is_uploaded_in_an_order_that_can_be_resumed(tmp_path, tiny_run):
    from ertrl.launch.place import _in_safe_order

    names = [p.relative_to(tiny_run.path).as_posix() for p in _in_safe_order(tiny_run.path)]
    log = names.index("metrics.jsonl")
    for step in tiny_run.checkpoints.steps():
        description = names.index(f"checkpoints/{step:08d}.json")
        assert log < names.index(f"checkpoints/{step:08d}.safetensors") < description
    assert isinstance(place_of("s3://bucket/folder"), Address)


def test_notes_of_what_was_measured_are_not_believed(tmp_path):
    notes = tmp_path / "estimates.json"
    store.write_json(notes, {"kind": estimates.KIND, "measured": {"a": -1.0}})
    with pytest.raises(CorruptFileError, match=r"estimates\.json is whole, but.* Remove it"):
        estimates.Estimator(small_grid(), notes)
    notes.unlink()
    known = estimates.Estimator(small_grid(), notes)
    assert known._measured("this", lambda: 3.0) == 3.0
    again = estimates.Estimator(small_grid(), notes)
    assert again._measured("this", lambda: 4.0) == 3.0
    assert again._measured("this", lambda: {"seconds": 5.0}, "seconds") == {"seconds": 5.0}


def test_the_plan_is_measured_and_kept(tmp_path, capsys):
    words = ["reproduce", "--families", "point-robot", "--methods", "focal", "--seeds", "0"]
    words += ["--collect-settings", json.dumps(COLLECT), "--train-settings"]
    words += [json.dumps(train_settings()), "--out", str(tmp_path), "--dry-run"]
    assert main([*words, "--json"]) == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    assert [job["done"] for job in jobs] == [False] * 3
    assert all(job["seconds"] > 0 and job["memory"] > 1e6 and job["disk"] > 0 for job in jobs)
    assert jobs[1]["command"].startswith("ertrl train focal --data data/point-robot-")
    known = (tmp_path / "estimates.json").read_bytes()
    assert main(words) == 0
    assert "3 of 3 jobs to do" in capsys.readouterr().out
    assert (tmp_path / "estimates.json").read_bytes() == known, "measured once"
    assert estimates.MEASURED_SECONDS < 1


MISTAKES = {
    "--train-settings {updates}": "--train-settings takes a JSON object",
    "--methods focl": "Did you mean 'focal'",
    "--methods FOCAL": "Did you mean 'focal'",
    "--methods focal+": "after + comes a learner, as in focal+brac; got 'focal+'",
    "--methods focal+brak": "Did you mean 'brac'",
    "--methods mine.py": "give it with --plugin",
    "--methods focal focal+td3bc": "focal seed 0' and 'point-robot focal+td3bc seed 0'",
    "--families point-robt": "Did you mean 'point-robot'",
    "--families point-robot point-robot": "are the same run; name it once",
    "--families cheetah-vel:split=relesed": "split is one of 'paper', 'released', got 'relesed'",
    "--families cheetah-vel:splt=released": "Did you mean 'split'",
    "--families cheetah-vel:": "NAME=VALUE, got ''",
    "--seeds 0 1 1": "seeds must be different numbers",
    "--seeds 4-0": "--seeds takes numbers like 0-4",
    "--variant relesed": "Did you mean 'released'",
    "--profile logs": "use laptop or paper",
    "--threads 0": "--threads must lie between 1 and 4096, got 0",
    "--processes -3": "--processes must lie between 0 and 4096, got -3",
    "--gpus nan": "--gpus must lie between 0 and 64, got nan",
    "--gpus 1.5": "--gpus is a share of one, or a whole number; got 1.5",
    "--gpus 1": "--gpus is 1.0, but it is only for --executor ray",
    "--address auto": "--address is auto, but it is only for --executor ray",
    "--work here": "--work is here, but it is only for an address as --out",
    "--probe-transitions 1": "--probe-transitions must lie between 5 and 1000000, got 1",
    '--train-settings {"update":3}': "train focal on point-robot: unknown setting 'update'",
    '--train-settings {"method":{"gan":{}}}': "focal on point-robot: unknown setting of method",
    '--train-settings {"seed":3}': "choose the seeds",
    '--collect-settings {"steps":7}': "collect point-robot: steps (7) and random_steps",
    "--out nosuch://bucket": "nosuch://bucket cannot be reached: Protocol not known: nosuch",
    "--out s3://bucket": "s3:// with the package s3fs installed",
    "--keep /dev/null": "/dev/null cannot be a folder: /dev/null is a file",
    "--out /dev/null/here": "/dev/null/here cannot be a folder: /dev/null is a file",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_explained_before_anything_starts(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "s3:" in words:
        monkeypatch.setitem(sys.modules, "s3fs", None)
    usual = {"--families": "point-robot", "--methods": "focal", "--seeds": "0"}
    others = [word for pair in usual.items() if pair[0] not in words for word in pair]
    assert main(["reproduce", *others, *words.split()]) == 2
    assert MISTAKES[words] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_ray_its_executor_says_so_at_once(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["reproduce", "--executor", "ray", "--out", str(tmp_path / "out")]
    for more in ([], ["--dry-run"]):
        assert main([*words, *more]) == 3
        assert "pip install '.[ray]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_seeds_are_one_word_or_several(capsys, tmp_path):
    words = ["reproduce", "--families", "point-robot", "--methods", "focal", "--dry-run", "--json"]
    words += ["--out", str(tmp_path), "--probe-transitions", "0", "--seeds"]
    for seeds in (["0-2"], ["0,1,2"], ["0", "1-2"]):
        assert main([*words, *seeds]) == 0
        assert len(json.loads(capsys.readouterr().out)["jobs"]) == 1 + 3


def test_the_python_of_the_page_asks_for_what_it_says(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "ertrl.launch.reproduce.reproduce",
        lambda grid, out, keep: (
            asked.append(grid) or SimpleNamespace(runs=0, failures=0, reports=0)
        ),
    )
    page = (Path(__file__).parent.parent / "docs" / "reproduce.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "reproduce.md", "exec"), {})
    (grid,) = asked
    assert {(c.data.family, c.contender.method, c.seed) for c in grid.cells} == {
        ("point-robot", method, seed) for method in ("er-trl", "focal") for seed in range(3)
    }

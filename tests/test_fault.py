"""A few of each attack of `make fault`, and every failure that was once found by one."""

import errno
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from conftest import tiny_config
from ertrl import api, progress, runtime, store
from ertrl.cli import main
from ertrl.config import replace_from_json
from ertrl.data import Dataset, import_logs, layout
from ertrl.errors import ConfigError, CorruptFileError, DataError, ErtrlError, RunError
from ertrl.launch.estimates import Notes
from ertrl.launch.place import Record
from ertrl.launch.watch import look
from ertrl.reporting import compose, report
from ertrl.reporting.draw import Picture
from ertrl.reporting.write.sections import _provenance
from ertrl.runtime import files
from ertrl.training import Run, records
from ertrl.training import shapes as training_shapes
from ertrl.training.records import settle
from ertrl.training.replay import first_operation
from fake_runs import enrich, fake_run
from fault import crashes, damage, figures, hostile, inject, small, trouble, words

ROOT = Path(__file__).parent.parent
FIXTURES = sorted((ROOT / "tests" / "fixtures").glob("format-*"))
PYTHON = {k: v for k, v in os.environ.items() if k != "NPROC"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A dataset, a run on it, its probes and its agent."""
    folder = tmp_path_factory.mktemp("world")
    with small.small_world():
        for stage in (small.do_collect, small.do_train, small.do_probe, small.do_export):
            stage(folder)
    return folder


@pytest.fixture
def copied(world, tmp_path):
    return shutil.copytree(world, tmp_path / "world")


@pytest.fixture
def sketched(monkeypatch):
    """Reports with blank figures, for tests of how they are written."""
    monkeypatch.setattr(compose, "read_material", hostile.no_material)
    kinds = ("curves", "shift", "profiles", "tasks", "adaptation", "probes")
    blank = {kind: Picture(f"blank-{kind}", Figure((1, 1))) for kind in kinds}
    monkeypatch.setattr(compose, "draw_family", lambda *_: blank)


# --- the attacks of `make fault`, reduced ---


@pytest.mark.usefixtures("sketched")
def test_a_kill_loses_nothing_and_leaves_nothing(tmp_path):
    figures = crashes.kill_everywhere(
        tmp_path, lambda total: (total // 3, total - 4) if total > 20 else (total // 2,)
    )
    assert sum(stage["killed"] for stage in figures.values()) == 7


@pytest.mark.usefixtures("sketched")
def test_disks_that_refuse_lose_nothing(tmp_path):
    assert sum(trouble.refuse(tmp_path, every=150).values()) > 8


def test_every_mutation_is_named(world, tmp_path):
    run = small.run_of(world).path
    for folder, count in ((world / "data", 30), (run, 36), (world / "agent", 12)):
        named = damage.attack(folder, tmp_path, count)
        assert sum(named.values()) == count
        assert named.keys() == set(damage.KINDS)


def test_no_hostile_file_breaks_a_command(world, tmp_path):
    assert hostile.attack(world, tmp_path, 20, seed=11)["tracebacks"] == 0


def test_no_word_breaks_the_command_line(world, tmp_path):
    assert words.attack(world, tmp_path, 60, seed=12)["tracebacks"] == 0


def test_a_divergence_is_kept_repeated_and_named(world, tmp_path, capsys):
    assert trouble.diverge(world, tmp_path)["operation"] == "log of float32[] makes NaN"
    with small.small_world():
        assert main(["replay", str(small.run_of(world).path)]) == 1
    assert "has no divergence yet; no update of it failed" in capsys.readouterr().err


def test_the_first_operation_is_found_in_the_branch_that_was_taken():
    def program(x):
        ways = (lambda v: jnp.sqrt(-v) + 1, lambda v: jnp.log(-v) * 2)
        return jax.lax.cond(x > 0, ways[1], ways[0], x)

    found = first_operation(program, jnp.float32(3))
    assert found["message"] == "log of float32[] makes NaN"
    assert first_operation(program, jnp.float32(-3)) is None


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_operation_is_found_inside_of_a_loop(reverse):
    def program(x, steps):
        total, logs = jax.lax.scan(
            lambda left, by: (left - by, jnp.log(left)), x, steps, reverse=reverse
        )
        return total + logs.sum()

    found = first_operation(program, jnp.float32(3), jnp.full(3, 2.0))
    assert found["message"] == "log of float32[] makes NaN"
    assert first_operation(program, jnp.float32(9), jnp.full(3, 2.0)) is None


def test_a_constant_that_is_no_number_is_not_blamed():
    def program(x):
        return jnp.where(x > 0, x, jnp.full(2, jnp.nan)).sum()

    assert first_operation(program, jnp.float32(1)) is None


# --- what a file says is not believed ---


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.pop("tasks"), r"missing required field `tasks`"),
        (lambda m: m["tasks"][0]["files"]["rewards"].update(path=3), r"path is 3\. Expected `str`"),
        (lambda m: m["tasks"][1].update(episodes=None), r"tasks\[1\].episodes is None\. Expected"),
        (lambda m: m.update(observation_dim="2"), r"observation_dim is '2'\. Expected `int`"),
        (lambda m: m.update(observation_dim=10**9), r"is 1000000000\. Expected `int` <= 65536"),
        (lambda m: m.update(colour="red"), "unknown field `colour`"),
        (lambda m: m["tasks"][0]["reference"].pop("zero"), "got none for zero"),
    ],
)
def test_an_impossible_manifest(copied, change, said):
    file = copied / "data" / "manifest.json"
    manifest = store.read_json(file)
    change(manifest)
    store.write_json(file, manifest)
    with pytest.raises(CorruptFileError, match=rf"manifest\.json is whole, but.*{said}"):
        Dataset(copied / "data")


@pytest.mark.parametrize(
    ("folder", "change", "said"),
    [
        ("evaluations", lambda c: c.update(protocols={}), "at least one protocol"),
        ("evaluations", lambda c: c.pop("protocols"), "missing required field `protocols`"),
        ("checkpoints", lambda c: c.pop("weights_sha256"), "missing required field `weights_sha"),
        ("evaluations", lambda c: c["references"]["expert"].append(1.0), "references.expert"),
        ("probes", lambda c: c["settings"].pop("transitions"), "missing required field `trans"),
        ("evaluations", lambda c: c.update(kind="ertrl-run", format=2), "kind is 'ertrl-run'"),
    ],
)
def test_an_impossible_record(copied, folder, change, said):
    with small.small_world():
        run = small.run_of(copied)
        file = run.path / folder / "00000020.json"
        content = store.read_json(file)
        change(content)
        store.write_json(file, content)
        with pytest.raises(CorruptFileError, match=said):
            api.verify(run.path)
        with pytest.raises(CorruptFileError, match=said):
            look(run)


def test_an_impossible_savepoint(tmp_path):
    """A savepoint that was sealed again, with counts of tasks that there are not."""
    stopped, again = tmp_path / "stopped", tmp_path / "again"
    again.mkdir()
    with small.small_world():
        most = inject.count_operations(lambda: small.do_collect(again), again)
        shutil.rmtree(again)
        again.mkdir()
        kill = inject.once_at(most * 3 // 4, lambda: shutil.copytree(again, stopped))
        with inject.injecting(again, kill):
            small.do_collect(again)
        (file,) = (stopped / ".data.collecting").glob("0*.json")
        whole = store.read_json(file)
        for kind in ("episodes", "transitions"):
            for counts in ([], whole[kind]["count"][1:], [*whole[kind]["count"], 0]):
                store.write_json(file, {**whole, kind: {**whole[kind], "count": counts}})
                with pytest.raises(ErtrlError, match=str(stopped)):
                    small.do_collect(stopped)
        store.write_json(file, whole)
        small.do_collect(stopped)


def test_numbers_beyond_measure_are_refused_before_the_report(tmp_path):
    run = fake_run(tmp_path)
    file = run / "evaluations" / "00002000.json"
    content = store.read_json(file)
    content["protocols"]["online"]["returns"][0][0] = 1e308
    store.write_json(file, content)
    from ertrl.reporting import report

    with pytest.raises(CorruptFileError, match=r"00002000\.json.*<= 1000000000000000"):
        report([run], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_names_are_no_formulas(tmp_path):
    run = enrich(fake_run(tmp_path, family=r"$\frac$ <b>", name="run"))
    assert r"$\frac$ &lt;b&gt;" in compose.render(compose.compose([run]))


def test_runs_from_before_threads_were_noted_down_have_one():
    origin = {"commit": "c", "versions": {}, "machine": {}}
    run = SimpleNamespace(name="old", provenance=origin, dataset="d")
    results = SimpleNamespace(members=[("family", run)])
    ((told, runs),) = _provenance(SimpleNamespace(results=results))["origins"]
    assert (told["threads"], runs) == (1, ["old"])


def test_names_are_no_markup(tmp_path, monkeypatch, capsys):
    draw = np.random.default_rng(0)
    logs = {
        "task": np.repeat(["[/]", "[red]", "x"], 8),
        "episode": np.arange(24) // 4,
        "observation": draw.normal(size=(24, 2)),
        "action": draw.uniform(-1, 1, (24, 1)),
        "reward": draw.normal(size=24),
        "[/parameter]": np.repeat([1.0, 2.0, 3.0], 8),
    }
    data = import_logs(logs, tmp_path / "[data]", parameters=["[/parameter]"], progress="none")
    assert main(["data", "info", str(data.path)]) == 0
    assert "[/parameter]" in capsys.readouterr().out
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(progress, "Console", lambda stderr: terminal)
    with progress.Meter("import [/]", 10) as meter:
        meter.update(10, "[/note]")
    assert "[/note]" in terminal.file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        {"learner": {"hidden": [10**9]}},
        {"learner": {"hidden": [65_536] * 3}},
        {"sampling": {"batch_size": 99_999_999}},
        {"method": {"encoder": {"latent_dim": 10**9}}},
        {"updates": 10**20},
    ],
)
def test_what_does_not_fit_is_refused_at_once(world, tmp_path, change):
    begun = time.monotonic()
    settings = {**change, "sampling": {"meta_batch": 2, **change.get("sampling", {})}}
    with small.small_world(), pytest.raises(ConfigError, match=r"the limit is|at most"):
        api.train("focal", world / "data", settings=settings, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    assert time.monotonic() - begun < 20


def test_an_evaluation_that_does_not_fit_is_refused(world, tmp_path):
    settings = {"evaluation": {"repeats": 99_999_999}, "sampling": {"meta_batch": 2}}
    with small.small_world():
        run = Run.create(
            tmp_path, Dataset(world / "data"), replace_from_json(tiny_config(), settings)
        )
        agent = run.agent(run.fresh())
        with pytest.raises(ConfigError, match="contexts and episodes would take about"):
            api.evaluate_agent(agent, Dataset(world / "data"), step=0, run=run.name)


# --- a run knows what it holds ---


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (lambda p: (p / "evaluations" / "00000020.json").unlink(), r"00000020\.json is missing"),
        (lambda p: (p / "probes" / "00000020.json").unlink(), r"00000020\.json is missing"),
        (lambda p: (p / "contents.json").unlink(), r"contents\.json is missing"),
        (
            lambda p: (p / "evaluations" / "00000020.json").rename(p / "evaluations" / "x.json"),
            r"00000020\.json is missing",
        ),
        (
            lambda p: [f.unlink() for f in (p / "checkpoints").glob("00000010.*")],
            r"00000010\.json is missing",
        ),
        (lambda p: (p / "checkpoints" / "00000010.safetensors").unlink(), "safetensors is missing"),
        (
            lambda p: shutil.copy(p / "config.json", p / "evaluations" / "x.json"),
            r"x\.json is no part of the run",
        ),
        (
            lambda p: (p / "metrics.jsonl").open("a").write('{"kind": "train", "step": 20}\n'),
            "goes on after the end of the run",
        ),
    ],
)
def test_what_is_gone_or_new_is_noticed(copied, attack, named):
    with small.small_world():
        run = small.run_of(copied)
        attack(run.path)
        with pytest.raises(ErtrlError, match=named):
            api.verify(run.path)
        with pytest.raises(ErtrlError, match=named):
            report([run], copied / "report")


def test_a_report_misses_an_evaluation_that_was_deleted(copied, tmp_path):
    with small.small_world():
        run = small.run_of(copied)
        run.evaluations.path(20).unlink()
        with pytest.raises(CorruptFileError, match=r"00000020\.json is missing"):
            report([run], tmp_path / "report")
        api.evaluate(run)  # makes it again
        api.verify(run.path)


def test_litter_is_swept_at_the_next_start(copied):
    with small.small_world():
        run = small.run_of(copied)
        litter = [
            run.path / "checkpoints" / store.temporary_name("00000020.json", 99999999),
            run.path / store.temporary_name("config.json", 99999999),
        ]
        alive = run.path / store.temporary_name("config.json", os.getpid())
        contents = store.read_json(run.path / "contents.json")
        store.write_json(
            run.path / "contents.json", {**contents, "changing": {"checkpoints": [30]}}
        )
        orphan = run.path / "checkpoints" / "00000030.safetensors"
        for file in (*litter, alive, orphan):
            file.write_bytes(b"half")
        api.verify(run.path)
        settle(run)
        assert not any(file.exists() for file in (*litter, orphan))
        assert alive.exists(), "its writer may still be at it"
        assert store.read_json(run.path / "contents.json") == contents


def test_a_run_can_be_verified_while_it_trains(world, tmp_path):
    with small.small_world():
        config = small.train_config()
        config = replace(config, updates=4000, evaluate_every=4000, checkpoint_every=10)
        run = Run.create(tmp_path, Dataset(world / "data"), config)
        process = trouble._start(
            "import sys; from fault.small import *\n"
            "with small_world(): api.resume(sys.argv[1], progress='none')",
            run.path,
        )
        while len(run.checkpoints.steps()) < 2:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        seen = set()
        for _ in range(12):
            api.verify(run.path)
            look(run)
            seen.add(run.checkpoints.newest())
        process.kill()
        process.communicate()
    assert len(seen) > 1, "it went on meanwhile"


# --- one run name, one result ---


def test_python_and_the_command_line_make_the_same_run(world, tmp_path):
    program = (
        "import sys; from fault.small import *\n"
        "with small_world():\n"
        "    run = api.start(train_config(), Dataset(sys.argv[1]), out=sys.argv[2])\n"
        "    print(run.spec['provenance']['threads'])"
    )
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", program, str(world / "data"), str(tmp_path)]
    done = subprocess.run(
        command, env={**PYTHON, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "1", done.stderr
    with small.small_world():  # the command line's, whose thread is one as well
        (made,), ours = tmp_path.iterdir(), small.run_of(world)
        assert made.name == ours.path.name
        assert Run(made).checkpoints.read() == ours.checkpoints.read()


def test_other_threads_are_another_run(world, tmp_path, monkeypatch):
    with small.small_world():
        data, config = Dataset(world / "data"), small.train_config()
        one = Run.create(tmp_path, data, config)
        monkeypatch.setenv("NPROC", "2")
        two = Run.create(tmp_path, data, config)
        assert one.name != two.name
        assert [run.spec["provenance"]["threads"] for run in (one, two)] == [1, 2]
        with pytest.raises(RunError, match=r"run of 1 CPU thread, and this process has 2.*NPROC=1"):
            api.resume(one, progress="none")


def test_processes_that_share_a_machine_have_one_thread_each():
    from ertrl.launch import jobs

    code = "import os; print([os.environ[n] for n in ('NPROC', 'OMP_NUM_THREADS')])"
    assert jobs.THREADS_PER_PROCESS == 1
    told = dict.fromkeys(jobs.POOLS, str(jobs.THREADS_PER_PROCESS))
    count = (
        "import jax, jax.numpy as jnp, os, pathlib\n"
        "(jnp.ones((400, 400)) @ jnp.ones((400, 400))).block_until_ready()\n"
        "names = [(p / 'comm').read_text() for p in pathlib.Path('/proc/self/task').iterdir()]\n"
        "print(sum('XLAEigen' in name for name in names))"
    )
    if sys.platform == "linux":
        done = subprocess.run(
            [sys.executable, "-c", count],
            env={**os.environ, **told},
            capture_output=True,
            text=True,
        )
        assert int(done.stdout) <= 1, done.stderr
    done = subprocess.run(
        [sys.executable, "-c", code], env={**PYTHON, **told}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "['1', '1']"


# --- one compilation, no growth ---


def test_programs_are_compiled_once_and_nothing_piles_up(world, tmp_path, caplog):
    from ertrl.training import loop

    counts, advance = [], loop._Trainee.advance

    def watched(self, *arguments, **options):
        advance(self, *arguments, **options)
        counts.append(len(jax.live_arrays()))

    with small.small_world(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_chunk", loop.make_chunk.__wrapped__)
        patch.setattr(loop._Trainee, "advance", watched)
        config = replace(small.train_config(), updates=60, evaluate_every=20, checkpoint_every=20)
        with jax.log_compiles(True), caplog.at_level("WARNING"):
            api.start(config, Dataset(world / "data"), out=tmp_path, progress="none")
    compiled = [r.message for r in caplog.records if r.message.startswith("Compiling jit(chunk)")]
    assert len(compiled) == 1, [r.message[:80] for r in caplog.records]
    assert counts[-1] <= counts[1] + 2, counts


# --- formats ---


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda p: p.name)
def test_every_format_that_was_ever_written_is_read(fixture, tmp_path):
    """Or refused with instructions; today there is no such format."""
    place = shutil.copytree(fixture, tmp_path / "fixture")
    dataset = Dataset(place / "data")
    assert len(dataset.tasks) == 8
    run = Run(place / "run")
    assert api.verify(run.path)["files"] >= 8
    agent = api.load_agent(run)
    assert agent.adapt(dataset.task(22).transitions(np.arange(10))).z.shape == (4,)
    assert look(run).status == "finished"
    assert api.evaluate(run, data=place / "data")["step"] == 40
    assert api.resume(run, data=place / "data", progress="none").checkpoints.newest() == 40


@pytest.mark.parametrize("fixture", FIXTURES[1:], ids=lambda p: p.name)
def test_logs_and_agents_of_every_format_are_read(fixture, tmp_path):
    """They are kept since format 2."""
    place = shutil.copytree(fixture, tmp_path / "fixture")
    logs = Dataset(place / "logs")
    assert (logs.has_simulator, logs.dims.action, len(logs.tasks)) == (False, 1, 3)
    assert api.verify(place / "agent")["files"] == 2
    dataset, adapted = Dataset(place / "data"), runtime.load(place / "agent").begin()
    seen = dataset.task(22).transitions(np.arange(10))
    for step in zip(*seen[:4], strict=True):
        adapted.observe(*step)
    known = api.load_agent(place / "run").adapt(seen)
    np.testing.assert_allclose(adapted.z, known.z, atol=1e-5)


def test_what_is_written_today_has_a_fixture():
    """To change a format, raise its number and keep a fixture of it."""
    newest = FIXTURES[-1]
    for file, format in (
        ("run/config.json", records.FORMAT),
        ("data/manifest.json", layout.FORMAT),
        ("agent/agent.json", files.FORMAT),
    ):
        assert store.read_json(newest / file)["format"] == format


@pytest.mark.parametrize(
    ("file", "kind"), [("data/manifest.json", Dataset), ("run/config.json", Run)]
)
def test_a_newer_format_is_refused_with_instructions(tmp_path, file, kind):
    place = shutil.copytree(FIXTURES[-1], tmp_path / "fixture")
    content = store.read_json(place / file)
    store.write_json(place / file, {**content, "format": 99})
    with pytest.raises(DataError, match=r"has format version 99; this version .* Install"):
        kind((place / file).parent)


# --- the first second, and the last ---


def test_control_c_in_the_first_second_shows_no_traceback(tmp_path):
    for delay in (0.2, 0.5, 0.9):
        process = subprocess.Popen(
            [sys.executable, "-m", "ertrl", "train", "focal", "--data", str(tmp_path / "none")],
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        ours = "Traceback" in errors and "ertrl" in errors
        assert not ours, errors
        assert process.returncode != 0


@pytest.mark.parametrize(
    "moment",
    [
        "gc.callbacks.append(lambda *_: pressed or press())\ngc.collect()\ntime.sleep(60)",
        "import loading",
    ],
    ids=["collecting garbage", "loading a module"],
)
def test_control_c_is_neither_lost_nor_a_crash(tmp_path, moment):
    """Python ignores exceptions of such callbacks, and some modules do not survive them."""
    (tmp_path / "loading.py").write_text(
        "from __main__ import press\ntry:\n    press()\nexcept BaseException:\n    pass\n"
    )
    code = (
        "import gc, signal, sys, time\nfrom ertrl import cli\npressed = []\n"
        "def press(): pressed.append(1); signal.raise_signal(signal.SIGINT)\n"
        f"class Command:\n    def run(words): exec({moment!r}, globals())\n"
        "cli.import_module = lambda name: Command\nsys.argv = ['ertrl', 'list']\n"
        "sys.exit(cli.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (130, "stopped\n")


def test_a_name_that_is_no_text_is_printed(tmp_path):
    file = os.fsencode(shutil.copytree(FIXTURES[-1] / "agent", tmp_path / "agent")) + b"\xff"
    os.rename(tmp_path / "agent", file)
    done = subprocess.run(
        [sys.executable, "-m", "ertrl", "verify", file],
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert b"agent\\udcff: agent, 2 files are whole" in done.stdout


def test_a_dataset_never_appears_without_its_card(tmp_path, monkeypatch):
    """Whatever kills a collection, it does so before the dataset has its name."""
    seen = []
    real = os.rename

    def rename(source, target):
        if Path(target).name == "data":
            seen.append(sorted(p.name for p in Path(source).iterdir() if p.is_file()))
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with small.small_world():
        small.do_collect(tmp_path)
    assert seen == [["README.md", "learning-curve.png", "manifest.json"]]


def test_a_card_whose_picture_could_not_be_written_is_made_again(tmp_path, monkeypatch):
    real = store.write_bytes

    def full(path, content):
        if path.name == "learning-curve.png":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, content)

    with small.small_world():
        with monkeypatch.context() as patch:
            patch.setattr(store, "write_bytes", full)
            with pytest.warns(UserWarning, match="could not be written.*the data is whole"):
                small.do_collect(tmp_path)
        small.do_collect(tmp_path)
    assert {"README.md", "learning-curve.png"} <= {p.name for p in (tmp_path / "data").iterdir()}


def test_the_figures_of_the_documentation_are_those_of_the_results():
    """The table appears with the first `make fault` whose results are kept, and follows them."""
    page = (ROOT / "docs" / "reliability.md").read_text()
    shown = page.partition(figures.BEGIN)[2].partition(figures.END)[0].strip()
    kept = ROOT / "results" / "fault.json"
    assert shown == (figures.table(store.read_json(kept)["figures"]) if kept.exists() else "")


def test_the_documentation_names_what_is_declared():
    page = (ROOT / "docs" / "data-format.md").read_text()
    rows = page[page.index("| key | meaning |") :].split("\n\n")[0].splitlines()[2:]
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert keys == {*layout.Manifest.__struct_fields__, "sha256"}
    of_a_task = next(row for row in rows if row.startswith("| `tasks` |"))
    assert all(f"`{name}`" in of_a_task for name in layout.StoredTask.__struct_fields__)
    for name in layout.Files.__struct_fields__:
        assert f"{name}.npy" in page
    shapes = (ROOT / "docs" / "reliability.md").read_text()
    declared = [layout.Manifest, *training_shapes.RECORDS.values(), training_shapes.RunSpec]
    for shape in (*declared, training_shapes.Contents, training_shapes.MetricsLine, Record, Notes):
        assert f"| `{shape.__name__}` |" in shapes

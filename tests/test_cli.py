"""The command line as a person meets it: help, typos, mistakes, the whole way."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import TINY_COLLECT, TINY_TRAIN, options_of
from ertrl import api, store
from ertrl.cli import COMMANDS, main
from ertrl.cli.evaluate import _probe_lines
from ertrl.plugins import only_runtime
from ertrl.reporting.read.runs import read_runs
from ertrl.reporting.write.numbers import raw_numbers
from fake_runs import fake_run
from toys import write_dataset


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_is_quick_and_complete():
    before = os.times()
    command = [sys.executable, "-m", "ertrl", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < 1.5, "well under a second"
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_help_does_not_load_jax():
    code = "import sys, ertrl.cli; ertrl.cli.main(['--help']); sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "--json" in out
    assert "--plugin FILE.py" in out
    assert not [noise for noise in ("{None}", "(default: )", "--no-json") if noise in out]


def test_help_needs_no_family_of_the_data_s(capsys, tmp_path):
    data = write_dataset(tmp_path / "toy").path
    manifest = store.read_json(data / "manifest.json")
    store.write_json(data / "manifest.json", {**manifest, "family": "my-cart", "simulator": True})
    code, out, err = run(capsys, "train", "focal", "--data", data, "--help")
    assert code == 0
    assert "holds my-cart, a family that this process does not know" in err
    assert "--learner.hidden" in out


def test_no_command_and_unknown_command(capsys):
    assert run(capsys)[0] == 2
    code, _, err = run(capsys, "trian")
    assert code == 2
    assert "Did you mean 'train'?" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["collect", "point-robt"], "Did you mean 'point-robot'?"),
        (["collect"], "`ertrl list` says what they are: ant-dir"),
        (["list", "--plugin", "logs.csv"], "logs.csv is no Python file"),
        (["export", "x", "--step", "few"], "--step: invalid literal for int() with base 10: 'few'"),
        (["report"], "`ertrl report runs` takes all"),
        (["evaluate"], "`ertrl evaluate runs` takes all"),
        (["collect", "point-robot", "--stepss", "5"], "--steps"),
        (["collect", "point-robot", "--profile", "papr"], "Did you mean 'paper'?"),
        (["collect", "ant-dir", "--option", "splt=released"], "Did you mean 'split'?"),
        (["collect", "ant-dir", "--option", "split"], "NAME=VALUE"),
        (["collect", "hopper-mass", "--option", "refresh_constants=yes"], "true or false"),
        (
            ["collect", "point-robot", "--steps-per-block", "0"],
            "steps_per_block must be at least 1",
        ),
        (["collect", "point-robot", "--relabel-fraction", "3"], "relabel_fraction"),
        (["collect", "point-robot", "--learning-rate", "nan"], "finite"),
        (["bench", "train", "--threads", "x"], "--threads takes a whole number"),
        (["bench", "train", "--seconds", "0"], "--seconds must be above 0"),
        (["demo", "--seeds", "0"], "--seeds must be at least 1"),
        (["train"], "which METHOD"),
        (["train", "er-tlr", "--data", "x"], "Did you mean 'er-trl'?"),
        (["train", "focal"], "needs --data"),
        (["train", "focal", "--data", "nowhere"], "nowhere is not a dataset"),
        (["evaluate", "nowhere"], "nowhere is not a run"),
        (["evaluate", "nowhere", "--protocol", "offlin"], "Did you mean 'offline'?"),
        (
            ["evaluate", "x", "--protocol", "offline", "--json", "--protocol", "online"],
            "--protocol is given 2 times, and only the last would count: give all values after one",
        ),
        (["evaluate", "x", "--protocol=offline", "--protocol=online"], "after one --protocol"),
        (
            ["data", "import", "x", "--out", "y", "--held-out", "4", "--held_out", "5"],
            "after one --held-out",
        ),
        (["reproduce", "--families", "a", "--families", "b"], "after one --families"),
        (["collect", "--hidden", "8", "--hidden=9"], "after one --hidden"),
        (["collect", "ant-dir", "--option", "split=released", "--option", "x=1"], "of ant-dir 'x'"),
        (["train", "runs/typo"], "runs/typo is neither a method nor a run"),
        (["verify", "nowhere"], "nowhere does not exist"),
        (["verify", "."], "is neither a dataset nor a run"),
        (["report", "nowhere"], "nowhere is not a run"),
    ],
)
def test_mistakes_are_explained_without_traceback(capsys, arguments, expected):
    code, out, err = run(capsys, *arguments)
    assert code in (1, 2)
    assert expected in out + err
    assert "Traceback" not in err


def test_wrong_types_and_unknown_settings_name_the_option(capsys, tiny_dataset):
    train = ["train", "er-trl", "--data", str(tiny_dataset.path)]
    code, out, err = run(capsys, *train, "--method.mi-wieght", "1")
    assert code == 2
    assert "--method.mi-weight" in out + err
    code, out, err = run(capsys, *train, "--updates", "many")
    assert code == 2
    assert "--updates" in out + err
    code, out, err = run(capsys, *train, "--use-learner", "td3")
    assert code == 2
    assert "Did you mean 'td3bc'?" in err


def test_settings_of_several_numbers_are_given_once(capsys, tiny_dataset):
    words = ["train", "focal", "--data", tiny_dataset.path, "--updates", "7"]
    words += ["--method.encoder.hidden", "8", "--learner.hidden", "8"]
    code, _, err = run(capsys, *words, "--method.encoder.hidden", "16")
    assert code == 2
    assert "give all values after one --method.encoder.hidden" in err


def test_both_spellings_of_an_option_choose_the_learner(
    capsys, tiny_dataset, tiny_run, monkeypatch
):
    chosen = []

    def start(config, *_, **__):
        chosen.append((config.method.name, config.learner.name))
        return tiny_run

    monkeypatch.setattr(api, "start", start)
    for option in ("--use-learner", "--use_learner"):
        words = ["train", "focal", "--data", tiny_dataset.path, option, "brac", "--json"]
        code, out, _ = run(capsys, *words)
        assert (code, json.loads(out)["run"]) == (0, str(tiny_run.path))
    assert chosen == [("focal", "brac")] * 2


def test_numbers_beyond_all_bounds_are_refused(capsys, tiny_dataset):
    words = ["train", "er-trl", "--data", str(tiny_dataset.path)]
    for option in (
        ("--seed", "99999999999999999999"),
        ("--method.gan.rounds", "0"),
        ("--method.encoder.latent-dim", "-3"),
        ("--method.encoder.learning-rate", "nan"),
    ):
        code, _, err = run(capsys, *words, *option)
        assert code == 2
        assert option[0].strip("-").split(".")[-1].replace("-", "_") in err


def test_list_names_all_parts_and_their_settings(capsys):
    code, out, _ = run(capsys, "list", "--json")
    parts = json.loads(out)
    assert code == 0
    assert {"point-robot", "point-robot-wind"} <= parts["families"].keys()
    assert {"er-trl", "focal", "csro", "unicorn", "offline-pearl"} <= parts["methods"].keys()
    assert {"td3bc", "brac"} <= parts["learners"].keys()
    assert list(parts["protocols"]) == [
        *("offline", "online", "non-prior", "idaq"),
        *("continual", "thompson"),
    ]
    assert set(parts["profiles"]) == {"laptop", "logs", "paper"}
    paper = parts["profiles"]["paper"]["variants"]["paper"]["train"]["cheetah-vel"]["er-trl"]
    assert paper["sampling"]["context_size"] == 100
    assert paper["method"]["mi_weight"] == 0.25
    assert parts["families"]["point-robot"]["split"]["test-id"] == list(range(20, 30))
    assert run(capsys, "list")[0] == 0


def test_the_whole_way(capsys, tmp_path, monkeypatch):
    """collect -> train -> resume -> evaluate -> verify -> report, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "collect", "point-robot", *options_of(TINY_COLLECT), "--json")
    assert code == 0
    collected = json.loads(out.splitlines()[-1])
    assert collected["tasks"] == 40
    data = collected["dataset"]
    code, _, err = run(capsys, "collect", "point-robot")
    assert code == 1
    assert "already holds another dataset" in err

    train = ["train", "focal", "--data", data, *TINY_TRAIN, "--json"]
    code, out, _ = run(capsys, *train)
    assert code == 0
    trained = json.loads(out)
    assert set(trained["scores"]) == {
        f"{protocol}/{group}"
        for protocol in ("offline", "online", "non-prior")
        for group in ("train", "test-id", "test-ood")
    }
    resumed = json.loads(run(capsys, *train)[1])
    assert resumed == trained, "a finished run is not trained again"
    resumed = json.loads(run(capsys, "train", trained["run"], "--json", "--progress", "none")[1])
    assert resumed == trained

    code, out, _ = run(capsys, "evaluate", trained["run"], "--json")
    assert code == 0
    assert json.loads(out)["scores"] == trained["scores"]
    code, out, _ = run(capsys, "verify", data, trained["run"])
    assert code == 0
    assert "files are whole" in out
    code, out, err = run(capsys, "report", trained["run"], "--json")
    assert code == 0
    assert "watching" in err
    assert (tmp_path / json.loads(out.splitlines()[-1])["report"]).exists()


def test_an_evaluation_says_what_it_is_of(capsys, tmp_path, tiny_run):
    code, out, err = run(capsys, "evaluate", tiny_run.path)
    assert code == 0
    assert "was measured before, opened as it is" in err
    assert "on cpu" not in err
    assert "update" not in out
    other = write_dataset(tmp_path / "toy").path
    code, _, err = run(capsys, "evaluate", tiny_run.path, "--data", other)
    assert code == 1
    assert "is not the dataset that" in err
    copy = shutil.copytree(tiny_run.path, tmp_path / "copy")
    code, out, err = run(capsys, "evaluate", copy, "--step", 20)
    assert code == 0
    assert "evaluate: on cpu" in err
    assert out.startswith("update 20 of 40\n")
    found = json.loads(run(capsys, "evaluate", copy, "--step", 20, "--json")[1])
    assert (found["step"], found["updates"]) == (20, 40)


def test_a_full_disk_is_an_error_not_a_traceback(capsys, monkeypatch, tiny_run):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    kept = tiny_run.evaluations.path(40).read_bytes()
    code, _, err = run(capsys, "evaluate", tiny_run.path, "--protocol", "idaq")
    assert code == 1
    assert "No space left" in err
    assert "Traceback" not in err
    assert tiny_run.evaluations.path(40).read_bytes() == kept


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_huge_pages_are_asked_for_once_and_the_process_stays_the_same():
    code = (
        "import os; from ertrl.cli.common import use_huge_pages; print(os.getpid(), flush=True)\n"
        "use_huge_pages(); print(os.environ['GLIBC_TUNABLES'])"
    )
    environment = {k: v for k, v in os.environ.items() if k != "GLIBC_TUNABLES"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, second, tunables = done.stdout.split()
    assert first == second, "one process, started twice"
    assert tunables == "glibc.malloc.hugetlb=1"


def test_probes_of_logs_have_no_empty_heading():
    leak = {"chance": 0.5, "accuracy": {"train": 0.7}}
    swap = {"missing": "there is no simulator to act in"}
    lines = _probe_lines({"regression": [], "leak": leak, "swap": swap})
    assert lines[1].startswith("telling the behaviour")
    assert lines[-1].endswith("not measured: there is no simulator to act in")


def test_verify_looks_at_all_and_says_which_are_bad(capsys, tmp_path, tiny_run, tiny_dataset):
    words = "verify", tiny_dataset.path, tmp_path / "nowhere", tiny_run.path
    code, out, err = run(capsys, *words)
    assert code == 1
    first, second, third = out.splitlines()
    assert "dataset" in first
    assert second.endswith("nowhere does not exist")
    assert third.endswith("files are whole")
    assert "1 of 3 could not be verified" in err
    code, out, _ = run(capsys, *words, "--json")
    found = json.loads(out)["verified"]
    assert [("problem" in one) for one in found] == [False, True, False]


def test_a_folder_of_runs_or_datasets_is_looked_into_or_named(capsys, tiny_run, tiny_dataset):
    runs = tiny_run.path.parent
    code, out, _ = run(capsys, "verify", runs, tiny_dataset.path.parent)
    assert code == 0
    assert f"{tiny_run.path}: run, " in out
    assert f"{tiny_dataset.path}: dataset, " in out
    code, _, err = run(capsys, "export", runs)
    assert code == 1
    assert f"{runs} is a folder of runs; name one of them, such as {runs}" in err


def test_a_file_is_no_place_for_a_report(capsys, tmp_path, tiny_run, monkeypatch):
    monkeypatch.setattr("ertrl.reporting.compose.compose", None)  # nothing is drawn before
    (tmp_path / "logs.csv").write_text("")
    code, _, err = run(capsys, "report", tiny_run.path, "--out", tmp_path / "logs.csv")
    assert code == 2
    assert "logs.csv is a file; give another one with --out" in err


def test_a_mistake_is_json_for_a_program_that_asked_for_json(capsys, tiny_dataset):
    code, out, err = run(capsys, "verify", "nowhere/at/all", "--json")
    assert code == 1
    assert "problem" in json.loads(out)["verified"][0], "one value, the result"
    code, out, err = run(capsys, "data", "info", "nowhere", "--json")
    assert code > 0
    assert f"error: {json.loads(out)['error']}" == err.strip()
    code, out, err = run(capsys, "watch", "x", "--evry", "3", "--json")
    assert code == 2
    assert "standard error says why" in json.loads(out)["error"]
    assert "--evry" in err


def test_a_program_that_no_longer_reads_gets_no_traceback():
    code = "import sys, ertrl.cli; sys.exit(ertrl.cli.main(['data', 'info', 'nowhere', '--json']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait() != 0
    assert "Traceback" not in told


def test_published_numbers_alone_make_a_report(capsys, tmp_path):
    runs = [fake_run(tmp_path / "runs", seed=seed) for seed in range(2)]
    store.write_json(tmp_path / "results.json", raw_numbers(read_runs(runs)))
    words = "report", "--beside", tmp_path / "results.json", "--out", tmp_path / "page"
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "ER-TRL" in out
    assert (tmp_path / "page" / "report.html").exists()


def test_a_package_that_an_own_file_lacks_is_not_ours_to_explain(monkeypatch):
    missing = ModuleNotFoundError("No module named 'pybullet'", name="pybullet.sub")
    assert only_runtime("`ertrl collect`", missing) is missing
    ours = ModuleNotFoundError("No module named 'sklearn'", name="sklearn.svm")
    assert "needs the package sklearn" in str(only_runtime("`ertrl probe`", ours))


def test_without_a_package_of_the_whole_only_the_runtime_is_said_to_be_there(capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ertrl.cli.list")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ertrl.cli.options", None)  # ours: a bug, not an installation
    with pytest.raises(ModuleNotFoundError):
        run(capsys, "list")
    code = "import sys; sys.modules['tyro'] = None; import ertrl.cli; ertrl.cli.main(['list'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.startswith("error: `ertrl list` needs the package tyro")
    assert "pip install" in done.stderr
    assert len(done.stderr.splitlines()) == 1

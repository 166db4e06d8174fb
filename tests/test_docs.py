"""What the documentation shows works as shown."""

import importlib.util
import json
import re
import runpy
import shutil
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alarm
import beside_paper
import brac
import continual
import ertrl
import overview
import swap
from conftest import tiny_config
from ertrl import losses, store
from ertrl.collection.config import CollectConfig
from ertrl.config import replace_from_json, to_json
from ertrl.data import Sampler
from ertrl.envs import GROUPS, rollout
from ertrl.evaluation import PAPER_PROTOCOLS
from ertrl.launch.reproduce import paper_families
from ertrl.learners import get_learner
from ertrl.methods import get_method, methods
from ertrl.profiles import collect_config, train_config
from ertrl.reporting.measure.comparison import returns_table
from ertrl.reporting.measure.statistics import welch
from ertrl.reporting.read.identity import method_title
from ertrl.reporting.read.paper import paper_results
from ertrl.reporting.read.runs import read_runs
from ertrl.training import Run
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "results").rglob("README.md")]
)
METHODS = {
    "ER-TRL": "er-trl",
    "FOCAL": "focal",
    "CSRO": "csro",
    "UNICORN": "unicorn",
    "OfflinePEARL": "offline-pearl",
}
"""Rows of the tables, and the methods' names."""


def module_from(page: str, tmp_path):
    """The longest Python block of a page, imported as a module."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    path = tmp_path / "example.py"
    path.write_text(max(blocks, key=len))
    spec = importlib.util.spec_from_file_location("example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_method_of_the_documentation_trains(tiny_dataset, tmp_path):
    method = module_from("add-a-method.md", tmp_path).METHOD
    config = TrainConfig(method(), get_learner("td3bc")())
    sizes = {"encoder": {"hidden": [16], "latent_dim": 4, "learning_rate": 1e-2}}
    sizes["head_learning_rate"] = 5e-2
    config = replace_from_json(config, {"method": sizes, "learner": {"hidden": [16]}})
    state = init(config, tiny_dataset.dims)
    sampler = Sampler(tiny_dataset, tiny_config("focal").sampling, 0, seed=0)
    _, metrics = make_chunk(config)(state, sampler.batches(0, 200), run_key(0))
    entropy = np.asarray(metrics["cross_entropy"])
    assert entropy[-20:].mean() < 0.8 * entropy[:20].mean()


def test_the_learner_of_the_documentation_trains(tiny_dataset, tmp_path):
    learner = module_from("add-a-learner.md", tmp_path).LEARNER
    config = TrainConfig(get_method("focal")(), learner(hidden=(16,), learning_rate=1e-2))
    config = replace_from_json(config, {"method": {"encoder": {"hidden": [16], "latent_dim": 4}}})
    state = init(config, tiny_dataset.dims)
    sampler = Sampler(tiny_dataset, tiny_config("focal").sampling, 0, seed=0)
    state, metrics = make_chunk(config)(state, sampler.batches(0, 100), run_key(0))
    for name in ("critic_loss", "actor_loss"):
        measured = np.asarray(metrics[name])
        assert measured[-20:].mean() < 0.95 * measured[:5].mean(), name
    rows = np.zeros((3, tiny_dataset.dims.observation)), np.zeros((3, 4))
    best, drawn = (config.learner.act(state.learner, *rows, k) for k in (None, run_key(0)))
    assert best.shape == drawn.shape == (3, tiny_dataset.dims.action)
    assert not np.allclose(best, drawn)


def test_the_family_of_the_documentation_runs(tmp_path):
    family = module_from("add-a-family.md", tmp_path).FAMILIES[0]()
    tasks = [0, 25, 39]
    places = family.parameters[tasks]

    def go_there(observation, t):
        return np.clip((places - observation) / 0.1, -1, 1)

    episodes = rollout(family, places, go_there, seeds=[1, 2, 3])
    np.testing.assert_allclose(episodes.observation[:, -1], places, atol=1e-6)
    assert episodes.truncated.all()
    assert family.describe()["split"]["test-ood"] == list(range(30, 40))


def test_the_examples_in_python_run(tmp_path, monkeypatch, tiny_dataset, capsys):
    """That of the README and, with the run it trained, examples/adapt.py."""
    block = next(
        b
        for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "ertrl.collect" in b
    )
    assert len(block.strip().splitlines()) <= 12, "a short example"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="make demo"):
        runpy.run_path(str(ROOT / "examples" / "adapt.py"))
    # The real functions at the size of a test.
    monkeypatch.setattr(ertrl, "collect", lambda family: tiny_dataset, raising=False)

    def small(method, data):
        return ertrl.api.start(tiny_config(method), data, progress="none")

    monkeypatch.setattr(ertrl, "train", small, raising=False)
    exec(compile(block, "README.md", "exec"), {})
    assert [Run(p) for p in (tmp_path / "runs").iterdir()]
    (tmp_path / "demo").mkdir()
    (tmp_path / "runs").rename(tmp_path / "demo" / "runs")
    runpy.run_path(str(ROOT / "examples" / "adapt.py"))
    assert "random" in capsys.readouterr().out.splitlines()[-1]


def test_the_examples_of_deployment_run(tmp_path, monkeypatch, tiny_run, capsys):
    monkeypatch.chdir(tmp_path)
    step_by_step, without_jax = (
        str(ROOT / "examples" / f"{name}.py")
        for name in ("adapt_step_by_step", "deploy_without_jax")
    )
    with pytest.raises(SystemExit, match="make demo"):
        runpy.run_path(step_by_step)
    with pytest.raises(SystemExit, match="ertrl export"):
        runpy.run_path(without_jax)
    shutil.copytree(tiny_run.path, tmp_path / "demo" / "runs" / tiny_run.name)
    runpy.run_path(step_by_step)
    assert "after 60 transitions" in capsys.readouterr().out
    ertrl.export(tiny_run, "agent")
    done = subprocess.run([sys.executable, without_jax], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "no JAX was needed", done.stderr
    for path in (step_by_step, without_jax):
        assert len(Path(path).read_text().splitlines()) < 60


def test_the_python_of_deployment_runs(tmp_path, monkeypatch, tiny_run, tiny_dataset):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "deploy.md").read_text()
    logs = tiny_dataset.task(25).transitions(np.arange(5))
    ertrl.export(tiny_run, "agent")
    steps = [*zip(*logs[:4], strict=True)]
    known = {"run": tiny_run, "steps": steps, "next_observation": steps[-1][3]}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "deploy.md", "exec"), known)
    assert known["action"].shape == (2,)


def test_the_speed_of_deployed_agents_is_that_of_the_results():
    text = (ROOT / "docs" / "deploy.md").read_text()
    found = json.loads((ROOT / "results" / "bench" / "adapt.json").read_text())
    for name, one in found["methods"].items():
        cells = [f"{one[what]:.0f}" for what in one]
        assert f"| `{name}` | {' | '.join(cells)} |" in text
    assert f"takes {found['least_squares']['update']:.0f} microseconds" in text


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def test_the_page_on_own_logs_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in python_blocks("own-logs.md"):
        exec(compile(block, "own-logs.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()[-2:]  # adapted at once, and step by step
    for line in printed:
        assert abs(float(re.search(r"\[(.*)\]", line).group(1))) <= 8


@pytest.mark.usefixtures("forgets_own_parts")
def test_the_page_on_own_environments_runs():
    names = {}
    for block in python_blocks("own-environment.md"):
        exec(compile(block, "own-environment.md", "exec"), names)
    family = names["family"]()
    assert family.n_tasks == 12
    assert len(python_blocks("own-environment.md")[0].split("def make")[1].splitlines()) < 15


def test_returns_from_own_logs_are_those_of_the_results():
    """An adapted agent beats whoever logged the data, and one that is blind to the task."""
    stored = store.read_json(ROOT / "results" / "own-logs" / "pendulum.json")
    page = (ROOT / "docs" / "own-logs.md").read_text()
    for group, title in (("train", "training tasks"), ("test-id", "held-out tasks")):
        found = stored["summary"][group]
        for returns in stored["seeds"].values():
            tasks = [task for task in returns.values() if task["group"] == group]
            logged, blind, adapted = (
                sum(task[kind] for task in tasks) for kind in ("logged", "blind", "adapted")
            )
            assert adapted > max(logged, blind), "in each seed"
        cells = [f"{found[kind]['mean']:.0f}" for kind in ("logged", "steady", "blind", "adapted")]
        assert f"| {title} | {' | '.join(cells)} |" in page
        for other in ("logged", "steady", "blind"):
            gain = found[f"adapted - {other}"]
            assert f"{gain['mean']:.0f} [{gain['low']:.0f}, {gain['high']:.0f}]" in page
    took = store.read_json(ROOT / "results" / "own-logs" / "page.json")["processor_minutes"]
    assert f"take {took:.1f} minutes of one core" in page
    assert took < 10


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What links to sections of a page can end in."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


by_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@by_page
def test_links_and_pictures_exist(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", prose(page)):
        if not target.startswith("http"):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} points to {target}"
            assert not anchor or anchor in anchors(there), f"{target} has no section {anchor}"


@by_page
def test_lines_are_short_and_have_one_sentence(page):
    lines = [line for line in prose(page).splitlines() if not line.startswith("|")]
    for line in lines:
        without_links = re.sub(r"\]\([^)]*\)", "]()", line)
        assert len(without_links) <= 160, line
        assert not re.search(r"[a-z)`]\. [A-Z][a-z]", line), line


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


@by_page
def test_commands_and_options_that_are_named_exist(page):
    source = [path.read_text() for path in (ROOT / "src" / "ertrl").rglob("*.py")]
    words = {"deps", *re.findall(r"\w+", " ".join(source))}  # --no-deps is pip's
    files = (ROOT / "src" / "ertrl" / "cli").glob("*.py")
    commands = {path.stem.replace("_", "-") for path in files}
    code = page.read_text()
    for command in re.findall(r"(?:^|`)ertrl ([a-z-]+)", code, re.MULTILINE):
        assert command in commands, f"{page.name} names ertrl {command}"
    ours = [line for line in code.splitlines() if "ertrl" in line or line.startswith("|")]
    for option in re.findall(r"[ `]--([a-z][a-z.-]+)", "\n".join(ours)):
        for part in option.split("."):
            name = part.removeprefix("no-").replace("-", "_")
            assert name in words, f"{page.name} names --{option}"


@pytest.mark.parametrize("page", ["add-a-method.md", "add-a-learner.md"])
def test_functions_that_help_exist(page):
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    first_columns = re.findall(
        r"^\| (`[^|]*`) \|", (ROOT / "docs" / page).read_text(), re.MULTILINE
    )
    named = {name for cell in first_columns for name in re.findall(r"(\w+)\(", cell)}
    assert {"minimise", "critic_step"} & named
    assert named <= set(re.findall(r"(?:def|class) (\w+)", source))


@by_page
def test_files_that_are_named_exist(page):
    """`envs/physics.py`, `tests/test_losses.py`, `src/ertrl/methods/`: after a move docs follow."""
    if page.name.startswith("add-a-"):
        pytest.skip("names files that its reader will write")
    made = ("data/", "runs/", "jobs/", "demo/", "build/", "report/")
    made += ("tables/", "figures/", "probes/", "tasks/")
    homes = (ROOT, ROOT / "src" / "ertrl", page.parent)
    for name in re.findall(r"`([\w./-]+/(?:[\w-]+\.(?:py|json|md|yml))?)[`:]", page.read_text()):
        exists = any((home / name).exists() for home in homes)
        assert exists or name.startswith(made), f"{page.name} names {name}"


@by_page
def test_make_knows_the_targets_that_are_named(page):
    known = re.findall(r"^([a-z%-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    scripts = [path.stem for path in (ROOT / "benchmarks").glob("*.py")]
    known += [f"results-{name}" for name in scripts]
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE):
        assert target in known, f"{page.name} names make {target}"


def test_the_paper_map_names_real_functions_and_tests():
    text = (ROOT / "docs" / "paper-map.md").read_text()
    for file, names in re.findall(r"`([a-z_/0-9]+\.py): (\w+)`", text):
        assert f"{names}" in (ROOT / "src" / "ertrl" / file).read_text(), (file, names)
    for test in set(re.findall(r"`(test_\w+\.py)`", text)):
        assert (ROOT / "tests" / test).exists(), test
    public = {n for n in vars(losses) if not n.startswith("_") and n.islower()}
    functions = {n for n in public if getattr(losses, n).__class__.__name__ == "function"}
    assert all(f"losses.py: {name}" in text for name in functions), "every equation is on the map"


def over_seeds(variant: dict, group: str, protocol: str) -> list[float]:
    """Normalised returns of a row of a results.json, one per seed."""
    runs = [run["protocols"][protocol]["normalised"]["mean"] for run in variant["runs"]]
    return [means[group] for means in runs]


def mean_over_seeds(variant: dict, group: str, protocol: str) -> float:
    return float(np.mean(over_seeds(variant, group, protocol)))


def laptop_results(folder: str) -> dict[str, Any]:
    file = ROOT / "results" / "laptop" / folder / "results.json"
    (facts,) = json.loads(file.read_text())["families"].values()
    return facts


def rows_of(family: str) -> dict[str, dict[tuple[str, str], str]]:
    """Label of a row -> (group, protocol) -> normalised return as printed."""
    facts = laptop_results(family)
    most = 5 if family == "cheetah-vel" else 3
    assert {len(variant["runs"]) for variant in facts["variants"]} == {3, most}
    cells = list(product(GROUPS, PAPER_PROTOCOLS))
    rows = {
        variant["label"]: {cell: f"{mean_over_seeds(variant, *cell):.1f}" for cell in cells}
        for variant in facts["variants"]
    }
    assert rows.keys() >= {"Bayes-linear", "ER-TRL", "FOCAL", "CSRO"}
    ends = {kind: np.array(facts["references"][kind]) for kind in ("zero", "random", "expert")}
    idle = 100 * (ends["zero"] - ends["random"]) / (ends["expert"] - ends["random"])
    places = {g: [facts["tasks"].index(t) for t in facts["groups"][g]] for g in GROUPS}
    rows["*zero action*"] = {cell: f"{idle[places[cell[0]]].mean():.1f}" for cell in cells}
    return rows


@pytest.mark.parametrize("family", ["ant-dir", "cheetah-vel"])
def test_the_tables_of_many_methods_are_those_of_the_results(family):
    page = (ROOT / "docs" / "results.md").read_text()
    paper = paper_results()["normalised"]
    for label, row in rows_of(family).items():
        cells = []
        for (group, protocol), ours in row.items():
            theirs = {"train": "ID", "test-ood": "OOD"}.get(group)
            if theirs and label in METHODS:
                printed = paper[theirs][protocol][family][METHODS[label]][0]
                ours += f" ({printed:.1f})"
            cells.append(ours)
        assert f"| {label} | {' | '.join(cells)} |" in page


def test_the_table_of_the_readme_is_that_of_the_results():
    readme = (ROOT / "README.md").read_text()
    rows = rows_of("cheetah-vel")
    for label, row in rows.items():
        new = [row[cell] for cell in product(("test-id", "test-ood"), PAPER_PROTOCOLS)]
        assert f"| {label} | {' | '.join(new)} |" in readme
    contenders = [label for label in rows if label != "*zero action*"]
    logged = [float(rows[label]["test-id", "offline"]) for label in contenders]
    assert f"all nine reach {min(logged):.0f} to {max(logged):.0f} of 100" in readme
    for group, before, ours in (
        ("test-id", "the eight published ones reach", "Bayes-linear, our own,"),
        ("test-ood", "those eight reach", "Bayes-linear"),
    ):
        online = {label: float(rows[label][group, "online"]) for label in contenders}
        best = online.pop("Bayes-linear")
        ends = f"{min(online.values()):.0f} to {max(online.values()):.0f}"
        assert f"{before} {ends}" in readme
        assert f"and {ours} {best:.0f}" in readme


def test_the_returns_on_ant_dir_are_those_of_the_results():
    page = (ROOT / "docs" / "results.md").read_text()
    variants = laptop_results("ant-dir")["variants"]
    for variant in variants:
        told = []
        for group in ("train", "test-ood"):
            returns = [
                np.mean([run["protocols"][p]["returns"]["mean"][group] for run in variant["runs"]])
                for p in PAPER_PROTOCOLS
            ]
            told.append(f"{returns[0]:.0f}, {returns[1]:.0f} and {returns[2]:.0f}")
        assert f"| {variant['label']} | {' | '.join(told)} |" in page
    paper = paper_results()["unnormalised"]
    printed = [
        "{:.0f}, {:.0f} and {:.0f}".format(
            *(paper[group][p]["ant-dir"]["er-trl"][0] for p in PAPER_PROTOCOLS)
        )
        for group in ("ID", "OOD")
    ]
    assert f"| the paper's ER-TRL | {' | '.join(printed)} |" in page


def test_findings_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    file = ROOT / "results" / "laptop" / "cheetah-vel" / "results.json"
    variants = json.loads(file.read_text())["families"]["cheetah-vel"]["variants"]
    runs = {variant["label"]: variant["runs"] for variant in variants}

    def seeds(label: str, group: str, protocol: str) -> list[float]:
        return [run["protocols"][protocol]["normalised"]["mean"][group] for run in runs[label]]

    def mean(label: str, protocol: str) -> float:
        return float(np.mean(seeds(label, "test-id", protocol)))

    others = [label for label in runs if label != "Bayes-linear"]
    ours = {protocol: mean("Bayes-linear", protocol) for protocol in PAPER_PROTOCOLS}
    assert f"{ours['online']:.1f} after {ours['offline']:.1f} on held-out tasks" in page
    lost = [mean(label, "offline") - mean(label, "online") for label in others]
    assert f"The others lose {min(lost):.0f} to {max(lost):.0f} points" in page
    logged = [mean(label, "offline") for label in runs]
    assert f"{min(logged):.0f} to {max(logged):.0f} points on held-out tasks" in page
    far = {
        (label, p): np.mean(seeds(label, "test-ood", p))
        for label, p in product(runs, ("offline", "online"))
    }
    offline, online = (far["Bayes-linear", p] for p in ("offline", "online"))
    assert f"it has {offline:.1f} with logged and {online:.1f} with own context" in page
    rest = max(far[label, "online"] for label in others if label != "GENTLE")
    gentle = far["GENTLE", "online"]
    assert f"GENTLE has {gentle:.1f} with own context, the best of the rest {rest:.1f}" in page

    def likely(group: str) -> list[float]:
        ours = seeds("Bayes-linear", group, "online")
        return sorted(welch(ours, seeds(label, group, "online")).p for label in others)

    assert likely("test-id")[7] < 0.01
    assert likely("test-ood")[7] < 0.01
    (family,) = read_runs([], beside=[file]).families
    for group, beaten in (
        ("test-id", {"ER-TRL", "FOCAL", "CSRO"}),
        ("test-ood", {"ER-TRL", "FOCAL", "CSRO", "OfflinePEARL", "DORA"}),
    ):
        pairs = [
            {c.one.label, c.other.label}
            for c in returns_table(family).comparisons
            if c.column == (group, "online") and c.significant
        ]
        assert set().union(*(pair for pair in pairs if "Bayes-linear" in pair)) == {
            "Bayes-linear",
            *beaten,
        }
    assert "<u>" not in (file.parent / "summary.md").read_text(), "none is better than every other"
    lines = (ROOT / "results" / "tuning" / "learn.jsonl").read_text().splitlines()
    tried = [json.loads(line) for line in lines]
    for family, *returns in (("walker-mass", 477, 589, 521), ("ant-dir", 269, 455, 266)):
        found = {line.get("offline_return") for line in tried if line["family"] == family}
        assert found.issuperset(returns)
        assert all(f" {value}" in page for value in returns)


def test_findings_on_point_robot_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    variants = laptop_results("point-robot")["variants"]
    runs = {variant["label"]: variant["runs"] for variant in variants}
    others = [label for label in runs if label != "Bayes-linear"]
    assert {len(seeds) for seeds in runs.values()} == {5}

    def seeds(label: str, group: str, protocol: str) -> list[float]:
        return [run["protocols"][protocol]["normalised"]["mean"][group] for run in runs[label]]

    def ours_and_best(group: str, protocol: str) -> tuple[float, float]:
        means = {label: float(np.mean(seeds(label, group, protocol))) for label in runs}
        return means.pop("Bayes-linear"), max(means.values())

    for group, protocol in product(GROUPS, PAPER_PROTOCOLS):
        assert np.greater(*ours_and_best(group, protocol))
    logged, _ = ours_and_best("test-id", "offline")
    own, best = ours_and_best("test-id", "online")
    told = f"it has {own:.1f} after {logged:.1f} with logged context; the best of the others has"
    assert f"{told} {best:.1f}." in page
    for protocol, words in (
        ("online", ", the best of the others"),
        ("offline", " against"),
        ("non-prior", " against"),
    ):
        ours, best = ours_and_best("test-ood", protocol)
        assert f"{ours:.1f}{words} {best:.1f}" in page
        mine = seeds("Bayes-linear", "test-ood", protocol)
        assert all(welch(mine, seeds(m, "test-ood", protocol)).p < 0.002 for m in others)
    fresh = [f"{x:.1f}" for x in seeds("Bayes-linear", "test-id", "online")[3:]]
    assert f"have {fresh[0]} and {fresh[1]} with online context on held-out tasks" in page
    summary = (ROOT / "results" / "laptop" / "point-robot" / "summary.md").read_text()
    row = next(line for line in summary.splitlines() if line.startswith("| Bayes-linear"))
    significant = [i for i, cell in enumerate(row.split("|")) if "<u>" in cell]
    assert significant == [10, 11], "out of distribution, online and non-prior"


def test_what_features_and_prior_do_is_what_was_tried():
    page = (ROOT / "docs" / "findings.md").read_text()
    lines = map(json.loads, (ROOT / "results" / "tuning" / "learn.jsonl").read_text().splitlines())
    robot = [line for line in lines if line["family"] == "point-robot" and "scores" in line]
    tried = {line["idea"]: line["scores"] for line in robot}

    def cells(idea: str) -> str:
        wanted = product(("test-id", "test-ood"), PAPER_PROTOCOLS)
        return " | ".join(f"{tried[idea][f'{protocol}/{group}']:.1f}" for group, protocol in wanted)

    for row, idea in (
        ("4 features (seeds 0 to 4)", "to compare with: 4 features, N(0, I)"),
        ("8 features", "8 features"),
        ("16 features", "16 features"),
        ("16 features, learned prior", "16 features, prior 4"),
    ):
        assert f"| {row} | {cells(idea)} |" in page
    drawn = tried["16 features, prior 4: --protocol thompson, samples in the first half"]
    acted = tried["16 features, prior 4"]
    for group, words in (
        ("test-ood", "{:.0f} instead of {:.0f},"),
        ("test-id", "{:.0f} instead of {:.0f} ("),
    ):
        assert words.format(drawn[f"thompson/{group}"], acted[f"online/{group}"]) in page


def test_what_noise_and_spacing_do_is_what_was_tried():
    page = (ROOT / "docs" / "findings.md").read_text()
    lines = map(json.loads, (ROOT / "results" / "tuning" / "learn.jsonl").read_text().splitlines())
    tried = {(t["family"], t["method"], t["idea"]): t["scores"] for t in lines if "scores" in t}
    groups = ("test-id", "test-ood")
    for noise in (3, 1, 0.5, 0.3, 0.1):
        idea = f"16 features, prior 4: an agent that was trained with noise 1 adapts with {noise}"
        scores = tried["point-robot", "bayes-linear", idea]
        wanted = product(groups, (*PAPER_PROTOCOLS, "continual"))
        cells = " | ".join(f"{scores[f'{protocol}/{group}']:.1f}" for group, protocol in wanted)
        assert f"| {noise} | {cells} |" in page

    spaced = "released split: checkpoints that lie denser early (collect --spacing 3)"
    for method, label, idea in (
        ("focal", "FOCAL", spaced),
        ("er-trl", "ER-TRL", "released split: ... ER-TRL"),
        ("bayes-linear", "Bayes-linear", "released split: ... Bayes-linear"),
    ):
        place = ROOT / "results" / "laptop" / "cheetah-vel-released"
        (file,) = place.glob(f"cheetah-vel-{method}-td3bc-s0-*.json")
        even, early = store.read_json(file)["scores"], tried["cheetah-vel", method, idea]
        keys = [f"{protocol}/{group}" for group, protocol in product(groups, PAPER_PROTOCOLS)]
        cells = " | ".join(f"{even[key]:.0f} → {early[key]:.0f}" for key in keys)
        assert f"| {label} | {cells} |" in page
    dense = "the paper's tasks: checkpoints that lie denser early (collect --spacing 3)"
    for method in methods():
        (file,) = (ROOT / "results" / "laptop" / "cheetah-vel").glob(f"*-{method}-td3bc-s0-*.json")
        even, early = store.read_json(file)["scores"], tried["cheetah-vel", method, dense]
        cells = " | ".join(f"{even[key]:.0f} → {early[key]:.0f}" for key in keys)
        assert f"| {method_title(method)} | {cells} |" in page
    # The control: rivals that see next states, too.
    same = "the paper's tasks: next states in the context, as Bayes-linear has them"
    er_trl, focal = (tried["cheetah-vel", method, same] for method in ("er-trl", "focal"))
    own = [scores[f"online/{group}"] for group in groups for scores in (er_trl, focal)]
    text = " ".join(page.split())
    assert f"ER-TRL has {own[0]} with own context on held-out tasks instead of" in text
    assert f"FOCAL {own[1]} instead of" in text
    assert f"they have {own[2]} instead of" in text
    assert f"and {own[3]} instead of" in text
    readme = (ROOT / "README.md").read_text()
    told = (
        "ER-TRL has {0:.0f} and {2:.0f}, FOCAL {1:.0f} and {3:.0f}; with poorer logs the eight have"
    )
    assert told.format(*own) in readme
    poorer = [
        scores["online/test-ood"]
        for (family, method, idea), scores in tried.items()
        if idea == dense and method != "bayes-linear"
    ]
    ours = [tried["cheetah-vel", "bayes-linear", dense][f"{p}/test-ood"] for p in PAPER_PROTOCOLS]
    ends = f"{min(poorer):.0f} to {max(poorer):.0f}"
    assert f"have {ends}, Bayes-linear {ours[1]:.0f} (offline {ours[0]:.0f})." in readme
    known = store.read_json(ROOT / "results" / "bench" / "alarm.json")
    assert all(0.015 < residual < 0.025 for residual in known["residuals"]), "about 2%"


def test_how_many_transitions_are_needed_is_what_was_measured():
    page = (ROOT / "docs" / "findings.md").read_text()
    lines = map(json.loads, (ROOT / "results" / "tuning" / "learn.jsonl").read_text().splitlines())
    tried = {line["idea"]: line["curve"] for line in lines if "curve" in line}
    place = ROOT / "results" / "continual" / "point-robot"
    kept = store.read_json(place / "curves.json")["methods"]
    assert continual.table(kept) == (place / "summary.md").read_text()
    curves = {
        name: {group: np.mean(seeds, axis=0) for group, seeds in kept[method]["curves"].items()}
        for name, method in (
            ("FOCAL", "FOCAL"),
            ("ER-TRL", "ER-TRL"),
            ("Bayes-linear, noise 1", "Bayes-linear"),
        )
    }
    idea = "16 features, prior 4: return with the z of so many own transitions, adapting noise "
    for row, setting in (
        *((f"noise {noise}", f"{noise}") for noise in (0.3, 0.1, 0.03)),
        ("noise 0.03, `at_most` 10", "0.03, at_most 10"),
    ):
        curves[row] = tried[idea + setting]
    counts = kept["FOCAL"]["transitions"]
    places = [counts.index(count) for count in (1, 5, 20, 100, 400)]
    for row, curve in curves.items():
        wanted = product(("test-id", "test-ood"), places)
        cells = " | ".join(f"{curve[group][place]:.0f}" for group, place in wanted)
        assert f"| {row} | {cells} |" in page


def test_what_an_agent_knows_of_itself_is_what_was_measured():
    known = store.read_json(ROOT / "results" / "bench" / "alarm.json")
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert alarm.table(known["worlds"]) in page


def test_what_the_prior_does_elsewhere_is_what_was_tried():
    page = (ROOT / "docs" / "findings.md").read_text()
    lines = map(json.loads, (ROOT / "results" / "tuning" / "learn.jsonl").read_text().splitlines())
    tried = [line for line in lines if "scores" in line]

    def cells(runs: list[dict[str, float]]) -> str:
        wanted = product(("test-id", "test-ood"), PAPER_PROTOCOLS)
        found = [[run[f"{protocol}/{group}"] for run in runs] for group, protocol in wanted]
        return " | ".join(f"{np.mean(seeds):.1f}" for seeds in found)

    def without(family: str, seeds: int) -> list[dict[str, float]]:
        kept = (ROOT / "results" / "laptop" / family).glob(f"{family}-bayes-linear-*.json")
        return [json.loads(file.read_text())["scores"] for file in sorted(kept)][:seeds]

    def with_prior(family: str, idea: str) -> list[dict[str, float]]:
        return [t["scores"] for t in tried if (t["family"], t["idea"]) == (family, idea)]

    for row, runs in (
        ("reach, seeds 0 to 2", without("metaworld-reach", 3)),
        ("reach, learned prior", with_prior("metaworld-reach", "prior 4")),
        ("push, seed 0", without("metaworld-push", 1)),
        ("push, learned prior", with_prior("metaworld-push", "prior 4, at_most 4")),
        ("push, learned prior, `at_most` 0", with_prior("metaworld-push", "prior 4, at_most 0")),
    ):
        assert f"| {row} | {cells(runs)} |" in page
    before, now = without("hopper-mass", 3), with_prior("hopper-mass", "prior 4")
    assert len(before) == len(now) == 3
    for group in ("test-id", "test-ood"):
        means = [np.mean([run[f"online/{group}"] for run in runs]) for runs in (now, before)]
        assert "{:.1f} instead of {:.1f}".format(*means) in page


def test_findings_on_ant_dir_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    variants = laptop_results("ant-dir")["variants"]
    runs = {variant["label"]: variant["runs"] for variant in variants}

    def seeds(label: str, group: str, protocol: str, kind: str = "normalised") -> list[float]:
        return [run["protocols"][protocol][kind]["mean"][group] for run in runs[label]]

    def lost(label: str) -> float:
        first, then = (np.mean(seeds(label, "test-id", p)) for p in ("offline", "online"))
        return float(first - then)

    others = [label for label in runs if label != "Bayes-linear"]
    losses = list(map(lost, others))
    ends = f"{min(losses):.0f} to {max(losses):.0f} points, Bayes-linear {lost('Bayes-linear'):.0f}"
    assert f"the three published methods lose {ends}" in page
    outside = [np.mean(seeds(label, "test-ood", "online")) for label in others]
    ours = np.mean(seeds("Bayes-linear", "test-ood", "online"))
    ends = f"{min(outside):.0f} to {max(outside):.0f}, Bayes-linear {ours:.0f}"
    assert f"these three then reach {ends}" in page
    for label, group in product(others, GROUPS):
        one, other = (seeds(name, group, "online") for name in ("Bayes-linear", label))
        assert welch(one, other).p < 0.02
    entropy, plain = (np.mean(seeds(m, "test-id", "online")) for m in ("ER-TRL", "FOCAL"))
    assert f"{entropy:.1f} against {plain:.1f} on held-out tasks" in page
    own = [np.mean(seeds("FOCAL", "train", p, "returns")) for p in ("offline", "online")]
    assert f"now it returns {own[0]:.0f} and {own[1]:.0f}" in page
    alone = [f"{value:.0f}" for value in seeds("Bayes-linear", "test-ood", "online")]
    assert f"{alone[0]}, {alone[1]} and {alone[2]} with online context" in page
    summary = (ROOT / "results" / "laptop" / "ant-dir" / "summary.md").read_text()
    assert summary.split("\n\n")[0].count("<u>") == 2, "two cells are significant"


def test_findings_where_dynamics_differ_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    families = ("walker-mass", "hopper-friction")
    runs = {f: {v["label"]: v for v in laptop_results(f)["variants"]} for f in families}

    def both(label: str, group: str, protocol: str = "online") -> str:
        first, second = (mean_over_seeds(runs[f][label], group, protocol) for f in families)
        return f"{first:.0f} and {second:.0f}"

    for group, words in (("test-id", "Bayes-linear has"), ("test-ood", "Bayes-linear then has")):
        others = ", ".join(f"{label} {both(label, group)}" for label in ("ER-TRL", "FOCAL"))
        assert f"{words} {both('Bayes-linear', group)}, {others}." in page
    three = ("Bayes-linear", "ER-TRL", "FOCAL")
    logged = [mean_over_seeds(runs[f][m], "test-id", "offline") for f in families for m in three]
    assert f"these three reach {min(logged):.0f} to {max(logged):.0f} on held-out" in page
    hopper = {label: partial(mean_over_seeds, v) for label, v in runs["hopper-friction"].items()}
    assert len(hopper) == 6
    told = [
        f"{hopper['CSRO'](group, protocol):.1f} ({hopper['Bayes-linear'](group, protocol):.0f})"
        for protocol in ("online", "non-prior")
        for group in ("test-id", "test-ood")
    ]
    assert f"online {told[0]} on held-out tasks and {told[1]} out of distribution" in page
    assert f"after a random exploration {told[2]} and {told[3]}, in parentheses" in page
    for cell in product(GROUPS, PAPER_PROTOCOLS):
        assert min(hopper, key=lambda label: hopper[label](*cell)) == "OfflinePEARL"
    explored = {
        label: f"{mean_over_seeds(v, 'test-id', 'non-prior'):.0f}"
        for label, v in runs["walker-mass"].items()
    }
    told = "{Bayes-linear} on held-out tasks, where FOCAL has {FOCAL} and ER-TRL {ER-TRL}"
    assert f"Walker-Mass: {told.format(**explored)}" in page
    for family in families:
        assert "<u>" not in (ROOT / "results" / "laptop" / family / "summary.md").read_text()


def test_findings_on_released_velocities_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    runs = {v["label"]: v for v in laptop_results("cheetah-vel-released")["variants"]}

    def all_three(group: str, protocol: str, labels=("Bayes-linear", "ER-TRL", "FOCAL")) -> list:
        return [round(mean_over_seeds(runs[label], group, protocol)) for label in labels]

    assert set(all_three("test-id", "offline")) == {100}
    told = "with their own experience Bayes-linear {}, ER-TRL {} and FOCAL {}."
    assert told.format(*all_three("test-id", "online")) in page
    told = "with own experience Bayes-linear has {}, ER-TRL {} and FOCAL {}"
    assert told.format(*all_three("test-ood", "online")) + "; an agent" in page
    assert "it is {}, {} and {}.".format(*all_three("test-extreme", "online")) in page
    summary = ROOT / "results" / "laptop" / "cheetah-vel-released" / "summary.md"
    assert summary.read_text().split("\n\n")[0].count("<u>") == 2, "two cells are significant"


def test_findings_on_hopper_mass_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    runs = {v["label"]: v for v in laptop_results("hopper-mass")["variants"]}
    assert len(runs) == 9

    def means(group: str, protocol: str) -> dict[str, float]:
        return {label: mean_over_seeds(v, group, protocol) for label, v in runs.items()}

    for group, protocol in product(GROUPS, PAPER_PROTOCOLS):
        found = means(group, protocol)
        assert max(found, key=found.__getitem__) == "Bayes-linear"
    ends = [means("test-id", protocol).values() for protocol in ("offline", "online")]
    words = "{:.0f} to {:.0f} with logged and {:.0f} to {:.0f} with own context"
    assert words.format(*(end(x) for x in ends for end in (min, max))) in page
    found = means("test-ood", "online")
    ours, best = found.pop("Bayes-linear"), max(found.values())
    words = f"Bayes-linear has {ours:.0f}, the best of the others {best:.0f}, "
    assert words + f"ER-TRL {found['ER-TRL']:.0f} and FOCAL {found['FOCAL']:.0f};" in page
    found = means("test-ood", "non-prior")
    ours, best = found.pop("Bayes-linear"), max(found.values())
    assert f"after a random exploration {ours:.0f}, the best of the others {best:.0f}." in page

    def seeds(label: str) -> list[float]:
        return [
            r["protocols"]["online"]["normalised"]["mean"]["test-ood"] for r in runs[label]["runs"]
        ]

    others = [label for label in runs if label != "Bayes-linear"]
    clear = {label for label in others if welch(seeds("Bayes-linear"), seeds(label)).p < 0.02}
    assert set(others) - clear == {"CSRO", "OfflinePEARL"}
    apart = " and ".join(f"{np.ptp(seeds(label)):.0f}" for label in ("CSRO", "OfflinePEARL"))
    assert f"whose seeds differ by {apart} points" in page
    assert "<u>" not in (ROOT / "results" / "laptop" / "hopper-mass" / "summary.md").read_text()


def test_findings_on_humanoid_dir_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    runs = {v["label"]: v for v in laptop_results("humanoid-dir")["variants"]}
    told = {
        mean_over_seeds(v, "test-id", protocol)
        for v, protocol in product(runs.values(), PAPER_PROTOCOLS)
    }
    assert f"all three reach {min(told):.0f} to {max(told):.0f} with every kind of context" in page
    means = {label: f"{mean_over_seeds(v, 'test-ood', 'online'):.0f}" for label, v in runs.items()}
    assert "has {Bayes-linear}, ER-TRL {ER-TRL} and FOCAL {FOCAL};".format(**means) in page
    ours, *others = (over_seeds(v, "test-ood", "online") for v in runs.values())
    assert all(welch(ours, theirs).p < 0.02 for theirs in others)
    summary = ROOT / "results" / "laptop" / "humanoid-dir" / "summary.md"
    assert "<u>" not in summary.read_text()


def test_findings_on_ant_goal_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    facts = laptop_results("ant-goal")
    runs = {v["label"]: v["runs"] for v in facts["variants"]}

    def mean(label: str, group: str, protocol: str) -> float:
        return np.mean([r["protocols"][protocol]["returns"]["mean"][group] for r in runs[label]])

    for group, protocol in product(("train", "test-id", "test-ood"), PAPER_PROTOCOLS):
        means = {label: mean(label, group, protocol) for label in runs}
        assert max(means, key=means.get) == "Bayes-linear"
    told = {m: [round(mean(m, "test-id", p)) for p in ("offline", "online")] for m in runs}
    ours, entropy, plain = (told[m] for m in ("Bayes-linear", "ER-TRL", "FOCAL"))
    assert f"it returns {ours[0]} with logged and {ours[1]} with own context" in page
    both = f"ER-TRL {entropy[0]} and {entropy[1]}, FOCAL {plain[0]} and {plain[1]}"
    assert f"{both}; an ant that does nothing has -262." in page
    summary = (ROOT / "results" / "laptop" / "ant-goal" / "summary.md").read_text()
    assert summary.split("\n\n")[0].count("<u>") == 1, "one cell is significant"


def test_findings_on_trust_are_those_of_the_results():
    page = (ROOT / "docs" / "findings.md").read_text()
    runs = {v["label"]: v for v in laptop_results("walker-friction")["variants"]}
    told = {m: round(mean_over_seeds(v, "test-id", "non-prior")) for m, v in runs.items()}
    words = "to {Bayes-linear}, where FOCAL has {FOCAL} and ER-TRL {ER-TRL}."
    assert words.format(**told) in page
    online = round(mean_over_seeds(runs["Bayes-linear"], "test-id", "online"))
    assert f"Online it has {online} either way." in page


def test_what_at_most_does_is_what_was_tried():
    page = (ROOT / "docs" / "findings.md").read_text()
    lines = (ROOT / "results" / "tuning" / "learn.jsonl").read_text().splitlines()
    tried = [line for line in map(json.loads, lines) if "returns" in line]

    def held_out(family: str, at_most: int, protocol: str = "online") -> float:
        wanted = {"method": {"at_most": at_most}} if at_most else {}
        (found,) = (
            x
            for x in tried
            if (x["family"], x["settings"], x.get("note")) == (family, wanted, note)
        )
        return found["returns"][protocol]["test-id"]

    note = "5,000 updates"
    assert f"astray at first: {held_out('metaworld-push', 0):.0f} on held-out tasks" in page
    assert f"it returns {held_out('metaworld-push', 4):,.0f}.\n" in page
    with_logs = [held_out("metaworld-push", n, "offline") for n in (4, 32)]
    assert with_logs[0] >= with_logs[1]
    note = None
    assert (
        f"(online {held_out('ant-dir', 0):.0f} \N{RIGHTWARDS ARROW} {held_out('ant-dir', 16):.0f}"
        " with 16)"
    ) in page


def test_what_factors_do_is_that_of_the_results():
    page = " ".join((ROOT / "docs" / "findings.md").read_text().split())
    kept = json.loads((ROOT / "results" / "factors" / "effects.json").read_text())["effects"]

    def effect(family: str, *factors: str) -> dict[str, dict]:
        """'protocol/group' -> the effect there."""
        return {
            key: next(e for e in every if tuple(e["factors"]) == factors)
            for key, every in kept[family].items()
        }

    def clear(effects: dict[str, dict]) -> set[str]:
        return {key for key, e in effects.items() if not e["low"] <= 0 <= e["high"]}

    def told(effects: dict[str, dict], *keys: str) -> list[str]:
        return [f"{abs(effects[key]['value']):.0f}" for key in keys]

    pairs = effect("point-robot", "positive pairs")
    train, held_out, outside = told(pairs, "online/train", "online/test-id", "online/test-ood")
    assert train == held_out
    assert f"they bring {train} points on training and on held-out tasks and {outside} out" in page
    explored = told(pairs, "non-prior/train", "non-prior/test-id")
    assert f"{' and '.join(explored)} points on training and held-out tasks; with logged" in page
    assert not {key for key in clear(pairs) if key.startswith("offline")}
    entropy = effect("point-robot", "entropy term")
    assert clear(entropy) == {"offline/test-ood"}
    gain = entropy["offline/test-ood"]
    assert f"adds {gain['value']:.1f} points ({gain['low']:.1f} to {gain['high']:.1f}) out" in page
    online = [entropy[f"online/{group}"]["value"] for group in GROUPS]
    assert f"it is {min(online):.0f} to {max(online):.0f} points" in page
    assert not clear(effect("point-robot", "positive pairs", "entropy term"))
    apart = effect("point-robot", "independent policies")
    cost = told(apart, "online/train", "online/test-id")
    assert f"Independent policies cost {' and '.join(cost)} points with online context" in page
    assert not clear(effect("point-robot", "entropy term", "independent policies"))
    for family in ("hopper-mass", "walker-mass"):
        known = {tuple(e["factors"]) for every in kept[family].values() for e in every}
        assert not set().union(*(clear(effect(family, *factors)) for factors in known))

    def widest(family: str, *keys: str) -> list[float]:
        ends = [(e["low"], e["high"]) for key in keys for e in kept[family][key]]
        return [min(low for low, _ in ends), max(high for _, high in ends)]

    entropy = effect("cheetah-vel", "entropy term")
    more = effect("cheetah-vel", "entropy term", "independent policies")
    shared = max(abs(entropy[key]["value"] - more[key]["value"]) for key in entropy)
    assert f"it changes no cell by more than {shared:.1f} points" in page
    moved = ("offline/train", "non-prior/test-id", "online/test-ood", "non-prior/test-ood")
    assert clear(entropy) == set(moved)
    words = (
        "{:.0f} points on training tasks with logged context, {:.0f} on held-out tasks after a "
        "random exploration, {:.0f} and {:.0f} out of distribution"
    )
    assert words.format(*(entropy[key]["value"] for key in moved)) in page
    for factors in (("positive pairs",), ("positive pairs", "entropy term")):
        assert not clear(effect("cheetah-vel", *factors))
    apart = effect("cheetah-vel", "independent policies")
    (cost,) = set(told(apart, "online/train", "online/test-id"))
    (gain,) = told(apart, "online/test-ood")
    assert f"cost {cost} points there with online context on training and on held-out" in page
    assert f"and bring {gain} out of distribution" in page
    kept_data = (ROOT / "results" / "factors" / "runs" / "cheetah-vel").glob("data-*.json")
    last = sorted(round(store.read_json(file)["curve"][-1]["train"]) for file in kept_data)
    assert "their last episodes return {}, those of the shared network {}.".format(*last) in page
    low, high = widest("walker-mass", *(f"online/{group}" for group in GROUPS))
    assert f"they reach from {low:.0f} to {high:.0f} points" in page


def test_whom_z_follows_is_that_of_the_results():
    kept, page = swap.kept(), (ROOT / "docs" / "findings.md").read_text()
    for made in swap.summary().split("\n\n"):
        assert made.strip() in page, "make results-overview"

    def ends(method: str) -> str:
        means = [np.mean(found[method]) for found in kept.values()]
        return f"{min(means):.0f} to {max(means):.0f} of 100"

    assert f"FOCAL's z follows the task in {ends('focal')} episodes" in page
    assert f"ER-TRL's z is no better, with {ends('er-trl')}" in page
    assert f"Bayes-linear's z follows the task in {ends('bayes-linear')}" in page
    seeds = {len(found[m]) for f, found in kept.items() for m in found if f != "ant-dir"}
    assert seeds == {3}
    assert {len(runs) for runs in kept["ant-dir"].values()} == {1}
    assert (ROOT / "results" / "swap" / "summary.md").read_text() == swap.summary()
    means = {method: np.mean(found) for method, found in kept["cheetah-vel"].items()}
    ours, gentle = (f"{means.pop(m):.0f}" for m in ("bayes-linear", "gentle"))
    rest = f"{min(means.values()):.0f} to {max(means.values()):.0f}"
    assert (
        f"Bayes-linear's in {ours}, GENTLE's in {gentle}, those of the other seven in {rest}"
        in page
    )


def test_bayes_linear_has_the_highest_mean_with_own_context_wherever_it_was_run():
    rows = [line.split(" | ") for line in overview.own_context_table().splitlines()[2:]]
    assert len(rows) == 12, "README says so"
    below = [row[0] for row in rows if not row[4].startswith("**")]
    assert below == ["| metaworld-push"], "out of distribution; results.md names it"
    below = [row for row in rows if not row[2].startswith("**")]
    assert [row[0] for row in below] == ["| humanoid-dir"], "held-out, online; so it stands there"
    assert set(below[0][2].replace("*", "").split(" / ")) == {"101"}


def test_results_on_meta_world_are_those_of_the_page():
    page = (ROOT / "docs" / "results.md").read_text()
    for folder in overview.META_WORLD:
        assert overview.success_table(folder) in page, "make results-overview"
        summary = (ROOT / "results" / "laptop" / folder / "summary.md").read_text()
        assert "<u>" not in summary, "none is better than every other"
    runs = {v["label"]: v for v in laptop_results("metaworld-reach")["variants"]}
    told = []
    for group in ("test-id", "test-ood"):
        for protocol in ("online", "non-prior"):
            means = {label: mean_over_seeds(v, group, protocol) for label, v in runs.items()}
            assert max(means, key=means.__getitem__) == "Bayes-linear"
        told += [f"{means.pop('Bayes-linear'):.0f}", f"{max(means.values()):.0f}"]
    words = "{0} on held-out tasks and {2} out of distribution, where the best of the others has"
    assert f"{words} {{1}} and {{3}}".format(*told) in page
    runs = {v["label"]: v for v in laptop_results("metaworld-push")["variants"]}

    def success(label: str, place: str) -> float:
        return float(np.mean([run["success_percent"][place] for run in runs[label]["runs"]]))

    others = [success(label, "online/test-ood") for label in runs if label != "Bayes-linear"]
    ours = success("Bayes-linear", "online/test-ood")
    assert f"{ours:.0f}% where the others reach {min(others):.0f} to {max(others):.0f}%" in page
    online = [
        f"{success(label, 'online/test-id'):.0f}%" for label in ("ER-TRL", "FOCAL", "UNICORN")
    ]
    assert "ours fulfil {}, {} and {} of them".format(*online) in page
    alike = [
        " and ".join(f"{mean_over_seeds(runs[m], g, 'online'):.0f}" for m in ("ER-TRL", "FOCAL"))
        for g in ("test-id", "test-ood")
    ]
    assert "alike: {} with online context on held-out tasks, {} out".format(*alike) in page
    best = max(runs, key=lambda label: success(label, "online/test-id"))
    assert best == "Bayes-linear"
    for label in ("SPC", "GENTLE"):
        assert success(label, "offline/test-id") == 100


def test_returns_on_point_robot_are_those_of_the_results():
    page = (ROOT / "docs" / "results.md").read_text()
    results = json.loads((ROOT / "results" / "point-robot" / "results.json").read_text())
    variants = results["families"]["point-robot"]["variants"]

    def held_out(protocol: str) -> dict[str, float]:
        plain = [v for v in variants if v["label"] in METHODS]
        return {v["label"]: mean_over_seeds(v, "test-id", protocol) for v in plain}

    offline, online = held_out("offline"), held_out("online")
    pearl = online.pop("OfflinePEARL")
    ends = f"{min(offline.values()):.0f} to {max(offline.values()):.0f}"
    assert f"all methods reach {ends} with offline context" in page
    ends = f"{min(online.values()):.0f} to {max(online.values()):.0f}"
    assert f"reach {ends}, but OfflinePEARL {pearl:.0f}" in page


def test_the_two_learners_are_those_of_the_results():
    page = (ROOT / "docs" / "results.md").read_text()
    learners = {"TD3+BC": "point-robot", "BRAC": "point-robot/brac"}
    found = {
        learner: {v["label"]: v for v in laptop_results(place)["variants"]}
        for learner, place in learners.items()
    }
    cells = list(product(("test-id", "test-ood"), PAPER_PROTOCOLS))
    for method in ("ER-TRL", "FOCAL"):
        for learner in learners:
            variant = found[learner][method]
            row = " | ".join(f"{mean_over_seeds(variant, *cell):.0f}" for cell in cells)
            assert f"| {method}, {learner} ({len(variant['runs'])} seeds) | {row} |" in page
        for cell in cells:
            one, other = (found[learner][method] for learner in learners)
            assert abs(mean_over_seeds(one, *cell) - mean_over_seeds(other, *cell)) < 10
            assert welch(over_seeds(one, *cell), over_seeds(other, *cell)).p > 0.05


def test_speeds_are_those_of_the_results():
    def stored(name: str) -> dict:
        return json.loads((ROOT / "results" / "bench" / name).read_text())

    page = (ROOT / "docs" / "results.md").read_text()
    readme = (ROOT / "README.md").read_text()
    for family, texts in (("cheetah-vel", [page, readme]), ("ant-dir", [page])):
        kept = (ROOT / "results" / "laptop" / family).glob(f"{family}-*.json")
        seconds = [json.loads(file.read_text())["seconds"] for file in kept]
        minutes = [taken / 60 for taken in seconds if taken]  # null: it was interrupted
        for text in texts:
            assert f"{min(minutes):.1f} to {max(minutes):.1f} minutes" in text
    peak = {name: m["fraction_of_peak"] for name, m in stored("train.json")["methods"].items()}
    assert f"{peak.pop('er-trl'):.2f} of the machine" in page
    assert f"the other methods at {min(peak.values()):.2f} to {max(peak.values()):.2f}" in page
    ratios = [f["ratio"] for f in stored("env.json")["families"].values() if "ratio" in f]
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times" in page
    rows = stored("evaluate.json")["rows"]
    seconds = [row["seconds"] for row in rows]
    assert f"takes {min(seconds):.0f} to {max(seconds):.0f} seconds" in page
    assert all(f"{row['protocol_steps']:,} control steps" in page for row in rows)
    walker = stored("evaluate-walker.json")["rows"]
    assert len({row["result_sha256"] for row in walker}) == 1
    before, now = ([r["seconds"] for r in part] for part in (walker[:2], walker[2:]))
    assert f"takes {min(now):.0f} to {max(now):.0f} seconds, three times less" in page
    assert min(before) / max(now) > 2.8
    faster = stored("processes.json")["speed_of_one_thread_each"]
    assert f"{faster:.1f} times as fast" in (ROOT / "docs" / "reproduce.md").read_text()


def test_the_hours_of_the_whole_paper_are_those_of_the_results():
    import hours

    assert hours.table() in (ROOT / "docs" / "reproduce.md").read_text()
    assert sum(sum(hours.hours_of(family)[:2]) for family in paper_families()) < 16


def test_the_page_on_scaling_is_that_of_the_results():
    from scaling import PLACE, page

    made = page(*(json.loads((PLACE / f"{name}.json").read_text()) for name in ("scaling", "gpus")))
    assert (ROOT / "docs" / "scaling.md").read_text() == made, "make results-scaling"


def test_the_effect_of_next_states_is_that_of_the_results():
    text = (ROOT / "docs" / "results.md").read_text()
    results = json.loads((ROOT / "results" / "cheetah-vel" / "results.json").read_text())
    variants = {v["label"]: v["runs"] for v in results["families"]["cheetah-vel"]["variants"]}

    def mean(label: str, protocol: str, group: str) -> float:
        runs = [r["protocols"][protocol]["normalised"]["mean"] for r in variants[label]]
        return float(np.mean([r[group] for r in runs]))

    for label in METHODS:
        cells = [
            " \N{RIGHTWARDS ARROW} ".join(
                f"{mean(name, protocol, group):.1f}"
                for name in (label, f"{label} (next_observation=true)")
            )
            for group in ("test-id", "test-ood")
            for protocol in ("offline", "online", "non-prior")
        ]
        assert f"| {label} | {' | '.join(cells)} |" in text


def test_what_a_collection_takes_is_what_was_measured():
    text = (ROOT / "docs" / "collection.md").read_text()
    table = (ROOT / "results" / "collect" / "summary.md").read_text()
    assert table in text
    (kept,) = (ROOT / "results" / "laptop" / "cheetah-vel").glob("data-*.json")
    data = store.read_json(kept)
    readme = (ROOT / "README.md").read_text()
    assert f"its data {data['seconds'] / 60:.1f} minutes" in readme


@pytest.mark.parametrize(
    "file", sorted((ROOT / "results" / "collect").glob("*.json")), ids=lambda p: p.stem
)
def test_collections_were_measured_with_the_profile_that_is_shipped(file):
    found = json.loads(file.read_text())
    # A setting that is newer than a file has its default there.
    made_with = replace_from_json(CollectConfig(), found["config"])
    assert made_with == collect_config("laptop", found["family"])


def test_cells_that_reach_the_papers_are_counted_from_the_results():
    found = beside_paper.main(beside_paper.FILES)
    text = (ROOT / "docs" / "results.md").read_text()
    assert f"at least the paper's in {found['met']} of {found['cells']} cells" in text
    assert f"as a third of ours it is in {found['met_with_bayes_linear']}." in text
    offline = [c for c in found["missed"] if c["protocol"] == "offline"]
    (missed,) = ((c["family"], c["group"], c["paper"] - c["return"]) for c in offline)
    assert (*missed[:2], round(missed[2])) == ("hopper-friction", "test-ood", 3)
    assert found["met"] + len(found["missed"]) == found["cells"] == 8 * 2 * 3
    below = {cell.split()[0] for cell in found["worse_than_nothing"]}
    assert below == {"ant-goal"}, "the docs name it"
    best = max(
        np.mean([run["protocols"]["online"]["returns"]["mean"]["test-ood"] for run in v["runs"]])
        for v in laptop_results("ant-dir")["variants"]
        if v["method"] in beside_paper.PAIR
    )
    (cell,) = (
        c
        for c in found["missed"]
        if (c["family"], c["group"], c["protocol"]) == ("ant-dir", "test-ood", "online")
    )
    assert cell["return"] == pytest.approx(best)


def test_the_table_of_methods_is_that_of_the_results():
    assert overview.table() in (ROOT / "docs" / "methods.md").read_text(), "make results-overview"
    assert overview.costs()["focal"] == 1
    # Six cells per family, each with one best method.
    family = json.loads((ROOT / "results" / "point-robot" / "results.json").read_text())
    found = overview.best(family["families"]["point-robot"])
    assert sum(found.values()) == 6
    assert set(found) >= set(METHODS.values())


def test_rows_of_brac_are_trained_again_with_the_settings_they_had():
    stored = json.loads((ROOT / "results" / "brac" / "results.json").read_text())["rows"]
    assert stored.keys() == brac.ROWS.keys()
    for name, row in brac.ROWS.items():
        config = train_config("laptop", row.family, "focal", row.learner)
        wanted = to_json(replace_from_json(config, {"learner": row.settings}).learner)
        had = stored[name]["learner"]
        assert {k: had[k] for k in had.keys() & wanted.keys()} == {
            k: wanted[k] for k in had.keys() & wanted.keys()
        }
        assert stored[name]["updates"] == row.updates


def test_tables_of_all_families_are_those_of_the_results():
    page = (ROOT / "docs" / "results.md").read_text()
    found = beside_paper.main(beside_paper.FILES)
    assert len(found["expert"]) == 8
    assert beside_paper.by_family(found) in page, "make results-overview"
    assert overview.own_context_table() in page, "make results-overview"
    walker = {v["method"]: v["runs"] for v in laptop_results("walker-mass")["variants"]}
    ours, theirs = (
        [run["protocols"]["online"]["returns"]["mean"]["test-id"] for run in walker[method]]
        for method in ("er-trl", "focal")
    )
    ends = f"{np.mean(theirs):.0f} and seeds from {min(theirs):.0f} to {max(theirs):.0f}"
    assert f"{np.mean(ours):.0f} on held-out tasks, where FOCAL has {ends}" in page


def test_the_correlation_over_families_is_that_of_the_results():
    text = (ROOT / "results" / "benefit" / "README.md").read_text()
    table = (ROOT / "results" / "benefit" / "benefit.md").read_text()
    assert table[table.index("| Tasks | Context |") :].split("\n\n")[0] in text


def test_what_style_does_is_that_of_the_results():
    text = (ROOT / "results" / "style" / "README.md").read_text()
    stored = json.loads((ROOT / "results" / "style" / "point-robot" / "results.json").read_text())
    rows = {}
    for family in stored["families"].values():
        for variant in family["variants"]:
            told = [f"{mean_over_seeds(variant, 'test-id', p):.1f}" for p in ("offline", "online")]
            rows.setdefault(variant["label"], []).append(" / ".join(told))
    assert len(rows) == 3
    for label, cells in rows.items():
        assert f"| {label} | {' | '.join(cells)} |" in text
    gap = (ROOT / "results" / "style" / "point-robot" / "gap.md").read_text()
    assert "18.5 ± 18.4" in gap.splitlines()[6]
    assert "18.5 ± 18.4" in text

"""What the documentation shows works as shown."""

import importlib.util
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ertrl
from conftest import tiny_config
from ertrl import losses
from ertrl.config import replace_from_json, to_json
from ertrl.envs import GROUPS, rollout
from ertrl.learners import get_learner
from ertrl.profiles import collect_config, train_config
from ertrl.reporting.paper import paper_results
from ertrl.training import Run
from ertrl.training.config import TrainConfig
from ertrl.training.update import init, make_chunk, run_key

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


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
    from ertrl.data import Sampler

    method = module_from("add-a-method.md", tmp_path).METHOD
    learner = get_learner("td3bc")
    config = TrainConfig(method=method.config(), learner=learner.config())
    sizes = {"encoder": {"hidden": [16], "latent_dim": 4, "learning_rate": 1e-2}}
    config = replace_from_json(config, {"method": sizes, "learner": {"hidden": [16]}})
    state = init(method, learner, config, tiny_dataset.dims)
    sampler = Sampler(tiny_dataset, tiny_config("focal").sampling, 0, seed=0)
    _, metrics = make_chunk(method, learner, config)(state, sampler.batches(0, 200), run_key(0))
    entropy = np.asarray(metrics["cross_entropy"])
    assert entropy[-20:].mean() < 0.8 * entropy[:20].mean()


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


def test_the_python_example_of_the_readme_runs(tmp_path, monkeypatch, tiny_dataset):
    block = next(
        b
        for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "ertrl.collect" in b
    )
    assert len(block.strip().splitlines()) <= 14, "a short example"
    monkeypatch.chdir(tmp_path)
    # The real functions at the size of a test.
    monkeypatch.setattr(ertrl, "collect", lambda family: tiny_dataset, raising=False)
    train = ertrl.api.train

    def small(method, data, **options):
        values = {
            "updates": 20,
            "updates_per_call": 10,
            "evaluate_every": 20,
            "checkpoint_every": 20,
            "evaluation": {"episodes": 3, "prior_episodes": 1},
        }
        return train(method, data, settings=values, progress="none")

    monkeypatch.setattr(ertrl, "train", small, raising=False)
    exec(compile(block, "README.md", "exec"), {})
    assert [Run(p) for p in (tmp_path / "runs").iterdir()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_and_pictures_exist(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_the_paper_map_names_real_functions_and_tests():
    text = (ROOT / "docs" / "paper-map.md").read_text()
    for file, names in re.findall(r"`([a-z_/0-9]+\.py): (\w+)`", text):
        assert f"{names}" in (ROOT / "src" / "ertrl" / file).read_text(), (file, names)
    for test in set(re.findall(r"`(test_\w+\.py)`", text)):
        assert (ROOT / "tests" / test).exists(), test
    public = {n for n in vars(losses) if not n.startswith("_") and n.islower()}
    functions = {n for n in public if getattr(losses, n).__class__.__name__ == "function"}
    assert all(f"losses.py: {name}" in text for name in functions), "every equation is on the map"


def test_the_readmes_numbers_come_from_the_results():
    readme = (ROOT / "README.md").read_text()
    results = json.loads((ROOT / "results" / "cheetah-vel" / "results.json").read_text())
    paper = paper_results()["normalised"]
    for variant in results["families"]["cheetah-vel"]["variants"]:
        cells = [variant["label"]]
        for group, theirs in (("train", "ID"), ("test-id", None), ("test-ood", "OOD")):
            for protocol in ("offline", "online", "non-prior"):
                ours = [r["protocols"][protocol]["normalised"]["mean"] for r in variant["runs"]]
                cells.append(f"{np.mean([mean[group] for mean in ours]):.1f}")
                if theirs:
                    printed = paper[theirs][protocol]["cheetah-vel"][variant["method"]][0]
                    cells[-1] += f" ({printed:.1f})"
        assert f"| {' | '.join(cells)} |" in readme
    facts = results["families"]["cheetah-vel"]
    ends = {kind: np.array(facts["references"][kind]) for kind in ("zero", "random", "expert")}
    idle = 100 * (ends["zero"] - ends["random"]) / (ends["expert"] - ends["random"])
    rows = [[facts["tasks"].index(t) for t in facts["groups"][g]] for g in GROUPS]
    cells = [f"{idle[row].mean():.1f}" for row in rows for _ in range(3)]
    assert f"| *zero action* | {' | '.join(cells)} |" in readme
    updates = json.loads((ROOT / "results" / "bench" / "train-laptop.json").read_text())["methods"]
    minutes = [5000 / m["updates_per_second"] / 60 for m in updates.values()]
    assert f"{min(minutes):.1f} to {max(minutes):.1f} minutes" in readme
    train = json.loads((ROOT / "results" / "bench" / "train.json").read_text())
    assert f"{train['methods']['er-trl']['fraction_of_peak']:.2f} of the machine" in readme
    families = json.loads((ROOT / "results" / "bench" / "env.json").read_text())["families"]
    ratios = [f["ratio"] for f in families.values() if "ratio" in f]
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times" in readme
    rows = json.loads((ROOT / "results" / "bench" / "evaluate.json").read_text())["rows"]
    seconds = [row["seconds"] for row in rows]
    assert f"takes {min(seconds):.0f} to {max(seconds):.0f} seconds" in readme
    assert all(f"{row['protocol_steps']:,} control steps" in readme for row in rows)


def test_the_effect_of_next_states_is_that_of_the_results():
    text = (ROOT / "docs" / "methods.md").read_text()
    results = json.loads((ROOT / "results" / "cheetah-vel" / "variants.json").read_text())
    variants = {v["label"]: v["runs"] for v in results["families"]["cheetah-vel"]["variants"]}

    def mean(label: str, protocol: str, group: str) -> float:
        runs = [r["protocols"][protocol]["normalised"]["mean"] for r in variants[label]]
        return float(np.mean([r[group] for r in runs]))

    for label in ("ER-TRL", "FOCAL", "CSRO", "UNICORN", "OfflinePEARL"):
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
    assert (ROOT / "results" / "collect" / "summary.md").read_text() in text


@pytest.mark.parametrize(
    "file", sorted((ROOT / "results" / "collect").glob("*.json")), ids=lambda p: p.stem
)
def test_collections_were_measured_with_the_profile_that_is_shipped(file):
    found = json.loads(file.read_text())
    assert found["config"] == to_json(collect_config("laptop", file.stem))
    assert found["met"], "docs/collection.md says what is aimed at"


def test_rows_of_brac_are_trained_again_with_the_settings_they_had(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import brac  # ty: ignore[unresolved-import]

    stored = json.loads((ROOT / "results" / "brac" / "results.json").read_text())["rows"]
    assert stored.keys() == brac.ROWS.keys()
    for name, row in brac.ROWS.items():
        _, config = train_config("laptop", row.family, "focal", row.learner)
        wanted = to_json(replace_from_json(config, {"learner": row.settings}).learner)
        had = stored[name]["learner"]
        assert {k: had[k] for k in had.keys() & wanted.keys()} == {
            k: wanted[k] for k in had.keys() & wanted.keys()
        }
        assert stored[name]["updates"] == row.updates


def test_returns_on_all_families_are_those_of_the_results():
    readme = (ROOT / "README.md").read_text()
    results = json.loads((ROOT / "results" / "benefit" / "results.json").read_text())
    paper = paper_results()["unnormalised"]["ID"]
    assert len(results["families"]) == 8
    for family, facts in results["families"].items():
        rows = [facts["tasks"].index(t) for t in facts["groups"]["train"]]
        cells = [family, f"{np.array(facts['references']['expert'])[rows].mean():.0f}"]
        by_method = {v["method"]: v["runs"] for v in facts["variants"]}
        for method in ("er-trl", "focal"):
            for group, protocol in product(("train", "test-id"), ("offline", "online")):
                found = [r["protocols"][protocol]["returns"]["mean"] for r in by_method[method]]
                cells.append(f"{np.mean([mean[group] for mean in found]):.0f}")
                if group == "train":
                    cells[-1] += f" ({paper[protocol][family][method][0]:.0f})"
        assert f"| {' | '.join(cells)} |" in readme


def test_the_correlation_over_families_is_that_of_the_results():
    text = (ROOT / "docs" / "report.md").read_text()
    table = (ROOT / "results" / "benefit" / "benefit.md").read_text()
    assert table[table.index("| Tasks | Context |") :].split("\n\n")[0] in text

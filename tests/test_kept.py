"""Results that were kept: the grid knows them by name, and does not run them again."""

import json
from dataclasses import replace

import pytest

import laptop
from ertrl.config import fingerprint
from ertrl.launch.reproduce import paper_grid
from ertrl.reporting.read.identity import configuration
from ertrl.reporting.read.runs import read_runs
from shared import KEEP, known_runs

OLDER = {"metaworld-push": "bayes-linear", "metaworld-reach": "bayes-linear"}
"""Made before the profile changed, as results/laptop/README.md says."""
WORDS = {
    place.name: place.name.replace("-released", ":split=released")
    for place in sorted((KEEP / "laptop").iterdir())
    if place.is_dir()
}


def grid_of(folder):
    return paper_grid([WORDS[folder]], ["all"], range(5), probe_transitions=0)


@pytest.mark.parametrize("folder", WORDS)
def test_kept_runs_are_those_of_the_profile_that_is_shipped(folder):
    place = KEEP / "laptop" / folder
    (family,) = json.loads((place / "results.json").read_text())["families"].values()
    current = [v for v in family["variants"] if v["method"] != OLDER.get(folder)]
    names = {run["run"] for variant in current for run in variant["runs"]}
    assert names
    assert names <= set(known_runs(grid_of(folder), place).values())


def test_nothing_is_known_of_other_settings(tmp_path):
    place, others = KEEP / "laptop" / "hopper-mass", {"updates": 200}
    changed = paper_grid(["hopper-mass"], ["focal"], range(3), train_settings=others)
    assert not known_runs(changed, place)
    assert not known_runs(grid_of("hopper-mass"), tmp_path)


def test_known_results_can_be_joined_by_new_seeds(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(laptop, "WORK", tmp_path)
    place, grid = KEEP / "laptop" / "hopper-mass", grid_of("hopper-mass")
    known = known_runs(grid, place)
    some = {label: name for label, name in known.items() if "focal" in label or "csro" in label}
    file = laptop.results_of(some.values(), place / "results.json")
    (family,) = read_runs([], beside=[file]).families
    assert {v.label: len(v.runs) for v in family.variants} == {"FOCAL": 3, "CSRO": 3}
    assert "left out" in capsys.readouterr().out
    cell = next(cell for cell in grid.cells if cell.label in some)
    config = replace(grid.train_config(cell), seed=7)  # of a seed that is run elsewhere
    (joined,) = (v for v in family.variants if v.method == cell.contender.method)
    assert {run.configuration for run in joined.runs} == {fingerprint(configuration(config))}

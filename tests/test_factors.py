"""Factorial experiments: effects that were put in come out, with intervals that hold."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from ertrl.launch.reproduce import paper_grid
from factors import effects, grid

NAMES = ("a", "b", "c")


def cells(draw=None, seeds=5):
    """a adds 4, b adds 1, both together 2 more; c does nothing."""
    found = {}
    for a, b, c in product((False, True), repeat=3):
        mean = 4 * a + b + 2 * (a and b)
        noise = draw.normal(size=seeds) * (1 + 2 * c) if draw else np.zeros(seeds)
        found[a, b, c] = mean + noise
    return found


def test_effects_that_were_put_in_come_out():
    found = {effect.factors: effect.estimate.value for effect in effects(NAMES, cells())}
    # The interaction of 2 shows with half of the cells of either factor, as 1 each.
    assert found[("a",)] == pytest.approx(5)
    assert found[("b",)] == pytest.approx(2)
    assert found["a", "b"] == pytest.approx(1)
    others = {k: v for k, v in found.items() if "c" in k}
    assert len(others) == 4
    assert all(abs(value) < 1e-12 for value in others.values())


def test_one_factor_is_welchs_test():
    draw = np.random.default_rng(1)
    with_it, without = draw.normal(1, 2, 4), draw.normal(0, 1, 7)
    (effect,) = effects(("a",), {(True,): with_it, (False,): without})
    expected = stats.ttest_ind(with_it, without, equal_var=False).confidence_interval(0.95)
    assert effect.estimate.value == pytest.approx(with_it.mean() - without.mean())
    assert (effect.estimate.low, effect.estimate.high) == pytest.approx(tuple(expected))


def test_intervals_hold_what_they_promise():
    draw, inside = np.random.default_rng(2), 0
    for _ in range(400):
        effect = effects(NAMES, cells(draw))[0].estimate
        inside += effect.low < 5 < effect.high
    assert 0.92 < inside / 400 < 0.985


def test_one_seed_has_no_interval_and_every_cell_is_needed():
    assert effects(NAMES, cells(seeds=1))[0].estimate.low is None
    with pytest.raises(ValueError, match="8 cells, got 7"):
        effects(NAMES, dict(list(cells().items())[1:]))


def test_runs_of_the_papers_grid_are_not_made_again():
    """Policies shared, positive pairs: that is the laptop profile as it is."""
    runs, found = grid(["point-robot"], toy=False)
    assert len(found) == 8
    ours = {job.name for job in runs.jobs()}
    papers = {job.name for job in paper_grid(["point-robot"], ["er-trl", "focal"]).jobs()}
    shared = {name for name in papers if not name.startswith("probe-")}
    assert len(shared) == 1 + 2 * 5
    assert shared < ours

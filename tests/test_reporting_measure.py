"""Measuring: statistics over seeds, comparisons, ablations, gains, what z knows."""

import json
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ertrl import store
from ertrl.reporting.draw import draw_gains
from ertrl.reporting.measure import comparison, gain, representation, scores
from ertrl.reporting.measure import statistics as stats
from ertrl.reporting.measure.comparison import Column, returns_table
from ertrl.reporting.measure.help_of_z import help_of_z
from ertrl.reporting.measure.lead import leads
from ertrl.reporting.measure.statistics import holm
from ertrl.reporting.read.dataset import read_material
from ertrl.reporting.read.identity import Identity
from ertrl.reporting.read.runs import read_runs
from ertrl.reporting.write import sentences
from ertrl.reporting.write.numbers import raw_numbers
from ertrl.reporting.write.tables import gains_markdown
from fake_runs import (
    GROUPS,
    TASKS,
    enrich,
    fake_run,
    lose,
    material,
    pair,
    styled,
    two_by_three,
)

ER_TRL, FOCAL = Identity("er-trl"), Identity("focal")


def test_mean_and_t_interval_agree_with_scipy():
    x = np.array([3.0, 5.0, 10.0, 4.0])
    low, high = scipy_stats.t.interval(0.95, 3, x.mean(), scipy_stats.sem(x))
    estimate = stats.mean_estimate(x)
    assert estimate.n == 4
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((5.5, low, high))


def test_two_seeds_by_hand():
    # mean 5, deviation sqrt(2), standard error 1, t(0.975, 1 degree of freedom) = 12.7062
    estimate = stats.mean_estimate([4.0, 6.0])
    assert estimate.half_width == pytest.approx(12.7062, abs=1e-4)


def test_one_seed_has_no_interval():
    assert stats.mean_estimate([7.0]) == stats.Estimate(7.0, 1)
    assert stats.mean_estimate([7.0]).half_width is None


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]]])
def test_a_mean_needs_one_number_per_seed(values):
    with pytest.raises(ValueError, match="one number per seed"):
        stats.mean_estimate(values)


def test_welch_by_hand():
    a, b = [10.0, 12.0, 14.0], [1.0, 2.0, 6.0]
    error = np.sqrt(4 / 3 + 7 / 3)
    degrees = error**4 / ((4 / 3) ** 2 / 2 + (7 / 3) ** 2 / 2)
    found = stats.welch(a, b)
    assert found is not None
    assert found.value == pytest.approx(9.0)
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(9 / error, degrees))
    half = scipy_stats.t.ppf(0.975, degrees) * error
    assert (found.low, found.high) == pytest.approx((9 - half, 9 + half))


@pytest.mark.parametrize(("a", "b"), [([1.0], [2.0, 3.0]), ([1.0, 1.0], [2.0, 2.0])])
def test_what_cannot_be_tested_is_not(a, b):
    assert stats.welch(a, b) is None


def test_holm_by_hand():
    # sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 -> kept at 0.06, 0.5 x 1
    assert stats.holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert stats.holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert stats.holm([]) == []


def test_interquartile_mean():
    strata = [np.array([[0.0, 1, 2], [3, 4, 5]]), np.array([[6.0, 1000]])]
    assert stats.iqm_estimate(strata).value == pytest.approx(3.5)


def test_probability_of_improvement_by_hand():
    x = np.array([[1.0, 5.0], [2.0, 5.0]])
    y = np.array([[1.0, 4.0], [0.0, 6.0]])
    # task 0: 1>1 half, 1>0, 2>1, 2>0 -> 3.5/4; task 1: 5>4, not 5>6, twice -> 2/4
    assert stats.improvement_estimate(x, y).value == pytest.approx((3.5 / 4 + 2 / 4) / 2)
    u = scipy_stats.mannwhitneyu(x[:, 0], y[:, 0]).statistic
    assert stats.improvement_estimate(x[:, :1], y[:, :1]).value == pytest.approx(u / 4)


def test_the_interval_of_improvement_is_that_of_resampled_returns():
    """To the bit, though pairs of seeds are compared but once."""
    draw = np.random.default_rng(0)
    x, y = (draw.normal(size=(seeds, 7)).round(1) for seeds in (5, 4))
    one, other = stats.resampled([x, y])
    one, other = one[:, :, None], other[:, None]
    outcomes = ((one > other) + 0.5 * (one == other)).mean(axis=(1, 2, 3))
    found = stats.improvement_estimate(x, y)
    assert (found.low, found.high) == tuple(np.quantile(outcomes, [0.025, 0.975]))


def test_improvement_takes_little_memory():
    """Not that of all tasks of all pairs of seeds in every resample: 0.9 GB here."""
    x = np.random.default_rng(0).normal(size=(10, 400))
    tracemalloc.start()
    stats.improvement_estimate(x, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_bootstrap_draws_whole_seeds_within_strata():
    strata = [np.arange(12.0).reshape(4, 3), 100 + np.arange(4.0).reshape(2, 2)]
    one, other = stats.resampled(strata)
    assert one.shape == (stats.RESAMPLES, 4, 3)
    assert other.shape == (stats.RESAMPLES, 2, 2)
    seeds = {tuple(row) for row in strata[0]}
    assert {tuple(row) for row in one.reshape(-1, 3)} == seeds
    assert other.min() >= 100


def test_bootstrap_interval_covers_and_repeats():
    draw = np.random.default_rng(1)
    hits = 0
    for _ in range(60):
        estimate = stats.iqm_estimate([draw.normal(size=(12, 5))])
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= 0 <= estimate.high
    assert hits >= 48  # percentile intervals of 12 seeds are somewhat short of 95%
    x = draw.normal(size=(5, 4))
    assert stats.iqm_estimate([x]) == stats.iqm_estimate([x])


def test_bootstrap_of_two_seeds_gives_no_interval():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert stats.iqm_estimate([x]).low is None
    assert stats.improvement_estimate(x, x + 1).low is None


def test_improvement_of_a_clear_winner():
    x = np.zeros((4, 3))
    assert stats.improvement_estimate(x + 1, x) == stats.Estimate(1.0, 4, 1.0, 1.0)
    assert stats.improvement_estimate(x, x).value == 0.5


def test_performance_profile_by_hand():
    scores = np.array([[10.0, 60.0], [50.0, 90.0], [20.0, 100.0]])
    share, band = stats.profile([scores], np.array([0.0, 50.0, 95.0, 100.0]))
    assert share == pytest.approx([1, 3 / 6, 1 / 6, 0])  # 50 itself does not exceed 50
    assert (band[0] <= share).all()
    assert (share <= band[1]).all()
    assert band[:, 0].tolist() == [1, 1]
    assert np.isnan(stats.profile([scores[:2]], np.array([0.0]))[1]).all()


def test_correlation_agrees_with_scipy_and_needs_three_points():
    x, y = [0.1, 0.2, 0.5, 0.9], [1.0, 3.0, 2.0, 6.0]
    found = stats.pearson(x, y)
    expected = scipy_stats.pearsonr(x, y)
    assert found == pytest.approx((expected.statistic, expected.pvalue))
    assert stats.pearson([0.1, 0.2], [1.0, 2.0]) is None
    assert stats.pearson([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None


# --- the table of returns ---


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """Two methods and three seeds, measured and probed."""
    runs = [enrich(run) for run in two_by_three(tmp_path_factory.mktemp("rich"))]
    return read_runs(runs).families[0]


@pytest.fixture(scope="module")
def table(family):
    return returns_table(family)


def test_seeds_are_averaged_and_anchors_are_there(table):
    assert [row.key for row in table.rows] == [ER_TRL, FOCAL, "expert", "zero", "random"]
    assert [row.anchor for row in table.rows] == [False, False, True, True, True]
    estimate = table.cell(ER_TRL, ("test-id", "online")).estimate
    assert estimate.value == pytest.approx(81.0)
    assert estimate.n == 3
    assert estimate.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-5)
    for anchor, score in {"expert": 100, "zero": 25, "random": 0}.items():
        assert table.cell(anchor, ("train", "offline")).estimate.value == pytest.approx(score)


def test_groups_come_in_reading_order(table):
    assert [c.group for c in table.columns[::3]] == ["train", "test-id", "test-ood"]
    assert [c.protocol for c in table.columns[:3]] == ["offline", "online", "non-prior"]


def test_only_clear_differences_are_marked(table):
    online, offline = (table.cell(ER_TRL, ("test-id", p)) for p in ("online", "offline"))
    assert (online.best, online.significant) == (True, True)
    assert (offline.best, offline.significant) == (True, False)
    assert not table.cell(FOCAL, ("test-id", "online")).best


@pytest.mark.parametrize(("methods", "seeds"), [(("focal",), 2), (("er-trl", "focal"), 1)])
def test_one_method_or_one_seed_has_won_nothing(tmp_path, methods, seeds):
    runs = [fake_run(tmp_path, method, seed) for method in methods for seed in range(seeds)]
    table = returns_table(read_runs(runs).families[0])
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_a_variant_that_was_not_measured_does_not_hide_a_winner(tmp_path):
    """Nor has one won that stands alone in a column."""
    runs = two_by_three(tmp_path)
    runs += [fake_run(tmp_path, "csro", seed, scores={"thompson": 50.0 + seed}) for seed in (0, 1)]
    table = returns_table(read_runs(runs).families[0])
    online = table.cell(ER_TRL, ("test-id", "online"))
    assert (online.best, online.significant) == (True, True)
    alone = table.cell(Identity("csro"), ("test-id", "thompson"))
    assert (alone.estimate.n, alone.best, alone.significant) == (2, False, False)


def test_only_what_is_shown_is_resampled(family, monkeypatch):
    """Probabilities of improvement take long, and most tables do not show them."""
    monkeypatch.setattr(stats, "improvement_estimate", lambda x, y: pytest.fail("nobody asked"))
    assert len(returns_table(family).comparisons) == 9


def test_improvements_are_in_the_order_of_the_comparisons(family, table):
    found = comparison.improvements(family, table)
    told = dict(zip((c.column for c in table.comparisons), found, strict=True))
    assert told["test-id", "online"] == stats.Estimate(1.0, 3, 1.0, 1.0)
    assert 0 < told["test-id", "offline"].value < 1


def test_without_a_task_that_all_have_measured_nobody_improves(tmp_path):
    """One method lost the one task of a group, the other one the other."""
    runs = two_by_three(tmp_path)
    for run in runs:
        lose(run, "online", task=4 + ("focal" in run.name), repeats=(0, 1))
    family = read_runs(runs).families[0]
    table = returns_table(family)
    found = zip(table.comparisons, comparison.improvements(family, table), strict=True)
    assert [c.column for c, better in found if better is None] == [("test-id", "online")]
    columns, rows = comparison.interquartile_means([family])
    for row in rows:
        pairs = zip(columns, row.cells, strict=True)
        assert [c for c, cell in pairs if cell is None] == [("test-id", "online")]


def test_unnormalised_returns(family):
    cell = returns_table(replace(family, normalised=False)).cell("expert", ("train", "offline"))
    assert cell.estimate.value == pytest.approx(-5.0)


def test_what_was_not_measured_is_missing(tmp_path):
    runs = [
        fake_run(tmp_path, "er-trl", 0),
        fake_run(tmp_path, "er-trl", 1, steps=(500, 1000)),
        fake_run(tmp_path, "focal", scores={"offline": 70.0}),
        fake_run(tmp_path, "csro", steps=()),
    ]
    results = read_runs(runs)
    table = returns_table(results.families[0])
    late = table.cell(ER_TRL, ("train", "offline"))
    assert (late.estimate.n, late.expected) == (1, 2)
    assert table.cell(FOCAL, ("train", "online")).estimate is None
    assert table.cell(Identity("csro"), ("train", "offline")).estimate is None
    assert any("seed 1 was evaluated only up to update 1000" in note for note in results.notes)
    assert any("CSRO has not been evaluated yet" in note for note in results.notes)


def test_ablations_are_compared_with_the_whole_method(tmp_path):
    runs = []
    for seed in range(3):
        for weight, online in ((0.5, 80.0), (0.0, 30.0)):
            scores = {"offline": 90.0 + seed, "online": online + seed}
            settings = {"method": {"mi_weight": weight}}
            name = f"run-{weight}-{seed}"
            runs.append(fake_run(tmp_path, seed=seed, scores=scores, settings=settings, name=name))
    family = read_runs(runs).families[0]
    table = returns_table(family)
    ((base, (row,)),) = comparison.ablations(family, table).items()
    assert base.label == "ER-TRL (mi_weight=0.5)"
    change = row.cells[table.columns.index(("test-id", "online"))]
    assert change.estimate.value == pytest.approx(-50.0)
    assert change.estimate.low < -50 < change.estimate.high < 0
    assert change.significant


def test_the_plain_variant_is_what_others_are_compared_with():
    plain, other = Identity("er-trl", profile="laptop"), Identity("er-trl", learner="brac")
    changed = Identity("er-trl", settings=(("a", "1"),))
    variants = [SimpleNamespace(method="er-trl", identity=i) for i in (changed, other, plain)]
    cells = {"label": "", "place": 0, "runs": ()}
    for variant in variants:
        variant.__dict__.update(cells)
    table = SimpleNamespace(columns=())
    found = comparison.ablations(SimpleNamespace(variants=variants), table)
    assert {base: [row.key for row in rows] for base, rows in found.items()} == {
        plain: [changed, other]
    }


def test_a_variant_that_lacks_a_family_is_not_averaged(tmp_path):
    runs = two_by_three(tmp_path)
    runs.append(fake_run(tmp_path, "er-trl", 0, family="ant-dir"))
    columns, (er_trl,) = comparison.interquartile_means(read_runs(runs).families)
    assert len(columns) == 9
    assert er_trl.label == "ER-TRL"
    assert all(cell is not None for cell in er_trl.cells)
    assert er_trl.seeds == "1\N{EN DASH}3"


def test_who_is_ahead_is_corrected_for_what_is_asked_only(tmp_path):
    runs = two_by_three(tmp_path)  # ER-TRL 90 to 91 offline, FOCAL about as much
    for seed in range(3):
        scores = {"offline": 60.0 + 0.1 * seed, "online": 40.0 + seed}
        runs.append(fake_run(tmp_path, "csro", seed, scores=scores))
    table = returns_table(read_runs(runs).families[0])
    columns = [Column("test-id", "offline"), Column("test-id", "online"), Column("x", "online")]
    found, tests = leads(table, columns)
    assert list(found) == columns[:2], "what was not measured has nobody ahead"
    assert tests == 4, "in each of two cells the best with each of two others"
    for column, lead in found.items():
        estimates = {
            row.label: row.cells[table.columns.index(column)].estimate for row in table.methods
        }
        assert list(lead.means) == sorted((e.value for e in estimates.values()), reverse=True)
        assert estimates[lead.label].value == lead.means[0]
        assert (lead.seeds, lead.compared) == ((3, 3), lead.means)
    asked = {
        (c.column, c.one.label, c.other.label): c.difference.p
        for c in table.comparisons
        if c.column in columns and found[c.column].label in (c.one.label, c.other.label)
    }
    corrected = dict(zip(asked, holm(list(asked.values())), strict=True))
    for column, lead in found.items():
        own = [p for (where, *_), p in corrected.items() if where == column]
        assert lead.clear == all(p < 0.05 for p in own)
    assert found[columns[1]].clear
    assert not found[columns[0]].clear, "ER-TRL and FOCAL are alike there"
    (alone,) = leads(returns_table(read_runs(runs[:1]).families[0]), columns[:1]).of.values()
    assert not alone.clear, "ahead of nobody"
    runs.append(fake_run(tmp_path, "unicorn", scores={"offline": 99.0, "online": 1.0}))
    found = leads(returns_table(read_runs(runs).families[0]), columns[:2]).of
    assert not found[columns[0]].clear, "one seed of UNICORN is above it"
    assert not found[columns[1]].clear, "who has one seed cannot be compared"
    assert all(lead.seeds == (3, 3) and len(lead.compared) == 3 for lead in found.values())


def told_by_logs(tmp_path, value, prediction, seed=0):
    """A family of one run without a simulator."""
    run = fake_run(tmp_path, scores={}, steps=(2000,), seed=seed)
    file = run / "evaluations" / "00002000.json"
    logs = {"discount": 0.9, "value": value, "prediction": prediction}
    store.write_json(file, {**store.read_json(file), "references": {}, "logs": logs})
    return read_runs(run).families[0]


@pytest.mark.parametrize(
    ("difference", "errors", "verdicts"),
    [
        ((1.0, 1.05), {"reward": (0.2, 0.4)}, [True, True]),
        ((1.0, 1.05), {"reward": (0.4, 0.4)}, [True, False]),
        ((1.0, 1.05), {"reward": (0.4, 0.4), "next state": (0.05, 0.9)}, [True, True]),
        ((-1.0, -1.05), {}, [False]),
        ((9.0, -3.0), {"reward": (0.295, 0.3)}, [False, False]),
        (None, {}, []),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_whether_z_helps_as_far_as_logs_can_tell(tmp_path, difference, errors, verdicts, offset):
    """By the value of each held-out task, wherever rewards have their 0, and by what z explains."""
    value = {"policy": [None] * len(TASKS), "blind": [offset + 3.0 * task for task in TASKS]}
    if difference:
        for task, more in zip(GROUPS["test-id"], difference, strict=True):
            value["policy"][task] = value["blind"][task] + more
    prediction = {target: {"test-id": list(pair)} for target, pair in errors.items()}
    family = told_by_logs(tmp_path, value, prediction)
    (found,) = help_of_z(family)
    assert found.group == "test-id"
    assert found.verdicts == verdicts
    said = {(): "do not tell", (True,): "z helps", (False,): "nothing shows that z helps"}
    expected = said.get(tuple(dict.fromkeys(verdicts)), "it is not clear whether z helps")
    told = sentences.help_told(family)
    assert expected.lower() in told.lower()
    assert all(f"of the {target}" in told for target in errors)


def test_seeds_that_disagree_show_no_help_of_z(tmp_path):
    """However much all tasks agree in the mean."""
    for seed, more in enumerate((4.0, -3.0, 0.5)):
        value = {"blind": [10.0] * len(TASKS), "policy": [10.0 + more] * len(TASKS)}
        told_by_logs(tmp_path, value, {}, seed)
    (found,) = help_of_z(read_runs(tmp_path).families[0])
    assert found.value.with_z > found.value.without
    assert not found.more_value


def test_the_papers_numbers_stand_beside_ours_where_it_has_them(tmp_path):
    family = read_runs(two_by_three(tmp_path, family="cheetah-vel")).families[0]
    rows = comparison.beside_paper(family, returns_table(family))
    assert len(rows) == 2 * 6  # two methods; the paper has no held-out tasks
    assert rows[0].theirs[0] == 96.36
    assert rows[0].difference == pytest.approx(91.0 - 96.36)


# --- context and representation ---


def test_latent_shift_by_hand():
    offline = np.array([[[1.0, 0.0]], [[-1.0, 0.0]]])  # two tasks, spread 1
    online = np.array([[[1.0, 2.0], [1.0, 1.0]], [[-1.0, 0.0], [-1.0, 0.0]]])
    assert scores.latent_shift(offline, online) == pytest.approx([1.5, 0.0])
    assert scores.latent_shift(offline, offline).tolist() == [0.0, 0.0]


def test_oracle_and_shift(family):
    oracle = scores.oracle_rows(family)[0]
    assert [cell.value for cell in oracle.cells] == pytest.approx([95.0] * 3)
    lost, moved = scores.shift_rows(family).rows[0].cells[:2]
    assert lost.value == pytest.approx(10.0)
    # Offline z lies at (task, 0), online at (task, 2): 2 over the spread of 0..7, sqrt(5.25).
    assert moved.value == pytest.approx(2 / np.sqrt(5.25))


def test_what_z_knows(family):
    probed = representation.probes_of(family)
    found = representation.regression(family, probed)
    er_trl, _, constant = found.rows
    assert [cell.value for cell in er_trl.cells] == pytest.approx([0.25, 0.2] * 2)
    assert constant.anchor
    assert [cell.value for cell in constant.cells] == pytest.approx([0.5] * 4)
    assert "paper" not in [column.group for column in found.columns]
    er_trl, _, raw, chance = representation.leak(family, probed)
    assert [cell.value for cell in er_trl.cells] == pytest.approx([31, 32, 33, 60, 30, 10])
    assert [cell.value for cell in raw.cells] == pytest.approx([71, 72, 73])
    assert [cell.value for cell in chance.cells] == pytest.approx([10] * 3)
    er_trl, _ = representation.swap(family, probed).rows
    told = [cell.value for cell in er_trl.cells]
    assert told == pytest.approx([25, 50, 75, 90, 80, 70, 10, -20, 130])


def test_whom_z_follows_counts_the_seeds_that_were_asked(tmp_path):
    runs = [enrich(fake_run(tmp_path, "focal", seed)) for seed in (0, 1, 2)]
    for run, swap in zip(
        runs, (None, {"missing": "there is no simulator to act in"}), strict=False
    ):
        path = run / "probes" / "00002000.json"
        content = store.read_json(path)
        kept = {k: v for k, v in content.items() if k not in ("swap", "sha256")}
        store.write_json(path, {**kept, **({"swap": swap} if swap else {})})
    family = read_runs(runs).families[0]
    probed = representation.probes_of(family)
    assert [row.seeds for row in representation.swap(family, probed).rows] == ["1"]
    assert representation.not_measured(probed, "swap") == ["there is no simulator to act in"]


def test_regression_beside_the_papers_and_probes_that_are_missing(tmp_path):
    runs = [fake_run(tmp_path, "focal", seed, family="cheetah-vel") for seed in (0, 1)]
    enrich(runs[0])
    family = read_runs(runs).families[0]
    assert [seed for _, seed in representation.not_probed(family)] == [1]
    found = representation.regression(family, representation.probes_of(family))
    assert found.columns[-1] == ("paper", "SVR")
    assert found.rows[0].cells[-2].value == pytest.approx(0.172, abs=5e-4)


# --- when does the objective help ---


def test_gain_against_distance(tmp_path):
    expected_gains, distances = {"a": 0.0, "b": 4.0, "c": 20.0}, {"a": 0.1, "b": 0.3, "c": 0.4}
    results = read_runs(
        [run for name, points in expected_gains.items() for run in pair(tmp_path, name, points)]
    )
    found = gain.gains(results, [material(distances[f.family]) for f in results.families])
    online = [p for p in found.with_distance if (p.group, p.protocol) == ("test-id", "online")]
    assert [(p.distance, p.gain) for p in online] == [
        (distances[f], pytest.approx(points - 0.5)) for f, points in expected_gains.items()
    ]
    assert all(p.low < p.gain < p.high for p in online)
    expected = scipy_stats.pearsonr(list(distances.values()), list(expected_gains.values()))
    assert set(draw_gains(found)) == {"distance"}
    trend = next(t for t in found.trends if (t.group, t.protocol) == ("test-id", "online"))
    assert (trend.r, trend.p) == pytest.approx((expected.statistic, expected.pvalue))
    # All groups and protocols of these runs have the same gains: Holm multiplies by their number.
    assert trend.p_holm == pytest.approx(min(1.0, len(found.trends) * trend.p))
    table = gains_markdown(found)
    point = next(p for p in online if p.family == "c")
    assert f"| c | 0.400 | Held-out tasks | 19.5 [{point.low:.1f}, {point.high:.1f}]" in table
    assert (
        f"| Held-out tasks | online | {trend.r:.2f} | {trend.p:.3f} | {trend.p_holm:.3f} | 3 |"
        in table
    )
    known = [material(distances[f.family]) for f in results.families]
    numbers = raw_numbers(results, known, found)
    stored = json.loads(json.dumps(numbers))["benefit"]
    assert stored["trends"][0]["families"] == 3
    assert len(stored["points"]) == len(found.points)
    # Whoever reads these numbers without their runs and data finds the same.
    store.write_json(tmp_path / "results.json", numbers)
    alone = read_runs([], beside=[tmp_path])
    again = gain.gains(alone, read_material(alone, []))
    assert [p.distance for p in again.points] == [p.distance for p in found.points]
    assert [t.r for t in again.trends] == pytest.approx([t.r for t in found.trends])


def test_what_is_missing_is_named(tmp_path):
    runs = [*pair(tmp_path, "a", 1.0), fake_run(tmp_path, "focal", family="b")]
    found = gain.gains(read_runs(runs), [material(None), material(0.2)])
    assert [reason[:25] for reason in found.missing] == [
        "a: its dataset does not s",
        "b: no run of ER-TRL to co",
    ]
    assert not draw_gains(found)
    alone = read_runs([fake_run(tmp_path, "focal", family="b")])
    assert gain.gains(alone, [material(0.2)]) is None


def test_strengths_of_style_are_doses_of_one_family(tmp_path):
    results = read_runs(styled(tmp_path))
    found = gain.gains(results, [material(0.1, 0.0), material(0.5, 2.0)])
    doses = [(p.style, p.gain) for p in found.doses if p.group == "test-ood"]
    assert doses == [(0.0, pytest.approx(1.0)), (2.0, pytest.approx(9.0))]
    assert {p.family for p in found.with_distance} == {"point-robot (style=0)"}
    assert {p.base for p in found.points} == {"point-robot"}
    assert set(draw_gains(found)) == {"dose"}

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ertrl.reporting import stats


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
    assert stats.interquartile_mean(np.array([0.0, 1, 2, 3, 4, 5, 6, 1000])) == pytest.approx(3.5)
    x = np.random.default_rng(0).normal(size=(3, 41))
    assert stats.interquartile_mean(x) == pytest.approx(scipy_stats.trim_mean(x, 0.25, axis=1))


def test_probability_of_improvement_by_hand():
    x = np.array([[1.0, 5.0], [2.0, 5.0]])
    y = np.array([[1.0, 4.0], [0.0, 6.0]])
    # task 0: 1>1 half, 1>0, 2>1, 2>0 -> 3.5/4; task 1: 5>4, not 5>6, twice -> 2/4
    assert stats.probability_of_improvement(x, y) == pytest.approx((3.5 / 4 + 2 / 4) / 2)
    u = scipy_stats.mannwhitneyu(x[:, 0], y[:, 0]).statistic
    assert stats.probability_of_improvement(x[:, :1], y[:, :1]) == pytest.approx(u / 4)


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

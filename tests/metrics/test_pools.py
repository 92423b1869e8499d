"""What outputs can decide, against all draws of a small pool, against simulation, and by hand with ties."""

from itertools import combinations

import numpy as np
import pytest

from metabo.errors import ConfigError
from metabo.metrics import pools


@pytest.mark.parametrize(("n", "draws"), [(1, 1), (5, 1), (6, 3), (7, 7), (4, 9)])
def test_the_best_rank_of_draws_agrees_with_all_draws(n, draws):
    best = [min(chosen) for chosen in combinations(range(n), min(n, draws))]
    expected = [np.mean([rank <= k for rank in best]) for k in range(n)]
    np.testing.assert_allclose(pools.best_of_draws(n, draws), expected, atol=1e-12)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("queries", [1, 10, 100])
def test_random_regret_agrees_with_simulation(queries, level):
    rng = np.random.default_rng(3)
    y = np.round(rng.normal(size=400), 1)  # ties
    runs = np.array([y.max() - rng.choice(y, queries, replace=False).max() for _ in range(4000)])
    found = pools.random_regret(y, queries, level)
    # The quantile of a discrete distribution: at least `level` at or below it, less strictly below it.
    assert (runs <= found + 1e-9).mean() >= level - 0.03
    assert (runs < found - 1e-9).mean() <= level + 0.03


def test_random_regret_by_hand():
    y = np.array([0.0, 3.0, 1.0, 2.0])
    assert pools.random_regret(y, 1) == 1.0  # 3 or 2 in half of the draws, exactly
    assert pools.random_regret(y, 2) == 0.0  # 3 pairs of 6 have the best
    assert pools.random_regret(y, 1, 0.75) == 2.0 and pools.random_regret(y, 1, 1.0) == 3.0
    assert pools.random_regret(y, 99) == 0.0
    assert pools.random_regret(np.array([5.0]), 10) == 0.0 and pools.random_regret(np.full(9, 5.0), 1) == 0.0


def test_no_draw_is_refused():
    with pytest.raises(ConfigError, match="draws: 0 must be at least 1"):
        pools.random_regret(np.arange(3.0), 0)


def test_counts_and_gap_with_ties():
    y = np.array([10.0, 10.0 - 1e-12, 9.999, 9.9, 5.0, 4.0, 0.0])
    assert pools.scale(y) == pytest.approx(0.1)
    assert pools.at_best(y) == 2  # 1e-12 is less than 1e-9 of the range
    assert pools.near_best(y, 0.01) == 3 and pools.near_best(y, 0.02) == 3 and pools.near_best(y, 1.0) == 4
    assert pools.gap(y) == pytest.approx(0.001)


@pytest.mark.parametrize("y", [np.array([2.0]), np.full(6, -1.5)])
def test_a_pool_of_one_output(y):
    assert pools.scale(y) == 0 and pools.at_best(y) == len(y) == pools.near_best(y, 0.01)
    assert np.isnan(pools.gap(y))


def test_half_of_the_rows_at_the_best_leave_no_scale():
    y = np.array([1.0, 1.0, 1.0, 0.0])
    assert pools.scale(y) == 0 and pools.near_best(y, 0.5) == 3 and pools.gap(y) == 1


def test_the_resolution_is_the_gap_or_the_noise_of_the_best_rows():
    y = np.concatenate([[5.0, 4.7], np.linspace(0, 3, 18)])
    assert pools.resolution(y) == pytest.approx(0.3)
    noise = np.full(20, 9.0)
    noise[:2] = 0.4, 0.6  # the best tenth
    assert pools.resolution(y, noise) == pytest.approx(0.5)
    noise[:2] = 0.1, np.nan
    assert pools.resolution(y, noise) == pytest.approx(0.3)
    assert pools.resolution(y, np.full(20, np.nan)) == pytest.approx(0.3)
    assert pools.resolution(np.full(4, 2.0)) == 0

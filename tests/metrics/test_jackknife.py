"""The jackknife against SciPy's intervals of the draws themselves."""

import re

import numpy as np
import pytest
from scipy import stats

from metabo.errors import DataError
from metabo.metrics.jackknife import jackknife


def test_a_jackknife_of_means_is_students_interval_of_the_draws():
    draws = np.random.default_rng(3).normal(size=7)
    found = jackknife((draws.sum() - draws) / 6)
    expected = stats.t.interval(0.95, 6, loc=draws.mean(), scale=stats.sem(draws))
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-12)
    assert found.estimate == pytest.approx(draws.mean())


def test_jackknife_edges():
    """A draw that decides nothing leaves no doubt; one value says nothing of others."""
    assert jackknife(np.full(6, 0.25)) == (0.25, 0.25, 0.25)
    alone = jackknife(np.array([2.0]))
    assert alone.estimate == 2.0 and np.isnan([alone.low, alone.high]).all()
    for wrong in (np.empty(0), np.ones((2, 3))):
        with pytest.raises(DataError, match=re.escape(f"got shape {wrong.shape}")):
            jackknife(wrong)

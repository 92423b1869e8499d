"""The instance in which τ is early: the variance ratio at x_τ is that of few observations, not of T - 1."""

import jax
import numpy as np

from metabo.papers.hyperbo.theory import tau


def test_the_ratio_is_that_of_an_early_iteration():
    """N = 60, T = 20: (N-1)/N = 0.98 at iteration 1, 0.95 at iteration 3, (N-T)/N = 0.67 at the last one."""
    found = tau.ratios(jax.random.key(6), 60, 20, 0.1, 40, 400)
    assert found.mean() - 4.0 * found.std() / np.sqrt(len(found)) > 0.85 and found.mean() < 1.05


def test_no_arm_is_queried_twice():
    """N = 1000 has a small β: with repeats the ratio would be that of a repeated input, hundreds (I3)."""
    found = tau.ratios(jax.random.key(6), 1000, 20, 0.1, 40, 200)
    assert 0.9 < found.mean() < 1.05 and found.max() < 2.0

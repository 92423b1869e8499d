"""Acquisition maximisation over the unit cube: known optima, never worse than the starts, honest about ties and NaN."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import qmc

from metabo.bo.continuous import halton, maximise


def at(score, points, *data):
    """Scores of NumPy points."""
    return np.asarray(score(jnp.asarray(np.atleast_2d(points)), *data))


def bowl(x, optimum):
    return -((x - optimum) ** 2 @ jnp.asarray([1.0, 4.0, 0.5]))


@cache
def compiled(score, polish, steps):
    return jax.jit(lambda starts, priority, data: maximise(lambda x: score(x, *data), starts, priority, polish, steps))


def solve(score, starts, *data, polish=4, steps=30, priority=None):
    """Maximise `score(x, *data)`; one program per score function and size."""
    priority = np.random.default_rng(9).uniform(size=len(starts)) if priority is None else priority
    return np.asarray(compiled(score, polish, steps)(jnp.asarray(starts), jnp.asarray(priority), data))


def starts(count=32, dim=3, seed=0):
    return halton(count, dim, np.random.default_rng(seed))


def test_starts_are_a_scrambled_halton_sequence():
    points = starts(256, 4)
    assert points.shape == (256, 4) and (points >= 0).all() and (points < 1).all()
    np.testing.assert_array_equal(points, starts(256, 4))
    assert not np.isclose(points, starts(256, 4, seed=1)).any()
    uniform = np.random.default_rng(0).uniform(size=(256, 4))
    assert qmc.discrepancy(points) < 0.3 * qmc.discrepancy(uniform)


@pytest.mark.parametrize(
    "optimum",
    [(0.3, 0.6, 0.45), (0.0, 0.5, 1.0), (1.0, 1.0, 1.0), (1.3, -0.2, 0.5)],
    ids=["interior", "face", "corner", "outside"],
)
def test_a_known_optimum_is_found(optimum):
    """A concave quadratic: its maximum over the cube is the nearest point of the cube."""
    nearest, place = np.clip(optimum, 0, 1), jnp.asarray(optimum)
    found = solve(bowl, starts(), place)
    # A maximum exactly on a face, flat there, is of fourth order in u: found slowly, at next to no loss.
    on_face = any(o in (0.0, 1.0) for o in optimum)
    np.testing.assert_allclose(found, nearest, atol=2e-3 if on_face else 1e-5)
    assert at(bowl, found, place) >= at(bowl, nearest, place) - 1e-5


def test_a_linear_score_ends_in_its_corner():
    found = solve(lambda x: x @ jnp.asarray([1.0, -2.0, 0.1]), starts())
    np.testing.assert_allclose(found, [1.0, 0.0, 1.0], atol=1e-6)


def waves(seed):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(0, 12, (6, 2))), jnp.asarray(rng.uniform(0, 7, 6))


def rough(x, weight, phase):
    """Many local maxima with steps between them, as a function of (m, 2) points."""
    return jnp.sin(x @ weight.T + phase).sum(axis=1) + jnp.floor(3 * x[:, 0])


@pytest.mark.parametrize("seed", range(6))
def test_the_result_is_in_the_cube_and_never_worse_than_a_start(seed):
    data, points = waves(seed), starts(24, 2, seed)
    found = solve(rough, points, *data, polish=3, steps=8)
    assert (found >= 0).all() and (found <= 1).all()
    assert at(rough, found, *data) >= at(rough, points, *data).max()


def test_polishing_improves_and_more_starts_of_it_find_more():
    """On average over functions; on any one the best start may be polished best."""

    def best(seed, points, polish):
        return at(rough, solve(rough, points, *waves(seed), polish=polish, steps=8), *waves(seed))

    raw, one, many = [], [], []
    for seed in range(12):
        points = starts(24, 2, seed)
        raw.append(at(rough, points, *waves(seed)).max())
        one.append(best(seed, points, 1))
        many.append(best(seed, points, 3))
    assert np.mean(raw) < np.mean(one) - 0.1 and np.mean(one) < np.mean(many) - 0.02


def test_more_polished_starts_than_there_are():
    np.testing.assert_allclose(solve(bowl, starts(3), jnp.full(3, 0.5), polish=9), 0.5, atol=1e-5)


def test_a_flat_score_gives_the_start_of_highest_priority():
    points = starts(10)
    run = jax.jit(lambda priority: maximise(lambda x: 0.0 * x[:, 0] + 1.0, jnp.asarray(points), priority, 2, 3))
    for place in (0, 6, 9):
        np.testing.assert_array_equal(run(jnp.where(jnp.arange(10) == place, 0.9, 0.5)), points[place])


def holed(x, edge, side):
    """The first coordinate, NaN where side x (x1 - edge) > 0."""
    return jnp.where(side * (x[:, 0] - edge) > 0, jnp.nan, x[:, 0])


def test_scores_that_are_not_numbers_never_win():
    points, priority = starts(20, 2), np.arange(20.0)
    found = solve(holed, points, 0.4, 1.0, priority=priority)  # NaN where the score would be best
    assert points[:, 0][points[:, 0] <= 0.4].max() <= found[0] <= 0.4
    found = solve(holed, points, -1.0, 1.0, priority=priority)  # NaN everywhere: a start, by priority
    np.testing.assert_array_equal(found, points[19])

"""The test functions of HE-GP-UCB's paper against numbers of its figures and of the authors' later code; draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from metabo.errors import ConfigError
from metabo.papers.hegpucb import problems

LINE = problems.grid((10001,))


@pytest.mark.parametrize(
    ("variant", "highest", "at", "gap"),
    [("code", 0.7452, 0.2062, 0.1452), ("printed", 4.1097, 0.2010, 3.5097), ("bump", 0.9214, 0.2048, 0.3214),
     ("variance", 1.2612, 0.2430, 0.6405)],
)  # fmt: skip
def test_readings_of_the_lengthscale_function(variant, highest, at, gap):
    f = problems.lengthscale_function(LINE, variant)
    assert f.max() == pytest.approx(highest, abs=1e-4) and LINE[f.argmax(), 0] == pytest.approx(at, abs=2e-4)
    assert f.max() - f[-1] == pytest.approx(gap, abs=2e-4)


def test_lengthscale_function_of_the_later_code():
    expected = 0.6 * LINE[:, 0] + stats.norm.pdf(LINE[:, 0], 0.2, 0.08) / 8
    np.testing.assert_allclose(problems.lengthscale_function(LINE), expected, rtol=1e-12)


def test_the_period_function_is_whole_sines_that_meet_at_zero():
    ends = np.array(problems.PIECES)[:, None]
    for side in (0.0, -1e-12):
        np.testing.assert_allclose(problems.period_function(ends[1:-1] + side), 0.0, atol=1e-9)
    x = np.linspace(0, 2, 4001)[:, None]
    f = problems.period_function(x)
    assert f.max() == pytest.approx(1.5) and x[f.argmax(), 0] == pytest.approx(7 / 16)
    np.testing.assert_allclose(
        problems.period_function(x[x[:, 0] < 1]), problems.period_function(x[x[:, 0] < 1] + 1), atol=1e-9
    )
    middle = np.array(
        [[1 / 16], [3 / 16], [5 / 16], [7 / 16], [0.5 + 3 / 56], [0.5 + 9 / 56], [5 / 7 + 1 / 14], [13 / 14]]
    )
    np.testing.assert_allclose(problems.period_function(middle), [-1, 1, -1.5, 1.5, -1.2, 1.2, 0.8, -0.8], atol=1e-9)


def test_the_printed_readings_of_the_period_function():
    just = np.array([[0.5], [5 / 7 - 1e-12], [1 - 1e-12]])
    np.testing.assert_allclose(problems.period_function(just, "text"), [0.521, 1.170, 0.625], atol=1e-3)
    assert problems.period_function(np.array([[15 / 56]]), "text")[0] == pytest.approx(1.5)
    np.testing.assert_allclose(problems.period_function(np.array([[0.3], [0.4]]), "literal"), -1.299, atol=1e-3)


def test_the_decomposition_function_of_the_authors_code():
    found = problems.decomposition_function(np.array([[0.8, 0.8, 0.1], [0.3, 0.3, 0.4], [0.8, 0.3, 0.9]]))
    np.testing.assert_allclose(found, [3.437432141, 2.2764, 1.1368], atol=1e-4)
    x = np.random.default_rng(0).uniform(size=(50, 3))
    covariance = 0.02 * np.array([[1, 0.75], [0.75, 1]])
    mode = stats.multivariate_normal([0.8, 0.8], covariance).pdf(x[:, :2]) / 3.5
    single = (np.exp(-((x[:, :2] - 0.3) ** 2) / 0.02) / (0.2 * np.pi)).sum(axis=1) * 2.5 / 3.5
    np.testing.assert_allclose(problems.decomposition_function(x), mode + single)
    np.testing.assert_array_equal(
        found, problems.decomposition_function(np.array([[0.8, 0.8, 1], [0.3, 0.3, 0], [0.8, 0.3, 0.0]]))
    )


def test_hills():
    x = problems.grid((401,))
    means = problems.hill_means(x)
    assert means.shape == (11, 401)
    np.testing.assert_allclose(means.max(axis=1), [4.0] * 10 + [2.0])
    assert [x[m.argmax(), 0] for m in means[:10]] == pytest.approx([0.05 + 0.1 * i for i in range(10)])
    assert problems.hill_means(np.array([[0.07]]), 1.0, 0.04)[10, 0] == pytest.approx(0.5)
    assert (problems.hill_means(x, 2.0, 0.02) == 0).mean() > (means == 0).mean()


def test_kernels_are_correlations():
    x = problems.grid((4, 3, 2))
    assert x.shape == (24, 3) and x[1].tolist() == [0, 0, 1]
    for gram in (
        problems.rbf(x, 0.2), problems.periodic(x[:, :1], 0.4, 0.5), problems.additive(x, ((0, 1), (2,)), 0.15)
    ):  # fmt: skip
        np.testing.assert_array_equal(np.diagonal(gram), 1.0)
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() > -1e-12
    a, b = x[3], x[17]
    assert problems.rbf(x, 0.2)[3, 17] == pytest.approx(np.exp(-((a - b) ** 2).sum() / 0.08))
    parts = [np.exp(-((a[list(g)] - b[list(g)]) ** 2).sum() / (2 * 0.15**2)) for g in ((0, 1), (2,))]
    assert problems.additive(x, ((0, 1), (2,)), 0.15)[3, 17] == pytest.approx(np.mean(parts))
    p = problems.periodic(np.array([[0.1], [0.5], [0.6]]), 0.4, 0.5)
    assert p[0, 1] == pytest.approx(1.0) and p[0, 2] == pytest.approx(
        np.exp(-2 * np.sin(np.pi * 0.5 / 0.4) ** 2 / 0.25)
    )


@pytest.mark.parametrize(
    ("name", "counts", "candidates", "truth"),
    [("lengthscale", (9,), 5, -1), ("period", (9,), 4, 3), ("decomposition", (4, 4, 2), 4, 1), ("mean", (21,), 11, 0)],
)
def test_problems_are_made_for_their_candidates(name, counts, candidates, truth):
    own = problems.make(name, counts, 2, 0.1)
    assert own.kernels.shape == (candidates, len(own.x), len(own.x)) and own.means.shape == (candidates, len(own.x))
    assert own.truth == truth and len(set(problems.labels(name))) == candidates
    assert (own.means != 0).any() == (name == "mean") and (own.scales is not None) == (name == "lengthscale")
    upper = 2.0 if name == "period" else 1.0
    assert float(own.x.min()) == 0 and float(own.x.max()) == upper
    with pytest.raises(ConfigError, match="numbers of points"):
        problems.make(name, (*counts, 3), 2, 0.1)


def test_unknown_names_are_told():
    with pytest.raises(ConfigError, match=r"unknown problem 'lengthscales'\. Did you mean 'lengthscale'"):
        problems.make("lengthscales", (9,), 2, 0.1)
    with pytest.raises(ConfigError, match="unknown variant of problem 'period' 'R1'"):
        problems.make("period", (9,), 2, 0.1, "R1")
    with pytest.raises(ConfigError, match="unknown set of length-scales 'old'"):
        problems.make("lengthscale", (9,), 2, 0.1, lengthscales="old")
    with pytest.raises(ConfigError, match="unknown problem 'x'"):
        problems.labels("x")


def test_draws_of_a_gp_have_its_covariance():
    gram = jnp.asarray(problems.rbf(problems.grid((4,)), 0.4))
    paths = problems.draw_gp(gram, jax.random.split(jax.random.key(0), 20000))
    assert np.abs(np.cov(paths.T) - gram).max() < 0.05 and np.abs(paths.mean(axis=0)).max() < 0.03


def test_draws_of_an_rkhs_ball_have_their_norm():
    gram = jnp.asarray(problems.rbf(problems.grid((12,)), 0.05))
    f = np.asarray(problems.draw_rkhs(gram, 0.7, 5, jax.random.split(jax.random.key(0), 6)))
    norms = np.sqrt(np.einsum("sc,sc->s", f, np.linalg.solve(np.asarray(gram), f.T).T))
    np.testing.assert_allclose(norms, 0.7, rtol=1e-6)
    assert len({row.tobytes() for row in f}) == 6


def test_functions_with_hills_are_drawn_around_the_mean_of_their_candidate():
    own = problems.make("mean", (41,), 1, 0.1)
    f, truth = problems.draw_means(own, jax.random.split(jax.random.key(1), 3000))
    assert set(np.unique(truth).tolist()) == set(range(10))
    off = np.asarray(f - own.means[truth])
    assert np.abs(off.mean(axis=0)).max() < 0.1 and off.std() == pytest.approx(1.0, abs=0.05)


def test_neighbours_are_those_within_the_radius():
    near = problems.within(problems.grid((11,)), 0.2)
    assert near.shape == (11, 5) and sorted(near[5]) == [3, 4, 5, 6, 7]
    assert sorted(set(near[0].tolist())) == [0, 1, 2] and (near[0] == 0).sum() == 3
    np.testing.assert_array_equal(problems.within(problems.grid((11,)), 0.0)[:, 0], np.arange(11))

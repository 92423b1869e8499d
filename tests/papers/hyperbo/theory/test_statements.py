"""The statements as functions, against independent NumPy, SciPy and numbers worked out by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from metabo.errors import NumericsError
from metabo.papers.engine.theory.replicates import generator, replicate, runs
from metabo.papers.hyperbo.theory import bounds, estimates, inequalities, memory, optimum, sampling, selection
from metabo.papers.hyperbo.theory.identities import model_ekl_training, model_nll, projected_ekl


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def spd(rng, m):
    root = rng.normal(size=(m, m + 2))
    return root @ root.T / m + 0.1 * np.eye(m)


def conditional(mean, covariance, y):
    """Textbook conditioning of the last entry, by an explicit inverse."""
    k = len(y)
    gain = covariance[k, :k] @ np.linalg.inv(covariance[:k, :k])
    return mean[k] + gain @ (y - mean[:k]), covariance[k, k] - gain @ covariance[:k, k]


def test_the_memory_model_is_the_gaussian_that_it_stores(rng):
    mean, total, y = rng.normal(size=5), spd(rng, 5), rng.normal(size=(5, 3))
    expected = -stats.multivariate_normal(mean, total).logpdf(y.T).mean()
    got = jax.jit(model_nll)(jnp.array(mean), jnp.array(total), jnp.array(y))
    assert got == pytest.approx(expected, rel=1e-11)

    @jax.jit
    def predict(noise):
        model = memory.model(jnp.array(mean), jnp.array(total), noise)
        got = model.posterior(memory.inputs(jnp.array([4, 1])), jnp.array([0.3, -0.2]), jnp.ones(2, bool))
        return got.predict(memory.inputs(jnp.array([2])))

    for noise in (0.0, 0.05):
        order = [4, 1, 2]
        omega, kappa = conditional(mean[order], total[np.ix_(order, order)], np.array([0.3, -0.2]))
        value, variance = predict(noise)
        assert value[0] == pytest.approx(omega, rel=1e-9)
        own = max(noise, 1e-6)
        assert variance[0] + own == pytest.approx(kappa, rel=1e-8)


def test_estimate_is_numpys_biased_covariance(rng):
    y = rng.normal(size=(4, 9))
    got = memory.estimate(jnp.array(y))
    np.testing.assert_allclose(got.mean, y.mean(axis=1))
    np.testing.assert_allclose(got.covariance, np.cov(y, bias=True), atol=1e-14)


def test_the_direct_law_has_the_moments_of_estimates(rng):
    """û ~ N(u, V/N), E[V̂] = (N-1)/N V and Var[V̂_00] = 2 (N-1)/N² V_00² (a Wishart matrix)."""
    u, v, number, count = np.array([1.0, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]]), 7, 60_000
    root = jnp.linalg.cholesky(jnp.array(v))
    draw = lambda g, n: memory.law_draws(g, n, 2, number)  # noqa: E731
    got = replicate(lambda d: memory.from_law(jnp.array(u), root, number, d), draw, jax.random.key(3), count)
    np.testing.assert_allclose(got.mean.mean(axis=0), u, atol=5 * np.sqrt(2 / 7 / count))
    np.testing.assert_allclose(np.cov(got.mean.T), v / 7, atol=0.01)
    np.testing.assert_allclose(got.covariance.mean(axis=0), 6 / 7 * v, atol=0.02)
    assert got.covariance[:, 0, 0].var() == pytest.approx(2 * 6 / 49 * 4, rel=0.05)


def test_printed_ekl_on_the_range(rng):
    """Eq. 6 by projecting with NumPy's pseudo-inverse and the general formula of the Kullback-Leibler divergence."""
    mean, total, sample = rng.normal(size=6), spd(rng, 6), rng.normal(size=6)
    a = rng.normal(size=(6, 2))
    pinv = np.linalg.pinv(a)
    s, d = pinv @ total @ pinv.T, pinv @ (mean - sample)
    expected = 0.5 * (np.trace(np.linalg.inv(s)) + d @ np.linalg.inv(s) @ d + np.log(np.linalg.det(s)) - 2)
    arrays = map(jnp.array, (mean, total, sample, a))
    assert jax.jit(projected_ekl)(*arrays) == pytest.approx(expected, rel=1e-10)


def test_training_loss_of_one_block(rng):
    mean, total, sample, root = rng.normal(size=4), spd(rng, 4), rng.normal(size=4), rng.normal(size=(4, 2))
    inverse, d = np.linalg.inv(total), mean - sample
    expected = 0.5 * (np.trace(inverse @ root @ root.T) + d @ inverse @ d + np.log(np.linalg.det(total)))
    arrays = map(jnp.array, (mean, total, sample, root))
    assert jax.jit(model_ekl_training)(*arrays) == pytest.approx(expected, rel=1e-10)


def test_lemma10_by_hand(rng):
    total, mean, y = spd(rng, 4), rng.normal(size=4), rng.normal(size=3)
    got = sampling.conditional(jnp.array(mean), jnp.array(total), jnp.array(y))
    np.testing.assert_allclose(got, conditional(mean, total, y), rtol=1e-10)
    # N = 20, t = 1, δ = 0.2: a² = (2 + 4 ln 10 - 0.2)/(18 x 0.2)
    assert sampling.mean_factor(1, 20, 0.2) == pytest.approx(math.sqrt((2 + 4 * math.log(10) - 0.2) / 3.6))
    assert sampling.mean_variance(5, 20, 4.0) == pytest.approx(4.9 / 14)
    low, high = sampling.variance_range(5, 20, 0.2)
    b = math.log(10) / 15
    assert (low, high) == pytest.approx((1 - 2 * math.sqrt(b), 1 + 2 * math.sqrt(b) + 2 * b))
    assert sampling.variance_range(5, 20, 0.2, 16)[1] == pytest.approx(1 + math.sqrt(b) / 2 + b / 8)


def test_theorem5_constants_are_those_of_lemma10_with_half_of_delta():
    for t in (1, 4):
        assert estimates.mean_factor(np.array(t), 30, 0.1) == pytest.approx(sampling.mean_factor(t, 30, 0.05))
        b = estimates.variance_slack(np.array(t), 30, 0.1)
        assert sampling.variance_range(t, 30, 0.05)[0] == pytest.approx(1 - 2 * math.sqrt(b))


def test_theorem5_event():
    """N = 20, t = 5, δ = 0.2: a² = 4(5 + 2√(4 ln 20) + 2 ln 20 - 0.1)/(14 x 0.2), scaled ratio below 1 + 2√b + 2b."""
    log = math.log(20)
    a = math.sqrt(4 * (5 + 2 * math.sqrt(4 * log) + 2 * log - 0.1) / 2.8)
    high = 0.75 * (1 + 2 * math.sqrt(log / 15) + 2 * log / 15)
    bias, ratio = np.array([0.0, a - 1e-9, -a - 1e-9, 0.0, 0.0]), np.array([0.75, 0.75, 0.75, high - 1e-9, high + 1e-9])
    assert estimates.misses(bias, ratio, 5, 0.2).tolist() == [False, False, True, False, True]
    assert estimates.misses(np.array([np.nan, 0.0]), np.array([1.0, np.nan]), 5, 0.2).all()
    assert estimates.misses(bias[1:2], ratio[1:2], 5, 0.2, shrink=1.1).tolist() == [True]
    assert estimates.misses(np.zeros(1), ratio[3:4], 5, 0.2, narrow=1.1).tolist() == [True]


def test_tails_and_quantiles():
    assert inequalities.chi_square_upper(np.array(0.25)) == 2.5 and inequalities.chi_square_lower(np.array(0.04)) == 0.6
    assert inequalities.gaussian_quantile_bound(np.array(0.05)) == pytest.approx(math.sqrt(2 * math.log(10)))
    assert np.isnan(inequalities.gaussian_quantile_bound(np.array(0.6)))
    one = np.array(1.0)
    assert inequalities.bernoulli_bound(one, one, 2 * one) == pytest.approx(2 * math.log(1.5) / math.log(2))
    assert inequalities.root_bound(one, 3 * one, 6 * one) == pytest.approx(2 - 3 / (2 * 3))


def test_upper_tails_of_chi_square_beyond_float64():
    """Against SciPy where it has numbers; at n = 500, b = 5 the tail is e^-2939.6, the bound e^-2500 (b = 5)."""
    for n in (2, 5, 20, 500):
        x = n * np.array([0.5, 1.0, 2.0])
        np.testing.assert_allclose(
            inequalities.chi_square_log_tail(n, x), stats.chi2(n).logsf(x), rtol=1e-9, atol=1e-12
        )
    x = 500 * inequalities.chi_square_upper(np.array([5.0]))
    assert inequalities.chi_square_log_tail(500, x) == pytest.approx(-2939.6, abs=0.05)


def test_mutual_information_by_its_definition():
    """One value of variance 2 seen with noise 0.5: ½ ln(1 + 4)."""
    gram = jnp.array([[2.0]])
    assert inequalities.mutual_information(gram, 0.5, 0.5) == pytest.approx(0.5 * math.log(5.0))
    assert inequalities.mutual_information(gram, 0.5, 1.0) != pytest.approx(0.5 * math.log(5.0))


def test_information_of_a_sequence_with_a_repeat(rng):
    """Two looks at one value of variance 2 with noise 0.5: ½ ln(1 + 2 x 2/0.5); the second has k_1 = 2 x 0.5/2.5."""
    gram = jnp.array([[2.0, 0.3], [0.3, 1.0]])
    by_hand = 0.5 * math.log(1 + 8)
    assert by_hand == pytest.approx(0.5 * (math.log(1 + 4) + math.log(1 + 0.4 / 0.5)))
    assert inequalities.information(gram[jnp.array([0, 0])][:, jnp.array([0, 0])], 0.5) == pytest.approx(by_hand)
    got = jax.jit(inequalities.sequential_information)(gram, 0.5, jnp.array([0, 0]))
    assert got == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(("length", "gap"), [(2, 1.0), (10, 3.0), (1000, 4.3)])
def test_failure_of_the_best_observation(length, gap, rng):
    expected, _ = integrate.quad(
        lambda e: stats.norm.pdf(e) * (1 - stats.norm.cdf(gap + e) ** (length - 1)), -10, 10, epsabs=1e-13, limit=200
    )
    assert selection.failure_probability(length, gap) == pytest.approx(expected, abs=1e-11)
    if length == 2:  # the difference of two noises is N(0, 2)
        assert expected == pytest.approx(stats.norm.sf(gap / math.sqrt(2)), abs=1e-10)


def test_the_first_length_that_fails():
    first = selection.first_failure(selection.printed_bound, 0.1, 0.1)
    probability = [
        selection.failure_probability(t, 1.0001 * selection.printed_bound(t, 0.1)) for t in (first - 1, first)
    ]
    assert probability[0] <= 0.1 < probability[1] and 300 < first < 400
    assert selection.first_failure(selection.sound_bound, 0.1, 0.1, top=10**6) is None


def test_printed_constants_of_theorem16():
    """T = 4, N = 10,000, δ = 0.1 worked out from the formulas of the paper."""
    k, log = bounds.printed(4, 10_000, 0.1), math.log(120)
    a = math.sqrt(12 * (4 + 2 * math.sqrt(3 * log) + 2 * log - 2e-4) / (9995 * 0.1))
    b, zeta = log / 9996, math.sqrt(2 * math.log(30))
    s = math.sqrt((1 + 2 * math.sqrt(b) + 2 * b) / (1 - 2 * math.sqrt(b)))
    assert (k.a, k.b, k.zeta, k.s, k.selection) == pytest.approx((a, b, zeta, s, zeta))
    assert bounds.ucb_beta(k) == pytest.approx((a + zeta) * math.sqrt(1e4 / (9996 * (1 - 2 * math.sqrt(b)))))
    rho, noise = 3.0, 0.1
    reach = 2 * rho / (4 * math.log(1 + 10))
    expected = (a + zeta) * (1 + s) * math.sqrt(reach + 0.1) + zeta * math.sqrt(0.1) * (1 - math.sqrt(0.1 / 1.1))
    assert bounds.theorem16(k, 1.0, rho, 4, noise) == pytest.approx(expected)
    eta = s * (0.7 + a) + a + zeta
    expected = eta * math.sqrt(reach + 0.1) + zeta * math.sqrt(0.1) * (1 - math.sqrt(0.1 / 1.1) / 2)
    assert bounds.theorem17(k, 1.0, rho, 4, noise, 0.7) == pytest.approx(expected)
    beta, own = bounds.ucb_beta(k), 0.02
    reach = 2 * rho / (4 * math.log(1 + 50))
    expected = 2 * beta * math.sqrt(reach) + beta * math.sqrt(own) + zeta * math.sqrt(0.1) * (1 - math.sqrt(0.1 / 1.1))
    assert bounds.theorem18(k, 1.0, rho, 4, noise, own) == pytest.approx(expected)
    assert bounds.required_functions(4, 0.1) == pytest.approx(4 + 4 * log)
    right = (math.sqrt(4 / 9995) + math.sqrt(math.log(10))) * (math.sqrt(rho / 4) + math.sqrt(0.1))
    assert bounds.theorem6(4, 10_000, 0.1, rho, noise) == pytest.approx(right)


def test_each_repair_changes_the_constants():
    printed, repaired = bounds.printed(2, 10_000, 0.1), bounds.repaired(2, 10_000, 0.1, 3)
    n = 3 * (1 + 3)  # inputs x sets of at most one of three inputs
    assert repaired.a == pytest.approx(estimates.mean_factor(np.array(2), 10_000, 0.1 / (3 * n)))
    assert repaired.zeta == pytest.approx(math.sqrt(2 * math.log(3 * 3 * 2 / 0.1)))
    assert repaired.selection == pytest.approx(2 * math.sqrt(2 * math.log(3 * 2 / 0.1)))
    low, high = 1 - 2 * math.sqrt(repaired.b), 1 + 2 * math.sqrt(repaired.b) + 2 * repaired.b
    assert repaired.s == pytest.approx(math.sqrt(high / low * 9999 / 9998))
    assert (printed.last, repaired.last, repaired.floor) == (1.0, 2.0, 0.0)
    assert bounds.theorem17(repaired, 1.0, 1.0, 2, 0.1, -9.0) > 0 > bounds.theorem17(printed, 1.0, 1.0, 2, 0.1, -9.0)
    assert math.isnan(bounds.repaired(4, 40, 0.1, 10).a), "too few functions"


def test_a_wall_where_the_loss_is_not_a_number():
    for value, gradient in ((np.nan, np.ones(2)), (np.inf, np.ones(2)), (0.3, np.array([1.0, np.nan]))):
        got = optimum.walled(lambda _x, v=value, g=gradient: (v, g))(np.zeros(2))
        assert got[0] == optimum.WALL and got[1].tolist() == [0.0, 0.0]
    value, gradient = optimum.walled(lambda x: (x @ x, 2 * x))(np.array([1.0, 2.0]))
    assert value == 5.0 and gradient.tolist() == [2.0, 4.0]


def test_the_search_ends_at_the_moments(rng):
    y = jnp.array(rng.normal(size=(2, 400)))
    fitted = memory.estimate(y)
    for end in optimum._searched(rng, y, 5):
        assert optimum._relative_error(end, fitted) < 1e-4
    far = memory.PriorEstimate(fitted.mean, fitted.covariance.at[0, 0].mul(3.0))
    assert optimum._relative_error(far, fitted) == pytest.approx(
        2.0 * fitted.covariance[0, 0] / fitted.covariance.max()
    )


def test_the_largest_correlation_hides_nothing(rng):
    mean, matrix = rng.normal(size=(500, 2)), rng.normal(size=(500, 2, 2))
    matrix[:, 0, 1] += 2.0 * mean[:, 1]
    numbers = sampling._largest_correlation(mean, matrix)["numbers"]
    assert numbers["correlation"] == pytest.approx(np.corrcoef(mean[:, 1], matrix[:, 0, 1])[0, 1])
    matrix[3, 1, 1] = np.nan
    with pytest.raises(NumericsError, match="correlation is nan"):
        sampling._largest_correlation(mean, matrix)


def test_max_information_by_enumeration():
    gram = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 0.5]])
    assert bounds.subsets(3, 2, False).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert len(bounds.subsets(10, 4, True)) == 715
    pairs = [0.5 * np.log(np.linalg.det(np.eye(2) + gram[np.ix_(a, a)] / 0.5)) for a in ([0, 1], [0, 2], [1, 2])]
    got = bounds.max_information(jnp.array(gram), 0.5, bounds.subsets(3, 2, False))
    assert got == pytest.approx(max(pairs))
    assert bounds.max_information(jnp.array(gram), 0.5, bounds.subsets(3, 2, True)) >= got


def test_replicates_are_independent_and_repeatable():
    draw = lambda g, n: g.standard_normal((n, 2))  # noqa: E731
    one, two, other = (replicate(lambda z: z.sum(), draw, jax.random.key(k), 250, chunk=100) for k in (0, 0, 1))
    assert one.shape == (250,) and (one == two).all() and len(np.unique(one)) == 250
    assert not np.isin(one, other).any()
    assert runs(20_000, 1.0) == 20_000 and runs(20_000, 0.1) == 2000 and runs(20_000, 0.0001) == 100
    assert generator(jax.random.key(5)).random() == generator(jax.random.key(5)).random()

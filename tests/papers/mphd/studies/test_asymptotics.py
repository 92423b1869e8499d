"""MPHD on Super-dataset S: priors against SciPy, the mixture likelihood against NumPy, and a small run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from metabo.methods.hierarchical.hyperprior import Hyperprior, Parameters
from metabo.papers.mphd.studies import asymptotics as study
from tests.papers.mphd.studies.test_fits import covariance

SPEC = {
    "seed": 0, "domains": 5, "functions": 2, "points": 40, "seeds": 2, "train": [2, 4], "steps": 6, "samples": 30,
    "subsamples": 2,
}  # fmt: skip
PRIOR = Hyperprior(
    jnp.asarray([1.0, 0.5]), jnp.asarray([[10.0, 30.0], [2.0, 5.0]]), jnp.asarray([3.0, 2.0]), jnp.asarray([5.0, 200.0])
)


@pytest.fixture(scope="module")
def frames():
    return study.run(SPEC)


def test_draws_have_the_law_of_the_prior():
    n = 4000
    theta = study.draw(PRIOR, n, jax.random.key(0))
    laws = {
        "constant": stats.norm(1.0, 0.5), "variance": stats.gamma(3.0, scale=1 / 2.0),
        "noise": stats.gamma(5.0, scale=1 / 200.0),
    }  # fmt: skip
    for name, law in laws.items():
        assert stats.kstest(np.asarray(getattr(theta, name)), law.cdf).pvalue > 1e-3, name
    for column, (shape, rate) in zip(np.asarray(theta.lengthscale).T, [(10.0, 30.0), (2.0, 5.0)], strict=True):
        assert stats.kstest(column - study.MARGIN, stats.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3
    parts = np.column_stack([np.asarray(part).reshape(n, -1) for part in theta])
    off = np.corrcoef(parts.T) - np.eye(5)
    assert np.abs(off).max() < 5 / np.sqrt(n), "parameters are drawn independently"


def test_a_prior_that_underflows_gives_likelihoods_all_the_same():
    tiny = Hyperprior(PRIOR.constant, PRIOR.lengthscale, PRIOR.variance, jnp.asarray([1e-3, 1.0]))
    assert float(jax.random.gamma(jax.random.key(0), 1e-3, (50,)).min()) == 0.0
    x, y = np.random.default_rng(0).random((8, 2)), np.zeros(8)
    value, failed = study.mixture_nll(tiny, jnp.asarray(x), jnp.asarray(y), 50, jax.random.key(0))
    assert np.isfinite(float(value)) and float(failed) == 0


def test_the_mixture_likelihood_is_that_of_numpy():
    rng, key = np.random.default_rng(1), jax.random.key(2)
    x, y = rng.random((12, 2)), rng.normal(size=12)
    value, failed = study.mixture_nll(PRIOR, jnp.asarray(x), jnp.asarray(y), 40, key)
    theta = jax.tree.map(np.asarray, study.draw(PRIOR, 40, key))
    logs = [
        multivariate_normal.logpdf(y, np.full(12, c), covariance(x, length, v, s))
        for c, length, v, s in zip(*theta, strict=True)
    ]
    assert float(value) == pytest.approx(-(logsumexp(logs) - np.log(40)), rel=1e-9) and float(failed) == 0


def test_priors_are_the_fits_of_scipy():
    rng = np.random.default_rng(3)
    found = Parameters(rng.normal(size=4), rng.gamma(10, 1 / 30, (4, 3)), rng.gamma(1, 1, 4), rng.gamma(10, 1e-5, 4))
    known = study.Domains(None, np.array([2, 3, 1, 2]), ("a", "b", "c", "d"))
    chosen = np.array([3, 1])
    constant, lengthscale, variance, noise = study.fit_priors(found, known, chosen)
    np.testing.assert_allclose(constant, stats.norm.fit(found.constant[chosen]))
    pooled = np.concatenate([found.lengthscale[3, :2], found.lengthscale[1]])
    for numbers, values in ((lengthscale, pooled), (variance, found.variance[chosen]), (noise, found.noise[chosen])):
        shape, _, scale = stats.gamma.fit(values, floc=0)
        np.testing.assert_allclose(numbers, [shape, 1 / scale], rtol=1e-4)


def test_a_run_has_every_case(frames):
    estimate, prior, nll = frames["estimate"], frames["prior"], frames["nll"]
    assert estimate["space"].nunique() == 8 and (estimate.groupby("seed")["space"].nunique() == 4).all()
    lengths = estimate[(estimate["parameter"] == "lengthscale") & (estimate["seed"] == 0)]
    dims = {space: int(space.partition("_")[2]) for space in lengths["space"].unique()}
    assert lengths.groupby("space").size().to_dict() == dims
    assert len(prior) == 2 * 2 * 4 and set(prior["parameter"]) == set(Parameters._fields)
    assert len(nll) == 4 and np.isfinite(nll["value"]).all()
    truth = frames["truth"].set_index("parameter")
    assert truth.loc["lengthscale"].tolist() == [10.0, 30.0] and truth.loc["noise"].tolist() == [10.0, 1e5]
    assert truth.loc["constant"].tolist() == [1.0, 1.0] and truth.loc["variance"].tolist() == [1.0, 1.0]


def test_the_prior_of_all_domains_is_fitted_to_all_of_their_estimates(frames):
    for seed in range(2):
        own = frames["estimate"][frames["estimate"]["seed"] == seed]
        fitted = frames["prior"][frames["prior"]["seed"] == seed].query("train == 4").set_index("parameter")
        shape, _, scale = stats.gamma.fit(own.query("parameter == 'lengthscale'")["value"], floc=0)
        assert fitted.loc["lengthscale", ["first", "second"]].tolist() == pytest.approx([shape, 1 / scale], rel=1e-3)
        constant = own.query("parameter == 'constant'")["value"]
        assert fitted.loc["constant", ["first", "second"]].tolist() == pytest.approx(stats.norm.fit(constant))
    first = frames["prior"].query("train == 4 and parameter == 'noise'")["first"]
    assert first.nunique() == 2, "each seed has domains of its own, with the most as well"


def test_the_test_likelihood_is_the_mean_over_functions_and_draws(frames):
    """With one prior that is a point, every draw of θ is the same, and the mixture is that GP's likelihood."""
    benchmark = study.super_dataset("mphd_s", SPEC)
    _, test = study.training_and_test(benchmark, SPEC)
    assert test.names == tuple(benchmark.spaces)[4:5]
    sharp = 1e9
    point = Parameters(
        *(np.array(pair) for pair in ((0.5, 1e-9), (0.4 * sharp, sharp), (sharp, sharp), (0.02 * sharp, sharp)))
    )
    value, failed = study.held_out_nll([point], test, 3, 2, jax.random.key(0))
    x, y = study.held_out_rows(test, 2, jax.random.fold_in(jax.random.key(0), 0))
    assert x.shape[:2] == (1 * 2 * 2, 40) and failed.tolist() == [0]
    each = [
        -multivariate_normal.logpdf(b, np.full(40, 0.5), covariance(np.asarray(a), 0.4, 1.0, 0.02))
        for a, b in zip(np.asarray(x), np.asarray(y), strict=True)
    ]
    assert value[0] == pytest.approx(np.mean(each), rel=1e-3)


def test_sizes_and_seed_reach_their_places(monkeypatch):
    spec = SPEC | {"steps": 7, "samples": 11, "subsamples": 3, "train": [2, 3, 4], "seeds": 3}
    benchmark, calls = study.super_dataset("mphd_s", spec), []
    monkeypatch.setattr(study, "super_dataset", lambda name, spec: calls.append((name, spec)) or benchmark)

    def estimates(train, steps, root):
        calls.append((len(train.names), steps))
        rng, count = np.random.default_rng(0), len(train.names)
        return Parameters(*(rng.gamma(2.0, 1.0, shape) for shape in (count, (count, train.dims.max()), count, count)))

    def held_out_nll(priors, test, samples, subsamples, root):
        calls.append((len(priors), samples, subsamples))
        return np.ones(len(priors)), np.zeros(len(priors))

    monkeypatch.setattr(study, "estimates", estimates)
    monkeypatch.setattr(study, "held_out_nll", held_out_nll)
    study.run(spec)
    assert calls == [("mphd_s", spec), (12, 7), (9, 11, 3)]

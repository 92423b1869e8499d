"""MPHD on Super-dataset L: limits of the priors, divergences against integration, what a network sees, a small run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from metabo.papers.mphd.studies import divergence as study
from metabo.papers.mphd.studies.fits import Domains

SPEC = {
    "seed": 0, "domains": 3, "functions": 3, "points": 60, "seeds": 2, "train": [1, 2], "adam_steps": 20,
    "learning_rate": 1e-2,
    "network_steps": 15,
}  # fmt: skip


@pytest.fixture(scope="module")
def frames():
    return study.run(SPEC)


def test_the_truth_is_that_of_the_paper():
    assert study.DIMS.tolist() == list(range(2, 15))
    true = study.true_priors()
    np.testing.assert_allclose(true[0], [1.0, 4.9999], atol=1e-4)
    np.testing.assert_allclose(true[-1], [1.9231, 0.7531], atol=1e-4)


def test_divergences_are_those_of_numerical_integration():
    found = study.divergences(np.array([2.0]), np.array([3.0]))
    for kl, (shape, rate) in list(zip(found, study.true_priors(), strict=True))[::4]:
        p, q = stats.gamma(shape, scale=1 / rate), stats.gamma(2.0, scale=1 / 3.0)
        expected, _ = quad(lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0, p.isf(1e-12), limit=200)
        assert kl == pytest.approx(expected, rel=1e-5)
    shape, rate = study.true_priors().T
    np.testing.assert_allclose(study.divergences(shape, rate), 0.0, atol=1e-12)


def test_limits_are_those_computed_by_hand():
    """Squashed output: 0.105 on average, 0.215 at d = 2. One Gamma for all: (0.953, 0.917), 0.380 (all ± 0.0005)."""
    floor = study.squashed_floor()
    assert floor.mean() == pytest.approx(0.105, abs=6e-4) and floor[0] == pytest.approx(0.215, abs=6e-4)
    assert floor.argmax() == 0
    grid = np.linspace(0.31327, 1.31326, 300)
    kl = study.kl_gamma(*study.true_priors()[3], grid[:, None], grid)
    assert floor[3] <= kl.min() + 1e-9 and floor[3] == pytest.approx(kl.min(), abs=1e-4)
    shape, rate = study.pooled_limit()
    assert (shape, rate) == pytest.approx((0.953, 0.917), abs=6e-4)
    assert study.divergences(np.array([shape]), np.array([rate])).mean() == pytest.approx(0.380, abs=6e-4)


def test_one_gamma_approaches_its_limit_with_many_domains():
    rng, values = np.random.default_rng(0), []
    for dim, (shape, rate) in zip(study.DIMS, study.true_priors(), strict=True):
        values.append(rng.gamma(shape, 1 / rate, (3000, dim)))
    width = study.DIMS.max()
    lengthscale = np.concatenate([np.pad(v, ((0, 0), (0, width - v.shape[1]))) for v in values])
    known = Domains(None, np.repeat(study.DIMS, 3000), tuple(map(str, range(len(lengthscale)))))
    found = study.one_prior(known, lengthscale, np.arange(len(lengthscale)))
    assert found.shape == (13, 2) and (found == found[0]).all()
    assert found[0].tolist() == pytest.approx(study.pooled_limit(), rel=0.02)


def test_a_network_sees_its_domains_only():
    known = Domains(None, np.array([2, 4, 3]), ("a", "b", "c"))
    lengthscale = np.random.default_rng(1).gamma(2.0, 0.3, (3, 4))
    chosen = np.array([[True, False, True]])
    keys = jnp.stack([jax.random.key(0)])

    def fit(values, picked=chosen):
        found, stopped = study.network_priors(known, values, picked, keys, "linear", 40)
        assert stopped.tolist() == [-1]
        return found

    base = fit(lengthscale)
    assert base.shape == (1, 13, 2)
    unseen = lengthscale.copy()
    unseen[1], unseen[0, 2:], unseen[2, 3:] = 9.0, 9.0, 9.0  # another domain, and inputs that are padding
    np.testing.assert_array_equal(fit(unseen), base)
    for row, column in ((0, 1), (2, 2)):
        changed = lengthscale.copy()
        changed[row, column] *= 3.0
        assert np.abs(fit(changed) - base).max() > 1e-6
    assert np.abs(fit(lengthscale, np.array([[True, True, True]])) - base).max() > 1e-6


def test_a_long_trained_network_approaches_the_fit_of_each_dimension():
    """With two contexts the best network gives each the maximum-likelihood Gamma of its own lengthscales."""
    rng = np.random.default_rng(2)
    dims = np.repeat([2, 3], 30)
    lengthscale = np.where((dims == 2)[:, None], rng.gamma(2.0, 0.1, (60, 3)), rng.gamma(3.0, 0.5, (60, 3)))
    known = Domains(None, dims, tuple(map(str, range(60))))
    every = np.ones((1, 60), bool)
    found, _ = study.network_priors(known, lengthscale, every, jnp.stack([jax.random.key(3)]), "linear", 6000)
    for place, dim in enumerate((2, 3)):
        shape, _, scale = stats.gamma.fit(lengthscale[dims == dim, :dim], floc=0)
        mean, expected = np.divide(*found[0, place]), shape * scale
        assert mean == pytest.approx(expected, rel=0.05)
        assert found[0, place, 0] == pytest.approx(shape, rel=0.15)


def test_a_run_has_every_case_and_the_squashed_output_stays_in_its_box(frames):
    table = frames["divergence"]
    assert len(table) == 3 * 2 * 2 * 13 and (table["stopped"] == -1).all()
    squashed = table[table["output"] == "squashed"]
    assert (
        squashed[["shape", "rate"]].to_numpy().min() > 0.3132 and squashed[["shape", "rate"]].to_numpy().max() < 1.3133
    )
    assert (squashed.groupby(["train", "seed"])["kl"].mean() > study.squashed_floor().mean()).all()
    one = table[table["output"] == "non_nn"].groupby(["train", "seed"])[["shape", "rate"]].nunique()
    assert (one == 1).all(axis=None)
    limits = frames["limit"].groupby("output")["kl"].mean()
    assert limits["squashed"] == pytest.approx(0.105, abs=6e-4) and limits["non_nn"] == pytest.approx(0.380, abs=6e-4)
    estimate = frames["estimate"]
    assert estimate["space"].nunique() == 4 and (estimate.groupby("seed")["space"].nunique() == 2).all()
    assert (estimate.groupby("space").size() == estimate.groupby("space")["dim"].first()).all()


def test_with_the_most_domains_seeds_differ_as_their_domains_do(frames):
    last = frames["divergence"].query("train == 2")
    for seed, own in frames["estimate"].groupby("seed"):
        pooled = last[(last["output"] == "non_nn") & (last["seed"] == seed)]
        shape, _, scale = stats.gamma.fit(own["value"], floc=0)
        assert pooled["shape"].to_numpy() == pytest.approx(shape, rel=1e-3)
        assert pooled["rate"].to_numpy() == pytest.approx(1 / scale, rel=1e-3)
    means = last.groupby(["output", "seed"])["kl"].mean().unstack()
    assert means.shape == (3, 2) and (means[0] != means[1]).all()


def test_sizes_and_seed_reach_their_places(monkeypatch):
    spec = SPEC | {"adam_steps": 7, "network_steps": 9, "train": [1, 2], "seeds": 3}
    benchmark, calls = study.super_dataset("mphd_l", spec), []
    monkeypatch.setattr(study, "super_dataset", lambda name, spec: calls.append((name, spec)) or benchmark)

    def estimates(known, steps, learning_rate, root):
        calls.append((len(known.names), steps))
        return np.random.default_rng(0).gamma(2.0, 1.0, (len(known.names), known.dims.max()))

    def network_priors(known, lengthscale, chosen, keys, output, steps):
        calls.append((output, steps, chosen.sum(axis=1).tolist()))
        return np.ones((len(chosen), 13, 2)), np.full(len(chosen), -1)

    monkeypatch.setattr(study, "estimates", estimates)
    monkeypatch.setattr(study, "network_priors", network_priors)
    study.run(spec)
    assert calls == [("mphd_l", spec), (6, 7), *[("linear", 9, [1, 2]), ("squashed", 9, [1, 2])] * 3]

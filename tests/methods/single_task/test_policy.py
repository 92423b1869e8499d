"""STBO and STBOH: priors, range and fit, against SciPy."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree
from scipy.stats import lognorm, norm

from metabo.errors import ConfigError
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP
from metabo.methods.single_task import policy as single_task
from metabo.methods.single_task.policy import HandTuned, hand_tuned_gp, hand_tuned_log_prior, start, stbo_log_prior
from metabo.tasks.rows import Rows
from tests import tiny
from tests.references import DenseGP, softplus

DIM, BUDGET = 2, 9
RANGES = {"lengthscale": norm(0, 1), "variance": norm(-1, 1), "noise": norm(-6, 3)}  # hyperbo §7.2


def clip(raw, prior):
    """TFP's SoftClip to the prior's 1 to 99 % range."""
    low, high = prior.ppf([0.01, 0.99])
    soft = lambda v: np.logaddexp(0.0, v)  # noqa: E731
    return high - soft(high - low - soft(raw - low)) * (high - low) / soft(high - low)


def hand_tuned(rng, scale=1.0):
    draw = lambda *shape: jnp.asarray(scale * rng.normal(size=shape))  # noqa: E731
    return HandTuned(draw(), draw(DIM), draw() - 1.0, draw() - 6.0)


def test_hand_tuned_gp_is_the_clipped_exponential():
    rng = np.random.default_rng(0)
    for _ in range(5):
        raw = hand_tuned(rng, 2.0)
        gp = hand_tuned_gp(raw)
        for name, value in (
            ("lengthscale", gp.kernel.lengthscale),
            ("variance", gp.kernel.variance),
            ("noise", gp.noise),
        ):
            np.testing.assert_allclose(value, np.exp(clip(np.asarray(getattr(raw, name)), RANGES[name])), rtol=1e-9)
        assert gp.kernel.shape == "matern52" and float(gp.mean.value) == float(raw.constant)


@pytest.mark.parametrize("far", [-60.0, 60.0])
def test_hand_tuned_gp_stays_within_the_priors_range(far):
    gp = hand_tuned_gp(HandTuned(jnp.zeros(()), jnp.full(DIM, far), jnp.asarray(far), jnp.asarray(far)))
    edge = 0.01 if far < 0 else 0.99
    np.testing.assert_allclose(np.log(gp.kernel.lengthscale), [norm(0, 1).ppf(edge)] * DIM, rtol=1e-6)
    assert np.log(float(gp.kernel.variance)) == pytest.approx(norm(-1, 1).ppf(edge), rel=1e-6)
    assert np.log(float(gp.noise)) == pytest.approx(norm(-6, 3).ppf(edge), rel=1e-6)
    # by hand: the 99 % quantile of N(0, 1) is 2.3263
    assert abs(np.log(float(gp.kernel.lengthscale[0]))) == pytest.approx(2.3263, abs=1e-4)


def test_hand_tuned_log_prior_is_the_normal_density_up_to_a_constant():
    rng = np.random.default_rng(1)

    def density(raw):
        return sum(RANGES[k].logpdf(clip(np.asarray(getattr(raw, k)), RANGES[k])).sum() for k in RANGES)

    one, two = hand_tuned(rng), hand_tuned(rng)
    difference = float(hand_tuned_log_prior(one)) - float(hand_tuned_log_prior(two))
    assert difference == pytest.approx(density(one) - density(two), rel=1e-9)
    assert float(hand_tuned_log_prior(one)) == pytest.approx(
        float(hand_tuned_log_prior(one._replace(constant=jnp.asarray(9.0))))
    )


def test_stbo_log_prior_is_scipys_up_to_a_constant():
    rng = np.random.default_rng(2)

    def density(gp):
        value = lognorm(s=0.1).logpdf(softplus(np.asarray(gp.kernel.raw_lengthscale))).sum()
        value += lognorm(s=0.1).logpdf(softplus(float(gp.kernel.raw_variance)))
        return value + norm(0, 0.1).logpdf(softplus(float(gp.raw_noise)))

    gps = [tiny.random_gp(rng, DIM, noise=noise) for noise in (-3.0, -1.0, 0.5)]
    for one, two in itertools.pairwise(gps):
        difference = float(stbo_log_prior(one)) - float(stbo_log_prior(two))
        assert difference == pytest.approx(density(one) - density(two), rel=1e-9)


def test_start():
    raw = start({"mean": "constant", "kernel": "matern52", "features": []}, 3, 1, jax.random.key(0))
    assert isinstance(raw, HandTuned)
    # the priors' means
    assert raw.lengthscale.tolist() == [0.0] * 3
    assert (float(raw.variance), float(raw.noise), float(raw.constant)) == (-1.0, -6.0, 0.0)
    gp = start({"mean": "linear_mlp", "kernel": "matern52", "features": [4]}, 3, 1, jax.random.key(0))
    assert isinstance(gp, GP) and gp.features.weights[0].shape == (3, 4)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"mean": "linear_mlp", "kernel": "dot_product", "features": [4]}, "priors are on lengthscales"),
        ({"mean": "zero", "kernel": "matern52", "features": []}, "got mean 'zero', kernel 'matern52'"),
        ({"mean": "constant", "kernel": "matern32", "features": []}, "got mean 'constant', kernel 'matern32'"),
    ],
)
def test_models_that_the_priors_do_not_cover_are_refused(model, message):
    with pytest.raises(ConfigError, match=message):
        start(model, 2, 1, jax.random.key(0))


# --- fits -------------------------------------------------------------------------------------------------------------


def observations(kind):
    """Up to nine observations, padded: x, y, mask."""
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(BUDGET, DIM))
    y = np.sin(5 * x[:, 0]) - x[:, 1] + 0.1 * rng.normal(size=BUDGET)
    count = {"one": 1, "constant": 5, "duplicated": 7}.get(kind, BUDGET)
    if kind == "constant":
        y[:] = 0.7
    if kind == "duplicated":
        x[1:4], y[4:] = x[0], y[4]
    return x, y, np.arange(BUDGET) < count


BOTH = ["stboh", pytest.param("stbo", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def fits():
    """Both methods' fits, compiled once: 100 steps, from parameters to parameters and a flag."""
    raw = start({"mean": "constant", "kernel": "matern52", "features": []}, DIM, 1, jax.random.key(0))
    gp = start({"mean": "linear_mlp", "kernel": "matern52", "features": [3]}, DIM, 1, jax.random.key(1))
    policies = {
        "stboh": single_task.policy(raw, {"refit_steps": 100, "use_prior": True}, "ucb18", BUDGET),
        "stbo": single_task.policy(gp, {"refit_steps": 100}, "pi", BUDGET),
    }
    return {name: (policy.params, eqx.filter_jit(policy.fit)) for name, policy in policies.items()}


def penalised(name, unravel, x, y):
    """-log likelihood - log prior by dense algebra, as a function of the flat parameters."""

    def stboh(v):
        raw = unravel(jnp.asarray(v))
        values = {k: clip(np.asarray(getattr(raw, k)), RANGES[k]) for k in RANGES}
        inverse = {k: np.log(np.expm1(np.exp(values[k]) - 1e-10)) for k in values}
        kernel = Stationary(jnp.asarray(inverse["lengthscale"]), jnp.asarray(inverse["variance"]), "matern52")
        gp = GP(Identity(), Constant(raw.constant), kernel, jnp.asarray(inverse["noise"]))
        return DenseGP(gp).nll(x, y) - sum(RANGES[k].logpdf(values[k]).sum() for k in values)

    def stbo(v):
        gp = unravel(jnp.asarray(v))
        positive = [*softplus(np.asarray(gp.kernel.raw_lengthscale)), softplus(float(gp.kernel.raw_variance))]
        prior = lognorm(s=0.1).logpdf(positive).sum() + norm(0, 0.1).logpdf(softplus(float(gp.raw_noise)))
        return DenseGP(gp).nll(x, y) - prior

    return {"stboh": stboh, "stbo": stbo}[name]


@pytest.mark.parametrize("name", BOTH)
def test_fit_reaches_scipys_optimum_from_the_same_start(name, fits):
    begin, fit = fits[name]
    x, y, mask = observations("all")
    fitted, ok = fit(begin, Rows(x, y, mask))
    assert bool(ok)
    vector, unravel = ravel_pytree(begin)
    objective = penalised(name, unravel, x, y)
    ours = objective(ravel_pytree(fitted)[0])
    reference = scipy.optimize.minimize(objective, np.asarray(vector), method="L-BFGS-B", options={"maxiter": 100})
    assert ours < objective(vector) - 0.5
    # Both stop at 100 steps, where the network's fit still falls: rounding decides the last hundredths.
    assert ours <= reference.fun + max(0.02, 0.005 * (objective(vector) - reference.fun))


@pytest.mark.parametrize("kind", ["one", "constant", "duplicated", "all"])
@pytest.mark.parametrize("name", BOTH)
def test_fit_stays_finite(name, kind, fits):
    begin, fit = fits[name]
    x, y, mask = observations(kind)
    fitted, ok = fit(begin, Rows(x, y, mask))
    assert bool(ok)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fitted))
    valid = x[mask], y[mask]
    unravel = ravel_pytree(begin)[1]
    objective = penalised(name, unravel, *valid)
    assert objective(ravel_pytree(fitted)[0]) <= objective(ravel_pytree(begin)[0])
    # Padding takes no part, whatever stands in it.
    other, _ = fit(begin, Rows(np.where(mask[:, None], x, 0.3), np.where(mask, y, -5.0), mask))
    for a, b in zip(jax.tree.leaves(fitted), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)

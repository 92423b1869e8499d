"""RFGP: features, posterior mean and variance against dense linear algebra, the kernel against the RBF kernel."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from metabo.methods.embedding import rfgp
from metabo.methods.embedding.networks import MiniBatch, Outputs
from metabo.tasks.rows import Rows
from tests.methods.embedding import cases as networks
from tests.methods.embedding.cases import DIM, TASKS

RIDGE = networks.MODELS["rfgp"]["ridge"]


def features(net, x, task):
    """φ of rows x (n, d) of tasks (n,), with the frequencies of x and embedding in one matrix."""
    z = np.concatenate([x, np.asarray(net.learned.embedding)[task]], axis=1)
    frequencies = np.concatenate([net.frequencies, net.shifts])
    return np.sqrt(2 / len(net.phases)) * np.cos(z @ frequencies + np.asarray(net.phases))


def observations(count=4, budget=6):
    rng = np.random.default_rng(5)
    return rng.uniform(size=(budget, DIM)), rng.normal(size=budget), np.arange(budget) < count


def rows_of(past, x, mask):
    """Inputs and tasks of all valid rows, those of the test task last."""
    valid, tasks = np.asarray(past.mask), np.nonzero(past.mask)[0]
    inputs = np.concatenate([np.asarray(past.x)[valid], x[mask]])
    return inputs, np.concatenate([tasks, np.full(mask.sum(), TASKS)])


def test_mean_and_variance_are_those_of_the_dense_posterior():
    net, past = networks.network("rfgp"), networks.past()
    x, y, mask = observations()
    posterior = net.posterior(net.prepare(past), Rows(x, y, mask))
    assert bool(posterior.ok)
    at = np.random.default_rng(6).uniform(size=(5, DIM))
    mean, variance = posterior.predict(jnp.asarray(at))
    phi, here = features(net, *rows_of(past, x, mask)), features(net, at, np.full(5, TASKS))
    assert phi.shape == (14, 12)
    np.testing.assert_allclose(mean, 1.5 + 2.0 * here @ np.asarray(net.learned.weights), rtol=1e-12)
    precision = RIDGE * np.eye(12) + phi.T @ phi
    expected = RIDGE * np.einsum("ik,kl,il->i", here, np.linalg.inv(precision), here)
    np.testing.assert_allclose(variance, 4.0 * expected, rtol=1e-9)
    # The same as the GP with kernel φᵀφ and noise variance `ridge` sees it.
    cross = here @ phi.T
    dual = cross @ np.linalg.solve(phi @ phi.T + RIDGE * np.eye(14), cross.T)
    np.testing.assert_allclose(variance, 4.0 * (np.sum(here**2, axis=1) - np.diag(dual)), rtol=1e-9)


def outputs_of(net, past, y, mask):
    """Standardised outputs of all valid rows, in the order of `rows_of`."""
    values = np.concatenate([np.asarray(past.y)[np.asarray(past.mask)], y[mask]])
    return np.asarray(net.outputs.standard(jnp.asarray(values)))


@pytest.mark.parametrize("moved", [False, True])
def test_solved_weights_are_those_of_the_dense_ridge_regression(moved):
    net, past = replace(networks.network("rfgp"), solved=True), networks.past()
    prepared = net.prepare(past)
    if moved:
        net = eqx.tree_at(lambda n: n.learned.embedding, net, net.learned.embedding * -1.7 + 0.3)
    x, y, mask = observations()
    posterior = net.posterior(prepared, Rows(x, y, mask))
    phi = features(net, *rows_of(past, x, mask))
    expected = np.linalg.solve(RIDGE * np.eye(12) + phi.T @ phi, phi.T @ outputs_of(net, past, y, mask))
    np.testing.assert_allclose(posterior.weights, expected, rtol=1e-9, atol=1e-12)
    at = np.random.default_rng(6).uniform(size=(5, DIM))
    here = features(net, at, np.full(5, TASKS))
    np.testing.assert_allclose(posterior.predict(jnp.asarray(at))[0], 1.5 + 2.0 * here @ expected, rtol=1e-9)


def test_ten_tasks_like_the_target_are_learned():
    """A case in which it must work: past tasks are the target itself. Length-scale 1 and ridge 1, as in Liu et al., is
    too stiff for it, whatever the weights."""
    rng = np.random.default_rng(0)
    x = np.broadcast_to(rng.uniform(size=(60, DIM)), (10, 60, DIM))
    y = np.sin(9 * x[..., 0]) + np.cos(7 * x[..., 1])
    past = Rows(*map(jnp.asarray, (x, y, np.ones((10, 60), bool))))
    none = Rows(np.zeros((1, DIM)), np.zeros(1), np.zeros(1, bool))
    at = rng.uniform(size=(200, DIM))
    truth = np.sin(9 * at[:, 0]) + np.cos(7 * at[:, 1])
    reached = {}
    for lengthscale, ridge in ((1.0, 1.0), (0.3, 0.01)):
        model = {"random_features": 64, "embedding": 5, "ridge": ridge, "lengthscale": lengthscale, "weights": "solved"}
        net = rfgp.start(model, DIM, 10, jax.random.key(1))
        net = eqx.tree_at(lambda n: n.outputs, net, Outputs(jnp.asarray(y.mean()), jnp.asarray(y.std())))
        mean, _ = net.posterior(net.prepare(past), none).predict(jnp.asarray(at))
        reached[lengthscale] = 1 - np.mean((np.asarray(mean) - truth) ** 2) / truth.var()
    assert reached[0.3] > 0.9 > reached[1.0]


def test_products_stay_exact_when_the_embeddings_move():
    net, past = networks.network("rfgp"), networks.past()
    prepared = net.prepare(past)
    moved = eqx.tree_at(lambda n: n.learned.embedding, net, net.learned.embedding * -1.7 + 0.3)
    x, _, mask = observations()
    phi = features(moved, *rows_of(past, x, mask))
    precision = moved.precision(prepared, jnp.asarray(x), jnp.asarray(mask))
    np.testing.assert_allclose(precision, RIDGE * np.eye(12) + phi.T @ phi, rtol=1e-10, atol=1e-12)


def test_loss_over_all_rows_is_least_at_the_posterior_mean():
    net, past = networks.network("rfgp"), networks.past()
    x, y, mask = observations()
    inputs, task = rows_of(past, x, mask)
    outputs = np.concatenate([np.asarray(past.y)[np.asarray(past.mask)], y[mask]])
    phi, standard = features(net, inputs, task), (outputs - 1.5) / 2.0
    best = np.linalg.solve(phi.T @ phi + RIDGE * np.eye(12), phi.T @ standard)
    everything = MiniBatch(*(jnp.asarray(part)[:, None] for part in (inputs, outputs, task)), jnp.asarray(len(task)))

    def loss(weights):
        return eqx.tree_at(lambda n: n.learned.weights, net, weights).loss(everything)

    value, gradient = jax.value_and_grad(loss)(jnp.asarray(best))
    by_hand = np.mean((standard - phi @ best) ** 2) / 2 + RIDGE / 14 * best @ best / 2
    assert float(value) == pytest.approx(by_hand, rel=1e-12)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    assert float(loss(jnp.asarray(best) + 0.01)) > by_hand


def test_kernel_approaches_the_rbf_kernel_as_features_grow():
    rng = np.random.default_rng(7)
    x, embedding = rng.uniform(size=(30, DIM)), rng.normal(size=(30, 2))
    exact = np.exp(-0.5 * cdist(np.hstack([x, embedding]), np.hstack([x, embedding]), "sqeuclidean"))
    errors = {}
    for count in (16, 256, 4096):
        model = {"random_features": count, "embedding": 2, "ridge": 1.0}
        nets = [rfgp.start(model, DIM, TASKS, jax.random.key(seed)) for seed in range(8)]
        phis = [np.asarray(net.features(jnp.asarray(x), jnp.asarray(embedding))) for net in nets]
        errors[count] = np.sqrt(np.mean([(phi @ phi.T - exact) ** 2 for phi in phis]))
    # The error of a mean of k terms: a quarter for sixteen times as many.
    assert errors[256] / errors[16] == pytest.approx(0.25, rel=0.3)
    assert errors[4096] / errors[256] == pytest.approx(0.25, rel=0.3)
    assert errors[4096] < 0.02


def test_a_fresh_start_keeps_the_random_features_and_predicts_the_prior_mean():
    net = networks.network("rfgp")
    fresh = net.fresh(jax.random.key(1))
    for name in ("frequencies", "shifts", "phases"):
        np.testing.assert_array_equal(getattr(fresh, name), getattr(net, name))
    assert (fresh.learned.weights == 0).all() and (fresh.learned.embedding != net.learned.embedding).all()
    nothing = net.prepare(networks.past(counts=(0, 0, 0)))
    x, y, mask = observations(0)
    mean, variance = fresh.posterior(nothing, Rows(x, y, mask)).predict(jnp.asarray(x))
    np.testing.assert_allclose(mean, 1.5)
    np.testing.assert_allclose(variance, 4.0 * np.sum(features(fresh, x, np.full(6, TASKS)) ** 2, axis=1), rtol=1e-10)


@pytest.mark.parametrize(("key", "value"), [("random_features", 13), ("embedding", 3), ("ridge", 0.2)])
def test_model_settings_change_the_prediction(key, value):
    past, (x, y, mask) = networks.past(), map(jnp.asarray, observations())
    base, other = networks.network("rfgp"), networks.network("rfgp", **{key: value})
    (_, one), (_, two) = (net.posterior(net.prepare(past), Rows(x, y, mask)).predict(x) for net in (base, other))
    assert np.abs(one - two).max() > 1e-3

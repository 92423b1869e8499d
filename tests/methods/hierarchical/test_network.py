"""The network of the lengthscales' prior: against NumPy, padding, training, and what a squashed output cannot reach."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.flatten_util import ravel_pytree

from metabo.errors import ConfigError
from metabo.methods.hierarchical.contexts import of_columns
from metabo.methods.hierarchical.hyperprior import fit_gamma
from metabo.methods.hierarchical.network import OUTPUTS, loss, make, train
from tests.references import central_difference, mlp, softplus


def sample(seed=0, dims=(2, 3), discrete=1):
    """Contexts of spaces with `dims` inputs each, the first `discrete` of them discrete, and a lengthscale for each."""
    context = np.concatenate([of_columns(np.arange(d) < discrete) for d in dims])
    return jnp.asarray(context), jnp.asarray(np.random.default_rng(seed).gamma(2.0, 0.3, size=len(context)))


def reference(network, context):
    """Shape and rate by plain NumPy."""
    out = mlp(list(zip(network.hidden.weights, network.hidden.biases, strict=True)), np.asarray(context))
    out = out @ np.asarray(network.weight) + np.asarray(network.bias)
    return softplus(np.tanh(out) if network.output == "squashed" else out)


def moved(output, seed=0):
    """A network whose biases are not zero."""
    rng = np.random.default_rng(seed)
    network = make(jax.random.key(seed), (16, 16), output)
    return jax.tree.map(lambda leaf: leaf + 0.2 * rng.normal(size=leaf.shape), network)


@pytest.mark.parametrize("output", OUTPUTS)
def test_output_and_loss_against_numpy(output):
    network, (context, lengthscale) = moved(output), sample()
    shape, rate = reference(network, context).T
    np.testing.assert_allclose(network(context), np.stack([shape, rate], 1), rtol=1e-12)
    expected = -scipy.stats.gamma(shape, scale=1 / rate).logpdf(lengthscale).sum()
    assert float(loss(network, context, lengthscale, jnp.ones(5, bool))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("output", OUTPUTS)
def test_gradient_against_finite_differences(output):
    (context, lengthscale), every = sample(), jnp.ones(5, bool)
    flat, unravel = ravel_pytree(moved(output))

    def dense(vector):
        shape, rate = reference(unravel(jnp.asarray(vector)), context).T
        return -scipy.stats.gamma(shape, scale=1 / rate).logpdf(lengthscale).sum()

    gradient = ravel_pytree(eqx.filter_jit(jax.grad(loss))(unravel(flat), context, lengthscale, every))[0]
    np.testing.assert_allclose(gradient, central_difference(dense, flat, 1e-6), rtol=1e-5, atol=1e-6)


def test_structure_is_the_papers():
    network = make(jax.random.key(0))
    assert [w.shape for w in network.hidden.weights] == [(4, 16), (16, 16)] and network.weight.shape == (16, 2)
    assert network.output == "linear"
    for bias in (*network.hidden.biases, network.bias):
        assert not np.asarray(bias).any()
    assert make(jax.random.key(0), (5,)).weight.shape == (5, 2)
    others = [make(jax.random.key(1)), make(jax.random.key(0), output="squashed")]
    assert not np.allclose(others[0].weight, network.weight)
    np.testing.assert_array_equal(others[1].weight, network.weight)  # the output's shape changes no weight


def test_an_unknown_output_is_named():
    with pytest.raises(ConfigError, match=r"unknown output of the prior network 'tanh'.*linear, squashed"):
        make(jax.random.key(0), output="tanh")


@pytest.mark.parametrize("hidden", [(), (16, 0)])
def test_a_network_needs_hidden_units(hidden):
    with pytest.raises(ConfigError, match="at least one unit"):
        make(jax.random.key(0), hidden)


@pytest.mark.parametrize("filler", [0.0, -3.0, np.nan])
def test_masked_lengthscales_change_nothing(filler):
    network, (context, lengthscale) = moved("linear"), sample()
    wide = jnp.concatenate([jnp.full((3, 4), 7.0), context]), jnp.concatenate([jnp.full(3, filler), lengthscale])
    mask = jnp.arange(8) >= 3
    settings = {"steps": 30, "learning_rate": 1e-2}
    bare, log = train(network, context, lengthscale, mask[3:], **settings)
    padded, other = train(network, *wide, mask, **settings)
    np.testing.assert_allclose(other.loss, log.loss, rtol=1e-9)
    assert int(log.stopped) == int(other.stopped) == -1
    for a, b in zip(jax.tree.leaves(bare), jax.tree.leaves(padded), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_training_is_adam_on_all_lengthscales():
    # The same steps written out: moments with decay 0.9 and 0.999, bias-corrected.
    network, (context, lengthscale) = moved("squashed"), sample(dims=(4, 2))
    every = jnp.ones(6, bool)
    flat, unravel = ravel_pytree(network)
    gradient = jax.jit(jax.value_and_grad(lambda v: loss(unravel(v), context, lengthscale, every)))
    first, second, losses = np.zeros(len(flat)), np.zeros(len(flat)), []
    for t in range(1, 8):
        value, g = gradient(flat)
        losses.append(float(value))
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        flat = flat - 0.01 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    trained, log = train(network, context, lengthscale, every, steps=7, learning_rate=0.01)
    np.testing.assert_allclose(ravel_pytree(trained)[0], flat, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(log.loss, losses, rtol=1e-9)


def test_a_step_that_is_not_finite_ends_training():
    network, (context, lengthscale) = moved("linear"), sample()
    every = jnp.ones(5, bool)
    trained, log = train(network, context, lengthscale.at[2].set(jnp.nan), every, steps=4, learning_rate=0.01)
    assert int(log.stopped) == 0
    for a, b in zip(jax.tree.leaves(trained), jax.tree.leaves(network), strict=True):
        np.testing.assert_array_equal(a, b)
    trained, log = train(network, context, lengthscale, every, steps=40, learning_rate=1e3)
    assert int(log.stopped) != 0 and np.isfinite(float(loss(trained, context, lengthscale, every)))


def test_a_linear_output_reaches_the_truth_and_a_squashed_one_cannot():
    # The ends of Super-dataset L (mphd App. E.1): Γ(1.0000, 4.9999) at 2 inputs and Γ(1.9231, 0.7531) at 14.
    truth = {2: (1.0000, 4.9999), 14: (1.9231, 0.7531)}
    rng = np.random.default_rng(1)
    context = np.repeat([[0.0, 1.0, 0.0, d] for d in truth], 300, axis=0)
    drawn = np.concatenate([rng.gamma(a, 1 / b, size=300) for a, b in truth.values()])
    numbers, ends = {}, {}
    for output in OUTPUTS:
        network = make(jax.random.key(0), output=output)
        trained, log = eqx.filter_jit(train)(
            network, jnp.asarray(context), jnp.asarray(drawn), jnp.ones(600, bool), steps=10_000, learning_rate=1e-3
        )
        numbers[output], ends[output] = np.asarray(trained(jnp.asarray(context[[0, -1]]))), float(log.loss[-1])
    best = np.array([fit_gamma(drawn[:300]), fit_gamma(drawn[300:])])  # the maximum of the likelihood at either end
    np.testing.assert_allclose(numbers["linear"], best, rtol=0.02)
    np.testing.assert_allclose(numbers["linear"], list(truth.values()), rtol=0.2)
    squashed = numbers["squashed"]
    assert (squashed > 0.3132).all() and (squashed < 1.3133).all()  # softplus(-1), softplus(1)
    assert squashed[0, 1] < 4.9999 / 3 and squashed[1, 0] < 1.9231 / 1.4
    assert ends["linear"] < ends["squashed"] - 30  # in nats, of 600 samples

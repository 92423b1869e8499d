"""Networks of pd1_mini against SciPy's correlation, JAX's own convolution and plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate

from metabo.collect import networks
from metabo.errors import ConfigError

SHAPES = [((14, 14), (3, 3)), ((7, 9), (3, 3)), ((8, 5), (5, 3)), ((40,), (5,)), ((11,), (3,))]


def correlated(x, kernel):
    """Cross-correlate (n, *space, c) with (*window, c, filters), zeros outside, in float64 by SciPy."""
    n, *space, channels = x.shape
    filters = kernel.shape[-1]
    out = np.zeros((n, *space, filters))
    for i in range(n):
        for f in range(filters):
            for c in range(channels):
                out[i, ..., f] += correlate(x[i, ..., c], kernel[..., c, f], mode="same", method="direct")
    return out


def pooled(y):
    """Maximum over blocks of 2 per axis, an odd last row left out."""
    n, *space, filters = y.shape
    out = np.full((n, *(s // 2 for s in space), filters), -np.inf)
    for place in np.ndindex(*out.shape[1:-1]):
        block = tuple(slice(2 * p, 2 * p + 2) for p in place)
        part = y[(slice(None), *block)]
        out[(slice(None), *place)] = part.reshape(n, -1, filters).max(axis=1) if len(space) == 1 else part.max((1, 2))
    return out


def drawn(seed, space, window, channels=3, filters=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, *space, channels)), rng.normal(size=(*window, channels, filters))


@pytest.mark.parametrize(("space", "window"), SHAPES)
def test_halved_is_every_second_place_of_the_correlation(space, window):
    x, kernel = drawn(1, space, window)
    every_second = (slice(None), *(slice(None, None, 2) for _ in space))
    found = jax.jit(networks.halved)(jnp.asarray(x, jnp.float32), jnp.asarray(kernel, jnp.float32))
    np.testing.assert_allclose(found, correlated(x, kernel)[every_second], atol=2e-5)


@pytest.mark.parametrize(("space", "window"), SHAPES)
def test_pooled_is_the_maximum_of_the_correlation(space, window):
    x, kernel = drawn(2, space, window)
    found = jax.jit(networks.pooled)(jnp.asarray(x, jnp.float32), jnp.asarray(kernel, jnp.float32))
    np.testing.assert_allclose(found, pooled(correlated(x, kernel)), atol=2e-5)


def test_pooled_has_the_gradient_of_the_library_convolution():
    x, kernel = (jnp.asarray(a) for a in drawn(3, (8, 7), (3, 3)))
    weight = jnp.asarray(np.random.default_rng(4).normal(size=(2, 4, 3, 4)))

    def library(x, kernel):
        y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    found, expected = (
        jax.jit(jax.grad(lambda *a, f=f: jnp.sum(weight * f(*a)), argnums=(0, 1)))(x, kernel)
        for f in (networks.pooled, library)
    )
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-10)


def layers(network):
    """Draw parameters of the network's shapes; biases that are not zero show that each is added at its place."""
    rng = np.random.default_rng(7)
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    return {
        k: (rng.normal(size=w.shape) / np.sqrt(np.prod(w.shape[:-1])), 0.1 * rng.normal(size=b.shape))
        for k, (w, b) in shapes.items()
    }


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_max_pool_cnn_is_what_it_says(activation):
    network = networks.build(f"max_pool_{activation}", (8, 8, 1), 10)
    act = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}[activation]
    p = layers(network)
    x = np.random.default_rng(5).normal(size=(3, 8, 8, 1))
    h = act(pooled(correlated(x, p["conv1"][0]) + p["conv1"][1]))
    h = act(pooled(correlated(h, p["conv2"][0]) + p["conv2"][1])).reshape(3, -1)
    expected = act(h @ p["dense1"][0] + p["dense1"][1]) @ p["out"][0] + p["out"][1]
    found = jax.jit(network.apply)(jax.tree.map(jnp.float32, p), jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_simple_cnn_is_what_it_says():
    network = networks.build("simple_cnn", (9, 8, 1), 4)
    p = layers(network)
    x = np.random.default_rng(6).normal(size=(3, 9, 8, 1))
    h = np.maximum(correlated(x, p["conv1"][0])[:, ::2, ::2] + p["conv1"][1], 0)
    h = np.maximum(correlated(h, p["conv2"][0])[:, ::2, ::2] + p["conv2"][1], 0).reshape(3, -1)
    found = jax.jit(network.apply)(jax.tree.map(jnp.float32, p), jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, h @ p["out"][0] + p["out"][1], atol=2e-5)


def normed(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)


def test_transformer_against_loops_over_heads_and_places():
    network = networks.build("transformer", (6,), 5)
    p = layers(network)
    tokens = np.array([[0, 4, 2, 2, 1, 3], [3, 3, 0, 1, 4, 2]])
    expected = np.zeros((2, 6, 5))
    for i, sequence in enumerate(tokens):
        x = p["embed"][0][sequence] + p["place"][0]
        q, k, v = np.split(normed(x) @ p["qkv"][0] + p["qkv"][1], 3, axis=1)
        mixed = np.zeros_like(x)
        for head in (slice(0, 16), slice(16, 32)):
            for t in range(6):
                score = np.exp(k[: t + 1, head] @ q[t, head] / 4)
                mixed[t, head] = score / score.sum() @ v[: t + 1, head]
        x = x + mixed @ p["mix"][0] + p["mix"][1]
        x = x + np.maximum(normed(x) @ p["ff1"][0] + p["ff1"][1], 0) @ p["ff2"][0] + p["ff2"][1]
        expected[i] = x @ p["out"][0] + p["out"][1]
    found = jax.jit(network.apply)(jax.tree.map(jnp.float32, p), jnp.asarray(tokens, jnp.int32))
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_weights_have_the_variance_of_their_layer(getkey):
    p = networks.build("max_pool_relu", (32, 32, 1), 10).init(getkey())
    for name, gain in {"conv2": 2, "dense1": 2, "out": 1}.items():
        weight, bias = p[name]
        number = weight.size
        assert np.var(weight) * np.prod(weight.shape[:-1]) == pytest.approx(gain, abs=5 * gain * (2 / number) ** 0.5)
        assert not np.any(bias)


def test_an_unknown_network_is_named_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown network 'max_pool_rely'\. Did you mean 'max_pool_relu'"):
        networks.build("max_pool_rely", (8, 8, 1), 10)

"""Small networks for classification, float32 throughout: pure functions of a parameter tree, without any state.

Layouts: images (n, height, width, channels), signals (n, length, channels), tables (n, features), text (n, length)
token numbers. All parameters of a network are a dict of (weight, bias) pairs by layer.
"""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, Num, PyTree

from metabo.errors import unknown

Layer = tuple[Float[Array, "..."], Float[Array, " width"]]


class Network(NamedTuple):
    """`init(key)` draws the parameters; `apply(parameters, x)` returns logits, classes last."""

    init: Callable[[Key[Array, ""]], PyTree]
    apply: Callable[[PyTree, Num[Array, "..."]], Float[Array, "..."]]


class Operations(NamedTuple):
    """Two ways to convolve (x, kernel): `halved` with stride 2, `pooled` followed by 2-fold max pooling."""

    halved: Callable[[Float[Array, "..."], Float[Array, "..."]], Float[Array, "..."]]
    pooled: Callable[[Float[Array, "..."], Float[Array, "..."]], Float[Array, "..."]]


def build(variant: str, shape: tuple[int, ...], classes: int, operations: Operations | None = None) -> Network:
    """Return the network of one of `VARIANTS` for one example's shape. `operations`: how to convolve, by default as
    products of patches and matrices. Raises ConfigError for an unknown variant."""
    if variant not in VARIANTS:
        raise unknown("network", variant, VARIANTS)
    return VARIANTS[variant](shape, classes, operations or Operations(halved, pooled))


def halved(x: Float[Array, "..."], kernel: Float[Array, "..."]) -> Float[Array, "..."]:
    """Cross-correlate with stride 2 and zero padding "same" around the first place: patches times a matrix (im2col).

    x (n, *space, c), kernel (*window of odd widths, c, filters) -> (n, *ceil(space / 2), filters). On one core this
    trains several times faster than the library's convolution (benchmarks/networks.py).
    """
    return patches(x, kernel.shape[:-2], 2) @ kernel.reshape(-1, kernel.shape[-1])


def patches(x: Float[Array, "..."], window: tuple[int, ...], stride: int) -> Float[Array, "..."]:
    """Return (n, *ceil(space / stride), prod(window) * c): what the window covers at each place, zeros outside."""
    padded = jnp.pad(x, [(0, 0), *((w // 2, w // 2) for w in window), (0, 0)])
    sections = []
    for offset in product(*map(range, window)):
        place = [slice(o, o + s, stride) for o, s in zip(offset, x.shape[1:-1], strict=True)]
        sections.append(padded[(slice(None), *place)])
    return jnp.concatenate(sections, axis=-1)


def pooled(x: Float[Array, "..."], kernel: Float[Array, "..."]) -> Float[Array, "..."]:
    """Cross-correlate with zero padding "same", then halve each axis by the maximum of 2 neighbours.

    x (n, *space, c), kernel (*window of odd widths, c, filters) -> (n, *space // 2, filters); an odd last row is left
    out. A single product of matrices gives the places that are pooled together next to each other: the kernel, shifted
    to each of them, acts on patches one wider than itself. This needs a fraction of the patches of the direct way, and
    trains twice as fast (benchmarks/networks.py).
    """
    window = kernel.shape[:-2]
    axes = range(len(window))
    space = [s // 2 for s in x.shape[1:-1]]
    half = [(w + 1) // 2 for w in window]  # of the widened patch, which has 2 half places
    ends = [(w // 2, w // 2 + 1) for w in window]
    whole = jnp.pad(x, [(0, 0), *ends, (0, 0)])
    whole = whole[(slice(None), *(slice(0, 2 * (s + h - 1)) for s, h in zip(space, half, strict=True)))]
    blocks = _pairs_last(whole, 1, len(window)).reshape(
        len(x), *(s + h - 1 for s, h in zip(space, half, strict=True)), -1
    )
    sections = []
    for offset in product(*map(range, half)):
        place = [slice(o, o + s) for o, s in zip(offset, space, strict=True)]
        sections.append(blocks[(slice(None), *place)])
    shifts = [
        jnp.pad(kernel, [*((o, 1 - o) for o in offset), (0, 0), (0, 0)]) for offset in product((0, 1), repeat=len(axes))
    ]
    wide = _pairs_last(jnp.stack(shifts, axis=-2), 0, len(window))
    number, filters = len(shifts), kernel.shape[-1]
    y = jnp.concatenate(sections, axis=-1) @ wide.reshape(-1, number * filters)
    return y.reshape(*y.shape[:-1], number, filters).max(axis=-2)


def _pairs_last(x: Float[Array, "..."], first: int, axes: int) -> Float[Array, "..."]:
    """Split each of the even axes from `first` on into (half, 2), and move the twos behind the last of them."""
    after = first + axes
    split = [part for size in x.shape[first:after] for part in (size // 2, 2)]
    x = x.reshape(*x.shape[:first], *split, *x.shape[after:])
    outer = [first + 2 * i for i in range(axes)]
    order = [*range(first), *outer, *(o + 1 for o in outer), *range(first + 2 * axes, x.ndim)]
    return x.transpose(order)


def layer(key: Key[Array, ""], shape: tuple[int, ...], gain: float) -> Layer:
    """Draw weights with variance gain / fan-in (gain 2: He, for ReLU; 1: LeCun) and zero biases."""
    fan_in = 1
    for width in shape[:-1]:
        fan_in *= width
    scale = jnp.float32((gain / fan_in) ** 0.5)
    return scale * jax.random.normal(key, shape, jnp.float32), jnp.zeros(shape[-1], jnp.float32)


def dense(parameters: Layer, x: Float[Array, "... d"]) -> Float[Array, "... k"]:
    """Return x W + b."""
    return x @ parameters[0] + parameters[1]


def stack(
    shapes: dict[str, tuple[int, ...]], gain: float, run: Callable[[PyTree, Num[Array, "..."]], Float[Array, "..."]]
) -> Network:
    """Make a network of layers with the given weight shapes."""

    def init(key: Key[Array, ""]) -> PyTree:
        keys = jax.random.split(key, len(shapes))
        last = list(shapes)[-1]
        return {
            name: layer(k, shape, 1.0 if name == last else gain)
            for (name, shape), k in zip(shapes.items(), keys, strict=True)
        }

    return Network(init, run)


def mlp(shape: tuple[int, ...], classes: int, operations: Operations, width: int = 64) -> Network:
    """A linear layer on the flattened input, then two residual ReLU layers of the same width."""
    inputs = 1
    for size in shape:
        inputs *= size

    def run(p: PyTree, x: Num[Array, "..."]) -> Float[Array, "n k"]:
        h = dense(p["embed"], x.reshape(len(x), -1))
        h = h + jax.nn.relu(dense(p["dense1"], h))
        h = h + jax.nn.relu(dense(p["dense2"], h))
        return dense(p["out"], h)

    square = (width, width)
    return stack({"embed": (inputs, width), "dense1": square, "dense2": square, "out": (width, classes)}, 1.0, run)


def simple_cnn(
    shape: tuple[int, ...], classes: int, operations: Operations, filters: tuple[int, int] = (8, 16)
) -> Network:
    """Two 3 x 3 convolutions with stride 2 and ReLU, then the output layer."""
    *space, channels = shape
    window = (3,) * len(space)
    places = 1
    for width in space:
        places *= -(-width // 4)
    first, second = filters

    def run(p: PyTree, x: Num[Array, "..."]) -> Float[Array, "n k"]:
        h = jax.nn.relu(operations.halved(x, p["conv1"][0]) + p["conv1"][1])
        h = jax.nn.relu(operations.halved(h, p["conv2"][0]) + p["conv2"][1])
        return dense(p["out"], h.reshape(len(x), -1))

    shapes = {
        "conv1": (*window, channels, first),
        "conv2": (*window, first, second),
        "out": (places * second, classes),
    }
    return stack(shapes, 2.0, run)


def max_pool_cnn(
    shape: tuple[int, ...], classes: int, operations: Operations, activation: str, filters: tuple[int, int] = (8, 16)
) -> Network:
    """Two convolutions (3 x 3; signals: 5), each followed by 2-fold max pooling, a dense layer and the output layer."""
    *space, channels = shape
    window = (3, 3) if len(space) == 2 else (5,)
    places = 1
    for width in space:
        places *= width // 2 // 2
    first, second = filters
    act = {"relu": jax.nn.relu, "tanh": jnp.tanh}[activation]

    def run(p: PyTree, x: Num[Array, "..."]) -> Float[Array, "n k"]:
        h = act(operations.pooled(x, p["conv1"][0]) + p["conv1"][1])
        h = act(operations.pooled(h, p["conv2"][0]) + p["conv2"][1])
        h = act(dense(p["dense1"], h.reshape(len(x), -1)))
        return dense(p["out"], h)

    shapes = {
        "conv1": (*window, channels, first),
        "conv2": (*window, first, second),
        "dense1": (places * second, 32),
        "out": (32, classes),
    }
    return stack(shapes, 2.0 if activation == "relu" else 1.0, run)


def transformer(
    shape: tuple[int, ...], classes: int, operations: Operations, width: int = 32, heads: int = 2
) -> Network:
    """One causal pre-norm block (attention, then a ReLU layer of 2 width) on token and place embeddings."""
    (length,) = shape
    head = width // heads

    def run(p: PyTree, tokens: Num[Array, "n length"]) -> Float[Array, "n length k"]:
        n = len(tokens)
        x = jax.nn.one_hot(tokens, classes, dtype=jnp.float32) @ p["embed"][0] + p["place"][0]
        q, k, v = jnp.split(dense(p["qkv"], norm(x)).reshape(n, length, 3 * heads, head), 3, axis=2)
        score = jnp.einsum("nihd,njhd->nhij", q, k) * jnp.float32(head**-0.5)
        seen = jnp.tril(jnp.ones((length, length), bool))
        weight = jax.nn.softmax(jnp.where(seen, score, jnp.float32(-1e9)), axis=-1)
        mixed = jnp.einsum("nhij,njhd->nihd", weight, v).reshape(n, length, width)
        x = x + dense(p["mix"], mixed)
        x = x + dense(p["ff2"], jax.nn.relu(dense(p["ff1"], norm(x))))
        return dense(p["out"], x)

    shapes = {
        "embed": (classes, width),
        "place": (length, width),
        "qkv": (width, 3 * width),
        "mix": (width, width),
        "ff1": (width, 2 * width),
        "ff2": (2 * width, width),
        "out": (width, classes),
    }
    return stack(shapes, 1.0, run)


def norm(x: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """Return x with mean 0 and variance 1 over its last axis (layer normalisation without parameters)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + jnp.float32(1e-6))


VARIANTS: dict[str, Callable[..., Network]] = {
    "simple_cnn": simple_cnn,
    "max_pool_relu": lambda shape, classes, operations: max_pool_cnn(shape, classes, operations, "relu"),
    "max_pool_tanh": lambda shape, classes, operations: max_pool_cnn(shape, classes, operations, "tanh"),
    "mlp": mlp,
    "transformer": transformer,
}

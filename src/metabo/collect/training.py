"""Train many configurations of one task in one compiled program, as PD1 does (hyperbo §7.1, Eq. 25).

Minibatch stochastic gradient with Nesterov momentum on the cross entropy, float32 throughout. The four numbers that are
tuned are an input of the program, so it is compiled once per task. Configurations run in turn: one that diverges then
stops at once and costs little, and on one core this is faster than training side by side (vmap;
benchmarks/networks.py).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int32, Key, PyTree

from metabo.collect.networks import Network
from metabo.errors import ConfigError

POINTS = 8
"""Places of the training curve where the network is evaluated; the last is the end of training."""

CHUNK = 32
"""Configurations of one call of the program; spare places stay empty and cost nothing."""


class Examples(NamedTuple):
    """A classification data set, first axis examples: inputs (float32, tokens int32) and int32 labels.

    Labels have one entry per example, or one per token. `classes` counts the labels.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_valid: np.ndarray
    y_valid: np.ndarray
    classes: int


class TrainingResult(NamedTuple):
    """What one configuration gave: curves as in `pd1_archive.CURVES` (NaN from divergence on), whether it diverged, and
    its steps.

    Inside the program the error curves count errors; `trainer` makes them rates.
    """

    curves: Float[Array, "*m 4 points"]
    diverged: Bool[Array, "*m"]
    steps: Int32[Array, "*m"]


class _TrainingState(NamedTuple):
    """Parameters, momentum, steps done, and whether the cost of every step so far was finite."""

    parameters: PyTree
    trace: PyTree
    step: Int32[Array, ""]
    sound: Bool[Array, ""]


def schedule(
    step: Int32[Array, ""], rate: Float[Array, ""], power: Float[Array, ""], share: Float[Array, ""], steps: int
) -> Float[Array, ""]:
    """Return the rate at a step (from 0): hyperbo Eq. 25, polynomial decay to rate / 1000 over a share of T."""
    end = share * jnp.float32(steps)
    left = 1 - jnp.minimum(step.astype(jnp.float32), end) / end
    low = rate / 1000
    return low + (rate - low) * left**power


def cross_entropy(logits: Float[Array, "... k"], labels: Int32[Array, "..."]) -> Float[Array, ""]:
    """Return the mean cross entropy in nats."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def batches(key: Key[Array, ""], examples: int, batch: int, steps: int) -> Int32[Array, "steps batch"]:
    """Return the examples of each step. Every epoch has its own order; its last, incomplete batch is left out.

    An order sorts 32 random bits per example; ties (one in a thousand orders) keep their order, which is harmless.
    """
    per_epoch = examples // batch
    numbers = jnp.arange(examples, dtype=jnp.int32)

    def order(key: Key[Array, ""]) -> Int32[Array, " examples"]:
        return jax.lax.sort_key_val(jax.random.bits(key, (examples,), jnp.uint32), numbers)[1]

    orders = jax.lax.map(order, jax.random.split(key, -(-steps // per_epoch)))
    return orders[:, : per_epoch * batch].reshape(-1, batch)[:steps]


def train(
    network: Network,
    data: PyTree,
    batch: int,
    steps: int,
    probe: int,
    key: Key[Array, ""],
    point: Float[Array, "4"],
) -> TrainingResult:
    """Train one configuration. `data`: (x_train, y_train) and what to evaluate, (x, y) whose first `probe` examples are
    of training, the others of validation; `point`: λ, η, p, β; `steps`: a multiple of `POINTS`."""
    x, y, inputs, labels = data
    share, rate, power, momentum = point
    start, order = jax.random.split(key)
    chosen = batches(order, len(x), batch, steps)
    nesterov = optax.trace(decay=momentum, nesterov=True)

    def cost(parameters: PyTree, x: Array, y: Array) -> Float[Array, ""]:
        return cross_entropy(network.apply(parameters, x), y)

    def step(state: _TrainingState) -> _TrainingState:
        rows = chosen[state.step]
        value, gradient = jax.value_and_grad(cost)(state.parameters, x[rows], y[rows])
        update, trace = nesterov.update(gradient, optax.TraceState(state.trace))
        now = schedule(state.step, rate, power, share, steps)
        parameters = jax.tree.map(lambda p, u: p - now * u, state.parameters, update)
        return _TrainingState(parameters, trace.trace, state.step + jnp.int32(1), jnp.isfinite(value))

    def evaluate(parameters: PyTree) -> Float[Array, "4"]:
        logits = network.apply(parameters, inputs)
        numbers = []
        for part in (slice(0, probe), slice(probe, None)):
            wrong = jnp.argmax(logits[part], axis=-1) != labels[part]
            numbers += [cross_entropy(logits[part], labels[part]), jnp.sum(wrong, dtype=jnp.float32)]
        values = jnp.stack(numbers)
        return jnp.where(jnp.isfinite(values[0]), values, jnp.float32(jnp.nan))

    def segment(carry: tuple[_TrainingState, Array]) -> tuple[_TrainingState, Array]:
        state, curves = carry
        place = state.step // jnp.int32(steps // POINTS)
        end = (place + 1) * jnp.int32(steps // POINTS)
        state = jax.lax.while_loop(lambda s: s.sound & (s.step < end), step, state)
        nothing = jnp.full(4, jnp.nan, jnp.float32)
        values = jax.lax.cond(state.sound, evaluate, lambda _: nothing, state.parameters)
        curves = jax.lax.dynamic_update_index_in_dim(curves, values, place, 1)
        return state._replace(sound=state.sound & jnp.isfinite(values[0])), curves

    parameters = network.init(start)
    state = _TrainingState(parameters, jax.tree.map(jnp.zeros_like, parameters), jnp.int32(0), jnp.bool_(True))
    curves = jnp.full((4, POINTS), jnp.nan, jnp.float32)
    state, curves = jax.lax.while_loop(lambda c: c[0].sound & (c[0].step < steps), segment, (state, curves))
    return TrainingResult(curves, ~state.sound, state.step)


def trainer(
    network: Network, data: Examples, batch: int, steps: int, probe: int
) -> Callable[[Key[Array, " m"], np.ndarray], TrainingResult]:
    """Return `run(keys, points)`, which trains any number m of configurations (m, 4) and gives NumPy results.

    `probe`: how many training examples the training curve is evaluated on (the first ones). Compiled at the first call.
    A configuration's result depends on its key and point alone. Raises ConfigError unless `POINTS` divides `steps` and
    a batch fits in the data.
    """
    if steps % POINTS or steps <= 0:
        raise ConfigError(f"training: steps must be a positive multiple of {POINTS}, got {steps}")
    if not 0 < batch <= len(data.x_train):
        raise ConfigError(f"training: a batch of {batch} does not fit in {len(data.x_train)} training examples")
    x, y = jnp.asarray(data.x_train), jnp.asarray(data.y_train)
    shown = (jnp.concatenate([x[:probe], data.x_valid]), jnp.concatenate([y[:probe], data.y_valid]))
    program = compiled(network, batch, steps, min(probe, len(x)))
    labels = np.array([1, y[:probe].size, 1, data.y_valid.size], np.float32)[:, None]  # rates: correctly rounded here

    def run(keys: Key[Array, " m"], points: np.ndarray) -> TrainingResult:
        parts = []
        for first in range(0, len(points), CHUNK):
            number = min(CHUNK, len(points) - first)
            place = np.minimum(np.arange(CHUNK), number - 1) + first
            numbers = jnp.asarray(points[place], jnp.float32)
            result = program((x, y, *shown), keys[place], numbers, jnp.int32(number))
            curves, diverged, done = (np.asarray(part)[:number] for part in result)
            parts.append(TrainingResult(curves / labels, diverged, done))
        return jax.tree.map(lambda *a: np.concatenate(a), *parts)

    return run


def compiled(network: Network, batch: int, steps: int, probe: int) -> Callable[..., TrainingResult]:
    """Return the jitted program: (data, keys (CHUNK,), points (CHUNK, 4), m) -> result whose first m are trained."""

    @jax.jit
    def program(
        data: PyTree, keys: Key[Array, " m"], points: Float[Array, "m 4"], number: Int32[Array, ""]
    ) -> TrainingResult:
        def one(i: Int32[Array, ""], results: TrainingResult) -> TrainingResult:
            found = train(network, data, batch, steps, probe, keys[i], points[i])
            return jax.tree.map(lambda all_, mine: all_.at[i].set(mine), results, found)

        empty = TrainingResult(
            jnp.full((CHUNK, 4, POINTS), jnp.nan, jnp.float32), jnp.zeros(CHUNK, bool), jnp.zeros(CHUNK, jnp.int32)
        )
        return jax.lax.fori_loop(jnp.int32(0), number, one, empty)

    return program

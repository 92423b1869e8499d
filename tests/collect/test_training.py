"""The training program of pd1_mini against NumPy: schedule, Nesterov steps, curves; divergence, chunks, dtypes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.collect import networks, training
from metabo.collect.training import CHUNK, POINTS, Examples, trainer
from metabo.errors import ConfigError

OPERATIONS = networks.Operations(networks.halved, networks.pooled)


def blobs(seed=0, train=60, valid=40, dim=3, classes=3):
    """Noisy classes: no network can fit them without error."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, train + valid).astype(np.int32)
    x = (1.5 * rng.normal(size=(classes, dim))[y] + rng.normal(size=(len(y), dim))).astype(np.float32)
    return Examples(x[:train], y[:train], x[train:], y[train:], classes)


def eq25(step, rate, power, share, steps):
    """hyperbo Eq. 25, as printed, in float64."""
    return rate / 1000 + (rate - rate / 1000) * (1 - min(step, share * steps) / (share * steps)) ** power


@pytest.mark.parametrize(("rate", "power", "share"), [(0.3, 0.1, 0.01), (10.0, 2.0, 0.99), (1e-5, 1.0, 0.5)])
def test_schedule_is_eq_25(rate, power, share):
    steps = 96
    schedule = jax.jit(partial(training.schedule, steps=steps))
    found = [schedule(jnp.int32(t), *(jnp.float32(v) for v in (rate, power, share))) for t in range(steps)]
    np.testing.assert_allclose(found, [eq25(t, rate, power, share, steps) for t in range(steps)], rtol=2e-4)


def test_batches_are_a_new_order_each_epoch(getkey):
    chosen = np.asarray(training.batches(getkey(), 10, 3, 7))
    assert chosen.shape == (7, 3)
    epochs = [chosen[:3].ravel(), chosen[3:6].ravel()]
    for epoch in epochs:
        assert len(set(epoch)) == 9 and set(epoch) <= set(range(10))  # the incomplete last batch is left out
    assert not np.array_equal(*epochs)


def numpy_forward(p, x):
    pre = [x @ p["embed"][0] + p["embed"][1]]
    masks = []
    for name in ("dense1", "dense2"):
        z = pre[-1] @ p[name][0] + p[name][1]
        masks.append(z > 0)
        pre.append(pre[-1] + np.maximum(z, 0))
    return pre, masks, pre[-1] @ p["out"][0] + p["out"][1]


def numpy_loss(p, x, y):
    logits = numpy_forward(p, x)[-1]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_prob = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_prob[np.arange(len(y)), y].mean(), np.mean(logits.argmax(axis=1) != y), np.exp(log_prob)


def numpy_gradient(p, x, y):
    """Back-propagation by hand through the residual network."""
    h, masks, _ = numpy_forward(p, x)
    delta = (numpy_loss(p, x, y)[2] - np.eye(p["out"][1].size)[y]) / len(y)
    gradient = {"out": (h[2].T @ delta, delta.sum(0))}
    down = delta @ p["out"][0].T
    for i in (1, 0):
        name = ("dense1", "dense2")[i]
        inner = down * masks[i]
        gradient[name] = (h[i].T @ inner, inner.sum(0))
        down = down + inner @ p[name][0].T
    gradient["embed"] = (x.T @ down, down.sum(0))
    return gradient


@pytest.mark.parametrize(("momentum", "power", "share"), [(0.9, 0.7, 0.6), (0.0, 2.0, 0.99)])
def test_training_is_nesterov_sgd_step_by_step(getkey, momentum, power, share):
    data, batch, steps, probe, rate = blobs(), 7, 24, 20, 0.05
    network = networks.mlp((3,), 3, OPERATIONS, width=5)
    key = getkey()
    result = trainer(network, data, batch, steps, probe)(key[None], np.array([[share, rate, power, momentum]]))

    start, order = jax.random.split(key)
    p = {k: (np.asarray(w, np.float64), np.asarray(b, np.float64)) for k, (w, b) in network.init(start).items()}
    velocity = {k: (np.zeros_like(w), np.zeros_like(b)) for k, (w, b) in p.items()}
    curves = []
    for t, rows in enumerate(np.asarray(training.batches(order, 60, batch, steps))):
        gradient = numpy_gradient(p, data.x_train[rows], data.y_train[rows])
        now = eq25(t, rate, power, share, steps)
        for k in p:
            velocity[k] = tuple(momentum * v + g for v, g in zip(velocity[k], gradient[k], strict=True))
            p[k] = tuple(w - now * (g + momentum * v) for w, g, v in zip(p[k], gradient[k], velocity[k], strict=True))
        if (t + 1) % (steps // POINTS) == 0:
            curves.append([
                *numpy_loss(p, data.x_train[:probe], data.y_train[:probe])[:2],
                *numpy_loss(p, data.x_valid, data.y_valid)[:2],
            ])  # fmt: skip
    curves = np.array(curves).T
    np.testing.assert_allclose(result.curves[0], curves, atol=2e-5)
    assert curves[0, -1] < 0.7 * curves[0, 0] or curves[0, -1] < 0.6  # it learned: the comparison is of a real run
    assert not result.diverged[0] and result.steps[0] == steps


@pytest.fixture(scope="module")
def small():
    return trainer(networks.mlp((3,), 3, OPERATIONS, width=8), blobs(1), 10, 80, 30)


POINTS_BOX = np.array([[0.5, 0.1, 1.0, 0.9], [0.99, 10.0, 0.1, 0.999], [0.3, 1e-5, 2.0, 0.0], [0.99, 2.0, 0.1, 0.9]])


def test_a_diverged_training_stops_and_keeps_what_it_had(small):
    keys = jax.random.split(jax.random.key(3), 40)
    rates = np.geomspace(0.01, 10, 40)
    result = small(keys, np.stack([np.full(40, 0.99), rates, np.full(40, 0.5), np.full(40, 0.95)], axis=1))
    finite = np.isfinite(result.curves)
    number = finite[:, 0].sum(axis=1)
    late = result.diverged & (number > 0)
    assert late.any() and (result.diverged & (number == 0)).any() and (~result.diverged).any()
    assert finite[~result.diverged].all()
    for curve, count in zip(finite[result.diverged], number[result.diverged], strict=True):
        assert curve[:, :count].all() and not curve[:, count:].any()  # finite up to divergence, NaN from there on
    # Cheap: it stopped within the eighth in which it diverged.
    assert (result.steps[result.diverged] <= (number[result.diverged] + 1) * 80 // POINTS).all()
    assert (result.steps[~result.diverged] == 80).all()
    assert result.diverged[-1] and result.steps[-1] < 8


def test_results_do_not_depend_on_the_company(small):
    keys = jax.random.split(jax.random.key(5), CHUNK + 5)
    points = np.tile(POINTS_BOX, (CHUNK, 1))[: CHUNK + 5]
    together = small(keys, points)
    for i in (0, 1, 3, CHUNK - 1, CHUNK, CHUNK + 4):
        alone = small(keys[i][None], points[i][None])
        for mine, all_ in zip(alone, together, strict=True):
            np.testing.assert_array_equal(mine[0], all_[i])
    backwards = small(keys[::-1], points[::-1])
    np.testing.assert_array_equal(backwards.curves[::-1], together.curves)


def test_good_and_bad_settings_differ(small):
    result = small(jax.random.split(jax.random.key(6), 4), POINTS_BOX)
    error = result.curves[:, 3]
    assert np.nanmin(error[0]) < 0.35 < 0.5 < np.nanmin(error[2])  # a good rate, and one that hardly moves
    assert result.diverged[1]
    np.testing.assert_array_equal(error[0] * 40, np.rint(error[0] * 40))


@pytest.mark.parametrize("variant", [*networks.VARIANTS])
def test_nothing_is_float64(variant):
    shape, kind = {"mlp": ((6,), np.float32), "transformer": ((6,), np.int32)}.get(variant, ((8, 8, 1), np.float32))
    labels = shape if variant == "transformer" else ()
    data = (np.zeros((40, *shape), kind), np.zeros((40, *labels), np.int32)) * 2
    given = (jax.random.split(jax.random.key(0), CHUNK), np.zeros((CHUNK, 4), np.float32), np.int32(1))
    program = training.compiled(networks.build(variant, shape, 5), 8, 16, 10)
    text = program.lower(data, *given).as_text()
    assert "f32" in text
    assert "f64" not in text


def test_steps_and_batches_that_cannot_be():
    network = networks.mlp((3,), 3, OPERATIONS)
    with pytest.raises(ConfigError, match="steps must be a positive multiple of 8, got 20"):
        trainer(network, blobs(), 10, 20, 5)
    with pytest.raises(ConfigError, match="a batch of 61 does not fit in 60 training examples"):
        trainer(network, blobs(), 61, 16, 5)

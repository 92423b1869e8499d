"""What MIMO and RFGP share: pooled rows, mini-batches, standardised outputs, training and its guard."""

from dataclasses import asdict, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.methods.embedding.networks import (
    Schedule,
    batches,
    draw,
    no_moments,
    own,
    pooled,
    pretrain_networks,
    standard_outputs,
    tell,
    train,
    with_own,
)
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import prior_keys, training_sets
from tests import tiny
from tests.methods.embedding import cases as networks
from tests.methods.embedding.cases import DIM

BOTH = ["mimo", "rfgp"]
SCHEDULE = Schedule(learning_rate=0.01, batch=8, epochs=10.0, steps=0)
BUDGET = 4


def told(pool, count=3):
    for number in range(count):
        pool = tell(pool, jnp.full(DIM, 0.1 * number), jnp.asarray(7.0 + number))
    return pool


def test_pool_lines_up_the_valid_rows_and_the_observations():
    past = networks.past()
    pool = told(pooled(past, BUDGET))
    assert pool.counts.tolist() == [6, 0, 4, 3] and pool.first.tolist() == [0, 7, 14, 21]
    for task in (0, 2):
        begin, count, valid = int(pool.first[task]), int(pool.counts[task]), np.asarray(past.mask[task])
        np.testing.assert_array_equal(pool.x[begin : begin + count], np.asarray(past.x[task])[valid])
        np.testing.assert_array_equal(pool.y[begin : begin + count], np.asarray(past.y[task])[valid])
    x, y, mask = own(pool, BUDGET)
    assert y.tolist() == [7.0, 8.0, 9.0, 0.0] and mask.tolist() == [True, True, True, False]
    np.testing.assert_allclose(x[:3, 0], [0.0, 0.1, 0.2])
    again = with_own(pooled(past, BUDGET), Rows(x, y, mask))
    for a, b in zip(again, pool, strict=True):
        np.testing.assert_array_equal(a, b)


def test_batches_are_uniform_over_tasks_with_rows_then_over_their_rows():
    past, size = networks.past(), 30_000
    pool = told(pooled(past, BUDGET))
    x, y, task, rows = draw(pool, jax.random.key(0), size, 2)
    assert x.shape == (size, 2, DIM) and task.shape == y.shape == (size, 2) and int(rows) == 13
    shares = np.bincount(np.ravel(task), minlength=4) / (2 * size)
    np.testing.assert_allclose(shares, [1 / 3, 0, 1 / 3, 1 / 3], atol=5 * (2 / 9 / (2 * size)) ** 0.5)
    for number, count in ((0, 6), (2, 4), (3, 3)):
        values, times = np.unique(np.asarray(y)[np.asarray(task) == number], return_counts=True)
        begin = int(pool.first[number])
        np.testing.assert_array_equal(values, np.sort(pool.y[begin : begin + count]))
        np.testing.assert_allclose(times / times.sum(), 1 / count, atol=0.02)
    # The rows of one example are independent: their tasks agree as often as chance says.
    assert np.mean(task[:, 0] == task[:, 1]) == pytest.approx(1 / 3, abs=0.015)
    before = draw(pooled(past, BUDGET), jax.random.key(0), size, 2)
    assert set(np.unique(before.task)) == {0, 2}


def test_outputs_are_standardised_with_the_same_weight_for_every_task():
    mask = np.array([[True, True], [True, False]])
    y = np.array([[0.0, 2.0], [5.0, 99.0]])
    outputs = standard_outputs(Rows(jnp.zeros((2, 2, 1)), jnp.asarray(y), jnp.asarray(mask)))
    assert float(outputs.location) == pytest.approx(3.0)  # (1 + 5) / 2
    assert float(outputs.scale) == pytest.approx(np.sqrt((9 + 1) / 4 + 4 / 2))
    np.testing.assert_allclose(outputs.standard(outputs.location + 2 * outputs.scale), 2.0)
    mean, variance = outputs.moments(jnp.asarray([1.0]), jnp.asarray([2.0]))
    assert float(mean[0]) == pytest.approx(3.0 + float(outputs.scale)) and float(variance[0]) == pytest.approx(9.0)
    for rows in (networks.past(counts=(0, 0, 0)), networks.past()._replace(y=jnp.full((3, 7), 4.0))):
        assert float(standard_outputs(rows).scale) == 1.0


@pytest.mark.parametrize(
    ("schedule", "rows", "expected"),
    [
        ((64, 1000.0, 0), 640, 10_000),
        ((64, 1000.0, 0), 641, 10_016),
        ((64, 1000.0, 20), 640, 20),
        ((64, 0.1, 20), 700, 2),
    ],
)
def test_an_epoch_is_as_many_batches_as_the_rows_fill(schedule, rows, expected):
    assert int(batches(Schedule(1e-3, *schedule), jnp.asarray(rows))) == expected


@pytest.fixture(scope="module")
def trainer():
    """Training of both networks, compiled once per schedule."""
    return jax.jit(
        lambda net, pool, key, count, schedule=SCHEDULE: train(net, no_moments(net), pool, key, count, schedule, 5),
        static_argnums=4,
    )


def started(name, seed=0):
    past = networks.past()
    net = networks.network(name, seed)
    return net, told(pooled(past, BUDGET))


@pytest.mark.parametrize("name", BOTH)
def test_training_lowers_the_loss_and_is_the_same_for_the_same_key(name, trainer):
    net, pool = started(name)
    one, again, other = (trainer(net, pool, jax.random.key(seed), 600) for seed in (0, 0, 1))
    assert int(one.stopped) == -1 and one.loss.shape == (5,)
    check = draw(pool, jax.random.key(9), 200, net.draws)
    assert float(one.network.loss(check)) < float(net.loss(check)) - 0.2
    assert float(one.loss[-1]) < float(one.loss[0]) - 0.1
    np.testing.assert_array_equal(networks.vector(one), networks.vector(again))
    assert np.abs(networks.vector(one.network) - networks.vector(other.network)).max() > 1e-3
    assert (one.network.learned.embedding[1] == net.learned.embedding[1]).all()  # this task has no rows
    for task in (0, 2, 3):
        assert (one.network.learned.embedding[task] != net.learned.embedding[task]).all()


@pytest.mark.parametrize("name", BOTH)
def test_training_is_plain_adam(name, trainer):
    """Three steps of Kingma and Ba's algorithm in NumPy, on the same batches."""
    net, pool = started(name)
    flat, unravel = jax.flatten_util.ravel_pytree(net.learned)
    params, first, second = np.array(flat), 0.0, 0.0

    def at(vector):
        return type(net)(**{**vars(net), "learned": unravel(vector)})

    slope = jax.jit(jax.grad(lambda vector, batch: at(vector).loss(batch)))
    for number in range(3):
        batch = draw(pool, jax.random.fold_in(jax.random.key(0), number), 8, net.draws)
        gradient = np.asarray(slope(jnp.asarray(params), batch))
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        power = number + 1
        params = params - 0.01 * (first / (1 - 0.9**power)) / (np.sqrt(second / (1 - 0.999**power)) + 1e-8)
    trained = trainer(net, pool, jax.random.key(0), 3)
    np.testing.assert_allclose(jax.flatten_util.ravel_pytree(trained.network.learned)[0], params, rtol=1e-8, atol=1e-10)
    # Five stretches, three steps: those without a step repeat the loss before.
    assert len(np.unique(trained.loss)) <= 4 and np.isfinite(trained.loss).all()


@pytest.mark.parametrize("name", BOTH)
def test_masked_rows_and_unused_room_take_no_part(name, trainer):
    past, net = networks.past(), networks.network(name)
    other = past._replace(x=jnp.where(past.mask[..., None], past.x, jnp.nan), y=jnp.where(past.mask, past.y, jnp.nan))
    one, two = (trainer(net, told(pooled(rows, BUDGET)), jax.random.key(0), 20) for rows in (past, other))
    np.testing.assert_array_equal(networks.vector(one), networks.vector(two))
    roomy = trainer(net, told(pooled(past, BUDGET + 5)), jax.random.key(0), 20)
    np.testing.assert_array_equal(networks.vector(roomy), networks.vector(one))
    clean = past._replace(x=jnp.where(past.mask[..., None], past.x, 0.0))
    assert [float(a) for a in standard_outputs(past)] == pytest.approx([float(a) for a in standard_outputs(clean)])
    if name == "rfgp":
        for a, b in zip(net.prepare(past), net.prepare(clean), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", BOTH)
def test_a_step_that_is_not_finite_ends_training_with_finite_parameters(name, trainer):
    net, pool = started(name)
    endless = trainer(net, pool._replace(y=pool.y.at[0].set(jnp.inf)), jax.random.key(0), 600)
    step = int(endless.stopped)
    assert 0 <= step < 20 and np.isfinite(networks.vector(endless.network)).all()
    same = trainer(net, pool._replace(y=pool.y.at[0].set(jnp.inf)), jax.random.key(0), step)
    np.testing.assert_array_equal(networks.vector(endless.network), networks.vector(same.network))


def test_steps_too_large_for_a_number_end_training(trainer):
    net, pool = started("rfgp")
    huge = trainer(net, pool, jax.random.key(0), 20, replace(SCHEDULE, learning_rate=1e308))
    assert int(huge.stopped) >= 0 and np.isfinite(networks.vector(huge.network)).all()


@pytest.mark.parametrize("change", [{"learning_rate": 0.02}, {"batch": 4}])
def test_schedule_settings_are_alive(change, trainer):
    net, pool = started("rfgp")
    base = trainer(net, pool, jax.random.key(0), 20)
    other = trainer(net, pool, jax.random.key(0), 20, replace(SCHEDULE, **change))
    assert np.abs(networks.vector(base.network) - networks.vector(other.network)).max() > 1e-4


@pytest.mark.parametrize("name", ["rfgp", pytest.param("mimo", marks=pytest.mark.slow)])
def test_pretraining_makes_one_network_per_fold_and_seed_from_past_tasks_only(name):
    (training,) = training_sets(tiny.benchmark(), "held_out", seeds=2)
    keys = prior_keys(training, 0, 2)
    module, model = networks.MODULES[name], networks.MODELS[name]

    def begin(key):
        return module.start(model, training.dim, training.tasks, key)

    params, log = pretrain_networks(begin, replace(SCHEDULE, steps=30), training, keys, False)
    spec = {"method": name, "model": model, "pretrain": {**asdict(replace(SCHEDULE, steps=30)), "outputs": "raw"}}
    again, _ = module.pretrain(spec, training, keys, False)
    np.testing.assert_array_equal(networks.vector(params), networks.vector(again))
    assert log.loss.shape == (4, 30) and (log.stopped == -1).all() and len(np.unique(log.loss[:, 0])) == 4
    assert all(leaf.shape[0] == 4 for leaf in jax.tree.leaves(params))
    untrained = jax.vmap(begin)(jax.vmap(lambda k: jax.random.fold_in(k, 0))(keys.reshape(-1)))
    start, end = untrained.learned.embedding, params.learned.embedding
    np.testing.assert_array_equal(end[:, -1], start[:, -1])  # of the test task
    assert (end[:, 0] != start[:, 0]).all()
    for pair, (fold, seed) in enumerate((f, s) for f in range(2) for s in range(2)):
        expected = standard_outputs(training.past(fold, seed))
        assert float(params.outputs.location[pair]) == pytest.approx(float(expected.location), rel=1e-12)
        assert float(params.outputs.scale[pair]) == pytest.approx(float(expected.scale), rel=1e-12)

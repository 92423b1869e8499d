import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree
from scipy.stats import chi2

from metabo.gp.features import Identity
from metabo.gp.fit import adam, batches_per_shuffle, lbfgs, over_pairs
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP
from metabo.gp.objectives import ekl_training
from metabo.tasks.rows import Moments, Rows, sample_moments, stack
from tests import tiny
from tests.references import DenseGP, maximum_likelihood


def simple_gp(constant=0.0, lengthscale=0.0, variance=0.0, noise=-2.0, dim=1):
    kernel = Stationary(jnp.full(dim, float(lengthscale)), jnp.asarray(float(variance)), "matern52")
    return GP(Identity(), Constant(jnp.asarray(float(constant))), kernel, jnp.asarray(float(noise)))


def rows_of(tasks):
    return Rows(*map(jnp.asarray, stack([x for x, _ in tasks], [y for _, y in tasks])))


@eqx.filter_jit
def train(gp, rows, members, present, key, *, steps, learning_rate=1e-2, batch=50, per_shuffle=1, decay=1.0):
    return adam(
        gp, rows, jnp.asarray(members), jnp.asarray(present), key,
        steps=steps, learning_rate=learning_rate, batch=batch, per_shuffle=per_shuffle, decay=decay,
    )  # fmt: skip


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def some_tasks(rng, sizes, dim=2):
    return [(rng.uniform(size=(n, dim)), rng.normal(size=n) + 1.0) for n in sizes]


# --- mini-batches -----------------------------------------------------------------------------------------------------


def drawn(sizes, batch, per_shuffle, steps, key=0):
    """The rows (numbered through all tasks) that each Adam step saw, read from the losses.

    With no learning, a negligible kernel and outputs y_i² = 2^i, the loss is a sum of powers of two: a bit per row.
    """
    total, noise = sum(sizes), 1.0
    gp = simple_gp(variance=-700.0, noise=float(np.log(np.expm1(noise))))
    numbers = np.split(np.arange(total), np.cumsum(sizes)[:-1])
    rows = rows_of([(np.linspace(0, 1, len(n))[:, None], 2.0 ** (n / 2)) for n in numbers])
    members, present = np.arange(len(sizes)), np.ones(len(sizes), dtype=bool)
    _, log = train(
        gp,
        rows,
        members,
        present,
        jax.random.key(key),
        steps=steps,
        learning_rate=0.0,
        batch=batch,
        per_shuffle=per_shuffle,
    )
    variance = noise + 3e-10 + 1e-6
    seen = sum(min(batch, n) for n in sizes)
    squares = (np.asarray(log.loss) * len(sizes) - seen / 2 * np.log(2 * np.pi * variance)) * 2 * variance
    codes = np.rint(squares).astype(np.int64)
    assert np.abs(squares - codes).max() < 0.05
    return np.array([[code >> i & 1 for i in range(total)] for code in codes], dtype=bool)


def test_batches_are_disjoint_within_a_shuffle():
    seen = drawn([12], batch=4, per_shuffle=3, steps=301)
    assert seen.shape == (301, 12)
    assert (seen.sum(axis=1) == 4).all()  # four different rows every time
    blocks = seen[:300].reshape(100, 3, 12).sum(axis=1)
    assert (blocks == 1).all()  # three batches of one shuffle use every row once
    assert len({row.tobytes() for row in seen}) > 150


@pytest.mark.parametrize(("sizes", "per_shuffle"), [([12], 3), ([12], 1), ([9, 7, 3], 1)])
def test_batches_are_uniform(sizes, per_shuffle):
    steps = 3000
    batch = 4
    seen = drawn(sizes, batch, per_shuffle, steps)[::per_shuffle]  # one batch of each shuffle: independent draws
    for size, part in zip(sizes, np.split(seen, np.cumsum(sizes)[:-1], axis=1), strict=True):
        if size <= batch:
            assert part.all()  # a small task gives all its rows
            continue
        assert (part.sum(axis=1) == batch).all()
        # Counts of rows drawn without replacement: their chi-square shrinks by (n - b)/(n - 1).
        expected = len(part) * batch / size
        statistic = ((part.sum(axis=0) - expected) ** 2 / expected).sum() * (size - 1) / (size - batch)
        assert 1e-3 < chi2.sf(statistic, size - 1) < 1 - 1e-3
        pairs = part[:, 0] & part[:, 1]
        share = batch * (batch - 1) / (size * (size - 1))
        assert abs(pairs.mean() - share) < 4 * np.sqrt(share * (1 - share) / len(part))


def test_shuffles_of_different_tasks_are_independent():
    seen = drawn([8, 8], batch=2, per_shuffle=1, steps=3000)
    together = (seen[:, :8] & seen[:, 8:]).mean(axis=0)
    assert (np.abs(together - 1 / 16) < 5 * np.sqrt(1 / 16 * 15 / 16 / 3000)).all()


@pytest.mark.parametrize(
    ("counts", "batch", "expected"),
    [([200, 130], 50, 2), ((200, 130, 10), 50, 2), ((49, 3), 50, 1), ([50], 50, 1), ([99], 50, 1), ([], 5, 1)],
)
def test_batches_per_shuffle_by_hand(counts, batch, expected):
    assert batches_per_shuffle(counts, batch) == expected


# --- Adam -------------------------------------------------------------------------------------------------------------


def plain_nll(gp, tasks):
    """Mean NLL by plain automatic differentiation: no masks, no custom gradients, one task after another."""
    total = 0.0
    for x, y in tasks:
        phi = jnp.asarray(x)
        for weight, bias in zip(gp.features.weights, gp.features.biases, strict=True):
            phi = jnp.tanh(phi @ weight + bias)
        soft = lambda raw: jnp.log1p(jnp.exp(raw)) + 1e-10  # noqa: E731
        scaled = phi / soft(gp.kernel.raw_lengthscale)
        apart = jnp.sum((scaled[:, None] - scaled[None]) ** 2, -1)
        off = ~np.eye(len(x), dtype=bool)
        r = jnp.where(off, jnp.sqrt(jnp.where(off, apart, 1.0)), 0.0)
        gram = soft(gp.kernel.raw_variance) * (1 + 5**0.5 * r + 5 * r**2 / 3) * jnp.exp(-(5**0.5) * r)
        covariance = gram + (soft(gp.raw_noise) + 1e-6) * jnp.eye(len(x))
        residual = jnp.asarray(y) - phi @ gp.mean.weight - gp.mean.bias
        quadratic = residual @ jnp.linalg.solve(covariance, residual)
        total += 0.5 * (quadratic + jnp.linalg.slogdet(covariance)[1] + len(x) * jnp.log(2 * jnp.pi))
    return total / len(tasks)


def test_full_batches_equal_a_plain_loop():
    rng = np.random.default_rng(0)
    tasks, gp = some_tasks(rng, (7, 4, 1)), tiny.random_gp(rng, 2)
    trained, log = train(gp, rows_of(tasks), [0, 1, 2], [True] * 3, jax.random.key(0), steps=25)
    gradient = jax.jit(jax.value_and_grad(lambda g: plain_nll(g, tasks)))
    optimiser, other, losses = optax.adam(1e-2), gp, []
    state = optimiser.init(gp)
    for _ in range(25):
        loss, slope = gradient(other)
        losses.append(float(loss))
        updates, state = optimiser.update(slope, state)
        other = optax.apply_updates(other, updates)
    np.testing.assert_allclose(log.loss, losses, rtol=1e-8)
    np.testing.assert_allclose(flat(trained), flat(other), rtol=1e-6, atol=1e-8)
    assert int(log.stopped) == -1
    assert float(log.loss[-1]) < float(log.loss[0])
    assert float(log.loss[0]) == pytest.approx(np.mean([DenseGP(gp).nll(*t) for t in tasks]), rel=1e-10)


def test_a_decaying_rate_is_half_a_cosine():
    """Adam by hand (Kingma and Ba 2015) in NumPy; full batches, so that shuffles change nothing."""
    rng, steps = np.random.default_rng(0), 12
    tasks, gp = some_tasks(rng, (7, 4)), tiny.random_gp(rng, 2)
    trained, log = train(gp, rows_of(tasks), [0, 1], [True] * 2, jax.random.key(0), steps=steps, decay=0.01)
    vector, unravel = ravel_pytree(gp)
    gradient = jax.jit(jax.grad(lambda v: plain_nll(unravel(v), tasks)))
    value, first, second = np.asarray(vector), np.zeros(len(vector)), np.zeros(len(vector))
    for number in range(steps):
        slope = np.asarray(gradient(value))
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 1e-2 * (0.99 * 0.5 * (1 + np.cos(np.pi * number / steps)) + 0.01)
        step = (first / (1 - 0.9 ** (number + 1))) / (np.sqrt(second / (1 - 0.999 ** (number + 1))) + 1e-8)
        value = value - rate * step
    np.testing.assert_allclose(ravel_pytree(trained)[0], value, rtol=1e-6, atol=1e-8)
    assert int(log.stopped) == -1


def test_at_a_constant_rate_a_short_training_is_the_beginning_of_a_long_one():
    """What the ladder of hyperbo_x12 rests on; with a decaying rate it is not so (the control)."""
    rng = np.random.default_rng(2)
    rows, gp, key = rows_of(some_tasks(rng, (12, 9))), simple_gp(dim=2), jax.random.key(4)
    logs = {
        (steps, decay): train(gp, rows, [0, 1], [True] * 2, key, steps=steps, decay=decay, batch=4, per_shuffle=2)[1]
        for steps in (5, 9) for decay in (1.0, 0.01)
    }  # fmt: skip
    logs = {rung: log.loss for rung, log in logs.items()}
    np.testing.assert_allclose(logs[9, 1.0][:5], logs[5, 1.0], rtol=1e-12)
    assert np.abs(logs[9, 0.01][3:5] - logs[5, 0.01][3:5]).max() > 1e-6


def test_absent_members_are_ignored():
    rng = np.random.default_rng(1)
    tasks, gp = some_tasks(rng, (12, 9, 5)), simple_gp(dim=2)
    key, settings = jax.random.key(3), {"steps": 11, "batch": 4, "per_shuffle": 2}
    rows = rows_of(tasks)
    two, log = train(gp, rows, [2, 0], [True, True], key, **settings)
    padded, padded_log = train(gp, rows, [2, 0, 0], [True, True, False], key, **settings)
    np.testing.assert_allclose(padded_log.loss, log.loss, rtol=1e-12)
    np.testing.assert_allclose(flat(padded), flat(two), rtol=1e-9, atol=1e-12)
    # What the absent place points at does not matter, but a present one there does.
    other, _ = train(gp, rows, [2, 0, 1], [True, True, False], key, **settings)
    np.testing.assert_array_equal(flat(other), flat(padded))
    third, _ = train(gp, rows, [2, 0, 1], [True, True, True], key, **settings)
    assert np.abs(flat(third) - flat(padded)).max() > 1e-4


def test_trace_has_one_loss_per_step_for_any_number_of_steps():
    # Twelve equal rows: every batch of three is the same, so the next loss shows where the parameters are.
    x, y = np.full((12, 2), 0.4), np.full(12, 1.3)
    settings = {"batch": 3, "per_shuffle": 4}
    runs = {
        steps: train(simple_gp(dim=2), rows_of([(x, y)]), [0], [True], jax.random.key(0), steps=steps, **settings)
        for steps in (6, 8)
    }
    (six, six_log), (_, eight_log) = runs.values()
    assert six_log.loss.shape == (6,) and eight_log.loss.shape == (8,)
    np.testing.assert_array_equal(six_log.loss, eight_log.loss[:6])
    assert (np.diff(eight_log.loss) < 0).all()
    # Six steps end in the middle of the second shuffle: its other two batches must not move anything.
    assert DenseGP(six).nll(x[:3], y[:3]) == pytest.approx(float(eight_log.loss[6]), rel=1e-10)


def test_seeds_differ_and_repeat():
    rng = np.random.default_rng(3)
    tasks, gp = some_tasks(rng, (12, 12)), simple_gp(dim=2)
    run = lambda seed: train(  # noqa: E731
        gp, rows_of(tasks), [0, 1], [True, True], jax.random.key(seed), steps=6, batch=4, per_shuffle=3
    )
    first, same, other = run(0), run(0), run(1)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.abs(flat(first[0]) - flat(other[0])).max() > 1e-6


# The first overflows the loss, the second only the squared gradient: with the loss finite its parameters are good.
@pytest.mark.parametrize(("huge", "kept"), [(1e200, -1), (1e120, 0)])
def test_guard_keeps_the_last_finite_parameters_and_reports_the_step(huge, kept):
    rng = np.random.default_rng(4)
    x, y = rng.uniform(size=(8, 1)), rng.normal(size=8)
    y[3] = huge
    rows, settings = rows_of([(x, y)]), {"batch": 2, "per_shuffle": 4}
    run = lambda steps, key: train(simple_gp(), rows, [0], [True], jax.random.key(key), steps=steps, **settings)  # noqa: E731
    ends = {}
    for key in range(6):
        trained, log = run(12, key)
        stopped = int(log.stopped)
        # The huge row comes up once in the first shuffle, so in one of the first four steps.
        assert 0 <= stopped < 4
        assert np.isfinite(flat(trained)).all()
        assert np.isfinite(log.loss[:stopped]).all()
        assert float(log.loss[stopped]) > 1e200
        if stopped == 0:
            np.testing.assert_array_equal(flat(trained), flat(simple_gp()))
        ends[stopped] = key, trained
    stopped = max(ends)
    assert stopped >= 2
    key, trained = ends[stopped]
    before, log = run(stopped + kept, key)
    assert int(log.stopped) == -1
    np.testing.assert_array_equal(flat(trained), flat(before))


def test_a_result_whose_loss_is_not_finite_is_taken_back():
    # One step of 1e200: the constant is far off and both variances vanish, which only the loss of the result shows.
    x, y = np.full((3, 1), 0.5), np.array([0.01, -0.005, 0.0])
    trained, log = train(simple_gp(), rows_of([(x, y)]), [0], [True], jax.random.key(0), steps=1, learning_rate=1e200)
    assert int(log.stopped) == 1
    np.testing.assert_array_equal(flat(trained), flat(simple_gp()))
    assert np.isfinite(log.loss).all()


def test_recovers_a_known_prior():
    rng = np.random.default_rng(5)
    truth = simple_gp(
        constant=1.5, lengthscale=np.log(np.expm1(0.3)), variance=np.log(np.expm1(2.0)), noise=np.log(np.expm1(0.05))
    )
    dense, tasks, fresh = DenseGP(truth), [], []
    for kind in [tasks] * 40 + [fresh] * 10:
        x = rng.uniform(size=(20, 1))
        kind.append((x, rng.multivariate_normal(dense.mean(x), dense.covariance(x))))
    trained, log = train(
        simple_gp(), rows_of(tasks), np.arange(40), np.ones(40, dtype=bool), jax.random.key(0),
        steps=600, learning_rate=0.03, batch=20,
    )  # fmt: skip
    assert float(log.loss[-1]) < float(log.loss[0]) - 5
    # Standard errors over 40 draws: constant about 0.2, the others below 15 %.
    assert float(trained.mean.value) == pytest.approx(1.5, abs=0.5)
    assert float(trained.kernel.lengthscale[0]) == pytest.approx(0.3, rel=0.25)
    assert float(trained.kernel.variance) == pytest.approx(2.0, rel=0.4)
    assert float(trained.noise) == pytest.approx(0.05, rel=0.2)
    # On fresh draws the true prior is the best there is; ours must come close.
    ours, best = (np.mean([DenseGP(gp).nll(*t) for t in fresh]) for gp in (trained, truth))
    assert best - 0.5 < ours < best + 0.5


# --- L-BFGS -----------------------------------------------------------------------------------------------------------


def rosenbrock(v):
    return jnp.sum(100 * (v["b"] - v["a"] ** 2) ** 2 + (1 - v["a"]) ** 2)


def minimise(objective, start, steps, **settings):
    return eqx.filter_jit(lambda s: lbfgs(objective, s, steps=steps, **settings))(start)


def test_lbfgs_on_a_quadratic_and_the_rest_of_the_trace():
    matrix = jnp.asarray(np.diag([1.0, 3.0, 10.0, 0.5]) + 0.1)
    best = jnp.asarray([1.0, -2.0, 0.5, 3.0])
    objective = lambda v: 7.0 + 0.5 * (v - best) @ matrix @ (v - best)  # noqa: E731
    found, log = minimise(objective, jnp.zeros(4), 40)
    np.testing.assert_allclose(found, best, atol=5e-3)
    loss = np.asarray(log.loss)
    assert loss.shape == (40,) and int(log.stopped) == -1
    assert loss[0] == pytest.approx(float(objective(jnp.zeros(4))))
    assert loss[-1] == pytest.approx(7.0, abs=1e-5)
    assert (np.diff(loss) <= 1e-12).all()
    # It stops long before 40 steps and repeats the last value.
    assert (loss[20:] == loss[20]).all() and len(np.unique(loss)) < 20
    # The gradient at the end is what stopped it.
    assert np.linalg.norm(np.asarray(matrix @ (found - best))) <= 1e-3


def test_lbfgs_follows_scipy_on_rosenbrock():
    start = {"a": jnp.asarray([-1.2, 0.7]), "b": jnp.asarray([1.0, -0.3])}
    found, log = minimise(rosenbrock, start, 150)
    np.testing.assert_allclose(np.concatenate([found["a"], found["b"]]), np.ones(4), atol=5e-3)
    reference = scipy.optimize.minimize(
        lambda v: 100 * (v[2] - v[0] ** 2) ** 2 + (1 - v[0]) ** 2 + 100 * (v[3] - v[1] ** 2) ** 2 + (1 - v[1]) ** 2,
        [-1.2, 0.7, 1.0, -0.3], method="L-BFGS-B",
    )  # fmt: skip
    assert float(log.loss[-1]) == pytest.approx(reference.fun, abs=1e-5)


def test_lbfgs_stops_after_the_given_steps():
    start = {"a": jnp.asarray([-1.2, 0.7]), "b": jnp.asarray([1.0, -0.3])}
    five, log = minimise(rosenbrock, start, 5)
    longer, longer_log = minimise(rosenbrock, start, 9)
    np.testing.assert_allclose(log.loss, longer_log.loss[:5], rtol=1e-12)
    assert float(rosenbrock(five)) == pytest.approx(float(longer_log.loss[5]), rel=1e-9)  # step 6 starts where 5 ended
    assert float(rosenbrock(longer)) < float(rosenbrock(five))


def test_lbfgs_at_the_optimum_does_not_move():
    found, log = minimise(lambda v: jnp.sum((v - 2.0) ** 2), jnp.full(3, 2.0), 4)
    np.testing.assert_array_equal(found, [2.0] * 3)
    assert log.loss.tolist() == [0.0] * 4 and int(log.stopped) == -1


def test_lbfgs_reaches_scipys_optimum_of_the_ekl_training_loss():
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(15, 1))
    y = rng.multivariate_normal(np.zeros(15), DenseGP(simple_gp(lengthscale=-1.0)).covariance(x), size=6).T + 0.7
    mean, root = sample_moments(y)
    data = Moments(*(jnp.asarray(a)[None] for a in (x, mean, root, np.ones(15, dtype=bool))))
    start = simple_gp(constant=-0.5, lengthscale=0.5, noise=-3.0)
    fitted, log = minimise(lambda g: ekl_training(g, data), start, 100)
    covariance = maximum_likelihood(y)[1]
    vector, unravel = ravel_pytree(start)

    def dense(v):
        gp = DenseGP(unravel(jnp.asarray(v)))
        sigma, shift = gp.covariance(x), gp.mean(x) - mean
        inverse = np.linalg.inv(sigma)
        return 0.5 * (np.trace(inverse @ covariance) + shift @ inverse @ shift + np.linalg.slogdet(sigma)[1])

    reference = scipy.optimize.minimize(dense, vector, method="L-BFGS-B", tol=1e-12)
    assert float(log.loss[0]) == pytest.approx(dense(np.asarray(vector)), rel=1e-10)
    assert dense(flat(fitted)) == pytest.approx(reference.fun, abs=1e-5)
    np.testing.assert_allclose(flat(fitted), reference.x, atol=2e-2)
    assert int(log.stopped) == -1


@pytest.mark.parametrize(
    ("objective", "start"),
    [
        (lambda v: jnp.sum(jnp.log(v)), 0.0),  # loss -inf at once
        (lambda v: jnp.sum(jnp.sqrt(v)), 0.0),  # gradient infinite
        (lambda v: jnp.sum(v) + jnp.nan, 1.0),
    ],
)
def test_lbfgs_guard_at_the_first_step(objective, start):
    found, log = minimise(objective, jnp.full(2, start), 5)
    assert found.tolist() == [start] * 2
    assert int(log.stopped) == 0


def test_lbfgs_guard_later():
    # The line search runs into a region where the loss is -inf, and must come back from there.
    start = jnp.ones(1)
    found, log = minimise(lambda v: -jnp.exp(v[0]), start, 6)
    assert int(log.stopped) == 1
    np.testing.assert_array_equal(found, start)
    assert float(log.loss[0]) == pytest.approx(-np.e) and not np.isfinite(log.loss[1:]).any()


def test_lbfgs_line_search_stays_where_the_loss_has_a_value():
    # A slope towards a region without values.
    found, log = minimise(lambda v: jnp.where(v[0] < 3.0, -v[0] + 0.0 * v[1], jnp.nan), jnp.zeros(2), 20)
    assert 2.9 < float(found[0]) <= 3.0
    assert np.isfinite(log.loss).all() and float(log.loss[-1]) == pytest.approx(-3.0, abs=1e-6)


# --- many pairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_lbfgs_takes_no_step_that_raises_the_loss(steps):
    """With a gradient of the wrong sign every line search fails."""

    @jax.custom_jvp
    def bowl(x):
        return jnp.sum(x**2)

    bowl.defjvp(lambda primals, tangents: (bowl(*primals), -2.0 * jnp.sum(primals[0] * tangents[0])))
    start = jnp.array([1.0, -2.0])
    result, log = lbfgs(bowl, start, steps=steps)
    np.testing.assert_array_equal(result, start)
    np.testing.assert_array_equal(log.loss, np.full(steps, 5.0))
    assert int(log.stopped) == -1


@pytest.mark.parametrize("start", [(-0.62327446, 0.04132598), (-0.54425898, -0.31630016)])
def test_lbfgs_goes_down_only_where_gradients_are_noisy(start):
    """Line searches fail, and end a little above where they began."""

    @jax.custom_jvp
    def loss(x):
        return jnp.sum(jnp.array([1.0, 100.0]) * x**2)

    def slope(primals, tangents):
        (x,), (t,) = primals, tangents
        return loss(x), jnp.sum((jnp.array([2.0, 200.0]) * x + jnp.sin(1e3 * x)) * t)

    loss.defjvp(slope)
    result, log = lbfgs(loss, jnp.array(start), steps=30)
    losses = np.append(log.loss, loss(result))
    # Of a gradient (2 x, 200 y) the added sine is at most 1: below x = 1/2 and y = 1/200 it decides the direction.
    assert (np.diff(losses) <= 0).all() and losses[-1] < 0.5**2 + 100 * 0.005**2 < losses[0] / 2


def test_pairs_side_by_side_equal_pairs_one_by_one():
    rng = np.random.default_rng(7)
    tasks = some_tasks(rng, (9, 6))
    rows, starts = rows_of(tasks), tiny.stacked([tiny.random_gp(rng, 2, "constant", sizes=()) for _ in range(3)])
    pairs = (starts, jnp.asarray([[0, 1], [1, 0], [0, 0]]), jnp.asarray([[True, True], [True, False], [True, False]]))
    pairs = (*pairs, jax.random.split(jax.random.key(0), 3))

    def run(pair):
        return adam(pair[0], rows, *pair[1:], steps=8, learning_rate=1e-2, batch=4, per_shuffle=1)

    one_by_one, side_by_side = over_pairs(run, pairs, False), over_pairs(run, pairs, True)
    for a, b in zip(jax.tree.leaves(one_by_one), jax.tree.leaves(side_by_side), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    alone, log = train(
        *jax.tree.map(lambda leaf: leaf[1], pairs[:1]), rows, [1, 0], [True, False], pairs[3][1], steps=8, batch=4
    )
    np.testing.assert_allclose(one_by_one[1].loss[1], log.loss, rtol=1e-10)
    np.testing.assert_allclose(
        flat(jax.tree.map(lambda leaf: leaf[1], one_by_one[0])), flat(alone), rtol=1e-8, atol=1e-10
    )

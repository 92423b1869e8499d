"""The GP in NumPy: as the dense formulas, with data checked."""

from contextlib import contextmanager
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from metabo.errors import ConfigError, DataError, NumericsError, NumericsWarning
from metabo.gp.process import GaussianProcess


def dense(gp, x, y, new):
    """Posterior moments by plain inversion, from the GP's own kernel, mean and units."""
    centre, spread = gp._units
    model, x, y, new = gp._model, *map(jnp.asarray, (x, (y - centre) / spread, new))
    phi, psi = model.features(x), model.features(new)
    k = np.asarray(model.kernel(phi, phi)) + (float(model.noise) + 1e-6) * np.eye(len(x))
    cross = np.asarray(model.kernel(psi, phi))
    mean = np.asarray(model.mean(psi)) + cross @ np.linalg.solve(k, y - np.asarray(model.mean(phi)))
    variance = np.diag(np.asarray(model.kernel(psi, psi)) - cross @ np.linalg.solve(k, cross.T))
    return centre + spread * mean, spread * np.sqrt(variance)


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(0)
    xs = [rng.uniform(size=(n, 2)) for n in (15, 12, 18)]
    return xs, [np.sin(5 * x[:, 0]) - x[:, 1] + 0.05 * rng.normal(size=len(x)) for x in xs]


@pytest.mark.parametrize("mean", ["zero", "constant", "linear_mlp"])
def test_a_gp_predicts_as_the_dense_formulas(tasks, mean):
    xs, ys = tasks
    start = GaussianProcess(2, mean=mean, features=(4,))
    gp = start.fit(xs, ys, steps=20)
    total = lambda gp: sum(map(gp.log_likelihood, xs, ys))  # noqa: E731
    assert total(gp) > total(start) + 5
    new = np.array([[0.3, 0.4], [0.9, 0.1], xs[0][3]])
    got = gp.posterior(xs[0], ys[0]).predict(new)
    for part, expected in zip(got, dense(gp, xs[0], ys[0], new), strict=True):
        assert isinstance(part, np.ndarray) and part.dtype == np.float64
        np.testing.assert_allclose(part, expected, rtol=1e-6, atol=1e-8)
    prior_mean, prior_deviation = gp.predict(new)
    assert (got[1] < prior_deviation).all() and prior_mean.shape == (3,)
    assert gp.noise > 0


@pytest.mark.parametrize("count", [1, 7, 8, 9, 129])
def test_a_posterior_is_that_of_the_dense_formulas_whatever_the_room(count):
    """Rows are padded to a room; 129 observations and 1,025 predictions lie just beyond a power of two."""
    rng = np.random.default_rng(count)
    x, new = rng.uniform(size=(count, 2)), rng.uniform(size=(1025, 2))
    y = np.sin(5 * x[:, 0]) + 3.0
    gp = GaussianProcess(2)
    np.testing.assert_allclose(gp.posterior(x, y).predict(new), dense(gp, x, y, new), rtol=1e-7, atol=1e-7)
    assert [part.shape for part in gp.posterior(x, y).predict(np.empty((0, 2)))] == [(0,), (0,)]


@contextmanager
def compiled():
    """Yield the names of the functions that are compiled within the block."""
    names = []
    listened = lambda event, _, fun_name="", **more: names.append(fun_name) if "backend_compile" in event else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listened)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(listened)


def test_observations_that_come_one_by_one_compile_a_program_now_and_then():
    rng = np.random.default_rng(0)
    x, new = rng.uniform(size=(33, 5)), rng.uniform(size=(40, 5))  # five inputs, which no other test has
    gp = GaussianProcess(5)
    with compiled() as names:
        for count in range(1, 34):
            gp.posterior(x[:count], x[:count, 0]).predict(new[:count])
    main = [name for name in names if "conditioned" in name or "predicted" in name]
    assert len(main) == 8, "rooms of 8, 16, 32 and 64"


def test_the_likelihood_and_the_fit_compile_a_program_now_and_then_too():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(20, 6))  # six inputs, which no other test has
    y, gp = np.sin(5 * x[:, 0]), GaussianProcess(6)
    with compiled() as names:
        fits = {n: gp.fit(x[:n], y[:n], steps=2) for n in (3, 16, 17)}
        found = {n: fits[16].log_likelihood(x[:n], y[:n]) for n in (3, 8, 9, 16, 17)}
    assert sum("fitted" in name for name in names) == 2, "rooms of 16 and 32"
    assert sum("likelihood" in name for name in names) == 3, "rooms of 8, 16 and 32"
    centre, spread = fits[16]._units
    for n, value in found.items():
        rows = jnp.asarray(x[:n])
        k = np.asarray(fits[16]._model.kernel(rows, rows)) + (float(fits[16]._model.noise) + 1e-6) * np.eye(n)
        mean = centre + spread * np.asarray(fits[16]._model.mean(rows))
        assert value == pytest.approx(multivariate_normal.logpdf(y[:n], mean, spread**2 * k), rel=1e-9)


def test_one_task_may_be_given_as_lists():
    x, y = [[0.1], [0.5], [0.8]], [0.3, -0.2, 0.1]
    one, many = GaussianProcess(1).fit(x, y, steps=5), GaussianProcess(1).fit([np.array(x)], [np.array(y)], steps=5)
    assert one.log_likelihood(x, y) == many.log_likelihood(x, y)


def test_values_of_tasks_may_be_a_series_of_arrays():
    x, y = [np.array([[0.1], [0.6]]), np.array([[0.3]])], [np.array([1.0, 2.0]), np.array([0.5])]
    listed, series = (GaussianProcess(1).fit(x, several, steps=3) for several in (y, pd.Series(y)))
    assert series.log_likelihood(x[0], y[0]) == listed.log_likelihood(x[0], y[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda gp: gp.posterior([0.1, 0.2], [1, 2]), r"^x has shape \(2,\), needs \(n, 1\).*; write x\[:, None\]"),
        (lambda gp: gp.posterior([[0.1, 0.2]], [1]), r"^x has shape \(1, 2\), needs \(n, 1\): one row for each point$"),
        (lambda gp: gp.posterior([[0.1]], [1, 2]), r"^y has shape \(2,\), x \(1, 1\); give one value for each point"),
        (lambda gp: gp.posterior(np.zeros((0, 1)), []), "one point at least"),
        (lambda gp: gp.posterior([[0.1], [np.nan]], [1, 2]), r"^x\[1, 0\] is not finite; leave that point out$"),
        (lambda gp: gp.predict([[np.nan]]), r"^x\[0, 0\] is not finite; leave that point out$"),
        (lambda gp: gp.posterior([[0.1]], [np.inf]), r"^y\[0\] is not finite; leave .*, or give it the worst value$"),
        (lambda gp: gp.predict([["a"]]), "^x is not an array of numbers"),
        (lambda gp: gp.fit([np.zeros((2, 1))], [[1, 2], [3]]), "^x has 1 tasks, y has 2; give one array"),
        (lambda gp: gp.fit([np.zeros((2, 1))] * 2, [[1, 2], [3]]), r"^y\[1\] has shape \(1,\), x\[1\] \(2, 1\)"),
        (lambda gp: gp.predict(np.ma.masked_array([[0.1]], mask=True)), "^x has masked values; leave these points out"),
        (lambda gp: gp.predict(np.array([["2026-01-01"]], dtype="datetime64[s]")), "^x has values of type datetime64"),
        (lambda gp: gp.predict([np.ma.masked_array([0.1], [True]), [0.2]]), "^x has masked values"),
        (lambda gp: gp.predict([[1e8]]), r"^x has values of size 1e\+08, whose distances are lost"),
        (lambda gp: gp.predict([[1j]]), "^x has values of type complex128; give real numbers"),
        (lambda gp: gp.predict([[1e9]]), r"^x has values of size 1e\+09, whose distances are lost; scale x to"),
        (
            lambda gp: gp.fit([[[1.0], [2.0, 3.0]]], [[1, 2]]),
            r"^x\[0\] is not an array of numbers .*rows of equal length",
        ),
        (lambda gp: gp.fit([[0.1]], [1], steps=0), "^steps is 0; must be a whole number of at least 1"),
        (lambda gp: GaussianProcess(1, seed=2**70), "^seed is 1180591620717411303424; must be"),
        (lambda gp: GaussianProcess(1, seed=-1), "^seed is -1; must be"),
        (lambda gp: GaussianProcess(0), "^dim is 0"),
        (lambda gp: GaussianProcess(1, kernel="matern2"), "unknown kernel 'matern2'. Did you mean"),
        (lambda gp: GaussianProcess(1, mean="linear_mlp"), "needs at least one layer in 'features'"),
    ],
)
def test_bad_input_is_refused_with_argument_and_remedy(call, message):
    with pytest.raises((ConfigError, DataError), match=message):
        call(GaussianProcess(1))


def test_a_likelihood_that_is_no_number_is_refused():
    with pytest.raises(
        NumericsError, match="log_likelihood: it is no float64 number; fit the GP to outputs of this size"
    ):
        GaussianProcess(1).log_likelihood([[0.1], [0.2]], [1e200, 2e200])


# --- outputs of any size ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-150, 1e-10, 1e-5, 1e5, 1e10, 1e150])
@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_predictions_scale_with_the_outputs(tasks, size, mean):
    """Variances from 1e-300 to 1e300. With an absolute jitter and no scaling the RMSE at 1e-5 was 0.64 of the spread,
    and the deviation at 1e10 was 4e-7 of it."""
    x, y = tasks[0][0], tasks[1][0]
    new = np.array([[0.3, 0.4], [0.9, 0.1]])
    one, other = (GaussianProcess(2, mean=mean).fit(x, values) for values in (y, size * y))
    for first, second in zip(one.posterior(x, y).predict(new), other.posterior(x, size * y).predict(new), strict=True):
        np.testing.assert_allclose(second, size * first, rtol=1e-6)
    assert other.noise == pytest.approx(size**2 * one.noise, rel=1e-6)
    expected = one.log_likelihood(x, y) - len(y) * np.log(size)
    assert other.log_likelihood(x, size * y) == pytest.approx(expected, rel=1e-8)


def test_a_constant_mean_takes_up_a_shift_and_a_zero_mean_does_not(tasks):
    x, y = tasks[0][0], tasks[1][0]
    new = np.array([[0.3, 0.4], [0.9, 0.1]])
    one, other = (GaussianProcess(2).fit(x, values) for values in (y, y + 1e6))
    for shift, first, second in zip(
        (1e6, 0.0), one.posterior(x, y).predict(new), other.posterior(x, y + 1e6).predict(new), strict=True
    ):
        np.testing.assert_allclose(second, first + shift, rtol=0, atol=1e-5)
    assert (GaussianProcess(2, mean="zero").fit(x, y + 1e6).predict(new)[0] == 0).all()


@pytest.mark.parametrize("offset", [0.0, 100.0, 1000.0])
def test_what_tasks_differ_by_is_not_their_scale(offset):
    """Scaled by the spread of all outputs, jitter drowns the values of a task; by that within tasks, the fit starts too
    far away. Without any scale, offsets of 1,000 gave an error of 0.8."""
    rng = np.random.default_rng(0)
    xs, shifts = [np.sort(rng.uniform(size=(15, 1)), axis=0) for _ in range(6)], [-1, 1, -1, 1, -1, 1]
    ys = [np.sin(5 * x[:, 0] + i) + offset * s for i, (x, s) in enumerate(zip(xs, shifts, strict=True))]
    gp = GaussianProcess(1).fit(xs, ys)
    new = np.linspace(0.1, 0.9, 20)[:, None]
    mean, _ = gp.posterior(xs[0], ys[0]).predict(new)
    assert np.sqrt(np.mean((mean - np.sin(5 * new[:, 0]) + offset) ** 2)) < 0.01


@pytest.mark.parametrize("value", [0.0, 1e10, -1e-12])
def test_equal_outputs_are_predicted(value):
    x = np.random.default_rng(0).uniform(size=(20, 2))
    y = np.full(20, value)
    mean, deviation = GaussianProcess(2).fit(x, y).posterior(x, y).predict(x)
    np.testing.assert_allclose(mean, value, rtol=1e-6, atol=1e-12)
    assert np.isfinite(deviation).all()


def test_equal_rows_are_predicted_at_their_mean():
    x, y = np.full((30, 2), 0.3), np.random.default_rng(0).normal(size=30)
    gp = GaussianProcess(2).fit(x, y)
    mean, deviation = gp.posterior(x, y).predict(x[:1])
    assert mean[0] == pytest.approx(y.mean(), abs=0.05) and 0 < deviation[0] < 0.3
    assert gp.noise == pytest.approx(y.var(), rel=0.1)


def test_two_thousand_observations_with_repeats():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2000, 2))
    x[1000:1500] = x[:500]
    y = np.sin(5 * x[:, 0]) - x[:, 1]
    gp = GaussianProcess(2).fit(x[:50], y[:50])
    mean, deviation = gp.posterior(x, y).predict(rng.uniform(size=(10, 2)))
    assert np.isfinite(mean).all() and (deviation < 0.01).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1e200, -1e200], r"^y has values of size 1e\+200, whose variance is no float64; divide y by 1e\+200$"),
        ([1e-200, -1e-200], r"^y has a spread of 1e-200, whose square is no float64; multiply y by 1e\+200$"),
    ],
)
def test_outputs_whose_variance_is_no_number_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        GaussianProcess(1).fit([[0.1], [0.2]], y)


# --- inputs far from the unit cube: distances are lost to rounding ----------------------------------------------------


def far(offset, lengthscale):
    """A GP with one short length-scale, and points as near to each other as that, far from the origin."""
    rng = np.random.default_rng(0)
    gp = GaussianProcess(2, mean="zero")
    kernel = gp._model.kernel
    short = jnp.full(2, np.log(np.expm1(lengthscale)))
    one = jnp.asarray(np.log(np.expm1(1.0)))
    short_kernel = replace(kernel, raw_lengthscale=short, raw_variance=one)
    gp._model = replace(gp._model, kernel=short_kernel, raw_noise=jnp.asarray(-20.0))
    x = offset + lengthscale * rng.uniform(size=(60, 2))
    return gp, x, np.sin(x[:, 0] / lengthscale)


def test_a_covariance_that_needs_more_is_told_of():
    gp, x, y = far(700.0, 0.01)
    with pytest.warns(NumericsWarning, match=r"needed 0\.0001 more on its diagonal to be factorised; .*scale x to"):
        predictor = gp.posterior(x, y)
    assert predictor.jitter == pytest.approx(1e-4, rel=1e-3)
    assert all(np.isfinite(part).all() for part in predictor.predict(x))
    near, x, y = far(1.0, 0.01)
    assert near.posterior(x, y).jitter == 0.0  # warnings are errors here


def test_one_that_nothing_helps_is_refused():
    gp, x, y = far(1e4, 0.1)
    with (
        pytest.warns(NumericsWarning, match="whose distances are rounded"),
        pytest.raises(NumericsError, match=r"cannot be factorised; .*scale x to \[0, 1\]"),
    ):
        gp.posterior(x, y)

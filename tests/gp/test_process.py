"""The GP in NumPy: as the dense formulas, with data checked."""

import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import ConfigError, DataError
from metabo.gp.process import GaussianProcess


def dense(gp, x, y, new):
    """Posterior moments by plain inversion, from the GP's own kernel and mean."""
    model, x, y, new = gp._model, *map(jnp.asarray, (x, y, new))
    phi, psi = model.features(x), model.features(new)
    k = np.asarray(model.kernel(phi, phi)) + (float(model.noise) + 1e-6) * np.eye(len(x))
    cross = np.asarray(model.kernel(psi, phi))
    mean = np.asarray(model.mean(psi)) + cross @ np.linalg.solve(k, y - np.asarray(model.mean(phi)))
    return mean, np.sqrt(np.diag(np.asarray(model.kernel(psi, psi)) - cross @ np.linalg.solve(k, cross.T)))


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


def test_one_task_may_be_given_as_lists():
    x, y = [[0.1], [0.5], [0.8]], [0.3, -0.2, 0.1]
    one, many = GaussianProcess(1).fit(x, y, steps=5), GaussianProcess(1).fit([np.array(x)], [np.array(y)], steps=5)
    assert one.log_likelihood(x, y) == many.log_likelihood(x, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda gp: gp.posterior([0.1, 0.2], [1, 2]), r"^x has shape \(2,\), needs \(n, 1\).*; write x\[:, None\]"),
        (lambda gp: gp.posterior([[0.1, 0.2]], [1]), r"^x has shape \(1, 2\), needs \(n, 1\): one row for each point$"),
        (lambda gp: gp.posterior([[0.1]], [1, 2]), r"^y has shape \(2,\), x \(1, 1\); give one value for each point"),
        (lambda gp: gp.posterior(np.zeros((0, 1)), []), "one point at least"),
        (lambda gp: gp.posterior([[0.1], [np.nan]], [1, 2]), r"^x\[1, 0\] is not finite; leave that point out"),
        (lambda gp: gp.posterior([[0.1]], [np.inf]), r"^y\[0\] is not finite"),
        (lambda gp: gp.predict([["a"]]), "^x is not an array of numbers"),
        (lambda gp: gp.fit([np.zeros((2, 1))], [[1, 2], [3]]), "^x has 1 tasks, y has 2; give one array"),
        (lambda gp: gp.fit([np.zeros((2, 1))] * 2, [[1, 2], [3]]), r"^y\[1\] has shape \(1,\), x\[1\] \(2, 1\)"),
        (lambda gp: gp.fit([[0.1]], [1], steps=0), "^steps is 0; must be a whole number of at least 1"),
        (lambda gp: GaussianProcess(0), "^dim is 0"),
        (lambda gp: GaussianProcess(1, kernel="matern2"), "unknown kernel 'matern2'. Did you mean"),
        (lambda gp: GaussianProcess(1, mean="linear_mlp"), "needs at least one layer in 'features'"),
    ],
)
def test_bad_input_is_refused_with_argument_and_remedy(call, message):
    with pytest.raises((ConfigError, DataError), match=message):
        call(GaussianProcess(1))

"""The Gaussian process as users have it (`metabo.GP`): NumPy in, NumPy out, and clear errors.

It is `metabo.gp.model.GP` with its data checked, computed in float64 whatever JAX does in the process.
"""

from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree
from numpy.typing import ArrayLike

from metabo.compute.keys import stream
from metabo.compute.precision import float64
from metabo.errors import ConfigError, DataError, NumericsError
from metabo.gp.fit import Log, lbfgs
from metabo.gp.model import GP, Posterior, build
from metabo.gp.objectives import nll
from metabo.tasks.rows import stack

Points = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Kind = TypeVar("Kind", "GaussianProcess", "Predictor")


class GaussianProcess:
    """A Gaussian process (`metabo.GP`): fit it to past tasks, then condition it on the first points of a new one.

        import numpy as np
        import metabo

        rng = np.random.default_rng(0)
        past = [rng.uniform(size=(20, 1)) for _ in range(4)]
        values = [np.sin(6.0 * x[:, 0]) + 0.3 * rng.normal() for x in past]
        gp = metabo.GP(dim=1).fit(past, values)
        posterior = gp.posterior([[0.1], [0.6]], [0.5, -0.4])
        mean, deviation = posterior.predict([[0.2], [0.9]])
        print(mean.round(1), deviation < gp.predict([[0.2], [0.9]])[1])

    `dim`: columns of the inputs, which the unit cube should hold. `mean`: "zero", "constant" or "linear_mlp"; `kernel`:
    "matern12", "matern32", "matern52", "squared_exponential" or "dot_product"; `features`: sizes of the layers of the
    network that both share (hyperbo §7.2), () for the inputs themselves; `seed`: of its weights. Objects do not change:
    `fit` returns another one. Raises ConfigError for names that do not exist.
    """

    @float64
    def __init__(
        self, dim: int, *, mean: str = "constant", kernel: str = "matern52", features: Sequence[int] = (), seed: int = 0
    ) -> None:
        require_count("dim", dim)
        model = {"mean": mean, "kernel": kernel, "features": [require_count("features", size) for size in features]}
        self.dim, self._model = dim, build(model, dim, stream(seed, "gp"))

    @float64
    def fit(self, x: ArrayLike, y: ArrayLike, steps: int = 100) -> "GaussianProcess":
        """Return the GP of largest marginal likelihood (hyperbo Eq. 13), by at most `steps` steps of L-BFGS.

        One task: `x` (n, dim) and `y` (n,) to be maximised. Several: a list of such x and a list of such y. Raises
        DataError for what is not of these shapes or not finite, NumericsError if the likelihood is not finite.
        """
        require_count("steps", steps)
        if isinstance(x, list | tuple) and x and np.ndim(x[0]) == 2:
            tasks = [self._task(*pair, f"[{i}]") for i, pair in enumerate(_paired(x, y))]
        else:
            tasks = [self._task(x, y)]
        batch = stack([points for points, _ in tasks], [values for _, values in tasks])
        gp, log = _fitted(self._model, jnp.asarray(batch.x), jnp.asarray(batch.y), jnp.asarray(batch.mask), steps)
        if int(log.stopped) == 0:
            raise NumericsError("fit: the likelihood of the data is not finite; scale y to unit order")
        return _made(GaussianProcess, dim=self.dim, model=gp)

    @float64
    def posterior(self, x: ArrayLike, y: ArrayLike) -> "Predictor":
        """Condition on observations `x` (n, dim), `y` (n,). Raises DataError for other shapes or what is not finite."""
        points, values = self._task(x, y)
        posterior = self._model.posterior(jnp.asarray(points), jnp.asarray(values), jnp.ones(len(values), dtype=bool))
        if not bool(posterior.ok):
            raise NumericsError("posterior: the covariance of x cannot be factorised; fit the GP, or scale x to [0, 1]")
        return _made(Predictor, dim=self.dim, model=posterior)

    @float64
    def predict(self, x: ArrayLike) -> tuple[Values, Values]:
        """Return mean and standard deviation of the function at `x` (n, dim) before any observation."""
        phi = self._model.features(jnp.asarray(_points("x", x, self.dim)))
        return np.asarray(self._model.mean(phi)), np.sqrt(np.asarray(self._model.kernel.diagonal(phi)))

    @float64
    def log_likelihood(self, x: ArrayLike, y: ArrayLike) -> float:
        """Return the log marginal likelihood of one task, `x` (n, dim) and `y` (n,)."""
        points, values = self._task(x, y)
        return float(self._model.log_prob(jnp.asarray(points), jnp.asarray(values), jnp.ones(len(values), dtype=bool)))

    @property
    @float64
    def noise(self) -> float:
        """Variance of the observation noise."""
        return float(self._model.noise)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (GaussianProcess, self.dim, _as_numpy(self._model))

    def _task(self, x: ArrayLike, y: ArrayLike, which: str = "") -> tuple[Points, Values]:
        points, values = _points(f"x{which}", x, self.dim), _numbers(f"y{which}", y)
        if values.shape != (len(points),) or not len(values):
            shapes = f"y{which} has shape {values.shape}, x{which} {points.shape}"
            raise DataError(f"{shapes}; give one value for each point, and one point at least")
        return points, values


class Predictor:
    """A Gaussian process after observations: what `GaussianProcess.posterior` returns."""

    dim: int
    _model: Posterior

    @float64
    def predict(self, x: ArrayLike) -> tuple[Values, Values]:
        """Return mean and standard deviation of the function, without noise, at `x` (n, dim)."""
        mean, variance = self._model.predict(jnp.asarray(_points("x", x, self.dim)))
        return np.asarray(mean), np.sqrt(np.asarray(variance))

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (Predictor, self.dim, _as_numpy(self._model))


def _made(kind: type[Kind], dim: int, model: GP | Posterior) -> Kind:
    made = object.__new__(kind)
    made.__dict__.update(dim=dim, _model=model)
    return made


def _as_numpy(model: PyTree) -> PyTree:
    """Return the arrays of a model as NumPy's: unpickled as they are, JAX's would be float32."""
    return jax.tree.map(np.asarray, model)


@float64
def _restored(kind: type[Kind], dim: int, model: PyTree) -> Kind:
    return _made(kind, dim, jax.tree.map(jnp.asarray, model))


@eqx.filter_jit
def _fitted(
    gp: GP, x: Float[Array, "tasks n d"], y: Float[Array, "tasks n"], mask: Bool[Array, "tasks n"], steps: int
) -> tuple[GP, Log]:
    def loss(candidate: GP) -> Float[Array, ""]:
        return nll(candidate, x, y, mask)

    return lbfgs(loss, gp, steps=steps)


def _paired(x: Sequence[ArrayLike], y: ArrayLike) -> list[tuple[ArrayLike, ArrayLike]]:
    if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != len(x):
        given = f"has {len(y)}" if isinstance(y, (list, tuple, np.ndarray)) else "is no list"
        raise DataError(f"x has {len(x)} tasks, y {given}; give one array of values for each task")
    return list(zip(x, y, strict=True))


def _points(name: str, x: ArrayLike, dim: int) -> Points:
    points = _numbers(name, x)
    if points.ndim != 2 or points.shape[1] != dim:
        hint = f"; write {name}[:, None] for one column" if points.ndim == 1 and dim == 1 else ""
        raise DataError(f"{name} has shape {points.shape}, needs (n, {dim}): one row for each point{hint}")
    return points


def _numbers(name: str, values: ArrayLike) -> Float[np.ndarray, "..."]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not an array of numbers ({error}); give rows of equal length") from error
    if not np.isfinite(array).all():
        place = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
        raise DataError(f"{name}[{place}] is not finite; leave that point out, or give it the worst value")
    return array


def require_count(name: str, value: object) -> int:
    """Return `value`, or raise ConfigError unless it is a whole number of at least 1. `name`: of the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} is {value!r}; must be a whole number of at least 1")
    return value

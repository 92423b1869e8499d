"""The Gaussian process as users see it (`metabo.GP`): NumPy in, NumPy out, and clear errors.

It wraps `metabo.gp.model.GP`, checks the data, and computes in float64 whatever the settings of JAX in the process.
"""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree
from numpy.typing import ArrayLike

from metabo.compute.guest import float64
from metabo.compute.keys import stream
from metabo.errors import DataError, NumericsError, NumericsWarning
from metabo.gp import arguments
from metabo.gp.arguments import Values
from metabo.gp.fit import Log, lbfgs
from metabo.gp.means import Zero
from metabo.gp.model import GP, Posterior, build
from metabo.gp.objectives import nll
from metabo.tasks.rows import pad

Kind = TypeVar("Kind", "GaussianProcess", "Predictor")

FEW, MANY = 128, 1024
"""The room for observations, and for inputs of a prediction, is a power of two up to this number and then a multiple of
it: their number may grow one by one, as in a tuning loop, and a program is compiled only now and then."""
OUTSIDE = 4
"""The level of the caller's line, for a warning by a function that a method calls: past the method and `float64`."""
STEP = 16
"""The room for the rows of a fit, which works on them again and again, is a multiple of this number."""
LARGEST, SMALLEST = 1e153, 1e-153
"""Bounds on the size and the spread of the outputs: their squares, the variances, must be float64 numbers too."""


class Units(NamedTuple):
    """The model sees (y - `centre`) / `spread`: jitter, floors and starting values are meant for outputs of order 1."""

    centre: float = 0.0
    spread: float = 1.0

    def standard(self, y: Values) -> Values:
        """Return outputs as the model sees them."""
        return (y - self.centre) / self.spread


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

    `dim`: the number of input columns; inputs should lie in the unit cube. `mean`: "zero", "constant" or "linear_mlp";
    `kernel`: "matern12", "matern32", "matern52", "squared_exponential" or "dot_product"; `features`: layer sizes of the
    network that both share (hyperbo §7.2), or () for the inputs themselves; `seed`: the seed of its weights. Outputs
    may be of any size: `fit` scales them by their spread, and centres them unless the mean is zero. Objects are
    immutable: `fit` returns a new one. Raises ConfigError for names that do not exist, and for sizes that are not whole
    numbers of at least 1.
    """

    @float64
    def __init__(
        self, dim: int, *, mean: str = "constant", kernel: str = "matern52", features: Sequence[int] = (), seed: int = 0
    ) -> None:
        self.dim, self._units = arguments.count("dim", dim), Units()
        names = {"mean": arguments.text("mean", mean), "kernel": arguments.text("kernel", kernel)}
        model = {**names, "features": arguments.layers("features", features)}
        self._model = build(model, self.dim, stream(arguments.seed(seed), "gp"))

    @float64
    def fit(self, x: ArrayLike, y: ArrayLike, steps: int = 100) -> "GaussianProcess":
        """Return the GP that maximises the marginal likelihood (hyperbo Eq. 13), after at most `steps` steps of L-BFGS.

        For one task, give `x` (n, dim) and `y` (n,); for several, a list of such x and a list of such y. Raises
        ConfigError unless `steps` is a whole number of at least 1, DataError for other shapes, for values that are not
        finite and for outputs whose variance is not a float64 number, and NumericsError if the likelihood is not finite
        at the start.
        """
        steps = arguments.count("steps", steps)
        if arguments.lists_tasks(x):
            tasks = []
            for i, pair in enumerate(arguments.paired(x, y)):  # in a comprehension a warning would name another line
                tasks.append(arguments.task(*pair, self.dim, f"[{i}]"))
        else:
            tasks = [arguments.task(x, y, self.dim)]
        units = _units_of([values for _, values in tasks], not isinstance(self._model.mean, Zero))
        room = -(-max(len(values) for _, values in tasks) // STEP) * STEP
        points = jnp.asarray(pad([points for points, _ in tasks], room))
        values = jnp.asarray(pad([units.standard(values) for _, values in tasks], room))
        seen = jnp.arange(room) < jnp.asarray([len(values) for _, values in tasks])[:, None]
        gp, log = _fitted(self._model, points, values, seen, steps)
        if int(log.stopped) == 0:
            raise NumericsError("fit: the likelihood of the data is not finite; scale x to [0, 1]")
        return _made(GaussianProcess, dim=self.dim, model=gp, units=units)

    @float64
    def posterior(self, x: ArrayLike, y: ArrayLike) -> "Predictor":
        """Condition on observations `x` (n, dim), `y` (n,).

        Raises DataError for other shapes and for values that are not finite. If the covariance cannot be factorised,
        more is added to its diagonal and a NumericsWarning says so (`Predictor.jitter`); if that does not help, raises
        NumericsError.
        """
        points, values = arguments.task(x, y, self.dim)
        room = _room(len(values), FEW)
        seen = jnp.arange(room) < len(values)
        posterior = _conditioned(self._model, _padded(points, room), _padded(self._units.standard(values), room), seen)
        if not bool(posterior.ok):
            raise NumericsError("posterior: the covariance of x cannot be factorised; fit the GP, or scale x to [0, 1]")
        predictor = _made(Predictor, dim=self.dim, model=posterior, units=self._units)
        if predictor.jitter > 0:
            warnings.warn(
                f"posterior: the covariance of x needed {predictor.jitter:.2g} more on its diagonal to be factorised; "
                "predictions near the observations are smoother than the model: scale x to [0, 1], or fit the GP",
                NumericsWarning,
                stacklevel=3,  # past float64: the line that asked
            )
        return predictor

    @float64
    def predict(self, x: ArrayLike) -> tuple[Values, Values]:
        """Return mean and standard deviation of the function at `x` (n, dim) before any observation. Raises DataError
        for another shape and for values that are not finite."""
        phi = self._model.features(jnp.asarray(arguments.points("x", x, self.dim, OUTSIDE)))
        return _moments(self._units, self._model.mean(phi), self._model.kernel.diagonal(phi))

    @float64
    def log_likelihood(self, x: ArrayLike, y: ArrayLike) -> float:
        """Return the log marginal likelihood of one task, `x` (n, dim) and `y` (n,). Raises DataError for other shapes
        and for values that are not finite, and NumericsError if the likelihood is no float64 number."""
        points, values = arguments.task(x, y, self.dim)
        room = _room(len(values), FEW)
        seen = jnp.arange(room) < len(values)
        found = _likelihood(self._model, _padded(points, room), _padded(self._units.standard(values), room), seen)
        if not bool(jnp.isfinite(found)):
            raise NumericsError("log_likelihood: it is no float64 number; fit the GP to outputs of this size first")
        return float(found) - len(values) * math.log(self._units.spread)

    @property
    @float64
    def noise(self) -> float:
        """Variance of the observation noise. Covariances of observations have 1e-6 times the squared spread of the
        outputs of the fit besides, so that they can be factorised."""
        return float(self._model.noise) * self._units.spread**2

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (GaussianProcess, self.dim, _as_numpy(self._model), self._units)


class Predictor:
    """A Gaussian process after observations: what `GaussianProcess.posterior` returns."""

    dim: int
    _model: Posterior
    _units: Units

    @property
    def jitter(self) -> float:
        """Variance that the covariance of the observations needed on its diagonal to be factorised, beyond the usual
        jitter (1e-6 times the squared spread of the outputs of the fit). It is usually 0."""
        return float(self._model.jitter) * self._units.spread**2

    @float64
    def predict(self, x: ArrayLike) -> tuple[Values, Values]:
        """Return mean and standard deviation of the function, without noise, at `x` (n, dim). Raises DataError for
        another shape and for values that are not finite."""
        points = arguments.points("x", x, self.dim, OUTSIDE)
        mean, variance = _predicted(self._model, _padded(points, _room(len(points), MANY)))
        return _moments(self._units, mean[: len(points)], variance[: len(points)])

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (Predictor, self.dim, _as_numpy(self._model), self._units)


def _units_of(tasks: Sequence[np.ndarray], centred: bool) -> Units:
    """Return the units of the outputs of a fit, from those of each task, each of shape (n,).

    The spread is the geometric mean of two: the spread of all outputs, which a fit from the usual start can reach, and
    the spread within tasks, which the jitter must not drown. Outputs that are all equal have no spread and are not
    scaled. Raises DataError for outputs or a spread whose square is not a float64 number.
    """
    y = np.concatenate(tasks)
    largest = float(np.abs(y).max())
    if largest > LARGEST:
        raise DataError(f"y has values of size {largest:.3g}, whose variance is no float64; divide y by {largest:.0e}")
    centre = float(y.mean()) if centred else 0.0
    deviations = y - centre, np.concatenate([values - values.mean() for values in tasks]) if centred else y
    spreads = [spread for one in deviations if (spread := _spread(one, largest)) > 0]
    spread = math.prod(math.sqrt(one) for one in spreads) ** (2 / max(len(spreads), 1))
    if not spreads:
        return Units(centre, 1.0)
    if spread < SMALLEST:
        raise DataError(f"y has a spread of {spread:.3g}, whose square is no float64; multiply y by {1 / spread:.0e}")
    return Units(centre, spread)


def _spread(deviations: Values, largest: float) -> float:
    """Return the root mean square, or 0 if the deviations are no larger than the rounding of numbers of size
    `largest`."""
    size = float(np.abs(deviations).max())
    if size <= 8 * np.finfo(np.float64).eps * largest:
        return 0.0
    return size * float(np.sqrt(np.mean((deviations / size) ** 2)))  # a square alone may not be a float64 number


def _room(count: int, most: int) -> int:
    """Return the room for `count` rows: at least 8, a power of two up to `most`, and then a multiple of it."""
    return max(8, 1 << (count - 1).bit_length()) if 0 < count <= most else max(8, -(-count // most) * most)


def _padded(rows: Float[np.ndarray, "n ..."], room: int) -> Float[Array, "room ..."]:
    """Return rows with zeros after them. Conditioning masks these, and a prediction drops them."""
    return jnp.asarray(pad([rows], room)[0])


@eqx.filter_jit
def _conditioned(gp: GP, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Posterior:
    return gp.posterior(x, y, mask)


@eqx.filter_jit
def _likelihood(gp: GP, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, ""]:
    return gp.log_prob(x, y, mask)


@eqx.filter_jit
def _predicted(posterior: Posterior, x: Float[Array, "m d"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    return posterior.predict(x)


def _moments(units: Units, mean: Float[Array, " n"], variance: Float[Array, " n"]) -> tuple[Values, Values]:
    """Return mean and standard deviation in units of the outputs."""
    return units.centre + units.spread * np.asarray(mean), units.spread * np.sqrt(np.asarray(variance))


def _made(kind: type[Kind], dim: int, model: GP | Posterior, units: Units) -> Kind:
    made = object.__new__(kind)
    made.__dict__.update(dim=dim, _model=model, _units=units)
    return made


def _as_numpy(model: PyTree) -> PyTree:
    """Return the arrays of a model as NumPy arrays: JAX arrays would be unpickled as float32."""
    return jax.tree.map(np.asarray, model)


@float64
def _restored(kind: type[Kind], dim: int, model: PyTree, units: Units) -> Kind:
    return _made(kind, dim, jax.tree.map(jnp.asarray, model), units)


@eqx.filter_jit
def _fitted(
    gp: GP, x: Float[Array, "tasks n d"], y: Float[Array, "tasks n"], mask: Bool[Array, "tasks n"], steps: int
) -> tuple[GP, Log]:
    def loss(candidate: GP) -> Float[Array, ""]:
        return nll(candidate, x, y, mask)

    return lbfgs(loss, gp, steps=steps)

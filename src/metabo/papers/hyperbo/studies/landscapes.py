"""Study S3: the landscapes of EKL (Eq. 6) and NLL differ when Σ̃ is singular (hyperbo §5.5.2, Figure 3).

Truth: zero mean, Matérn 5/2, amplitude 1, lengthscale 1, in one dimension; 3 functions at 5 inputs from N(0, 1).
Model: constant mean, squared exponential. One parameter varies, the two others stay at the truth's values.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Key

from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.kernels import Stationary
from metabo.gp.means import Constant
from metabo.gp.model import GP
from metabo.gp.objectives import degenerate_ekl, nll
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.tasks.rows import sample_moments

STUDIES = {"landscapes": {}}

FUNCTIONS, INPUTS = 3, 5
NOISE = 1e-4
"""Noise variance of truth and model; the paper does not give it."""
TRUTH = {"constant": 0.0, "lengthscale": 1.0, "amplitude": 1.0}
"""Values of the parameters that do not vary; the paper does not give them."""
RANGES = {"constant": (-3.0, 3.0), "lengthscale": (0.05, 20.0), "amplitude": (0.05, 20.0)}
"""Where each parameter varies: the constant on a linear grid, the positive ones on a logarithmic grid."""


def model(constant: Array, lengthscale: Array, amplitude: Array, shape: str = "squared_exponential") -> GP:
    """Return the GP with a constant mean and a stationary kernel of variance amplitude²."""
    raw = inverse_positive(jnp.stack([lengthscale, amplitude**2, jnp.asarray(NOISE)]))
    return GP(Identity(), Constant(constant), Stationary(raw[:1], raw[1], shape), raw[2])


def sample(key: Key[Array, ""]) -> tuple[Float[Array, "m 1"], Float[Array, "m n"]]:
    """Draw the inputs and the functions of one training set from the truth."""
    input_key, function_key = jax.random.split(key)
    x = jax.random.normal(input_key, (INPUTS, 1))
    truth = model(*map(jnp.asarray, TRUTH.values()), shape="matern52")
    factor = jnp.linalg.cholesky(truth.covariance(x, jnp.ones(INPUTS, bool)))
    return x, factor @ jax.random.normal(function_key, (INPUTS, FUNCTIONS))


def grid(parameter: str, points: int) -> np.ndarray:
    """Return the values of one parameter."""
    space = np.linspace if parameter == "constant" else np.geomspace
    return space(*RANGES[parameter], points)


@jax.jit
def _along(x: Array, y: Array, values: dict[str, Array]) -> tuple[Array, Array, Array]:
    """NLL, mean and covariance of the model at every row of the parameters `values`."""

    def at(row):
        gp, valid = model(**row), jnp.ones(INPUTS, bool)
        tasks = jnp.broadcast_to(x, (FUNCTIONS, *x.shape)), y.T, jnp.ones((FUNCTIONS, INPUTS), bool)
        return nll(gp, *tasks), gp.mean(x), gp.covariance(x, valid)

    return jax.vmap(at)(values)


def landscape(x: np.ndarray, y: np.ndarray, parameter: str, points: int) -> pd.DataFrame:
    """Return both losses along one parameter: x (value of the parameter), ekl (Eq. 6), nll (Eq. 13).

    `x` (m, 1), `y` (m, n).
    """
    values = {name: jnp.full(points, value) for name, value in TRUTH.items()}
    values[parameter] = jnp.asarray(grid(parameter, points))
    losses, means, covariances = map(np.asarray, _along(jnp.asarray(x), jnp.asarray(y), values))
    moments = sample_moments(np.asarray(y))
    ekl = [degenerate_ekl(mean, covariance, *moments) for mean, covariance in zip(means, covariances, strict=True)]
    return pd.DataFrame({"x": values[parameter], "ekl": ekl, "nll": losses})


class LandscapeSpec(StudySpec):
    """Training sets drawn, and points per parameter."""

    draws: int
    grid: int


def run(spec: LandscapeSpec) -> Frames:
    """Return "argmin" (draw, parameter, metric, x, loss) and "curve" of one draw (draw, parameter, x, ekl, nll).

    The drawn set is the first whose minima are all
    positive, since the figure scales NLL by min EKL / min NLL; the first one if there is none.
    """
    argmins, curves = [], {}
    for draw in progress.loop(range(spec["draws"]), "draws"):
        x, y = map(np.asarray, sample(stream(spec["seed"], "landscapes", draw)))
        for parameter in RANGES:
            curve = landscape(x, y, parameter, spec["grid"])
            curves[draw, parameter] = curve.assign(draw=draw, parameter=parameter)
            for metric in ("ekl", "nll"):
                best = int(curve[metric].argmin())
                where, loss = curve["x"].iloc[best], curve[metric].iloc[best]
                argmins.append({"draw": draw, "parameter": parameter, "metric": metric, "x": where, "loss": loss})
    table = pd.DataFrame(argmins)
    lowest = table.groupby("draw")["loss"].min()
    shown = int((lowest > 0).argmax())
    return {"argmin": table, "curve": pd.concat([curves[shown, parameter] for parameter in RANGES])}

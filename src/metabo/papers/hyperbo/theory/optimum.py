"""Proposition 4 (HyperBO §6.2): the sample moments minimise EKL and NLL over all means and covariances."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.optimize import minimize

from metabo.gp.objectives import gaussian_kl
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import inequality
from metabo.papers.hyperbo.theory.identities import model_nll, random_outputs
from metabo.papers.hyperbo.theory.memory import PriorEstimate, estimate

CHECKS = {"proposition4": "Proposition 4: the sample moments minimise both losses"}
POINTS, FUNCTIONS = 5, 12
WALL = 1e6
"""Loss of covariances that are singular in float64. L-BFGS needs it: a line search that meets NaN goes astray."""

Loss = Callable[[Array, Array], Array]
"""A function of (mean (m,), covariance (m, m))."""


def proposition4(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check Proposition 4 at the optimum, around it, from other starts and by gradients; below, with N > M functions.

    The controls claim the same of the covariance with the divisor N - 1; the last one, of N <= M functions.
    """
    rng = generator(key)
    y = jnp.asarray(random_outputs(rng, POINTS, FUNCTIONS))
    fitted = estimate(y)
    losses: dict[str, Loss] = {
        "EKL": lambda m, c: gaussian_kl(fitted.mean, fitted.covariance, m, c),
        "NLL": lambda m, c: model_nll(m, c, y),
    }
    unbiased = PriorEstimate(fitted.mean, fitted.covariance * FUNCTIONS / (FUNCTIONS - 1.0))
    models = _perturbed(rng, fitted, 1000)
    others = {name: jax.jit(jax.vmap(loss))(*models) for name, loss in losses.items()}
    found = _searched(rng, y, 20)

    def value(at: PriorEstimate) -> list[Cell]:
        return [cell(inequality(abs(jax.jit(losses["EKL"])(*at)), 1e-10), loss="EKL")]

    def minimum(at: PriorEstimate) -> list[Cell]:
        return [cell(inequality(jax.jit(loss)(*at), others[name]), loss=name) for name, loss in losses.items()]

    def search(at: PriorEstimate) -> list[Cell]:
        return [cell(inequality([_relative_error(end, at) for end in found], 1e-4), loss="NLL")]

    def gradient(at: PriorEstimate) -> list[Cell]:
        return [cell(inequality(_gradient_norm(loss, at), 1e-8), loss=name) for name, loss in losses.items()]

    checked = [
        part(name, claim, "inequality", test(fitted), control("the same with the divisor N - 1", test(unbiased)))
        for name, claim, test in (
            ("minimum", "1000 perturbed models have larger losses", minimum),
            ("value", "EKL of the sample moments is 0 (to 1e-10)", value),
            ("search", "L-BFGS over (mean, Cholesky factor) ends there (relative error 1e-4) from 20 starts", search),
            ("gradient", "both gradients vanish there (norm 1e-8)", gradient),
        )
    ]
    bounded = part(
        "lower bound", "NLL(Σ̃ + εI) >= NLL(Σ̃ + I) - 50 as ε falls to 1e-8, N = 12 > M = 5", "inequality",
        [_bounded_below(rng, POINTS, FUNCTIONS)],
        control("the same for N = 4 < M = 12", [_bounded_below(rng, 12, 4)]),
    )  # fmt: skip
    title = "μ̂ = Y1/N, k̂∘σ̂² = (Y - μ̂1ᵀ)(Y - μ̂1ᵀ)ᵀ/N minimise L^EKL and L^NLL"
    return [statement("Proposition 4", title, "§6.2", [*checked, bounded])]


def _perturbed(rng: np.random.Generator, fitted: PriorEstimate, number: int) -> PriorEstimate:
    """Draw models at log-uniform distances 1e-3 to 1 from the optimum, positive definite by construction."""
    size = 10.0 ** rng.uniform(-3.0, 0.0, (number, 1, 1))
    points = len(fitted.mean)
    factor = np.linalg.cholesky(fitted.covariance) @ (
        np.eye(points) + size * rng.standard_normal((number, points, points))
    )
    mean = fitted.mean + size[:, 0] * rng.standard_normal((number, points))
    return PriorEstimate(mean, jnp.asarray(factor @ factor.transpose(0, 2, 1)))


def walled(
    value_and_gradient: Callable[[np.ndarray], tuple[Array, Array]],
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return the same function with (WALL, zeros) where value or gradient are not finite."""

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(vector)
        if np.isfinite(value) and np.isfinite(gradient).all():
            return float(value), np.asarray(gradient)
        return WALL, np.zeros_like(vector)

    return loss


def _searched(rng: np.random.Generator, y: Float[Array, "m n"], starts: int) -> list[PriorEstimate]:
    """Return the mean and covariance that SciPy's L-BFGS finds from each start."""
    points = y.shape[0]
    below = jnp.tril_indices(points, -1)

    def moments(vector: Float[Array, " p"]) -> tuple[Array, Array]:
        factor = jnp.diag(jnp.exp(vector[points : 2 * points])).at[below].set(vector[2 * points :])
        return vector[:points], factor @ factor.T

    loss = walled(jax.jit(jax.value_and_grad(lambda vector: model_nll(*moments(vector), y))))
    ends = []
    for start in 0.5 * rng.standard_normal((starts, 2 * points + len(below[0]))):
        limits = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-7}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits)
        ends.append(PriorEstimate(*jax.jit(moments)(jnp.asarray(found.x))))
    return ends


def _relative_error(end: PriorEstimate, at: PriorEstimate) -> float:
    """Return the larger relative error of mean and covariance."""
    return float(np.max([np.abs(a - b).max() / np.abs(b).max() for a, b in zip(end, at, strict=True)]))


def _gradient_norm(loss: Loss, fitted: PriorEstimate) -> Float[Array, ""]:
    gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(*fitted)
    return jnp.sqrt(sum(jnp.sum(g**2) for g in gradients))


def _bounded_below(rng: np.random.Generator, points: int, functions: int) -> Cell:
    """Is NLL(Σ̃ + εI) >= NLL(Σ̃ + I) - 50? With N <= M it falls by (M - r)/2 ln 10 per decade of ε, r the rank of Σ̃."""
    y = jnp.asarray(rng.standard_normal((points, functions)))
    fitted = estimate(y)
    sizes = 10.0 ** -np.arange(0.0, 9.0)
    values = jax.jit(jax.vmap(lambda e: model_nll(fitted.mean, fitted.covariance + e * jnp.eye(points), y)))(sizes)
    return cell(inequality(values[0] - 50.0, values, epsilon=sizes), points=points, functions=functions)

"""Proposition 4 (HyperBO §6.2): the sample moments minimise EKL and NLL over all means and covariances."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.optimize import minimize

from metabo.gp.objectives import gaussian_kl
from metabo.theory.hyperbo.identities import model_nll, random_outputs
from metabo.theory.hyperbo.memory import Estimate, estimate
from metabo.theory.records import Record, cell, control, part, statement
from metabo.theory.replicates import generator
from metabo.theory.verdicts import Finding, inequality

CHECKS = {"proposition4": "Proposition 4: the sample moments minimise both losses"}
POINTS, FUNCTIONS = 5, 12

Loss = Any
"""A function of (mean (m,), covariance (m, m))."""


def proposition4(key: Key[Array, ""], _share: float) -> list[Record]:
    """Check Proposition 4 at the optimum, around it, from other starts and by gradients; control: too few functions."""
    rng = generator(key)
    y = jnp.asarray(random_outputs(rng, POINTS, FUNCTIONS))
    fitted = estimate(y)
    losses: dict[str, Loss] = {
        "EKL": lambda m, c: gaussian_kl(fitted.mean, fitted.covariance, m, c),
        "NLL": lambda m, c: model_nll(m, c, y),
    }
    at = {name: float(jax.jit(loss)(*fitted)) for name, loss in losses.items()}
    least = part(
        "value", "EKL of the sample moments is 0 (to 1e-10)", "inequality",
        [cell(inequality(abs(at["EKL"]), 1e-10), loss="EKL")],
    )  # fmt: skip
    others = _perturbed(rng, fitted, 1000)
    larger = part(
        "minimum", "1000 perturbed models have larger losses", "inequality",
        [cell(inequality(at[n], jax.jit(jax.vmap(loss))(*others)), loss=n) for n, loss in losses.items()],
        control("Proposition 4 for N = 4 < M = 12: the NLL has a lower bound", [cell(_bounded_below(rng), loss="NLL")]),
    )  # fmt: skip
    reached = part(
        "search", "L-BFGS over (mean, Cholesky factor) ends there (relative error 1e-4) from 20 starts", "inequality",
        [cell(inequality(_search_errors(rng, y, fitted, 20), 1e-4), loss="NLL")],
    )  # fmt: skip
    flat = part(
        "gradient", "both gradients vanish there (norm 1e-8)", "inequality",
        [cell(inequality(_gradient_norm(loss, fitted), 1e-8), loss=name) for name, loss in losses.items()],
    )  # fmt: skip
    title = "μ̂ = Y1/N, k̂∘σ̂² = (Y - μ̂1ᵀ)(Y - μ̂1ᵀ)ᵀ/N minimise L^EKL and L^NLL"
    return [statement("Proposition 4", title, "§6.2", [larger, least, reached, flat])]


def _perturbed(rng: np.random.Generator, fitted: Estimate, number: int) -> Estimate:
    """Draw models at log-uniform distances 1e-3 to 1 from the optimum, positive definite by construction."""
    size = 10.0 ** rng.uniform(-3.0, 0.0, (number, 1, 1))
    points = len(fitted.mean)
    factor = np.linalg.cholesky(fitted.covariance) @ (
        np.eye(points) + size * rng.standard_normal((number, points, points))
    )
    mean = fitted.mean + size[:, 0] * rng.standard_normal((number, points))
    return Estimate(mean, jnp.asarray(factor @ factor.transpose(0, 2, 1)))


def _search_errors(rng: np.random.Generator, y: Float[Array, "m n"], fitted: Estimate, starts: int) -> list[float]:
    """Return the largest relative error of mean and covariance that SciPy's L-BFGS finds from each start."""
    points = y.shape[0]
    below = jnp.tril_indices(points, -1)

    def moments(vector: Float[Array, " p"]) -> tuple[Array, Array]:
        factor = jnp.diag(jnp.exp(vector[points : 2 * points])).at[below].set(vector[2 * points :])
        return vector[:points], factor @ factor.T

    value_and_gradient = jax.jit(jax.value_and_grad(lambda vector: model_nll(*moments(vector), y)))
    errors = []
    for start in 0.5 * rng.standard_normal((starts, 2 * points + len(below[0]))):
        limits = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-7}
        found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=limits)
        pairs = zip(jax.jit(moments)(jnp.asarray(found.x)), fitted, strict=True)
        errors.append(max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs))
    return errors


def _gradient_norm(loss: Loss, fitted: Estimate) -> Float[Array, ""]:
    gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(*fitted)
    return jnp.sqrt(sum(jnp.sum(g**2) for g in gradients))


def _bounded_below(rng: np.random.Generator) -> Finding:
    """With N <= M: is NLL(Σ̃ + εI) >= NLL(Σ̃ + I) - 50? It falls by (M - r)/2 ln 10 = 10 per decade of ε."""
    y = jnp.asarray(rng.standard_normal((12, 4)))
    fitted = estimate(y)
    sizes = 10.0 ** -np.arange(0.0, 9.0)
    values = jax.jit(jax.vmap(lambda e: model_nll(fitted.mean, fitted.covariance + e * jnp.eye(12), y)))(sizes)
    return inequality(values[0] - 50.0, values, epsilon=sizes)

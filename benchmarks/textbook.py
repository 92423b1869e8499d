"""The same work written the straightforward way: a Python loop over tasks, one full Cholesky factor per iteration.

It imports nothing of metabo, so that it is also an independent check of what metabo computes.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from case import Case
from jax.scipy.linalg import cho_solve as jax_cho_solve
from problem import JITTER, Parameters, Sizes, candidates, matched_rows, observed, parameters, training_rows
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import norm

MARGIN = 0.1


def softplus(value: Any) -> Any:
    return jnp.logaddexp(value, 0.0) + 1e-10


def features(params: Parameters, x: jax.Array) -> jax.Array:
    for i in range(sum(name.startswith("weight") for name in params)):
        x = jnp.tanh(x @ params[f"weight{i}"] + params[f"bias{i}"])
    return x


def matern52(a: jax.Array, b: jax.Array) -> jax.Array:
    squared = jnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
    # the square root has no derivative at 0, where the kernel's own derivative is 0
    r = jnp.where(squared > 0, jnp.sqrt(5.0 * jnp.where(squared > 0, squared, 1.0)), 0.0)
    return (1.0 + r + r**2 / 3.0) * jnp.exp(-r)


def covariance(params: Parameters, phi: jax.Array) -> jax.Array:
    scaled = phi / softplus(params["lengthscale"])
    noise = softplus(params["noise"]) + JITTER
    return softplus(params["variance"]) * matern52(scaled, scaled) + noise * jnp.eye(len(phi))


def task_nll(params: Parameters, x: jax.Array, y: jax.Array) -> jax.Array:
    """Negative log marginal likelihood of one task, for automatic differentiation."""
    phi = features(params, x)
    residual = y - phi @ params["mean_weight"] - params["mean_bias"]
    factor = jnp.linalg.cholesky(covariance(params, phi))
    quadratic = residual @ jax_cho_solve((factor, True), residual)
    return 0.5 * quadratic + jnp.sum(jnp.log(jnp.diag(factor))) + 0.5 * len(y) * jnp.log(2.0 * jnp.pi)


def ekl(params: Parameters, x: jax.Array, mean: jax.Array, sample: jax.Array) -> jax.Array:
    """KL divergence (less its constants) of the sample moments (mean, sample covariance) from the GP."""
    phi = features(params, x)
    shift = mean - phi @ params["mean_weight"] - params["mean_bias"]
    factor = jnp.linalg.cholesky(covariance(params, phi))
    trace = jnp.trace(jax_cho_solve((factor, True), sample))
    quadratic = shift @ jax_cho_solve((factor, True), shift)
    return 0.5 * (trace + quadratic) + jnp.sum(jnp.log(jnp.diag(factor)))


def adam(sizes: Sizes) -> Case:
    """Adam on the NLL: one jitted gradient per task, an optimiser step that is not jitted."""
    x, y = training_rows(sizes)
    params = {name: jnp.asarray(value) for name, value in parameters(sizes).items()}
    optimiser = optax.adam(1e-3)
    loss_and_gradient = jax.jit(jax.value_and_grad(task_nll))
    rng = np.random.default_rng(0)

    def step(params, state):
        gradients = []
        for task_x, task_y in zip(x, y, strict=True):
            rows = rng.choice(sizes.rows, sizes.batch, replace=False)
            gradients.append(loss_and_gradient(params, task_x[rows], task_y[rows])[1])
        mean = jax.tree.map(lambda *g: sum(g) / len(g), *gradients)
        updates, state = optimiser.update(mean, state)
        return optax.apply_updates(params, updates), state

    def repeat() -> int:
        now, state = params, optimiser.init(params)
        for _ in range(sizes.textbook_adam_steps):
            now, state = step(now, state)
        jax.block_until_ready(now)
        return sizes.textbook_adam_steps

    return first_call(lambda: jax.block_until_ready(step(params, optimiser.init(params))), repeat)


def first_call(call: Callable[[], Any], repeat: Callable[[], int]) -> Case:
    """Return a case whose compile time is that of its first call."""
    start = time.perf_counter()
    call()
    return Case(repeat, compile_s=time.perf_counter() - start)


def lbfgs(sizes: Sizes) -> Case:
    """SciPy's L-BFGS-B on the EKL, with the jitted gradient by automatic differentiation."""
    x, y = matched_rows(sizes)
    mean, sample = y.mean(axis=1), np.cov(y, bias=True)
    objective = flat_objective(ekl, parameters(sizes), x, mean, sample)
    start = flatten(parameters(sizes))

    def repeat() -> int:
        return minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": sizes.lbfgs_steps}).nit

    return first_call(lambda: objective(start), repeat)


def flatten(params: Parameters) -> np.ndarray:
    return np.concatenate([value.ravel() for value in params.values()])


def flat_objective(function: Callable, template: Parameters, *data: Any) -> Callable:
    """Return value and gradient of `function` as SciPy wants them."""
    ends = np.cumsum([value.size for value in template.values()])[:-1]

    def unflatten(flat):
        parts = jnp.split(flat, ends)
        return {name: p.reshape(v.shape) for (name, v), p in zip(template.items(), parts, strict=True)}

    compiled = jax.jit(jax.value_and_grad(lambda flat, *data: function(unflatten(flat), *data)))

    def objective(flat):
        value, gradient = compiled(flat, *data)
        return float(value), np.asarray(gradient)

    return objective


def posterior(
    phi: np.ndarray, prior: np.ndarray, y: np.ndarray, chosen: list[int], scale: np.ndarray, variance: float,
    noise: float,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Posterior mean and variance of f at all candidates, by a full factorisation of the chosen ones' covariance."""

    def kernel(a, b):
        r = np.sqrt(5.0) * cdist(a / scale, b / scale)
        return variance * (1.0 + r + r**2 / 3.0) * np.exp(-r)

    seen = phi[chosen]
    factor = np.linalg.cholesky(kernel(seen, seen) + (noise + JITTER) * np.eye(len(chosen)))
    cross = kernel(seen, phi)
    mean = prior + cross.T @ cho_solve((factor, True), y[chosen] - prior[chosen])
    whitened = solve_triangular(factor, cross, lower=True)
    return mean, variance - np.sum(whitened**2, axis=0)


def optimise(params: Parameters, x: np.ndarray, y: np.ndarray, first: int, iterations: int) -> list[int]:
    """BO with a fixed prior and the probability of improvement; returns the chosen candidates, `first` included."""
    phi = np.asarray(features(params, jnp.asarray(x)))
    prior = phi @ params["mean_weight"] + params["mean_bias"]
    scale, variance, noise = (np.asarray(softplus(params[k])) for k in ("lengthscale", "variance", "noise"))
    chosen = [first]
    for _ in range(iterations):
        mean, var = posterior(phi, prior, y, chosen, scale, float(variance), float(noise))
        std = np.sqrt(np.maximum(var, 0.0) + noise)
        chosen.append(int(np.argmax((mean - y[chosen].max() - MARGIN) / std)))
    return chosen


def bo(sizes: Sizes) -> Case:
    x, y = candidates(sizes)
    params = parameters(sizes)

    def repeat() -> int:
        optimise(params, x, y, int(observed(sizes, 1)[0]), sizes.budget)
        return sizes.budget

    return Case(repeat)


PRIORS = {"lengthscale": (0.0, 1.0), "variance": (-1.0, 1.0), "noise": (-6.0, 3.0)}
"""Mean and standard deviation of STBOH's normal priors on the log parameters."""


def clip(name: str, raw: jax.Array) -> jax.Array:
    low, high = norm(*PRIORS[name]).ppf([0.01, 0.99])
    above = low + jnp.logaddexp(raw - low, 0.0)
    return high - jnp.logaddexp(high - above, 0.0) * (high - low) / jnp.logaddexp(high - low, 0.0)


def hand_tuned_loss(raw: Parameters, x: jax.Array, y: jax.Array) -> jax.Array:
    """Negative log posterior of STBOH's parameters: constant, and log lengthscale, variance and noise, unclipped."""
    logs = {name: clip(name, raw[name]) for name in PRIORS}
    scaled = x / jnp.exp(logs["lengthscale"])
    noise = jnp.exp(logs["noise"]) + JITTER
    factor = jnp.linalg.cholesky(jnp.exp(logs["variance"]) * matern52(scaled, scaled) + noise * jnp.eye(len(y)))
    residual = y - raw["constant"]
    quadratic = residual @ jax_cho_solve((factor, True), residual)
    nll = 0.5 * quadratic + jnp.sum(jnp.log(jnp.diag(factor))) + 0.5 * len(y) * jnp.log(2.0 * jnp.pi)
    return nll + sum(0.5 * jnp.sum(((logs[k] - mean) / std) ** 2) for k, (mean, std) in PRIORS.items())


def hand_tuned_start(dim: int) -> Parameters:
    raw = {"constant": np.zeros(()), "lengthscale": np.full(dim, PRIORS["lengthscale"][0])}
    return raw | {name: np.array(PRIORS[name][0]) for name in ("variance", "noise")}


def refit_once(x: np.ndarray, y: np.ndarray, chosen: np.ndarray, steps: int) -> int:
    """One BO iteration of STBOH: fit to the chosen candidates, predict, maximise GP-UCB."""
    start = hand_tuned_start(x.shape[1])
    objective = flat_objective(hand_tuned_loss, start, x[chosen], y[chosen])
    options = {"maxiter": steps}
    fitted = minimize(objective, flatten(start), jac=True, method="L-BFGS-B", options=options).x
    names = list(start)
    ends = np.cumsum([value.size for value in start.values()])[:-1]
    raw = dict(zip(names, np.split(fitted, ends), strict=True))
    scale, variance, noise = (np.exp(clip(k, raw[k])) for k in ("lengthscale", "variance", "noise"))
    prior = np.full(len(x), raw["constant"].item())
    mean, var = posterior(x, prior, y, list(chosen), np.asarray(scale), variance.item(), noise.item())
    return int(np.argmax(mean + 1.8 * np.sqrt(np.maximum(var, 0.0) + noise.item())))


def refit(sizes: Sizes) -> Case:
    """Re-fits at several stages of a run. Every size of the data is a new program, as it is in a run."""
    x, y = candidates(sizes)

    def repeat() -> int:
        jax.clear_caches()
        for number in sizes.refit_sizes:
            refit_once(x, y, observed(sizes, number), sizes.refit_steps)
        return len(sizes.refit_sizes)

    return Case(repeat)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "adam": {"textbook": adam},
    "lbfgs": {"textbook": lbfgs},
    "bo": {"textbook": bo},
    "refit": {"textbook": refit},
}

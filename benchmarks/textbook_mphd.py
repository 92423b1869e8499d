"""The steps of MPHD written the straightforward way; like `textbook` it imports nothing of metabo."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from case import Case
from jax.scipy.linalg import cho_solve
from jax.scipy.stats import gamma, norm
from problem import (
    HYPERPRIOR,
    JITTER,
    THETA,
    Parameters,
    Sizes,
    domain_pool,
    domain_rows,
    estimates,
)
from scipy.optimize import minimize
from textbook import first_call, flat_objective, flatten, matern52, posterior, softplus


def start(sizes: Sizes) -> Parameters:
    """Return the unconstrained values that every fit of a domain starts from."""
    return {k: np.full(sizes.inputs, v) if k == "lengthscale" else np.array(v) for k, v in THETA.items()}


def nll(raw: Parameters, x: jax.Array, y: jax.Array) -> jax.Array:
    """Negative log marginal likelihood of one function, for automatic differentiation."""
    scaled = x / softplus(raw["lengthscale"])
    noise = softplus(raw["noise"]) + JITTER
    factor = jnp.linalg.cholesky(softplus(raw["variance"]) * matern52(scaled, scaled) + noise * jnp.eye(len(y)))
    residual = y - raw["constant"]
    quadratic = residual @ cho_solve((factor, True), residual)
    return 0.5 * quadratic + jnp.sum(jnp.log(jnp.diag(factor))) + 0.5 * len(y) * jnp.log(2.0 * jnp.pi)


def step1(sizes: Sizes) -> Case:
    """Adam on the functions of one domain: one jitted gradient per function, an optimiser step that is not jitted."""
    x, y = domain_rows(sizes)
    params = {name: jnp.asarray(value) for name, value in start(sizes).items()}
    optimiser, gradient, rng = optax.adam(1e-3), jax.jit(jax.grad(nll)), np.random.default_rng(0)
    batch = min(sizes.batch, sizes.points)

    def step(now, state):
        found = []
        for function_x, function_y in zip(x, y, strict=True):
            rows = rng.choice(sizes.points, batch, replace=False)
            found.append(gradient(now, function_x[rows], function_y[rows]))
        mean = jax.tree.map(lambda *g: sum(g) / len(g), *found)
        updates, state = optimiser.update(mean, state)
        return optax.apply_updates(now, updates), state

    def repeat() -> int:
        now, state = params, optimiser.init(params)
        for _ in range(sizes.textbook_step1_steps):
            now, state = step(now, state)
        jax.block_until_ready(now)
        return sizes.textbook_step1_steps

    return first_call(lambda: jax.block_until_ready(step(params, optimiser.init(params))), repeat)


def network(weights: list[tuple[jax.Array, jax.Array]], context: jax.Array) -> jax.Array:
    """Return shape and rate of each context: tanh layers, then a linear one and softplus."""
    for weight, bias in weights[:-1]:
        context = jnp.tanh(context @ weight + bias)
    return softplus(context @ weights[-1][0] + weights[-1][1])


def gamma_loss(weights: list[tuple[jax.Array, jax.Array]], context: jax.Array, values: jax.Array) -> jax.Array:
    """Negative log density of the estimates under the network's Gamma priors."""
    shape, rate = network(weights, context).T
    return -jnp.sum(gamma.logpdf(values, shape, scale=1.0 / rate))


def step2(sizes: Sizes) -> Case:
    """Train the prior network: a jitted gradient, an optimiser step that is not jitted."""
    context, values = estimates(sizes)
    rng, widths = np.random.default_rng(0), (4, 16, 16, 2)
    weights = [(jnp.asarray(rng.normal(size=(a, b)) / np.sqrt(a)), jnp.zeros(b)) for a, b in itertools.pairwise(widths)]
    optimiser, gradient = optax.adam(1e-3), jax.jit(jax.grad(gamma_loss))

    def train(steps: int):
        now, state = weights, optimiser.init(weights)
        for _ in range(steps):
            updates, state = optimiser.update(gradient(now, context, values), state)
            now = optax.apply_updates(now, updates)
        return jax.block_until_ready(now)

    def repeat() -> int:
        train(sizes.textbook_network_steps)
        return sizes.textbook_network_steps

    return first_call(lambda: train(1), repeat)


def map_loss(raw: Parameters, x: jax.Array, y: jax.Array) -> jax.Array:
    """Negative log posterior of a GP's parameters; priors on the constrained values."""
    positive = {name: softplus(raw[name]) for name in ("lengthscale", "variance", "noise")}
    logs = [jnp.sum(gamma.logpdf(v, HYPERPRIOR[k][0], scale=1.0 / HYPERPRIOR[k][1])) for k, v in positive.items()]
    return nll(raw, x, y) - sum(logs) - norm.logpdf(raw["constant"], *HYPERPRIOR["constant"])


def map_once(sizes: Sizes, x: np.ndarray, y: np.ndarray, chosen: np.ndarray) -> int:
    """One BO iteration: fit to the chosen candidates by SciPy, predict, maximise the probability of improvement."""
    begin = start(sizes)
    objective = flat_objective(map_loss, begin, x[chosen], y[chosen])
    options = {"maxiter": sizes.map_steps}
    fitted = minimize(objective, flatten(begin), jac=True, method="L-BFGS-B", options=options).x
    ends = np.cumsum([value.size for value in begin.values()])[:-1]
    raw = dict(zip(begin, np.split(fitted, ends), strict=True))
    scale, variance, noise = (np.asarray(softplus(raw[k])) for k in ("lengthscale", "variance", "noise"))
    prior = np.full(len(x), raw["constant"].item())
    mean, var = posterior(x, prior, y, list(chosen), scale, variance.item(), noise.item())
    std = np.sqrt(np.maximum(var, 0.0) + noise.item())
    return int(np.argmax((mean - y[chosen].max() - 0.1) / std))


def mapped(sizes: Sizes) -> Case:
    """MAP fits at several stages of a run. Every size of the data is a new program, as it is in a run."""
    x, y = domain_pool(sizes)
    order = np.random.default_rng(5).permutation(sizes.points)

    def repeat() -> int:
        jax.clear_caches()
        for number in sizes.refit_sizes:
            map_once(sizes, x, y, order[:number])
        return len(sizes.refit_sizes)

    return Case(repeat)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "mphd_step1": {"textbook": step1},
    "mphd_step2": {"textbook": step2},
    "mphd_map": {"textbook": mapped},
}

"""Studies S4 and S5: posteriors from estimated priors on five points (hyperbo §6.3.1, Figures 4 and 5).

X = {1, ..., 5}; truth: zero mean, squared exponential, lengthscale and variance 1, no noise. Three models of the prior
are estimated from N training functions on all of X: maximum likelihood (Eq. 4), the same with its variance rescaled by
N/(N - t), and a squared exponential pre-trained by EKL (Eq. 7) in its lengthscale and variance.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Int, Key

from metabo.compute import progress
from metabo.compute.keys import stream
from metabo.gp.constraints import inverse_positive
from metabo.gp.features import Identity
from metabo.gp.fit import lbfgs, over_pairs
from metabo.gp.kernels import Stationary
from metabo.gp.linalg import cholesky
from metabo.gp.means import Zero
from metabo.gp.model import GP
from metabo.gp.objectives import ekl_training, gaussian_kl
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.tasks.rows import Moments

STUDIES = {"estimates": {}}

DOMAIN = (1.0, 2.0, 3.0, 4.0, 5.0)
SIZES = (10, 50)
"""Training functions of Figure 4 and of Figure 5."""
OBSERVATIONS = range(5)
MODELS = ("truth", "mle", "unbiased", "pretrained")
NO_NOISE = -50.0
"""Unwarped noise variance: softplus leaves the floor of 1e-10; the jitter of every covariance is larger."""

Gaussian = tuple[Float[Array, " m"], Float[Array, "m m"]]
"""Mean and covariance of a Gaussian vector."""


def squared_exponential(raw_lengthscale: Float[Array, ""], raw_variance: Float[Array, ""]) -> GP:
    """Return the zero-mean GP without noise; the arguments are unconstrained."""
    kernel = Stationary(raw_lengthscale[None], raw_variance, "squared_exponential")
    return GP(Identity(), Zero(), kernel, jnp.asarray(NO_NOISE))


def truth() -> GP:
    """Return the ground truth GP: lengthscale and variance 1."""
    one = inverse_positive(jnp.ones(()))
    return squared_exponential(one, one)


def gaussian(gp: GP, x: Float[Array, "m 1"]) -> Gaussian:
    """Return the GP's Gaussian on the points x."""
    return gp.mean(x), gp.covariance(x, jnp.ones(len(x), bool))


def condition(prior: Gaussian, observed: int, y: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Return the Gaussian of all but the first `observed` entries given those of y (Eq. 15-18 on a finite domain)."""
    mean, covariance = prior
    n = observed
    factor, _ = cholesky(covariance[:n, :n])
    gain = cho_solve((factor, True), covariance[:n, n:]).T
    return mean[n:] + gain @ (y[:n] - mean[:n]), covariance[n:, n:] - gain @ covariance[:n, n:]


def pretrain(x: Float[Array, "m 1"], mean: Float[Array, " m"], root: Float[Array, "m n"], steps: int) -> GP:
    """Fit lengthscale and variance by EKL (Eq. 7) with L-BFGS, from the unwarped value 0 (0.693)."""
    data = Moments(x[None], mean[None], root[None], jnp.ones((1, len(x)), bool))
    raw, _ = lbfgs(lambda raw: ekl_training(squared_exponential(*raw), data), jnp.zeros(2), steps=steps)
    return squared_exponential(*raw)


def rescaling(functions: int, observations: int) -> float:
    """Return N/(N - t) with t = observations + 1, the iteration (Theorem 5; §6.3.1 words t as the observations)."""
    return functions / (functions - observations - 1)


def sample(key: Key[Array, ""], functions: int) -> tuple[Int[Array, " m"], Float[Array, "m n"], Float[Array, " m"]]:
    """Draw the order in which X is observed, the training functions and the test function (rows in that order)."""
    order_key, function_key = jax.random.split(key)
    order = jax.random.permutation(order_key, len(DOMAIN))
    _, covariance = gaussian(truth(), jnp.asarray(DOMAIN)[order][:, None])
    normal = jax.random.normal(function_key, (len(DOMAIN), functions + 1))
    values = jnp.linalg.cholesky(covariance) @ normal
    return order, values[:, :functions], values[:, functions]


def priors(x: Float[Array, "m 1"], y: Float[Array, "m n"], steps: int) -> dict[str, Gaussian]:
    """Return truth, maximum likelihood and pre-trained Gaussian on x from training functions y."""
    mean = y.mean(axis=1)
    root = (y - mean[:, None]) / jnp.sqrt(y.shape[1])
    fitted = pretrain(x, mean, root, steps)
    return {"truth": gaussian(truth(), x), "mle": (mean, root @ root.T), "pretrained": gaussian(fitted, x)}


def marginals(
    x: Float[Array, "m 1"], y: Float[Array, "m n"], test: Float[Array, " m"], steps: int
) -> dict[tuple[int, str], Float[Array, "k 3"]]:
    """Return mean, variance and KL(truth ‖ model) of each unobserved point, by (observations, model)."""
    estimated, result = priors(x, y, steps), {}
    for n in OBSERVATIONS:
        moments = {name: condition(prior, n, test) for name, prior in estimated.items()}
        moments["unbiased"] = (moments["mle"][0], moments["mle"][1] * rescaling(y.shape[1], n))
        means = {name: (mean, jnp.diagonal(covariance)) for name, (mean, covariance) in moments.items()}
        for name in MODELS:
            kl = jax.vmap(_marginal_kl)(*means["truth"], *means[name])
            result[n, name] = jnp.stack([*means[name], kl], axis=1)
    return result


def _marginal_kl(mean0: Array, variance0: Array, mean1: Array, variance1: Array) -> Array:
    return gaussian_kl(mean0[None], variance0[None, None], mean1[None], variance1[None, None])


@eqx.filter_jit
def _draws(
    keys: Key[Array, " n"], functions: int, steps: int
) -> tuple[tuple[Array, Array, Array], dict[tuple[int, str], Array]]:
    def one(key):
        order, y, test = sample(key, functions)
        x = jnp.asarray(DOMAIN)[order][:, None]
        return (x[:, 0], y, test), marginals(x, y, test, steps)

    return over_pairs(one, keys, accelerator=False)


class EstimatesSpec(StudySpec):
    """Draws of training and test functions, and steps of L-BFGS."""

    draws: int
    steps: int


def run(spec: EstimatesSpec) -> Frames:
    """Return the marginals of all draws, and the training and test functions of the first one.

    "marginal": draw, functions, observations, model, x, mean, variance, kl;
    "training": functions, function, x, y; "test": functions, x, y, observed_from (observations that include it).
    """
    frames: dict[str, list[pd.DataFrame]] = {"marginal": [], "training": [], "test": []}
    for functions in progress.loop(SIZES, "sizes"):
        root = stream(spec["seed"], "estimates", functions)
        keys = jax.vmap(partial(jax.random.fold_in, root))(jnp.arange(spec["draws"]))
        (x, y, test), values = jax.tree.map(np.asarray, _draws(keys, functions, spec["steps"]))
        for (n, name), cells in values.items():
            draw = np.repeat(np.arange(spec["draws"]), len(DOMAIN) - n)
            mean, variance, kl = cells.reshape(-1, 3).T
            keyed = {"draw": draw, "functions": functions, "observations": n, "model": name, "x": x[:, n:].ravel()}
            frames["marginal"].append(pd.DataFrame(keyed | {"mean": mean, "variance": variance, "kl": kl}))
        function = np.tile(np.arange(functions), len(DOMAIN))
        one = {"functions": functions, "function": function, "x": np.repeat(x[0], functions), "y": y[0].ravel()}
        frames["training"].append(pd.DataFrame(one))
        known = {"functions": functions, "x": x[0], "y": test[0], "observed_from": np.arange(1, len(DOMAIN) + 1)}
        frames["test"].append(pd.DataFrame(known))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}

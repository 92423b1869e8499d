"""Study S6: pre-training on three densely observed functions (hyperbo §6.3.2, Figures 1 and 6, Table 2).

Truth: Matérn 5/2 on x, linear mean of an MLP with three hidden layers, constant noise. Pre-trained: squared
exponential, the same kind of mean, EKL on the three functions. Single-task: constant mean, squared exponential, type-II
maximum likelihood on three observations of the test function.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Key

from metabo.compute.keys import stream
from metabo.gp.constraints import inverse_positive
from metabo.gp.features import MLP, Identity, make_mlp
from metabo.gp.fit import lbfgs, over_pairs
from metabo.gp.kernels import Stationary
from metabo.gp.means import Linear
from metabo.gp.model import GP, Posterior, build
from metabo.gp.objectives import degenerate_ekl, ekl_training, nll
from metabo.papers.engine.studies import StudySpec
from metabo.papers.engine.studies.files import Frames
from metabo.tasks.rows import Moments, sample_moments

STUDIES = {"transfer": {}}

FUNCTIONS, OBSERVED = 3, 3
DOMAIN = (-5.0, 5.0)
LAYERS = (32, 32, 32)
"""Hidden layers of the mean, truth and model: three in the paper, which does not give their widths."""
NOISE = 1e-4
STARTS = (0.3, 1.0, 3.0, 10.0)
"""Lengthscales from which the single-task GP is fitted; the best fit counts."""
LEVELS = {0.95: 1.959963984540054, 0.99: 2.5758293035489004}
"""Central intervals and their half-widths in standard deviations."""
MODELS = ("truth", "pretrained", "single_task")
SAMPLES = 3


class NetworkMean(Linear):
    """W φ(x) + c with features φ of its own: the kernel stays on x, stationary as §6.3.2 supposes."""

    features: MLP

    def __call__(self, features: Float[Array, "n p"]) -> Float[Array, " n"]:
        """Return the n values; `features` are the GP's, here x itself."""
        return super().__call__(self.features(features))


class TransferSample(NamedTuple):
    """One draw: inputs x (m, 1), training functions y (m, n), test function (m,), indices of its observed points."""

    x: Float[Array, "m 1"]
    y: Float[Array, "m n"]
    test: Float[Array, " m"]
    observed: Array


def network_gp(shape: str, key: Key[Array, ""]) -> GP:
    """Return an untrained GP with an MLP mean and a stationary kernel on x, initial values as in `gp.model.build`."""
    feature_key, mean_key = jax.random.split(key)
    weight = jax.nn.initializers.lecun_normal()(mean_key, (LAYERS[-1], 1), jnp.float64)[:, 0]
    mean = NetworkMean(weight, jnp.zeros(()), make_mlp(1, LAYERS, feature_key))
    return GP(Identity(), mean, Stationary(jnp.zeros(1), jnp.zeros(()), shape), jnp.asarray(-4.0))


def truth(key: Key[Array, ""]) -> GP:
    """Draw a ground truth: random MLP with normal biases; lengthscale and variance 1, noise variance NOISE."""
    network_key, bias_key, weight_key = jax.random.split(key, 3)
    gp = network_gp("matern52", network_key)
    biases = tuple(jax.random.normal(k, (size,)) for k, size in zip(jax.random.split(bias_key, 3), LAYERS, strict=True))
    weight = jax.random.normal(weight_key, (LAYERS[-1],)) * (4.0 / LAYERS[-1]) ** 0.5
    mean = NetworkMean(weight, jnp.zeros(()), MLP(gp.mean.features.weights, biases))
    one = inverse_positive(jnp.ones(()))
    return GP(Identity(), mean, Stationary(one[None], one, "matern52"), inverse_positive(jnp.asarray(NOISE)))


def sample(gp: GP, points: int, key: Key[Array, ""]) -> TransferSample:
    """Draw noisy training functions and a test function on a grid of the domain, and its three observed points."""
    x = jnp.linspace(*DOMAIN, points)[:, None]
    value_key, observed_key = jax.random.split(key)
    values = draw(gp, x, FUNCTIONS + 1, value_key)
    observed = jax.random.choice(observed_key, points, (OBSERVED,), replace=False)
    return TransferSample(x, values[:, :FUNCTIONS], values[:, FUNCTIONS], observed)


def draw(gp: GP, x: Float[Array, "m 1"], number: int, key: Key[Array, ""]) -> Float[Array, "m k"]:
    """Draw k noisy functions from the GP on the points x."""
    factor = jnp.linalg.cholesky(gp.covariance(x, jnp.ones(len(x), bool)))
    return gp.mean(x)[:, None] + factor @ jax.random.normal(key, (len(x), number))


def pretrain(data: TransferSample, steps: int, key: Key[Array, ""]) -> GP:
    """Minimise EKL on the training functions by L-BFGS.

    They share their inputs, so this is NLL up to a constant (sheet §2.6) for one Cholesky factor instead of three.
    """
    mean = data.y.mean(axis=1)
    root = (data.y - mean[:, None]) / jnp.sqrt(FUNCTIONS)
    moments = Moments(data.x[None], mean[None], root[None], jnp.ones((1, len(data.x)), bool))
    return lbfgs(lambda gp: ekl_training(gp, moments), network_gp("squared_exponential", key), steps=steps)[0]


def fit_single(x: Float[Array, "n 1"], y: Float[Array, " n"], steps: int) -> GP:
    """Fit a constant mean and a squared exponential to few observations, by type-II maximum likelihood."""
    start = build({"mean": "constant", "kernel": "squared_exponential", "features": []}, 1, jax.random.key(0))
    every = jnp.ones(len(y), bool)

    def fit(lengthscale):
        gp = eqx.tree_at(lambda gp: gp.kernel.raw_lengthscale, start, inverse_positive(lengthscale)[None])
        fitted, _ = lbfgs(lambda gp: -gp.log_prob(x, y, every), gp, steps=steps)
        return fitted, -fitted.log_prob(x, y, every)

    fits, losses = jax.lax.map(fit, jnp.asarray(STARTS))
    best = jnp.nanargmin(losses)
    return jax.tree.map(lambda leaf: leaf[best], fits)


def posterior_moments(gp: GP, data: TransferSample) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Return mean and standard deviation, noise included, of the test function's outputs given its observations."""
    mean, variance = _conditioned(gp, data, data.test[data.observed]).predict(data.x)
    return mean, jnp.sqrt(variance + gp.noise)


def posterior_samples(gp: GP, data: TransferSample, key: Key[Array, ""]) -> Float[Array, "m k"]:
    """Draw functions from the posterior by Matheron's rule: a prior draw plus the posterior mean of its error."""
    prior = draw(gp, data.x, SAMPLES, key)
    error = data.test[data.observed, None] - prior[data.observed]

    def shift(column):
        # the mean of the error's posterior, without the prior mean that predict adds
        shifted = _conditioned(gp, data, column + gp.mean(data.x[data.observed])).predict(data.x)[0]
        return shifted - gp.mean(data.x)

    return prior + jax.vmap(shift, 1, 1)(error)


def _conditioned(gp: GP, data: TransferSample, y: Float[Array, " n"]) -> Posterior:
    return gp.posterior(data.x[data.observed], y, jnp.ones(OBSERVED, bool))


def losses(gp: GP, data: TransferSample) -> dict[str, Array]:
    """Return nll (Eq. 13), nll_f and nll_df of Table 2, and the coverage of the posterior's intervals."""
    tasks = jnp.broadcast_to(data.x, (FUNCTIONS, *data.x.shape)), data.y.T, jnp.ones(data.y.T.shape, bool)
    every, chosen = jnp.ones(len(data.x), bool), data.observed
    mean, deviation = posterior_moments(gp, data)
    distance = jnp.abs(data.test - mean) / deviation
    return {
        "nll": nll(gp, *tasks),
        "nll_f": -gp.log_prob(data.x, data.test, every),
        "nll_df": -gp.log_prob(data.x[chosen], data.test[chosen], every[:OBSERVED]),
        **{f"coverage_{100 * level:.0f}": jnp.mean(distance < width) for level, width in LEVELS.items()},
    }


@partial(jax.jit, static_argnames=("points", "steps", "single_steps"))
def _all_seeds(
    keys: Key[Array, " n"], points: int, steps: int, single_steps: int
) -> tuple[TransferSample, dict[str, GP], dict[str, dict[str, Array]], dict[str, tuple[Array, Array]]]:
    def one(key):
        truth_key, data_key, start_key = jax.random.split(key, 3)
        true = truth(truth_key)
        data = sample(true, points, data_key)
        chosen = data.observed
        single = fit_single(data.x[chosen], data.test[chosen], single_steps)
        gps = dict(zip(MODELS, (true, pretrain(data, steps, start_key), single), strict=True))
        moments = {name: (gp.mean(data.x), gp.covariance(data.x, jnp.ones(points, bool))) for name, gp in gps.items()}
        return data, gps, {name: losses(gp, data) for name, gp in gps.items()}, moments

    return over_pairs(one, keys, accelerator=False)


class TransferSpec(StudySpec):
    """Seeds, points of a function, steps of pre-training and of the single-task fit, and those that Figure 1 shows."""

    seeds: int
    points: int
    steps: int
    single_steps: int
    snapshots: list[int]


def run(spec: TransferSpec) -> Frames:
    """Return the losses of every seed (seed, model, metric, value), and what the figures draw of the first one.

    "function": kind (training, test, observed), function, x, y; "band": kind (prior, posterior), model, step, x, mean,
    std; "sample": the same with draw and y. `step` is the training step, the last one for finished models.
    """
    root = stream(spec["seed"], "transfer")
    keys = jax.vmap(partial(jax.random.fold_in, root))(jnp.arange(spec["seeds"]))
    data, gps, values, moments = _all_seeds(keys, spec["points"], spec["steps"], spec["single_steps"])
    rows = []
    for seed in range(spec["seeds"]):
        estimate = sample_moments(np.asarray(data.y[seed]))
        for model in MODELS:
            mean, covariance = (np.asarray(part[seed]) for part in moments[model])
            numbers = {metric: float(value[seed]) for metric, value in values[model].items()}
            numbers["ekl"] = degenerate_ekl(mean, covariance, *estimate)
            rows += [{"seed": seed, "model": model, "metric": m, "value": v} for m, v in numbers.items()]
    first, shown = jax.tree.map(lambda leaf: leaf[0], (data, gps))
    return {"loss": pd.DataFrame(rows), **_drawings(first, shown, keys[0], spec)}


def _drawings(data: TransferSample, gps: dict[str, GP], key: Key[Array, ""], spec: TransferSpec) -> Frames:
    x, start_key = np.asarray(data.x[:, 0]), jax.random.split(key, 3)[2]
    sample_key = jax.random.fold_in(key, 1)
    bands, samples = [], []

    def add(kind, model, step, mean, std, paths):
        keyed = {"kind": kind, "model": model, "step": step, "x": x}
        bands.append(pd.DataFrame(keyed | {"mean": mean, "std": std}))
        samples.extend(pd.DataFrame(keyed | {"draw": d, "y": path}) for d, path in enumerate(np.asarray(paths).T))

    def add_prior(model, step, gp):
        std = jnp.sqrt(gp.kernel.diagonal(data.x) + gp.noise)
        add("prior", model, step, gp.mean(data.x), std, draw(gp, data.x, SAMPLES, sample_key))

    for step in spec["snapshots"]:
        # L-BFGS is deterministic: a shorter run ends where the longer one passes
        gp = eqx.filter_jit(pretrain)(data, step, start_key) if step else network_gp("squared_exponential", start_key)
        add_prior("pretrained", step, gp)
    for model, gp in gps.items():
        add_prior(model, spec["steps"], gp)
        moments = posterior_moments(gp, data)
        add("posterior", model, spec["steps"], *moments, posterior_samples(gp, data, sample_key))
    columns = [("training", f, x, np.asarray(data.y[:, f])) for f in range(FUNCTIONS)]
    columns.append(("test", 0, x, np.asarray(data.test)))
    columns.append(("observed", 0, x[np.asarray(data.observed)], np.asarray(data.test[data.observed])))
    functions = [pd.DataFrame({"kind": k, "function": f, "x": at, "y": y}) for k, f, at, y in columns]
    parts = {"function": functions, "band": bands, "sample": samples}
    return {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}

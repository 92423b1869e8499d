"""Study MPHD-S: the learned priors as the number of training domains grows (MPHD §3.2.1, App. F.2, Figures 5 and 11).

Super-dataset S: domains of 2 to 5 inputs, Matérn 3/2, the same priors in every domain. Priors without a network (one
Gamma for all lengthscales) are fitted to the estimates of N training domains, and judged by the likelihood of the test
domains' data under GPs that are drawn from them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from metabo.compute.keys import stream
from metabo.errors import NumericsError
from metabo.gp.constraints import FLOOR
from metabo.gp.fit import over_pairs
from metabo.methods.hierarchical.hyperprior import NAMES, Hyperprior, Parameters, fit_gamma, fit_normal, to_gp
from metabo.papers.engine.studies.files import Frames
from metabo.papers.mphd.studies.fits import (
    POINTS,
    Domains,
    SeededSpec,
    by_lbfgs,
    domains,
    pools,
    subsample,
    super_dataset,
    tested,
)
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.rows import Rows

STUDIES = {"mphd_asymptotics": {}}

KERNEL = "matern32"
TEST_POINTS = 100
"""Observations of a test sub-dataset in its likelihood (authors' code)."""
MARGIN = 1e-6
"""Added to lengthscales that are drawn from a prior (authors' code)."""
CHUNK = 25
"""GPs whose likelihoods are computed side by side."""


def training_and_test(benchmark: Benchmark, spec: SeededSpec) -> tuple[Domains, Domains]:
    """Return the domains that priors are trained on, seed after seed, and those that are tested, each with all of its
    functions."""
    of_space = {s: [t.name for t in benchmark.tasks.values() if t.space == s] for s in benchmark.spaces}
    trained = {space: of_space[space] for own in pools(benchmark, spec) for space in own}
    held_out = {space: of_space[space] for space in tested(benchmark, spec)}
    return domains(benchmark, trained), domains(benchmark, held_out)


def estimates(train: Domains, steps: int, root: Key[Array, ""]) -> Parameters:
    """Return θ̂ of every domain, (domains, ...), from a fixed draw of POINTS observations of each function."""
    keys = jax.random.split(root, len(train.names))

    def fit(pair):
        key, rows = pair
        return by_lbfgs(subsample(Rows(*rows), POINTS, key), KERNEL, steps)

    return jax.tree.map(np.asarray, over_pairs(fit, (keys, train.rows), accelerator=False))


def fit_priors(found: Parameters, train: Domains, chosen: np.ndarray) -> Parameters:
    """Return the two numbers of each parameter's prior from the estimates of the domains `chosen` (Eq. 4, Non-NN).

    `found`: (domains, ...); `chosen`: their indices. Every dimension of every domain counts once for the lengthscales.
    """
    names = [train.names[i] for i in chosen]
    lengths = np.concatenate([found.lengthscale[i, : train.dims[i]] for i in chosen])
    owners = [train.names[i] for i in chosen for _ in range(train.dims[i])]
    return Parameters(
        np.array(fit_normal(found.constant[chosen], NAMES.constant, names)),
        np.array(fit_gamma(lengths, NAMES.lengthscale, owners)),
        np.array(fit_gamma(found.variance[chosen], NAMES.variance, names)),
        np.array(fit_gamma(found.noise[chosen], NAMES.noise, names)),
    )


def draw(prior: Hyperprior, number: int, key: Key[Array, ""]) -> Parameters:
    """Draw θ from a prior `number` times; the leading axis of every parameter."""

    def gamma(key, numbers):
        shape, rate = numbers[..., 0], numbers[..., 1]
        return jax.random.gamma(key, shape, (number, *shape.shape)) / rate

    keys = jax.random.split(key, 4)
    mean, std = prior.constant
    constant = mean + std * jax.random.normal(keys[0], (number,))
    lengthscale = gamma(keys[1], prior.lengthscale) + MARGIN
    # A Gamma with a small shape gives numbers that are zero in floating point; the warping has none below its floor.
    variance = jnp.maximum(gamma(keys[2], prior.variance), 2 * FLOOR)
    noise = jnp.maximum(gamma(keys[3], prior.noise), 2 * FLOOR)
    return Parameters(constant, lengthscale, variance, noise)


def mixture_nll(
    prior: Hyperprior, x: Float[Array, "n d"], y: Float[Array, " n"], samples: int, key: Key[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return -log of the mean of p(y | θ) over `samples` draws of θ (Fig. 5(c)), and the share that failed.

    A draw whose covariance does not factorise counts as a likelihood of 0.
    """
    valid = jnp.ones(len(y), bool)
    theta = draw(prior, samples, key)
    logs = jax.lax.map(lambda t: to_gp(t, KERNEL).log_prob(x, y, valid), theta, batch_size=CHUNK)
    sound = jnp.isfinite(logs)
    value = logsumexp(jnp.where(sound, logs, -jnp.inf)) - jnp.log(samples)
    return -value, jnp.mean(~sound, dtype=value.dtype)


def held_out_rows(test: Domains, subsamples: int, root: Key[Array, ""]) -> tuple[Array, Array]:
    """Return x (k, points, d) and y (k, points): `subsamples` draws of TEST_POINTS from every test sub-dataset."""
    keys = jax.random.split(root, (len(test.names), subsamples))
    every = jax.vmap(lambda x, y, mask, ks: jax.vmap(lambda k: subsample(Rows(x, y, mask), TEST_POINTS, k))(ks))
    x, y, _ = every(*test.rows, keys)
    return x.reshape(-1, *x.shape[-2:]), y.reshape(-1, y.shape[-1])


def held_out_nll(
    priors: list[Parameters], test: Domains, samples: int, subsamples: int, root: Key[Array, ""]
) -> tuple[np.ndarray, np.ndarray]:
    """Return, per prior, the mean of `mixture_nll` over all test sub-datasets and their draws, and the share of draws
    of θ that failed. Raises NumericsError for a prior of which all draws fail."""
    width = test.rows.x.shape[-1]
    numbers = Parameters(*(jnp.asarray(np.stack(part)) for part in zip(*priors, strict=True)))
    x, y = held_out_rows(test, subsamples, jax.random.fold_in(root, 0))
    keys = jax.random.split(jax.random.fold_in(root, 1), (len(priors), len(x)))

    def of_prior(pair):
        (constant, lengthscale, variance, noise), own = pair
        prior = Hyperprior(constant, jnp.broadcast_to(lengthscale, (width, 2)), variance, noise)
        values, failed = jax.lax.map(lambda row: mixture_nll(prior, *row[:2], samples, row[2]), (x, y, own))
        return values.mean(), failed.mean()

    value, failed = map(np.asarray, over_pairs(of_prior, (numbers, keys), accelerator=False))
    if not np.isfinite(value).all():
        number = int(np.argmax(~np.isfinite(value)))
        raise NumericsError(
            f"study mphd_asymptotics: no GP drawn from prior {number} of {len(priors)} has a finite likelihood; raise "
            "config key 'studies.mphd_asymptotics.samples'"
        )
    return value, failed


class AsymptoticsSpec(SeededSpec):
    """Numbers of training domains, steps of L-BFGS, draws of θ, and subsamples of each test sub-dataset."""

    train: list[int]
    steps: int
    samples: int
    subsamples: int


def run(spec: AsymptoticsSpec) -> Frames:
    """Return the estimates of Step 1, the fitted priors, the truth, and the test data's NLL.

    Each seed has training domains of its own (`fits.super_dataset`); N of them are drawn for each N. The tested domains
    are the same for all.

    "estimate": seed, space, parameter,
    index (of the input; 0 for others), value, truth; "prior": train, seed, parameter, first, second (Normal: mean and
    standard deviation of the constant; Gamma: shape and rate of the others); "truth": parameter, first, second; "nll":
    train, seed, value (nats), failed (share of the draws of θ).
    """
    benchmark = super_dataset("mphd_s", spec)
    train, test = training_and_test(benchmark, spec)
    size = len(train.names) // spec["seeds"]
    root = partial(stream, spec["seed"], "mphd_asymptotics")
    found = estimates(train, spec["steps"], root("subsample"))
    cases = [(number, seed) for number in spec["train"] for seed in range(spec["seeds"])]
    priors = []
    for number, seed in cases:
        own = np.asarray(jax.random.permutation(root("domains", number, seed), size))[:number]
        priors.append(fit_priors(found, train, seed * size + own))
    value, failed = held_out_nll(priors, test, spec["samples"], spec["subsamples"], root("test"))
    keyed = pd.DataFrame(cases, columns=["train", "seed"])
    frames = [
        keyed.assign(parameter=name, first=part[:, 0], second=part[:, 1])
        for name, part in zip(Parameters._fields, map(np.stack, zip(*priors, strict=True)), strict=True)
    ]
    truth = next(iter(benchmark.facts.truth.values()))["prior"]
    return {
        "estimate": _estimate_table(found, train, benchmark, size),
        "prior": pd.concat(frames, ignore_index=True),
        "truth": pd.DataFrame([(n, *truth[n]) for n in Parameters._fields], columns=["parameter", "first", "second"]),
        "nll": keyed.assign(value=value, failed=failed),
    }


def _estimate_table(found: Parameters, train: Domains, benchmark: Benchmark, size: int) -> pd.DataFrame:
    """Return the rows of "estimate"; `size`: the number of each seed's domains."""
    rows = []
    for i, (space, dim) in enumerate(zip(train.names, train.dims, strict=True)):
        true = benchmark.facts.truth[space]["parameters"]
        for parameter, part in zip(Parameters._fields, found, strict=True):
            values = part[i, :dim] if parameter == "lengthscale" else part[i, None]
            expected = np.atleast_1d(true[parameter])
            for index, value in enumerate(values):
                rows.append((i // size, space, parameter, index, float(value), float(expected[index])))
    return pd.DataFrame(rows, columns=["seed", "space", "parameter", "index", "value", "truth"])

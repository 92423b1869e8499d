"""What the training and the BO of MAF share: the network, the GP's belief about a pool, and the features of a
candidate.

The acquisition function of Volpp et al. (2020, MetaBO) maps the features of one candidate to one logit, with the same
weights for all candidates. Details that the paper leaves open follow the authors' code (hyperbo D.5 uses it as it is):
ReLU layers, all weights drawn from N(0, 0.01²), no incumbent among the features, and the mean of the observations as
the GP's mean. The network sees outputs that are standardised per task (`Standard`).
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.gp.kernels import Pool
from metabo.gp.model import GP
from metabo.gp.update import new_row

SPREAD = 0.01
"""Standard deviation of the initial weights."""

CLOCK = 2
EXTRA = 4
"""The numbers of features that encode time (step and horizon), and of all features besides x (time, posterior mean and
standard deviation)."""


class AcquisitionNetwork(eqx.Module):
    """Dense ReLU layers and one linear output."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, x: Float[Array, "*n p"]) -> Float[Array, "*n"]:
        """Map feature vectors of p numbers to one number each."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = jax.nn.relu(x @ weight + bias)
        return (x @ self.weights[-1] + self.biases[-1])[..., 0]


def make_network(inputs: int, hidden: tuple[int, ...], key: Key[Array, ""]) -> AcquisitionNetwork:
    """Make a network with weights drawn from N(0, SPREAD²) and zero biases."""
    widths = (inputs, *hidden, 1)
    keys = jax.random.split(key, len(widths) - 1)
    shapes = itertools.pairwise(widths)
    weights = tuple(SPREAD * jax.random.normal(k, shape) for k, shape in zip(keys, shapes, strict=True))
    return AcquisitionNetwork(weights, tuple(jnp.zeros(width) for width in widths[1:]))


class Standard(NamedTuple):
    """How one task's outputs are standardised: (y - offset) / scale has mean 0 and, unless the task is constant,
    standard deviation 1."""

    offset: Float[Array, "*t"]
    scale: Float[Array, "*t"]


class MafPrior(NamedTuple):
    """The result of training: the policy network, the `horizon` of its episodes, and, for each test task of the fold
    (padded to t), the GP fitted to it and its standardisation (hyperbo D.5 grants MAF both)."""

    network: AcquisitionNetwork
    horizon: Float[Array, "*p"]
    gps: GP
    standard: Standard


class PoolBelief(NamedTuple):
    """Posterior of f on a pool of c candidates under a zero-mean GP, after `observed` of at most b observations.

    `response` and `unit` (c,) are k(·, X) Σ⁻¹ y and k(·, X) Σ⁻¹ 1, so that the posterior mean with any constant mean m
    is response + m (1 - unit); `total` is the sum of y; `rows` (b, c) are those of L⁻¹ K(X, pool); `raised` is the
    largest variance that a pivot needed beyond the usual jitter; `ok` says that all rows are sound. `variance` excludes
    noise.
    """

    pool: Pool
    variance: Float[Array, " c"]
    response: Float[Array, " c"]
    unit: Float[Array, " c"]
    rows: Float[Array, "b c"]
    total: Float[Array, ""]
    observed: Int[Array, ""]
    raised: Float[Array, ""]
    ok: Bool[Array, ""]


def prior_belief(gp: GP, x: Float[Array, "c d"], budget: int) -> PoolBelief:
    """Return the belief before any of at most `budget` observations."""
    zero, zeros, rows = jnp.zeros(()), jnp.zeros(x.shape[0]), jnp.zeros((budget, x.shape[0]))
    pool, count, ok = gp.kernel.prepare(x), jnp.asarray(0), jnp.asarray(True)
    return PoolBelief(pool, gp.kernel.diagonal(x), zeros, zeros, rows, zero, count, zero, ok)


def observe(gp: GP, belief: PoolBelief, index: Int[Array, ""], y: Float[Array, ""]) -> PoolBelief:
    """Add the output y of candidate `index` by one new Cholesky row. Cost O(b c)."""
    row, pivot, raised, ok = new_row(gp, belief.pool, belief.rows, belief.variance, index)
    return belief._replace(
        variance=belief.variance - row**2,
        response=belief.response + row * (y - belief.response[index]) / jnp.sqrt(pivot),
        unit=belief.unit + row * (1.0 - belief.unit[index]) / jnp.sqrt(pivot),
        rows=jax.lax.dynamic_update_index_in_dim(belief.rows, row, belief.observed, 0),
        total=belief.total + y,
        observed=belief.observed + 1,
        raised=jnp.maximum(belief.raised, raised),
        ok=belief.ok & ok,
    )


def moments(belief: PoolBelief) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Return posterior mean and standard deviation of f. The GP's mean is the mean of the observations (0 before
    any)."""
    mean = belief.total / jnp.maximum(belief.observed, 1)
    return belief.response + mean * (1.0 - belief.unit), jnp.sqrt(jnp.maximum(belief.variance, 0.0))


def clock(count: Int[Array, "*n"], horizon: Float[Array, ""] | int) -> Float[Array, "*n 2"]:
    """Return time step and horizon, as numbers of queries. Past the horizon the step stays at the horizon, as in the
    authors' code for runs longer than the training episodes."""
    return jnp.stack([jnp.minimum(1.0 * count, horizon), jnp.broadcast_to(1.0 * horizon, count.shape)], axis=-1)


def features(belief: PoolBelief, x: Float[Array, "c d"], horizon: Float[Array, ""] | int) -> Float[Array, "c p"]:
    """Return (posterior mean, posterior standard deviation, x, time step, horizon) of each candidate, p = d + 4."""
    both = jnp.stack(moments(belief), axis=1)
    return jnp.concatenate([both, x, jnp.broadcast_to(clock(belief.observed, horizon), (x.shape[0], CLOCK))], axis=1)

"""EM for the mean and covariance of functions that were observed at some of m shared inputs, with noise.

Task i is f_i ~ N(μ, Σ) at the m anchors, observed where `seen` with noise variance σ². The E-step is Gaussian
conditioning, and the M-step takes the moments of its results (Lin et al. 2026). Apart from what EM keeps of its start,
the rank of Σ is at most the number of tasks, so every M-step blends in a share of the kernel's covariance.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float, Int

from metabo.gp.linalg import cholesky, masked_covariance


class AnchorTable(NamedTuple):
    """Outputs of T tasks at m anchors: `y` (T, m), 0 where there is none. `seen` (P, m) has the distinct sets of
    anchors that tasks have, `kind` (T,) is the set of each task, and `weight` (T,) is 0 for a task that is left out."""

    y: Float[Array, "t m"]
    seen: Bool[Array, "p m"]
    kind: Int[Array, " t"]
    weight: Float[Array, " t"]


class AnchorPrior(NamedTuple):
    """Mean (m,) and covariance (m, m) at the anchors."""

    mean: Float[Array, " m"]
    covariance: Float[Array, "m m"]


class Beliefs(NamedTuple):
    """The posterior of each task's function given its observations: posterior means (T, m), the weighted sum of the
    tasks' posterior covariances (m, m), and the log likelihood (T,) of each task."""

    means: Float[Array, "t m"]
    covariance: Float[Array, "m m"]
    log_likelihood: Float[Array, " t"]


def beliefs(prior: AnchorPrior, table: AnchorTable, noise: Float[Array, ""]) -> Beliefs:
    """Condition on every task (E-step). Tasks with the same anchors share one factorisation: O(P m³ + P T m²)."""

    def of_kind(entry):
        seen, number = entry
        factor, _ = cholesky(masked_covariance(prior.covariance, noise, seen))
        member = table.kind == number
        residual = jnp.where(member[:, None] & seen, table.y - prior.mean, 0.0)
        cross = jnp.where(seen[:, None], prior.covariance, 0.0)
        weights = cho_solve((factor, True), residual.T)
        explained = cross.T @ cho_solve((factor, True), cross)
        logdet = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
        core = jnp.sum(residual * weights.T, axis=1) + logdet + jnp.sum(seen) * jnp.log(2.0 * jnp.pi)
        share = jnp.sum(jnp.where(member, table.weight, 0.0))
        return (cross.T @ weights).T, share * (prior.covariance - explained), jnp.where(member, -0.5 * core, 0.0)

    moved, covariances, likelihoods = jax.lax.map(of_kind, (table.seen, jnp.arange(len(table.seen))))
    return Beliefs(prior.mean + moved.sum(axis=0), covariances.sum(axis=0), likelihoods.sum(axis=0))


def blended(covariance: Float[Array, "m m"], kernel: Float[Array, "m m"], share: Float[Array, ""]) -> Array:
    """Return (1 - share) Σ + share K tr Σ / tr K: full rank, with the total variance of Σ."""
    return (1.0 - share) * covariance + share * kernel * (jnp.trace(covariance) / jnp.trace(kernel))


def estimate(
    start: AnchorPrior, table: AnchorTable, noise: Float[Array, ""], share: Float[Array, ""], steps: int
) -> tuple[AnchorPrior, Float[Array, " steps"]]:
    """Return the prior after `steps` EM iterations from `start`, whose covariance is that of the kernel, and the mean
    negative log likelihood of the tasks before each iteration. With `share` = 0 this loss never rises."""
    total = jnp.sum(table.weight)

    def step(prior, _):
        found = beliefs(prior, table, noise)
        loss = -jnp.sum(table.weight * found.log_likelihood) / total
        mean = table.weight @ found.means / total
        centred = found.means - mean
        covariance = ((table.weight[:, None] * centred).T @ centred + found.covariance) / total
        covariance = blended(0.5 * (covariance + covariance.T), start.covariance, share)
        return AnchorPrior(mean, covariance), loss

    return jax.lax.scan(step, start, length=steps)


def left_out(
    start: AnchorPrior, table: AnchorTable, noise: Float[Array, ""], share: Float[Array, ""], steps: int, parts: int
) -> Float[Array, ""]:
    """Return the mean log likelihood of tasks under the prior that EM estimates from all tasks outside their part. The
    i-th task (from 1) of positive weight is in part i modulo `parts`."""
    part = jnp.cumsum(table.weight > 0) % parts

    def of_part(number):
        out = (part == number) & (table.weight > 0)
        rest = table._replace(weight=jnp.where(out, 0.0, table.weight))
        prior, _ = estimate(start, rest, noise, share, steps)
        found = beliefs(prior, table, noise)
        usable = jnp.any(rest.weight > 0)
        return jnp.sum(jnp.where(out & usable, found.log_likelihood, 0.0)), jnp.sum(out & usable)

    sums, counts = jax.lax.map(of_part, jnp.arange(parts))
    return jnp.sum(sums) / jnp.maximum(jnp.sum(counts), 1)


def choose(
    start: AnchorPrior, table: AnchorTable, noise: Float[Array, ""], shares: Float[Array, " s"], steps: int, parts: int
) -> tuple[AnchorPrior, Float[Array, " steps"], Float[Array, ""]]:
    """Return the prior with the share under which left-out tasks are likeliest (the last of equals), its trace, and
    that share. A share whose likelihood is not finite is chosen only if no other share's is finite."""
    scores = jax.lax.map(lambda share: left_out(start, table, noise, share, steps, parts), shares)
    usable = jnp.where(jnp.isfinite(scores), scores, -jnp.inf)
    best = len(shares) - 1 - jnp.argmax(usable[::-1])
    prior, trace = estimate(start, table, noise, shares[best], steps)
    return prior, trace, shares[best]

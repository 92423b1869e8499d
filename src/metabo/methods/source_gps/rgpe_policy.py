"""RGPE: an ensemble of the source tasks' GPs and the target's, weighted by how well each ranks the observations
(Feurer, Letham and Bakshy 2018; sheet §3).

For samples of every model at the n observed inputs, the ranking loss counts the pairs in the wrong order; the target's
samples leave out the observation that is compared. A model's weight is the share of samples in which its loss is the
smallest; ties are shared. A source whose median loss exceeds the 95th percentile of the target's is dropped. The mean
of the ensemble is Σ w_i μ_i, its variance Σ w_i² σ_i². Before three observations the sources have equal weights.

Our choices: outputs are standardised by the benchmark, not by each model, and a candidate is queried once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.acquisition import Acquisition, make
from metabo.bo.policy import Candidates, Info, argmax
from metabo.bo.settings import PI_THRESHOLD
from metabo.errors import ConfigError
from metabo.gaussians.distances import RELATIVE_JITTER
from metabo.gp.linalg import cholesky
from metabo.gp.model import GP
from metabo.methods.source_gps.rgpe import Sources
from metabo.methods.source_gps.target import TargetGP, begin, told
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows

FEW = 3
"""With fewer observations, the sources have equal weights."""
PERCENTILE = 95.0


class RankedState(NamedTuple):
    """The target, and for the m source posteriors their means and variances at the candidates (m, c) and the rows of
    L⁻¹ K(X, candidates) (m, n, c), which give the covariances at the observations."""

    target: TargetGP
    means: Float[Array, "m c"]
    variances: Float[Array, "m c"]
    rows: Float[Array, "m n c"]
    present: Bool[Array, " m"]


class Ranked(eqx.Module):
    """BO with the weighted ensemble. `past` has the rows of the source tasks."""

    params: Sources
    past: Rows
    acquisition: Acquisition = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    refit_steps: int = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=False)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> RankedState:
        """Evaluate the source posteriors on the candidates."""
        means, variances, rows = source_moments(self.params.sources, self.past, candidates.x)
        target = begin(self.params.target, candidates, self.budget, key)
        return RankedState(target, means, variances, rows, jnp.any(self.past.mask, axis=1))

    def select(self, state: RankedState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition of the ensemble."""
        target = state.target
        posterior = target.posterior()
        own_mean, own_variance = posterior.predict(target.candidates)
        share = self.weights(state, key)
        mean = share[:-1] @ state.means + share[-1] * own_mean
        variance = share[:-1] ** 2 @ state.variances + share[-1] ** 2 * own_variance
        std = jnp.sqrt(variance)
        scores = self.acquisition(mean, std, target.best, target.observed)
        index = argmax(scores, mask, target.priority)
        sound = target.ok & posterior.ok & jnp.isfinite(mean).all()
        return index, Info(mean[index], jnp.sqrt(variance[index] + target.gp.noise), jnp.sqrt(target.gp.noise), sound)

    def observe(self, state: RankedState, index: Int[Array, ""], y: Float[Array, ""]) -> RankedState:
        """Append the observation and fit the target's GP."""
        return state._replace(target=told(state.target, index, y, self.refit_steps))

    def weights(self, state: RankedState, key: Key[Array, ""]) -> Float[Array, " k"]:
        """Return the weights of the m sources and, last, of the target."""
        target = state.target
        means, covs = self._at_observations(state)
        of_sources, of_target = jax.random.split(key)
        drawn = jax.vmap(lambda m, s, k: samples(m, s, target.seen, self.samples, k))(
            means, covs, jax.random.split(of_sources, len(means))
        )
        losses = jax.lax.map(lambda f: ranking_loss(f, target.y, target.seen), drawn)
        own = leave_one_out_loss(target.gp, target.x, target.y, target.seen, self.samples, of_target)
        ranked = rank_weights(losses, own, state.present)
        equal = jnp.append(state.present / jnp.sum(state.present), 0.0)
        return jnp.where(target.observed < FEW, equal, ranked)

    def _at_observations(self, state: RankedState) -> tuple[Float[Array, "m b"], Float[Array, "m b b"]]:
        """Return the joint moments of every source posterior at the observed inputs."""
        index, x = state.target.queried, state.target.x
        rows = state.rows[:, :, index]
        covs = jax.vmap(lambda gp, r: gp.kernel.gram(x) - r.T @ r)(self.params.sources, rows)
        return state.means[:, index], covs


def source_moments(
    gps: GP, past: Rows, x: Float[Array, "c d"]
) -> tuple[Float[Array, "m c"], Float[Array, "m c"], Float[Array, "m n c"]]:
    """Return means and variances (m, c) of the source posteriors at x, and their rows L⁻¹ K(X, x) (m, n, c).

    If the past rows are narrower than x, they get columns of zeros.
    """
    own = jnp.pad(past.x, [(0, 0), (0, 0), (0, max(0, x.shape[1] - past.x.shape[2]))])

    def one(gp, x_own, y, mask):
        posterior = gp.posterior(x_own, y, mask)
        cross = jnp.where(mask[:, None], gp.kernel(x_own, x), 0.0)
        rows = solve_triangular(posterior.factor, cross, lower=True)
        return cross.T @ posterior.weights, jnp.maximum(gp.kernel.variance - jnp.sum(rows**2, 0), 0.0), rows

    return jax.vmap(one)(gps, own, past.y, past.mask)


def samples(
    mean: Float[Array, " b"], cov: Float[Array, "b b"], seen: Bool[Array, " b"], count: int, key: Key[Array, ""]
) -> Float[Array, "s b"]:
    """Draw from N(mean, cov) where `seen`, and standard normal numbers elsewhere."""
    factor = _factor(cov, seen)
    return jnp.where(seen, mean, 0.0) + jax.random.normal(key, (count, len(mean))) @ factor.T


def _factor(cov: Float[Array, "b b"], seen: Bool[Array, " b"]) -> Float[Array, "b b"]:
    both = seen[:, None] & seen[None, :]
    inner = jnp.where(both, cov, 0.0)
    jitter = RELATIVE_JITTER * jnp.trace(inner) / jnp.maximum(jnp.sum(seen), 1) + RELATIVE_JITTER**2
    factor, _ = cholesky(inner + jnp.diag(jnp.where(seen, jitter, 1.0)))
    return factor


def ranking_loss(f: Float[Array, "s b"], y: Float[Array, " b"], seen: Bool[Array, " b"]) -> Float[Array, " s"]:
    """Count, for each sample, the ordered pairs (j, k) of observations with (f_j < f_k) other than (y_j < y_k)."""
    wrong = (f[:, :, None] < f[:, None, :]) ^ (y[:, None] < y[None, :])
    return jnp.sum(wrong & seen[:, None] & seen[None, :], axis=(1, 2)).astype(jnp.float64)


def leave_one_out_loss(
    gp: GP,
    x: Float[Array, "b d"],
    y: Float[Array, " b"],
    seen: Bool[Array, " b"],
    count: int,
    key: Key[Array, ""],
) -> Float[Array, " s"]:
    """Return the ranking loss of samples of the target: f_-j(x_j) against f_-j(x_k), with unchanged hyperparameters.

    With Q = (K + σ²I)⁻¹ and u_j = K Q e_j, leaving out observation j moves the posterior mean by -u_j (Q y)_j / Q_jj
    and adds u_j u_jᵀ / Q_jj to the covariance. So no factorisation is needed for each j.
    """
    from_zero, extra = jax.random.split(key)
    means, root, rise = leave_one_out(gp, x, y, seen)
    base = jax.random.normal(from_zero, (count, len(y))) @ root.T
    other = jax.random.normal(extra, (count, len(y)))

    def of_one(j):
        f = means[j] + base + other[:, j][:, None] * rise[j]
        wrong = (f[:, j][:, None] < f) ^ (y[j] < y)
        return jnp.sum(wrong & seen & seen[j], axis=1)

    return jnp.sum(jax.lax.map(of_one, jnp.arange(len(y))), axis=0).astype(jnp.float64)


def leave_one_out(
    gp: GP, x: Float[Array, "b d"], y: Float[Array, " b"], seen: Bool[Array, " b"]
) -> tuple[Float[Array, "b b"], Float[Array, "b b"], Float[Array, "b b"]]:
    """Return, with each observation j left out, the means (b, b) at all inputs, a root R (b, b) and vectors r_j (b, b),
    such that R Rᵀ + r_j r_jᵀ is the covariance."""
    both = seen[:, None] & seen[None, :]
    gram = jnp.where(both, gp.kernel.gram(x), 0.0)
    posterior = gp.posterior(x, y, seen)
    inverse = jax.scipy.linalg.cho_solve((posterior.factor, True), jnp.eye(len(y)))
    smoothed = gram @ inverse
    mean = gram @ posterior.weights
    pivot = jnp.diagonal(inverse)
    means = mean - (posterior.weights / pivot)[:, None] * smoothed.T
    return means, _factor(gram - smoothed @ gram, seen), smoothed.T / jnp.sqrt(pivot)[:, None]


def rank_weights(
    losses: Float[Array, "m s"], own: Float[Array, " s"], present: Bool[Array, " m"]
) -> Float[Array, " k"]:
    """Return the weights of m sources and the target from their ranking losses in each sample.

    Ties share a sample. Sources whose median loss exceeds the 95th percentile of the target's are dropped first, and a
    sample counts for the best of the remaining models.
    """
    kept = present & (jnp.median(losses, axis=1) <= jnp.percentile(own, PERCENTILE))
    every = jnp.concatenate([jnp.where(kept[:, None], losses, jnp.inf), own[None]])
    least = every == jnp.min(every, axis=0)
    return jnp.mean(least / jnp.sum(least, axis=0), axis=1)


@dataclass(frozen=True)
class RankedSettings:
    """The number of samples of every model, the number of L-BFGS steps of the target's fits, and the margin of PI."""

    samples: int
    refit_steps: int
    pi_threshold: float = PI_THRESHOLD


def policy(
    params: Sources, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> Ranked:
    """Return the policy of RGPE; `settings`: those of `RankedSettings`.

    Raises ConfigError without the rows of the source tasks.
    """
    if past is None:
        raise ConfigError("RGPE evaluates GPs of past tasks; say `uses_past=True` in its Method")
    chosen = read(RankedSettings, settings, "config", "policy")
    return Ranked(params, past, make(acquisition, chosen.pi_threshold), chosen.samples, chosen.refit_steps, budget)

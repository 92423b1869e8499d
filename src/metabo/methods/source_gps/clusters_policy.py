"""cm-BO, Stages 2 and 3: prototypes of the clusters, and a GP prior that is their weighted sum (Algorithm 1, lines 10
to 22; sheet §2.3 and §2.4).

Prototypes are evaluated on the candidates once. At query τ the meta-prior is μ_0 = Σ w_i μ^{C_i}, k_0 = Σ w_i² k^{C_i}.
It is conditioned on the observations (`clusters_posterior`), and the acquisition chooses a candidate. The weights of
the next query come from the distances between the prototypes and that posterior, before the new observation is used.

The paper leaves open, and we chose: acquisitions use the variance of f, without noise; a candidate is queried once;
distances are computed on at most `grid` of the candidates (the paper: 300); weights stay equal until the initial points
are observed. Non-finite weights are replaced by the last ones and the step is marked unsound. So is every step with a
barycenter that did not converge, which `remarks` names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.acquisition import Acquisition, make
from metabo.bo.policy import Candidates, Info, argmax, tie_breakers
from metabo.bo.settings import PI_THRESHOLD
from metabo.errors import ConfigError, unknown
from metabo.gaussians.barycenter import STEPS, Barycenter, barycenters, unconverged
from metabo.gaussians.distances import (
    DISTANCES,
    jeffreys_prepared,
    precision,
    prepared,
    regularised,
    wasserstein_prepared,
)
from metabo.gaussians.kmeans import weights
from metabo.methods.source_gps.clusters import Clustered
from metabo.methods.source_gps.clusters_posterior import Conditioned, MetaPrior, condition
from metabo.methods.source_gps.sources import posteriors_at
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.rows import Rows

PROTOTYPES = ("clusters", "tasks")
CENTRES = ("geometric", "barycenter")
KERNELS = ("plain", "product")


@dataclass(frozen=True)
class ClusterSettings:
    """The settings that distinguish the variants. `prototypes`: one for each cluster, or for each task; `clusters`: how
    many (0: as the indices choose); `weights`: the distance behind the weights; `centre` and `proto_kernel`: those of a
    prototype; `grid`: number of locations for a distance; `initial`: number of observations before the weights move;
    `tolerance`: that of the barycenter; `noise`: how the noise variance of the target is found; `pi_threshold`: margin
    of PI."""

    prototypes: str
    clusters: int
    weights: str
    centre: str
    proto_kernel: str
    grid: int
    initial: int
    tolerance: float
    noise: Literal["fitted", "fixed", "scaled"] = "fitted"
    pi_threshold: float = PI_THRESHOLD


class ClusterState(NamedTuple):
    """The meta-prior, and the target's posterior under it, which the next query uses."""

    meta: MetaPrior
    now: Conditioned


class ClusterBO(eqx.Module):
    """BO with a prior made of prototypes of past tasks. `past` has the rows of these tasks."""

    params: Clustered
    past: Rows
    acquisition: Acquisition = eqx.field(static=True)
    settings: ClusterSettings = eqx.field(static=True)
    budget: int = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=False)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> ClusterState:
        """Evaluate the prototypes on the candidates, with equal weights."""
        ties, draw = jax.random.split(key)
        count = candidates.x.shape[0]
        means, covs, present, ok = self.prototypes(candidates)
        grid = _grid(candidates.mask, min(self.settings.grid, count), draw)
        valid = candidates.mask[grid]
        near = jnp.where(valid, means[:, grid], 0.0)
        near_covs = jax.vmap(lambda cov: blank(regularised(cov[grid][:, grid]), valid))(covs)
        part = prepared(near, near_covs, self.settings.weights).part
        meta = MetaPrior(
            candidates.mask, tie_breakers(ties, count), means, covs, present, grid, near, near_covs, part,
            weights=present / jnp.sum(present),
            queried=jnp.zeros(self.budget, jnp.int64), y=jnp.zeros(self.budget), observed=jnp.asarray(0), ok=ok,
        )  # fmt: skip
        return ClusterState(meta, condition(meta, self.settings.noise))

    def prototypes(self, candidates: Candidates) -> tuple[Array, Array, Bool[Array, " p"], Bool[Array, ""]]:
        """Return means (p, c) and covariances (p, c, c) of the prototypes, which of them exist, and whether all are
        sound (cm-BO §3.2). Padded candidates are independent of the others and the same in all prototypes."""
        means, covs, there, ok = self.posteriors(candidates)
        if self.settings.prototypes == "tasks":
            return means, covs, there, ok
        share = self.share(there)
        present = share.any(axis=1)
        if self.settings.centre == "geometric":
            centred = (share @ covs.reshape(len(covs), -1)).reshape(len(share), *covs.shape[1:])
            return share @ means, centred, present, ok
        found = barycenters(jax.vmap(regularised)(covs), share, self.settings.tolerance, STEPS)
        return share @ means, found.cov, present, ok & (found.residual <= self.settings.tolerance).all()

    def posteriors(self, candidates: Candidates) -> tuple[Array, Array, Bool[Array, " m"], Bool[Array, ""]]:
        """Return posterior means (m, c) and covariances (m, c, c) of the source tasks, which of them exist, and whether
        all are sound."""
        gps = self.params.sources if self.settings.proto_kernel == "plain" else self.params.rough
        means, covs, sound = posteriors_at(gps, self.past, candidates.x)
        there = jnp.any(self.past.mask, axis=1)
        covs = jax.vmap(lambda cov: blank(cov, candidates.mask))(covs)
        return jnp.where(candidates.mask, means, 0.0), covs, there, (sound | ~there).all()

    def share(self, there: Bool[Array, " m"]) -> Float[Array, "p m"]:
        """Return the weight of each task in each cluster: one over the cluster's size for members, and 0 for other
        tasks."""
        assignment, count = self.assignment(there)
        member = (assignment == jnp.arange(count)[:, None]).astype(jnp.float64)
        return member / jnp.maximum(member.sum(axis=1), 1.0)[:, None]

    def remarks(self, candidates: Candidates) -> list[str]:
        """Return a sentence for each cluster whose barycenter on the candidates does not converge. This computes the
        barycenters again; use it for unsound runs, whose steps do not give the reason."""
        if self.settings.prototypes == "tasks" or self.settings.centre == "geometric":
            return []
        return unconverged(_again(self, candidates), self.settings.tolerance)

    def assignment(self, there: Bool[Array, " m"]) -> tuple[Int[Array, " m"], int]:
        """Return the cluster of each task (-1: none), and the number of clusters that there is room for."""
        made, wanted = self.params.assignment, self.settings.clusters
        row = self.params.chosen if wanted == 0 else wanted - 1
        return jnp.where(there, made[row], -1), wanted or len(made)

    def select(self, state: ClusterState, mask: Bool[Array, " c"], key: Key[Array, ""]) -> tuple[Int[Array, ""], Info]:
        """Maximise the acquisition under the target's posterior over the candidates that may be queried."""
        meta, now = state
        std = jnp.sqrt(now.variance)
        seen = jnp.arange(self.budget) < meta.observed
        best = jnp.max(jnp.where(seen, meta.y, -jnp.inf))
        scores = self.acquisition(now.mean, std, best, meta.observed)
        index = argmax(scores, mask, meta.priority)
        return index, Info(
            now.mean[index], jnp.sqrt(now.variance[index] + now.noise), jnp.sqrt(now.noise), meta.ok & now.ok
        )

    def observe(self, state: ClusterState, index: Int[Array, ""], y: Float[Array, ""]) -> ClusterState:
        """Update the weights by the posterior that chose the candidate, then append the observation."""
        meta = state.meta
        new, ok = meta.weights, meta.ok
        if len(meta.weights) > 1:
            new, sound = self.moved(state)
            ok = ok & sound
        at = jax.lax.dynamic_update_index_in_dim(meta.queried, index.astype(jnp.int64), meta.observed, 0)
        ys = jax.lax.dynamic_update_index_in_dim(meta.y, y, meta.observed, 0)
        meta = meta._replace(weights=new, queried=at, y=ys, observed=meta.observed + 1, ok=ok)
        return ClusterState(meta, condition(meta, self.settings.noise))

    def moved(self, state: ClusterState) -> tuple[Float[Array, " p"], Bool[Array, ""]]:
        """Return the weights after the query (lines 18 to 21), and whether their distances were finite."""
        meta, now = state
        valid = meta.valid[meta.grid]
        mean = jnp.where(valid, now.mean[meta.grid], 0.0)
        cov = blank(regularised(now.covariance), valid)
        if self.settings.weights == "jeffreys":
            inverse = precision(cov)
            gaps = jax.vmap(lambda m, s, p: jeffreys_prepared(m, s, p, mean, cov, inverse))(
                meta.near, meta.near_covs, meta.part
            )
        else:
            lower = jnp.linalg.cholesky(cov, symmetrize_input=False)
            gaps = jax.vmap(lambda m, r: wasserstein_prepared(m, r, mean, lower))(meta.near, meta.part)
        finite = (jnp.isfinite(gaps) | ~meta.present).all()
        found = weights(jnp.where(finite & meta.present, gaps, 1.0), meta.present)
        begun = meta.observed >= self.settings.initial
        return jnp.where(finite & begun, found, meta.weights), finite | ~begun


@eqx.filter_jit
def _again(policy: ClusterBO, candidates: Candidates) -> Barycenter:
    _, covs, there, _ = policy.posteriors(candidates)
    return barycenters(jax.vmap(regularised)(covs), policy.share(there), policy.settings.tolerance, STEPS)


def blank(cov: Float[Array, "n n"], valid: Bool[Array, " n"]) -> Float[Array, "n n"]:
    """Return the covariance with unit rows and columns where `valid` is False, which add nothing to a distance."""
    return jnp.where(valid[:, None] & valid[None, :], cov, jnp.eye(len(valid)))


def _grid(mask: Bool[Array, " c"], size: int, key: Key[Array, ""]) -> Int[Array, " g"]:
    """Draw `size` different candidates, and padding only if there are no others."""
    order = jnp.argsort(jnp.where(mask, jax.random.uniform(key, mask.shape), 2.0))
    return jnp.sort(order[:size])


def policy(
    params: Clustered, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> ClusterBO:
    """Return the policy of clustered source tasks; `settings`: those of `ClusterSettings`.

    Raises ConfigError without the rows of the source tasks, for an unknown setting, for more clusters than tasks, and
    for a number of clusters that was not made.
    """
    if past is None:
        raise ConfigError("cm-BO evaluates posteriors of past tasks; say `uses_past=True` in its Method")
    chosen = read(ClusterSettings, settings, "config", "policy")
    valid = {"prototypes": PROTOTYPES, "weights": DISTANCES, "centre": CENTRES, "proto_kernel": KERNELS}
    for name, values in valid.items():
        if getattr(chosen, name) not in values:
            raise unknown(f"cm-BO setting {name}", getattr(chosen, name), values)
    most = min(params.assignment.shape)
    if not 0 <= chosen.clusters <= most:
        made, tasks = params.assignment.shape
        raise ConfigError(
            f"cm-BO: {chosen.clusters} clusters of {tasks} source tasks, clustered into up to {made}; ask for 1 to "
            f"{most}, or 0 for as many as the indices choose (setting 'clusters' of the method)"
        )
    return ClusterBO(params, past, make(acquisition, chosen.pi_threshold), chosen, budget)

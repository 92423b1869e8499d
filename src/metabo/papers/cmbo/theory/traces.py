"""Algorithm 1 on synthetic tasks, many replicates at once: sources, prototypes, adaptive prior, GP-UCB."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np

from metabo.gaussians import distances, kmeans
from metabo.papers.cmbo.theory.tasks import (
    NOISE,
    Function,
    Gaussian,
    add,
    condition,
    draw_functions,
    matern32,
    smoother,
    values,
)

OWNERS = np.array([0, 0, 1, 1, 2, 2])
"""The cluster of each of the K = 6 source tasks; C = 3."""
OFFSETS = (0.25, 0.5, 1.0, 2.0)
"""Norms of the shift of the first cluster that is not the target's: how much clusters differ, f has the norm 1."""
APART = 2.0
"""From this offset on, twice the norm of f, clusters count as different enough. At 1, where the first runs had the
bound lower by half a per cent, its sign depends on the seed."""
METRICS = ("jeffreys", "wasserstein")
INITIAL = 5
"""N, initial points of the target (§4.1)."""
SPREAD = 0.2
"""Norm of what a source has of its own besides its cluster's function."""


class SourceTasks(NamedTuple):
    """Source tasks of r replicates on a grid of v points, and what was observed of them.

    `functions`, `target`: f_i (r, K) and f (r,); `x`, `noise` (r, K, n): inputs and their noise; `gain` (r, K, v, n)
    maps observations to posterior means, `cov` (r, K, v, v) are the posterior covariances; `grid` (v,), `owners` (K,).
    """

    functions: Function
    target: Function
    x: np.ndarray
    noise: np.ndarray
    gain: np.ndarray
    cov: np.ndarray
    grid: np.ndarray
    owners: np.ndarray

    @property
    def truth(self) -> np.ndarray:
        """f on the grid, (r, v)."""
        return values(self.target, self.grid)

    @property
    def mean(self) -> np.ndarray:
        """μ^{t_i} on the grid, (r, K, v)."""
        return np.einsum("rkvn,rkn->rkv", self.gain, values(self.functions, self.x) + self.noise)

    @property
    def ideal(self) -> np.ndarray:
        """μ̃^{t_i} on the grid, (r, K, v): with f observed exactly at the inputs of task i."""
        return np.einsum("rkvn,rkn->rkv", self.gain, self._target_at_x())

    @property
    def gap(self) -> np.ndarray:
        """D_i = max_j |f(x_ij) - f_i(x_ij)|, (r, K)."""
        return np.abs(values(self.functions, self.x) - self._target_at_x()).max(axis=-1)

    def _target_at_x(self) -> np.ndarray:
        whole = Function(*(part[:, None] for part in self.target))
        return values(whole, self.x)


def draw_sources(
    rng: np.random.Generator,
    replicates: int,
    points: int,
    grid: np.ndarray,
    noise: float = NOISE,
    owners: np.ndarray = OWNERS,
    offset: float = 1.0,
    distinct: int | None = None,
) -> SourceTasks:
    """Draw a target f of norm 1 and sources: f plus a shift of its cluster plus SPREAD times a function of their own.

    The shift of cluster c is a drawn function of norm `offset` · c, so that cluster 0 is that of the target. With
    `distinct` inputs, a divisor of `points`, every source observes these again and again.
    """
    clusters = int(owners.max()) + 1
    target = draw_functions(rng, replicates)
    shift = draw_functions(rng, replicates, clusters)
    shift = shift._replace(coefficients=shift.coefficients * offset * np.arange(clusters)[:, None])
    member = Function(*(part[:, owners] for part in shift))
    functions = add(add(Function(*(part[:, None] for part in target)), member, 1.0),
                    draw_functions(rng, replicates, len(owners)), SPREAD)  # fmt: skip
    x = rng.random((replicates, len(owners), distinct or points))
    x = np.tile(x, points // x.shape[-1])
    errors = np.sqrt(noise) * rng.standard_normal(x.shape)
    gain, cov = smoother(x, grid, noise)
    return SourceTasks(functions, target, x, errors, gain, cov, grid, owners)


def prototypes(means: np.ndarray, covs: np.ndarray, owners: np.ndarray, power: int = 1) -> Gaussian:
    """Return the geometric centres (r, C, v) of tasks (r, K, v): averages of means, and Σk/|C|^power of covariances."""
    member = (owners == np.arange(owners.max() + 1)[:, None]).astype(float)
    size = member.sum(axis=1, keepdims=True)
    return Gaussian(
        np.einsum("ck,rkv->rcv", member / size, means), np.einsum("ck,rkvw->rcvw", member / size**power, covs)
    )


def task_weights(weights: np.ndarray, owners: np.ndarray, power: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return ζ_i = w/|C(i)| and ζ'_i = w²/|C(i)|^power, both (..., K), of cluster weights (..., C).

    `power` 1 is the paper's, of the centre with the covariance Σk/|C|; 2 is that of the average process, Σk/|C|².
    """
    own = weights[..., owners]
    size = np.bincount(owners)[owners]
    return own / size, own**2 / size**power


def meta_prior(centres: Gaussian, weights: np.ndarray) -> Gaussian:
    """Return line 15 of Algorithm 1 on the grid: Σ w μ^C (r, v) and Σ w² k^C (r, v, v)."""
    mean = np.einsum("rc,rcv->rv", weights, centres.mean)
    return Gaussian(mean, np.einsum("rc,rcvw->rvw", weights**2, centres.cov))


class QueryStep(NamedTuple):
    """One query: weights (r, C) that its prior uses, prior and posterior on the grid, the points observed before
    (r, N + τ-1), their observations, the coefficient ξ (r,), and the point chosen (r,)."""

    weights: np.ndarray
    prior: Gaussian
    posterior: Gaussian
    index: np.ndarray
    y: np.ndarray
    xi: np.ndarray
    chosen: np.ndarray


Rule = Callable[[Gaussian, Gaussian, np.ndarray], np.ndarray]
"""ξ (r,) from prior, posterior and the points observed (r, N + τ-1)."""


def constant(xi: float) -> Rule:
    """Return the rule of a fixed ξ; the paper's is 3."""
    return lambda prior, _posterior, _index: np.full(len(prior.mean), xi)


@lru_cache
def adapted(name: str) -> Callable[..., jax.Array]:
    """Return the package's weights (r, C) of centres (r, C, v) by their distance `name` from one law each (r, v)."""
    every = jax.vmap(getattr(distances, name), in_axes=(0, 0, None, None))
    return jax.jit(jax.vmap(lambda *laws: kmeans.weights(every(*laws))))


def opposite(weights: np.ndarray) -> np.ndarray:
    """Return weights (..., C) proportional to 1/w: the farthest prototype has the largest."""
    turned = 1.0 / weights
    return turned / turned.sum(axis=-1, keepdims=True)


def run(
    rng: np.random.Generator,
    centres: Gaussian,
    truth: np.ndarray,
    queries: int,
    rule: Rule,
    distance: str = "jeffreys",
    turned: bool = False,
    initial: int = 0,
) -> list[QueryStep]:
    """Run lines 13 to 22 of Algorithm 1 with GP-UCB from prototypes (r, C, v) for a target `truth` (r, v).

    `distance`: "jeffreys", "wasserstein", or "none" for equal weights throughout; `turned`: the opposite weights;
    `initial`: N, distinct points of the target that are observed before the first query, 0 for the theorem, which
    counts from the first observation. σ² is NOISE; a point may be queried again.
    """
    replicates, clusters, points = centres.mean.shape
    rows, weights = np.arange(replicates), np.full((replicates, clusters), 1.0 / clusters)
    index, y = np.zeros((replicates, 0), int), np.zeros((replicates, 0))
    if initial:
        index = rng.permuted(np.tile(np.arange(points), (replicates, 1)), axis=1)[:, :initial]
        y = np.take_along_axis(truth, index, axis=1) + np.sqrt(NOISE) * rng.standard_normal(index.shape)
    steps = []
    for _ in range(queries):
        prior = meta_prior(centres, weights)
        found = condition(prior, index, y, NOISE) if index.shape[1] else prior
        xi = rule(prior, found, index)
        spread = np.sqrt(np.maximum(np.diagonal(found.cov, axis1=1, axis2=2), 0.0))
        chosen = np.argmax(found.mean + xi[:, None] * spread, axis=1)
        steps.append(QueryStep(weights, prior, found, index, y, xi, chosen))
        new = truth[rows, chosen] + np.sqrt(NOISE) * rng.standard_normal(replicates)
        index, y = np.column_stack([index, chosen]), np.column_stack([y, new])
        if distance != "none":
            weights = np.asarray(adapted(distance)(*centres, *found))
            weights = opposite(weights) if turned else weights
    return steps


def equal_grid(points: int) -> np.ndarray:
    """Return `points` evenly spaced points of [0, 1]."""
    return np.linspace(0.0, 1.0, points)


def prior_of(grid: np.ndarray, replicates: int) -> Gaussian:
    """Return the zero-mean Matérn 3/2 prior on the grid, once per replicate."""
    shape = (replicates, len(grid), len(grid))
    return Gaussian(np.zeros(shape[:2]), np.broadcast_to(matern32(grid, grid), shape))

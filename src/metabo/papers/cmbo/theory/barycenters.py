"""The Wasserstein barycenter of centred normal laws (cm-BO §2.1, Remark 1): the package's, and what it minimises."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from metabo.gaussians import barycenter as package
from metabo.papers.cmbo.theory.distances import half
from metabo.papers.cmbo.theory.tasks import symmetric
from metabo.papers.engine.theory.records import Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import identity, inequality

CHECKS = {"barycenter": "Wasserstein barycenter: fixed point, uniqueness, what it minimises"}
SIZE, MEMBERS, SETS = 10, 4, 100
"""Covariances of 10 × 10, four to a cluster."""
STARTS, PERTURBED, COMPARED = 5, 200, 20
AGREE = 1e-6
STEPS = 150
LINE = ((1.0, 2.0, 6.0), (0.3, 0.35, 0.35))
"""Standard deviations and weights on the line: their mean 3.1 minimises ΣξW_2², their median 2 minimises ΣξW_2."""

_many = jax.jit(jax.vmap(package.barycenter))
_many_from = jax.jit(jax.vmap(lambda covs, weights, start: package.barycenter(covs, weights, start=start)))


def draw(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw clusters: covariances (count, MEMBERS, SIZE, SIZE) and weights (count, MEMBERS)."""
    root = rng.standard_normal((count, MEMBERS, SIZE, 2 * SIZE))
    return root @ root.swapaxes(-2, -1) / (2 * SIZE) + 0.01 * np.eye(SIZE), rng.dirichlet(np.ones(MEMBERS), count)


def image(cov: np.ndarray, covs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Σ_j ξ_j (Σ^½ Σ_j Σ^½)^½ of Σ (n, v, v), which the barycenter equals."""
    own = half(cov)[:, None]
    return np.einsum("nj,njvw->nvw", weights, half(symmetric(own @ covs @ own)))


def spread(cov: np.ndarray, covs: np.ndarray, weights: np.ndarray, power: int = 2) -> np.ndarray:
    """Return Σ_j ξ_j W_2^power(N(0, Σ_j), N(0, Σ)) (n,), power 1 or 2."""
    own = half(cov)[:, None]
    overlap = np.trace(half(symmetric(own @ covs @ own)), axis1=-2, axis2=-1)
    squared = np.trace(covs, axis1=-2, axis2=-1) + np.trace(cov, axis1=-2, axis2=-1)[:, None] - 2.0 * overlap
    return np.sum(weights * np.maximum(squared, 0.0) ** (power / 2), axis=1)


def simple_iteration(start: np.ndarray, covs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Iterate Σ ← Σ_j ξ_j (Σ^½ Σ_j Σ^½)^½ STEPS times: slower than the package's, same limit."""
    found = start
    for _ in range(STEPS):
        found = image(found, covs, weights)
    return found


def found(covs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the package's barycenters (n, v, v) of clusters (n, j, v, v) with weights (n, j)."""
    return np.asarray(_many(jnp.asarray(covs), jnp.asarray(weights)).cov)


def barycenter(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the package's barycenter: equation, uniqueness, minimiser, trace; and the definition without the square."""
    rng, count = generator(key), runs(SETS, share)
    covs, weights = draw(rng, count)
    own, centre = found(covs, weights), np.einsum("nj,njvw->nvw", weights, covs)
    return [
        statement("Barycenter",
                  "The barycenter's covariance S is the only positive definite root of Σξ_j(S^½Σ_jS^½)^½ = S", "§2.1",
                  [_equation(own, centre, covs, weights), _unique(rng, own, centre, covs, weights)]),
        statement("Barycenter, minimum", "The barycenter minimises Σξ_jW_2²(P_j, P)", "§2.1",
                  [_minimum(rng, own, centre, covs, weights), _line(2)], "repaired"),
        statement("Barycenter, minimum", "The barycenter minimises Σξ_jW_2(P_j, P), without the square",
                  "§2.1", [_line(1)]),
        statement("Barycenter, trace", "The barycenter's trace is at most that of the geometric centre, tr Σξ_jΣ_j",
                  "§2.1", [_trace(own, centre, covs)], "ours"),
    ]  # fmt: skip


def _equation(own: np.ndarray, centre: np.ndarray, covs: np.ndarray, weights: np.ndarray) -> StatementPart:
    return part("equation", "Σ_jξ_j(S^½Σ_jS^½)^½ = S", "identity", [cell(identity(image(own, covs, weights), own))],
                control("for the weighted mean of the covariances",
                        [cell(identity(image(centre, covs, weights), centre))]))  # fmt: skip


def _unique(
    rng: np.random.Generator, own: np.ndarray, centre: np.ndarray, covs: np.ndarray, weights: np.ndarray
) -> StatementPart:
    """The package's iteration and a simpler one end at the same place from STARTS starts, all positive definite as the
    printed root is (S = 0 solves the equation too): first COMPARED clusters."""
    own, centre, covs, weights = (values[:COMPARED] for values in (own, centre, covs, weights))
    scale = np.abs(own).max(axis=(1, 2))

    def gap(other: np.ndarray) -> np.ndarray:
        return np.abs(other - own).max(axis=(1, 2)) / scale

    cells = []
    for place in range(STARTS):
        start = centre if place == 0 else draw(rng, len(own))[0][:, 0]
        ends = {"package": np.asarray(_many_from(covs, weights, start).cov)}
        ends["simple"] = simple_iteration(start, covs, weights)
        cells += [cell(inequality(gap(end), AGREE), start=place, iteration=name) for name, end in ends.items()]
    other = simple_iteration(centre, covs, np.full_like(weights, 1.0 / MEMBERS))
    return part("unique", f"two iterations from {STARTS} starts end within {AGREE} of it (relative)", "inequality",
                cells, control("with equal weights", [cell(inequality(gap(other), AGREE))]))  # fmt: skip


def _minimum(
    rng: np.random.Generator, own: np.ndarray, centre: np.ndarray, covs: np.ndarray, weights: np.ndarray
) -> StatementPart:
    """Σξ W_2² at S against PERTURBED covariances around it, the geometric centre, and the members."""
    least, at_centre = spread(own, covs, weights), spread(centre, covs, weights)
    members = [spread(covs[:, j], covs, weights) for j in range(MEMBERS)]
    lower, around, around_centre = np.linalg.cholesky(own), [], []
    for _ in range(PERTURBED):
        scale = 10.0 ** rng.uniform(-3.0, 0.0, (len(own), 1, 1))
        turned = np.eye(SIZE) + scale * rng.standard_normal(own.shape) / np.sqrt(SIZE)
        around.append(spread(symmetric(lower @ turned @ turned.swapaxes(1, 2) @ lower.swapaxes(1, 2)), covs, weights))
        around_centre.append(spread(symmetric(own + 0.5 * scale * (centre - own)), covs, weights))
    others = {"perturbed": np.array(around), "geometric centre": at_centre, "members": np.array(members)}
    cells = [cell(inequality(least, values), others=name) for name, values in others.items()]
    wrong = [cell(inequality(at_centre, np.array(around_centre)), others="towards the barycenter")]
    return part("minimum", "Σξ_jW_2²(P_j, barycenter) <= Σξ_jW_2²(P_j, P)", "inequality", cells,
                control("the same for the geometric centre", wrong))  # fmt: skip


def _line(power: int) -> StatementPart:
    """Laws N(0, σ²) on the line: W_2 = |σ - σ'|; the barycenter has the weighted mean of the σ."""
    sigma, weights = (np.array(values) for values in LINE)
    own = float(np.sqrt(found((sigma**2)[None, :, None, None], weights[None])[0, 0, 0]))
    grid = np.linspace(sigma.min(), sigma.max(), 501)

    def loss(at: np.ndarray | float) -> np.ndarray | float:
        return np.abs(np.asarray(at)[..., None] - sigma) ** power @ weights

    name = "Σξ_j(σ_j - σ)²" if power == 2 else "Σξ_j|σ_j - σ|"
    largest = [cell(inequality(loss(sigma.max()), loss(grid), sigma=grid))]
    return part("line", f"the barycenter's σ minimises {name}", "inequality",
                [cell(inequality(loss(own), loss(grid), sigma=grid), barycenter=own)],
                control("the largest σ does", largest))  # fmt: skip


def _trace(own: np.ndarray, centre: np.ndarray, covs: np.ndarray) -> StatementPart:
    traces, members = np.trace(own, axis1=1, axis2=2), np.trace(covs, axis1=2, axis2=3)
    at_centre = np.trace(centre, axis1=1, axis2=2)
    shares = cell(inequality(traces, at_centre))
    shares["numbers"]["ratio"] = float(np.median(traces / at_centre))
    return part("trace", "tr S <= Σξ_j tr Σ_j", "inequality", [shares],
                control("tr S <= min_j tr Σ_j", [cell(inequality(traces, members.min(axis=1)))]))  # fmt: skip

"""Lemma 5 (cm-BO appendix 1): how far the meta-prior's mean is from that of the target's own observations."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key
from scipy import stats

from metabo.papers.cmbo.theory.tasks import NOISE, Function, draw_functions, matern32, posterior, smoother, values
from metabo.papers.cmbo.theory.traces import OWNERS, SourceTasks, draw_sources, equal_grid, task_weights
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import exact_probability, inequality, probability, upper_bound

CHECKS = {"lemma5": "Lemma 5: means with the sources' and with the target's outputs"}
POINTS, OBSERVED, SINGLE, RUNS = 50, 50, 50, 500
LOOSE = 1e5
"""The controls divide α by this: how much larger it is than the difference shows how little the lemma says."""
UNION = ((50, 1, 0.9), (200, 1, 0.1), (200, 1, 0.9))
"""(K, n_i, δ) of the union over tasks."""
REALISTIC = tuple((tasks, OBSERVED, delta) for tasks in (6, 50, 1_000_000) for delta in (0.1, 0.9))
"""The same with the paper's n_i = 50, where 2n ln(8n/δ) is far beyond the mean n of the χ² law."""


def alpha(
    zeta: np.ndarray, gap: np.ndarray, points: int, delta: float, tasks: int = 1, vectors: float = 2.0
) -> np.ndarray:
    """Return α_τ = Σ_i ζ_i (n/σ²)(D_i + 2√(2σ² ln(8n/δ))) of weights and gaps (..., K).

    Repaired: `tasks` K multiplies 8n/δ, and one noise `vectors` in the place of two.
    """
    tail = vectors * np.sqrt(2.0 * NOISE * np.log(8.0 * tasks * points / delta))
    return np.sum(zeta * (gap + tail), axis=-1) * points / NOISE


def noise_limit(points: int, delta: float, tasks: int = 1) -> float:
    """Return 2n ln(8Kn/δ), the bound on ‖y - f‖²/σ²; K = 1 as printed."""
    return 2.0 * points * float(np.log(8.0 * tasks * points / delta))


def all_tasks(limit: float, points: int, tasks: int) -> float:
    """Return the exact probability that ‖y - f‖²/σ² exceeds `limit` for at least one of K tasks: χ² tails."""
    return float(-np.expm1(tasks * stats.chi2(points).logcdf(limit)))


class GapBounds(NamedTuple):
    """max over the grid of |μ_0 - μ̃_0|, α and the repaired α, all (r,)."""

    largest: np.ndarray
    alpha: np.ndarray
    repaired: np.ndarray


def sides(rng: np.random.Generator, sources: SourceTasks, delta: float) -> GapBounds:
    """Return both sides of the lemma for weights of clusters drawn anew in every replicate (Dirichlet)."""
    weights = rng.dirichlet(np.ones(sources.owners.max() + 1), len(sources.x))
    zeta, _ = task_weights(weights, sources.owners)
    largest = np.abs(np.einsum("rk,rkv->rv", zeta, sources.mean - sources.ideal)).max(axis=1)
    points, tasks = sources.x.shape[-1], sources.x.shape[1]
    return GapBounds(
        largest, alpha(zeta, sources.gap, points, delta), alpha(zeta, sources.gap, points, delta, tasks, 1.0)
    )


def lemma5(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the lemma by simulation, its ingredients exactly, and the union over tasks that its proof leaves out."""
    rng, count = generator(key), runs(RUNS, share)
    drawn = {
        0.1: draw_sources(rng, count, OBSERVED, equal_grid(POINTS)),
        0.9: _same_function(rng, count),
    }
    found = {delta: sides(rng, sources, delta) for delta, sources in drawn.items()}
    return [
        statement("Lemma 5", "The prior's mean if the sources had observed f is within α_τ: |μ_0 - μ̃_0| <= α_τ",
                  "App. 1.2", _coverage(found, "alpha")),
        statement("Lemma 5", "|μ_0 - μ̃_0| <= α_τ with ln(8Kn/δ) and one noise vector: f is observed exactly",
                  "App. 1.2", _coverage(found, "repaired"), "repaired"),
        statement("Lemma 5, ingredients", "‖(Σ + σ²I)⁻¹‖ <= 1/σ², ‖k(x, X)‖ <= √n", "App. 1.2", _ingredients(rng),
                  "proof step"),
        statement("Lemma 5, union", "‖y - f_i‖ <= √n √(2σ² ln(8n/δ)), printed for one i, for all K: 1 - δ/4, n = 1",
                  "App. 1.2", [_union(UNION, False)], "reading"),
        statement("Lemma 5, union", "‖y - f_i‖ <= √n √(2σ² ln(8Kn/δ)) for all K tasks: 1 - δ/4, n = 1",
                  "App. 1.2", [_union(UNION, True)], "repaired"),
        statement("Lemma 5, union, n = 50", "‖y - f_i‖ <= √n √(2σ² ln(8n/δ)) for all K tasks: 1 - δ/4, the paper's n",
                  "App. 1.2", [_union(REALISTIC, False)], "reading"),
    ]  # fmt: skip


def _coverage(found: dict[float, GapBounds], which: str) -> list[StatementPart]:
    """Six tasks of 50 observations, and the case without gaps. Reported: the difference as a share of α."""

    def cells(delta: float, factor: float) -> list[Cell]:
        ratio = found[delta].largest / (factor * getattr(found[delta], which))
        decided = probability(int((~(ratio <= 1.0)).sum()), len(ratio), delta / 4.0, 1.0 / ratio)
        decided.numbers.update({"median": np.median(ratio), "largest": ratio.max()})
        return [cell(decided, delta=delta)]

    claim = "P[max over x of |μ_0 - μ̃_0| > α] <= δ/4, "
    names = {0.1: f"{len(OWNERS)} tasks, n = {OBSERVED}", 0.9: f"{SINGLE} tasks with f_i = f, n = 1"}
    return [
        part(name, claim + name, "probability", cells(delta, 1.0),
             control(f"the same with α/{LOOSE:.0e}", cells(delta, 1.0 / LOOSE)))
        for delta, name in names.items()
    ]  # fmt: skip


def _same_function(rng: np.random.Generator, count: int) -> SourceTasks:
    """K = C tasks with one observation each of the target's own function: all D_i = 0."""
    grid, target = equal_grid(POINTS), draw_functions(rng, count)
    x = rng.random((count, SINGLE, 1))
    noise = np.sqrt(NOISE) * rng.standard_normal(x.shape)
    functions = Function(*(np.repeat(p[:, None], SINGLE, axis=1) for p in target))
    return SourceTasks(functions, target, x, noise, *smoother(x, grid, NOISE), grid, np.arange(SINGLE))


def _ingredients(rng: np.random.Generator) -> list[StatementPart]:
    x, grid = rng.random((100, OBSERVED)), equal_grid(POINTS)
    spectral = np.linalg.norm(np.linalg.inv(matern32(x, x) + NOISE * np.eye(OBSERVED)), 2, axis=(1, 2))
    cross = np.linalg.norm(matern32(np.broadcast_to(grid, (100, POINTS)), x), axis=2)
    first, second = (values(draw_functions(rng, 100), x) for _ in range(2))
    moved = np.abs(posterior(x, first, grid, NOISE).mean - posterior(x, second, grid, NOISE).mean)
    bound = np.linalg.norm(first - second, axis=1)[:, None] * np.sqrt(OBSERVED) / NOISE
    return [
        part("inverse", "‖(Σ + σ²I)⁻¹‖ <= 1/σ²", "inequality", [cell(upper_bound(spectral, 1.0 / NOISE))],
             control("<= 1/(2σ²)", [cell(inequality(spectral, 0.5 / NOISE))])),
        part("cross-covariance", "‖k(x, X)‖ <= √n for k <= 1", "inequality", [cell(upper_bound(cross, OBSERVED**0.5))],
             control("<= √n/4", [cell(inequality(cross, OBSERVED**0.5 / 4.0))])),
        part("product", "|μ(x) - μ'(x)| <= √n ‖y - y'‖/σ² for outputs y, y' at the same inputs", "inequality",
             [cell(upper_bound(moved, bound))],
             control(f"the same divided by {LOOSE:.0e}", [cell(inequality(moved, bound / LOOSE))])),
    ]  # fmt: skip


def _union(cases: tuple[tuple[int, int, float], ...], repaired: bool) -> StatementPart:
    """The event that the proof needs, for all K tasks at once; the control leaves the bound without its logarithm."""
    cells, bare = [], []
    for tasks, points, delta in cases:
        where, limit = {"tasks": tasks, "n": points, "delta": delta}, delta / 4.0
        exceeded = all_tasks(noise_limit(points, delta, tasks if repaired else 1), points, tasks)
        cells.append(cell(exact_probability(exceeded, limit), **where))
        bare.append(cell(exact_probability(all_tasks(float(points), points, tasks), limit), **where))
    factor = "8Kn/δ" if repaired else "8n/δ"
    return part("all tasks", f"P[‖y - f_i‖ > √n √(2σ² ln({factor})) for some i <= K] <= δ/4, exact", "probability",
                cells, control("the same with √n σ", bare))  # fmt: skip

"""Three steps of the proof of Theorem 3.2 (cm-BO appendix 1.2): Eq. 22, the covariance vectors, and Eq. 25."""

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.cmbo.theory.gaps import alpha
from metabo.papers.cmbo.theory.tasks import NOISE, smoother
from metabo.papers.cmbo.theory.traces import (
    INITIAL,
    OWNERS,
    QueryStep,
    constant,
    draw_sources,
    equal_grid,
    prototypes,
    run,
    task_weights,
)
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import identity, inequality, upper_bound

CHECKS = {"theorem32_steps": "Theorem 3.2: three steps of the proof"}
POINTS, RUNS, DELTA = 50, 200, 0.1
QUERIES = {1: 20, 4: 20, 50: 55}
"""n_i -> queries, so that in the end the target has more observations than n_i; 50 and 5 + 50 are the paper's."""
NEAR, SHORT = 0.01, 0.05
"""The counterexample: 10 target inputs within NEAR of x*, lengthscale SHORT."""


def covariance_step(cov: np.ndarray, index: np.ndarray, best: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return ‖k_0(X, x*) - k_0(X, x_τ)‖ (r,) of covariances (r, v, v) and indices (r, m), (r,), (r,)."""
    rows = np.arange(len(index))
    moved = cov[rows, best] - cov[rows, chosen]
    return np.linalg.norm(np.take_along_axis(moved, index, axis=1), axis=1)


def counterexample() -> tuple[float, float]:
    """Return both sides of the printed step, ‖k_0(X, x*) - k_0(X, x_τ)‖ and 2Σζ'_i√n_i, for one task with n = 1."""
    near = np.linspace(0.0, NEAR, 10)
    points = np.append(near, 1.0)
    _, cov = smoother(np.array([0.5]), points, NOISE, SHORT)
    left = covariance_step(cov[None], np.arange(10)[None], np.array([0]), np.array([10]))
    return float(left[0]), 2.0


def theorem32_steps(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Eq. 22 exactly, the covariance step by its counterexample and on runs, Eq. 25 at the first query."""
    rng, count = generator(key), runs(RUNS, share)
    traced = {n: _traced(rng, count, n, queries) for n, queries in QUERIES.items()}
    start = _first_query(rng, count)
    return [
        statement("Theorem 3.2, Eq. 22", "The second term of the bound on the regret is (ξ + β)√k_τ(x_τ)", "App. 1.2",
                  [_equation22(rng, False)], "proof step"),
        statement("Theorem 3.2, Eq. 22", "The second term of the bound on the regret is 2β√k_τ(x_τ)",
                  "App. 1.2", [_equation22(rng, True)], "repaired"),
        statement("Theorem 3.2, vectors", "Covariances with the inputs X_τ: ‖k_0(x*) - k_0(x_τ)‖ <= 2Σζ'_i√n_i",
                  "App. 1.2", [_counterexample(1), _on_runs(traced, "n_i")], "proof step"),
        statement("Theorem 3.2, vectors", "Covariances with the inputs X_τ: ‖k_0(x*) - k_0(x_τ)‖ <= 2Σζ'_i√|X_τ|",
                  "App. 1.2", [_counterexample(10), _on_runs(traced, "|X_τ|")], "repaired"),
        statement("Theorem 3.2, Eq. 25", "‖μ_0(X_τ) - y_τ‖ <= ‖η(X_τ)‖ + √(τ-1) α_τ, N = 5, τ = 1", "App. 1.2",
                  [_equation25(start, False)], "proof step"),
        statement("Theorem 3.2, Eq. 25", "‖μ_0(X_τ) - y_τ‖ <= ‖η(X_τ)‖ + √|X_τ| α_τ + ‖y_τ - f(X_τ)‖", "App. 1.2",
                  [_equation25(start, True)], "repaired"),
    ]  # fmt: skip


def _equation22(rng: np.random.Generator, repaired: bool) -> StatementPart:
    """The last equality of Eq. 22: both sides at random μ, k, β and ξ."""
    best, chosen = rng.standard_normal((2, 1000))
    spread, beta = rng.uniform(0.01, 1.0, 1000), rng.uniform(0.1, 10.0, 1000)
    xi = beta * rng.uniform(0.2, 5.0, 1000)
    left = best + beta / xi * (chosen + xi * spread - best) - chosen + beta * spread
    main = (1.0 - beta / xi) * (best - chosen)
    printed, right = main + (xi + beta) * spread, main + 2.0 * beta * spread
    terms = "μ(x*) + (β/ξ)(a(x_τ) - μ(x*)) - μ(x_τ) + β√k(x_τ) = (1 - β/ξ)(μ(x*) - μ(x_τ)) + "
    return part("equality", terms + ("2β√k(x_τ)" if repaired else "(ξ + β)√k(x_τ)"), "identity",
                [cell(identity(left, right if repaired else printed))],
                control("the same with β√k(x_τ)", [cell(identity(left, main + beta * spread))]))  # fmt: skip


def _counterexample(points: int) -> StatementPart:
    left, right = counterexample()
    bound = right * np.sqrt(points)
    where = {"lengthscale": SHORT, "near": NEAR, "observed": 10, "n_i": 1}
    return part("counterexample", f"K = C = 1, n = 1, ten inputs near x*: <= 2√{points}", "inequality",
                [cell(upper_bound(left, bound), **where)],
                control("<= a third of it", [cell(inequality(left, bound / 3.0), **where)]))  # fmt: skip


Sides = dict[str, np.ndarray]


def _traced(rng: np.random.Generator, count: int, observed: int, queries: int) -> Sides:
    """Return both sides at every query of runs with two or more observations, and both bounds."""
    sources = draw_sources(rng, count, observed, equal_grid(POINTS))
    truth = sources.truth
    steps = run(rng, prototypes(sources.mean, sources.cov, OWNERS), truth, queries, constant(3.0))

    def sides(step: QueryStep) -> list[np.ndarray]:
        _, squared = task_weights(step.weights, OWNERS)
        total, size = 2.0 * squared.sum(axis=1), step.index.shape[1]
        left = covariance_step(step.prior.cov, step.index, truth.argmax(axis=1), step.chosen)
        return [left, total * np.sqrt(observed), total * np.sqrt(size), np.full(count, float(size))]

    found = zip(*(sides(step) for step in steps[2:]), strict=True)
    return dict(zip(("left", "n_i", "|X_τ|", "size"), map(np.concatenate, found), strict=True))


def _on_runs(traced: dict[int, Sides], which: str) -> StatementPart:
    """The step on runs of Algorithm 1; reported: the largest left side as a share of the bound."""

    def cells(factor: float) -> list[Cell]:
        return [
            cell(upper_bound(s["left"], s[which] / factor, observed=s["size"]), n_i=n,
                 largest_share=float(np.max(s["left"] / s[which])))
            for n, s in traced.items()
        ]  # fmt: skip

    return part("runs", f"the same with √{which} on runs of Algorithm 1, ξ = 3", "inequality", cells(1.0),
                control("divided by 100", cells(100.0)))  # fmt: skip


def _first_query(rng: np.random.Generator, count: int) -> Sides:
    """Return the parts of Eq. 25 at τ = 1, when INITIAL points are observed and all weights are equal."""
    sources = draw_sources(rng, count, 50, equal_grid(POINTS))
    truth = sources.truth
    weights = np.full((count, OWNERS.max() + 1), 1.0 / (OWNERS.max() + 1))
    zeta, _ = task_weights(weights, OWNERS)
    index = rng.permuted(np.tile(np.arange(POINTS), (count, 1)), axis=1)[:, :INITIAL]
    noise = np.sqrt(NOISE) * rng.standard_normal(index.shape)

    def at(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, index, axis=1)

    mean = np.einsum("rk,rkv->rv", zeta, sources.mean)
    eta = np.einsum("rk,rkv->rv", zeta, sources.ideal) - truth
    return {
        "left": np.linalg.norm(at(mean - truth) - noise, axis=1),
        "eta": np.linalg.norm(at(eta), axis=1),
        "noise": np.linalg.norm(noise, axis=1),
        "alpha": alpha(zeta, sources.gap, 50, DELTA),
    }


def _equation25(s: Sides, repaired: bool) -> StatementPart:
    whole = s["eta"] + np.sqrt(INITIAL) * s["alpha"] + s["noise"] if repaired else s["eta"]
    bare = s["eta"] + s["noise"] if repaired else 0.1 * s["eta"]
    claim = "‖η(X)‖ + √5 α + ‖y - f(X)‖" if repaired else "‖η(X)‖ + √0 α"
    return part("first query", f"‖μ_0(X) - y‖ <= {claim}", "inequality", [cell(upper_bound(s["left"], whole))],
                control("the same without α" if repaired else "<= ‖η(X)‖/10",
                        [cell(inequality(s["left"], bare))]))  # fmt: skip

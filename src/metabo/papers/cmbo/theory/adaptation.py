"""Remark 2 (cm-BO §3, appendix 1.2): adaptive weights, the gaps D_i, α_τ and η on runs of Algorithm 1."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.cmbo.theory.gaps import alpha
from metabo.papers.cmbo.theory.tasks import NOISE, Gaussian, draw_functions, posterior, values
from metabo.papers.cmbo.theory.traces import (
    APART,
    INITIAL,
    METRICS,
    OFFSETS,
    constant,
    draw_sources,
    equal_grid,
    opposite,
    prototypes,
    run,
    task_weights,
)
from metabo.papers.engine.theory.estimated import mean, rate, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import inequality

CHECKS = {"remark2": "Remark 2: weights, gaps and observations of the sources"}
POINTS, OBSERVED, QUERIES, RUNS, DELTA = 40, 50, 50, 200, 0.1
LATE = 10
"""From this query on, α_τ should still fall."""
SIZES = np.array([10, 50, 250, 1000])
"""n_i of the limit of η."""
LIMIT_RUNS, LIMIT_LEAST, CHUNK = 100, 20, 10
REPEATED = 10
"""Distinct inputs of a source that observes the same ones again and again; divides all of SIZES."""
VANISHES = (-np.inf, -0.5)
"""The rate of sup|η| in n_i that counts as going to zero."""
SPARSE, DENSE, SHOWN = 5, 50, (2, 3, 6, 16, 30)
"""Observations of two sources of the target's own function; queries at which their weights are compared. Those of the
second query are the first that are not equal, from the posterior given the initial points."""


class Paths(NamedTuple):
    """Of r runs and T queries: gaps D_i (r, K), ζ_i (T, r, K), and those of the opposite weights, w ∝ 1/w."""

    gap: np.ndarray
    zeta: np.ndarray
    opposite: np.ndarray


def paths(rng: np.random.Generator, count: int, distance: str, offset: float = 1.0) -> Paths:
    """Run Algorithm 1 with ξ = 3 and INITIAL points and return the weights of the tasks; `offset` of the sources."""
    sources = draw_sources(rng, count, OBSERVED, equal_grid(POINTS), offset=offset)
    centres = prototypes(sources.mean, sources.cov, sources.owners)
    steps = run(rng, centres, sources.truth, QUERIES, constant(3.0), distance, initial=INITIAL)
    weights = np.stack([step.weights for step in steps])
    return Paths(sources.gap, *(task_weights(w, sources.owners)[0] for w in (weights, opposite(weights))))


def correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the correlation over the last axis of each row, (r,)."""
    a, b = (v - v.mean(axis=-1, keepdims=True) for v in (first, second))
    return np.sum(a * b, axis=-1) / np.sqrt(np.sum(a**2, axis=-1) * np.sum(b**2, axis=-1))


def slopes(series: np.ndarray) -> np.ndarray:
    """Return the least-squares slope of each column of a series (t, r) in its index, (r,)."""
    at = np.arange(len(series)) - (len(series) - 1) / 2.0
    return at @ series / np.sum(at**2)


def suprema(rng: np.random.Generator, count: int, distinct: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return sup|μ̃ - f| and sup|μ - f| (count, len(SIZES)) of one source, which differs from f by a little.

    Its inputs are uniform, all of them or `distinct` ones that it observes again and again.
    """
    ideal, own = np.empty((count, len(SIZES))), np.empty((count, len(SIZES)))
    for place, n in enumerate(SIZES):
        for begin in range(0, count, CHUNK):
            rows = slice(begin, min(begin + CHUNK, count))
            sources = draw_sources(rng, rows.stop - begin, int(n), equal_grid(POINTS), owners=np.zeros(1, int),
                                   distinct=distinct)  # fmt: skip
            truth = sources.truth
            ideal[rows, place] = np.abs(sources.ideal[:, 0] - truth).max(axis=1)
            own[rows, place] = np.abs(sources.mean[:, 0] - truth).max(axis=1)
    return ideal, own


def sparse_weights(rng: np.random.Generator, count: int, distance: str, initial: int = INITIAL) -> np.ndarray:
    """Return the weights (T, r) of a source with SPARSE observations less those of one with DENSE, both of f itself;
    the target has `initial` points before its first query."""
    grid, f = equal_grid(POINTS), draw_functions(rng, count)
    found = []
    for n in (SPARSE, DENSE):
        x = rng.random((count, n))
        found.append(posterior(x, values(f, x) + np.sqrt(NOISE) * rng.standard_normal(x.shape), grid, NOISE))
    centres = Gaussian(*(np.stack(p, axis=1) for p in zip(*found, strict=True)))
    steps = run(rng, centres, values(f, grid), max(SHOWN), constant(3.0), distance, initial=initial)
    return np.stack([step.weights[:, 0] - step.weights[:, 1] for step in steps])


def remark2(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the signs that the remark claims, the limit of η, the weights of sparse sources, and α in n_i."""
    rng, count = generator(key), runs(RUNS, share)
    found = {(name, offset): paths(rng, count, name, offset) for offset in OFFSETS for name in METRICS}
    differing = {(name, offset): p for (name, offset), p in found.items() if offset >= APART}
    apart = {name: sparse_weights(rng, count, name) for name in METRICS}
    bare = sparse_weights(rng, count, METRICS[0], 0)
    limits = {distinct: suprema(rng, max(LIMIT_LEAST, round(LIMIT_RUNS * share)), distinct)
              for distinct in (None, REPEATED)}  # fmt: skip
    uniform, repeated = (limits[distinct][0] for distinct in (None, REPEATED))
    return [
        statement("Remark 2, weights", "Dissimilar tasks (large D_i) get smaller weights", "§3", [_signs(found)]),
        statement("Remark 2, α", "α_τ becomes progressively tighter, however little clusters differ", "§3",
                  _falls(found), "reading"),
        statement("Remark 2, α", "α_τ becomes progressively tighter if clusters differ by 2‖f‖ or more", "§3",
                  _falls(differing), "repaired"),
        statement("Remark 2, η", "More source data: μ̃ → f, so η → 0, as n_i → ∞, whatever the inputs", "§3",
                  [_limit("uniform", "uniform inputs", uniform, "for the source's own outputs, μ", limits[None][1]),
                   _limit("repeated", f"{REPEATED} inputs, observed again and again", repeated,
                          "for the source's own outputs, μ", limits[REPEATED][1])], "reading"),
        statement("Remark 2, η, inputs", "More source data at inputs that fill the domain: μ̃ → f, so η → 0", "§3",
                  [_limit("uniform", "uniform inputs", uniform, f"with {REPEATED} inputs, observed again and again",
                          repeated)], "reading"),
        statement("Remark 2, sparse", f"{INITIAL} initial points: a source with few observations gets a smaller weight",
                  "§3", [_sparse(apart)]),
        statement("Remark 2, sparse", "No initial points, Jeffreys: a source with few observations first weighs more",
                  "§3", [_first(bare)], "ours"),
        statement("Remark 2, n_i", "α_τ is larger for more source observations n_i", "App. 1.2", [_growth(found)]),
    ]  # fmt: skip


Found = dict[tuple[str, float], Paths]
"""Of every distance and offset."""


def _signs(found: Found) -> StatementPart:
    def cells(which: str) -> list[Cell]:
        return [
            cell(within(mean(correlations(p.gap, getattr(p, which)[-1])), -np.inf, 0.0), distance=name, offset=offset,
                 query=QUERIES)
            for (name, offset), p in found.items()
        ]  # fmt: skip

    return part("correlation", f"mean correlation of D_i and ζ_i at τ = {QUERIES} is negative", "expectation",
                cells("zeta"), control("the same with the opposite weights, w ∝ 1/w", cells("opposite")))  # fmt: skip


def _falls(found: Found) -> list[StatementPart]:
    """The remark says that α_τ "can" become tighter: where the clusters differ less, it need not."""

    def logs(p: Paths, which: str) -> np.ndarray:
        return np.log(alpha(getattr(p, which), p.gap, OBSERVED, DELTA))

    def change(which: str) -> list[Cell]:
        ends = {where: logs(p, which) for where, p in found.items()}
        return [
            cell(within(mean(v[-1] - v[0]), -np.inf, 0.0), distance=name, offset=offset)
            for (name, offset), v in ends.items()
        ]

    def trend(direction: int, offsets: tuple[float, ...]) -> list[Cell]:
        late = {where: slopes(logs(p, "zeta")[LATE - 1 :][::direction]) for where, p in found.items()}
        return [
            cell(within(mean(v), -np.inf, 0.0), distance=name, offset=offset)
            for (name, offset), v in late.items()
            if offset in offsets
        ]

    return [
        part("change", f"E ln(α_{QUERIES}/α_1) < 0", "expectation", change("zeta"),
             control("the same with the opposite weights, w ∝ 1/w", change("opposite"))),
        # In the reverse order where clusters differ most: elsewhere α_τ may stand still, which neither order refutes.
        part("trend", f"mean slope of ln α_τ over τ = {LATE} to {QUERIES} is negative", "expectation",
             trend(1, OFFSETS),
             control(f"in the reverse order of the queries, offset {OFFSETS[-1]:g}", trend(-1, OFFSETS[-1:]))),
    ]  # fmt: skip


def _limit(name: str, inputs: str, suprema_: np.ndarray, wrong: str, other: np.ndarray) -> StatementPart:
    def cells(values_: np.ndarray) -> list[Cell]:
        decided = within(rate(values_, SIZES), *VANISHES)
        decided.numbers["suprema"] = values_.mean(axis=0)
        return [cell(decided, sizes=SIZES.tolist())]

    return part(name, f"E sup|μ̃ - f| ∝ n^s, s <= {VANISHES[1]}, over n = 10 to 1000, {inputs}", "expectation",
                cells(suprema_), control(f"the same {wrong}", cells(other)))  # fmt: skip


def _sparse(apart: dict[str, np.ndarray]) -> StatementPart:
    """The control is the opposite claim where the effect is largest: at a query without an effect it would not be
    refuted either, and where the claim is false it would be true."""

    def cells(sign: float, *shown: int) -> list[Cell]:
        return [
            cell(within(mean(sign * difference[query - 1]), -np.inf, 0.0), distance=name, query=query)
            for name, difference in apart.items()
            for query in shown
        ]

    claim = f"mean weight of a source with {SPARSE} observations < that of one with {DENSE}, N = {INITIAL}"
    return part("weights", claim, "expectation", cells(1.0, *SHOWN),
                control(f"the opposite, at query {SHOWN[-1]}", cells(-1.0, SHOWN[-1])))  # fmt: skip


def _first(bare: np.ndarray) -> StatementPart:
    """Without initial points the weights of the second query compare the sources with the prior made of both."""

    def cells(sign: float) -> list[Cell]:
        return [cell(within(mean(sign * bare[SHOWN[0] - 1]), 0.0, np.inf), distance=METRICS[0], query=SHOWN[0])]

    claim = f"mean weight of a source with {SPARSE} observations > that of one with {DENSE} at the second query, N = 0"
    return part("weights", claim, "expectation", cells(1.0), control("the opposite", cells(-1.0)))


def _growth(found: Found) -> StatementPart:
    """By construction: α_τ is a sum of positive multiples of n_i and n_i √ln n_i."""
    p = found[METRICS[0], APART]
    levels = np.stack([alpha(p.zeta[-1], p.gap, int(n), DELTA) for n in SIZES], axis=1)
    where = {"n": SIZES[1:]}
    decided = inequality(levels[:, :-1], levels[:, 1:], **where)
    decided.numbers["medians"] = np.median(levels, axis=0)
    return part("growth", "α with n = 50, 250, 1000 > α with n = 10, 50, 250, the same D_i and weights", "inequality",
                [cell(decided, sizes=SIZES.tolist())],
                control("the opposite", [cell(inequality(levels[:, 1:], levels[:, :-1], **where))]))  # fmt: skip

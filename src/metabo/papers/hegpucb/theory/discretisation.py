"""Theorem 3.2 (HE-GP-UCB §3, appendix B): confidence intervals on an infinite domain, by ever finer discretisations.

The printed τ_t = d t² b r √(log(2da/δ_A)) carries b where Assumption B.1 gives √b: enough points for b >= 1, too few
below. Where d b r √(...) < 1, its β_t is too small as well, or imaginary (sheet §7.4). Domain [0, 1], d = r = 1, RBF
kernel; D_t: the midpoints of ⌈τ_t⌉ equal cells, or their right ends, where the points of the first cell are as far from
D_t as the theorem allows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int, Key

from metabo.methods.elimination import confidence
from metabo.methods.elimination.problem import EliminationSettings
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import identity, inequality, least_ratio, probability
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.intervals import DELTA, rice
from metabo.papers.hegpucb.theory.kernels import rbf
from metabo.papers.hegpucb.theory.posteriors import BATCH, simulate

CHECKS = {"theorem32": "Theorem 3.2: intervals on an infinite domain"}
RUNS = {"paths": 20_000, "intervals": 500}
ITERATIONS = 15
FINE, COARSE = 1001, 101
"""Points of [0, 1] that stand for all, and those that may be queried."""
LENGTHSCALES = {"b > 1": 0.3, "b < 1": 10.0}
GRIDS = {"midpoints": 0.5, "ends": 1.0}
"""Places of the points of D_t in their cells."""
LEVELS = (0.5, 0.1, 0.01)
"""Values of the bound of Assumption B.1 at which it is checked."""


class Sample(NamedTuple):
    """Functions on FINE points (n, FINE), and queries on them: index (n, t), outputs (n, t)."""

    f: Float[np.ndarray, "n c"]
    index: Int[np.ndarray, "n t"]
    y: Float[np.ndarray, "n t"]
    lengthscale: float


def factor(lengthscale: float) -> tuple[Float[np.ndarray, "c k"], Float[np.ndarray, "c k"]]:
    """Return A and A' with f = A z, f' = A' z for z ~ N(0, I): the kernel's eigenvectors on 41 points, extended."""
    x, g = instances.line(FINE), instances.line(41)
    values, vectors = np.linalg.eigh(rbf(g, g, lengthscale))
    kept = values > 1e-11 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    kernel = rbf(x, g, lengthscale)
    return kernel @ basis, (-(x[:, None] - g) / lengthscale**2 * kernel) @ basis


def cells_of(
    t: Float[np.ndarray, " t"], b: Float[np.ndarray, " t"] | float, a: float, delta: float, printed: bool
) -> Float[np.ndarray, " t"]:
    """Return τ_t of d = r = 1, with b as printed or with √b, and then at least 1."""
    tau = t**2 * (b if printed else np.sqrt(b)) * np.sqrt(np.log(2.0 * a / delta))
    return tau if printed else np.maximum(np.ceil(tau), 1.0)


def beta32(t: np.ndarray, tau: np.ndarray, delta: float) -> Float[np.ndarray, " t"]:
    """Return β_t = √(2 log(π²t²/(3δ_A)) + 2 log τ_t) (d = 1), 0 where the root is imaginary."""
    return np.sqrt(np.maximum(2.0 * np.log(np.pi**2 * t**2 / (3.0 * delta)) + 2.0 * np.log(tau), 0.0))


def nearest(
    x: Float[np.ndarray, " n"], tau: Float[np.ndarray, " t"], grid: str = "midpoints"
) -> Float[np.ndarray, "t n"]:
    """Return [x]_t, the closest point of D_t: |x - [x]_t| is at most 1/(2τ_t), with right ends 1/τ_t in the first cell.

    D_t: GRIDS[grid] of each of ⌈τ_t⌉ equal cells of [0, 1].
    """
    number = np.ceil(tau)[:, None]
    return (np.clip(np.round(x * number - GRIDS[grid]), 0.0, number - 1.0) + GRIDS[grid]) / number


def theorem32(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Assumption B.1, both halves of the theorem, its discretisation, and β_t of Theorem 4.2(B)."""
    keys, count = jax.random.split(key, 3), runs(RUNS["intervals"], share)
    samples = {n: _sample(jax.random.fold_in(keys[1], i), v, count) for i, (n, v) in enumerate(LENGTHSCALES.items())}
    found = {kind: _halves(samples, kind == "printed") for kind in ("printed", "repaired")}
    return [
        statement("Assumption B.1", "It holds for an RBF kernel, with our a and b", "App. B",
                  [_tails(keys[0], runs(RUNS["paths"], share))], "ours"),
        statement("Theorem 3.2", "Intervals on an infinite domain", "§3", found["printed"]),
        statement("Theorem 3.2", "√b in τ_t, at least one point", "§3", found["repaired"], "repaired"),
        statement("Theorem 3.2, discretisation", "|f(x) - f([x]_t)| <= 1/t²", "§3", [_step(samples, True)],
                  "proof step"),
        statement("Theorem 3.2, discretisation", "√b in τ_t", "§3", [_step(samples, False)], "repaired"),
        statement("Theorem 4.2(B), β", "It is Theorem 3.2's β at δ/2, or larger", "§4",
                  [_substituted(), _larger(True)]),
        statement("Theorem 4.2(B), β", "It is larger where d b r √(log(4da/δ)) >= 1", "§4", [_larger(False)],
                  "repaired"),
    ]  # fmt: skip


def _sample(key: Key[Array, ""], lengthscale: float, count: int) -> Sample:
    keys, step = jax.random.split(key), (FINE - 1) // (COARSE - 1)
    root, _ = factor(lengthscale)
    f = generator(keys[0]).standard_normal((count, root.shape[1])) @ root.T
    true = instances.lengthscales((lengthscale,), 0, COARSE)
    settings = EliminationSettings(ITERATIONS, delta=2.0 * DELTA, R=instances.R, beta="bayes_finite")
    trace = simulate(true.problem(), "gp_ucb", settings, keys[1], f[:, ::step])
    return Sample(f, trace.point * step, trace.y, lengthscale)


def _tails(key: Key[Array, ""], count: int) -> StatementPart:
    rng, cells, less = generator(key), [], []
    for lengthscale in LENGTHSCALES.values():
        a, b = rice(lengthscale)
        _, slope = factor(lengthscale)
        steepest = np.concatenate([
            np.abs(rng.standard_normal((min(1000, count), slope.shape[1])) @ slope.T).max(axis=1)
            for _ in range(-(-count // 1000))
        ])[:count]  # fmt: skip
        for level in LEVELS:
            for scale, into in ((b, cells), (b / 8.0, less)):
                limit = np.sqrt(scale * np.log(a / level))
                found = probability(int((~(steepest <= limit)).sum()), count, level, least_ratio(limit, steepest))
                into.append(cell(found, lengthscale=lengthscale, a=a, b=scale))
    return part("tails", "P(sup |f'| > L) <= a exp(-L²/b), a = 1 + √3/(πℓ), b = 2/ℓ²", "probability", cells,
                control("an eighth of b", less))  # fmt: skip


def _halves(samples: dict[str, Sample], printed: bool) -> list[StatementPart]:
    every, queried, less, less_queried = [], [], [], []
    t = np.arange(1.0, ITERATIONS + 1.0)
    for name, sample in samples.items():
        a, b = rice(sample.lengthscale)
        tau = cells_of(t, b, a, DELTA, printed)
        beta, count = beta32(t, tau, DELTA), len(sample.f)
        where = {"case": name, "lengthscale": sample.lengthscale}
        for grid in GRIDS:
            error, deviation, own, own_deviation = _moments(sample, nearest(instances.line(FINE), tau, grid))
            for scale, into in ((1.0, every), (0.3, less)):
                limit = scale * (beta[:, None] * deviation + t[:, None] ** -2.0)
                bad = (~(error <= limit)).any(axis=(1, 2))
                found = probability(int(bad.sum()), count, DELTA, least_ratio(limit, error))
                into.append(cell(found, **where, grid=grid))
        for scale, into in ((1.0, queried), (0.3, less_queried)):
            limit = scale * beta * own_deviation
            bad = (~(own <= limit)).any(axis=1)
            into.append(cell(probability(int(bad.sum()), count, DELTA, least_ratio(limit, own)), **where))
    return [
        part("everywhere", f"P[|f(x) - μ([x]_t)| > β_t σ([x]_t) + 1/t² for some x, t <= {ITERATIONS}] <= δ_A",
             "probability", every, control("0.3 times the right side", less)),
        part("queried", "P[|f(x_t) - μ(x_t)| > β_t σ(x_t) for some t] <= δ_A", "probability", queried,
             control("0.3 times β_t", less_queried)),
    ]  # fmt: skip


def _moments(sample: Sample, near: Float[np.ndarray, "t c"]) -> tuple[np.ndarray, ...]:
    """Return |f(x) - μ_{t-1}([x]_t)| and σ_{t-1}([x]_t), (n, t, c), and both at x_t, (n, t)."""
    x = instances.line(FINE)
    at_queries = jnp.asarray(x[sample.index])
    found = _all_runs(jnp.asarray(near), jnp.asarray(sample.f), at_queries, jnp.asarray(sample.y), sample.lengthscale)
    mean, variance, own_mean, own_variance = (np.asarray(v) for v in found)
    own = np.take_along_axis(sample.f, sample.index, axis=1)
    deviations = np.sqrt(np.maximum(variance, 0.0)), np.sqrt(np.maximum(own_variance, 0.0))
    return np.abs(sample.f[:, None] - mean), deviations[0], np.abs(own - own_mean), deviations[1]


@jax.jit
def _all_runs(near, f, queries, y, lengthscale):
    past = jnp.tril(jnp.ones((ITERATIONS, ITERATIONS)), -1)

    def kernel(u, v):
        return jnp.exp(-0.5 * ((u[..., None] - v) / lengthscale) ** 2)

    def one(entry):
        at, out = entry
        root = jnp.linalg.cholesky(kernel(at, at) + instances.R**2 * jnp.eye(ITERATIONS))
        white = solve_triangular(root, out, lower=True)
        inverse = solve_triangular(root, jnp.eye(ITERATIONS), lower=True)

        def given(points, used):  # (c,) points and the observations that count
            rows = (inverse @ kernel(points, at).T) * used[:, None]
            return white @ rows, 1.0 - jnp.sum(rows**2, axis=0)

        mean, variance = jax.vmap(given)(near, past)
        own_mean, own_variance = jax.vmap(given)(at[:, None], past)
        return mean, variance, own_mean[:, 0], own_variance[:, 0]

    return jax.lax.map(one, (queries, y), batch_size=BATCH)


def _step(samples: dict[str, Sample], printed: bool) -> StatementPart:
    """The slope exceeds √(b log(2da/δ_A)) with at most δ_A/2."""
    t, x = np.arange(1.0, ITERATIONS + 1.0), instances.line(FINE)
    cells, less = [], []
    for name, sample in samples.items():
        a, b = rice(sample.lengthscale)
        for grid in GRIDS:
            near = nearest(x, cells_of(t, b, a, DELTA, printed), grid)
            gaps = np.stack([np.abs(sample.f - _interpolated(sample.f, points)).max(axis=1) for points in near], axis=1)
            for scale, into in ((1.0, cells), (0.03, less)):
                bad = int((~(gaps <= scale * t**-2.0)).any(axis=1).sum())
                found = probability(bad, len(gaps), DELTA / 2.0, least_ratio(scale * t**-2.0, gaps))
                into.append(cell(found, case=name, lengthscale=sample.lengthscale, grid=grid))
    return part("step", f"P[|f(x) - f([x]_t)| > 1/t² for some x, t <= {ITERATIONS}] <= δ_A/2", "probability", cells,
                control("0.03/t² in place of 1/t²", less))  # fmt: skip


def _interpolated(f: Float[np.ndarray, "n c"], points: Float[np.ndarray, " p"]) -> Float[np.ndarray, "n p"]:
    """Return f between its points on [0, 1] (its curvature makes that exact to 1e-5)."""
    place = points * (FINE - 1)
    left = np.minimum(place.astype(int), FINE - 2)
    return f[:, left] + (place - left) * (f[:, left + 1] - f[:, left])


def _betas() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return b, t, β of Theorem 4.2(B) and of Theorem 3.2 at δ/2, d = r = 1, where neither root is imaginary."""
    a = 2.0
    t, b = (v.ravel() for v in np.meshgrid(np.array([1.0, 2.0, 10.0, 100.0]), np.geomspace(0.02, 50.0, 9)))
    here = np.asarray(confidence.beta_bayes_infinite(t, 1, a, b, 1.0, DELTA))
    there = beta32(t, cells_of(t, b, a, DELTA / 2.0, True), DELTA / 2.0)
    real = np.isfinite(here) & (there > 0)
    return b[real], t[real], here[real], there[real]


def _substituted() -> StatementPart:
    b, _, here, there = _betas()
    return part("substitution", "β of Theorem 4.2(B) is that of Theorem 3.2 with δ_A = δ/2", "identity",
                [cell(identity(here, there), least_b=float(b.min()))],
                control("it is half of that", [cell(identity(here, 0.5 * there), least_b=float(b.min()))]))  # fmt: skip


def _larger(everywhere: bool) -> StatementPart:
    b, t, here, there = _betas()
    kept = np.full(len(b), True) if everywhere else b * np.sqrt(np.log(4.0 * 2.0 / DELTA)) >= 1.0

    def cells(factor: float) -> list[Cell]:
        return [cell(inequality(factor * there[kept], here[kept], b=b[kept], t=t[kept]), a=2.0)]

    where = "for b from 0.02 to 50" if everywhere else "where b √(log(4a/δ)) >= 1"
    return part("larger", f"β of Theorem 4.2(B) >= β of Theorem 3.2 at δ/2 {where}", "inequality", cells(1.0),
                control("it is at least twice that", cells(2.0)))  # fmt: skip

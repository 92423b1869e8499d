"""Distances between normal laws (cm-BO §2.1, Eqs. 3 to 6): the package's, against samples and optimal transport."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Key
from scipy import optimize, stats

from metabo.gaussians import distances as between
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import expectation, identity, inequality

CHECKS = {"distances": "Eqs. 3 to 6: Kullback-Leibler, Jeffreys, Wasserstein"}
DIM, SAMPLES, TRIPLES, PAIRS = 3, 1_000_000, 10_000, 200
NODES = 12
"""Atoms of the transport problem on the line (Gauss-Hermite: the quadratic cost is exact)."""
EXCESS = 1e-3
"""A triangle inequality that fails by more than this fails beyond rounding."""

_kl, _jeffreys, _wasserstein = (jax.jit(jax.vmap(f)) for f in (between.kl, between.jeffreys, between.wasserstein))
Laws = tuple[np.ndarray, np.ndarray]
"""Means (n, d) and covariances (n, d, d)."""
Distance = Callable[..., Array]


def draw(rng: np.random.Generator, count: int, dim: int = DIM) -> Laws:
    """Draw normal laws: Wishart covariances of 2d degrees of freedom over 2d, plus a hundredth of the identity."""
    root = rng.standard_normal((count, dim, 2 * dim))
    return rng.standard_normal((count, dim)), root @ root.swapaxes(-2, -1) / (2 * dim) + 0.01 * np.eye(dim)


def log_ratio(rng: np.random.Generator, p: Laws, q: Laws, count: int) -> np.ndarray:
    """Return ln p(x)/q(x) at draws x of p, (count,), by SciPy's densities."""
    x = stats.multivariate_normal(p[0][0], p[1][0]).rvs(count, random_state=rng)
    return stats.multivariate_normal(p[0][0], p[1][0]).logpdf(x) - stats.multivariate_normal(q[0][0], q[1][0]).logpdf(x)


def transport(m0: float, s0: float, m1: float, s1: float) -> float:
    """Return the least cost E(x - y)² of a coupling of two laws on the line, by linear programming.

    Their atoms are Gauss-Hermite nodes with the same weights, for which the cost of the best coupling of the normal
    laws N(m, s²), which is linear, is exact.
    """
    z, w = np.polynomial.hermite_e.hermegauss(NODES)
    cost = (m0 + s0 * z[:, None] - m1 - s1 * z[None, :]) ** 2
    rows, columns = np.kron(np.eye(NODES), np.ones(NODES)), np.kron(np.ones(NODES), np.eye(NODES))
    w = w / w.sum()
    found = optimize.linprog(cost.ravel(), A_eq=np.concatenate([rows, columns]), b_eq=np.concatenate([w, w]))
    return float(found.fun)


def half(cov: np.ndarray) -> np.ndarray:
    """Return symmetric square roots (..., d, d)."""
    w, q = np.linalg.eigh(cov)
    return (q * np.sqrt(np.maximum(w, 0.0))[..., None, :]) @ q.swapaxes(-2, -1)


def coupling_cost(p: Laws, q: Laws, turn: np.ndarray) -> np.ndarray:
    """Return E‖x - y‖² (n,) of the couplings with cross-covariance Σ0^½ O Σ1^½, O (n, d, d) of norm at most 1."""
    cross = half(p[1]) @ turn @ half(q[1])
    traces = np.trace(p[1] + q[1] - 2.0 * cross, axis1=-2, axis2=-1)
    return np.sum((p[0] - q[0]) ** 2, axis=-1) + traces


def best_turn(p: Laws, q: Laws) -> np.ndarray:
    """Return the O of the best coupling, which maximises tr(Σ0^½ O Σ1^½): the orthogonal polar factor of Σ0^½ Σ1^½."""
    u, _, v = np.linalg.svd(half(p[1]) @ half(q[1]))
    return u @ v


def distances(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Eqs. 3 and 4 by samples, Eq. 6 by transport, couplings and commuting covariances, and the triangles."""
    rng, count = generator(key), runs(SAMPLES, share)
    p, q, r = (draw(rng, runs(TRIPLES, share)) for _ in range(3))
    return [
        statement("Eq. 3", "Kullback-Leibler divergence of two normal laws",
                  "§2.1", [_samples(rng, p, q, count, False)]),
        statement("Eq. 4", "Jeffreys divergence of two normal laws: KL(P‖Q) + KL(Q‖P)", "§2.1",
                  [_samples(rng, p, q, count, True), *_symmetry(p, q)]),
        statement("Eq. 6", "Wasserstein distance W_2 of two normal laws", "§2.1",
                  [_line(rng), _commuting(rng), *_couplings(rng, p, q)]),
        statement("Eq. 5, metric", "W_2 satisfies the triangle inequality", "§2.1", [_triangle(p, q, r)]),
        statement("Eq. 4, metric", "The Jeffreys divergence does not satisfy the triangle inequality",
                  "§2.1", [_no_triangle(p, q, r)],
                  "ours"),
    ]  # fmt: skip


def _samples(rng: np.random.Generator, p: Laws, q: Laws, count: int, both: bool) -> StatementPart:
    """The divergence of one pair against the average log ratio."""
    forward = log_ratio(rng, p, q, count)
    values = forward + log_ratio(rng, q, p, count) if both else forward
    kl, other, jeffreys = (float(f(*(np.asarray(a)[:1] for a in args))[0])
                           for f, args in ((_kl, (*p, *q)), (_kl, (*q, *p)), (_jeffreys, (*p, *q))))  # fmt: skip
    right, wrong, claim = (jeffreys, kl, "2 KL(P‖Q)") if both else (kl, other, "KL(Q‖P)")
    wrong = 2.0 * wrong if both else wrong
    name = "E_P ln(p/q) + E_Q ln(q/p)" if both else "E_P ln(p/q)"
    return part("samples", f"{name} over draws, d = {DIM}", "expectation", [cell(expectation(values, right), dim=DIM)],
                control(f"the same with {claim}", [cell(expectation(values, wrong), dim=DIM)]))  # fmt: skip


def _symmetry(p: Laws, q: Laws) -> list[StatementPart]:
    j, back = np.asarray(_jeffreys(*p, *q)), np.asarray(_jeffreys(*q, *p))
    kl, kl_back = np.asarray(_kl(*p, *q)), np.asarray(_kl(*q, *p))
    one_sided = [cell(identity(kl, kl_back))]
    return [
        part("symmetric", "J(P, Q) = J(Q, P)", "identity", [cell(identity(j, back))],
             control("KL(P‖Q) = KL(Q‖P)", one_sided)),
        part("sum", "J(P, Q) = KL(P‖Q) + KL(Q‖P)", "identity", [cell(identity(j, kl + kl_back))],
             control("half of the sum", [cell(identity(j, 0.5 * (kl + kl_back)))])),
    ]  # fmt: skip


def _line(rng: np.random.Generator) -> StatementPart:
    """On the line: the package's W_2² against a linear programme."""
    m, s = rng.standard_normal((2, 20)), rng.uniform(0.1, 3.0, (2, 20))
    laws = [(m[i][:, None], (s[i] ** 2)[:, None, None]) for i in (0, 1)]
    squared = np.asarray(_wasserstein(*laws[0], *laws[1])) ** 2
    exact = np.array([transport(m[0, i], s[0, i], m[1, i], s[1, i]) for i in range(20)])
    apart = (m[0] - m[1]) ** 2 + s[0] ** 2 + s[1] ** 2
    return part("transport", "W_2² = least cost of a coupling, d = 1, by linear programming", "identity",
                [cell(identity(squared, exact), dim=1)],
                control("that of the independent coupling", [cell(identity(squared, apart), dim=1)]))  # fmt: skip


def _commuting(rng: np.random.Generator) -> StatementPart:
    """Covariances with the same eigenvectors: W_2² = ‖Δm‖² + Σ(√λ - √λ')²."""
    q, _ = np.linalg.qr(rng.standard_normal((PAIRS, DIM, DIM)))
    values = rng.uniform(0.01, 4.0, (2, PAIRS, DIM))
    covs = [(q * v[:, None, :]) @ q.swapaxes(-2, -1) for v in values]
    means = rng.standard_normal((2, PAIRS, DIM))
    squared = np.asarray(_wasserstein(means[0], covs[0], means[1], covs[1])) ** 2
    shift = np.sum((means[0] - means[1]) ** 2, axis=1)
    roots = np.sum((np.sqrt(values[0]) - np.sqrt(values[1])) ** 2, axis=1)
    plain = np.sum((values[0] - values[1]) ** 2, axis=1)
    return part("commuting", "W_2² = ‖m_0 - m_1‖² + Σ(√λ - √λ')²", "identity",
                [cell(identity(squared, shift + roots), dim=DIM)],
                control("with λ in the place of √λ", [cell(identity(squared, shift + plain), dim=DIM)]))  # fmt: skip


def _couplings(rng: np.random.Generator, p: Laws, q: Laws) -> list[StatementPart]:
    """No coupling of two normal laws costs less, and the best one costs as much."""
    squared = np.asarray(_wasserstein(*p, *q)) ** 2
    turns, _ = np.linalg.qr(rng.standard_normal((len(squared), DIM, DIM)))
    best, random = coupling_cost(p, q, best_turn(p, q)), coupling_cost(p, q, turns * rng.random((len(turns), 1, 1)))
    plain = coupling_cost(p, q, np.broadcast_to(np.eye(DIM), turns.shape))
    return [
        part("lower bound", "W_2² <= E‖x - y‖² of random couplings", "inequality",
             [cell(inequality(squared, random)), cell(inequality(squared, plain))],
             control("‖Σ_0^½ - Σ_1^½‖² + ‖m_0 - m_1‖² <= the best one's", [cell(inequality(plain, best))])),
        part("attained", "W_2² = E‖x - y‖² of the best coupling", "identity", [cell(identity(squared, best))],
             control("= ‖Σ_0^½ - Σ_1^½‖² + ‖m_0 - m_1‖²", [cell(identity(squared, plain))])),
    ]  # fmt: skip


def _sides(f: Distance, p: Laws, q: Laws, r: Laws) -> tuple[np.ndarray, np.ndarray]:
    """Return d(P, R) and d(P, Q) + d(Q, R), (n,)."""
    return np.asarray(f(*p, *r)), np.asarray(f(*p, *q)) + np.asarray(f(*q, *r))


def _triangle(p: Laws, q: Laws, r: Laws) -> StatementPart:
    direct, around = _sides(_wasserstein, p, q, r)
    legs = np.asarray(_wasserstein(*p, *q)) ** 2 + np.asarray(_wasserstein(*q, *r)) ** 2
    return part("triangle", "W_2(P, R) <= W_2(P, Q) + W_2(Q, R)", "inequality", [cell(inequality(direct, around))],
                control("the same for W_2²", [cell(inequality(direct**2, legs))]))  # fmt: skip


def _no_triangle(p: Laws, q: Laws, r: Laws) -> StatementPart:
    """The largest J(P, R) - J(P, Q) - J(Q, R) over the triples."""

    def worst(f: Distance) -> list[Cell]:
        direct, around = _sides(f, p, q, r)
        return [cell(inequality(EXCESS, float(np.max(direct - around))), triples=len(direct))]

    return part("triangle", "J(P, R) > J(P, Q) + J(Q, R) for some triple", "inequality", worst(_jeffreys),
                control("the same for W_2", worst(_wasserstein)))  # fmt: skip

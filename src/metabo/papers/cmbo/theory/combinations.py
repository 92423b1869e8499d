"""Theorem 3.1 (cm-BO §3, appendix 1.1) and the geometric centre of a cluster: laws of sums of independent processes."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from scipy import stats

from metabo.gaussians.kmeans import kmeans
from metabo.papers.cmbo.theory.degeneracy import FLOOR, above, least
from metabo.papers.cmbo.theory.tasks import NOISE, Gaussian, draw_functions, posterior, values
from metabo.papers.cmbo.theory.traces import equal_grid
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import (
    ENOUGH,
    INCONCLUSIVE,
    REFUTED,
    SUPPORTED,
    Numbers,
    Ruling,
    distribution,
    identity,
)

CHECKS = {
    "theorem31": "Theorem 3.1: a linear combination of independent GPs",
    "geometric_centre": "Geometric centre: what its covariance is the covariance of",
}
COEFFICIENTS = np.array([0.2, 0.3, 0.5])
SHORTEST, LONGEST = 0.15, 0.4
"""Lengthscales of the three source posteriors, evenly spaced."""
POINTS, OBSERVED, SAMPLES, PROJECTIONS, TRIPLES = 20, 5, 200_000, 20, 200
MEMBERS = 4
"""|C| of the geometric centre."""
ENTRY_LIMIT = 5.0
"""Standard errors that the worst of all entries may be off by (sheet C1): 230 entries, each beyond it at 6e-7."""
SCALE = 1.3
"""The control of the law of a projection: the same law with a standard deviation larger by this."""


def posteriors(rng: np.random.Generator, count: int = len(COEFFICIENTS)) -> Gaussian:
    """Return Matérn 3/2 posteriors of `count` functions on POINTS points, each of OBSERVED observations."""
    x, f = rng.random((count, OBSERVED)), draw_functions(rng, count)
    y = values(f, x) + np.sqrt(NOISE) * rng.standard_normal(x.shape)
    lengths = np.linspace(SHORTEST, LONGEST, count)
    own = [posterior(x[k], y[k], equal_grid(POINTS), NOISE, float(lengths[k])) for k in range(count)]
    return Gaussian(np.stack([p.mean for p in own]), np.stack([p.cov for p in own]))


def sample(rng: np.random.Generator, laws: Gaussian, count: int, shared: float = 0.0) -> np.ndarray:
    """Draw the processes (count, K, v); `shared` in [0, 1]: correlation of the normals that they are made of."""
    tasks, points = laws.mean.shape
    normals = np.sqrt(1.0 - shared) * rng.standard_normal((count, tasks, points))
    if shared:
        normals += np.sqrt(shared) * rng.standard_normal((count, 1, points))
    return laws.mean + np.einsum("kvw,rkw->rkv", roots(laws.cov), normals)


def roots(covs: np.ndarray) -> np.ndarray:
    """Return square roots of covariances (..., v, v), also of nearly singular ones."""
    w, q = np.linalg.eigh(covs)
    return q * np.sqrt(np.maximum(w, 0.0))[..., None, :]


def pairwise(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw three standard normal variables (count, 3), any two of them independent, the three together not.

    The third has the sign of the product of the first two: given either, that sign is a fair coin.
    """
    normals = rng.standard_normal((count, 3))
    normals[:, 2] = np.abs(normals[:, 2]) * np.sign(normals[:, 0] * normals[:, 1])
    return normals


class ReplicateMeans(NamedTuple):
    """Averages of several quantities (e,) over `runs` independent replicates, and their standard errors (e,)."""

    average: np.ndarray
    error: np.ndarray
    runs: int


def means(draws: np.ndarray) -> ReplicateMeans:
    """Return the average of every entry of draws (R, v)."""
    return ReplicateMeans(draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(len(draws)), len(draws))


def products(draws: np.ndarray, centre: np.ndarray) -> ReplicateMeans:
    """Return the averages of the products of all pairs of entries of draws (R, v) about `centre` (v,) or (R, v).

    By two matrix products: E x_i x_j, and E x_i²x_j² for the errors; pairs in the order of `upper`.
    """
    runs_, centred = len(draws), draws - centre
    average, square = upper(centred.T @ centred) / runs_, upper((centred**2).T @ centred**2) / runs_
    return ReplicateMeans(average, np.sqrt((square - average**2) / (runs_ - 1)), runs_)


def upper(matrix: np.ndarray) -> np.ndarray:
    """Return the upper triangle of a matrix, with its diagonal, as a vector."""
    return matrix[np.triu_indices(len(matrix))]


def entries(found: ReplicateMeans, expected: np.ndarray) -> Ruling:
    """Decide E[every entry] = expected (e,) by the worst entry: |z| <= ENTRY_LIMIT."""
    z = (found.average - expected) / found.error
    worst = int(np.argmax(np.abs(z)))
    far = not abs(z[worst]) <= ENTRY_LIMIT
    verdict = REFUTED if far else SUPPORTED if found.runs >= ENOUGH else INCONCLUSIVE
    numbers: Numbers = {"mean": found.average[worst], "expected": expected[worst], "error": found.error[worst]}
    return Ruling(verdict, numbers | {"z": z[worst], "runs": found.runs, "entries": len(z)})


def theorem31(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check mean, covariance and normality of Σ a_i GP^(i) and Corollary 1 by joint samples, the rest exactly."""
    rng, count = generator(key), runs(SAMPLES, share)
    laws, a = posteriors(rng), COEFFICIENTS
    draws, dependent = (np.einsum("k,rkv->rv", a, sample(rng, laws, count, shared)) for shared in (0.0, 0.5))
    mean, cov = a @ laws.mean, np.einsum("k,kvw->vw", a**2, laws.cov)
    unsquared = np.einsum("k,kvw->vw", a, laws.cov)
    second, two = products(draws, mean), pairwise(rng, count)
    claim = f"within {ENTRY_LIMIT:g} standard errors in every entry"
    parts = [
        part("mean", f"mean Σa_iμ^(i), {claim}", "expectation", [cell(entries(means(draws), mean))],
             control("mean Σa_i²μ^(i)", [cell(entries(means(draws), (a**2) @ laws.mean))])),
        part("covariance", f"covariance Σa_i²k^(i), {claim}", "expectation", [cell(entries(second, upper(cov)))],
             control("covariance Σa_ik^(i); processes with correlation ½",
                     [cell(entries(second, upper(unsquared))),
                      cell(entries(products(dependent, mean), upper(cov)), correlation=0.5)])),
        part("normality", f"{PROJECTIONS} random projections follow their normal laws", "distribution",
             _projections(rng, draws, mean, cov, 1.0),
             control(f"with standard deviations larger by {SCALE}; a sum that is not normal, of the right mean and "
                     "variance", [*_projections(rng, draws, mean, cov, SCALE), _normal(two, "any two")])),
    ]  # fmt: skip
    return [
        statement("Theorem 3.1", "Independent GPs: Σa_iGP^(i) is a GP with mean Σa_iμ^(i), covariance Σa_i²k^(i)",
                  "§3", parts),
        *_corollary1(rng, two),
        *_corollary2(rng, laws, two),
        *_theorem_a2(rng),
    ]  # fmt: skip


def _projections(
    rng: np.random.Generator, draws: np.ndarray, mean: np.ndarray, cov: np.ndarray, scale: float
) -> list[Cell]:
    cells = []
    for place in range(PROJECTIONS):
        u = rng.standard_normal(len(mean))
        law = stats.norm(u @ mean, scale * np.sqrt(u @ cov @ u))
        cells.append(cell(distribution(draws @ u, law), projection=place))
    return cells


def _normal(normals: np.ndarray, independent: str, scale: float = 1.0) -> Cell:
    """Decide that the sum of three processes on one index, each N(0, 1), draws (R, 3), follows N(0, 3 scale²)."""
    total = normals.sum(axis=1)
    decided = distribution(total, stats.norm(0.0, scale * np.sqrt(3.0)))
    decided.numbers["skewness"] = float(stats.skew(total))
    return cell(decided, independent=independent)


def _corollary1(rng: np.random.Generator, two: np.ndarray) -> list[Statement]:
    """Its assumption, that any two processes are independent (draws `two`), and the one that makes it true."""
    three = rng.standard_normal(two.shape)
    claim = "the sum of three GPs on one index, each N(0, 1), follows N(0, 3)"
    whole, some = _normal(three, "all three"), _normal(two, "any two")
    wider = [_normal(three, "all three", SCALE), _normal(two, "any two", SCALE)]
    return [
        statement("Corollary 1", "GPs of which any two are independent: their linear combination is a GP", "App. 1.1",
                  [part("sum", f"{claim}, independent: all three, or any two", "distribution", [whole, some],
                        control(f"a standard deviation larger by {SCALE}", wider))]),
        statement("Corollary 1", "GPs that are all independent of each other: their linear combination is a GP",
                  "App. 1.1", [part("sum", f"{claim}, all three independent", "distribution", [whole],
                                    control("any two independent, not all three", [some]))], "repaired"),
    ]  # fmt: skip


def _corollary2(rng: np.random.Generator, laws: Gaussian, two: np.ndarray) -> list[Statement]:
    """Its conclusion, "also a non-degenerate GP", and the covariance of Σa_kX_k, independent X_k: Σa_kΣ_k in the proof.

    `two`: draws of processes of which any two are independent, as Corollary 1, on which it rests, assumes.
    """
    a, tasks = COEFFICIENTS, len(COEFFICIENTS)
    whole = np.concatenate([coefficient * np.eye(POINTS) for coefficient in a], axis=1)
    blocks = np.zeros((tasks, POINTS, tasks, POINTS))
    blocks[np.arange(tasks), :, np.arange(tasks)] = laws.cov
    exact = whole @ blocks.reshape(tasks * POINTS, -1) @ whole.T

    def made(power: int, name: str) -> StatementPart:
        against = control("ΣΣ_k", [cell(identity(laws.cov.sum(axis=0), exact))])
        own = np.einsum("k,kvw->vw", a**power, laws.cov)
        return part("covariance", f"covariance of Σa_kX_k = {name}", "identity", [cell(identity(own, exact))], against)

    definite = part("triples", f"covariance of Σa_kX_k on {POINTS} distinct points: least eigenvalue > {FLOOR}",
                    "inequality", [_combined(rng, False)],
                    control("with two equal points", [_combined(rng, True)]))  # fmt: skip
    gaussian = part("sum", "the sum of three GPs on one index, each N(0, 1), any two independent, follows N(0, 3)",
                    "distribution", [_normal(two, "any two")],
                    control(f"a standard deviation larger by {SCALE}", [_normal(two, "any two", SCALE)]))  # fmt: skip
    return [
        statement("Corollary 2", "Non-degenerate GPs, any two independent: Σa_kX_k is a non-degenerate GP", "App. 1.1",
                  [definite, gaussian]),
        statement("Corollary 2", "Non-degenerate GPs, all independent: the covariance of Σa_kX_k is non-degenerate",
                  "App. 1.1", [definite], "repaired"),
        statement("Corollary 2, proof", "Independent X_k: the covariance of Σa_kX_k is Σa_kΣ_k",
                  "App. 1.1", [made(1, "Σa_kΣ_k")], "proof step"),
        statement("Corollary 2, proof", "Independent X_k: the covariance of Σa_kX_k is Σa_k²Σ_k",
                  "App. 1.1", [made(2, "Σa_k²Σ_k")], "repaired"),
    ]  # fmt: skip


def _combined(rng: np.random.Generator, repeated: bool) -> Cell:
    """Decide that Σa_k²Σ_k of TRIPLES triples of posteriors, a random and of sum 1, is positive definite; on points of
    which two are equal if `repeated`."""
    order = np.append(np.arange(POINTS - 1), 0 if repeated else POINTS - 1)
    found = []
    for _ in range(TRIPLES):
        a, cov = rng.dirichlet(np.ones(len(COEFFICIENTS))), posteriors(rng).cov[:, order][:, :, order]
        found.append(float(least(np.einsum("k,kvw->vw", a**2, cov))))
    return above(found, POINTS)


def _theorem_a2(rng: np.random.Generator) -> list[Statement]:
    """Bienaymé's identity for correlated variables: its sum over i <= j (printed) and over i < j."""
    a, joint = COEFFICIENTS, np.cov(rng.standard_normal((len(COEFFICIENTS), 50)))
    pairs = np.outer(a, a) * joint
    variances = np.trace(pairs)

    def made(first: int, over: str) -> StatementPart:
        total = variances + 2.0 * np.triu(pairs, first).sum()
        against = control("Σa_i²V(X_i) alone", [cell(identity(variances, a @ joint @ a))])
        claim = f"V(Σa_iX_i) = Σa_i²V(X_i) + 2 Σ over {over}"
        return part("variance", claim, "identity", [cell(identity(total, a @ joint @ a))], against)

    return [
        statement("Theorem A.2", "Variance of a sum: variances, and twice the covariances over i <= j",
                  "App. 1.1", [made(0, "i <= j")], "proof step"),
        statement("Theorem A.2", "Variance of a sum: variances, and twice the covariances over i < j",
                  "App. 1.1", [made(1, "i < j")], "repaired"),
    ]  # fmt: skip


def geometric_centre(key: Key[Array, ""], share: float) -> list[Statement]:
    """Test what the package's centre, N(Σμ/|C|, Σk/|C|), is the law of: the average process, or a member.

    The paper calls it an unbiased estimation of the linear sum of the members; by Theorem 3.1 with a = 1/|C| the
    average process has the covariance Σk/|C|². Members are drawn independently of each other.
    """
    rng, count = generator(key), runs(SAMPLES, share)
    laws = posteriors(rng, MEMBERS)
    found = kmeans(jnp.asarray(laws.mean), jnp.asarray(laws.cov), 1, "jeffreys", key)
    mean, cov = np.asarray(found.means[0]), np.asarray(found.covs[0])
    draws = sample(rng, laws, count)
    average = draws.mean(axis=1)
    which = rng.integers(MEMBERS, size=count)
    member = draws[np.arange(count), which]
    between = (laws.mean - mean).T @ (laws.mean - mean) / MEMBERS
    of_average, within, total = products(average, mean), products(member, laws.mean[which]), products(member, mean)

    def made(seen: ReplicateMeans, claim: str, expected: np.ndarray, wrong: str, other: np.ndarray) -> StatementPart:
        decided = [cell(entries(seen, upper(e)), members=MEMBERS) for e in (expected, other)]
        return part("covariance", claim, "expectation", decided[:1], control(wrong, decided[1:]))

    law = made(of_average, "Cov of the average of |C| members = Σk/|C|", cov, "= Σk", MEMBERS * cov)
    law["cells"][0]["numbers"]["ratio"] = float(np.trace(cov) / average.var(axis=0).sum())
    mean_of_average, mean_of_member = _mean(average, mean), _mean(member, mean)
    own = "Cov of a random member about its own mean = Σk/|C|"
    whole = "Cov of a random member = Σk/|C|"
    return [
        statement("Centre, average", "A cluster's centre, N(Σμ/|C|, Σk/|C|), is the law of the average of its members",
                  "§3", [law], "reading"),
        statement("Centre, average", "The average of a cluster's members has the covariance Σk/|C|²", "§3",
                  [mean_of_average, made(of_average, "Cov of the average = Σk/|C|²", cov / MEMBERS, "= Σk/|C|", cov)],
                  "repaired"),
        statement("Centre, within", "A cluster's centre has the average covariance of its members", "§3",
                  [mean_of_member, made(within, own, cov, "= Σk/|C|²", cov / MEMBERS)], "reading"),
        statement("Centre, member", "A cluster's centre has the covariance of a member drawn at random", "§3",
                  [made(total, whole, cov, "= Σk/|C|²", cov / MEMBERS)], "reading"),
        statement("Centre, member", "A member drawn at random: Σk/|C| and the covariance of the members' means", "§3",
                  [made(total, f"{whole} + covariance of the means", cov + between, "= Σk/|C|", cov)], "repaired"),
    ]  # fmt: skip


def _mean(draws: np.ndarray, mean: np.ndarray) -> StatementPart:
    return part("mean", "mean Σμ/|C|", "expectation", [cell(entries(means(draws), mean))],
                control("half of it", [cell(entries(means(draws), 0.5 * mean))]))  # fmt: skip

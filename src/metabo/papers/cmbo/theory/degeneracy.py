"""Proposition 1, Theorem A.3 and Lemma 2 (cm-BO §3, appendix 1.1): meta-priors are non-degenerate.

A covariance on distinct points counts as positive definite if its least eigenvalue, computed in float64 without any
jitter, is above FLOOR. Two input dimensions.
"""

import numpy as np
from jaxtyping import Array, Key
from scipy.spatial.distance import cdist

from metabo.papers.cmbo.theory.tasks import symmetric
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import identity, inequality

CHECKS = {
    "proposition1": "Proposition 1: non-degenerate meta-priors",
    "lemma2": "Lemma 2: positive combinations of positive-definite matrices",
}
FLOOR = 1e-12
NOISE = 1e-4
POINTS, OBSERVED, TASKS, CLUSTERS, RUNS = 50, 20, 6, 3, 200
TRIPLES = 1000


def kernel(x: np.ndarray, z: np.ndarray, lengthscale: float) -> np.ndarray:
    """Return the Matérn 3/2 covariances of inputs (n, d) and (m, d)."""
    r = np.sqrt(3.0) * cdist(x, z) / lengthscale
    return (1.0 + r) * np.exp(-r)


def schur(x: np.ndarray, test: np.ndarray, lengthscale: float, noise: float) -> np.ndarray:
    """Return K_** - K_*(K + σ²I)⁻¹K_*ᵀ, the posterior covariance at the inputs `test` given observations at x."""
    cross = kernel(test, x, lengthscale)
    gram = kernel(x, x, lengthscale) + noise * np.eye(len(x))
    return symmetric(kernel(test, test, lengthscale) - cross @ np.linalg.solve(gram, cross.T))


def least(matrix: np.ndarray) -> np.ndarray:
    """Return the least eigenvalues (...) of symmetric matrices (..., n, n)."""
    return np.linalg.eigvalsh(matrix)[..., 0]


def meta_prior(rng: np.random.Generator, repeated: bool = False, noise: float = NOISE, shared: bool = False) -> float:
    """Return the least eigenvalue of k_0 = Σ w² k^C on POINTS points of [0, 1]², two equal ones if `repeated`.

    TASKS posteriors with lengthscales in [0.1, 1], CLUSTERS geometric centres, random weights. The tasks have inputs
    of their own, or if `shared` the same OBSERVED configurations, which are among the points: so are a table's.
    """
    test = rng.random((POINTS, 2))
    if repeated:
        test[-1] = test[0]
    common = test[:OBSERVED] if shared else None
    owners = np.concatenate([np.arange(CLUSTERS), rng.integers(CLUSTERS, size=TASKS - CLUSTERS)])
    weights, size = rng.dirichlet(np.ones(CLUSTERS)), np.bincount(owners)
    lengths = np.exp(rng.uniform(np.log(0.1), 0.0, TASKS))
    total = np.zeros((POINTS, POINTS))
    for owner, length in zip(owners, lengths, strict=True):
        x = rng.random((OBSERVED, 2)) if common is None else common
        own = schur(x, test, float(length), noise)
        total += weights[owner] ** 2 / size[owner] * own
    return float(least(total))


def noise_free(rng: np.random.Generator, meet: bool, noise: float = 0.0, repeated: bool = False) -> float:
    """Return the least eigenvalue of one posterior covariance; `meet`: five test inputs are training inputs."""
    x, test = rng.random((OBSERVED, 2)), rng.random((POINTS, 2))
    if meet:
        test[:5] = x[:5]
    if repeated:
        test[-1] = test[-2]
    return float(least(schur(x, test, float(np.exp(rng.uniform(np.log(0.1), 0.0))), noise)))


def above(values: list[float], inputs: int = POINTS) -> Cell:
    """Decide that every least eigenvalue of matrices of `inputs` points is above FLOOR."""
    found = np.array(values)
    decided = inequality(1.0, found / FLOOR)
    return cell(decided, inputs=inputs, least=float(found.min()))


def proposition1(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the meta-prior with and without noise and inputs that all sources share, Theorem A.3 with and without test
    inputs among the training inputs, and its proof."""
    rng, count = generator(key), runs(RUNS, share)

    def many(**how: bool | float) -> Cell:
        return above([noise_free(rng, **how) for _ in range(count)])

    def prior(name: str, how: str, **setting: bool | float) -> StatementPart:
        own, wrong = (above([meta_prior(rng, equal, **setting) for _ in range(count)]) for equal in (False, True))
        return part(name, f"{claim}, no jitter, {how}", "inequality", [own], control("with two equal points", [wrong]))

    def theorem(name: str, how: str, **setting: bool | float) -> StatementPart:
        against = control("with two equal test inputs", [many(repeated=True, **setting)])
        return part(name, f"{claim}, {how}", "inequality", [many(**setting)], against)

    claim = f"least eigenvalue > {FLOOR} on {POINTS} distinct points"
    noisy_prior = [
        prior("noisy, apart", f"σ² = {NOISE}, inputs of their own"),
        prior("noisy, shared", f"σ² = {NOISE}, the {OBSERVED} inputs of all sources among them", shared=True),
    ]
    exact_prior = [
        prior("noise-free, apart", "noise-free, inputs of their own", noise=0.0),
        prior("noise-free, shared", f"noise-free, the {OBSERVED} inputs of all sources among them", noise=0.0,
              shared=True),
    ]  # fmt: skip
    apart = theorem("apart", "noise-free, no training input among them", meet=False)
    meeting = theorem("meeting", "noise-free, five training inputs among them", meet=True)
    noisy = theorem("noisy", f"σ² = {NOISE}, five training inputs among them", meet=True, noise=NOISE)
    return [
        statement("Proposition 1", "Priors made of geometric centres of posteriors with noise are non-degenerate", "§3",
                  noisy_prior),
        statement("Proposition 1, noise-free", "Priors made of geometric centres are non-degenerate, noise-free too",
                  "§3", [*noisy_prior, *exact_prior], "reading"),
        statement("Theorem A.3", "Posterior covariances are positive definite at any test inputs, noise-free too",
                  "App. 1.1", [apart, meeting]),
        statement("Theorem A.3", "Positive definite at distinct test inputs: with noise, or none a training input",
                  "App. 1.1", [apart, noisy], "repaired"),
        *_eigenvalues(rng),
    ]  # fmt: skip


def _eigenvalues(rng: np.random.Generator) -> list[Statement]:
    """The proof: eigenvalues of the joint matrix M = D P Dᵀ are not those of P, but as many are positive."""
    x, test = rng.random((OBSERVED, 2)), rng.random((POINTS, 2))
    both = np.concatenate([test, x])
    joint, own = np.linalg.eigvalsh(kernel(both, both, 0.3)), np.linalg.eigvalsh(kernel(x, x, 0.3))
    blocks = np.sort(np.concatenate([own, np.linalg.eigvalsh(schur(x, test, 0.3, 0.0))]))
    doubled = [cell(identity(2.0 * np.log(blocks).sum(), np.log(joint).sum()))]
    wrong = control("twice those of the blocks", [cell(identity(2.0 * blocks, joint))])
    split = part("eigenvalues", "eigenvalues of M = those of K(X, X) and of the Schur complement", "identity",
                 [cell(identity(blocks, joint))], wrong)  # fmt: skip
    product = part("determinant", "their products are equal, and all are positive", "identity",
                   [cell(identity(np.log(blocks).sum(), np.log(joint).sum()))],
                   control("the product of the squares", doubled))  # fmt: skip
    return [
        statement("Theorem A.3, proof", "The eigenvalues of the joint covariance M are those of its two blocks",
                  "App. 1.1", [split],
                  "proof step"),
        statement("Theorem A.3, proof", "M has the determinant of its two blocks, and is positive definite if they are",
                  "App. 1.1", [product],
                  "repaired"),
    ]  # fmt: skip


def lemma2(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Lemma 2 on random triples of positive-definite matrices, and that the a_i must be positive."""
    rng, count = generator(key), runs(TRIPLES, share)
    size = 8
    root = rng.standard_normal((count, 3, size, size))
    matrices = root @ root.swapaxes(-2, -1) / size + 1e-3 * np.eye(size)
    a = np.exp(rng.uniform(-3.0, 3.0, (count, 3)))

    def combined(weights: np.ndarray) -> Cell:
        values = least(np.einsum("rk,rkij->rij", weights, matrices))
        return cell(inequality(1.0, values / FLOOR), triples=count, least=float(values.min()))

    flipped = a * np.array([1.0, 1.0, -1.0])
    return [
        statement("Lemma 2", "a_i > 0 and A_i positive definite: Σa_iA_i is positive definite", "App. 1.1",
                  [part("triples", "least eigenvalue > 1e-12", "inequality", [combined(a)],
                        control("with a_3 < 0", [combined(flipped)]))]),
    ]  # fmt: skip

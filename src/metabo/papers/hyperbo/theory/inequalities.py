"""Deterministic statements (HyperBO appendix C): Lemma 9, Corollary 11, Lemmas 12 and 13, Corollary 14.

Each is a function of arrays; the checks evaluate it on grids, at random points and, for Lemma 13, on sequences.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from scipy import special, stats

from metabo.gp.linalg import JITTER
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import Ruling, identity, inequality
from metabo.papers.hyperbo.theory.memory import inputs, kernel_matrix, model

Values = np.ndarray | float
Number = Float[Array, ""] | float

CHECKS = {
    "tail_bounds": "Lemma 9 and Corollary 14: tails of χ² and of the normal law",
    "inequalities": "Corollary 11 and Lemma 12: two elementary inequalities",
    "lemma13": "Lemma 13: information gain as a sum",
}


def chi_square_upper(b: Values) -> Values:
    """Return 1 + 2√b + 2b, which v̂/(vn) exceeds with probability at most exp(-bn) (Lemma 9)."""
    return 1.0 + 2.0 * np.sqrt(b) + 2.0 * b


def chi_square_lower(b: Values) -> Values:
    """Return 1 - 2√b, which v̂/(vn) falls below with probability at most exp(-bn) (Lemma 9)."""
    return 1.0 - 2.0 * np.sqrt(b)


def chi_square_log_tail(n: int, x: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Return ln P[χ²_n >= x] (k,), also where the probability is below the least number of float64.

    For even n it is e^{-x/2} Σ_{i < n/2} (x/2)^i/i!; for odd ones SciPy's, which is finite for small n.
    """
    if n % 2:
        return np.asarray(stats.chi2(n).logsf(x))
    i = np.arange(n // 2)[:, None]
    return -x / 2.0 + special.logsumexp(i * np.log(x / 2.0) - special.gammaln(i + 1.0), axis=0)


def bernoulli_bound(x: Values, a: Values, c: Values) -> Values:
    """Return c ln(1 + ax/c)/ln(1 + a), at least x for 0 <= x <= c (Corollary 11)."""
    return c * np.log1p(a * x / c) / np.log1p(a)


def root_bound(x: Values, a: Values, c: Values, share: float = 0.5) -> Values:
    """Return √(x+a) - share · a/√(c+a), more than √x for 0 <= x <= c and share = ½ (Lemma 12)."""
    return np.sqrt(x + a) - share * a / np.sqrt(c + a)


def gaussian_quantile_bound(delta: Values) -> Values:
    """Return ζ = √(2 ln(1/(2δ))) of Corollary 14; NaN where it is imaginary, δ > ½."""
    with np.errstate(invalid="ignore"):
        return np.sqrt(-2.0 * np.log(2.0 * np.asarray(delta)))


def information(gram: Float[Array, "t t"], noise: Number) -> Float[Array, ""]:
    """Return I(f; y) = ½ ln|I + K/σ²| in nats (Lemma 13)."""
    factor = jnp.linalg.cholesky(jnp.eye(gram.shape[0]) + gram / noise)
    return jnp.sum(jnp.log(jnp.diagonal(factor)))


def mutual_information(gram: Float[Array, "t t"], noise: Number, joint_noise: Number) -> Float[Array, ""]:
    """Return I(f; y) = H(f) + H(y) - H(f, y) of jointly normal f and y = f + ε in nats, for a regular K (Lemma 13).

    `joint_noise`: the noise variance in H(f, y), another one in a control.
    """
    observed, both = gram + noise * jnp.eye(len(gram)), gram + joint_noise * jnp.eye(len(gram))
    joint = jnp.block([[gram, gram], [gram, both]])
    entropies = [jnp.linalg.slogdet(matrix)[1] for matrix in (gram, observed, joint)]
    return 0.5 * (entropies[0] + entropies[1] - entropies[2])


def sequential_information(
    gram: Float[Array, "m m"], noise: Number, sequence: Int[Array, " t"], added: Number = 0.0
) -> Float[Array, ""]:
    """Return ½ Σ_t ln(1 + (k_{t-1}(x_t) + added)/σ²) with the package's posterior variances (Lemma 13)."""
    prior = model(jnp.zeros(gram.shape[0]), gram + noise * jnp.eye(gram.shape[0]), noise)
    x = inputs(sequence)

    def variance(step: Int[Array, ""]) -> Float[Array, ""]:
        before = jnp.arange(len(sequence)) < step
        return prior.posterior(x, jnp.zeros(len(sequence)), before).predict(x[step][None])[1][0]

    variances = jax.vmap(variance)(jnp.arange(len(sequence)))
    return 0.5 * jnp.sum(jnp.log1p((variances + added) / noise))


def tail_bounds(_key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check Lemma 9 by exact χ² tails, Corollary 14 by exact normal tails, and a step of the latter's proof (I11)."""
    return [_lemma9(), *_corollary14()]


def _lemma9() -> Statement:
    degrees, shares = (1, 2, 5, 20, 100, 500), np.geomspace(1e-3, 5.0, 40)
    n, b = np.meshgrid(degrees, shares, indexing="ij")

    def below(log_tail: np.ndarray) -> Cell:
        # where the tail is zero, 1-2√b <= 0, the bound could not have failed
        counts = ~np.isneginf(log_tail)
        found = inequality(log_tail[counts], (-b * n)[counts], n=n[counts], b=b[counts])
        return cell(Ruling(found.verdict, found.numbers | {"left_out": int((~counts).sum())}))

    def above(threshold: np.ndarray) -> np.ndarray:
        return np.array([chi_square_log_tail(m, threshold * m) for m in degrees])

    upper = part(
        "upper tail", "P[v̂/(vn) >= 1+2√b+2b] <= exp(-bn), exact tails", "inequality",
        [below(above(chi_square_upper(shares)))],
        control("the threshold 1+2√b, without 2b", [below(above(1.0 + 2.0 * np.sqrt(shares)))]),
    )  # fmt: skip
    law = stats.chi2(n)
    lower = part(
        "lower tail", "P[v̂/(vn) <= 1-2√b] <= exp(-bn), exact tails", "inequality",
        [below(law.logcdf(chi_square_lower(b) * n))],
        control("the threshold 1-3√b/2", [below(law.logcdf((1.0 - 1.5 * np.sqrt(b)) * n))]),
    )  # fmt: skip
    return statement("Lemma 9", "Tails of a χ² variable", "C.1", [upper, lower])


def _corollary14() -> list[Statement]:
    def tail(delta: np.ndarray, share: float = 1.0) -> Cell:
        zeta = gaussian_quantile_bound(delta) * share
        # in logarithms: as a probability, a tail of 1e-12 is within the rounding that an inequality may exceed by
        found = inequality(stats.norm.logsf(zeta), np.log(delta), delta=delta)
        return cell(found, delta=f"({delta[0]:.3g}, {delta[-1]:.3g})")

    low, high = np.geomspace(1e-12, 0.5, 2000), np.linspace(0.5005, 0.9995, 500)
    claim = "P[x - μ <= ζσ] >= 1 - δ with ζ = √(2 ln(1/(2δ))); by symmetry also P[x - μ >= -ζσ]"
    against = control("half of ζ", [tail(low[:-1], 0.5)])
    rng_z, zeta = np.linspace(-5.0, 5.0, 101)[:, None], np.linspace(0.0, 5.0, 51)
    left = np.broadcast_to(-(rng_z**2) / 2.0, (101, 51))
    squares = -((rng_z - zeta) ** 2) / 2.0 - zeta**2 / 2.0
    printed = part(
        "exponent", "-z²/2 = -(z-ζ)²/2 - ζ²/2 - zζ", "identity", [cell(identity(squares - rng_z * zeta, left))],
        control("without the last term and ζ²/2", [cell(identity(-((rng_z - zeta) ** 2) / 2.0, left))]),
    )  # fmt: skip
    right = part(
        "exponent", "-z²/2 = -(z-ζ)²/2 - ζ²/2 - (z-ζ)ζ", "identity",
        [cell(identity(squares - (rng_z - zeta) * zeta, left))],
        control("-z²/2 = -(z-ζ)²/2 - ζ²/2 - zζ, as printed", printed["cells"]),
    )  # fmt: skip
    return [
        statement("Corollary 14", "Normal tails, δ in (0, 1): ζ is imaginary above ½ (I11)", "C.2",
                  [part("tail", claim, "inequality", [tail(low), tail(high)], against)]),
        statement("Corollary 14", "Normal tails, δ in (0, ½]", "C.2",
                  [part("tail", claim, "inequality", [tail(low)], against)], "repaired"),
        statement("Corollary 14, exponent", "Exponent of the proof (I11)", "C.2", [printed], "proof step"),
        statement("Corollary 14, exponent", "Exponent of the proof, corrected", "C.2", [right], "repaired"),
    ]  # fmt: skip


def inequalities(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check Corollary 11 and Lemma 12 on a grid and at 1e5 random points."""
    rng = generator(key)
    share = np.concatenate([np.tile(np.linspace(0.0, 1.0, 201), 121), rng.random(100_000)])
    a = np.concatenate([np.repeat(np.geomspace(1e-3, 1e3, 121), 201), 10.0 ** rng.uniform(-3, 3, 100_000)])
    c = np.concatenate([np.ones(201 * 121), 10.0 ** rng.uniform(-3, 3, 100_000)])
    points = {"x": share * c, "a": a, "c": c}
    bernoulli = part(
        "grid and random points", "x <= c ln(1 + ax/c)/ln(1 + a) for 0 <= x <= c", "inequality",
        [cell(inequality(points["x"], bernoulli_bound(**points), **points))],
        control("the same for x = 1.2c", [cell(inequality(1.2 * c, bernoulli_bound(1.2 * c, a, c), a=a, c=c))]),
    )  # fmt: skip
    roots = part(
        "grid and random points", "√x < √(x+a) - a/(2√(c+a)) for 0 <= x <= c", "inequality",
        [cell(inequality(np.sqrt(points["x"]), root_bound(**points), **points))],
        control("a/√(c+a) at x = c", [cell(inequality(np.sqrt(c), root_bound(c, a, c, 1.0), a=a, c=c))]),
    )  # fmt: skip
    return [
        statement("Corollary 11", "x <= c ln(1 + ax/c)/ln(1 + a)", "C.2", [bernoulli]),
        statement("Lemma 12", "√x < √(x+a) - a/(2√(c+a))", "C.2", [roots]),
    ]


def lemma13(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Check Lemma 13 on 100 random sequences of 8 queries among 6 inputs, so that every sequence repeats some.

    For sequences of 4 different inputs, also by the definition of mutual information.
    """
    rng = generator(key)
    gram = kernel_matrix(jnp.arange(6.0)[:, None], 2.0)
    noise = 0.1
    sequences = rng.integers(6, size=(100, 8))
    distinct = np.array([rng.permutation(6)[:4] for _ in range(100)])
    whole = jax.jit(jax.vmap(lambda s: information(gram[s][:, s], noise)))(sequences)
    parts = jax.jit(jax.vmap(lambda s, added: sequential_information(gram, noise, s, added), in_axes=(0, None)))
    defined = jax.jit(jax.vmap(lambda s, own: mutual_information(gram[s][:, s], noise, own), in_axes=(0, None)))
    same = part(
        "sequences", "½ ln|I + K/σ²| = ½ Σ_t ln(1 + k_{t-1}(x_t)/σ²), with the package's posterior", "identity",
        [cell(identity(parts(sequences, 0.0), whole), length=8, inputs=6, noise=noise, jitter=JITTER)],
        control("k_{t-1} + σ² in place of k_{t-1}", [cell(identity(parts(sequences, noise), whole), length=8)]),
    )  # fmt: skip
    definition = part(
        "definition", "H(f) + H(y) - H(f, y) = ½ Σ_t ln(1 + k_{t-1}(x_t)/σ²), without repeated inputs", "identity",
        [cell(identity(parts(distinct, 0.0), defined(distinct, noise)), length=4, inputs=6, noise=noise)],
        control("H(f, y) with twice the noise", [cell(identity(parts(distinct, 0.0), defined(distinct, 2.0 * noise)))]),
    )  # fmt: skip
    return [statement("Lemma 13", "Information gain of a sequence of queries", "C.2", [same, definition])]

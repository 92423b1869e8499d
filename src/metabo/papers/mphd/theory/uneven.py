"""Theorem 3 (MPHD §3.1) where domains differ in how much their data tell of the lengthscale.

Assumption (3) asks of each domain by itself that its inputs identify θ_i, and of nothing that holds for all domains
alike. In domain i every i-th sub-dataset has two inputs, and the others have one, which says nothing of a lengthscale:
1/i of the data, however many there are, so that (1) to (3) hold. For N domains with M_i = M = N, half of them have one
pair of inputs all the same. The theorem's proof lets M_i grow first and N then; read so, this is no counterexample.
"""

import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.papers.engine.theory.estimated import mean, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.mphd.theory.families import Family, lengthscale_priors
from metabo.papers.mphd.theory.lengthscales import NOISE, TIE, covariances, grid, minimise

CHECKS = {"theorem3_uneven": "Theorem 3 where domains differ in what their data tell"}
SIZES = (16, 64, 256, 1024, 4096)
"""N = M; the last decides."""
RUNS, LEAST = 50, 20
APART = 0.2
"""Between the two inputs of a pair, about half of a typical lengthscale."""
LIMIT = (-0.2, 0.2)
"""What E ln(α̂/α*) may be at the end: about 20 %."""


def theorem3_uneven(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the limit of the learned Gamma prior with N = M, where information is 1/i of the data of domain i, and
    where it is all of them. In the control of both every domain has one pair."""
    rng, count, family = generator(key), max(LEAST, round(RUNS * share)), lengthscale_priors()[0]
    pairs = {"uneven": lambda n: n // np.arange(1, n + 1), "even": lambda n: np.full(n, n), "few": lambda n: np.ones(n)}
    found = {name: [learned(rng, family, of(n).astype(int), count) for n in SIZES] for name, of in pairs.items()}
    title = "α̂ → α* as N = M → ∞, Gamma prior"
    return [
        statement("Theorem 3, uneven", f"{title}: M/i of M sub-datasets of domain i tell of the lengthscale", "§3.1",
                  [_limit(family, found["uneven"], found["few"])], "reading"),
        statement("Theorem 3, even", f"{title}: all sub-datasets of all domains tell of it", "§3.1",
                  [_limit(family, found["even"], found["few"])], "repaired"),
    ]  # fmt: skip


def learned(
    rng: np.random.Generator, family: Family, pairs: Int[np.ndarray, " n"], count: int
) -> Float[np.ndarray, "r 2"]:
    """Return ln(α̂/α*) of `count` super-datasets, whose domain i has `pairs[i]` pairs of inputs.

    Sum and difference of a pair are independent, with variances v + c and v - c, so that χ² draws suffice.
    """
    nodes = grid()
    shape = covariances(np.array([[[0.0], [APART]]]), nodes)[:, 0, 0, 1]
    log_sum, log_difference = np.log(1.0 + NOISE + shape), np.log(1.0 + NOISE - shape)
    out = []
    for _ in range(count):
        truth = family.law.rvs((len(pairs),), random_state=rng)
        own = covariances(np.array([[[0.0], [APART]]]), truth[:, None])[:, 0, 0, 1]
        squares = [(1.0 + NOISE + sign * own) * rng.chisquare(pairs) for sign in (1.0, -1.0)]
        losses = 0.5 * (
            pairs[:, None] * (log_sum + log_difference)
            + squares[0][:, None] * np.exp(-log_sum)
            + squares[1][:, None] * np.exp(-log_difference)
        )
        found = np.exp(minimise(losses, np.log(nodes[:, 0]), rng, TIE))
        out.append(np.log(np.array(family.fit(found)) / np.array(family.truth)))
    return np.stack(out)


def _limit(family: Family, found: list[np.ndarray], few: list[np.ndarray]) -> StatementPart:
    def cells(each: list[np.ndarray]) -> list[Cell]:
        made = []
        for i, letter in enumerate(family.parameters):
            decided = within(mean(each[-1][:, i]), *LIMIT)
            values = [family.truth[i] * float(np.exp(np.median(one[:, i]))) for one in each]
            decided.numbers.update(values=np.array(values))
            made.append(cell(decided, parameter=letter, N=SIZES[-1], M=SIZES[-1]))
        return made

    return part("limit", f"E ln(α̂/α*) in {list(LIMIT)} at N = M = {SIZES[-1]}", "expectation", cells(found),
                control("the same with one pair of inputs in every domain", cells(few)))  # fmt: skip

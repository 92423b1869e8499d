"""Proposition 4.5 of Ziomek and Bou-Ammar (2023), as HE-GP-UCB §6 cites it: some pairs of inputs, or all of them.

The maximum information gain γ_T is exact for T <= 3 (all sets of points are tried). For more queries it is replaced by
the gain of greedily chosen points, which is at least (1 - 1/e) γ_T and at most γ_T. With sums of kernels, as the paper
writes them, the kernel of some pairs is below that of all pairs in the order of positive semi-definite matrices, so
that its γ_T is never larger; §2 assumes k <= 1, and dividing by the number of pairs is a reading of that.
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import combinations, combinations_with_replacement

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.papers.engine.theory.records import Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator
from metabo.papers.engine.theory.verdicts import inequality
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.theory.posteriors import greedy

CHECKS = {"decompositions": "Section 6: information gain of some pairs of inputs and of all"}
DIM, LENGTHSCALE, NOISE = 4, 0.3, 0.01
FEW, MANY = 40, 300
"""Points of a domain: for the exact gain, and for the greedy one."""
LENGTHS = np.array([5, 10, 20, 40, 80])
LONG = 20
"""T from which the repaired version holds."""
DOMAINS = 5
Groups = tuple[tuple[int, ...], ...]
Gain = Callable[[np.ndarray, Groups], np.ndarray]
"""(points (c, d), pairs of inputs) -> gains (k,)."""


def kernel_of(x: Float[np.ndarray, "c d"], groups: Groups, summed: bool) -> Float[np.ndarray, "c c"]:
    """Return the additive kernel of `groups`: their sum, as in §1 and appendix J.3, or their mean, which has k <= 1."""
    return problems.additive(x, groups, LENGTHSCALE) * (len(groups) if summed else 1)


def gains(x: Float[np.ndarray, "c d"], groups: Groups, summed: bool = False) -> Float[np.ndarray, " k"]:
    """Return the greedy information gain of LENGTHS queries under the additive kernel of `groups`."""
    kernel = kernel_of(x, groups, summed)
    return np.asarray(greedy(jnp.asarray(kernel), NOISE, int(LENGTHS[-1]) + 1))[LENGTHS]


def exact(x: Float[np.ndarray, "c d"], groups: Groups, summed: bool = False) -> Float[np.ndarray, " 2"]:
    """Return γ_2 and γ_3, the largest information gain of two and of three queries, repeated points too."""
    k = kernel_of(x, groups, summed)
    one, (a, b, c) = k[0, 0] + NOISE, _triples(len(x))
    product, squares = k[a, b] * k[b, c] * k[a, c], k[a, b] ** 2 + k[b, c] ** 2 + k[a, c] ** 2
    pair, triple = np.max(one**2 - k**2), np.max(one**3 + 2.0 * product - one * squares)
    return 0.5 * np.log([pair / NOISE**2, triple / NOISE**3])


@cache
def _triples(count: int) -> Int[np.ndarray, "3 n"]:
    return np.array(list(combinations_with_replacement(range(count), 3))).T


def decompositions(key: Key[Array, ""], _share: float) -> list[Statement]:
    """Compare, for every number of pairs, the average gain over all sets of that size with the gain of all pairs."""
    rng = generator(key)
    domains = {n: [rng.random((n, DIM)) for _ in range(DOMAINS)] for n in (FEW, MANY)}
    claim = "average greedy gain of sets of m pairs <= that of all pairs"
    title = "Sets of m of the 6 pairs of four inputs have a smaller gain than all pairs"
    made = []
    for summed, version in ((True, "printed"), (False, "reading")):
        few, many = (_averages(domains[n], partial(f, summed=summed)) for n, f in ((FEW, exact), (MANY, gains)))
        exactly = _compared("exact", "average γ_T of sets of m pairs <= that of all pairs, T = 2 and 3", few,
                            np.array([2, 3]))  # fmt: skip
        kernels = "k = Σ_c k_c" if summed else "k = the mean of the k_c, so that k <= 1 in both"
        made.append(statement("Decompositions", f"{title}, {kernels}", "§6",
                              [exactly, _compared("greedy", claim, many, LENGTHS)], version))  # fmt: skip
    late = {m: found[:, LENGTHS >= LONG] for m, found in many.items()}
    return [
        *made,
        statement("Decompositions", f"From T = {LONG} on, k = the mean of the k_c", "§6",
                  [_compared("greedy", claim, late, LENGTHS[LENGTHS >= LONG])], "repaired"),
    ]  # fmt: skip


def _averages(domains: list[np.ndarray], gain: Gain) -> dict[int, Float[np.ndarray, "x k"]]:
    """Return, for every number m of pairs, the gain on each domain, averaged over all sets of m pairs."""
    pairs = tuple(combinations(range(DIM), 2))
    return {
        m: np.stack([np.mean([gain(x, chosen) for chosen in combinations(pairs, m)], axis=0) for x in domains])
        for m in range(1, len(pairs) + 1)
    }


def _compared(name: str, claim: str, found: dict[int, np.ndarray], lengths: np.ndarray) -> StatementPart:
    whole, less, more = found[max(found)], [], []
    for m in sorted(found)[:-1]:
        at = np.broadcast_to(lengths, whole.shape)
        for left, right, into in ((found[m], whole, less), (1.1 * whole, found[m], more)):
            decided = inequality(left, right, T=at)
            decided.numbers["ratios"] = (found[m] / whole).mean(axis=0)
            into.append(cell(decided, pairs=m, of=max(found), dim=DIM))
    return part(name, claim, "inequality", less, control("it is at least 1.1 times that", more))

"""Lemma 5.1 (HE-GP-UCB §5, appendix E): sums of the noise over the iterations of one candidate.

The printed proof loses a factor 2: its union bound sums to 2δ_B (sheet §7.4). ξ_t with 3δ_B inside the logarithm, in
place of 6δ_B, has what the proof needs. The noise has R = 1 throughout: the lemma does not depend on its scale.
"""

import numpy as np
from jaxtyping import Array, Bool, Float, Key

from metabo.methods.elimination.confidence import xi
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import exact_probability, identity, probability

CHECKS = {"lemma51": "Lemma 5.1: sums of the noise"}
RUNS = 20_000
LENGTH = 200
DELTAS = (0.05, 0.5, 0.9, 0.9985)
"""δ_B. The last one is below 1 and above π²/(6√e) = 0.9977, from where √ξ_1 < R for one candidate."""
LAWS = ("normal", "signs")
"""Both are 1-sub-Gaussian: N(0, 1), and ±1 with equal chances."""
ASSIGNMENTS = ((1, "one"), (5, "turns"), (5, "adverse"))
"""|U|, and who gets the next iteration: the only one, each in turn, or the one that is closest to its threshold."""
TERMS = 10**6
"""Terms of the sum over n that are added up; they are proportional to 1/n², so the rest is known."""


def thresholds(length: int, candidates: int, share: float, kind: str) -> Float[np.ndarray, " t"]:
    """Return ξ_t of t = 1..length for R = 1, so that the lemma claims a probability of at least 1 - `share` (δ_B).

    `kind`: "pi2" as printed in Lemma 5.1, "corrected", or "printed", that of Theorem 4.1 (π for π²); δ = 2δ_B.
    """
    return np.asarray(xi(np.arange(1, length + 1), 1.0, candidates, 2.0 * share, kind), dtype=np.float64)


def noises(rng: np.random.Generator, law: str, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Draw 1-sub-Gaussian noise of one of LAWS."""
    return rng.standard_normal(shape) if law == "normal" else 2.0 * rng.integers(0, 2, shape) - 1.0


def crossings(
    noise: Float[np.ndarray, "r t"], candidates: int, rule: str, limits: Float[np.ndarray, "k t"]
) -> Bool[np.ndarray, "k r"]:
    """Tell, for each of k sequences ξ_t, which runs have |Σ_{i in S_t^u} ε_i| > √(ξ_t |S_t^u|) for some t and u.

    Only the candidate that gets iteration t can exceed for the first time at t: ξ_t does not fall. "adverse" looks at
    the past only, as an algorithm does.
    """
    runs_, length = noise.shape
    every = np.arange(runs_)
    sums, counts = np.zeros((runs_, candidates)), np.zeros((runs_, candidates))
    crossed = np.zeros((len(limits), runs_), dtype=bool)
    for t in range(length):
        if rule == "adverse":
            own = np.argmax(np.where(counts > 0, np.abs(sums) / np.sqrt(np.maximum(counts, 1.0)), 1.0), axis=1)
        else:
            own = np.full(runs_, t % candidates)
        sums[every, own] += noise[:, t]
        counts[every, own] += 1.0
        ratio = sums[every, own] ** 2 / counts[every, own]
        crossed |= ratio > limits[:, t, None] * (1.0 + 1e-12)
    return crossed


def union_sum(candidates: int, share: float, kind: str) -> float:
    """Return 2 Σ_{n >= 1} exp(-ξ_n/2), what the proof's union bound allows each candidate."""
    terms = 2.0 * np.exp(-0.5 * thresholds(TERMS, candidates, share, kind))
    return float(terms.sum() + terms[0] / (TERMS + 0.5))


def lemma51(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Lemma 5.1 as printed, with 3δ_B, and with the ξ_t of Theorem 4.1; and the sum of its proof."""
    count, rng = runs(RUNS, share), generator(key)
    sums = {
        (law, *a): noises(rng, law, (count, LENGTH)) for law in LAWS for a in ASSIGNMENTS
    }  # one set of runs for all versions: their thresholds differ only

    def both(kind: str, deltas: tuple[float, ...]) -> list[StatementPart]:
        return [_simulated(sums, kind, deltas), _first(kind, deltas)]

    return [
        statement("Lemma 5.1", "|Σ ε_i| <= √(ξ_t |S_t^u|) for all t and u", "§5, App. E", both("pi2", DELTAS)),
        statement("Lemma 5.1", "The same with 3δ_B inside ξ_t", "§5, App. E", both("corrected", DELTAS), "repaired"),
        statement("Lemma 5.1, Theorem 4.1", "The same with π for π², as Theorem 4.1 prints ξ_t", "§4",
                  both("printed", (0.05, 0.3, 0.45))),
        statement("Lemma 5.1, sum", "The union bound sums to δ_B/|U|", "App. E", [_union("pi2")], "proof step"),
        statement("Lemma 5.1, sum", "With 3δ_B inside ξ_t it does", "App. E", [_union("corrected")], "repaired"),
    ]  # fmt: skip


def _simulated(sums: dict[tuple[str, int, str], np.ndarray], kind: str, deltas: tuple[float, ...]) -> StatementPart:
    cells, less = [], []
    for (law, candidates, rule), noise in sums.items():
        limits = np.stack([thresholds(LENGTH, candidates, d, kind) for d in deltas])
        crossed = crossings(noise, candidates, rule, np.concatenate([limits, 0.25 * limits[:1]]))
        where = {"noise": law, "candidates": candidates, "turns": rule}
        found = [probability(int(c.sum()), len(c), d) for c, d in zip(crossed, (*deltas, deltas[0]), strict=True)]
        cells += [cell(f, **where, delta=d) for f, d in zip(found[:-1], deltas, strict=True)]
        less.append(cell(found[-1], **where, delta=deltas[0]))
    claim = f"P[|Σ ε_i| > √(ξ_t |S_t^u|) for some t <= {LENGTH}, u] <= δ_B"
    return part("simulated", claim, "probability", cells, control("half of the threshold", less))


def _first(kind: str, deltas: tuple[float, ...]) -> StatementPart:
    """The first iteration, |U| = 1 and signs: |ε_1| = 1 exceeds √ξ_1 surely or never."""

    def cells(shrink: float, chosen: tuple[float, ...]) -> list[Cell]:
        first = {d: shrink**2 * float(thresholds(1, 1, d, kind)[0]) for d in chosen}
        return [cell(exact_probability(float(x < 1.0), d), noise="signs", delta=d, xi=x) for d, x in first.items()]

    claim = "P[|ε_1| > √ξ_1] <= δ_B for ε_1 = ±1 and one candidate, exactly"
    return part("first", claim, "probability", cells(1.0, deltas), control("a third of √ξ_1", cells(1 / 3, deltas[:1])))


def _union(kind: str) -> StatementPart:
    def cells(factor: float) -> list[Cell]:
        return [
            cell(identity(union_sum(candidates, d, kind), factor * d / candidates), candidates=candidates, delta=d)
            for candidates in (1, 5)
            for d in DELTAS[:3]
        ]

    return part("sum", "2 Σ_n exp(-ξ_n/(2R²)) = δ_B/|U|", "identity", cells(1.0),
                control("it is a third of that", cells(1 / 3)))  # fmt: skip

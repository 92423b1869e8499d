"""Checks of Theorems 16, 17 and 18 (HyperBO C.2, C.3): coverage of the bounds, printed and repaired, end to end.

Adversarial instances and steps of the proofs are in `metabo.papers.hyperbo.theory.instances` and `...pi_steps`.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import Ruling, least_ratio, probability
from metabo.papers.hyperbo.theory import bounds, instances, pi_steps
from metabo.papers.hyperbo.theory.bounds import TheoremConstants
from metabo.papers.hyperbo.theory.regret import POINTS, Outcome, simulate, simulation, true_gram

CHECKS = {
    "theorem16": "Theorem 16: regret of GP-UCB",
    "theorem17": "Theorem 17: regret of PI",
    "theorem18": "Theorem 18: regret of GP-UCB by the pre-trained model",
}
RUNS = 2000
SHRINK = 50.0
"""The controls divide the bounds by this, at δ = 0.1: the printed ones at N = 10,000, the repaired ones at N = 1e8."""


class TheoremSetting(NamedTuple):
    """One setting: T, N, σ*² and δ."""

    iterations: int
    functions: int
    noise: float
    delta: float


PRINTED = (
    *(TheoremSetting(4, n, noise, delta) for n in (40, 400, 10_000) for noise in (0.1, 1.0) for delta in (0.1, 0.5)),
    TheoremSetting(2, 10_000, 0.01, 0.9),
)
REPAIRED = tuple(
    TheoremSetting(4, n, noise, delta)
    for n in (400, 10_000, 10**6, 10**8)
    for noise in (0.1, 1.0)
    for delta in (0.1, 0.5)
)
"""The repaired theorems need more functions: N > T + 4 ln(4/δ''). With few of them a is so large that the runs say
nothing about the bounds; from a million on they do."""
CONTROL, REPAIRED_CONTROL = (tuple(TheoremSetting(4, n, noise, 0.1) for noise in (0.1, 1.0)) for n in (10_000, 10**8))

Bound = Callable[[TheoremConstants, TheoremSetting, Outcome, bool], np.ndarray]
"""(constants, case, simulated outcome, multisets) -> bound per replicate."""


def _information(case: TheoremSetting, repeats: bool) -> float:
    return float(bounds.max_information(true_gram(), case.noise, bounds.subsets(POINTS, case.iterations, repeats)))


def _bound16(k: TheoremConstants, case: TheoremSetting, got: Outcome, multisets: bool) -> np.ndarray:
    rho = _information(case, multisets)
    bound = bounds.theorem16(k, 1.0, rho, case.iterations, case.noise)
    return np.full(len(got["regret"]), float(bound))


def _bound17(k: TheoremConstants, case: TheoremSetting, got: Outcome, multisets: bool) -> np.ndarray:
    rho = _information(case, multisets)
    return np.asarray(bounds.theorem17(k, 1.0, rho, case.iterations, case.noise, got["gap"]))


def _bound18(k: TheoremConstants, case: TheoremSetting, got: Outcome, _multisets: bool) -> np.ndarray:
    return np.asarray(bounds.theorem18(k, got["c"], got["rho"], case.iterations, case.noise, got["noise"]))


def covered(regret: np.ndarray, bound: np.ndarray, delta: float) -> Ruling:
    """Decide P(regret > bound) <= δ, and report the slack: quantile and largest share of the bound that is used."""
    found = probability(int((~(regret <= bound)).sum()), len(regret), delta, least_ratio(bound, regret))
    slack = {
        "regret": float(np.quantile(regret, 1.0 - delta)),
        "bound": float(np.median(bound)),
        "largest_share": float((regret / bound).max()),
    }
    return Ruling(found.verdict, found.numbers | slack)


def _cells(
    rule: str, bound: Bound, cases: Iterable[TheoremSetting], key: Key[Array, ""], share: float, *,
    fixed: bool = False, repeats: bool = True, shrink: float = 1.0,
) -> list[Cell]:  # fmt: skip
    """Simulate every case. `fixed`: repaired constants, and ρ_T over multisets where inputs may repeat."""
    cells = []
    for place, case in enumerate(cases):
        own = (case.iterations, case.functions, case.delta)
        k = bounds.repaired(*own, POINTS) if fixed else bounds.printed(*own)
        compute = simulation(rule, case.iterations, repeats, fixed and repeats)
        got = simulate(
            compute, jax.random.fold_in(key, place), runs(RUNS, share), iterations=case.iterations,
            functions=case.functions, noise=case.noise, beta=bounds.ucb_beta(k),
        )  # fmt: skip
        found = covered(got["regret"], bound(k, case, got, fixed and repeats) / shrink, case.delta)
        cells.append(cell(found, **case._asdict()))
    return cells


def _coverage(rule: str, bound: Bound, key: Key[Array, ""], share: float) -> tuple[StatementPart, list[StatementPart]]:
    """Return the part of the printed theorem, with its control, and those of the repaired one."""
    keys = jax.random.split(key, 5)
    printed = part(
        "coverage", "P[r_T > bound] <= δ on random functions, ρ_T over sets", "probability",
        _cells(rule, bound, PRINTED, keys[1], share),
        control(f"bound/{SHRINK:.0f}", _cells(rule, bound, CONTROL, keys[0], share, shrink=SHRINK)),
    )  # fmt: skip

    def repaired(name: str, claim: str, place: int, repeats: bool) -> StatementPart:
        same = {"fixed": True, "repeats": repeats}
        shrunk = _cells(rule, bound, REPAIRED_CONTROL, keys[4], share, **same, shrink=SHRINK)
        return part(
            name, claim, "probability", _cells(rule, bound, REPAIRED, keys[place], share, **same),
            control(f"bound/{SHRINK:.0f}, N = 1e8", shrunk),
        )  # fmt: skip

    return printed, [
        repaired("distinct", "P[r_T > bound] <= δ, no input queried twice", 2, False),
        repaired("repeats", "P[r_T > bound] <= δ, inputs may repeat, ρ_T over multisets", 3, True),
    ]


def theorem16(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Theorem 16, its repaired version, and the steps of its proof that fail (I6, I13)."""
    keys = jax.random.split(key, 3)
    printed, repaired = _coverage("ucb", _bound16, keys[0], share)
    many = instances.many_arms(keys[1], 16, share)
    return [
        statement("Theorem 16", "Regret of GP-UCB, Eq. 31 (I7)", "C.2", [printed, many.printed]),
        statement("Theorem 16", "Regret of GP-UCB, Eq. 31", "C.2", [*repaired, many.repaired], "repaired"),
        statement(
            "Theorem 16, cause", "With ζ for all arms the instance is covered (I7)", "C.2", [many.cause], "repaired"
        ),
        *instances.variance_ratio(keys[2], share),
        instances.information_of_sequences(),
    ]


def theorem17(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Theorem 17, its repaired version, long runs, and the chain of its proof that needs a sign (I14)."""
    keys = jax.random.split(key, 4)
    printed, repaired = _coverage("pi", _bound17, keys[0], share)
    many = instances.many_arms(keys[2], 17, share)
    long = pi_steps.long_runs(keys[3], share)
    return [
        statement("Theorem 17", "Regret of PI, Eq. 32 (ρ_T with k*, σ*: I9)", "C.2", [printed, many.printed, long]),
        statement("Theorem 17", "Regret of PI, Eq. 32", "C.2", [*repaired, many.repaired], "repaired"),
        *pi_steps.sign(keys[1], share),
    ]


def theorem18(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Theorem 18, its repaired version, and the last step of its proof (I10)."""
    keys = jax.random.split(key, 2)
    printed, repaired = _coverage("noiseless", _bound18, keys[0], share)
    many = instances.many_arms(keys[1], 18, share)
    return [
        statement("Theorem 18", "Regret of GP-UCB, Eq. 33 (I7)", "C.3", [printed, many.printed]),
        statement("Theorem 18", "Regret of GP-UCB, Eq. 33", "C.3", [*repaired, many.repaired], "repaired"),
        statement(
            "Theorem 18, cause", "With ζ for all arms the instance is covered (I7)", "C.3", [many.cause], "repaired"
        ),
        *instances.last_step(),
    ]

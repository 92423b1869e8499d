"""Theorem 6 (HyperBO §6.2.2), the summary of Theorems 16 and 17: its shape, since O(·) has no constant.

No single run can refute it; what can be refuted are its readings: O(·) as one constant at one δ and N >= 50, for all δ
(I12), for all domains.
"""

import jax
import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import (
    Ruling,
    exact_probability,
    inequality,
    least_ratio,
    probability,
    upper_bound,
)
from metabo.papers.hyperbo.theory import bounds
from metabo.papers.hyperbo.theory.regret import POINTS, simulate, simulation, true_gram
from metabo.papers.hyperbo.theory.selection import failure_probability

CHECKS = {"theorem6": "Theorem 6: shape of the regret bound"}
RUNS, DELTA = 2000, 0.1
FUNCTIONS, ITERATIONS, DEVIATIONS = (50, 100, 400, 1600), (2, 4, 8), (0.01, 0.1, 1.0)
CONSTANT = 25.0
"""The bound of Theorem 16 over the right side of Eq. 24 stays below this at δ = 0.1, N >= 50; as N falls to its limit
T + 4 ln(12/δ) no constant holds, since s grows without limit."""


def theorem6(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check (i) simulated regrets, (ii) the explicit bound, (iii) that it falls with N, and two readings of O(·)."""
    cells, without = _simulated(key, share)
    simulated = part(
        "simulated", "P[R_T > right side of Eq. 24, without O(·)] <= δ for GP-UCB and PI", "probability",
        cells, control("the right side without √(ρ_T/T), σ* = 0.01, T = 2", without),
    )  # fmt: skip
    bounded = f"bound of Theorem 16 <= {CONSTANT:.0f} x right side, δ = 0.1"
    explicit = part(
        "explicit", bounded + ", N >= 50", "inequality", [_explicit((*FUNCTIONS, 10**4, 10**6))],
        control(bounded + ", smallest N > T + 4 ln(12/δ)", [_explicit(None)]),
    )  # fmt: skip
    falls = part(
        "in N", "the bound of Theorem 16 falls with N", "inequality", _falling(0.0),
        control("it falls like N^(-1/2) or faster", _falling(0.5)),
    )  # fmt: skip
    parts = [simulated, explicit, falls]
    return [
        statement("Theorem 6", "Shape of the regret bound, Eq. 24, at δ = 0.1", "§6.2.2", parts, "reading"),
        _in_delta(),
        _in_domain(),
    ]


def _simulated(key: Key[Array, ""], share: float) -> tuple[list[Cell], list[Cell]]:
    cells, without, place = [], [], 0
    for iterations in ITERATIONS:
        sets = bounds.subsets(POINTS, iterations, False)
        for rule in ("ucb", "pi"):
            compute = simulation(rule, iterations)
            for functions in FUNCTIONS:
                k = bounds.printed(iterations, functions, DELTA)
                for sigma in DEVIATIONS:
                    place += 1
                    got = simulate(
                        compute, jax.random.fold_in(key, place), runs(RUNS, share), iterations=iterations,
                        functions=functions, noise=sigma**2, beta=bounds.ucb_beta(k),
                    )  # fmt: skip
                    rho = float(bounds.max_information(true_gram(), sigma**2, sets))
                    where = {"rule": rule, "functions": functions, "iterations": iterations, "sigma": sigma}
                    right = float(bounds.theorem6(iterations, functions, DELTA, rho, sigma**2))
                    cells.append(cell(_above(got["regret"], right), **where))
                    if iterations == 2 and sigma == min(DEVIATIONS):
                        noise_only = float(bounds.theorem6(iterations, functions, DELTA, 0.0, sigma**2))
                        without.append(cell(_above(got["regret"], noise_only), **where))
    return cells, without


def _above(regret: np.ndarray, right: float) -> Ruling:
    # what is not a number is above
    found = probability(int((~(regret <= right)).sum()), len(regret), DELTA, least_ratio(right, regret))
    quantile = float(np.quantile(regret, 1.0 - DELTA))
    return Ruling(found.verdict, found.numbers | {"regret": quantile, "right": right, "ratio": quantile / right})


def _least_functions(iterations: int) -> int:
    """Return the smallest N that the theorems allow."""
    return int(bounds.required_functions(iterations, DELTA)) + 1


def _explicit(among: tuple[int, ...] | None) -> Cell:
    """Compare both sides for independent arms, k* = I, where ρ_T = T/2 ln(1 + 1/σ*²); N in `among`, None: the least."""
    deviations = (*DEVIATIONS, 10.0)
    grid = [(n, t, s) for t in ITERATIONS for n in among or (_least_functions(t),) for s in deviations]
    left, right = zip(*(_sides(t, n, DELTA, s) for n, t, s in grid), strict=True)
    functions, iterations, sigma = map(np.array, zip(*grid, strict=True))
    ratio = np.array(left) / np.array(right)
    return cell(upper_bound(ratio, CONSTANT, functions=functions, iterations=iterations, sigma=sigma))


def _sides(iterations: int, functions: int, delta: float, sigma: float) -> tuple[float, float]:
    rho = 0.5 * iterations * np.log1p(sigma**-2)
    explicit = bounds.theorem16(bounds.printed(iterations, functions, delta), 1.0, rho, iterations, sigma**2)
    return float(explicit), float(bounds.theorem6(iterations, functions, delta, rho, sigma**2))


def _falling(power: float) -> list[Cell]:
    """Compare the bound times N^power at successive N."""
    cells = []
    for iterations in ITERATIONS:
        functions = np.unique(np.geomspace(_least_functions(iterations), 1e6, 200).astype(int))
        values = np.array([_sides(iterations, int(n), DELTA, 0.1)[0] * float(n) ** power for n in functions])
        cells.append(cell(inequality(values[1:], values[:-1], functions=functions[1:]), iterations=iterations))
    return cells


def _in_delta() -> Statement:
    """I12: at fixed N the explicit bound over the right side grows like δ^{-1/2}."""
    deltas = 10.0 ** -np.arange(1.0, 15.0)
    sides = np.array([_sides(4, 10**6, d, 0.1) for d in deltas])
    ratio = sides[:, 0] / sides[:, 1]
    found = upper_bound(ratio, CONSTANT, delta=deltas)
    found.numbers["slope"] = float(np.log10(ratio[-1] / ratio[-2]))
    found.numbers["ratios"] = [float(r) for r in ratio]
    claim = f"bound of Theorem 16 <= {CONSTANT:.0f} x right side for every δ >= 1e-14, N = 1e6, T = 4"
    flat = inequality(ratio, ratio[0], delta=deltas)
    where = {"functions": 10**6, "iterations": 4, "sigma": 0.1}
    uniform = part("in δ", claim, "inequality", [cell(found, **where)],
                   control("<= its value at δ = 0.1", [cell(flat, **where)]))  # fmt: skip
    return statement(
        "Theorem 6, all δ", "One constant for all δ: a hides δ^{-1/2} (I12)", "§6.2.2", [uniform], "reading"
    )


def _in_domain() -> Statement:
    """One constant for all domains: with one query of M independent arms the regret grows like √(2 ln M)."""
    sigma, cells = 0.01, []
    for exponent in (1, 2, 3, 5, 8, 20):
        arms = 10**exponent
        right = _sides(1, 10 * arms + 100, DELTA, sigma)[1]
        found = exact_probability(failure_probability(arms, right), DELTA)
        cells.append(cell(found, arms=arms, functions=10 * arms + 100, right=right))
    far = 10**20
    claim = "P[R_1 > right side of Eq. 24, without O(·)] <= δ on M independent arms, N = 10 M + 100"
    low = exact_probability(failure_probability(far, 0.1 * cells[-1]["setting"]["right"]), DELTA)
    domain = part("in |X|", claim, "probability", cells, control("a tenth of it, M = 1e20", [cell(low, arms=far)]))
    return statement(
        "Theorem 6, all domains", "One constant for all |X|: none, the bound lacks √ln M", "§6.2.2", [domain], "reading"
    )

"""Theorem 6 (HyperBO §6.2.2), the summary of Theorems 16 and 17: its shape, since O(·) has no constant.

No single run can refute it; what can be refuted are its readings: O(·) as one constant at one δ and N >= 50, for all δ
(I12), for all domains.
"""

import jax
import numpy as np
from jaxtyping import Array, Key
from scipy import stats

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
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
from metabo.papers.hyperbo.theory.selection import failure_probability, many_failure

CHECKS = {"theorem6": "Theorem 6: shape of the regret bound"}
RUNS, DELTA = 2000, 0.1
FUNCTIONS, ITERATIONS, DEVIATIONS = (50, 100, 400, 1600), (2, 4, 8), (0.01, 0.1, 1.0)
CONSTANT = 25.0
"""The bound of Theorem 16 over the right side of Eq. 24 stays below this at δ = 0.1, N >= 50; as N falls to its limit
T + 4 ln(12/δ) no constant holds, since s grows without limit."""

CONSTANTS = (1.0, 5.0, CONSTANT)
"""Constants of O(·) that are tried for all domains."""
LIMIT = 10**9
"""N at which the floor under the bound in the noise is compared from above: a is 0.002 there, s 1.001."""


def theorem6(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check two readings of O(·), and of one constant at δ = 0.1: (i) simulated regrets, (ii) the explicit bound.

    (iii) It falls with N, (iv) to a floor that is linear in σ*.
    """
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
        "in N", "the bounds of Theorem 16 and 17 (f̂* = μ*(x*)) fall with N", "inequality", _falling(0.0),
        control("they fall like N^(-1/2) or faster", _falling(0.5)),
    )  # fmt: skip
    parts = [simulated, explicit, falls, *_floor()]
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
    """Compare the bounds of Theorems 16 and 17 times N^power at successive N, on independent arms, σ* = 0.1."""
    cells, noise = [], 0.01
    for iterations in ITERATIONS:
        functions = np.unique(np.geomspace(_least_functions(iterations), 1e6, 200).astype(int))
        rho = 0.5 * iterations * np.log1p(1.0 / noise)
        known = [bounds.printed(iterations, int(n), DELTA) for n in functions]
        both = {
            "GP-UCB": [bounds.theorem16(k, 1.0, rho, iterations, noise) for k in known],
            "PI": [bounds.theorem17(k, 1.0, rho, iterations, noise, 0.0) for k in known],
        }
        for name, values in both.items():
            scaled = np.array(values, float) * functions.astype(float) ** power
            cells.append(
                cell(inequality(scaled[1:], scaled[:-1], functions=functions[1:]), iterations=iterations, rule=name)
            )
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


def _floor() -> list[StatementPart]:
    """Compare the bounds without information, ρ_T = 0, which they grow with, to multiples of σ* that hold for all N.

    They are 2ζσ* for GP-UCB, ζσ* for PI where f̂* is μ*_{τ-1}(x*), √ln(1/δ) σ* for Eq. 24. At N = LIMIT the first is
    at most 3.1ζσ*, so that nothing of another order in σ* is left.
    """
    sigma = np.geomspace(1e-3, 10.0, 81)
    zeta = bounds.printed(2, LIMIT, DELTA).zeta

    def sides(name: str, functions: int, iterations: int) -> tuple[float, np.ndarray]:
        """Return the multiple of σ* and the bound at every σ*."""
        k = bounds.printed(iterations, functions, DELTA)
        if name == "GP-UCB":
            return 2.0 * zeta, np.asarray(bounds.theorem16(k, 1.0, 0.0, iterations, sigma**2))
        if name == "PI":
            return zeta, np.asarray(bounds.theorem17(k, 1.0, 0.0, iterations, sigma**2, 0.0))
        right = bounds.theorem6(iterations, functions, DELTA, 0.0, sigma**2)
        return float(np.sqrt(np.log(1.0 / DELTA))), np.asarray(right)

    def least(power: float) -> list[Cell]:
        cells = []
        for name in ("GP-UCB", "PI", "Eq. 24"):
            grid = [(t, n) for t in ITERATIONS for n in (*FUNCTIONS, 10**6, LIMIT)]
            found = [sides(name, n, t) for t, n in grid]
            # a power below 1 lies above σ* only below 1
            counts = sigma < 1.0 if power < 1.0 else slice(None)
            floor = np.array([multiple * sigma**power for multiple, _ in found])[:, counts]
            above = np.array([bound for _, bound in found])[:, counts]
            functions = np.array([[n] for _, n in grid])
            cells.append(cell(inequality(floor, above, functions=functions, sigma=sigma[counts]), rule=name))
        return cells

    def most(power: float) -> list[Cell]:
        counts = sigma < 1.0 if power > 1.0 else slice(None)
        bound = np.array([sides("GP-UCB", LIMIT, t)[1] for t in ITERATIONS])[:, counts]
        return [cell(inequality(bound, 3.1 * zeta * sigma[counts] ** power, sigma=sigma[counts]), functions=LIMIT)]

    claim = "with ρ_T = 0, N up to 1e9: bounds >= 2ζσ* (GP-UCB), ζσ* (PI, f̂* = μ*(x*)), √ln(1/δ)σ* (Eq. 24)"
    return [
        part("floor in σ*", claim, "inequality", least(1.0),
             control("the same multiples of √σ*, σ* < 1", least(0.5))),
        part("linear in σ*", "with ρ_T = 0 the bound of Theorem 16 is at most 3.1ζσ* at N = 1e9", "inequality",
             most(1.0), control("at most 3.1ζσ*^(3/2), σ* < 1", most(1.5))),
    ]  # fmt: skip


def _in_domain() -> Statement:
    """One constant for all domains: with one query of M independent arms the regret grows like √(2 ln M).

    Any constant K fails from some M on: for every K tried, ln M = -ln(1 - Φ(K right)), from which on the largest value
    of M arms is above K times the right side in more than half of the functions. The right side falls with N, which is
    more than M; that of the least N considered is used.
    """
    sigma, cells = 0.01, []
    for exponent in (1, 2, 3, 5, 8, 20):
        arms = 10**exponent
        right = _sides(1, 10 * arms + 100, DELTA, sigma)[1]
        found = exact_probability(failure_probability(arms, right), DELTA)
        cells.append(cell(found, factor=1.0, arms=arms, functions=10 * arms + 100, right=right))
    right = _sides(1, 10**20, DELTA, sigma)[1]
    tenth = []
    for factor in CONSTANTS:
        log_arms = -float(stats.norm.logsf(factor * right))
        where = {"factor": factor, "log_arms": log_arms, "right": right}
        cells.append(cell(exact_probability(many_failure(log_arms, factor * right), DELTA), **where))
        low = exact_probability(many_failure(log_arms, 0.1 * factor * right), DELTA)
        tenth.append(cell(low, **where))
    claim = "P[R_1 > K x right side of Eq. 24] <= δ on M independent arms, N > M, for K = 1, 5, 25"
    domain = part("in |X|", claim, "probability", cells, control("a tenth of it, at the same M", tenth))
    return statement(
        "Theorem 6, all domains",
        "One constant, at most 25, for all |X| (the bound lacks √ln M)",
        "§6.2.2",
        [domain],
        "reading",
    )

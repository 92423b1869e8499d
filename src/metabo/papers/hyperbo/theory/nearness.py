"""What HyperBO says of the size of its regret bound (abstract, §6.2.2): near zero, and how it runs with T.

"Near zero" has no number in the paper. Here it is a tenth of the prior's standard deviation √c. Three readings, fixed
before any was computed: that the bounds of Theorems 16 and 17 come that near for some T and N that they allow; that
they do at the 100 iterations of the paper's experiments, with as many training functions as one likes; and that
simulated regrets do.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import inequality, least_ratio, probability
from metabo.papers.hyperbo.theory import bounds
from metabo.papers.hyperbo.theory.regret import POINTS, simulate, simulation, true_gram

CHECKS = {"near_zero": "Theorem 6: is the bound near zero, and how does it run with T?"}
NEAR, DELTA = 0.1, 0.1
"""In units of √c, c = 1 the prior's variance; and the probability with which the bounds may fail."""
MANY = 10**18
"""Training functions: as many as one likes. The constants a and s of Theorem 5 are 0 and 1 to a thousandth there, also
after LONG_T iterations."""
PRINTED_T, LONG_T = 100, 10**9
"""Iterations of the paper's experiments, and iterations after which little of the information is left to gain."""
RANK = 5
"""Rank of the kernel in the first reading: a linear model of five features, say. Its information grows like ln T."""
RUNS = 2000
WHERE = "Abstract, §6.2.2"


def near_zero(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the three readings of "near zero", and what §6.2.2 says of the number of iterations T."""
    return [_in_the_limit(), _as_run(), _simulated(key, share), _in_iterations()]


def least_information(
    iterations: int | Int[np.ndarray, " n"], noise: Float[np.ndarray, "..."]
) -> Float[np.ndarray, "..."]:
    """Return ½ ln(1 + T c/σ²), c = 1: no kernel of constant variance c has a smaller ρ_T, and one that is constant has
    this one."""
    return 0.5 * np.log1p(iterations / noise)


def most_information(
    iterations: int | Int[np.ndarray, " n"], noise: Float[np.ndarray, "..."], rank: int
) -> Float[np.ndarray, "..."]:
    """Return (r/2) ln(1 + T c/(rσ²)), c = 1: no kernel of variance c and rank r has a larger ρ_T, since the logarithm
    of the determinant is concave."""
    rank = np.minimum(rank, iterations)
    return 0.5 * rank * np.log1p(iterations / (rank * noise))


def both_bounds(iterations: int, rho: Float[np.ndarray, " n"], noise: Float[np.ndarray, " n"]) -> dict[str, np.ndarray]:
    """Return the bounds of Theorem 16 (GP-UCB) and of Theorem 17 (PI, at f̂* = μ*(x*)) at N = MANY."""
    k = bounds.printed(iterations, MANY, DELTA)
    return {
        "GP-UCB": np.asarray(bounds.theorem16(k, 1.0, rho, iterations, noise)),
        "PI": np.asarray(bounds.theorem17(k, 1.0, rho, iterations, noise, 0.0)),
    }


def _least(iterations: int, limit: float, rank: int | None) -> list[Cell]:
    """Compare the least bound over the noise to a limit: with the most information of a rank, or (None) the least."""
    sigma = np.geomspace(1e-6, 1.0, 121)
    noise = sigma**2
    rho = least_information(iterations, noise) if rank is None else most_information(iterations, noise, rank)
    cells = []
    for rule, values in both_bounds(iterations, rho, noise).items():
        best = int(np.argmin(values))
        found = inequality(values[best], np.asarray(limit), sigma=sigma[best])
        cells.append(cell(found, rule=rule, iterations=iterations, functions=MANY, limit=limit))
    return cells


def _in_the_limit() -> Statement:
    claim = f"for a kernel of rank {RANK} and some noise, the bounds (PI's at f̂* = μ*(x*)) are at most {NEAR:g} √c"
    reached = part(
        "limit", f"{claim} at T = {LONG_T:.0e}, N = {MANY:.0e}", "inequality", _least(LONG_T, NEAR, RANK),
        control(f"{claim} at T = 2", _least(2, NEAR, RANK)),
    )  # fmt: skip
    return statement(
        "Near-zero regret",
        "The regret bound comes near zero for some T and N",
        WHERE,
        [reached],
        "reading",
    )


def _as_run() -> Statement:
    """Whatever the noise: ρ_T is at least ½ ln(1 + c/σ²), so that the reach is c/T or more, and the bounds are at least
    2ζ√(c/T) and ζ√(c/T), 0.52 √c and 0.26 √c. Those of the repaired theorems are larger."""
    claim = "with the least information of any kernel of constant variance, and some noise, the bounds are at most"
    reached = part(
        "as run", f"{claim} {NEAR:g} √c at T = {PRINTED_T}", "inequality", _least(PRINTED_T, NEAR, None),
        control(f"{claim} a tenth of that", _least(PRINTED_T, NEAR / 10, None)),
    )  # fmt: skip
    return statement(
        "Near-zero regret, T = 100",
        "The regret bound comes near zero in the 100 iterations of the experiments",
        WHERE,
        [reached],
        "reading",
    )


def _simulated(key: Key[Array, ""], share: float) -> Statement:
    """Simulate Algorithm 1 as `theorem6` does, with eight queries of ten inputs; the control has two queries."""

    def cells(iterations: int, functions: tuple[int, ...], first: int) -> list[Cell]:
        found = []
        for rule in ("ucb", "pi"):
            compute = simulation(rule, iterations)
            for count in functions:
                k = bounds.printed(iterations, count, DELTA)
                for sigma in (0.01, 0.1):
                    got = simulate(
                        compute, jax.random.fold_in(key, first + len(found)), runs(RUNS, share),
                        iterations=iterations, functions=count, noise=sigma**2, beta=bounds.ucb_beta(k),
                    )["regret"]  # fmt: skip
                    ratios = least_ratio(np.asarray(NEAR), got)
                    ruled = probability(int((~(got <= NEAR)).sum()), len(got), DELTA, ratios)
                    numbers = ruled.numbers | {"mean": float(got.mean())}
                    found.append(cell(ruled._replace(numbers=numbers), rule=rule, functions=count, sigma=sigma))
        return found

    claim = f"P[R_T > {NEAR:g} √c] <= δ = {DELTA:g} on {POINTS} inputs, T ="
    against = control(f"{claim} 2", cells(2, (1600,), 100))
    parts = [part("simulated", f"{claim} 8", "probability", cells(8, (50, 1600), 0), against)]
    return statement("Near-zero regret, simulated", "Simulated regrets are near zero", WHERE, parts, "reading")


def _in_iterations() -> Statement:
    """§6.2.2: T makes Eq. 24 smaller in its second factor and larger in its first, and in the end the bound looser."""
    firsts, seconds, against = [], [], []
    for functions in (50, 400):
        t = np.arange(1, functions - 20)
        first = np.sqrt(t / (functions - t - 1.0))
        firsts.append(cell(inequality(first[:-1], first[1:], iterations=t[1:]), functions=functions))
        against.append(cell(inequality(first[1:], first[:-1], iterations=t[1:]), functions=functions))
    own = []
    for sigma in (0.01, 0.1, 1.0):
        t = np.arange(1, POINTS + 1)
        sets = [bounds.subsets(POINTS, int(n), False) for n in t]
        rho = np.array([float(bounds.max_information(true_gram(), sigma**2, among)) for among in sets])
        second = np.sqrt(rho / t) + sigma
        seconds.append(cell(inequality(second[1:], second[:-1], iterations=t[1:]), sigma=sigma))
        own.append(cell(inequality(np.sqrt(rho[1:]), np.sqrt(rho[:-1]), iterations=t[1:]), sigma=sigma))
    ends, falls = [], []
    for functions in (100, 1000, 10_000):
        for sigma in (0.01, 0.1, 1.0):
            t = np.arange(1, int(functions - 4.0 * np.log(12.0 / DELTA)))
            rho = most_information(t, np.asarray(sigma**2), RANK)
            right = np.array([
                float(bounds.theorem6(int(n), functions, DELTA, jnp.asarray(r), sigma**2))
                for n, r in zip(t, rho, strict=True)
            ])  # fmt: skip
            where = {"functions": functions, "sigma": sigma, "best": int(t[right.argmin()]), "last": int(t[-1])}
            ends.append(cell(inequality(right.min() + 1e-6, right[-1]), **where))
            falls.append(cell(inequality(right[1:], right[:-1], iterations=t[1:]), **where))
    falling = control("it falls", against)
    scaled = control("√ρ_T falls with T", own)
    further = control("it falls with T as far as T may go", falls)
    last = f"rank {RANK}: at the largest T allowed the right side of Eq. 24 is above its least"
    parts = [
        part("first factor", "√(T/(N-T-1)) + √ln(1/δ) rises with T", "inequality", firsts, falling),
        part("second factor", "√(ρ_T/T) + σ* falls with T", "inequality", seconds, scaled),
        part("in the end", last, "inequality", ends, further),
    ]
    title = "More iterations tighten the bound first, and loosen it in the end"
    return statement("Theorem 6, in T", title, "§6.2.2", parts, "reading")

"""Instances and proof steps that decide Theorems 16 to 18 (HyperBO C.2, C.3): many arms, variance ratio, last step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from scipy import stats

from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import exact_probability, inequality, probability
from metabo.papers.hyperbo.theory import bounds, tau
from metabo.papers.hyperbo.theory.bounds import TheoremConstants
from metabo.papers.hyperbo.theory.estimates import variance_slack
from metabo.papers.hyperbo.theory.inequalities import information
from metabo.papers.hyperbo.theory.regret import MARGIN
from metabo.papers.hyperbo.theory.selection import failure_probability

ARMS, FUNCTIONS, NOISE, OWN_NOISE = 100_000, 1_000_000, 1e-4, 1e-6
"""The adversarial instance: independent arms, k* = I, one query; Theorem 18 splits off OWN_NOISE as σ̂²."""
C = 1.01
"""c of Theorem 18 there: above k* = 1 and, but for a probability below 1e-10, above every k̂(x)."""
DELTAS = (0.1, 0.5)
DIRECT = 400
"""Replicates in which all arms are drawn."""
SHRINK = {"printed": 2.0, "repaired": 20.0}
"""The controls divide the bounds by these; the repaired ones, for 100,000 arms, are ten times the printed ones."""


class ManyArms(NamedTuple):
    """What the instance says: parts of the printed and the repaired theorem, and one on the cause (I7)."""

    printed: StatementPart
    repaired: StatementPart
    cause: StatementPart


def arm_bound(theorem: int, k: TheoremConstants) -> float:
    """Return the bound of Theorem 16, or the largest that Theorem 18 can have (k̂ <= c), on the instance."""
    if theorem == 16:
        return float(bounds.theorem16(k, 1.0, 0.5 * np.log1p(1.0 / NOISE), 1, NOISE))
    return float(bounds.theorem18(k, C, 0.5 * np.log1p(C / OWN_NOISE), 1, NOISE, OWN_NOISE))


def many_arms(key: Key[Array, ""], theorem: int, share: float) -> ManyArms:
    """Decide a theorem on independent arms: by drawing all arms and, for 16 and 18, exactly.

    With one query GP-UCB chooses the arm before anything is seen of f, so r_1 = max f - f(x_1) is at most B with
    probability ∫ φ(z) Φ(z + B)^{M-1} dz, as in `selection.failure_probability`. PI's target and bound depend on f:
    with one query η has f̂*/√(k* + σ*²) >= max f/√(k* + σ*²), so that only f(x_1) is left to exceed it. Theorem 17 is
    immune there by construction, and the instance does not count towards what its bound can be divided by.
    """
    printed = {delta: bounds.printed(1, FUNCTIONS, delta) for delta in DELTAS}
    fixed = {delta: bounds.repaired(1, FUNCTIONS, delta, ARMS) for delta in DELTAS}
    # the printed constants but for ζ, which holds at all arms
    union = {d: k._replace(zeta=float(np.sqrt(2.0 * np.log(3.0 * ARMS / d)))) for d, k in printed.items()}

    def exact(chosen: dict[float, TheoremConstants], shrink: float = 1.0) -> list[Cell]:
        cells = []
        for delta, k in chosen.items() if theorem != 17 else ():
            bound = arm_bound(theorem, k) / shrink
            found = exact_probability(failure_probability(ARMS, bound), delta)
            cells.append(cell(found, delta=delta, arms=ARMS, functions=FUNCTIONS, bound=bound, method="quadrature"))
        return cells

    claim = f"P[r_1 > bound] <= δ on {ARMS:,} independent arms, T = 1"
    claim += ", where the bound is immune by construction" if theorem == 17 else ""
    versions = {"printed": printed, "repaired": fixed}
    cells, shrunk = _direct(key, theorem, versions, runs(DIRECT, share))

    def whole(name: str) -> StatementPart:
        chosen, by = versions[name], SHRINK[name]
        against = control(f"bound/{by:.0f}", [*exact(chosen, by), *shrunk[name]])
        return part("many arms", claim, "probability", [*exact(chosen), *cells[name]], against)

    one = control("the same with ζ = √(2 ln(3/δ)), as printed", exact(printed))
    cause = part("many arms", claim + ", ζ = √(2 ln(3M/δ))", "probability", exact(union), one)
    return ManyArms(whole("printed"), whole("repaired"), cause)


def _direct(
    key: Key[Array, ""], theorem: int, versions: dict[str, dict[float, TheoremConstants]], count: int
) -> tuple[dict[str, list[Cell]], dict[str, list[Cell]]]:
    """Draw û, the diagonal of V̂ and f of all arms, query the arm that the rule chooses, and count violations.

    Returns the cells of every version, of its bound and of its bound divided by SHRINK.
    """
    rng, total = generator(key), 1.0 + NOISE
    ratios: dict[tuple[str, float], list[float]] = {
        (version, delta): [] for version, chosen in versions.items() for delta in chosen
    }
    for _ in range(count):
        mean = np.sqrt(total / FUNCTIONS) * rng.standard_normal(ARMS)
        variance = total / FUNCTIONS * rng.chisquare(FUNCTIONS - 1, ARMS)
        f = rng.standard_normal(ARMS)
        for (version, delta), found in ratios.items():
            arm, bound = _query(theorem, versions[version][delta], mean, variance, float(f.max()))
            regret = float(f.max() - f[arm])
            found.append(bound / regret if regret > 0 else np.inf)
    where = {"arms": ARMS, "functions": FUNCTIONS, "method": "all arms drawn"}

    def cells(version: str, shrink: float) -> list[Cell]:
        found = {delta: np.array(ratios[version, delta]) / shrink for delta in versions[version]}
        seen = {delta: None if theorem == 17 else r for delta, r in found.items()}
        return [
            cell(probability(int((~(r >= 1.0)).sum()), count, d, seen[d]), delta=d, **where) for d, r in found.items()
        ]

    return {v: cells(v, 1.0) for v in versions}, {v: cells(v, SHRINK[v]) for v in versions}


def _query(theorem: int, k: TheoremConstants, mean: np.ndarray, variance: np.ndarray, top: float) -> tuple[int, float]:
    """Return the arm that the theorem's rule queries first and its bound; `top` is max f."""
    if theorem == 17:
        target = top + MARGIN
        gap, rho = target / np.sqrt(1.0 + NOISE), 0.5 * np.log1p(1.0 / NOISE)
        bound = float(bounds.theorem17(k, 1.0, rho, 1, NOISE, gap))
        return int(np.argmax((mean - target) / np.sqrt(variance))), bound
    if theorem == 16:
        spread, bound = variance, arm_bound(16, k)
    else:
        spread = variance - OWN_NOISE
        rho = 0.5 * np.log1p(spread.max() / OWN_NOISE)
        bound = float(bounds.theorem18(k, C, rho, 1, NOISE, OWN_NOISE))
    return int(np.argmax(mean + bounds.ucb_beta(k) * np.sqrt(spread))), bound


STEPS = ((200, 100, 0.5), (200, 100, 0.1), (150, 50, 0.1), (1000, 100, 0.1), (60, 20, 0.1))
"""(N, T, δ) of the variance-ratio step."""


def variance_ratio(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check λ̂(x_τ) < hλ(x_τ) (I6, I8): at a fixed input and τ = 1, exactly; at x_τ, and at GP-UCB's first choice.

    At τ = 1, λ̂²/λ² is χ²_{N-1}/N at a fixed input. τ is early where an arm of slightly less variance than all others,
    and of a higher mean, is queried early and no arm twice (`tau.ratios`).
    """
    names = ("printed fixed", "printed at τ", "fixed", "chosen", "union")
    cells, bare = ({name: [] for name in names} for _ in range(2))
    for place, (functions, iterations, delta) in enumerate(STEPS):
        arms = min(functions - 1, iterations + 20)
        where = {"functions": functions, "iterations": iterations, "delta": delta, "arms": arms}
        ratio = _chosen_ratio(jax.random.fold_in(key, place), functions, iterations, delta, arms, runs(4000, share))
        early = tau.ratios(jax.random.fold_in(key, 10 + place), functions, iterations, delta, arms, runs(1000, share))
        limit, law = delta / 3.0, stats.chi2(functions - 1)
        high, wide = (_upper(float(variance_slack(iterations, functions, d))) for d in (limit, limit / arms))
        for name, factor, degrees in (
            ("printed fixed", high, iterations), ("fixed", high, 1),
            ("printed at τ", high, iterations), ("chosen", high, 1), ("union", wide, 1),
        ):  # fmt: skip
            for found, above in ((cells, factor), (bare, 1.0)):
                scaled = above * (functions - degrees)
                if name.endswith("fixed"):
                    decided = exact_probability(float(law.sf(scaled)), limit)
                else:
                    drawn = early if name == "printed at τ" else ratio
                    decided = probability(int((~(drawn * functions < scaled)).sum()), len(drawn), limit)
                found[name].append(cell(decided, **where))

    def step(id: str, title: str, version: str, *chosen: str) -> Statement:
        parts = []
        for name in chosen:
            at = {"fixed": "fixed input", "τ": "x_τ of GP-UCB"}.get(name.split()[-1], "GP-UCB's input")
            against = control("h² without its factor 1+2√b+2b", bare[name])
            x = "x_τ" if name.endswith("τ") else "x_1"
            parts.append(part(at, f"P[λ̂({x}) >= hλ({x})] <= δ/3", "probability", cells[name], against))
        return statement(id, title, "C.2", parts, version)

    return [
        step("Theorems 16-17, h", "h² = (1+2√b+2b)(N-T)/N (I6)", "proof step", "printed fixed", "printed at τ"),
        step("Theorems 16-17, h", "h² = (1+2√b+2b)(N-1)/N, fixed input", "repaired", "fixed"),
        step("Theorems 16-17, h chosen", "(N-1)/N at the chosen input, δ/3 once (I8)", "proof step", "chosen"),
        step("Theorems 16-17, h chosen", "(N-1)/N at the chosen input, δ/(3M) for each", "repaired", "union"),
    ]


def _upper(b: float) -> float:
    return 1.0 + 2.0 * np.sqrt(b) + 2.0 * b


def _chosen_ratio(
    key: Key[Array, ""], functions: int, iterations: int, delta: float, arms: int, count: int
) -> np.ndarray:
    """Draw λ̂²/λ² (count,) at the first input that GP-UCB (Eq. 31) chooses among independent arms."""
    rng = generator(key)
    variance = rng.chisquare(functions - 1, (count, arms)) / functions
    mean = rng.standard_normal((count, arms)) / np.sqrt(functions)
    beta = bounds.ucb_beta(bounds.printed(iterations, functions, delta))
    chosen = np.argmax(mean + beta * np.sqrt(variance), axis=1)
    return variance[np.arange(count), chosen]


def information_of_sequences() -> Statement:
    """Check that no sequence of T inputs has more information than ρ_T over sets (I13): k* = diag(1, 1e-9), T = 2."""
    gram = jnp.diag(jnp.array([1.0, 1e-9]))
    sets, multisets = (float(bounds.max_information(gram, 1.0, bounds.subsets(2, 2, r))) for r in (False, True))
    once = float(information(gram[:1, :1], 1.0))
    where = {"variances": [1.0, 1e-9], "noise": 1.0, "iterations": 2}
    over = part(
        "repeats", "I(f; y) of any sequence <= max over sets |A| = T", "inequality",
        [cell(inequality(multisets, sets), **where)],
        control("<= half of the information of one query", [cell(inequality(multisets, 0.5 * once), **where)]),
    )  # fmt: skip
    return statement(
        "Theorems 16-18, ρ_T", "Over sets, but sequences may repeat inputs (I13)", "C.2", [over], "proof step"
    )


def last_step() -> list[Statement]:
    """Check the last step of Theorem 18 (I10): Σ√(k̂ + σ̂²) - Σ√k̂ over x*, x_τ is at most σ̂, or 2σ̂."""
    claim = "√(k̂(x*)+σ̂²) - √k̂(x*) + √(k̂(x_τ)+σ̂²) - √k̂(x_τ) <= "
    first, second = np.meshgrid(np.linspace(0.0, 4.0, 401), np.linspace(0.0, 4.0, 401), indexing="ij")
    lost = sum(np.sqrt(k + 1.0) - np.sqrt(k) for k in (first, second))

    def at_most(limit: float, least: float = 0.0) -> list[Cell]:
        kept = (first >= least) & (second >= least)
        return [cell(inequality(lost[kept], limit, k_best=first[kept], k_chosen=second[kept]))]

    once = part("grid", claim + "σ̂", "inequality", at_most(1.0), control("<= σ̂/2", at_most(0.5)))
    twice = part("grid", claim + "2σ̂", "inequality", at_most(2.0), control("<= σ̂, as printed", at_most(1.0)))
    large = part(
        "large k̂", claim + "σ̂ for k̂ >= 9σ̂²/16", "inequality", at_most(1.0, 9.0 / 16.0),
        control("the same for k̂ >= σ̂²/2", at_most(1.0, 0.5)),
    )  # fmt: skip
    return [
        statement("Theorem 18, last step", "βσ̂ once (I10)", "C.3", [once], "proof step"),
        statement("Theorem 18, last step", "2βσ̂, or βσ̂ if k̂ >= 9σ̂²/16", "C.3", [twice, large], "repaired"),
    ]

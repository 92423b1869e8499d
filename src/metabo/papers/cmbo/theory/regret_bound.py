"""Theorem 3.2 (cm-BO §3, appendix 1.2) on runs of Algorithm 1 with GP-UCB: the regret bound, printed and repaired.

The printed theorem has the printed β_τ, no condition but ξ > 0, and no probability, so it is tested at every query.
Readings of it, with the corrected β_τ, are tested where Lemmas 4 and 5 hold. At ξ = β_τ what is left of the bound is
2β_τ√k_τ(x_τ), which follows from Lemma 4 at x* and x_τ and the choice of x_τ: there that part holds by construction.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Array, Key

from metabo.papers.cmbo.theory import bounds
from metabo.papers.cmbo.theory.bounds import DELTA, RegretTerms, printed
from metabo.papers.cmbo.theory.traces import (
    APART,
    METRICS,
    OFFSETS,
    SourceTasks,
    draw_sources,
    equal_grid,
    prototypes,
    run,
)
from metabo.papers.engine.theory.estimated import mean, within
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, least_ratio, probability, upper_bound

CHECKS = {"theorem32": "Theorem 3.2: bound on the instantaneous regret"}
POINTS, OBSERVED, QUERIES, RUNS = 40, 50, 20, 300
PAPER_XI = 3.0
COEFFICIENTS = {"β/2": 0.5, "β": 1.0, "2β": 2.0, "3": None}
"""ξ: a multiple of β_τ, or PAPER_XI."""
SHRINK = 100.0
"""The controls divide the last term of the bound by this and leave out the others."""

Found = dict[str, RegretTerms]
Bound = Callable[[RegretTerms], np.ndarray]


def simulated(
    rng: np.random.Generator,
    sources: SourceTasks,
    which: str,
    *names: str,
    distance: str = "jeffreys",
    turned: bool = False,
    power: int = 1,
) -> Found:
    """Run rules of COEFFICIENTS on the same sources: terms (T, r) of all queries, β "printed" or "corrected".

    `distance`, `turned`: of the weights (`traces.run`); `power` of |C| in the centres' covariance.
    """
    centres = prototypes(sources.mean, sources.cov, sources.owners, power)
    truth, ideal, found = sources.truth, sources.ideal, {}
    for name in names:
        rule = bounds.rule(truth, which, COEFFICIENTS[name], PAPER_XI)
        steps = run(rng, centres, truth, QUERIES, rule, distance, turned)
        own = [bounds.terms(step, sources, which, ideal, truth, power) for step in steps]
        found[name] = RegretTerms(*(np.stack(values) for values in zip(*own, strict=True)))
    return found


def last_term(t: RegretTerms) -> np.ndarray:
    """Return the last term of Eq. 9 divided by SHRINK."""
    return t.xi / t.beta * (t.xi + t.beta) * t.spread_chosen / SHRINK


def holds(t: RegretTerms, bound: Bound) -> Ruling:
    """Decide r_τ <= bound at the queries at which Lemmas 4 and 5 hold; with how often the bound is negative."""
    chosen, value = t.within & t.close, bound(t)
    found = upper_bound(t.regret[chosen], value[chosen], query=t.steps[chosen] + 1)
    return Ruling(found.verdict, found.numbers | {"left_out": int((~chosen).sum())} | _size(t, value))


def always(t: RegretTerms, bound: Bound) -> Ruling:
    """Decide r_τ <= bound at every query, whether the lemmas hold or not."""
    value = bound(t)
    found = upper_bound(t.regret, value, query=t.steps + 1)
    return Ruling(found.verdict, found.numbers | {"lemma4_holds": float(t.within.mean())} | _size(t, value))


def covers(t: RegretTerms, bound: Bound) -> Ruling:
    """Decide P[r_τ > bound at some query] <= δ/2, the probability that Lemmas 4 and 5 leave."""
    value = bound(t)
    bad = ~(t.regret <= value).all(axis=0)
    found = probability(int(bad.sum()), len(bad), DELTA / 2.0, least_ratio(value.T, t.regret.T))
    return Ruling(found.verdict, found.numbers | {"largest_share": _share(t, value)} | _size(t, value))


def _size(t: RegretTerms, value: np.ndarray) -> dict[str, float]:
    """Return the median of bound/regret where there is regret, the share of negative bounds, the median β, and the
    share of the runs in which Lemma 4 fails at some query, weights that follow the data included."""
    some = t.regret > 0
    ratio = float(np.median(value[some] / t.regret[some])) if some.any() else np.inf
    failed = float((~t.within).any(axis=0).mean())
    negative, beta = float((value < 0).mean()), float(np.median(t.beta))
    return {"looseness": ratio, "negative": negative, "beta": beta, "lemma4_fails": failed}


def _share(t: RegretTerms, value: np.ndarray) -> float:
    """Return the largest regret as a share of its bound, where that is positive (0 if it never is)."""
    return float(np.max(np.where(value > 0, t.regret / np.where(value > 0, value, 1.0), 0.0)))


def moved(t: RegretTerms, equal: RegretTerms) -> Ruling:
    """Decide E ln(bound/bound with equal weights) <= 0 at the last query; of the numbers, factors of α_τ and Σζ'_i, and
    the median of bound/regret: the statement compares two bounds, whatever they say of the regret."""
    found = within(mean(np.log(printed(t)[-1] / printed(equal)[-1])), -np.inf, 0.0)
    factors = {"alpha": t.alpha[-1] / equal.alpha[-1], "squares": t.printed_omega[-1] / equal.printed_omega[-1]}
    factors = {name: float(np.median(v)) for name, v in factors.items()}
    return Ruling(found.verdict, found.numbers | factors | {"looseness": _size(t, printed(t))["looseness"]})


def theorem32(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the printed bound at every query, readings of it given the lemmas, its coverage with either β, its repaired
    version, and the direct bound; the same for the other reading of the centre; and how the weights move the bound."""
    rng = generator(key)
    sources = draw_sources(rng, runs(RUNS, share), OBSERVED, equal_grid(POINTS))
    found = {which: simulated(rng, sources, which, *COEFFICIENTS) for which in ("printed", "corrected")}
    found["average"] = simulated(rng, sources, "corrected", "β", "2β", power=2)

    def cells(decide: Callable[[RegretTerms, Bound], Ruling], which: str, bound: Bound, *names: str) -> list[Cell]:
        beta = "printed" if which == "printed" else "corrected"
        return [cell(decide(found[which][name], bound), xi=name, beta_is=beta) for name in names]

    def given(name: str, *names: str, which: str = "corrected") -> StatementPart:
        return part(name, f"r_τ <= bound wherever Lemmas 4 and 5 hold, {name}", "inequality",
                    cells(holds, which, printed, *names),
                    control("the same with a hundredth of the last term alone",
                            cells(holds, which, last_term, *names)))  # fmt: skip

    def everywhere(name: str) -> StatementPart:
        return part(f"ξ = {name}", f"r_τ <= bound at every query, printed β_τ, ξ = {name}", "inequality",
                    cells(always, "printed", printed, name),
                    control("the same with a hundredth of the last term alone",
                            cells(always, "printed", last_term, name)))  # fmt: skip

    def covered(which: str, bound: Bound, *names: str) -> StatementPart:
        at = " or ".join(names)
        return part(f"coverage, ξ = {at}", f"P[r_τ > bound at some τ <= 20] <= δ/2, ξ = {at}", "probability",
                    cells(covers, which, bound, *names),
                    control("the same with a hundredth of the last term alone",
                            cells(covers, which, last_term, *names)))  # fmt: skip

    def apart(version: str, title: str, where: str, made: Callable[[str], StatementPart]) -> list[Statement]:
        """One statement for each ξ: at ξ = β the terms with the source tasks vanish and are not tested, and given
        Lemma 4 the rest holds by construction."""
        return [
            statement(f"Theorem 3.2{where}, {at}", f"{title}, {at}_τ", "§3", [made(name)], version)
            for name, at in (("β", "ξ = β"), ("2β", "ξ = 2β"))
        ]

    average = "The bound with Σk/|C|² as the covariance of the centres"
    repairs = "Corrected β_τ, |X_τ| for n_i and τ-1, noise of y_τ, 2ξ√k_τ(x_τ)"
    return [
        statement("Theorem 3.2", "Regret r_τ <= δ_τ(...) + (ξ/β)(ξ + β)√k_τ(x_τ) for every ξ > 0", "§3",
                  [everywhere(name) for name in COEFFICIENTS]),
        *apart("reading", "The bound with the corrected β_τ", "", lambda name: given(f"ξ = {name}", name)),
        statement("Theorem 3.2, ξ < β", "The bound with the corrected β_τ, ξ = β_τ/2 and the paper's 3, which is less",
                  "§3", [given("ξ < β", "β/2", "3")], "reading"),
        *apart("reading", average, ", centre", lambda name: given(f"ξ = {name}", name, which="average")),
        statement("Theorem 3.2, coverage",
                  "The bound where ξ >= β_τ, with the printed β_τ, holds with probability 1 - δ/2",
                  "§3", [covered("printed", printed, name) for name in ("β", "2β", "3")], "reading"),
        *apart("repaired", repairs, "", lambda name: covered("corrected", bounds.repaired, name)),
        statement("Theorem 3.2, direct", "r_τ <= (ξ + β)√k_τ(x_τ) + max(β - ξ, 0)√k_τ(x*)", "§3",
                  [covered("corrected", bounds.direct, *COEFFICIENTS)], "ours"),
        *_weights(rng, runs(RUNS, share)),
    ]  # fmt: skip


def shifts(rng: np.random.Generator, count: int, offset: float) -> dict[str, tuple[Ruling, Ruling]]:
    """Return how adaptive and opposite weights move the bound, ξ = 2β, from that with equal weights, for each distance.

    All run on the same sources; `offset` says how much their clusters differ (`traces.draw_sources`).
    """
    sources = draw_sources(rng, count, OBSERVED, equal_grid(POINTS), offset=offset)

    def bound(distance: str, turned: bool = False) -> RegretTerms:
        return simulated(rng, sources, "corrected", "2β", distance=distance, turned=turned)["2β"]

    equal = bound("none")
    return {name: (moved(bound(name), equal), moved(bound(name, turned=True), equal)) for name in METRICS}


def _weights(rng: np.random.Generator, count: int) -> list[Statement]:
    """The bound at the last query: adaptive and opposite weights against equal ones, for each of OFFSETS."""
    found = {offset: shifts(rng, count, offset) for offset in OFFSETS}

    def made(*offsets: float) -> StatementPart:
        own, against = (
            [cell(found[offset][name][place], xi="2β", distance=name, offset=offset)
             for offset in offsets for name in METRICS]
            for place in (0, 1)
        )  # fmt: skip
        claim = f"E ln(bound/bound with equal weights) < 0 at τ = {QUERIES}, ξ = 2β"
        return part("bound", claim, "expectation", own, control("the same with the opposite weights, w ∝ 1/w", against))

    return [
        statement("Theorem 3.2, weights", "Weights that adapt make the bound tighter than equal weights", "App. 1.2",
                  [made(*OFFSETS)], "reading"),
        statement("Theorem 3.2, weights", "Adaptive weights make the bound tighter if clusters differ by 2‖f‖ or more",
                  "App. 1.2", [made(*(offset for offset in OFFSETS if offset >= APART))], "repaired"),
    ]  # fmt: skip

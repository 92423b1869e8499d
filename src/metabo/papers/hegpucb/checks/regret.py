"""Checks of HE-GP-UCB on its four problems (hegpucb §7): orders of regret, and the study's protocol.

Runs of the study are paired by seed, and seeds are the draws: Student's t for means, exact intervals for shares. What
at least one of several problems must show is tested at the level of all together (Bonferroni): by chance, one of four
95 % intervals lies on the stated side of 0 in nearly one study of ten. `problem`: "lengthscale", "period",
"decomposition" or "mean"; the figure's profile says which settings.
"""

from collections.abc import Sequence

from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    LEVEL,
    MARGIN,
    Finding,
    about_equal,
    fact,
    known,
    order,
    similar,
    untestable,
)
from metabo.papers.hegpucb.paired import (
    LAST,
    LATE,
    OURS,
    POINTS,
    THEOREM,
    WORDS,
    absent,
    at_the_end,
    by_seed,
    effect_of,
    gap_of,
    iteration_at,
    runs_of,
)
from metabo.papers.hegpucb.studies import summaries

PROBLEMS = ("lengthscale", "period", "decomposition", "mean")


def seeds_order(
    evidence: Evidence,
    problem: str,
    lower: Sequence[str],
    than: Sequence[str],
    measures: Sequence[str] = ("cumulative",),
    moment: str = LAST,
) -> Finding:
    """ORD: each of `lower` has less regret than each of `than` at the iteration that `moment` means, paired by seed."""
    runs = runs_of(evidence, problem)
    number = iteration_at(moment, runs)
    ends = runs[runs["iteration"] == number]
    found: list[Finding] = []
    for measure in measures:
        wide = by_seed(ends, measure)
        for a, b in ((a, b) for a in lower for b in than if {a, b} <= set(wide)):
            gap = gap_of(wide, a, b, [2, len(found)])
            label = f"{WORDS[a]} minus {WORDS[b]}, {problem}, {measure} regret, iteration {number}:"
            effect = effect_of(wide, b, measure)
            found.append(order(label, gap, unit=f"{measure} regret", effect=effect, clusters=len(wide)))
    return together([*found, *absent([*lower, *than], ends["method"], problem)], "comparisons")


def beats_somewhere(
    evidence: Evidence, other: str, measure: str = "cumulative", of_theorem: Sequence[str] = ()
) -> Finding:
    """ORD: in at least one problem, HE-GP-UCB has less regret than `other` at the last iteration, paired by seed.

    Intervals of level 1 - 0.05/n for n problems. The sign alone is no evidence: noise gives it in some problem.
    `of_theorem`: problems in which β is that of the theorems, whatever the figure's profile.
    """
    under = {problem: THEOREM for problem in of_theorem}
    panels = {problem: at_the_end(runs_of(evidence, problem, under.get(problem, ""))) for problem in PROBLEMS}
    panels = {problem: by_seed(ends, measure) for problem, ends in panels.items() if len(ends)}
    panels = {problem: wide for problem, wide in panels.items() if {OURS, other} <= set(wide)}
    if not panels:
        return untestable(f"no comparison with {WORDS[other]}")
    level = 1 - LEVEL / len(panels)
    found = []
    for place, (problem, wide) in enumerate(panels.items()):
        gap = gap_of(wide, OURS, other, [3, place], level)
        label = f"HE-GP-UCB minus {WORDS[other]}, {problem}, at level {level:.4g}:"
        effect = effect_of(wide, other, measure)
        found.append(order(label, gap, unit=f"{measure} regret", effect=effect, clusters=len(wide), level=level))
    return any_of(found, "problems")


def nearly_equal(evidence: Evidence, most: float = 0.2, measures: Sequence[str] = summaries.QUANTITIES) -> Finding:
    """About equal: HE-GP-UCB and A-GP-UCB are apart by at most a share `most` of MLE's regret, in each measure."""
    ends = at_the_end(runs_of(evidence, "lengthscale"))
    if lost := absent([OURS, "a_gp_ucb", "mle"], ends["method"], "lengthscale"):
        return together(lost)
    found = []
    for place, measure in enumerate(measures):
        wide = by_seed(ends, measure)
        gap, limit = gap_of(wide, OURS, "a_gp_ucb", [4, place]), most * float(wide["mle"].mean())
        label = f"HE-GP-UCB minus A-GP-UCB, {measure} regret ({most:.0%} of MLE's allowed):"
        found.append(about_equal(label, gap, limit, f"{measure} regret", len(wide)))
    return together(found, "measures")


def catch_up(evidence: Evidence, others: Sequence[str], measure: str = "simple") -> Finding:
    """Similar, or better: at the later iteration of panel (c), each of `others` has no more regret than HE-GP-UCB.

    Not worse by more than MARGIN of the regret of random points, paired by seed.
    """
    runs = runs_of(evidence, "decomposition")
    late = iteration_at(LATE, runs)
    wide = by_seed(runs[runs["iteration"] == late], measure)
    limit = MARGIN * float(wide[POINTS].mean()) if POINTS in wide else 0.0
    found: list[Finding] = []
    for other in [name for name in others if {name, OURS} <= set(wide)]:
        label = f"{WORDS[other]} minus HE-GP-UCB at iteration {late}:"
        gap = gap_of(wide, other, OURS, [7, len(found)])
        found.append(similar(label, gap, limit, unit=f"{measure} regret", clusters=len(wide)))
    return together([*found, *absent([OURS, *others], wide.columns, "decomposition")], "comparisons")


def not_additive(evidence: Evidence) -> Finding:
    """The mixed second derivative in inputs 1 and 2 is not zero, and input 3 has no effect."""
    rows = evidence.table("fact")
    mixed, third = float(rows["mixed"].abs().max()), float(rows["third"].abs().max())
    said = f"largest mixed derivative in inputs 1 and 2 {mixed:.3g}, largest change with input 3 {third:.3g}"
    return fact(said, mixed > 1e-3 and third < 1e-9, mixed, "mixed derivative")


def protocol(evidence: Evidence, runs: dict[str, int], iterations: dict[str, int]) -> Finding:
    """Numbers of seeds and of iterations are the stated ones in every problem."""
    rows = evidence.table("ending").drop_duplicates("problem").set_index("problem")
    found = []
    for problem in runs:
        if problem not in rows.index:
            found.append(untestable(f"{problem} was not run"))
            continue
        seeds, last = int(rows.at[problem, "runs"]), int(rows.at[problem, "iteration"])
        said = f"{problem}: {seeds} seeds, {last} iterations; stated {runs[problem]} and {iterations[problem]}"
        found.append(fact(said, (seeds, last) == (runs[problem], iterations[problem]), known(seeds), "seeds"))
    return together(found, "problems")

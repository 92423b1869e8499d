"""Checks of HE-GP-UCB on its four problems (hegpucb §7): orders of regret, chosen candidates, what is dropped.

What one of several problems is to show is tested at the level of all together (Bonferroni): of four intervals of 95 %,
one lies on the stated side of 0 by chance in nearly one study of ten.

Orders are paired by seed, with the study's own runs; the rest reads the figure's numbers. `problem`: "lengthscale",
"period", "decomposition" or "mean"; the figure's profile says which settings.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from metabo.metrics import Difference, paired_difference
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    LEVEL,
    MARGIN,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    equivalent,
    interval,
    known,
    order,
    ordered,
    share,
    together,
    untestable,
)

STUDY = "hegpucb_runs"
WORDS = {
    "he_gp_ucb": "HE-GP-UCB", "a_gp_ucb": "A-GP-UCB", "expected_ucb": "ExpectedUCB", "mle": "MLE", "gp_ucb": "GP-UCB",
    "uniform": "random points",
}  # fmt: skip
OURS, POINTS = "he_gp_ucb", "uniform"
PROBLEMS = ("lengthscale", "period", "decomposition", "mean")
RANKS = (REPLICATED, WEAK, FAILED)
"""Of several problems, one of which is to show something: the best first."""


def _runs(evidence: Evidence, problem: str) -> pd.DataFrame:
    runs = evidence.studies[STUDY]["run"]
    profile = evidence.parameters.get("profile", "plain")
    return runs[(runs["profile"] == profile) & (runs["problem"] == problem)]


def seeds_order(
    evidence: Evidence,
    problem: str,
    lower: Sequence[str],
    than: Sequence[str],
    measures: Sequence[str] = ("cumulative",),
    at: int | None = None,
) -> Finding:
    """ORD: each of `lower` has less regret than each of `than` at iteration `at` (the last), paired by seed."""
    runs = _runs(evidence, problem)
    last = int(runs["iteration"].max())
    ends = runs[runs["iteration"] == min(at or last, last)]
    found = []
    for measure in measures:
        for a in lower:
            for b in than:
                if gap := _gap(ends, a, b, measure, [2, len(found)]):
                    label = f"{WORDS[a]} minus {WORDS[b]}, {problem}, iteration {min(at or last, last)}:"
                    found.append(order(label, gap, unit=f"{measure} regret"))
    there = set(ends["method"])
    lost = [untestable(f"{WORDS[name]} was not run on {problem}") for name in (*lower, *than) if name not in there]
    return together([*found, *lost], "comparisons", 1)


def _gap(ends: pd.DataFrame, a: str, b: str, measure: str, key: list[int], level: float = 0.95) -> Difference | None:
    """Return regret of `a` minus that of `b` at one iteration, paired by seed; None if one of them was not run."""
    wide = ends.pivot(index="seed", columns="method", values=measure)
    if not {a, b} <= set(wide):
        return None
    pair = (wide[[name]].to_numpy() for name in (a, b))
    return paired_difference(*pair, np.random.default_rng(key), "fixed", level=level)


def beats_somewhere(evidence: Evidence, other: str, measure: str = "cumulative") -> Finding:
    """CNT: in at least one problem, HE-GP-UCB has less regret than `other` at the last iteration, paired by seed.

    Intervals of level 1 - 0.05/n for n problems. The sign alone is no evidence: noise gives it in some problem.
    """
    panels = {problem: _last(_runs(evidence, problem)) for problem in PROBLEMS}
    panels = {problem: ends for problem, ends in panels.items() if {OURS, other} <= set(ends["method"])}
    if not panels:
        return untestable(f"no comparison with {WORDS[other]}")
    level = 1 - LEVEL / len(panels)
    gaps = {p: _gap(ends, OURS, other, measure, [3, i], level) for i, (p, ends) in enumerate(panels.items())}
    clear = [problem for problem, gap in gaps.items() if ordered(*gap) == REPLICATED]
    best = min(clear or gaps, key=lambda problem: gaps[problem].estimate)
    said = f"lower {measure} regret than {WORDS[other]} in {len(clear)} of {len(gaps)} problems at level {level:.4g}; "
    said += f"best {best}: {interval(*gaps[best])}"
    return Finding(counted(bool(clear)), said, *map(known, gaps[best]), unit=f"{measure} regret")


def _last(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["iteration"] == runs["iteration"].max()]


def nearly_equal(evidence: Evidence, most: float = 0.2) -> Finding:
    """NUM: HE-GP-UCB and A-GP-UCB are apart by at most a share `most` of MLE's regret, in both measures."""
    found = []
    for row in evidence.table("equal").itertuples():
        said = f"{row.measure} regret: HE-GP-UCB {row.he_gp_ucb:.3g}, A-GP-UCB {row.a_gp_ucb:.3g}, MLE {row.mle:.3g}"
        said += f"; apart by {row.apart:.0%} of MLE's, {most:.0%} allowed"
        found.append(Finding(counted(row.apart <= most), said, row.apart, unit="share of MLE's regret"))
    return together(found, "measures", 1)


def chosen_lengthscales(evidence: Evidence, until: int, mle: float, ours: float) -> Finding:
    """CNT: up to an iteration, MLE follows a median length-scale of at least `mle`, HE-GP-UCB of at most `ours`."""
    rows = evidence.table("scale")
    wide = rows[rows["iteration"] <= until].pivot(index="iteration", columns="method", values="median")
    if not {"mle", OURS} <= set(wide):
        return untestable("MLE or HE-GP-UCB was not run")
    least, most = float(wide["mle"].min()), float(wide[OURS].max())
    said = f"median length-scale up to iteration {until}: MLE at least {least:g}, HE-GP-UCB at most {most:g}"
    return Finding(counted(least >= mle and most <= ours), said, least - most, unit="length-scale")


def stuck(evidence: Evidence, method: str, more_than: float = 0.5) -> Finding:
    """CNT: in more than a share of the runs, the last queries of a method are all at the right end."""
    fractions = evidence.table("stuck").set_index("method")["fraction"]
    if method not in fractions:
        return untestable(f"{WORDS[method]} was not run")
    value, ours = float(fractions[method]), float(fractions[OURS])
    said = f"runs that end at the right end: {WORDS[method]} {value:.0%}, HE-GP-UCB {ours:.0%}"
    return Finding(counted(value > more_than), said, value, unit="share of runs")


def fewer_wrong(evidence: Evidence, problem: str, than: str) -> Finding:
    """CNT: HE-GP-UCB follows a wrong candidate in a smaller share of its queries than `than`."""
    wrong = _wrong(evidence, problem)["wrong"]
    if not {OURS, than} <= set(wrong.index):
        return untestable(f"{WORDS[than]} was not run on {problem}")
    shares = f"HE-GP-UCB {wrong[OURS]:.3f}, {WORDS[than]} {wrong[than]:.3f}"
    said = f"queries that follow a wrong candidate, {problem}: {shares}"
    gap = float(wrong[OURS] - wrong[than])
    return Finding(counted(gap < 0), said, gap, unit="share of queries")


def _wrong(evidence: Evidence, problem: str) -> pd.DataFrame:
    rows = evidence.table("wrong")
    return rows[rows["problem"] == problem].set_index("method")


def settles_sooner(evidence: Evidence, problem: str, than: Sequence[str]) -> Finding:
    """CNT: HE-GP-UCB settles on the true candidate, for good, before each of `than` (median over seeds)."""
    settled = _wrong(evidence, problem)["settled"]
    others = [name for name in than if name in settled.index]
    if OURS not in settled.index or not others:
        return untestable(f"the methods were not run on {problem}")
    listed = ", ".join(f"{WORDS[name]} {settled[name]:g}" for name in (OURS, *others))
    holds = all(settled[OURS] < settled[name] for name in others)
    said = f"query from which on the true candidate is followed, {problem} (median; beyond the last: never): {listed}"
    said += "".join(f"; {WORDS[name]} was not run" for name in than if name not in others)
    return Finding(counted(holds), said, float(settled[OURS]), unit="iteration")


def catch_up(evidence: Evidence, others: Sequence[str], measure: str = "simple") -> Finding:
    """At the later iteration of panel (c), each of `others` has no more regret than HE-GP-UCB.

    Replicated: less, by an interval that excludes 0, or an interval within MARGIN of the regret of random points;
    otherwise not replicated if it has more by an interval that excludes 0, and weak if neither is clear.
    """
    rows = evidence.table("phase")
    rows = rows[(rows["iteration"] == rows["iteration"].max()) & (rows["measure"] == measure)]
    rows = rows[(rows["reference"] == OURS) & rows["method"].isin(others)]
    ends = evidence.table("ending").set_index(["problem", "measure", "method"])["mean"]
    found = [untestable(f"{WORDS[name]} was not run") for name in others if name not in set(rows["method"])]
    for row in rows.itertuples():
        gap = (float(row.difference), float(row.low), float(row.high))
        limit = MARGIN * float(ends.get((row.problem, measure, POINTS), 0.0))
        clear = gap[1] > 0 or equivalent(*gap, limit) == REPLICATED
        verdict = REPLICATED if clear else FAILED if gap[2] < 0 else WEAK
        said = f"HE-GP-UCB minus {WORDS[row.method]} at iteration {row.iteration}: {interval(*gap)}, margin {limit:.3g}"
        found.append(Finding(verdict, said, *map(known, gap), f"{measure} regret"))
    return together(found, "comparisons", -1)


def fitted_periods(evidence: Evidence, pieces: Sequence[float], whole: float, tolerance: float = 0.05) -> Finding:
    """NUM: the median fitted period of each piece is the stated one, that of the whole function is `whole`, and no fit
    of a piece finds `whole`."""
    rows = evidence.table("fit").sort_values("piece").reset_index(drop=True)
    stated = [*pieces, whole]
    if len(rows) != len(stated):
        return untestable(f"{len(rows)} fits for {len(stated)} stated periods")
    found = []
    for place, (row, wanted) in enumerate(zip(rows.itertuples(), stated, strict=True)):
        piece = place < len(pieces)
        near = abs(row.period - wanted) <= tolerance * wanted and (not piece or row.one == 0)
        label = f"piece {place + 1}" if piece else "whole function"
        said = f"{label}: median period {row.period:.4g}, stated {wanted:.4g}"
        said += f"; period {whole:g} in {row.one:.0%} of the fits" if piece else ""
        found.append(Finding(counted(bool(near)), said, row.period, unit="period"))
    return together(found, "fits")


def not_additive(evidence: Evidence) -> Finding:
    """CNT: the mixed second derivative in inputs 1 and 2 is not zero, and input 3 has no effect."""
    rows = evidence.table("fact")
    mixed, third = float(rows["mixed"].abs().max()), float(rows["third"].abs().max())
    said = f"largest mixed derivative in inputs 1 and 2 {mixed:.3g}, largest change with input 3 {third:.3g}"
    return Finding(counted(mixed > 1e-3 and third < 1e-9), said, mixed, unit="mixed derivative")


def kept(evidence: Evidence, delta: float) -> Finding:
    """CNT: where a candidate is true, HE-GP-UCB drops it in at most a share `delta` of the runs."""
    found = []
    for row in evidence.table("drop").itertuples():
        if row.problem != "lengthscale":  # no candidate is true there
            label = f"runs that drop the true candidate, {row.problem}"
            count, of = int(row.true), int(row.runs)
            found.append(share(count, of, label, count <= delta * of, "share of runs", independent=True))
    return together(found, "problems", 1)


def recovers_less(evidence: Evidence, problems: Sequence[str]) -> Finding:
    """In at least one problem, fewer runs of MLE than of random points end with the true candidate as the likeliest.

    Paired by seed (exact McNemar test): p < 0.05/n for n problems is replicated, the sign alone weak. The problem with
    the clearest difference speaks.
    """
    found, lost = [], []
    for problem in problems:
        ends = _last(_runs(evidence, problem))
        right = ends.assign(right=ends["mle"] == ends["truth"]).pivot(index="seed", columns="method", values="right")
        if {"mle", POINTS} <= set(right):
            found.append((problem, *(right[["mle", POINTS]].dropna().to_numpy(dtype=bool).T)))
        else:
            lost.append(f"; MLE or random points were not run on {problem}")
    if not found:
        return untestable("MLE or random points were not run")
    parts = [_fewer_right(*one, LEVEL / len(found)) for one in found]
    best = min(parts, key=lambda part: (RANKS.index(part.verdict), part.value))
    listed = "; ".join(part.said for part in parts)
    return replace(best, said=f"runs with the true candidate likeliest at the end, {listed}{''.join(lost)}")


def _fewer_right(problem: str, ours: np.ndarray, other: np.ndarray, level: float) -> Finding:
    less, more = int((other & ~ours).sum()), int((ours & ~other).sum())
    p = float(binomtest(less, less + more).pvalue) if less + more else 1.0
    verdict = FAILED if less <= more else REPLICATED if p < level else WEAK
    said = f"{problem}: MLE {ours.mean():.2f}, random points {other.mean():.2f}, p = {p:.2g}"
    return Finding(verdict, said, float(ours.mean() - other.mean()), unit="share of runs")


def likeliest_dropped(evidence: Evidence) -> Finding:
    """CNT: in at least one run a wrong candidate is dropped while it is the likeliest."""
    rows = evidence.table("drop")
    listed = "; ".join(f"{row.problem}: {row.likeliest:.0f} of {row.dropped:.0f}" for row in rows.itertuples())
    count = int(rows["likeliest"].sum())
    return Finding(counted(count > 0), f"dropped while likeliest, of all dropped: {listed}", count, unit="candidates")


def protocol(evidence: Evidence, runs: dict[str, int], iterations: dict[str, int]) -> Finding:
    """CNT: numbers of seeds and of iterations are the stated ones in every problem."""
    rows = evidence.table("ending").drop_duplicates("problem").set_index("problem")
    found = []
    for problem in runs:
        if problem not in rows.index:
            found.append(untestable(f"{problem} was not run"))
            continue
        seeds, last = int(rows.at[problem, "runs"]), int(rows.at[problem, "iteration"])
        said = f"{problem}: {seeds} seeds, {last} iterations; stated {runs[problem]} and {iterations[problem]}"
        holds = (seeds, last) == (runs[problem], iterations[problem])
        found.append(Finding(counted(holds), said, known(seeds), unit="seeds"))
    return together(found, "problems")

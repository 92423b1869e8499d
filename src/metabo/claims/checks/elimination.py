"""Checks of HE-GP-UCB on its four problems (hegpucb §7): orders of regret, chosen candidates, what is dropped.

Orders are paired by seed, with the study's own runs; the rest reads the figure's numbers. `problem`: "lengthscale",
"period", "decomposition" or "mean"; the figure's profile says which settings.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.claims.evidence import Evidence
from metabo.claims.verdicts import Finding, counted, known, order, share, together, untestable
from metabo.metrics import paired_difference

STUDY = "hegpucb_runs"
WORDS = {
    "he_gp_ucb": "HE-GP-UCB", "a_gp_ucb": "A-GP-UCB", "expected_ucb": "ExpectedUCB", "mle": "MLE", "gp_ucb": "GP-UCB",
    "uniform": "random points",
}  # fmt: skip
OURS = "he_gp_ucb"


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
        wide = ends.pivot(index="seed", columns="method", values=measure)
        for a in lower:
            for b in than:
                if {a, b} <= set(wide):
                    pair = (wide[[name]].to_numpy() for name in (a, b))
                    gap = paired_difference(*pair, np.random.default_rng([2, len(found)]), "fixed")
                    label = f"{WORDS[a]} minus {WORDS[b]}, {problem}, iteration {min(at or last, last)}:"
                    found.append(order(label, gap, unit=f"{measure} regret"))
    return together(found, "comparisons", 1)


def beats_somewhere(evidence: Evidence, other: str, measure: str = "cumulative") -> Finding:
    """CNT: in at least one problem, HE-GP-UCB has less regret than `other` by an interval that excludes 0."""
    rows = evidence.table("difference")
    rows = rows[(rows["reference"] == OURS) & (rows["method"] == other) & (rows["measure"] == measure)]
    if rows.empty:
        return untestable(f"no comparison with {WORDS[other]}")
    clear = rows[rows["high"] < 0]
    best = rows.loc[rows["difference"].idxmin()]
    said = f"lower {measure} regret than {WORDS[other]} in {len(clear)} of {len(rows)} problems; best {best['panel']}: "
    said += f"{best['difference']:.3g} [{best['low']:.3g}, {best['high']:.3g}]"
    ends = (float(best["difference"]), float(best["low"]), float(best["high"]))
    return Finding(counted(len(clear) > 0), said, *ends, unit=f"{measure} regret")


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
    return rows[rows["panel"] == problem].set_index("method")


def settles_sooner(evidence: Evidence, problem: str, than: Sequence[str]) -> Finding:
    """CNT: HE-GP-UCB settles on the true candidate, for good, before each of `than` (median over seeds)."""
    settled = _wrong(evidence, problem)["settled"]
    others = [name for name in than if name in settled.index]
    if OURS not in settled.index or not others:
        return untestable(f"the methods were not run on {problem}")
    listed = ", ".join(f"{WORDS[name]} {settled[name]:g}" for name in (OURS, *others))
    holds = all(settled[OURS] < settled[name] for name in others)
    said = f"query from which on the true candidate is followed, {problem} (median; beyond the last: never): {listed}"
    return Finding(counted(holds), said, float(settled[OURS]), unit="iteration")


def catch_up(evidence: Evidence, others: Sequence[str], measure: str = "simple") -> Finding:
    """CNT: at the later iteration of panel (c), none of `others` has more regret by an interval that excludes 0."""
    rows = evidence.table("phase")
    rows = rows[(rows["iteration"] == rows["iteration"].max()) & (rows["measure"] == measure)]
    found = []
    for row in rows[(rows["reference"] == OURS) & rows["method"].isin(others)].itertuples():
        said = f"HE-GP-UCB minus {WORDS[row.method]} at iteration {row.iteration}: {row.difference:.3g}"
        said += f" [{row.low:.3g}, {row.high:.3g}]"
        clear = counted(not row.high < 0)
        found.append(Finding(clear, said, row.difference, row.low, row.high, f"{measure} regret"))
    return together(found, "comparisons", -1)


def fitted_periods(evidence: Evidence, pieces: Sequence[float], whole: float, tolerance: float = 0.05) -> Finding:
    """NUM: the median fitted period of each piece is the stated one, that of the whole function is `whole`, and no fit
    of a piece finds `whole`."""
    rows = evidence.table("fit").sort_values("component").reset_index(drop=True)
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
        if row.panel != "lengthscale":  # no candidate is true there
            label = f"runs that drop the true candidate, {row.panel}"
            found.append(share(int(row.true), int(row.runs), label, row.true <= delta * row.runs, "share of runs"))
    return together(found, "problems", 1)


def recovers_less(evidence: Evidence, problems: Sequence[str]) -> Finding:
    """CNT: in at least one problem, fewer runs of MLE end with the true candidate as the likeliest than of random
    points."""
    found = []
    for problem in problems:
        right = _wrong(evidence, problem)["recovered"]
        if {"mle", "uniform"} <= set(right.index):
            found.append((problem, float(right["mle"]), float(right["uniform"])))
    if not found:
        return untestable("MLE or random points were not run")
    listed = "; ".join(f"{problem}: MLE {a:.2f}, random points {b:.2f}" for problem, a, b in found)
    least = min(a - b for _, a, b in found)
    return Finding(
        counted(least < 0), f"runs with the true candidate likeliest at the end, {listed}", least, unit="share"
    )


def likeliest_dropped(evidence: Evidence) -> Finding:
    """CNT: in at least one run a wrong candidate is dropped while it is the likeliest."""
    rows = evidence.table("drop")
    listed = "; ".join(f"{row.panel}: {row.likeliest:.0f} of {row.dropped:.0f}" for row in rows.itertuples())
    count = int(rows["likeliest"].sum())
    return Finding(counted(count > 0), f"dropped while likeliest, of all dropped: {listed}", count, unit="candidates")


def protocol(evidence: Evidence, runs: dict[str, int], iterations: dict[str, int]) -> Finding:
    """CNT: numbers of seeds and of iterations are the stated ones in every problem."""
    rows = evidence.table("ending").drop_duplicates("panel").set_index("panel")
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

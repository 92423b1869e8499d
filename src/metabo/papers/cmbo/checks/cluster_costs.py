"""Checks of cm-BO's study of times: what a query costs, and which distances rounding decides (cm-BO §4.2)."""

from collections.abc import Mapping, Sequence

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding, counted, together, untestable


def more_stable(evidence: Evidence, kernels: Sequence[str]) -> Finding:
    """CNT: before jitter, with these kernels, fewer W2 distances than Jeffreys divergences are lost (the study's rule,
    the same for both); W2 costs more."""
    rows = evidence.table("stability")
    rows = rows[(rows["jitter"] == 0) & rows["kernel"].isin(kernels)]
    if set(kernels) - set(rows["kernel"]):
        return untestable(f"no distances with the kernels {', '.join(kernels)}")
    lost = rows.groupby("measure")[["lost", "of"]].sum()
    change = rows.groupby("measure")["error"].max()
    parts = [
        f"{words} {lost.at[m, 'lost']:.0f} of {lost.at[m, 'of']:.0f} (largest change {change[m]:.1g})"
        for m, words in (("jeffreys", "Jeffreys"), ("wasserstein", "W2"))
    ]
    fewer = bool(lost.at["wasserstein", "lost"] < lost.at["jeffreys", "lost"])
    said = f"lost to rounding before jitter: {', '.join(parts)}"
    stable = Finding(counted(fewer), said, float(lost.at["jeffreys", "lost"]), unit="distances")
    times = evidence.table("claim")
    costs = times[times["comparison"].str.contains("W2 over Jeffreys")]
    listed = "; ".join(f"{row.comparison} {row.value:.2g}" for row in costs.itertuples())
    dearer = Finding(counted(bool((costs["value"] > 1).all())), listed, float(costs["value"].min()), unit="times")
    return together([stable, dearer])


def grows_with_tasks(evidence: Evidence, flat: Sequence[str], linear: Sequence[str]) -> Finding:
    """NUM: the time of a query has a log-log slope in the number of source tasks of -0.1 to 0.2 for the methods in
    `flat`, and of 0.8 to 1.2 for those in `linear` (the ranges of HyperBO's Table 1)."""
    rows = evidence.table("growth")
    slopes = rows[(rows["kind"] == "query") & (rows["axis"] == "tasks")].set_index("measure")["slope"]
    found = []
    for methods, low, high in ((flat, -0.1, 0.2), (linear, 0.8, 1.2)):
        for method in methods:
            if method not in slopes:
                found.append(untestable(f"no time of a query of {method}"))
                continue
            said = f"time of a query of {method} against the number of tasks: slope {slopes[method]:.2f}"
            holds = low <= slopes[method] <= high
            found.append(
                Finding(counted(holds), f"{said}, accepted {low} to {high}", float(slopes[method]), unit="slope")
            )
    return together(found, "methods")


def weak_growth(evidence: Evidence, kind: str, most: Mapping[str, float]) -> Finding:
    """NUM: the time of `kind` with the most clusters is at most `most` times that with the fewest.

    `most` has one limit for each distance.
    """
    rows = evidence.table("time")
    rows = rows[rows["kind"] == kind].sort_values("clusters")
    found = []
    for measure, limit in most.items():
        own = rows[rows["measure"] == measure]
        if own["clusters"].nunique() < 2:
            found.append(untestable(f"{measure}: no times for several numbers of clusters"))
            continue
        first, last = own.iloc[0], own.iloc[-1]
        ratio = float(last["seconds"] / first["seconds"])
        many, few = last["clusters"], first["clusters"]
        said = f"{measure}: time with {many:.0f} clusters over that with {few:.0f} {ratio:.2f}"
        found.append(Finding(counted(ratio <= limit), f"{said}, at most {limit:g}", ratio, unit="times"))
    return together(found, "distances", 1)

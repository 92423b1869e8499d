"""Checks of what the data holds: counts that a loader compares with the stated ones, ranges, sizes. All are facts."""

from collections.abc import Sequence

from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding, fact, untestable


def as_stated(evidence: Evidence, counts: Sequence[str]) -> Finding:
    """CNT: the loader's counts are the stated ones, within the tolerance that the loader has for rough numbers.

    `counts`: names of counts, or the beginnings or ends of such names with "*" for the rest.
    """
    rows = evidence.table("count")
    found = []
    for wanted in counts:
        named = rows["count"] == wanted
        if wanted.startswith("*"):
            named = rows["count"].str.endswith(wanted[1:])
        elif wanted.endswith("*"):
            named = rows["count"].str.startswith(wanted[:-1])
        chosen = rows[named & rows["stated"].notna()]
        if chosen.empty:
            found.append(untestable(f"nothing is stated of '{wanted}' for benchmark {evidence.benchmark}"))
        for row in chosen.itertuples():
            said = f"{row.count}: {row.found:,.0f}, stated {row.stated:,.0f}"
            found.append(fact(said, not row.differs, float(row.found), "count"))
    return together(found, "counts")


def any_as_stated(evidence: Evidence, beginning: str) -> Finding:
    """CNT: at least one count of this beginning is the stated one (rules that the paper leaves open)."""
    rows = evidence.table("count")
    rows = rows[rows["count"].str.startswith(beginning) & rows["stated"].notna()]
    if rows.empty:
        return untestable(f"nothing is stated of '{beginning}' for benchmark {evidence.benchmark}")
    hits = rows[rows["differs"] == 0]
    nearest = rows.loc[(rows["found"] - rows["stated"]).abs().idxmin()]
    said = f"{len(hits)} of {len(rows)} readings give {nearest['stated']:,.0f}; nearest: {nearest['found']:,.0f} "
    return fact(said + f"({nearest['count']})", len(hits) > 0, float(nearest["found"]), "count")


def inside_box(evidence: Evidence) -> Finding:
    """CNT: no evaluation lies outside the stated range of any parameter."""
    rows = evidence.table("range")
    outside, of = int(rows["outside"].sum()), int(rows["points"].max())
    said = f"{outside} values outside the box, {len(rows)} parameters, {of:,} evaluations"
    return fact(said, outside == 0, outside, "values")


def few_tasks(evidence: Evidence, most: int) -> Finding:
    """CNT: there are at most `most` training tasks for any test task, i.e. all tasks but one."""
    tasks = len(evidence.table("task")) - 1
    said = f"at most {tasks} training tasks; N > T + 1 would need more than {most}"
    return fact(said, tasks <= most, tasks, "tasks")


def counts_at_most(evidence: Evidence, ending: str, most: int) -> Finding:
    """CNT: every count of this ending that the loader made is at most `most`."""
    rows = evidence.table("count")
    rows = rows[rows["count"].str.endswith(ending)]
    if rows.empty:
        return untestable(f"nothing is counted as '{ending}' for benchmark {evidence.benchmark}")
    largest = rows.loc[rows["found"].idxmax()]
    said = f"{len(rows)} counts of '{ending.strip(': ')}', largest {largest['found']:,.0f}; at most {most:,} wanted"
    return fact(said, bool(largest["found"] <= most), float(largest["found"]), "count")

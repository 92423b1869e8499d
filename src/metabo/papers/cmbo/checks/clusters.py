"""Checks of cm-BO's search spaces and of its number of clusters (cm-BO §4.1 and §4.2, Table 1 and Figure 3)."""

from collections.abc import Mapping
from math import prod

from metabo.papers.cmbo.panels import is_lower
from metabo.papers.engine.claims.comparing import name, orders
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import spearman_p
from metabo.papers.engine.claims.ranges import at_least
from metabo.papers.engine.claims.verdicts import Finding, fact, trend, untestable
from metabo.plan import registry
from metabo.plan.runs import method_of


def more_clusters_help(evidence: Evidence, least: int) -> Finding:
    """ORD: for each variant, at least `least` of the numbers of clusters above one have less last regret than one
    cluster; they share runs, so that they are counted by how many are surely better and surely not."""
    runs = evidence.runs
    families: dict[str, dict[int, str]] = {}
    for run in runs.methods:
        entry = registry.method(method_of(run))
        families.setdefault(entry.variant_of, {})[int(entry.policy["clusters"])] = run
    found = []
    for family, by_number in families.items():
        several = [by_number[number] for number in sorted(by_number) if number > 1]
        if 1 not in by_number or not several:
            found.append(untestable(f"{name(family)} was not run with one cluster and with several"))
            continue
        parts = orders(evidence, [(run, by_number[1]) for run in several], [runs.last])
        label = f"{name(family)}: numbers of clusters better than one"
        found.append(at_least(label, parts, [is_lower(part) for part in parts], least, "share of numbers"))
    return together(found, "variants")


def index_agrees(evidence: Evidence) -> Finding:
    """A larger ratio of the indices (worse clusters) goes with more regret: Spearman over the numbers of clusters."""
    if "correlation" not in set(evidence.data["table"]):
        return untestable("the figure has no correlation of the indices with regret")
    found = []
    for row in evidence.table("correlation").itertuples():
        n, rho = int(row.points), float(row.spearman)
        label = f"{name(row.panel)}, {row.distance}, {n} numbers of clusters"
        found.append(trend(label, rho, spearman_p(rho, n), rises=True))
    return together(found, "correlations")


def run_count(
    evidence: Evidence, stated: int, factors: Mapping[str, int], share: float, tolerance: float = 0.1
) -> Finding:
    """The runs of a method by what the paper prints, targets times `factors` (such as splits and repetitions), are the
    stated number, about.

    Targets are `share` of the tasks of Table 1, to the nearest whole number, over all spaces. No data decides it.
    """
    tasks = evidence.table("space").dropna(subset=["stated_tasks"])["stated_tasks"]
    if tasks.empty:
        return untestable("none of the spaces of Table 1")
    targets = [int(share * count + 0.5) for count in tasks]
    runs = prod(factors.values()) * sum(targets)
    said = " x ".join(f"{count} {what}" for what, count in factors.items())
    said += f" x ({' + '.join(map(str, targets))}) targets = {runs} runs a method, stated {stated}"
    return fact(said, abs(runs - stated) <= tolerance * stated, runs, "runs")


def table_of_spaces(evidence: Evidence) -> Finding:
    """Every space has the stated numbers of inputs and tasks, those with constant outputs among them."""
    found = []
    for row in evidence.table("space").dropna(subset=["stated_inputs"]).itertuples():
        holds = (row.inputs, row.tasks) == (row.stated_inputs, row.stated_tasks)
        said = f"{row.space}: {row.inputs:.0f} inputs, {row.tasks:.0f} tasks ({row.flat:.0f} constant); "
        said += f"stated {row.stated_inputs:.0f} and {row.stated_tasks:.0f}"
        found.append(fact(said, holds, row.tasks, "tasks"))
    return together(found, "spaces")

"""Numbers that the table of cm-BO's times reports, from the tables of its study alone (sheet §8, B11 to B14, B22)."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

from metabo.papers.cmbo.printed import table


def beside_paper(measure: pd.DataFrame) -> pd.DataFrame:
    """Return kind, measure, clusters (their number), seconds, low, high (of the paper), faster: how many times less
    time than the paper's least. Ours is the slowest over the numbers of clusters, at the number of tasks that most of
    the measurements have."""
    printed = table("timing")
    rows = []
    for line in printed.itertuples():
        own = measure[(measure["kind"] == line.kind) & (measure["measure"] == line.measure)]
        own = _usual(_usual(own, "locations"), "tasks")
        slowest = own.loc[own["seconds"].idxmax()]
        rows.append(
            {
                "kind": line.kind, "measure": line.measure, "clusters": int(slowest["clusters"]),
                "seconds": slowest["seconds"], "low": line.low, "high": line.high,
                "faster": line.low / slowest["seconds"],
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _usual(measured: pd.DataFrame, size: str) -> pd.DataFrame:
    """Keep the measurements at the value of `size` that most of them have."""
    return measured[measured[size] == measured[size].mode().iloc[0]]


def ratios(measure: pd.DataFrame, iterations: pd.DataFrame) -> pd.DataFrame:
    """Return claim, comparison, value, low, high, holds of what the paper's times say (ranges of sheet §8)."""

    def cost(quantity: str, distance: str) -> float:
        own = measure[(measure["kind"] == quantity) & (measure["measure"] == distance)]
        return float(_usual(own, "locations")["seconds"].median())

    training = cost("hyperbo_training", "any")
    before = cost("source_fits", "any") + cost("clustering", "wasserstein")
    rows = [
        ("B11", "HyperBO's training over cm-BO's fits and clusters", training / before, 10.0, np.inf),
        ("B12", "iteration of k-means, W2 over Jeffreys", _over(cost, "kmeans_iteration"), 1.5, 5.0),
        ("B13", "distances of a query, W2 over Jeffreys", _over(cost, "query_distance"), 5.0, 30.0),
    ]
    for distance, own in iterations.groupby("measure", sort=False):
        share = float((own["iterations"] < 10).mean())
        rows.append(("B12", f"share of fits with fewer than 10 iterations, {distance}", share, 0.8, 1.0))
    table = pd.DataFrame(rows, columns=["claim", "comparison", "value", "low", "high"])
    return table.assign(holds=table["value"].between(table["low"], table["high"]).astype(np.float64))


def _over(cost: Callable[[str, str], float], quantity: str) -> float:
    return cost(quantity, "wasserstein") / cost(quantity, "jeffreys")


AXES = ("tasks", "clusters", "locations")


def growth(measure: pd.DataFrame) -> pd.DataFrame:
    """Return kind, measure, axis, slope, straight of how times grow with the numbers of tasks, of clusters and of
    locations, the other two as in most measurements of at least three sizes.

    `slope`: of the logarithm of the time over that of the number, least squares: about 1 is linear, about 0 constant;
    `straight`: R² of a straight line of the time over the number. Series of fewer than three sizes are left out.
    """
    rows = []
    for (quantity, distance), series in measure.groupby(["kind", "measure"], sort=False):
        for axis in AXES:
            others = [name for name in AXES if name != axis]
            groups = [own.drop_duplicates(axis) for _, own in series.groupby(others, sort=False)]
            own = max(groups, key=len)
            if len(own) >= 3:
                size, cost = own[axis].astype(float), own["seconds"]
                slope = float(stats.linregress(np.log(size), np.log(cost)).slope)
                straight = float(stats.linregress(size, cost).rvalue ** 2)
                found = {"kind": quantity, "measure": distance, "axis": axis, "slope": slope, "straight": straight}
                rows.append(found)
    return pd.DataFrame(rows, columns=["kind", "measure", "axis", "slope", "straight"])


EXPECTED = {("kmeans_iteration", "locations"): ("slope", 2.5, 3.2)} | {
    ("kmeans_iteration", axis): ("straight", 0.98, 1.0) for axis in ("tasks", "clusters")
}
"""Check C12 of the sheet (cm-BO §3.3, cost of Stage 1): cubic in the locations, linear in tasks and clusters."""


def costs(grown: pd.DataFrame) -> pd.DataFrame:
    """Return kind, measure, axis, statistic, value, low, high, holds: what `growth` (its column `slope` or `straight`)
    says of cm-BO's complexity."""
    rows = []
    for line in grown.itertuples():
        if (line.kind, line.axis) in EXPECTED:
            statistic, low, high = EXPECTED[line.kind, line.axis]
            rows.append((line.kind, line.measure, line.axis, statistic, getattr(line, statistic), low, high))
    columns = ["kind", "measure", "axis", "statistic", "value", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(holds=table["value"].between(table["low"], table["high"]).astype(np.float64))

"""Numbers that the table of cm-BO's times reports, from the tables of its study alone (sheet §8, B11 to B14, B22)."""

import numpy as np
import pandas as pd
from scipy import stats

from metabo.papers.cmbo.printed import table
from metabo.papers.engine.claims.intervals import of_mean
from metabo.papers.engine.claims.verdicts import clopper_pearson


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


def ratios(measure: pd.DataFrame) -> pd.DataFrame:
    """Return claim, comparison, value, low, high, least, most, units, holds of what the paper's times say.

    `low`, `high`: the accepted range; `least`, `most`: the value's 95 % interval over `units` sizes or repetitions
    (Student's t of the logarithms), NaN where it was measured once. A time is that of the slowest number of clusters,
    over repetitions; it may be shorter than the paper's, whose machine is not known.
    """
    found = [("B11", "HyperBO's training over cm-BO's fits and clusters", 10.0, np.inf, *_before_bo(measure))]
    printed = table("timing").set_index(["kind", "measure"])["high"]
    for claim, words, quantity, low, high in (
        ("B12", "iteration of k-means", "kmeans_iteration", 1.5, 5.0),
        ("B13", "distances of a query", "query_distance", 5.0, 30.0),
    ):
        for distance in ("jeffreys", "wasserstein"):
            own = measure[(measure["kind"] == quantity) & (measure["measure"] == distance)]
            times = _usual(_usual(own, "locations"), "tasks").groupby("repetition")["seconds"].max()
            limit = float(printed[quantity, distance])
            found.append((claim, f"{words}, {distance}, seconds", 0.0, limit, *_geometric(times.to_numpy())))
        found.append((f"{claim}, ratio", f"{words}, W2 over Jeffreys", low, high, *_over(measure, quantity)))
    judged = pd.DataFrame(found, columns=["claim", "comparison", "low", "high", "value", "least", "most", "units"])
    return judged.assign(holds=judged["value"].between(judged["low"], judged["high"]).astype(np.float64))


def _before_bo(measure: pd.DataFrame) -> tuple[float, float, float, int]:
    """Return how many times as long HyperBO trains as cm-BO fits and clusters (W2), in pairs of repetitions."""

    def costs(quantity: str, distance: str) -> pd.Series:
        own = measure[(measure["kind"] == quantity) & (measure["measure"] == distance)]
        return own.set_index("repetition")["seconds"]

    before = costs("source_fits", "any") + costs("clustering", "wasserstein")
    return _geometric((costs("hyperbo_training", "any") / before).dropna().to_numpy())


def _geometric(values: np.ndarray) -> tuple[float, float, float, int]:
    """Return the geometric mean, its 95 % interval (Student's t of the logarithms), and the number of values."""
    value, least, most = np.exp(of_mean(np.log(values)))
    return float(value), float(least), float(most), len(values)


def _over(measure: pd.DataFrame, quantity: str) -> tuple[float, float, float, int]:
    """Return how many times as long a quantity takes with W2 as with Jeffreys at the same sizes."""
    own = _usual(measure[measure["kind"] == quantity], "locations")
    wide = own.pivot_table(index=["tasks", "clusters"], columns="measure", values="seconds")
    return _geometric((wide["wasserstein"] / wide["jeffreys"]).dropna().to_numpy())


def typical(iterations: pd.DataFrame) -> pd.DataFrame:
    """Return measure, fits, fewer (than 10 iterations, their share), low, high (exact 95 % interval of the share)."""
    rows = []
    for distance, own in iterations.groupby("measure", sort=False):
        few, of = int((own["iterations"] < 10).sum()), len(own)
        low, high = clopper_pearson(few, of)
        rows.append({"measure": distance, "fits": of, "fewer": few / of, "low": low, "high": high})
    return pd.DataFrame(rows)


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
    judged = pd.DataFrame(rows, columns=columns)
    return judged.assign(holds=judged["value"].between(judged["low"], judged["high"]).astype(np.float64))

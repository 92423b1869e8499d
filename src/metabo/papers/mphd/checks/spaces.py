"""Checks of regret across search spaces: who ends lower, by how much, and when (mphd §4.3).

From the figures' tables: `difference` holds regret minus that of a reference with the intervals of both estimands
(`metabo.papers.mphd.metrics`; `Evidence.estimand` decides), `ending` and `curve` the means. Methods are named without
acquisition and split: `acquisitions` and `panel` ("default", "ntot", "homogeneous") say which runs are meant. `metric`:
"last", the last iteration, or "area", the mean over all.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metabo.errors import unknown
from metabo.papers.engine.claims.comparing import OTHERS, Compared, name
from metabo.papers.engine.claims.conjunctions import together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.intervals import combined, of_deviation
from metabo.papers.engine.claims.ranges import at_least, ranged
from metabo.papers.engine.claims.verdicts import (
    MARGIN,
    UNDECIDED,
    Finding,
    fact,
    known,
    order,
    untestable,
)
from metabo.plan.runs import RunId, method_of

UNIT = "normalised regret"
METRICS = {"last": ("difference", "low", "high"), "area": ("area", "area_low", "area_high")}
"""Columns of table `difference` by metric; table `ending` has the metric's own name."""
SUITE = "suite_"
"""Begins the names of the columns for this suite; those for a new space have none."""
CROSSED = ("overtaken", "overtaken_low", "overtaken_high")
COST = "cost"
"""The panel of `difference` that compares a method without the test space's data with the same method with them."""
VARIANTS = ("mphd_squashed",)
"""Methods of the figures that the paper does not have, left out of "others"."""
ABOUT = 0.25
"""Share of a stated iteration within which another one is about the same; ours, the paper reads it off a figure."""
ONE_SEED = "one seed has no deviation"


def _rows(evidence: Evidence, table: str, panel: str, acquisition: str) -> pd.DataFrame:
    """Return a table's rows of one panel and acquisition, with plain method names and the runs' own in `run`."""
    rows = evidence.table(table)
    rows = rows[(rows["panel"] == panel) & (rows["acquisition"] == acquisition)]
    rows = rows.assign(run=rows["method"], method=rows["method"].map(method_of))
    return rows.assign(reference=rows["reference"].map(method_of)) if "reference" in rows else rows


def _gaps(evidence: Evidence, method: str, others: str | Sequence[str], but: Sequence[str], panel: str, acq: str):
    """Return the rows of others minus `method` at every iteration, without `but` and our own variants."""
    rows = _rows(evidence, "difference", panel, acq)
    rows = rows[rows["reference"] == method]
    if others == OTHERS:
        return rows[~rows["method"].isin([*but, *VARIANTS])]
    return rows[rows["method"].isin(list(others))]


def _gap(evidence: Evidence, row, columns: Sequence[str], turned: bool = False) -> Compared:
    """Return the numbers of a row of `difference` in `columns` (value, low, high), `turned`: reference minus method."""
    value = float(getattr(row, columns[0]))
    suite, new = (tuple(float(getattr(row, kind + end)) for end in columns[1:]) for kind in (SUITE, ""))
    if turned:  # 0 - 0 is no -0
        value, suite, new = 0 - value, (0 - suite[1], 0 - suite[0]), (0 - new[1], 0 - new[0])
    suited = evidence.estimand == "suite"
    units = int(row.suite_units if suited else row.units)
    freedom = None if suited or columns == CROSSED else float(row.freedom)
    return Compared(value, *(suite if suited else new), units, suite, new, freedom=freedom)


def _turned(evidence: Evidence, row, metric: str = "last") -> Compared:
    """Return the reference minus the method of a row."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    return _gap(evidence, row, METRICS[metric], turned=True)


def _random(evidence: Evidence, panel: str, acq: str, at: str | int) -> float:
    """Return Random's regret by "last", "area" or at an iteration; 0 if it was not run."""
    rows = _rows(evidence, "curve" if isinstance(at, int) else "ending", panel, acq)
    own = rows[rows["method"] == "rand"]
    values = own.loc[own["iteration"] == at, "mean"] if isinstance(at, int) else own[at]
    return float(values.iloc[0]) if len(values) else 0.0


def beats(
    evidence: Evidence,
    method: str,
    others: str | Sequence[str] = OTHERS,
    but: Sequence[str] = (),
    panel: str = "default",
    acquisitions: Sequence[str] = ("pi",),
    metric: str = "last",
) -> Finding:
    """ORD: `method` has a lower regret than each of `others` (all but `but`), with every acquisition."""
    return together(_orders(evidence, method, others, but, panel, acquisitions, metric, True), "comparisons")


def beaten_by(
    evidence: Evidence,
    method: str,
    by: Sequence[str],
    panel: str,
    acquisitions: Sequence[str] = ("pi",),
    metric: str = "last",
) -> Finding:
    """ORD: each of `by` has a lower regret than `method`, with every acquisition."""
    return together(_orders(evidence, method, by, (), panel, acquisitions, metric, False), "comparisons")


def _orders(evidence, method, others, but, panel, acquisitions, metric, below) -> list[Finding]:
    """Return one finding per comparison; power is for MARGIN of Random's regret."""
    found = []
    for acq in acquisitions:
        rows = _gaps(evidence, method, others, but, panel, acq)
        effect = MARGIN * _random(evidence, panel, acq, metric)
        for row in rows[rows["iteration"] == rows["iteration"].max()].itertuples():
            label = f"{name(method)} minus {name(row.method)}, {panel}, {acq}, {metric}:"
            gap = _turned(evidence, row, metric)
            found.append(gap.order(label, below, UNIT, effect=effect))
        lost = [] if others == OTHERS else [other for other in others if other not in set(rows["method"])]
        found += [untestable(f"{name(method)} or {name(other)} was not run, {panel}, {acq}") for other in lost]
    return found


def matches(
    evidence: Evidence,
    method: str,
    reference: str,
    panel: str = "default",
    acquisitions: Sequence[str] = ("pi",),
    margin: float = MARGIN,
    metric: str = "last",
) -> Finding:
    """About equal, with every acquisition: the interval lies within ± `margin` times Random's regret."""
    found = []
    for acq in acquisitions:
        rows = _gaps(evidence, method, [reference], (), panel, acq)
        limit = margin * _random(evidence, panel, acq, metric)
        if rows.empty or not limit > 0:
            found.append(untestable(f"{name(reference)} or Random was not run on {evidence.benchmark}"))
            continue
        row = rows.loc[rows["iteration"].idxmax()]
        label = f"{name(method)} minus {name(reference)}, {panel}, {acq}, {metric}:"
        gap = _turned(evidence, row, metric)
        found.append(gap.about_equal(label, limit, UNIT))
    return together(found, "comparisons")


def by_margin(evidence: Evidence, method: str, other: str, panel: str, deviations: float) -> Finding:
    """ORD with PI: the last regret is lower by more than `deviations` pooled standard deviations over seeds.

    The difference has its own interval, the deviation one of chi-square; `combined` adds them.
    """
    rows = _gaps(evidence, method, [other], (), panel, "pi")
    ends = _rows(evidence, "ending", panel, "pi").set_index("method")
    if rows.empty or not {method, other} <= set(ends.index):
        return untestable(f"{name(other)} was not run on {evidence.benchmark}")
    row = rows.loc[rows["iteration"].idxmax()]
    seeds, gap = _seeds(evidence, panel), _turned(evidence, row)
    if seeds < 2:
        said = f"{name(method)} minus {name(other)}, {panel}; {ONE_SEED}"
        return Finding(UNDECIDED, said, *map(known, gap.estimate), UNIT)
    spread = _pooled([ends.at[method, "std"], ends.at[other, "std"]], seeds)
    shifted = combined((1.0, gap.estimate), (deviations, of_deviation(spread, 2 * (seeds - 1))))
    label = f"{name(method)} minus {name(other)}, {panel}: {-float(row['difference']):.3g}; plus {deviations:g} pooled "
    label += f"deviations over {seeds} seeds ({spread:.3g}):"
    effect = MARGIN * _random(evidence, panel, "pi", "last")
    return order(label, shifted, True, UNIT, effect=effect, clusters=gap.clusters, freedom=gap.freedom)


def _seeds(evidence: Evidence, panel: str) -> int:
    """Return the number of seeds behind the means of a panel with PI."""
    return int(_rows(evidence, "curve", panel, "pi")["seeds"].max())


def _pooled(stds: Sequence[float], seeds: int) -> float:
    """Return the pooled standard deviation over seeds; those of the figure have the divisor n."""
    return float(np.sqrt(np.mean(np.square(stds)) * seeds / (seeds - 1)))


def ahead_then_behind(
    evidence: Evidence, method: str, reference: str, early: int, late: int, panel: str = "default"
) -> Finding:
    """ORD with PI: `method` has less regret than `reference` at iteration `early`, more at those from `late` on."""
    rows = _gaps(evidence, reference, [method], (), panel, "pi")
    found = []
    for row in rows[(rows["iteration"] == early) | (rows["iteration"] >= late)].itertuples():
        label = f"{name(method)} minus {name(reference)} at iteration {row.iteration}:"
        effect = MARGIN * _random(evidence, panel, "pi", int(row.iteration))
        gap, below = _gap(evidence, row, METRICS["last"]), row.iteration == early
        found.append(gap.order(label, below, UNIT, effect=effect))
    if early not in set(rows["iteration"]) or not (rows["iteration"] >= late).any():
        found.append(untestable(f"{name(method)} was not run at iteration {early} and from {late} on"))
    return together(found, "iterations")


def overtaken_at(evidence: Evidence, method: str, reference: str, at: int, panel: str = "default") -> Finding:
    """NUM with PI: `reference` stays below `method` from about iteration `at` on.

    The 95 % interval of that iteration (Student's t) lies within ABOUT of `at`, or outside it.
    """
    rows = _gaps(evidence, reference, [method], (), panel, "pi")
    if rows.empty or rows["iteration"].max() < at:
        return untestable(f"the runs of {name(method)} and {name(reference)} do not reach iteration {at}")
    gap = _gap(evidence, next(rows.itertuples()), CROSSED)
    label = f"{name(reference)} stays below {name(method)} from an iteration on, stated {at}:"
    return gap.told(ranged(label, gap.estimate, (1 - ABOUT) * at, (1 + ABOUT) * at, "iteration", gap.clusters))


def costs_little(evidence: Evidence, method: str, deviations: float = 1.0) -> Finding:
    """ORD with PI: not training on the test space raises the last regret by less than `deviations` times its spread.

    The rise is paired, with its interval over spaces or seeds; the spread is over seeds, with an interval of
    chi-square; `combined` adds them.
    """
    ends = {panel: _rows(evidence, "ending", panel, "pi").set_index("method") for panel in ("default", "ntot")}
    rows = _rows(evidence, "difference", COST, "pi")
    rows = rows[(rows["method"] == method) & (rows["reference"] == method)]
    if rows.empty or any(method not in shown.index for shown in ends.values()):
        return untestable(f"{name(method)} was not run in both settings")
    last, std = ([float(shown.at[method, column]) for shown in ends.values()] for column in ("last", "std"))
    seeds, gap = _seeds(evidence, "default"), _gap(evidence, rows.loc[rows["iteration"].idxmax()], METRICS["last"])
    rise = gap.estimate[0]
    if seeds < 2:
        return Finding(UNDECIDED, f"{name(method)}: the regret rises by {rise:.3g}; {ONE_SEED}", rise, unit=UNIT)
    spread = _pooled(std, seeds)
    beyond = combined((1.0, gap.estimate), (-deviations, of_deviation(spread, 2 * (seeds - 1))))
    label = f"{name(method)}: last regret {last[0]:.3g}, without the test space {last[1]:.3g}; the rise minus "
    label += f"{deviations:g} deviations over {seeds} seeds ({spread:.3g}):"
    return order(label, beyond, True, UNIT, effect=deviations * spread, clusters=gap.clusters, freedom=gap.freedom)


def best_acquisition(evidence: Evidence, method: str, acquisition: str = "pi", margin: float = MARGIN) -> Finding:
    """Similar, or better: with its own acquisition, `method` ends no worse than with the others.

    Worse by at most `margin` of Random's last regret, with the end of the interval (`similar`).
    """
    rows = evidence.table("difference")
    others = [run for run in map(RunId.parse, rows["method"].unique()) if run.method == method and run.acquisition]
    rows = rows[(rows["reference"] == method) & rows["method"].isin(list(map(str, others)))]
    found = []
    for row in rows[rows["iteration"] == rows["iteration"].max()].itertuples():
        label = f"{name(method)} with {acquisition} minus with {RunId.parse(row.method).acquisition}:"
        limit, gap = margin * _random(evidence, row.panel, row.acquisition, "last"), _turned(evidence, row)
        found.append(gap.similar(label, limit, True, UNIT))
    return together(found, "acquisitions")


def wins(evidence: Evidence, method: str, but: Sequence[str] = (), metric: str = "last") -> Finding:
    """In more than half of the (panel, acquisition) shown, `method` has the lowest regret of all but `but`.

    In each it is compared with every other method, our own variants apart; panels share runs, so that they are counted
    by how many are surely won and surely lost.
    """
    ends = evidence.table("ending")
    found, ahead, winners = [], [], []
    for panel, acq in ends[["panel", "acquisition"]].drop_duplicates().itertuples(index=False):
        found.append(together(_orders(evidence, method, OTHERS, but, panel, [acq], metric, True), "methods"))
        rows = _rows(evidence, "ending", panel, acq)
        rows = rows[~rows["method"].isin([*but, *VARIANTS])]
        best = str(rows.loc[rows[metric].idxmin(), "method"])
        ahead.append(best == method)
        winners.append(f"{panel}, {acq}: {name(best)}")
    label = f"panels in which {name(method)} has the lowest regret, {metric} ({'; '.join(winners)})"
    return at_least(label, found, ahead, len(found) // 2 + 1, "share of panels")


def super_dataset(evidence: Evidence, seen: int, unseen: int, train: int, test: int, dims: Sequence[int]) -> Finding:
    """Numbers of spaces, of the unseen space's training and test sub-datasets, range of inputs (mphd §4.1)."""
    spaces = evidence.table("space")
    inputs = evidence.table("context").groupby("space").size().reindex(spaces["space"])
    new = (spaces["unseen"] == 1).to_numpy()
    old = inputs.to_numpy()[~new]
    counts = [
        ("spaces that φ learns from", int((~new).sum()), seen),
        ("unseen spaces", int(new.sum()), unseen),
        ("training sub-datasets of the unseen space", int(spaces.loc[new, "train"].sum()), train),
        ("test sub-datasets of the unseen space", int(spaces.loc[new, "test"].sum()), test),
        ("fewest inputs", int(old.min()), dims[0]),
        ("most inputs", int(old.max()), dims[1]),
    ]
    return together(
        (fact(f"{label}: {own}, stated {of}", own == of, own, "count") for label, own, of in counts), "counts"
    )

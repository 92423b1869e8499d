"""The paper's own tables under our rules: the checks of claims on Tables 5 to 7, on what these print.

Where printed numbers do not pass a rule, the paper's sentence says more than its table shows to a reader who asks
whether it carries over, and the row of the claim says so (`metabo.papers.engine.claims.settling.OWN_TABLE`). Tasks on
one data set count together, as in our runs. The results of this run are not used.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm

from metabo.papers.engine import printed
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import LEVEL, Finding, order, share
from metabo.papers.hyperbo.checks.cells import best_in_most, lower_more_often
from metabo.papers.hyperbo.printed import PAPER_REPEATS, table
from metabo.plan import data_sets

PD1 = "pd1"
POINTS = 3 * PAPER_REPEATS
"""Points behind a printed correlation of Table 7, which has Training NLL for three methods; the paper does not say."""


def own_best_in_most(evidence: Evidence, method: str, among: Sequence[str], least: float = 0.5) -> Finding:
    """`best_in_most` on the means of Table 5."""
    rows = _of_tasks("tab05", "error_percent")
    shown = rows.assign(table="best_metric", task=rows["task"].map(printed.short_name), quantity="mean")
    runs = rows.assign(
        space=PD1, benchmark=PD1, prior_seed=0, seed=0, iteration=1, metric=rows["value"], y=-rows["value"],
        simple_regret=0.0,
    )  # fmt: skip
    own = Evidence(PD1, {"data": lambda: shown, "trajectories": lambda: runs})
    return best_in_most(own, method, among, least)


def own_lower_more_often(evidence: Evidence, metric: str, method: str, other: str) -> Finding:
    """`lower_more_often` on the means of Table 6."""
    rows = _of_tasks("tab06", {"test_nll": "test_nll_hundreds"}.get(metric, metric))
    own = Evidence(PD1, {"evaluations": lambda: rows.assign(space=PD1, metric=metric)})
    return lower_more_often(own, metric, method, other)


def own_mostly_positive(evidence: Evidence) -> Finding:
    """`mostly_positive` on the correlations of Table 7, with Fisher's interval of `POINTS` points for each."""
    rows = table("tab07")
    found = rows[rows["metric"] == "pearson"].set_index("task")["mean"]
    counted = share(
        "spaces with a positive correlation", int((found > 0).sum()), len(found), 0.5, unit="share of spaces"
    )
    half = float(norm.ppf(1 - LEVEL / len(found) / 2)) / np.sqrt(POINTS - 3)
    negative = [
        order(f"space {space}: r =", tuple(np.tanh([z, z - half, z + half])), True, "Pearson's r")
        for space, z in np.arctanh(found).items()
    ]
    return together([counted, any_of(negative, "spaces")])


def _of_tasks(name: str, metric: str) -> pd.DataFrame:
    """Return the printed means of a metric: task (as PD1 names it), method, fold (its data set), value."""
    rows = table(name)
    rows = rows[rows["metric"] == metric]
    tasks = rows["task"].map({paper: task for task, paper in printed.pd1_names().items()})
    of = data_sets.of_tasks(PD1, tasks.unique())
    return pd.DataFrame({"task": tasks, "method": rows["method"], "fold": tasks.map(of), "value": rows["mean"]})

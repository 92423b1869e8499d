"""A printed table in a few numbers, to compare with ours on tasks other than the paper's."""

import pandas as pd

from metabo.papers.hyperbo import printed
from metabo.plots import look

SOURCES = {
    "tab05": "Wang et al. (JMLR 25, 2024), Table 5, on PD1",
    "tab06": "Wang et al. (JMLR 25, 2024), Table 6, on PD1",
    "tab07": "Wang et al. (JMLR 25, 2024), Table 7, on HPO-B",
}
"""Where the numbers are printed, and on which data."""
BEST = "best of shared methods"


def beside(ours: pd.DataFrame, name: str, metric: str, decimals: int, lowest: bool = True) -> pd.DataFrame:
    """Summarise our table and the printed one, method by method: whose, method, tasks, median, best.

    `ours`: task, method, mean in the printed unit; `name`: of the printed table; `metric`: as printed there. `whose`:
    "ours" or "paper"; `median`: of the means over the tasks that have all methods (their mean would be that of a few
    outliers); `best`: the number of those in which the method's mean is the best, at the printed precision, of the
    methods that both tables have (ties count for all; NaN for the others, which the other table does not compare with).
    Methods of either table are listed.
    """
    theirs = printed.table(name)
    theirs = theirs[(theirs["metric"] == metric) & (theirs["method"] != "all")]
    both = [method for method in dict.fromkeys(ours["method"]) if method in set(theirs["method"])]
    parts = [
        _summed(rows, decimals, lowest, both).assign(whose=whose) for whose, rows in (("ours", ours), ("paper", theirs))
    ]
    return pd.concat(parts, ignore_index=True)[["whose", "method", "tasks", "median", "best"]]


def _summed(rows: pd.DataFrame, decimals: int, lowest: bool, both: list[str]) -> pd.DataFrame:
    cells = rows.pivot(index="task", columns="method", values="mean").dropna()
    order = [method for method in dict.fromkeys(rows["method"]) if method in cells]
    cells = cells[order]
    printed_cells = cells[[method for method in order if method in both]].round(decimals)
    top = printed_cells.min(axis=1) if lowest else printed_cells.max(axis=1)
    best = printed_cells.eq(top, axis=0).sum().reindex(order)
    return pd.DataFrame(
        {"method": order, "tasks": len(cells), "median": cells.median().to_numpy(), "best": best.to_numpy()}
    )


def rows(summary: pd.DataFrame, decimals: int) -> pd.DataFrame:
    """Write a summary as the last rows of a table with a column per method, "–" where a method is not in it."""
    texts = {}
    for whose, own in summary.groupby("whose", sort=False):
        labels = [look.of(method).label for method in own["method"]]
        texts[f"{whose}: median of {own['tasks'].iloc[0]} tasks"] = dict(zip(labels, own["median"], strict=True))
        texts[f"{whose}: {BEST}"] = dict(zip(labels, own["best"], strict=True))
    found = pd.DataFrame.from_dict(texts, orient="index")
    return pd.DataFrame(
        {
            label: [
                "–" if pd.isna(value) else f"{value:.0f}" if name.endswith(BEST) else f"{value:.{decimals}f}"
                for name, value in found[label].items()
            ]
            for label in found
        },
        index=found.index,
    )

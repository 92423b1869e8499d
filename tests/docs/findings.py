"""What the tests of the pages of findings share: the pages, the recorded verdicts and the recorded runs."""

from functools import cache
from pathlib import Path

import pandas as pd

from metabo.artefacts import api
from metabo.evidence import earlier
from metabo.report import recorded
from metabo.report.scorecard import JudgedClaim

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "evidence" / "published"
PAPERS = {"HyperBO": "hyperbo", "MPHD": "mphd", "cm-BO": "cmbo", "HE-GP-UCB": "hegpucb"}
SHORT = (ROOT / "docs" / "findings.md").read_text()
"""One page a paper."""
DETAILS = {name: (ROOT / "docs" / "findings" / f"{paper}.md").read_text() for name, paper in PAPERS.items()}
TEXT = "\n".join(DETAILS.values())
FLAT = " ".join(TEXT.split())
"""The detailed pages, and the same without the breaks of lines."""
RUNS = {
    "H-NLL, PI": "h_nll-pi",
    "H-EKL, PI": "h_ekl-pi",
    "FSBO, PI": "fsbo-pi",
    "ABLR, PI": "ablr-pi",
    "EmpGP, PI": "emp_gp-pi",
    "MIMO, UCB 1.8": "mimo-ucb18",
    "RFGP, UCB 1.8": "rfgp-ucb18",
    "MAF": "maf-learned",
    "STBO, PI": "stbo-pi",
    "STBOH, UCB 1.8": "stboh-ucb18",
    "Portfolio": "portfolio-sequence",
    "Mean z": "mean_z-sequence",
    "Mean rank": "mean_rank-sequence",
    "Random": "rand-uniform",
}


def row(name: str, text: str = TEXT) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


JUDGED = earlier.tables(RECORDED)


@cache
def judged(name: str) -> list[JudgedClaim]:
    """Return the recorded verdicts of a paper, which may be of several judgings, by the readings of today."""
    read = recorded.claims(RECORDED.parent, [PAPERS[name]], ROOT)
    assert read.refused == []
    return [one.claim for one in read.held]


TABLES = {
    ("lcbench", "held_out"): "",
    ("lcbench", "new_rows"): ", new rows",
    ("pd1_mini", "held_out"): ", pd1_mini",
    ("pd1_mini", "new_rows"): ", pd1_mini, new rows",
    ("taskset", "held_out"): ", TaskSet",
    ("taskset", "new_rows"): ", TaskSet, new rows",
}
"""What stands behind the names of methods in the table of a benchmark and a split."""
TASKS = {"lcbench": 34, "pd1_mini": 24, "taskset": 12}
FOLDS = {"lcbench": (5, 1 + 1 / 4), "pd1_mini": (7, 1 + 1 / 6), "taskset": (4, 1 + 1 / 3)}
"""The number of folds, and what the training that they share adds to the variance of a mean."""
LACKS = {(*table, "STBO, PI") for table in (("lcbench", "held_out"), ("taskset", "held_out"))}
WHOLE = {("taskset", "new_rows"), ("pd1_mini", "new_rows"), ("pd1_mini", "held_out")}
"""The tables with all methods of the paper."""
LACKS |= {(*table, "MIMO, UCB 1.8") for table in TABLES if table[1] == "new_rows" and table not in WHOLE}
LACKS |= {(*table, name) for table in TABLES for name in ("RFGP, UCB 1.8", "MAF") if table not in WHOLE}


def queries(benchmark: str, split: str, run: str) -> pd.DataFrame:
    table = pd.read_parquet(RECORDED / "bo" / benchmark / split / f"{run}.parquet")
    return table[table["iteration"] > 0]


def by_task(queried: pd.DataFrame) -> pd.DataFrame:
    return queried.groupby(["task", "iteration"], observed=True)["normalised_regret"].mean().unstack()


TEXTS = ("benchmark", "space", "split", "fold", "task", "method", "acquisition", "data")


def compared(benchmark, split, names):
    table = pd.concat([queries(benchmark, split, name).astype(dict.fromkeys(TEXTS, str)) for name in names])
    return api.runs(table, "normalised_regret")


def settled(queried: pd.DataFrame) -> tuple[int, int, int]:
    """Return the numbers of runs, of runs with more than 90 queries of one point, and of runs that end off the best."""
    runs = queried.groupby(["task", "prior_seed", "seed"], observed=True)
    most = runs["candidate"].agg(lambda asked: asked.value_counts().iloc[0])
    last = queried.loc[queried["iteration"] == 100, "normalised_regret"]
    return len(most), int((most > 90).sum()), int((last > 0).sum())

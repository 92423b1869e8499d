"""The page of findings at the published sizes says what is recorded."""

from pathlib import Path

import pandas as pd
import pytest

from metabo import metrics
from metabo.papers.engine.claims.verdicts import VERDICTS
from metabo.report import rungs

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "evidence" / "published"
TEXT = (ROOT / "docs" / "findings.md").read_text()
PAPERS = {"HyperBO": "hyperbo", "MPHD": "mphd", "cm-BO": "cmbo", "HE-GP-UCB": "hegpucb"}
RUNS = {
    "H-NLL, PI": "h_nll-pi",
    "H-EKL, PI": "h_ekl-pi",
    "FSBO, PI": "fsbo-pi",
    "ABLR, PI": "ablr-pi",
    "EmpGP, PI": "emp_gp-pi",
    "STBO, PI": "stbo-pi",
    "STBOH, UCB 1.8": "stboh-ucb18",
    "Portfolio": "portfolio-sequence",
    "Mean z": "mean_z-sequence",
    "Mean rank": "mean_rank-sequence",
    "Random": "rand-uniform",
}


def row(name: str) -> list[str]:
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_are_counted_as_recorded(name):
    path = RECORDED / "claims" / f"{PAPERS[name]}.csv"
    found = [claim.whole.verdict for claim in rungs._read([path])]
    written = pd.read_csv(path)
    whole = (written["role"] == "claim").sum()
    assert row(name) == [f"{len(found)} of {whole}", *(str(found.count(verdict)) for verdict in VERDICTS)]


TABLES = {
    ("lcbench", "held_out"): "",
    ("lcbench", "new_rows"): ", new rows",
    ("pd1_mini", "held_out"): ", pd1_mini",
    ("pd1_mini", "new_rows"): ", pd1_mini, new rows",
}
"""What stands behind the names of methods in the table of a benchmark and a split."""
TASKS = {"lcbench": 34, "pd1_mini": 24}
FOLDS = {"lcbench": (5, 1 + 1 / 4), "pd1_mini": (7, 1 + 1 / 6)}
"""The number of folds, and what the training that they share adds to the variance of a mean."""
LACKS = {(*table, "STBO, PI") for table in TABLES if table != ("pd1_mini", "new_rows")}


def queries(benchmark: str, split: str, run: str) -> pd.DataFrame:
    table = pd.read_parquet(RECORDED / "bo" / benchmark / split / f"{run}.parquet")
    return table[table["iteration"] > 0]


def by_task(queried: pd.DataFrame) -> pd.DataFrame:
    return queried.groupby(["task", "iteration"], observed=True)["normalised_regret"].mean().unstack()


RECORDED_ROWS = [(*table, name) for table in TABLES for name in RUNS if (*table, name) not in LACKS]


@pytest.mark.parametrize(("benchmark", "split", "name"), RECORDED_ROWS, ids=str)
def test_regrets_are_those_of_the_recorded_runs(benchmark, split, name):
    own = queries(benchmark, split, RUNS[name])
    regret = by_task(own)
    distinct = own.groupby(["task", "prior_seed", "seed"], observed=True)["candidate"].nunique().mean()
    assert len(regret) == TASKS[benchmark] and "34 data sets" in TEXT and "24 tasks in seven folds" in TEXT
    shown = [*(f"{regret[t].mean():.3f}" for t in (1, 3, 10, 30, 100)), f"{distinct:.1f}"]
    assert row(name + TABLES[benchmark, split]) == shown


ONCE = {"H-NLL, EI": "h_nll-ei", "EmpGP, EI": "emp_gp-ei", "ABLR, EI": "ablr-ei", "STBOH, EI": "stboh-ei"}


@pytest.mark.parametrize("benchmark", TASKS)
@pytest.mark.parametrize("name", [*ONCE, "Random"])
def test_regrets_where_no_candidate_is_queried_twice_are_those_of_the_recorded_runs(name, benchmark):
    own = queries(benchmark, "held_out_other", {**ONCE, **RUNS}[name])
    regret = by_task(own)
    assert own.groupby(["task", "prior_seed", "seed"], observed=True)["candidate"].nunique().min() == 100
    shown = [f"{regret[t].mean():.3f}" for t in (1, 3, 10, 30, 100)]
    assert row(f"{name}, once{TABLES[benchmark, 'held_out']}") == shown


TEXTS = ("benchmark", "space", "split", "fold", "task", "method", "acquisition", "data")
DIFFERENCES = {
    ("lcbench", "held_out", "h_nll-pi", "rand-uniform"): (1, 10, 100),
    ("lcbench", "held_out", "h_nll-pi", "stboh-ucb18"): (10,),
    ("lcbench", "held_out", "h_nll-pi", "portfolio-sequence"): (1, 10, 100),
    ("lcbench", "held_out", "h_nll-pi", "h_ekl-pi"): (1, 10, 100),
    ("lcbench", "held_out", "h_nll-pi", "fsbo-pi"): (1, 10, 100),
    ("lcbench", "held_out", "h_nll-pi", "ablr-pi"): (10,),
    ("lcbench", "held_out", "h_nll-pi", "emp_gp-pi"): (100,),
    ("lcbench", "held_out_other", "h_nll-ei", "stboh-ei"): (10, 100),
    ("lcbench", "held_out_other", "h_nll-ei", "ablr-ei"): (10, 100),
    ("lcbench", "held_out_other", "emp_gp-ei", "stboh-ei"): (10, 100),
    ("lcbench", "held_out_other", "emp_gp-ei", "h_nll-ei"): (10, 100),
    ("lcbench", "new_rows", "h_nll-pi", "fsbo-pi"): (1, 10, 100),
    ("lcbench", "new_rows", "h_nll-pi", "emp_gp-pi"): (100,),
    ("lcbench", "new_rows", "h_nll-pi", "rand-uniform"): (1, 10, 100),
    ("lcbench", "new_rows", "h_nll-pi", "portfolio-sequence"): (1, 10, 100),
    ("lcbench", "new_rows", "h_nll-pi", "mean_z-sequence"): (1, 10, 100),
    ("lcbench", "new_rows", "h_nll-pi", "mean_rank-sequence"): (1,),
    ("lcbench", "new_rows", "h_nll-pi", "h_ekl-pi"): (1, 10, 100),
    ("pd1_mini", "held_out", "h_nll-pi", "rand-uniform"): (1, 10, 100),
    ("pd1_mini", "held_out", "h_nll-pi", "stboh-ucb18"): (10, 100),
    ("pd1_mini", "held_out", "h_nll-pi", "portfolio-sequence"): (1, 10, 100),
    ("pd1_mini", "held_out", "h_nll-pi", "h_ekl-pi"): (1,),
    ("pd1_mini", "held_out", "h_nll-pi", "emp_gp-pi"): (100,),
    ("pd1_mini", "new_rows", "h_nll-pi", "portfolio-sequence"): (1, 10, 100),
    ("pd1_mini", "new_rows", "h_nll-pi", "mean_z-sequence"): (1, 10, 100),
    ("pd1_mini", "new_rows", "h_nll-pi", "stbo-pi"): (1, 10, 100),
    ("pd1_mini", "new_rows_other", "h_nll-pi", "stbo-pi"): (10, 100),
    ("pd1_mini", "held_out_other", "h_nll-ei", "emp_gp-ei"): (10,),
    ("pd1_mini", "held_out_other", "h_nll-ei", "ablr-ei"): (10,),
    ("pd1_mini", "held_out_other", "h_nll-ei", "stboh-ei"): (10,),
}


@pytest.mark.parametrize("pair", DIFFERENCES, ids="-".join)
def test_differences_have_the_intervals_that_judge_claims(pair):
    """Over folds, with what shared training adds."""
    benchmark, split, *names = pair
    table = pd.concat([queries(benchmark, split, name).astype(dict.fromkeys(TEXTS, str)) for name in names])
    runs = metrics.collect(table, "normalised_regret")
    folds, overlap = FOLDS[benchmark]
    assert len(set(runs.folds)) == folds and runs.overlap == pytest.approx(overlap)
    (reference,) = {name.split("-")[0] for name in names[1:]}
    for row in metrics.differences(runs, reference, list(DIFFERENCES[pair]), seed=0).itertuples():
        shown = f"{row.difference:.3f} [{row.low:.3f}, {row.high:.3f}]"
        assert shown.replace("-0.000", "0.000") in " ".join(TEXT.split()).replace("-0.000", "0.000")


def test_where_h_ekl_begins_on_pd1_mini():
    """Its first queries, and those that spend nine tenths of a run on one point."""
    first = queries("pd1_mini", "held_out", "h_ekl-pi")
    first = first[(first["iteration"] == 1) & (first["fold"] == "without digits")]
    by_prior = first.groupby("prior_seed", observed=True)["normalised_regret"].mean()
    assert [f"{value:.2f}" for value in by_prior] == [
        "0.98"
    ] * 5 and "all five priors begin at a regret of 0.98" in " ".join(TEXT.split())
    stuck = []
    for run in ("h_nll-pi", "ablr-pi", "emp_gp-pi", "stboh-ucb18"):
        runs = queries("pd1_mini", "held_out", run).groupby(["task", "prior_seed", "seed"], observed=True)["candidate"]
        most = runs.agg(lambda candidates: candidates.value_counts().iloc[0])
        assert len(most) == 120
        stuck.append(int((most > 90).sum()))
    said = "54 of H-NLL, 28 of ABLR, 86 of EmpGP and 16 of STBOH"
    assert said == "{} of H-NLL, {} of ABLR, {} of EmpGP and {} of STBOH".format(*stuck)
    assert said in " ".join(TEXT.split())

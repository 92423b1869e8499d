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


SPLITS = {"held_out": "", "new_rows": ", new rows"}
"""What stands behind the names of methods in the table of a split."""


def queries(split: str, run: str) -> pd.DataFrame:
    table = pd.read_parquet(RECORDED / "bo" / "lcbench" / split / f"{run}.parquet")
    return table[table["iteration"] > 0]


def by_task(queried: pd.DataFrame) -> pd.DataFrame:
    return queried.groupby(["task", "iteration"], observed=True)["normalised_regret"].mean().unstack()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", RUNS)
def test_regrets_on_lcbench_are_those_of_the_recorded_runs(name, split):
    own = queries(split, RUNS[name])
    regret = by_task(own)
    distinct = own.groupby(["task", "prior_seed", "seed"], observed=True)["candidate"].nunique().mean()
    assert len(regret) == 34 and "34 data sets" in TEXT
    shown = [*(f"{regret[t].mean():.3f}" for t in (1, 3, 10, 30, 100)), f"{distinct:.1f}"]
    assert row(name + SPLITS[split]) == shown


ONCE = {"H-NLL, EI": "h_nll-ei", "EmpGP, EI": "emp_gp-ei", "ABLR, EI": "ablr-ei", "STBOH, EI": "stboh-ei"}


@pytest.mark.parametrize("name", [*ONCE, "Random"])
def test_regrets_where_no_candidate_is_queried_twice_are_those_of_the_recorded_runs(name):
    own = queries("held_out_other", {**ONCE, **RUNS}[name])
    regret = by_task(own)
    assert own.groupby(["task", "prior_seed", "seed"], observed=True)["candidate"].nunique().min() == 100
    assert row(f"{name}, once") == [f"{regret[t].mean():.3f}" for t in (1, 3, 10, 30, 100)]


TEXTS = ("benchmark", "space", "split", "fold", "task", "method", "acquisition", "data")
DIFFERENCES = {
    ("held_out", "h_nll-pi", "rand-uniform"): (1, 10, 100),
    ("held_out", "h_nll-pi", "stboh-ucb18"): (10,),
    ("held_out", "h_nll-pi", "portfolio-sequence"): (1, 10, 100),
    ("held_out", "h_nll-pi", "h_ekl-pi"): (1, 10, 100),
    ("held_out", "h_nll-pi", "fsbo-pi"): (1, 10, 100),
    ("held_out", "h_nll-pi", "ablr-pi"): (10,),
    ("held_out", "h_nll-pi", "emp_gp-pi"): (100,),
    ("held_out_other", "h_nll-ei", "stboh-ei"): (10, 100),
    ("held_out_other", "h_nll-ei", "ablr-ei"): (10, 100),
    ("held_out_other", "emp_gp-ei", "stboh-ei"): (10, 100),
    ("held_out_other", "emp_gp-ei", "h_nll-ei"): (10, 100),
    ("new_rows", "h_nll-pi", "fsbo-pi"): (1, 10, 100),
    ("new_rows", "h_nll-pi", "emp_gp-pi"): (100,),
    ("new_rows", "h_nll-pi", "rand-uniform"): (1, 10, 100),
    ("new_rows", "h_nll-pi", "portfolio-sequence"): (1, 10, 100),
    ("new_rows", "h_nll-pi", "mean_z-sequence"): (1, 10, 100),
    ("new_rows", "h_nll-pi", "mean_rank-sequence"): (1,),
    ("new_rows", "h_nll-pi", "h_ekl-pi"): (1, 10, 100),
}


@pytest.mark.parametrize("pair", DIFFERENCES, ids="-".join)
def test_differences_on_lcbench_have_the_intervals_that_judge_claims(pair):
    """Over folds, with what shared training adds."""
    split, *names = pair
    table = pd.concat([queries(split, name).astype(dict.fromkeys(TEXTS, str)) for name in names])
    runs = metrics.collect(table, "normalised_regret")
    assert len(set(runs.folds)) == 5 and runs.overlap == 1.25
    (reference,) = {name.split("-")[0] for name in names[1:]}
    for row in metrics.differences(runs, reference, list(DIFFERENCES[pair]), seed=0).itertuples():
        shown = f"{row.difference:.3f} [{row.low:.3f}, {row.high:.3f}]"
        assert shown.replace("-0.000", "0.000") in " ".join(TEXT.split()).replace("-0.000", "0.000")

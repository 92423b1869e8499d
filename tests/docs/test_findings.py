"""The page of findings at the published sizes says what is recorded."""

from pathlib import Path

import pandas as pd
import pytest

from metabo.papers.engine.claims.verdicts import VERDICTS
from metabo.report import rungs

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "evidence" / "published"
TEXT = (ROOT / "docs" / "findings.md").read_text()
PAPERS = {"HyperBO": "hyperbo", "MPHD": "mphd", "cm-BO": "cmbo", "HE-GP-UCB": "hegpucb"}
RUNS = {
    "H-NLL, PI": "h_nll-pi",
    "H-EKL, PI": "h_ekl-pi",
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


@pytest.mark.parametrize("name", RUNS)
def test_regrets_on_lcbench_are_those_of_the_recorded_runs(name):
    table = pd.read_parquet(RECORDED / "bo" / "lcbench" / "held_out" / f"{RUNS[name]}.parquet")
    own = table[table["iteration"] > 0]
    by_task = own.groupby(["task", "iteration"], observed=True)["normalised_regret"].mean().unstack()
    distinct = own.groupby(["task", "prior_seed", "seed"], observed=True)["candidate"].nunique().mean()
    assert len(by_task) == 34 and "34 data sets" in TEXT
    assert row(name) == [*(f"{by_task[t].mean():.3f}" for t in (1, 3, 10, 30, 100)), f"{distinct:.1f}"]

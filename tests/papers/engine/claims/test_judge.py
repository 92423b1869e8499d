"""Judging: one row per test and benchmark, one per claim, from the files of a run; and the stage that writes them."""

import json
from pathlib import Path

import pandas as pd
import pytest

from metabo.artefacts import api as artefacts
from metabo.errors import DataError
from metabo.papers.engine.claims import judge, sheet
from metabo.papers.engine.claims.evidence import Evidence, gather
from metabo.papers.engine.claims.sheet import Claim, ClaimTest
from metabo.papers.engine.claims.verdicts import FAILED, REPLICATED, UNTESTABLE, WEAK, Finding
from metabo.plan import catalogue
from tests import stage_runs
from tests.papers.engine.claims.cases_studies import STUDIES
from tests.papers.engine.claims.cases_tables import TABLES

ROOT = Path(__file__).parents[4]
ENTRIES = catalogue.load(ROOT)
PLACES = [("hyperbo_fig03", ""), ("hyperbo_tab03", "pd1_mini"), ("hyperbo_tab04", "pd1_mini")]
MADE = [catalogue.Artefact(id, id, benchmark, ENTRIES[id]) for id, benchmark in PLACES]
DIFFER, FEW = ClaimTest("hyperbo_fig03", "minima_differ"), ClaimTest("hyperbo_tab03", "few_tasks", {"most": 101})


def claim(*tests: ClaimTest, id: str = "C01", **more) -> Claim:
    return Claim(id, "hyperbo", "A statement.", "1", "-", tests, **more)


@pytest.fixture
def results(tmp_path):
    """A results folder in which C14 holds and C08 and C13 do not."""
    frames = {"hyperbo_fig03": STUDIES["minima_differ"](True)[0], "hyperbo_tab03": TABLES["few_tasks"](False)[0]}
    frames["hyperbo_tab04"] = TABLES["inside_box"](False)[0]
    for artefact in MADE:
        folder = tmp_path / artefact.place
        folder.mkdir(parents=True)
        data = frames[artefact.id].data.assign(artefact=artefact.id, benchmark=artefact.benchmark)
        data.to_csv(folder / "data.csv", index=False)
    for kind in (path for artefact in MADE for paths in artefact.files.values() for path in paths):
        (tmp_path / kind).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / kind).touch()
    return tmp_path


def test_a_claim_of_one_test_has_one_row(results):
    table, read = judge.judge([claim(DIFFER)], MADE, results)
    assert list(table.columns) == list(judge.COLUMNS) and len(table) == 1
    row = table.iloc[0]
    assert (row.claim, row.benchmark, row.artefact, row.verdict) == ("C01", "synthetic", "hyperbo_fig03", REPLICATED)
    assert row.value == 0.9 and row.low < 0.9 < row.high and row.unit == "share of draws" and row.paper_value == "-"
    assert set(read) == {"hyperbo_fig03"}
    assert str(results / "hyperbo/hyperbo_fig03/data.csv") in read["hyperbo_fig03"]
    assert str(results / "studies/landscapes.parquet") in read["hyperbo_fig03"]


def test_a_claim_of_several_tests_is_as_good_as_the_worst(results):
    table, _ = judge.judge([claim(DIFFER, FEW), claim(DIFFER, id="C02")], MADE, results)
    assert table["claim"].tolist() == ["C01", "C01", "C01", "C02"]
    assert table["verdict"].tolist() == [REPLICATED, FAILED, FAILED, REPLICATED]
    summary = table.iloc[2]
    assert (summary.benchmark, summary.artefact) == ("all", "hyperbo_fig03 hyperbo_tab03")
    assert summary.said == "1 replicated, 1 not replicated of 2 tests" and pd.isna(summary.value)
    assert judge.headline(table)["verdict"].tolist() == [FAILED, REPLICATED]


def test_a_benchmark_that_was_not_run_is_not_testable_and_does_not_count(results):
    elsewhere = ClaimTest("hyperbo_tab03", "few_tasks", {"most": 101}, ("pd1",))
    table, _ = judge.judge([claim(elsewhere), claim(DIFFER, elsewhere, id="C02")], MADE, results)
    assert table["verdict"].tolist() == [UNTESTABLE, REPLICATED, UNTESTABLE, REPLICATED]
    assert table.iloc[0].benchmark == "pd1" and "hyperbo_tab03 on pd1 is not part of this run" in table.iloc[0].said


def test_an_untestable_claim_says_why(results):
    table, _ = judge.judge([claim(untestable="No run has it.")], MADE, results)
    assert table[["benchmark", "verdict", "said"]].values.tolist() == [["all", UNTESTABLE, "No run has it."]]


def test_pooled_claims_count_over_their_tests():
    parts = [Finding(FAILED, "", 0.25, count=1, of=4), Finding(REPLICATED, "", 0.9, count=9, of=10)]
    found = judge.summary(claim(pooled=0.5), [*parts, Finding(UNTESTABLE, "")])
    assert (found.verdict, found.value, found.said) == (REPLICATED, 10 / 14, "over 2 tests: 10 of 14")
    assert judge.summary(claim(pooled=0.8), parts).verdict == FAILED
    assert judge.summary(claim(pooled=0.5), [Finding(WEAK, "", 1.0)]).verdict == UNTESTABLE


def test_a_table_that_the_notebook_left_out_is_not_testable(results):
    table, _ = judge.judge([claim(ClaimTest("hyperbo_fig03", "inside_box"))], MADE, results)
    assert table["verdict"].tolist() == [UNTESTABLE] and "no table 'range'; it holds differ" in table.iloc[0].said


def test_a_missing_file_stops(results):
    (results / "hyperbo" / "hyperbo_fig03" / "data.csv").unlink()
    with pytest.raises(DataError, match=r"hyperbo_fig03/data.csv: no such table; make it"):
        judge.judge([claim(DIFFER)], MADE, results)


def test_a_table_of_data_csv_comes_back(results):
    evidence, _ = gather(MADE[0], results)
    table = evidence.table("differ")
    assert table["parameter"].tolist() == ["amplitude", "constant"] and table["share"].tolist() == [0.9, 0.9]
    table["share"] = 0.0
    assert evidence.table("differ")["share"].tolist() == [0.9, 0.9]  # a copy


def test_keys_that_other_tables_lack_keep_their_type():
    frames = {
        "a": pd.DataFrame({"size": [4, 100], "mean": [1.0, 2.0]}),
        "b": pd.DataFrame({"task": ["1"], "mean": [0.0]}),
    }
    data = artefacts.numbers(frames, ["size", "task"])
    evidence = Evidence("tables", {"data": lambda: data})
    assert evidence.table("a")["size"].tolist() == [4, 100] and evidence.table("a")["size"].dtype == "int64"
    assert evidence.table("b")["task"].tolist() == ["1"] and list(evidence.table("b")) == ["task", "mean"]


def test_the_stage_writes_the_table_and_what_it_read(results, tmp_path):
    spec = {"paper": "hyperbo", "results": str(results), "artefacts": [list(place) for place in PLACES]}
    data = [str(results / artefact.place / "data.csv") for artefact in MADE]
    options = ["--in-sheet", str(sheet.path("hyperbo")), "--in-catalogue", str(catalogue.CATALOGUE), "--in-data", *data]
    out = stage_runs.run("claims", spec, tmp_path / "claims" / "hyperbo.csv", *options)
    table = pd.read_csv(out)
    claims = sheet.load("hyperbo", ROOT)
    assert table["claim"].drop_duplicates().tolist() == [c.id for c in claims]
    verdicts = judge.headline(table).set_index("claim")["verdict"]
    assert (verdicts["C14"], verdicts["C13"], verdicts["C08"]) == (REPLICATED, FAILED, UNTESTABLE)  # C08 is about PD1
    assert (verdicts == UNTESTABLE).sum() == len(claims) - 2
    record = json.loads(out.with_suffix(".json").read_text())
    assert record["verdicts"] == verdicts.value_counts().to_dict() and record["rows"] == len(table)
    assert data[0] in record["read"] and len(record["read"][data[0]]) == 64

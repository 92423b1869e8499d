"""Judging: one row per test and benchmark, one per claim, from the files of a run; and the stage that writes them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metabo.artefacts import api as artefacts
from metabo.errors import DataError
from metabo.papers.engine.claims import judge, settling, sheet
from metabo.papers.engine.claims.conjunctions import any_of, together
from metabo.papers.engine.claims.evidence import Evidence, gather
from metabo.papers.engine.claims.ranges import at_least
from metabo.papers.engine.claims.sheet import Claim, ClaimTest, Primary
from metabo.papers.engine.claims.verdicts import (
    CONTRADICTED,
    HOLDS,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    order,
    share_of_units,
)
from metabo.plan import catalogue
from tests import stage_runs
from tests.papers.engine.claims.cases_studies import STUDIES
from tests.papers.engine.claims.cases_tables import TABLES

ROOT = Path(__file__).parents[4]
ENTRIES = catalogue.load(ROOT)
PLACES = [("hyperbo_fig03", ""), ("hyperbo_tab03", "pd1_mini"), ("hyperbo_tab04", "pd1_mini")]
MADE = [catalogue.Artefact(id, id, benchmark, ENTRIES[id]) for id, benchmark in PLACES]
DIFFER, FEW = ClaimTest("hyperbo_fig03", "minima_differ"), ClaimTest("hyperbo_tab03", "few_tasks", {"most": 101})


def claim(*tests: ClaimTest, id: str = "C01", on=("synthetic",), metrics=("share",), **more) -> Claim:
    cell = Primary(tuple(on), "default", "none", tuple(metrics), 0.0) if tests else None
    return Claim(id, "hyperbo", "A statement.", "1", "-", tests, kind="direct", primary=cell, **more)


def judged(claims, root, made=tuple(MADE)):
    return judge.judge(claims, made, root, ENTRIES)


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


def test_a_claim_of_one_part_has_one_row(results):
    table, _, read = judged([claim(DIFFER, headline=True)], results)
    assert list(table.columns) == list(judge.COLUMNS) and len(table) == 1
    row = table.iloc[0]
    assert (row.claim, row.role, row.benchmark, row.artefact) == ("C01", "claim", "synthetic", "hyperbo_fig03")
    assert (row.verdict, row.cause, row.headline, row.kind, row.metrics) == (HOLDS, "", 1, "direct", "share")
    assert row.low < row.value < row.high and row.unit == "share of draws" and row.paper_value == "-"
    assert set(read) == {"hyperbo_fig03"}
    assert str(results / "hyperbo/hyperbo_fig03/data.csv") in read["hyperbo_fig03"]
    assert str(results / "studies/landscapes.parquet") in read["hyperbo_fig03"]


def test_a_claim_needs_all_its_parts_and_nothing_beside_them(results):
    both = claim(DIFFER, FEW, on=("synthetic", "pd1_mini"))
    apart = claim(DIFFER, replace(FEW, beside="another reading"), id="C02")
    table, _, _ = judged([both, apart], results)
    assert table[["claim", "role"]].values.tolist() == [
        ["C01", "claim"], ["C01", "part"], ["C01", "part"], ["C02", "claim"], ["C02", "beside"],
    ]  # fmt: skip
    assert table["verdict"].tolist() == [CONTRADICTED, HOLDS, CONTRADICTED, HOLDS, CONTRADICTED]
    whole = table.iloc[0]
    assert (whole.benchmark, whole.artefact) == ("synthetic pd1_mini", "hyperbo_fig03 hyperbo_tab03")
    assert table.iloc[4].reading == "another reading" and table.iloc[4].benchmark == "pd1_mini"
    assert judge.verdicts(table)["verdict"].tolist() == [CONTRADICTED, HOLDS]


def test_a_part_that_was_not_run_leaves_the_claim_untestable(results):
    elsewhere = ClaimTest("hyperbo_tab03", "few_tasks", {"most": 101}, ("pd1",))
    table, _, _ = judged(
        [claim(elsewhere, on=["pd1"]), claim(DIFFER, elsewhere, id="C02", on=["synthetic", "pd1"])], results
    )
    verdicts = judge.verdicts(table)
    assert verdicts["verdict"].tolist() == [UNTESTABLE, UNTESTABLE] and verdicts["cause"].tolist() == ["data", "data"]
    assert table.iloc[0].benchmark == "pd1" and "hyperbo_tab03 on pd1 is not part of this run" in table.iloc[0].said
    assert table[table["role"] == "part"]["verdict"].tolist() == [HOLDS, UNTESTABLE]


def test_an_untestable_claim_says_why(results):
    table, _, _ = judged([claim(untestable="No run has it.")], results)
    said = [["claim", UNTESTABLE, "beyond", "No run has it."]]
    assert table[["role", "verdict", "cause", "said"]].values.tolist() == said


def told(verdict, on="pd1_mini", beside="", reading="", **more):
    test = ClaimTest("hyperbo_fig08", "lower_regret", {}, (), beside)
    role = "part" if not beside and on == "pd1_mini" and not reading else "beside"
    return settling.Judged(
        settling.ClaimCell("C01", test, on, role, reading or beside, None), Finding(verdict, "x", 1.0, **more)
    )


STRONG = {"support": 1e-4}


@pytest.mark.parametrize(
    ("part", "beside", "more", "expected"),
    [
        (HOLDS, [told(CONTRADICTED, beside="other")], {}, (HOLDS, "")),
        (CONTRADICTED, [], {}, (CONTRADICTED, "unresolved")),
        (CONTRADICTED, [], {"metrics": ("statement",)}, (CONTRADICTED, "claim")),
        (CONTRADICTED, [], {"ours": "fewer steps than the paper"}, (CONTRADICTED, "ours")),
        (CONTRADICTED, [told(HOLDS, on="lcbench", **STRONG)], {}, (CONTRADICTED, "data")),
        (CONTRADICTED, [told(UNDECIDED, beside="other")], {}, (UNDECIDED, "reading")),
        (CONTRADICTED, [told(CONTRADICTED, beside="other", against=1e-4)], {}, (CONTRADICTED, "unresolved")),
        (CONTRADICTED, [told(UNTESTABLE, beside="other")], {}, (UNDECIDED, "untested")),
        (CONTRADICTED, [told(HOLDS, reading="regret at 10")], {}, (CONTRADICTED, "unresolved")),  # a metric, no reading
        (UNDECIDED, [], {}, (UNDECIDED, "open")),
        (UNDECIDED, [told(HOLDS, beside="other", **STRONG)], {}, (UNDECIDED, "reading")),
        (UNDECIDED, [told(HOLDS, on="lcbench", **STRONG)], {}, (UNDECIDED, "data")),
        (UNDECIDED, [], {"ours": "fewer steps than the paper"}, (UNDECIDED, "ours")),
        (UNTESTABLE, [], {}, (UNTESTABLE, "data")),
    ],
)
def test_only_the_primary_cell_decides_and_the_cause_is_named(part, beside, more, expected):
    found, cause = settling.settled(claim(DIFFER, on=["pd1_mini"], **more), [told(part)], beside)
    assert (found.verdict, cause) == expected and cause in ("", *settling.CAUSES)


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ({"power": 0.3, "clusters": 9, "needed": 40}, "power"),
        ({"power": 0.3, "clusters": 9}, "power"),  # more units than anyone counts
        ({"power": 0.96, "clusters": 50, "needed": 30}, "small"),
        ({"power": 0.3}, "open"),  # nothing of which there could be more
        ({"clusters": 2000, "count": 1700, "of": 2000}, "open"),  # a share, of whose power nothing is said
        ({"clusters": 3, "decidable": False}, "few"),
        ({"power": 0.3, "clusters": 3, "needed": 40, "decidable": False}, "few"),
    ],
)
def test_power_is_the_cause_only_where_the_row_says_so(row, cause):
    found = settling.settled(claim(DIFFER, on=["pd1_mini"]), [told(UNDECIDED, **row)], [])
    assert found[1] == cause


def test_a_claim_with_a_part_that_too_few_units_could_never_decide_says_so():
    few = share_of_units("three that agree", 1.0, 3.0, 0.5)
    assert few.verdict == UNDECIDED and not few.decidable and share_of_units("six", 1.0, 6.0, 0.5).decidable
    sure, open_one = Finding(HOLDS, "x", support=1e-9), Finding(UNDECIDED, "y")
    assert not together([sure, few]).decidable and together([sure, open_one]).decidable
    assert any_of([few, open_one]).decidable and not any_of([few, few]).decidable
    parts = [replace(told(HOLDS), finding=one) for one in (sure, few)]
    assert settling.settled(claim(DIFFER, on=["pd1_mini"]), parts, [])[1] == "few"
    against = replace(told(HOLDS), finding=Finding(CONTRADICTED, "z", against=1e-9))
    assert settling.settled(claim(DIFFER, on=["pd1_mini"]), [*parts, against], [])[0].verdict == CONTRADICTED


def test_a_reading_that_was_not_run_keeps_a_claim_from_being_contradicted(results):
    """C13 is contradicted by its part; one reading of it is of an artefact that this run lacks."""
    part = ClaimTest("hyperbo_tab04", "inside_box")
    rows, _, _ = judged([claim(part, on=("pd1_mini",))], results)
    assert rows["verdict"].tolist() == [CONTRADICTED]
    for beside, expected in [("another reading", UNDECIDED), ("repaired", CONTRADICTED)]:
        other = ClaimTest("hyperbo_fig07", "minima_differ", beside=beside)
        rows, _, _ = judged([claim(part, other, on=("pd1_mini",))], results)
        assert rows["verdict"].iloc[0] == expected
        assert len(rows) == (2 if expected == UNDECIDED else 1)
    rows, _, _ = judged(
        [claim(part, replace(other, beside="another reading", partial=True), on=("pd1_mini",))], results
    )
    assert rows["verdict"].tolist() == [CONTRADICTED], "a reading of a part of the claim decides nothing"
    rows, _, _ = judged([claim(part, replace(other, beside="another reading"), on=("pd1",))], results)
    assert rows["verdict"].iloc[0] == UNTESTABLE and "another reading" not in rows["reading"].tolist(), (
        "no part is judged"
    )


def test_a_reading_that_cannot_be_tested_neither_agrees_nor_disagrees():
    against, lost = told(CONTRADICTED, beside="another", against=1e-4), told(UNTESTABLE, beside="third")
    found, cause = settling.settled(claim(DIFFER), [told(CONTRADICTED, against=1e-9)], [against, lost])
    assert (found.verdict, cause) == (UNDECIDED, "untested")
    assert found.said == "contradicted under every reading that can be tested, not testable under another (third: x): x"
    held = told(HOLDS, beside="fourth", **STRONG)  # one that disagrees decides, whatever cannot be tested
    assert settling.settled(claim(DIFFER), [told(CONTRADICTED)], [lost, held])[1] == "reading"
    for verdict in (HOLDS, UNDECIDED):
        assert settling.settled(claim(DIFFER), [told(verdict)], [lost])[0].verdict == verdict
    theory = replace(against.cell, test=ClaimTest("hyperbo_x03", "statements"), benchmark="synthetic")
    refuted = settling.Judged(theory, Finding(CONTRADICTED, "x", 1.0, against=0.0))
    assert settling.settled(claim(DIFFER), [refuted], [lost])[0].verdict == CONTRADICTED  # no reading of it saves that


def test_a_refuted_statement_is_the_fault_of_the_claim():
    """Whatever else the claim is about, and only if theory is what contradicts it."""
    runs = told(UNDECIDED)
    theory = replace(runs.cell, test=ClaimTest("hyperbo_x03", "statements"), benchmark="synthetic")
    refuted = settling.Judged(theory, Finding(CONTRADICTED, "x", 1.0, against=0.0))
    assert settling.settled(claim(DIFFER), [refuted, runs], [])[1] == "claim"
    reading = told(UNDECIDED, beside="another")  # of the runs
    assert settling.settled(claim(DIFFER), [refuted, runs], [reading])[1] == "claim"
    proved, contrary = replace(refuted, finding=Finding(HOLDS, "x", 1.0)), told(CONTRADICTED, against=1e-9)
    assert settling.settled(claim(DIFFER), [proved, contrary], [])[1] == "unresolved"


@pytest.mark.parametrize(
    ("other", "rung", "cause"),
    [
        ("lcbench", "published", "claim"),
        ("lcbench", "default", "unresolved"),
        ("pd1_mini_nan", "published", "unresolved"),  # of the same archive
        ("super_mini", "published", "unresolved"),  # made of it
    ],
)
def test_two_independent_benchmarks_contradict_at_the_published_size(other, rung, cause):
    parts, beside = [told(CONTRADICTED, against=1e-9)], [told(CONTRADICTED, on=other)]
    assert settling.settled(claim(DIFFER, on=["pd1_mini"]), parts, beside, rung)[1] == cause
    assert settling.settled(claim(DIFFER, on=["pd1_mini"]), parts, [told(UNDECIDED, on=other)], rung)[1] == "unresolved"
    assert (
        settling.settled(claim(DIFFER, on=["pd1_mini"]), parts, [*beside, told(HOLDS, on="taskset")], rung)[1] == "data"
    )


def test_benchmarks_of_one_archive_are_one_source():
    assert settling.sources("synthetic") == {"synthetic"}
    assert settling.sources("super_mini") > settling.sources("pd1_mini") | settling.sources("hpob_mini")
    assert settling.sources("cmbo_hpob") == settling.sources("hpob") != settling.sources("lcbench")
    both = [told(CONTRADICTED, against=1e-9), told(HOLDS, on="lcbench")]
    assert settling.settled(claim(DIFFER), both, [], "published")[1] != "claim"  # the second one holds


def test_a_partial_reading_cannot_save_a_claim():
    """It was made for one panel of three: that it is not contradicted there says nothing of the other two."""
    parts, other = [told(CONTRADICTED, against=1e-9)], told(UNDECIDED, beside="another")
    part = replace(other, cell=replace(other.cell, test=replace(other.cell.test, partial=True)))
    assert settling.settled(claim(DIFFER), parts, [other])[0].verdict == UNDECIDED
    assert settling.settled(claim(DIFFER), parts, [part])[0].verdict == CONTRADICTED


@pytest.mark.parametrize(
    ("own", "said"), [(HOLDS, "supported by"), (UNDECIDED, "not supported by"), (CONTRADICTED, "contradicted by")]
)
def test_the_papers_own_table_is_no_reading_but_the_row_says_whether_it_passes(own, said):
    parts, beside = [told(CONTRADICTED, against=0.0)], [told(own, beside="the paper's own table")]
    found, cause = settling.settled(claim(DIFFER), parts, beside)
    alone, same = settling.settled(claim(DIFFER), parts, [])
    assert (found.verdict, cause) == (alone.verdict, same)
    assert found.said == f"x; {said} the paper's own table ({own}: x)"
    gate = settling.Gate("g", (), False, 0.0, 0.5, "why")
    gated = replace(parts[0], finding=replace(parts[0].finding, verdict=UNTESTABLE), gates=(gate,))
    found, cause = settling.settled(claim(DIFFER), [gated], beside)
    assert cause == "gate" and found.said == f"{gate.failure}; {said} the paper's own table ({own}: x)"


def test_gates_of_a_run_say_nothing_of_the_papers_own_table(results, monkeypatch):
    failed = settling.Gate("g", (), False, 0.0, 0.5, "nothing beats Random")
    monkeypatch.setattr(judge.gates, "of", lambda paper, evidence: [failed])
    own = replace(FEW, beside=settling.OWN_TABLE)
    table, _, _ = judged([claim(DIFFER, FEW, own, on=["synthetic", "pd1_mini"])], results)
    told = table.set_index(["role", "reading"])["verdict"]
    assert told["claim"].item() == UNTESTABLE
    printed = table[table["reading"] == settling.OWN_TABLE]
    assert len(printed) and UNTESTABLE not in set(printed["verdict"])
    assert set(printed["benchmark"] + printed["rung"]) == {""}  # of no run


def test_a_repaired_statement_is_no_reading_but_the_row_says_what_it_shows():
    parts, beside = [told(CONTRADICTED, against=0.0)], [told(HOLDS, beside="repaired")]
    found, cause = settling.settled(claim(DIFFER, on=["pd1_mini"], metrics=("statement",)), parts, beside)
    assert (found.verdict, cause) == (CONTRADICTED, "claim") and found.said == "x; repaired, holds: x"
    assert (
        settling.settled(claim(DIFFER), parts, [told(HOLDS, beside="another")])[0].verdict == UNDECIDED
    )  # a reading saves it


def test_a_reading_that_holds_is_corrected_for_the_number_of_readings():
    """Of ten readings one with p = 0.01 is what chance gives."""
    others = [told(UNDECIDED, beside=f"reading {n}", support=0.5) for n in range(9)]
    barely, clear = (told(HOLDS, beside="this one", support=p) for p in (0.01, 0.002))
    assert settling.settled(claim(DIFFER), [told(UNDECIDED)], [*others, barely])[1] == "open"
    assert settling.settled(claim(DIFFER), [told(UNDECIDED)], [*others, clear])[1] == "reading"


def test_other_metrics_stand_beside_an_order_without_a_moment():
    area = ClaimTest("hyperbo_fig08", "lower_regret", {"lower": ["h_nll"], "at": ["area"]})
    assert [(n, t.arguments["at"]) for n, t in judge.other_metrics("hyperbo", area)] == [
        ("last", [100]), ("regret at 10", [10]),
    ]  # fmt: skip
    named = replace(area, arguments={"lower": ["h_nll"], "at": [1, 5]})
    assert judge.other_metrics("hyperbo", named) == [] and judge.other_metrics("hyperbo", DIFFER) == []
    place = ClaimTest("hyperbo_fig08", "place", {"method": "ablr", "at": "area"})
    assert [t.arguments["at"] for _, t in judge.other_metrics("hyperbo", place)] == [100, 10]


def counted(won: int, lost: int, p: float = 1e-4) -> Finding:
    """Return the finding of a test that counts parts which surely hold, or surely do not."""
    parts = [Finding(HOLDS, "", support=p)] * won + [Finding(CONTRADICTED, "", against=p)] * lost
    return at_least("parts", parts, [True] * won + [False] * lost, 1)


def test_pooled_claims_count_over_their_tests():
    parts = [counted(1, 3), counted(9, 1)]
    found = settling.pooled(parts, 0.5)
    assert (found.verdict, found.value, found.count, found.of) == (HOLDS, 10 / 14, 10, 14)
    assert (
        found.low == found.high == found.value and found.support < 0.025 and found.said.startswith("over 2 tests: 10")
    )
    assert (
        settling.pooled(parts, 0.9).verdict == CONTRADICTED and settling.pooled(parts, 10 / 14).verdict == CONTRADICTED
    )
    for bound in (0.5, 0.9):
        assert settling.pooled([*parts, Finding(UNTESTABLE, "")], bound).verdict == UNTESTABLE
    assert settling.pooled([Finding(UNDECIDED, "", 1.0)], 0.5).verdict == UNTESTABLE


def test_a_pooled_claim_is_no_surer_than_one_test():
    """Three of six tests of one part hold with p = 0.02 each: as three of six parts of one test, that is too little."""
    tests = [counted(1, 0, p=0.02)] * 3 + [at_least("parts", [Finding(UNDECIDED, "")], [False], 1)] * 3
    assert sum(test.low for test in tests) / 6 == 0.5  # the sum of the tests' own bounds
    assert settling.pooled(tests, 0.4).verdict == UNDECIDED
    assert settling.pooled(tests[:3] * 2, 0.4).verdict == HOLDS


def test_pooled_claims_are_rarely_wrong():
    """Six tests of three parts each, half of which are true; the others are at their bound. Sums of the tests' own
    bounds are wrong up to six times as often as one."""
    rng, wrong, studies = np.random.default_rng(0), 0, 1000
    for _ in range(studies):
        tests = []
        for _ in range(6):
            z = rng.normal([6.0, 0.0, 0.0]) + 0.5 * rng.normal()
            parts = [order("a", (-v, -v - 1.96 * 1.12, -v + 1.96 * 1.12)) for v in z]
            tests.append(at_least("parts", parts, list(z > 0), 2))
        wrong += settling.pooled(tests, 6 / 18).verdict == HOLDS
    assert wrong / studies <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / studies)


def test_a_table_that_the_notebook_left_out_is_not_testable(results):
    table, _, _ = judged([claim(ClaimTest("hyperbo_fig03", "inside_box"))], results)
    assert table["verdict"].tolist() == [UNTESTABLE] and "no table 'range'; it holds differ" in table.iloc[0].said


def test_a_missing_file_stops(results):
    (results / "hyperbo" / "hyperbo_fig03" / "data.csv").unlink()
    with pytest.raises(DataError, match=r"hyperbo_fig03/data.csv: no such table; make it"):
        judged([claim(DIFFER)], results)


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
    options += ["--out-gates", str(tmp_path / "claims" / "hyperbo-gates.csv")]
    out = stage_runs.run("claims", spec, tmp_path / "claims" / "hyperbo.csv", *options)
    table = pd.read_csv(out)
    claims = sheet.load("hyperbo", ROOT)
    assert table["claim"].drop_duplicates().tolist() == [c.id for c in claims]
    verdicts = judge.verdicts(table).set_index("claim")["verdict"]
    # C08 and C13 are about the paper's archives, whatever our collections show
    assert (verdicts["C14"], verdicts["C13"], verdicts["C08"]) == (HOLDS, UNTESTABLE, UNTESTABLE)
    assert (verdicts == UNTESTABLE).sum() == len(claims) - 1
    record = json.loads(out.with_suffix(".json").read_text())
    assert record["verdicts"] == verdicts.value_counts().to_dict() and record["rows"] == len(table)
    assert data[0] in record["read"] and len(record["read"][data[0]]) == 64

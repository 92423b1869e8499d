"""Recorded verdicts beside those of a run: per claim, in the scorecard and in the picture; others are named."""

import html
import json
import re
import shutil
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from metabo.cli import main
from metabo.errors import DataError
from metabo.evidence import manifest, recorded
from metabo.papers.engine.claims import sheet
from metabo.papers.engine.claims.sheet import OWN_TABLE
from metabo.plan import catalogue, typed
from metabo.plan.specs import ReportSpec
from metabo.records.checksums import sealed
from metabo.report import rungs, scorecard
from metabo.stages import report as stage
from tests.evidence.conftest import make, resealed
from tests.report.conftest import REPORT, claim_row, reported
from tests.report.test_answers import claim

OUT = Path("results/smoke")
PUBLISHED = Path("evidence/published")
RECORDED = [
    (
        "C01",
        "Pre-training helps.",
        "3 times",
        "claim",
        "tables",
        "hyperbo_fig08",
        "contradicted",
        0.4,
        0.2,
        0.6,
        "times",
    ),
    ("C02", "It helps on all tasks.", "-", "claim", "tables", "hyperbo_fig08", "holds", 3.0, 2.0, 4.0, "times"),
    ("C02", "It helps on all tasks.", "-", "beside", "lcbench", "hyperbo_fig08", "undecided", 1.0, 0.5, 1.5, "times"),
    ("C03", "Its error is below 2 %.", "0.9", "claim", "tables", "hyperbo_tab05", "holds", 1.0, None, None, "%"),
]
"""Unlike the run in this folder's conftest: C01 holds there and C02 is undecided, and C03 is another claim."""


def verdicts(rows=RECORDED, **changes):
    """Return the text of a table of verdicts at the published rung."""
    table = pd.DataFrame([claim_row(row) | {"rung": "published"} | changes for row in rows])
    return table.reindex(columns=list(scorecard.COLUMNS)).to_csv(index=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder with recorded results, added by the command from a tiny run of the scale `published`."""
    root = tmp_path_factory.mktemp("published")
    made = make(root, scale="published", claims=verdicts())
    main(["evidence", "add", str(made), "--to", str(root / "evidence")])
    return root / "evidence"


@pytest.fixture
def beside(kept, copied):
    """Return the run of this folder's conftest, which is the present folder, with recorded results beside it."""
    shutil.copytree(kept, "evidence")
    return copied


@pytest.fixture
def shown(capsys):
    """Return the function that does the work of the report stage here; it returns what that tells the sidecar and
    prints, the page as text, and the scorecard."""
    parser = ArgumentParser()
    parser.add_argument("--out")
    stage.add_arguments(parser)

    def write():
        capsys.readouterr()
        told = stage.work(
            parser.parse_args([*reported(), "--evidence", "evidence"]), typed.read(ReportSpec, REPORT, "")
        )
        page = re.sub(r"<(script|style)>.*?</\1>|<[^>]+>", " ", (OUT / "index.html").read_text(), flags=re.S)
        table = pd.read_csv(OUT / "scorecard.csv").set_index(["claim", "source"])
        return told["evidence"], capsys.readouterr().out, html.unescape(re.sub(r"\s+", " ", page)), table

    return write


def test_recorded_verdicts_stand_beside_those_of_the_run(beside, shown):
    told, log, text, table = shown()
    assert "not shown" not in log.replace(f"not shown: {PUBLISHED}: C03", "")
    assert table["verdict"].to_dict() == {
        ("C01", "this run"): "holds", ("C01", "evidence/published"): "contradicted",
        ("C02", "this run"): "undecided", ("C02", "evidence/published"): "holds",
        ("C03", "this run"): "contradicted", ("C04", "this run"): "not testable",
    }  # fmt: skip
    assert table.loc[("C02", "evidence/published"), ["rung", "low", "high"]].tolist() == ["published", 2.0, 4.0]
    assert "3 [2, 4] times tables, published, evidence/published" in text
    assert "1 [0.5, 1.5] times lcbench, published, evidence/published" in text
    page = (OUT / "index.html").read_text()
    assert (
        'aria-label="tables (decides): smoke undecided, published holds; pd1: smoke holds; lcbench: published' in page
    )
    assert 'aria-label="tables (decides): smoke holds, published contradicted"' in page
    assert "scale published" in text and "aaaaaaaaaa" in text  # the commit of the recorded run
    assert told["shown"] == {"evidence/published": manifest.digest(PUBLISHED / manifest.NAME)}


def test_a_claim_that_another_rung_holds_is_undecided_for_its_size(beside, shown):
    _, _, text, table = shown()
    assert table.loc[("C02", "this run"), "cause"] == "size" and table.loc[("C03", "this run"), "cause"] == "unresolved"
    assert "it holds only at another size" in text


def test_a_claim_that_says_something_else_now_is_left_out_and_named(beside, shown):
    _, log, _, table = shown()
    assert "evidence/published: C03 says something else than the claim of this version" in log
    assert ("C03", "evidence/published") not in table.index


def test_without_recorded_results_the_report_is_that_of_the_run(copied, shown):
    before = (OUT / "index.html").read_text()
    _, log, text, table = shown()
    assert (OUT / "index.html").read_text() == before and "Recorded results" not in text
    assert set(table.index.get_level_values("source")) == {"this run"} and "not shown" not in log


def flipped():
    path = PUBLISHED / "claims/hyperbo.csv"
    path.write_bytes(path.read_bytes().replace(b"contradicted", b"undecidedxx."))


def listed_as(text):
    """Put another table of verdicts into the folder, with a manifest and a record that fit, as a forger would."""
    path, own = PUBLISHED / "claims/hyperbo.csv", PUBLISHED / "claims/hyperbo.json"
    path.write_text(text)
    digests = {"results/published/claims/hyperbo.csv": manifest.digest(path)}
    resealed(own, outputs=digests)
    files = json.loads((PUBLISHED / manifest.NAME).read_text())["files"]
    for one in (path, own):
        files[one.relative_to(PUBLISHED).as_posix()] = {"bytes": one.stat().st_size, "sha256": manifest.digest(one)}
    resealed(PUBLISHED / manifest.NAME, files=files)


def edited():
    path = PUBLISHED / manifest.NAME
    path.write_text(path.read_text().replace('"scale": "published"', '"scale": "paper"'))


def foreign():
    shutil.rmtree("evidence")
    Path("evidence").mkdir()
    Path("evidence/photo.png").write_bytes(b"PNG")


FAULTS = {
    "damaged": (flipped, "evidence/published/claims/hyperbo.csv: damaged or edited since it was added"),
    "missing": ((PUBLISHED / "claims/hyperbo.csv").unlink, "claims/hyperbo.csv: missing, the manifest lists it"),
    "older": (
        lambda: resealed(PUBLISHED / manifest.NAME, schema=0),
        "schema 0, this version reads 1; delete the folder and add",
    ),
    "edited": (edited, "evidence/published/manifest.json: damaged or edited by hand"),
    "no JSON": (lambda: (PUBLISHED / manifest.NAME).write_text("{"), "manifest.json: cannot be read (Expecting"),
    "another commit": (
        lambda: resealed(PUBLISHED / manifest.NAME, commits=["b" * 40]),
        "is of commit aaaaaaaaaaaa, which the manifest does not name",
    ),
    "foreign": (foreign, "evidence: no recorded results, it has no manifest.json; add a run (metabo evidence add)"),
    "a file": (
        lambda: (shutil.rmtree("evidence"), Path("evidence").write_text("x")),
        "evidence: no recorded results, it has no manifest.json",
    ),
    "older columns": (
        lambda: listed_as(pd.read_csv(PUBLISHED / "claims/hyperbo.csv").drop(columns="effect").to_csv(index=False)),
        "hyperbo.csv: no column effect; add the results again",
    ),
    "other claims": (
        lambda: listed_as(verdicts([("X9", "S.", "-", "claim", "tables", "f", "holds", 1.0, None, None, "")])),
        "evidence/published: none of its 1 claims is one of this run",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_evidence_is_named_in_one_line_and_the_report_is_built_without_it(fault, beside, shown):
    spoil, message = FAULTS[fault]
    spoil()
    _, log, text, table = shown()
    (line,) = [line for line in log.splitlines() if line.startswith("not shown: ")]
    assert message in line and message in text
    assert set(table.index.get_level_values("source")) == {"this run"}
    assert (
        "[2, 4] times" not in text and "core hours" not in text and table.loc[("C02", "this run"), "cause"] == "power"
    )


def test_one_damaged_scale_leaves_another_one_shown(beside, shown):
    shutil.copytree(PUBLISHED, "evidence/laptop")
    (PUBLISHED / "losses.csv").unlink()
    _, log, _, table = shown()
    assert "evidence/published/losses.csv: missing" in log
    assert set(table.index.get_level_values("source")) == {"this run", "evidence/laptop"}


def test_an_empty_folder_is_no_fault(tmp_path):
    assert recorded.verdicts(tmp_path) == ([], []) == recorded.verdicts(tmp_path / "none")


def test_the_ladder_has_the_primary_cell_and_every_other_one_once():
    beside = [
        ("default", "pd1", "area", "holds"),
        ("default", "pd1", "area", "undecided"),
        ("published", "tables", "", "holds"),
    ]
    steps = rungs.ladder(claim("C1", "undecided", beside=beside, value=2.0))
    assert [(step.rung, step.benchmark, step.reading, step.verdicts, step.number) for step in steps] == [
        ("default", "tables", "", (("undecided", 1),), "2"),
        ("default", "pd1", "area", (("holds", 1), ("undecided", 1)), ""),
        ("published", "tables", "", (("holds", 1),), "2"),
    ]


def test_what_belongs_to_no_run_is_listed_once():
    one = claim("C1", "undecided", beside=[("", "", OWN_TABLE, "undecided")])
    before = claim("C1", "undecided", beside=[("published", "pd1_mini", OWN_TABLE, "undecided")])
    steps = rungs.ladder(replace(one, recorded=(("evidence/published", before),)))
    assert [(step.reading, step.source) for step in steps] == [
        ("", ""), ("", "evidence/published"), (OWN_TABLE, "")
    ]  # fmt: skip


def with_recorded(verdict, **recorded_rungs):
    """Return a claim of the default rung with recorded verdicts by rung."""
    others = [(f"evidence/{rung}", claim("C1", v)) for rung, v in recorded_rungs.items()]
    named = tuple(
        (source, replace(one, whole=one.whole._replace(rung=source.rpartition("/")[2]))) for source, one in others
    )
    return replace(claim("C1", verdict, "power" if verdict == "undecided" else ""), recorded=named)


def test_recorded_primary_cells_follow_that_of_the_run():
    steps = rungs.ladder(with_recorded("undecided", published="holds"))
    assert [(step.rung, step.verdicts[0][0], step.source) for step in steps] == [
        ("default", "undecided", ""), ("published", "holds", "evidence/published")
    ]  # fmt: skip


def test_a_picture_has_a_place_for_each_rung_and_a_track_for_each_benchmark():
    assert rungs.picture(claim("C1", "holds")) is None
    drawn = rungs.picture(with_recorded("undecided", published="holds", smoke="contradicted", default="holds"))
    assert drawn.rungs == ["smoke", "default", "published"]
    (track,) = drawn.tracks
    assert track.decides and track.marks == {
        "default": ("undecided", "holds"), "smoke": ("contradicted",), "published": ("holds",)
    }  # fmt: skip
    assert drawn.said == "tables (decides): smoke contradicted, default undecided and holds, published holds"


@pytest.mark.parametrize(
    ("cause", "at", "now"),
    [("power", "published", "size"), ("unresolved", "published", "size"), ("reading", "published", "reading"),
     ("gate", "published", "gate"), ("power", "default", "power")],
)  # fmt: skip
def test_only_a_verdict_without_a_better_reason_is_for_its_size(cause, at, now):
    one = with_recorded("undecided", **{at: "holds"})
    assert rungs.turned(replace(one, whole=one.whole._replace(cause=cause))).whole.cause == now


def test_a_sealed_manifest_of_something_else_has_missing_fields(tmp_path):
    (tmp_path / "laptop").mkdir()
    (tmp_path / "laptop" / manifest.NAME).write_text(json.dumps(sealed({"schema": 1, "colour": "red"})))
    (line,) = recorded.verdicts(tmp_path).refused
    assert "the fields added_on, commits, core_hours" in line and "\n" not in line


def test_claims_that_wait_for_artefacts_of_a_later_piece_are_not_recorded_verdicts(tmp_path):
    wait = "hyperbo_fig08 on tables is not part of this run (config section run)"
    rows = [claim_row(RECORDED[0]), *(claim_row(one) for one in RECORDED[1:3]), claim_row(RECORDED[3])]
    rows[0] |= {"verdict": "not testable", "said": wait}
    rows[1] |= {"said": f"It holds on lcbench; {wait}"}
    table = pd.DataFrame(rows).reindex(columns=list(scorecard.COLUMNS))
    table.to_csv(tmp_path / "hyperbo.csv", index=False)
    assert [one.whole.claim for _, one in rungs.read({"hyperbo": [tmp_path / "hyperbo.csv"]}, [])] == ["C02", "C03"]


def test_a_claim_is_read_from_the_table_that_had_most_of_its_artefacts(tmp_path):
    wait = "hyperbo_fig08 on tables is not part of this run (config section run)"
    rows = [claim_row(one) for one in RECORDED[:2]]
    tables = [tmp_path / "new.csv", tmp_path / "old.csv"]
    for waits, path in enumerate(tables):
        table = pd.DataFrame(rows).reindex(columns=list(scorecard.COLUMNS))
        table["section"] = path.stem
        table.loc[waits, ["verdict", "said"]] = "not testable", wait
        table.to_csv(path, index=False)
    found = [one for _, one in rungs.read({"hyperbo": tables}, [])]
    assert {one.whole.claim: one.whole.section for one in found} == {"C01": "old", "C02": "new"}
    tables[1].write_text("claim,paper\n")
    refused: list[str] = []
    assert [one.whole.claim for _, one in rungs.read({"hyperbo": tables}, refused)] == ["C02"]
    (line,) = refused
    assert "old.csv: no column" in line and line.endswith("judge its claims again")
    with pytest.raises(DataError, match=r"old\.csv: no column .*add the results again"):
        rungs.read({"hyperbo": tables[::-1]}, [])


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (["full u u -", "gate - - g"], "gate"),
        (["gate - - g", "full u u -"], "gate"),
        (["full c u -", "gate - - g"], "full"),
        (["whole u u u", "gate - - g"], "whole"),
        (["full u u -", "gate - g -"], "full"),
        (["full u u -", "gate g - u"], "full"),
        (["full u u -", "passes - - u", "gate - - g"], "full"),
        (["full u u -", "gate - - g", "passes - - u"], "gate"),
        (["full u u - -", "against - - c -", "gate - - - g"], "full"),
        (["full - u u -", "gate x - - g"], "gate"),
        (["full u u -", "stale c - -", "gate - - g"], "gate"),
        (["full u u -", "gate - - - g"], "full"),
        (["full u u - -", "gate - - g"], "gate"),
        (["gate - - g", "less u - -"], "gate"),
        (["full u u -", "holds - h -"], "full"),
    ],
)
def test_a_failed_gate_of_a_part_that_is_judged_nowhere_later_leaves_the_claim_untestable(tmp_path, tables, expected):
    """Each table by its name and its parts, the newest first: undecided, contradicted (x: the whole is not), held, a
    failed gate, not made.
    The last part of a longer list is one that the newest sheet lacks, or has got since."""
    wait, failure = "is not part of this run", "gate 'asks for more than one point' fails: stuck"
    words = {
        "u": "undecided",
        "c": "contradicted",
        "x": "contradicted",
        "h": "holds",
        "g": "not testable",
        "-": "not testable",
    }
    paths = []
    for text in tables:
        name, *parts = text.split()
        ids = [f"hyperbo_fig{number:02}" for number in range(len(parts))]
        lines = [("C02", "It helps.", "-", "claim", "tables", " ".join(ids), "undecided", *[None] * 3, "")]
        lines += [("C02", "It helps.", "-", "part", "tables", id, words[one], *[None] * 3, "")
                  for id, one in zip(ids, parts, strict=True)]  # fmt: skip
        rows = [claim_row(line) for line in lines]
        for row, one in zip(rows[1:], parts, strict=True):
            row |= {"said": {"-": f"{row['artefact']} on tables {wait}", "g": failure}.get(one, "a number")}
        rows[0] |= {"section": name, "said": "numbers"}
        if "c" in parts:
            rows[0] |= {"verdict": "contradicted"}
        elif "g" in parts:
            rows[0] |= {"verdict": "not testable", "cause": "gate", "said": failure}
        paths.append(tmp_path / f"{name}.csv")
        pd.DataFrame(rows).reindex(columns=list(scorecard.COLUMNS)).to_csv(paths[-1], index=False)
    ((_, found),) = rungs.read({"hyperbo": paths}, [])
    assert found.whole.section == expected


PROTOCOL = "the other protocol of queries"


def recorded_m11(beside=(), **changes):
    """Return M11 as it was recorded, contradicted, with rows of other readings beside it."""
    (now,) = [one for one in sheet.load("mphd") if one.id == "M11"]
    row = claim_row(("M11", now.statement, "-", "claim", "mphd_l", "mphd_fig07", "contradicted", 0.02, 0.01, 0.03, ""))
    rows = [row | {"paper": "mphd"} | changes]
    rows += [rows[0] | {"role": "beside", "reading": reading, "verdict": "undecided"} for reading in beside]
    table = pd.DataFrame(rows).reindex(columns=list(scorecard.COLUMNS)).fillna("")
    (found,) = scorecard.claims(table)
    return found, now


@pytest.mark.parametrize(
    ("beside", "changes", "expected"),
    [
        ((), {}, "undecided"),
        ((PROTOCOL,), {}, "contradicted"),
        (("final regret",), {}, "undecided"),
        ((), {"statement": "Something else."}, "contradicted"),
        ((), {"benchmark": "super_mini"}, "contradicted"),
        ((), {"verdict": "holds"}, "holds"),
    ],
)
def test_a_recorded_claim_is_contradicted_only_by_every_reading_that_its_sheet_has_now(beside, changes, expected):
    claim, now = recorded_m11(beside, **changes)
    found = rungs.as_read_now(claim, now, catalogue.load())
    assert found.whole.verdict == expected
    if expected != claim.whole.verdict:
        assert found.whole.cause == "untested" and PROTOCOL in found.whole.said and claim.whole.said in found.whole.said
    else:
        assert found is claim


def test_a_reading_does_not_save_what_theory_contradicts():
    claim, now = recorded_m11()
    theory = replace(now, tests=(replace(now.tests[0], check="statements"), *now.tests[1:]))
    assert rungs.as_read_now(claim, theory, catalogue.load()) is claim
    both = replace(theory, tests=(theory.tests[0], replace(now.tests[1], check="statements")))
    assert rungs.as_read_now(claim, both, catalogue.load()).whole.verdict == "undecided"
    assert rungs.as_read_now(claim, None, {}) is claim
    other = replace(now, tests=(*now.tests, replace(now.tests[0], artefact="mphd_fig05", check="statements")))
    assert rungs.as_read_now(claim, other, catalogue.load()).whole.verdict == "undecided", (
        "that part is not contradicted"
    )


@pytest.mark.parametrize(("made", "expected"), [("hpob_mini", "contradicted"), ("pd1_mini", "undecided")])
def test_readings_on_a_benchmark_that_was_not_judged_save_nothing(made, expected):
    """C01 has two primary benchmarks, and readings of its protocol on one of them."""
    (now,) = [one for one in sheet.load("hyperbo") if one.id == "C01"]
    cells = [(test, on) for test, on in sheet.cells(now, catalogue.load())]
    row = claim_row(
        ("C01", now.statement, "-", "claim", "pd1_mini hpob_mini", "both", "contradicted", 0.2, 0.1, 0.3, "")
    )
    rows = [row]
    for test, on in cells:
        waits = {"verdict": "not testable", "said": f"{test.artefact} on {on} is not part of this run"}
        rows.append(row | {"role": "part", "benchmark": on, "artefact": test.artefact} | (waits if on != made else {}))
    rows.append(row | {"role": "beside", "reading": "the mean over tasks", "benchmark": made})
    (found,) = scorecard.claims(pd.DataFrame(rows).reindex(columns=list(scorecard.COLUMNS)).fillna(""))
    assert rungs.as_read_now(found, now, catalogue.load()).whole.verdict == expected

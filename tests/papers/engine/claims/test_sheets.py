"""The claim sheets: complete, in step with the catalogue, and strict about names."""

import inspect
import re
from pathlib import Path

import pytest
import yaml

from metabo.errors import ConfigError
from metabo.papers.engine.claims import checks, judge, sheet
from metabo.plan import catalogue

ROOT = Path(__file__).parents[4]
SHEETS = {
    "cmbo": [f"B{n}" for n in range(1, 29)],
    "hegpucb": [f"G{n}" for n in range(1, 26)],
    "hyperbo": [f"C{n:02}" for n in range(1, 88)],
    "mphd": [f"M{n}" for n in range(1, 37)],
}
"""The claims that were found in each paper: facts, whatever the sheets say."""


@pytest.fixture(scope="module", params=sorted(SHEETS))
def paper(request):
    return request.param


def test_every_paper_with_claims_is_known_here():
    assert sheet.papers() == sorted(SHEETS)


def test_every_claim_is_listed_once_and_in_order(paper):
    ids = re.findall(r"^(\w+):$", sheet.path(paper).read_text(), re.M)  # YAML would keep the last of two
    assert ids == SHEETS[paper], "SHEETS above lists the claims of each paper: add a new one there"
    assert [claim.id for claim in sheet.load(paper, ROOT)] == ids


def test_sheet_and_catalogue_agree(paper):
    assert sheet.faults(sheet.load(paper, ROOT), catalogue.load(ROOT)) == []


def test_statements_are_sentences_of_their_own(paper):
    claims = sheet.load(paper, ROOT)
    assert len({claim.statement for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.statement.endswith(".") and 5 <= len(claim.statement.split()) <= 60, claim.id
        assert bool(claim.tests) != bool(claim.untestable), claim.id


def test_every_claim_with_tests_has_one_primary_cell(paper):
    entries = catalogue.load(ROOT)
    for claim in sheet.load(paper, ROOT):
        held = sheet.cells(claim, entries)
        assert (claim.primary is None) == bool(claim.untestable) == (not held), claim.id
        if claim.primary is not None:
            assert claim.kind in ("direct", "conceptual") and claim.primary.rung == "default"
            assert {on for _, on in held} == set(claim.primary.benchmarks)
            assert not any(test.beside for test, _ in held)


def test_headline_claims_are_those_of_abstract_introduction_and_conclusion(paper):
    """Read in the papers by hand: what the abstract, the introduction and the conclusions claim of results."""
    stated = {
        "hyperbo": ["C01", "C02", "C04", "C22", "C23", "C24", "C80", "C81"],
        "mphd": ["M3", "M4", "M16", "M17", "M28", "M31", "M32", "M33", "M35"],
        "cmbo": ["B1", "B21", "B22", "B23", "B24", "B27"],
        "hegpucb": ["G1", "G2", "G15", "G17", "G22", "G23", "G24"],
    }
    assert [claim.id for claim in sheet.load(paper, ROOT) if claim.headline] == stated[paper]


def test_direct_tests_are_on_the_papers_own_data_or_on_none(paper):
    own = {"pd1", "hpob", "super", "cmbo_hpob", "mphd_l", "synthetic"}
    for claim in sheet.load(paper, ROOT):
        printed = {test.check for test in claim.tests} == {"run_count"}  # counts what Table 1 of cm-BO prints
        if claim.primary is not None and claim.kind == "direct" and not printed:
            assert set(claim.primary.benchmarks) <= own, claim.id


def test_every_check_is_used_by_a_claim():
    used = {(name, test.check) for name in SHEETS for claim in sheet.load(name, ROOT) for test in claim.tests}
    shared = {check for _, check in used} & set(checks.of("none"))
    own = {(name, check) for name in SHEETS for check in checks.of(name) if check not in shared}
    assert shared == set(checks.of("none")) and own == {pair for pair in used if pair[1] not in shared}


def test_no_check_of_a_study_counts_twice_in_a_claim(paper):
    """Two artefacts of the same studies have the same tables: Holm's correction would count one comparison twice."""
    entries = catalogue.load(ROOT)
    for claim in sheet.load(paper, ROOT):
        made = [(entries[test.artefact], test) for test in claim.tests]
        told = [repr((one.inputs, t.check, t.arguments, t.beside)) for one, t in made if not one.benchmarks]
        assert len(set(told)) == len(told), claim.id


def test_the_multiverse_asks_no_check_for_a_moment_that_it_does_not_take():
    """ "area" given to a rank at an iteration stopped the judging of HyperBO's claims."""
    asked = 0
    for paper in SHEETS:
        for test in (test for claim in sheet.load(paper, ROOT) for test in claim.tests):
            others = judge.other_metrics(paper, test)
            asked += len(others)
            kind = inspect.signature(checks.of(paper)[test.check]).parameters.get("at")
            assert not others or kind.annotation not in (int, int | None), (paper, test.check)
    assert asked > 20


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Return a function that loads the sheet of HyperBO with a changed claim C14."""
    entries = yaml.safe_load(sheet.path("hyperbo").read_text())
    monkeypatch.setattr(sheet, "FOLDER", tmp_path)

    def load(**changes):
        entry = {key: value for key, value in {**entries["C14"], **changes}.items() if value is not None}
        (tmp_path / "hyperbo").mkdir(exist_ok=True)
        (tmp_path / "hyperbo" / "claims.yaml").write_text(yaml.safe_dump({"C14": entry}))
        return sheet.load("hyperbo", ROOT)

    return load


TEST = {"artefact": "hyperbo_fig03", "check": "minima_differ"}
CELL = {"benchmarks": ["synthetic"], "rung": "default", "reading": "none", "metrics": ["share"], "margin": 0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tests": [TEST | {"check": "minima_difer"}]},
            "unknown check of hyperbo 'minima_difer'. Did you mean 'minima_differ'?",
        ),
        ({"tests": [TEST | {"arguments": {"leest": 0.5}}]}, "check 'minima_differ': got an unexpected keyword"),
        ({"tests": None}, "C14"),
        ({"untestable": "both a test and a reason"}, "C14"),
        ({"statment": "x"}, "'C14.statment' is unknown. Did you mean 'statement'?"),
        ({"paper": 3}, "must be text; write it in quotes: '3'"),
        ({"kind": None}, "C14"),
        ({"primary": None}, "C14"),
        ({"kind": "indirect"}, "'C14.kind' is the text 'indirect'"),
        ({"primary": CELL | {"rung": "defualt"}}, "'C14.primary.rung' is the text 'defualt'"),
        ({"primary": CELL | {"metrics": ["regrets"]}}, "C14.primary.metrics"),
        ({"primary": CELL | {"margin": 1.5}}, "C14.primary.margin"),
        ({"primary": CELL | {"benchmark": "pd1"}}, "'C14.primary.benchmark' is unknown. Did you mean 'benchmarks'?"),
    ],
)
def test_faulty_claims_are_told(changed, changes, message):
    with pytest.raises(ConfigError) as error:
        changed(**changes)
    assert message in str(error.value) and "hyperbo/claims.yaml" in str(error.value)


def test_an_unknown_paper_is_told():
    with pytest.raises(ConfigError, match="unknown paper with claims 'hyprbo'"):
        sheet.load("hyprbo", ROOT)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (TEST | {"artefact": "hyperbo_fig30"}, "unknown artefact 'hyperbo_fig30'. Did you mean 'hyperbo_fig"),
        (TEST | {"artefact": "mphd_fig05"}, "mphd_fig05 is of paper 'mphd'"),
        (TEST | {"artefact": "hyperbo_fig08"}, "hyperbo_fig08, whose 'claims' lack it"),
        (TEST | {"artefact": "hyperbo_tab03", "benchmarks": ["hpob"]}, "unknown benchmark of hyperbo_tab03 'hpob'"),
        (
            {"artefact": "hyperbo_fig08", "check": "speedup", "arguments": {"methods": ["h_nll", "h_nl"], "factor": 3}},
            "speedup, 'methods': unknown method of hyperbo_fig08 'h_nl'. Did you mean 'h_nll'?",
        ),
        (
            {
                "artefact": "hyperbo_fig08",
                "check": "lower_regret",
                "arguments": {"lower": ["h_nll"], "than": ["stbohh"]},
            },
            "lower_regret, 'than': unknown method of hyperbo_fig08 'stbohh'. Did you mean 'stboh'?",
        ),
    ],
)
def test_contradictions_with_the_catalogue_are_told(changed, test, message):
    faults = sheet.faults(changed(tests=[test]), catalogue.load(ROOT))
    assert any(message in fault for fault in faults)
    assert any("hyperbo_fig08: claim 'C01' is not in hyperbo/claims.yaml" in fault for fault in faults)


REGRET = {"artefact": "hyperbo_fig03", "check": "lower_regret", "arguments": {"lower": ["h_nll"]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tests": [TEST | {"beside": "another reading"}]}, "claim 'C14': every test has `beside`"),
        ({"primary": CELL | {"benchmarks": ["pd1"]}}, "hyperbo_fig03 has none of the primary benchmarks pd1"),
        (
            {"primary": CELL | {"benchmarks": ["synthetic", "pd1"]}},
            "claim 'C14': no part is tested on the primary benchmark 'pd1'",
        ),
        (
            {"tests": [REGRET], "primary": CELL | {"metrics": ["area"]}},
            "claim 'C14': lower_regret compares at last, the primary metrics are area",
        ),
    ],
)
def test_a_primary_cell_that_cannot_be_judged_is_told(changed, changes, message):
    assert any(message in fault for fault in sheet.faults(changed(**changes), catalogue.load(ROOT)))

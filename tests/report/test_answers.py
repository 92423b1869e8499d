"""The sentences that the report opens with, composed from made tables."""

import math

import pytest

from metabo.report import answers, checks, scorecard, wording
from metabo.report.gates import ShownGate
from metabo.report.scorecard import ClaimRow, JudgedClaim

NAN = float("nan")


def claim(name, verdict, cause="", headline=False, beside=(), **more):
    """A judged claim; `beside`: rung, benchmark, reading and verdict of what stands beside it."""
    given = dict.fromkeys(ClaimRow._fields, "") | dict.fromkeys(scorecard.NUMBERS, NAN)
    given |= {"claim": name, "paper": "hyperbo", "headline": str(int(headline)), "kind": "direct", "role": "claim"}
    given |= {"statement": f"Claim {name} is so.", "rung": "default", "benchmark": "tables", "paper_value": "-"}
    whole = ClaimRow(**(given | {"verdict": verdict, "cause": cause} | more))
    rows = [
        whole._replace(role="beside", rung=rung, benchmark=on, reading=reading, verdict=v)
        for rung, on, reading, v in beside
    ]
    return JudgedClaim(whole, [], rows)


def said(claims, gates=()):
    """The four sentences by topic."""
    return {one.topic: answers.plain(one.sentence) for one in answers.answers(claims, gates)}


def test_a_paper_without_claims_has_no_sentences():
    assert answers.answers([], []) == []


def test_one_claim_that_holds():
    assert said([claim("C1", "holds")]) == {
        "Holds": "Its one claim holds: “Claim C1 is so” (C1).",
        "Contradicted": "None is contradicted.",
        "Undecided": "None is undecided.",
        "Ours": "Nothing of ours stands between the paper and these verdicts.",
    }


def test_headline_claims_that_hold_are_quoted_first():
    claims = [claim("C1", "holds"), claim("C2", "holds", headline=True), claim("C3", "undecided", headline=True)]
    assert said(claims)["Holds"] == (
        "Two of three claims hold, among them one of two headline claims: “Claim C2 is so” (C2)."
    )


def test_that_no_headline_claim_holds_is_said():
    claims = [claim("C1", "holds"), claim("C2", "undecided", headline=True)]
    assert said(claims)["Holds"] == "One of two claims holds, but its headline claim does not."
    claims = [claim("C1", "holds"), *[claim("C2", "undecided", headline=True)] * 2]
    assert said(claims)["Holds"] == "One of three claims holds, but none of the two headline claims does."
    assert said([claim("C1", "undecided")])["Holds"] == "Its one claim does not hold."
    claims = [claim("C1", "holds", headline=True), claim("C2", "undecided")]
    assert said(claims)["Holds"] == "One of two claims holds, its headline claim: “Claim C1 is so” (C1)."
    assert said([claim("C1", "undecided")] * 22)["Holds"] == "None of the 22 claims holds."


def test_many_claims_are_cut_to_three_and_a_count_but_never_for_one_more():
    assert said([claim(f"C{i}", "holds") for i in range(4)])["Holds"].endswith("(C2) and “Claim C3 is so” (C3).")
    text = said([claim(f"C{i}", "holds") for i in range(5)])["Holds"]
    assert text.startswith("Five of five claims hold: “Claim C0") and text.endswith(
        "“Claim C2 is so” (C2) and two more."
    )


def test_contradictions_are_told_by_cause_the_most_frequent_first():
    claims = [
        claim("C1", "contradicted", "claim", unit="verdict"), claim("C2", "contradicted", "unresolved"),
        claim("C3", "contradicted", "unresolved"), claim("C4", "contradicted", "data", headline=True),
    ]  # fmt: skip
    assert said(claims)["Contradicted"] == (
        "Four are contradicted: C2 and C3 for a reason that this run does not show; C4 on one benchmark, though it "
        "holds on another (headline: “Claim C4 is so” (C4)); and C1 by a counterexample to the theory."
    )


def test_what_would_decide_is_told_where_it_is_known():
    few = {"power": 0.2}
    claims = [
        claim("C1", "undecided", "power", clusters=4, needed=86.0, **few), claim("C2", "undecided", "power", **few),
        claim("C3", "undecided", "power", headline=True, clusters=9, needed=1200.0, **few),
        claim("C4", "undecided", "power", clusters=9, needed=5.0, **few), claim("C5", "undecided", "reading"),
    ]  # fmt: skip
    assert said(claims)["Undecided"] == (
        "Five are undecided: four have too few units for an effect of that size, and more units would decide C3 (1,200 "
        "in place of 9) and C1 (86 in place of 4); one depends on how the paper is read, which only its authors can "
        "settle (C5)."
    )
    assert said([claim("C2", "undecided", "power", **few)])["Undecided"] == (
        "One is undecided: it has too few units for an effect of that size, and more would decide it (C2)."
    )


def test_too_few_units_are_named_only_where_the_power_of_the_row_is_small():
    """As in tables of older rules, whose cause was "power" for all that nothing else explained."""
    claims = [
        claim("G1", "undecided", "power"), claim("G10", "undecided", "power", power=0.96, clusters=50, needed=30.0),
        claim("G7", "undecided", "power", power=0.4, clusters=50, needed=120.0), claim("G8", "undecided", "untested"),
    ]  # fmt: skip
    assert said(claims)["Undecided"] == (
        "Four are undecided: one is not decided by its test, for which no number of units is known that would decide "
        "it (G1); one would have shown an effect of that size in four of five cases, so that what there is may be "
        "smaller (G10); one has too few units for an effect of that size, and more units would decide G7 (120 in place "
        "of 50); one is contradicted under every reading that was tested here, and another reading was not, or cannot "
        "be (G8)."
    )


def test_what_cannot_be_tested_is_told_with_its_reasons():
    claims = [
        claim("C1", "not testable", "gate"),
        claim("C2", "not testable", "data"),
        claim("C3", "not testable", "data"),
    ]
    assert said(claims)["Undecided"] == (
        "None is undecided; three cannot be tested here: two because they need data that this run does not have and "
        "one because a control fails."
    )
    assert said(claims[:1])["Undecided"] == "None is undecided; one cannot be tested here, because a control fails."


def test_an_unknown_cause_has_a_sentence_too():
    claims = [claim("C1", "contradicted", "new"), claim("C2", "undecided", "new"), claim("C3", "not testable", "new")]
    found = said(claims)
    assert "C1 for a reason that this run does not show" in found["Contradicted"]
    assert "it is open for a reason that this run does not show (C2)" in found["Undecided"]
    assert "one cannot be tested here, for the reason that the scorecard gives" in found["Undecided"]


def gate(subjects, claims, verdict="fails"):
    return ShownGate("hyperbo", "asks around", "f", "tables", subjects, verdict, "1", "0", "x", claims)


def test_what_is_ours_names_stand_ins_failing_methods_and_departures():
    claims = [
        claim("C1", "holds", kind="conceptual", benchmark="pd1_mini hpob_mini"),
        claim("C2", "not testable", "gate", kind="conceptual"), claim("C3", "not testable", "gate"),
        claim("C4", "contradicted", "ours"),
    ]  # fmt: skip
    gates = [
        gate("ablr@held_out h_nll-ei@held_out period", "C2 C3 C9"), gate("ablr", "C2"), gate("maf", "C2", "passes"),
        gate("fsbo", "C9"),
    ]  # fmt: skip
    assert said(claims, gates)["Ours"] == (
        "Of our making: one of the verdicts rests on our stand-ins for the paper's data (pd1_mini and hpob_mini); two "
        "claims go untested because methods, as they run here, fail a control (ABLR in two and H-NLL in two); and a "
        "known departure of ours explains C4."
    )
    assert said([claim("C1", "holds", kind="conceptual", benchmark="synthetic")])["Ours"] == (
        "Of our making: one of the verdicts rests on synthetic tests of our own."
    )


def test_a_sentence_links_to_its_claims():
    (first, *_) = answers.answers([claim("C1", "holds")], [])
    assert answers.Cited("claim-hyperbo-C1", "C1") in first.sentence


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (">= 3 times", "≥ 3 times"), ("-", "not printed"), ("", "not printed"), ("Table 5", "Table 5"),
        ("Figure 7(c)", "not printed (Figure 7(c))"), ("Figures 7, 8", "not printed (Figures 7, 8)"),
        ("truth 10, Figure 5(a)", "truth 10, Figure 5(a)"),
    ],
)  # fmt: skip
def test_a_figure_alone_is_no_printed_number(value, shown):
    assert scorecard.printed(claim("C1", "holds", paper_value=value).whole) == shown


def test_every_check_that_a_sheet_names_is_found_with_what_it_asks():
    found = checks.read(["hyperbo", "mphd", "cmbo", "hegpucb", "no_paper"])
    assert {check.paper for check in found} == {"hyperbo", "mphd", "cmbo", "hegpucb"}
    assert all(check.says and ".py:" in check.place for check in found), [c for c in found if not c.says]
    assert "speedup" in [check.name for check in checks.by_claim(found)["hyperbo", "C01"]]


@pytest.mark.parametrize(
    ("count", "inside", "first"), [(0, "no", "No"), (10, "ten", "Ten"), (11, "11", "Eleven"), (40, "40", "Forty"),
    (99, "99", "Ninety-nine"), (1234, "1,234", "1,234")],
)  # fmt: skip
def test_numbers_read_as_in_a_sentence(count, inside, first):
    assert (wording.number(count), wording.number(count, start=True)) == (inside, first)


def test_lists_read_as_in_a_sentence():
    assert [wording.names(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert math.isnan(claim("C1", "holds").whole.value)

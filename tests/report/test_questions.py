"""Plain questions are answered from tables: made ones by hand, recorded ones as docs/findings.md has them."""

from pathlib import Path

import pandas as pd
import pytest

from metabo.report import questions
from metabo.report.questions import ShownTable

ROOT = Path(__file__).parents[2]


def protocols(tmp_path, ends, distinct, means, benchmark="pd1_mini"):
    """Write the data.csv of hyperbo_x10: `ends` has (low, high) of the last difference by split and method."""
    rows = []
    for split, methods in ends.items():
        for method, (low, high) in methods.items():
            for quantity, value in (("difference", (low + high) / 2), ("low", low), ("high", high)):
                rows.append({"table": "difference", "split": split, "method": method, "iteration": 100,
                             "quantity": quantity, "value": value})  # fmt: skip
            own = {"table": "budget", "split": split, "method": method, "quantity": "distinct"}
            rows.append({**own, "value": distinct[split]})
        for method, value in means.items():
            rows.append({"table": "regret", "split": split, "method": method, "iteration": 100, "quantity": "mean",
                         "value": value})  # fmt: skip
    path = tmp_path / f"{benchmark}.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return ShownTable(f"hyperbo_x10_{benchmark}", "hyperbo_x10", benchmark, path)


MEANS = {"rand": 0.2, "h_nll": 0.01, "h_ekl": 0.01, "rfgp": 0.3}


def asked(table):
    return {one.asked: one for one in questions.questions("hyperbo", [table])}


def test_a_method_that_repeats_itself_and_gains_without_repeats_is_told_so(tmp_path):
    ends = {
        "held_out": {"h_nll": (-0.3, -0.1), "rfgp": (0.05, 0.2)},
        "held_out_other": {"h_nll": (-0.3, 0.1), "rfgp": (-0.2, -0.1)},
    }
    found = asked(protocols(tmp_path, ends, {"held_out": 9.0, "held_out_other": 100.0}, MEANS, "lcbench"))
    beats = found["Does H-NLL beat random search?"]
    assert (
        "below Random in one of two cases, among them one of two on tables by others; one is not decided"
        in beats.answer
    )
    assert [row.numbers for row in beats.rows] == [
        "after 100 queries: -0.200 [-0.300, -0.100]", "after 100 queries: -0.100 [-0.300, 0.100]"
    ]  # fmt: skip
    assert beats.rows[0].where == "lcbench (a table by others), candidates may be queried again"
    assert beats.rows[0].artefact == "hyperbo_x10_lcbench"
    best = found["Does H-EKL end best?"]
    assert "in none of two cases, and shares the lowest in two" in best.answer
    assert best.rows[0].numbers == "place 1 of 4, mean 0.0100, level with H-NLL"
    poor = found["Why is RFGP poor?"].answer
    assert poor.startswith("Largely by repeating itself") and "makes only 9 different queries of 100" in poor


@pytest.mark.parametrize(
    ("once", "said"), [((0.1, 0.2), "Not by repeating itself alone"), ((-0.2, -0.1), "Largely by repeating itself")]
)
def test_a_method_that_stays_poor_without_repeats_is_not_excused(tmp_path, once, said):
    ends = {"held_out": {"rfgp": (0.05, 0.2)}, "held_out_other": {"rfgp": once}}
    table = protocols(tmp_path, ends, {"held_out": 9.0, "held_out_other": 100.0}, MEANS)
    assert asked(table)["Why is RFGP poor?"].answer.startswith(said)


def test_a_method_that_is_never_poor_is_told_so(tmp_path):
    table = protocols(tmp_path, {"held_out": {"rfgp": (-0.2, -0.1)}}, {"held_out": 9.0}, MEANS)
    assert asked(table)["Why is RFGP poor?"].answer.startswith("It is not")


def test_a_question_without_tables_is_left_out(tmp_path):
    assert questions.questions("hyperbo", []) == questions.questions("mphd", []) == []
    assert questions.questions("hegpucb", []) == []


def test_candidates_that_are_dropped_are_counted_by_problem(tmp_path):
    rows = [
        {"table": "drop", "problem": problem, "profile": "plain", "quantity": quantity, "value": value}
        for problem, dropped in (("lengthscale", 0), ("mean", 7))
        for quantity, value in (("dropped", dropped), ("true", 1), ("runs", 50))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "data.csv", index=False)
    table = ShownTable("hegpucb_fig02c", "hegpucb_fig02c", "", tmp_path / "data.csv")
    (found,) = questions.questions("hegpucb", [table])
    assert found.answer.startswith("Yes: it drops candidates in (d) mean with constants of the repaired theorems")
    assert found.rows[0].numbers.endswith("(d) mean: 7 in 50 runs, the true one 1 times")


def test_recorded_runs_answer_as_the_page_of_findings_does():
    found = {one.asked: one for one in questions.questions("hyperbo", [], [ROOT / "evidence/published"])}
    rows = {row.where: row.numbers for row in found["Does H-NLL beat random search?"].rows}
    (lcbench,) = [said for where, said in rows.items() if where.startswith("lcbench") and "no past task" not in where]
    findings = " ".join((ROOT / "docs/findings.md").read_text().split())
    for number in lcbench.removeprefix("after 1, 10 and 100 queries: ").split("], "):
        assert number.rstrip("]") + "]" in findings

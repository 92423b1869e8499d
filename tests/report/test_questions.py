"""Plain questions are answered from tables: made ones by hand, recorded ones as docs/findings/ has them."""

from pathlib import Path

import pandas as pd
import pytest

from metabo.report import questions
from metabo.report.cases import ShownTable

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
            asks = distinct[split]
            rows.append({**own, "value": asks[method] if isinstance(asks, dict) else asks})
        for method, value in means.items():
            rows.append({"table": "regret", "split": split, "method": method, "iteration": 100, "quantity": "mean",
                         "value": value})  # fmt: skip
    path = tmp_path / f"{benchmark}.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return ShownTable(f"hyperbo_x10_{benchmark}", "hyperbo_x10", benchmark, path)


MEANS = {"rand": 0.2, "h_nll": 0.01, "h_ekl": 0.01, "rfgp": 0.3}


def asked(table):
    return {one.asked: one for one in questions.questions("hyperbo", [table])}


def test_cases_of_a_table_count_together_and_ties_rank_nothing(tmp_path):
    ends = {"held_out": {"h_nll": (-0.3, -0.1)}, "held_out_other": {"h_nll": (-0.3, 0.1)}}
    found = asked(protocols(tmp_path, ends, {"held_out": 9.0, "held_out_other": 100.0}, MEANS, "lcbench"))
    beats = found["Does H-NLL beat random search?"]
    assert beats.answer.startswith(
        "After 100 queries: on lcbench below Random in one of two cases, else not told from Random. "
        "lcbench is a table by others."
    )
    assert [row.numbers for row in beats.rows] == [
        "after 100 queries: -0.200 [-0.300, -0.100]", "after 100 queries: -0.100 [-0.300, 0.100]"
    ]  # fmt: skip
    assert beats.rows[0].where == "lcbench (a table by others), candidates may be queried again"
    assert beats.rows[0].artefact == "hyperbo_x10_lcbench"
    best = found["Does H-EKL end best?"]
    assert best.answer.startswith(
        "Not shown: H-EKL alone has the lowest mean of the methods shown in none of two cases"
    )
    assert best.rows[0].numbers == "place 1 of 4, mean 0.0100, level with H-NLL, so that it ranks nothing"


def test_a_method_below_random_everywhere_and_alone_at_the_front_is_told_so(tmp_path):
    ends = {"held_out": {"h_nll": (-0.3, -0.1)}}
    found = asked(protocols(tmp_path, ends, {"held_out": 9.0}, MEANS | {"h_ekl": 0.001}))
    said = found["Does H-NLL beat random search?"].answer
    assert said.startswith("After 100 queries: below Random on pd1_mini in every case shown. H-NLL minus")
    assert found["Does H-EKL end best?"].answer.startswith("By means, yes")


@pytest.mark.parametrize(
    ("others", "mean", "also"), [(8.0, 0.1, True), (30.0, 0.1, False), (8.0, 0.4, False)]
)  # fmt: skip
def test_repeats_are_no_reason_where_others_repeat_as_much_and_end_lower(tmp_path, others, mean, also):
    ends = {"held_out": {"rfgp": (0.05, 0.2), "ablr": (-0.2, -0.1)}, "held_out_other": {"rfgp": (-0.2, -0.1)}}
    distinct = {"held_out": {"rfgp": 9.0, "ablr": others}, "held_out_other": {"rfgp": 100.0}}
    table = protocols(tmp_path, ends, distinct, MEANS | {"ablr": mean})
    poor = asked(table)["Why is RFGP poor?"]
    assert poor.answer.startswith(
        "On pd1_mini it is above Random where candidates may be queried again and below Random where each candidate is "
        "queried once."
    )
    assert ("so do methods that end lower (ABLR on pd1_mini)" in poor.answer) == also
    assert "9.0 different queries, place" in poor.rows[0].numbers


def test_a_question_without_tables_is_left_out(tmp_path):
    assert questions.questions("hyperbo", []) == questions.questions("mphd", []) == []
    assert questions.questions("hegpucb", []) == []


def test_candidates_that_are_dropped_are_counted_by_problem(tmp_path):
    rows = [
        {"table": "drop", "problem": problem, "profile": "plain", "quantity": quantity, "value": value}
        for problem, dropped in (("lengthscale", 0), ("mean", 7))
        for quantity, value in (("dropped", dropped), ("true", 1), ("runs", 50))
    ]
    rows += [{"table": "left", "problem": "mean", "quantity": "alive", "iteration": t, "value": 11 - t} for t in (1, 3)]
    rows.append({"table": "wrong", "problem": "mean", "quantity": "wrong", "value": 0.5})
    pd.DataFrame(rows).to_csv(tmp_path / "data.csv", index=False)
    table = ShownTable("hegpucb_fig02c", "hegpucb_fig02c", "", tmp_path / "data.csv")
    (found,) = questions.questions("hegpucb", [table])
    assert found.answer == (
        "Yes: it drops some in (d) mean with constants of the repaired theorems. The true one is dropped in up to 1 of "
        "50 runs."
    )
    assert found.rows[0].numbers == (
        "(a) length-scale: 0.00 dropped a run; no candidate is the true one. "
        "(d) mean: 0.14 dropped a run, 8.0 left at the end; the true one in 1 runs of 50"
    )


def test_recorded_runs_answer_as_the_page_of_findings_does():
    found = {one.asked: one for one in questions.questions("hyperbo", [], [ROOT / "evidence/published"])}
    rows = {row.where: row.numbers for row in found["Does H-NLL beat random search?"].rows}
    findings = " ".join((ROOT / "docs/findings/hyperbo.md").read_text().split())
    lcbench = [said for where, said in rows.items() if where.startswith("lcbench")]
    for said in lcbench[:2]:  # all rows, and new ones
        numbers = [f"{one.rstrip(']')}]" for one in said.removeprefix("after 1, 10 and 100 queries: ").split("], ")]
        assert len(numbers) == 3 and all(number in findings for number in numbers)
    ekl = [row.numbers for row in found["Does H-EKL end best?"].rows if row.where.startswith("taskset")]
    assert ekl and all("H-EKL minus H-NLL 0.0" in said for said in ekl)
    for benchmark in ("lcbench", "taskset"):
        new = [(", candidates that no past task has tried" in where) for where in rows if where.startswith(benchmark)]
        assert new == [False, True, True], "all rows, new ones, and new ones without repeats"
    one = "one data set: intervals over repetitions, for these tasks"
    assert all((one in where) == where.startswith("taskset") for where in rows)

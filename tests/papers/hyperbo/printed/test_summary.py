"""Our table beside a printed one on other tasks: medians and wins, and the rows that say them."""

import pandas as pd
import pytest

from metabo.papers.hyperbo import printed
from metabo.papers.hyperbo.printed import summary

OURS = pd.DataFrame(
    [("a", "h_nll", 1.0), ("a", "mimo", 2.0), ("b", "h_nll", 3.001), ("b", "mimo", 3.0), ("c", "h_nll", 9.0)],
    columns=["task", "method", "mean"],
)


@pytest.fixture
def table(monkeypatch):
    """A printed table of two methods, with a correlation that is no method's and another metric."""
    rows = [
        ("X", "mimo", "error", 5.0), ("X", "h_nll", "error", 4.0), ("Y", "mimo", "error", 1.0),
        ("Y", "h_nll", "error", 8.0),
        ("X", "all", "error", 0.5), ("X", "mimo", "other", 99.0),
    ]  # fmt: skip
    printed_rows = pd.DataFrame(rows, columns=["task", "method", "metric", "mean"])
    monkeypatch.setattr(printed, "table", lambda name: printed_rows)


def test_medians_and_wins_are_of_the_tasks_with_all_methods_and_ties_count_for_all(table):
    found = summary.beside(OURS, "tab05", "error", 2)
    assert [tuple(row) for row in found.itertuples(index=False)] == [
        ("ours", "h_nll", 2, pytest.approx(2.0005), 2), ("ours", "mimo", 2, 2.5, 1),
        ("paper", "mimo", 2, 3.0, 1), ("paper", "h_nll", 2, 6.0, 1),
    ]  # fmt: skip


def test_wins_are_among_the_methods_that_both_tables_have(table):
    ours = pd.concat([OURS, pd.DataFrame([("a", "rand", 0.5), ("b", "rand", 0.5)], columns=OURS.columns)])
    found = summary.beside(ours, "tab05", "error", 2).query("whose == 'ours'").set_index("method")["best"]
    assert found["h_nll"] == 2 and found["mimo"] == 1 and pd.isna(found["rand"])


def test_the_highest_is_best_where_it_is_asked_for(table):
    found = summary.beside(OURS, "tab05", "error", 4, lowest=False)
    assert found.query("whose == 'ours'").set_index("method")["best"].to_dict() == {"h_nll": 1, "mimo": 1}
    assert found.query("whose == 'paper'").set_index("method")["best"].to_dict() == {"mimo": 1, "h_nll": 1}


def test_rows_have_a_column_for_every_method_of_either_table(table):
    ours = pd.concat([OURS, OURS[OURS["method"] == "mimo"].assign(method="rand", mean=0.5)])
    rows = summary.rows(summary.beside(ours, "tab05", "error", 2), 1)
    assert list(rows.index) == [
        "ours: median of 2 tasks",
        f"ours: {summary.BEST}",
        "paper: median of 2 tasks",
        f"paper: {summary.BEST}",
    ]
    assert rows["H-NLL"].tolist() == ["2.0", "2", "6.0", "1"]
    assert rows["MIMO"].tolist() == ["2.5", "1", "3.0", "1"]
    assert rows["Rand"].tolist() == ["0.5", "–", "–", "–"]


@pytest.mark.parametrize(
    ("name", "metric", "tasks"),
    [
        ("tab05", "error_percent", 23),
        ("tab06", "test_nll_hundreds", 23),
        ("tab06", "ekl", 23),
        ("tab07", "train_nll", 16),
    ],
)
def test_the_printed_tables_are_whole(name, metric, tasks):
    found = summary.beside(OURS, name, metric, 2).query("whose == 'paper'")
    assert (found["tasks"] == tasks).all() and found["best"].sum() >= tasks and name in summary.SOURCES

"""The table of what a benchmark can decide: by hand, with ties, constants, one row, and tasks without shared inputs."""

import numpy as np
import pandas as pd
import pytest

from metabo.errors import DataError
from metabo.papers.hyperbo.metrics import decidable, relatedness
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

RNG = np.random.default_rng(0)
X = RNG.random((40, 2))


def task(name: str, y, x=X, space: str = "s") -> Task:
    y = np.asarray(y, float)
    return Task(name, space, name, x[: len(y)], y, y, np.arange(len(y)), np.zeros((0, 2)))


def benchmark(*tasks: Task, train: tuple[str, ...] = ("past",)) -> Benchmark:
    """A benchmark whose tasks are tested but for `train`, one fold a space."""
    box = (Parameter("x0", "linear", 0.0, 1.0), Parameter("x1", "linear", 0.0, 1.0))
    spaces = {t.space: SearchSpace(t.space, box) for t in tasks}
    folds = []
    for space in spaces:
        names = [t.name for t in tasks if t.space == space]
        past = tuple(n for n in names if n.startswith(train))
        folds.append(Fold(space, space, past, tuple(n for n in names if n not in past)))
    return Benchmark("b", spaces, {t.name: t for t in tasks}, (), {"held_out": tuple(folds)})


def facts(made: Benchmark, noise=None) -> pd.DataFrame:
    return decidable.task_facts(made, noise or {}, relatedness.task_correlations(made)).set_index("task")


def test_a_row_by_hand():
    y = np.concatenate([[5.0, 4.999, 4.5], np.linspace(3, 1, 37)])
    made = benchmark(task("a", y), task("past", y[::-1]), task("past too", -y))
    row = facts(made, {"a": np.arange(40.0)}).loc["a"]
    scale = 5.0 - np.median(y)
    assert row[["space", "group", "rows", "near", "best", "tying", "tied"]].tolist() == ["s", "a", 40, 2, 1, 2, False]
    assert row["scale"] == pytest.approx(scale) and row["gap"] == pytest.approx(0.001)
    assert row["gap_share"] == pytest.approx(0.001 / scale) and row["near_share"] == 2 / 40
    assert row["noise"] == 1.5 and row["noise_share"] == pytest.approx(1.5 / scale)  # rows 0 to 3 are the best tenth
    assert row["random_10"] == pytest.approx(0.5) and row["random_100"] == 0  # 40 rows: 100 queries see all
    assert row["better"] == 0
    # y and -y: the reversed copy and the mirrored one
    r = [np.corrcoef(np.arange(40), np.arange(40)[::-1])[0, 1]] * 2
    assert row["correlation"] == pytest.approx(r[0]) and row["correlation_low"] == pytest.approx(r[1])


def test_rows_better_than_random():
    y = np.arange(600.0)
    x = np.random.default_rng(1).random((600, 2))
    row = facts(benchmark(task("a", y, x), task("past", y[:12], x))).loc["a"]
    assert row["random_100"] == row["better"] > 0  # outputs one apart
    assert row["better_share"] == row["better"] / 600


def test_low_end_and_median_are_over_the_tasks_own_pairs():
    ys = {"a": np.arange(40.0), "past 1": np.arange(40.0), "past 2": -np.arange(40.0), "past 3": RNG.normal(size=40)}
    made = benchmark(*(task(name, y) for name, y in ys.items()))
    pairs = relatedness.task_correlations(made)
    own = pairs[pairs["task"] == "a"]["correlation"]
    row = facts(made).loc["a"]
    assert row["correlation"] == own.median() and row["correlation_low"] == pytest.approx(np.percentile(own, 5))
    total = decidable.summary(decidable.task_facts(made, {}, pairs), pairs).set_index("space")
    assert total.loc["s", "correlation"] == pairs["correlation"].median()


def test_what_is_not_known_or_not_defined_is_empty():
    apart = RNG.random((40, 2))
    tasks = [task("constant", np.ones(30)), task("one", [2.0]), task("apart", np.arange(40.0), apart)]
    table = facts(benchmark(*tasks, task("past", np.arange(40.0))))
    assert table["noise"].isna().all() and table["correlation"].isna().all()  # constant, too few, nothing shared
    assert table["tied"].tolist() == [True, True, False]
    assert table.loc["constant", ["near", "best", "tying", "better"]].tolist() == [30, 30, 30, 0]
    assert table.loc["one", ["rows", "best"]].tolist() == [1, 1]
    assert table.loc[["constant", "one"], ["gap", "r2", "gap_share", "random_10_share"]].isna().all(axis=None)
    assert table.loc[["constant", "one"], "random_10"].tolist() == [0, 0]


def test_summary_has_a_row_a_space_and_one_for_all_of_medians():
    tasks = [task(f"{s}/{i}", RNG.normal(size=40), space=s) for s in ("s", "t") for i in range(3)]
    tasks += [task(f"past {s}", np.arange(40.0), space=s) for s in ("s", "t")]
    tasks.append(task("t/3", np.ones(40), space="t"))
    made = benchmark(*tasks)
    pairs = relatedness.task_correlations(made)
    table = decidable.task_facts(made, {"s/0": np.full(40, 0.3)}, pairs)
    assert table["space"].tolist() == ["s"] * 3 + ["t"] * 4
    found = decidable.summary(table, pairs).set_index("space")
    assert found.index.tolist() == ["s", "t", "all"]
    assert found["tasks"].tolist() == [3, 4, 7] and found["tied"].tolist() == [0, 1, 1]
    apart = table[~table["tied"]]
    assert found.loc["all", "gap"] == apart["gap"].median() and found.loc["t", "scale"] == table["scale"][3:6].median()
    assert found.loc["t", "best_share"] == 1 / 40, "the constant task, all of whose rows are best, is no part of it"
    assert found.loc["s", "gap_mean"] == pytest.approx(table["gap"][:3].mean())
    assert found.loc["s", "noise"] == 0.3 and np.isnan(found.loc["t", "noise"])


def test_a_space_whose_tasks_are_all_tied_has_counts_but_no_medians():
    made = benchmark(task("a", np.ones(40)), task("past", np.arange(40.0)))
    pairs = relatedness.task_correlations(made)
    total = decidable.summary(decidable.task_facts(made, {}, pairs), pairs)
    assert total["tasks"].tolist() == [1, 1] == total["tied"].tolist()
    assert total[["gap", "scale", "random_10", "gap_mean"]].isna().all(axis=None)
    assert decidable.readable(total)["rows"].tolist() == ["–", "–"]


def test_noise_of_another_length_is_refused():
    made = benchmark(task("a", np.arange(40.0)), task("past", np.arange(40.0)))
    with pytest.raises(DataError, match=r"task 'a': noise .3,. of outputs .40,."):
        facts(made, {"a": np.ones(3)})


def test_tied_tasks_are_named_with_their_role():
    made = benchmark(task("a", np.ones(5)), task("b", np.arange(40.0)), task("past", np.full(7, 2.0)))
    found = decidable.tied_tasks(made)
    assert found["task"].tolist() == ["a", "past"] and found["role"].tolist() == ["tested", "training only"]
    assert found["tying"].tolist() == [5, 7] == found["rows"].tolist() and found["range"].tolist() == [0, 0]
    none = decidable.tied_tasks(benchmark(task("b", np.arange(40.0)), task("past", np.arange(40.0))))
    assert none.empty and list(none) == list(found)


def test_texts_say_what_is_not_known():
    made = benchmark(task("a", np.arange(40.0)), task("constant", np.ones(40)), task("past", np.arange(40.0)))
    pairs = relatedness.task_correlations(made)
    table = decidable.task_facts(made, {}, pairs)
    texts = decidable.readable(table).set_index(table["task"])
    assert set(texts["noise"]) == {"not known"} and texts.loc["constant", "gap"] == "–"
    assert texts.loc["a", "gap"] == f"1 ({1 / 19.5:.1%})" and texts.loc["a", "at the best"] == "1 (2.5%)"
    assert texts.loc["a", "correlation"] == "1.00" and texts.loc["constant", "correlation"] == "–"
    assert decidable.readable(decidable.summary(table, pairs)).shape[0] == 2

"""Where matched points lie, and first queries beyond them: a table small enough to count by hand."""

import numpy as np
import pandas as pd
import pytest

from metabo.errors import DataError
from metabo.papers.hyperbo.figures.support import support_figure
from metabo.papers.hyperbo.metrics import support
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import leave_group_out
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task, cut_by_tasks
from tests.readable import assert_readable

X = np.array([[0.0, 0.2], [0.5, 0.4], [0.7, 0.8], [1.0, 1.0]])
SPACE = SearchSpace("s", tuple(Parameter(name, "linear", 0, 1) for name in ("rate", "momentum")))


def benchmark(y: np.ndarray) -> Benchmark:
    """Four tasks on the rows X; y (rows, tasks), NaN where a trial diverged."""
    names = ["a", "b", "c", "d"]
    tasks = {}
    for name, column in zip(names, y.T, strict=True):
        done = np.isfinite(column)
        tasks[name] = Task(name, "s", name, X[done], column[done], column[done], np.flatnonzero(done), X[~done])
    blocks = cut_by_tasks("one", "s", names, X, y)
    return Benchmark("made", {"s": SPACE}, tasks, blocks, {"held_out": leave_group_out(tasks)}, facts=Facts())


def diverging() -> Benchmark:
    """The last row has a value in task "a" alone."""
    y = np.arange(16, dtype=float).reshape(4, 4)
    y[3, 1:] = np.nan
    return benchmark(y)


def test_the_support_ends_where_points_are_no_longer_shared():
    ranges = support.support(diverging()).set_index(["fold", "input"])
    for fold in ranges.index.levels[0]:
        assert (ranges.loc[(fold, "rate"), ["points", "low", "high", "share"]] == [3, 0.0, 0.7, 0.7]).all()
        assert ranges.loc[(fold, "momentum"), "high"] == 0.8
        assert ranges.loc[(fold, "momentum"), "share"] == pytest.approx(0.6 / 0.8)
    everywhere = support.support(benchmark(np.arange(16, dtype=float).reshape(4, 4)))
    assert (everywhere["share"] == 1).all() and (everywhere["points"] == 4).all()


def test_first_queries_beyond_the_support_are_counted():
    made = diverging()
    ranges = support.support(made)
    fold = {task: f.name for f in made.split("held_out") for task in f.test}
    # task "a" has four rows, its row 3 lies beyond; the others have three
    asked = [("h_nll", "a", 3), ("h_nll", "b", 2), ("h_ekl", "a", 3), ("h_ekl", "a", 0)]
    rows = [
        {"method": m, "space": "s", "fold": fold[t], "task": t, "prior_seed": i, "seed": 0, "iteration": n,
         "candidate": c}
        for i, (m, t, c) in enumerate(asked)
        for n, c in ((1, c), (2, 0))
    ]  # fmt: skip
    queries = support.first_queries(made, pd.DataFrame(rows), ranges)
    assert len(queries) == 2 * len(asked) and set(queries["input"]) == {"rate", "momentum"}
    shares = support.beyond(queries).set_index(["method", "input"])["share"]
    assert shares.to_dict() == {(m, i): 0.5 for m in ("h_nll", "h_ekl") for i in ("rate", "momentum", "any")}


def test_without_shared_points_it_says_so():
    none = benchmark(np.where(np.eye(4, dtype=bool), 1.0, np.nan))
    with pytest.raises(DataError, match="benchmark 'made' has no points that training tasks share"):
        support.support(none)


def test_the_figure_shows_the_range_and_every_first_query():
    made = diverging()
    ranges = support.support(made)
    t = np.arange(1, 5)
    curves = pd.concat(
        pd.DataFrame({"method": m, "iteration": t, "median": 1 / t, "low": 0.8 / t, "high": 1.2 / t})
        for m in ("rand", "h_nll", "h_ekl")
    )
    points = [
        {"method": m, "input": i, "value": v} for m in ("rand", "h_ekl") for i, v in (("rate", 1.0), ("momentum", 0.3))
    ]
    figure = support_figure(curves, ranges, pd.DataFrame(points), "title", "simple regret")
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in figure.axes[1].patches]
    assert np.allclose(bars, [(0.0, 0.7), (0.2, 0.8)])
    dots = np.concatenate([np.asarray(c.get_offsets()) for c in figure.axes[1].collections])
    assert sorted(dots[:, 0]) == [0.3, 0.3, 1.0, 1.0]
    assert_readable(figure, ["rand", "h_nll", "h_ekl"])

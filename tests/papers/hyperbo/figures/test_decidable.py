"""The dot plot of what a table can decide: a line a task, marks at the shares, zeros in sight, tied tasks in grey."""

import numpy as np
import pandas as pd

from metabo.papers.hyperbo.figures import decidable
from metabo.papers.hyperbo.figures.decidable import dot_plot
from tests.readable import assert_readable


def tasks(spaces: list[str], known: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = {name: rng.uniform(0.02, 0.5, len(spaces)) for name in decidable.MARKS}
    table["noise_share"] = table["noise_share"] if known else np.full(len(spaces), np.nan)
    return pd.DataFrame({"space": spaces, "rows": 1500, "better": 10, "tied": False, **table})


def drawn(figure) -> dict[str, np.ndarray]:
    lines = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "None"]
    return {line.get_marker(): np.column_stack([line.get_xdata(), line.get_ydata()]) for line in lines}


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_marks_stand_at_the_shares_on_the_line_of_their_task():
    table = tasks(["s", "s", "t"])
    figure = dot_plot(table, ["a", "b", "c"], "Title")
    marks = drawn(figure)
    np.testing.assert_allclose(marks["|"], np.column_stack([table["gap_share"], [1, 2, 4]]))  # 0 and 3: names of spaces
    np.testing.assert_allclose(marks["x"][:, 0], table["noise_share"])
    ax = figure.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b", "c"] and ax.get_xscale() == "log"
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("10 of 1,500") == 3 and {"s", "t"} <= set(texts)
    assert_readable(figure, [])


def test_one_space_needs_no_name_and_unknown_noise_is_said():
    figure = dot_plot(tasks(["s", "s"], known=False), ["a", "b"], "Title")
    assert "x" not in drawn(figure) and any("not known" in label for label in words(figure))
    assert "s" not in [text.get_text() for text in figure.axes[0].texts]
    assert not any("not known" in label for label in words(dot_plot(tasks(["s"]), ["a"], "Title")))


def test_zeros_are_in_sight_and_tied_tasks_grey():
    table = tasks(["s"] * 3).assign(tied=[False, True, False])
    table.loc[0, ["random_100_share", "ceiling_share"]] = 0.0
    table.loc[1, list(decidable.MARKS)] = np.nan  # its median is its best
    figure = dot_plot(table, ["a", "b", "c"], "Title")
    ax = figure.axes[0]
    assert ax.get_xscale() == "symlog" and ax.get_xlim()[0] < 0 and ax.get_xticks()[0] == 0
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["a", "b (tied)", "c"]
    assert labels[1].get_color() != labels[0].get_color()
    assert_readable(figure, [])


def test_a_benchmark_of_constant_tasks_is_drawn():
    table = tasks(["s"]).assign(**dict.fromkeys(decidable.MARKS, np.nan), tied=True)
    assert drawn(dot_plot(table, ["a"], "Title")) == {}

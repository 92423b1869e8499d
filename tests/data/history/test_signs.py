"""Past studies of which some have outcomes below 0 alone and all others above it are told, and nothing else is."""

import numpy as np
import pandas as pd
import pytest

from metabo.data.history.past import read_all


def remarks(outcomes: dict[str, list[float]], goal: str = "minimise", **more) -> list[str]:
    rows = [{"study": s, "a": i / 9, "loss": y} for s, values in outcomes.items() for i, y in enumerate(values)]
    space = {
        "study": "study", "parameters": {"a": {"type": "float", "low": 0.0, "high": 1.0}},
        "outcome": {"column": "loss", "goal": goal}, **more,
    }  # fmt: skip
    (past,) = read_all([pd.DataFrame(rows)], [space])
    return [line for line in past.remarks if "sign" in line]


LOSS = [0.7, 0.5, 0.9, 0.6, np.nan]
NEGATIVE = [-0.7, -0.5, -0.9, -0.6]


@pytest.mark.parametrize(("goal", "other"), [("minimise", "maximise"), ("maximise", "minimise")])
def test_both_sides_are_named_and_neither_is_called_wrong(goal, other):
    (said,) = remarks({"one": LOSS, "two": NEGATIVE, "three": LOSS}, goal)
    assert "all outcomes of 'two' are below 0, and all of 'one', 'three' above it" in said
    assert "if one of the two sides has the wrong sign" in said and f'`studies: {{"two": {{goal: {other}}}}}`' in said
    (said,) = remarks({"one": LOSS, "two": NEGATIVE, "three": NEGATIVE}, goal)
    assert "all outcomes of 'two', 'three' are below 0, and all of 'one' above it" in said


def test_a_goal_that_was_given_is_to_be_checked_first():
    given = {"one": LOSS, "two": NEGATIVE, "three": LOSS}
    assert remarks(given, studies={"two": {"goal": "maximise"}}) == []
    (said,) = remarks({"one": LOSS, "two": LOSS, "three": LOSS}, studies={"two": {"goal": "maximise"}})
    assert "the goal under 'studies' in space.yaml turns the sign of 'two': check it first" in said


def test_many_studies_are_counted():
    (said,) = remarks({**{f"s{i}": LOSS for i in range(6)}, "two": NEGATIVE})
    assert "all of 's0', 's1', 's2' and 3 others above it" in said


@pytest.mark.parametrize(
    "outcomes",
    [
        {"one": LOSS, "two": LOSS},
        {"one": NEGATIVE, "two": NEGATIVE},
        {"one": LOSS, "two": NEGATIVE, "three": [0.4, -0.1]},  # a quantity that may have either
        {"one": LOSS, "two": [-0.7, 0.0, -0.9, -0.6]},
    ],
)
def test_nothing_is_said_otherwise(outcomes):
    assert remarks(outcomes) == []


def test_outcomes_on_a_logarithmic_scale_have_one_sign():
    given = {"one": [0.7, 0.5, 0.9, 0.6], "two": [7.0, 5.0, 9.0, 6.0]}
    assert remarks(given, outcome={"column": "loss", "goal": "minimise", "scale": "log"}) == []

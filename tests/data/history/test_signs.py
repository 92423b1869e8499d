"""Past studies whose outcomes have the other sign than those of the rest are named, and nothing else is."""

import numpy as np
import pandas as pd
import pytest

from metabo.data.history.past import read_all
from metabo.data.history.signs import FEWEST


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
def test_the_fewer_studies_are_named_with_what_to_write(goal, other):
    (said,) = remarks({"one": LOSS, "two": NEGATIVE, "three": LOSS}, goal)
    assert "all outcomes of 'two' are below 0, and those of all other studies above it" in said
    assert f'`studies: {{"two": {{goal: {other}}}}}`' in said
    (said,) = remarks({"one": LOSS, "two": NEGATIVE, "three": NEGATIVE}, goal)
    assert "all outcomes of 'one' are above 0" in said and f'`studies: {{"one": {{goal: {other}}}}}`' in said
    (said,) = remarks({"one": LOSS, "two": NEGATIVE}, goal)
    assert "all outcomes of 'two' are below 0" in said, "of as many, those below 0"


def test_what_is_written_as_the_line_says_is_read_without_it():
    given = {"one": LOSS, "two": NEGATIVE, "three": LOSS}
    assert remarks(given, studies={"two": {"goal": "maximise"}}) == []
    (said,) = remarks({"one": LOSS, "two": LOSS, "three": LOSS}, studies={"two": {"goal": "maximise"}})
    assert "its goal under 'studies' in space.yaml turns the sign of 'two'" in said


@pytest.mark.parametrize(
    "outcomes",
    [
        {"one": LOSS, "two": LOSS},
        {"one": NEGATIVE, "two": NEGATIVE},
        {"one": LOSS, "two": NEGATIVE, "three": [0.4, -0.1, 0.2, 0.3]},  # a quantity that may have either
        {"one": LOSS, "two": NEGATIVE[: FEWEST - 1]},
        {"one": LOSS, "two": [-0.7, 0.0, -0.9, -0.6]},
    ],
)  # fmt: skip
def test_nothing_is_said_otherwise(outcomes):
    assert remarks(outcomes) == []


def test_outcomes_on_a_logarithmic_scale_have_one_sign():
    given = {"one": [0.7, 0.5, 0.9, 0.6], "two": [7.0, 5.0, 9.0, 6.0]}
    assert remarks(given, outcome={"column": "loss", "goal": "minimise", "scale": "log"}) == []

"""Two tables compared trial by trial, against numbers worked out by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from metabo.collect.agreement import compare

NAN = np.nan


def table(rows):
    frame = pd.DataFrame(rows, columns=["task", "row", "x", "y", "status"])
    return frame.astype({"task": "category", "status": "category"})


OURS = table([("a", 0, [0.1], 0.5, "done"), ("a", 1, [0.2], 0.25, "done"), ("a", 2, [0.3], 0.75, "done"),
              ("a", 3, [0.4], NAN, "diverged"), ("a", 4, [0.5], NAN, "diverged"), ("a", 5, [0.6], 0.5, "done"),
              ("b", 0, [0.9], 0.5, "done")])  # fmt: skip
THEIRS = table([("a", 4, [0.5], 0.5, "done"), ("a", 3, [0.4], NAN, "diverged"), ("a", 2, [0.3], 1.0, "done"),
                ("a", 1, [0.2], 0.25, "done"), ("a", 0, [0.1], 0.625, "done"), ("a", 9, [0.1], 0.1, "done"),
                ("b", 0, [0.8], 0.5, "done")])  # fmt: skip


def test_by_hand():
    found = compare(OURS, THEIRS, ["task", "row"], ["x"], "y")
    assert found == {
        "rows": 5, "only_ours": 1, "only_theirs": 1, "other_inputs": 1, "status_equal": 0.8, "equal": 0.4,
        "max_difference": 0.25, "median_difference": 0.125, "spearman": pytest.approx(1.0),
    }  # fmt: skip
    assert json.loads(json.dumps(found)) == found


def test_inputs_of_other_lengths_differ():
    longer = THEIRS.assign(x=[[*x, 0.0] for x in THEIRS["x"]])
    assert compare(OURS, longer, ["task", "row"], ["x"], "y")["other_inputs"] == 6


def test_scalar_inputs():
    ours, theirs = (t.assign(u=[x[0] for x in t["x"]]) for t in (OURS, THEIRS))
    assert compare(ours, theirs, ["task", "row"], ["u"], "y") == compare(OURS, THEIRS, ["task", "row"], ["x"], "y")


def test_nothing_in_common_and_nothing_that_varies():
    nothing = compare(OURS, THEIRS[:0], ["task", "row"], ["x"], "y")
    assert (nothing["rows"], nothing["only_ours"], nothing["equal"], nothing["spearman"]) == (0, 7, None, None)
    flat = OURS.assign(y=0.5)
    assert compare(flat, flat, ["task", "row"], ["x"], "y")["spearman"] is None

"""What stage commands share."""

import pandas as pd

from metabo.stages.common import raised


def test_steps_that_needed_more_on_the_diagonal_are_counted_and_printed(capsys):
    rows = pd.DataFrame({"jitter": [0.0] * 80})
    assert raised(rows) == 0 and capsys.readouterr().out == ""
    rows.loc[[3, 50], "jitter"] = [1e-6, 2e-4]
    assert raised(rows) == 2
    assert capsys.readouterr().out.startswith("2 of 80 steps: the covariance needed up to 0.0002 more on its diagonal")

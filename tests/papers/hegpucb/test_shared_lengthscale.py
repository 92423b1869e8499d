"""Numbers and drawing of candidates that share a length-scale."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from metabo.papers.hegpucb import shared_lengthscale as shared
from metabo.papers.hegpucb.studies.common import EACH, TRUE
from tests.readable import assert_readable

METHODS = ("mle", "expected_ucb", "he_gp_ucb", "gp_ucb", "uniform")


@pytest.fixture
def run():
    """Four seeds of four queries: method number m follows a wrong period in its first (m + seed) % 4 queries."""
    rows = [
        {"lengthscale": scale, "method": method, "seed": seed, "iteration": t, "truth": 3,
         "u": 1 if t <= (m + seed) % 4 else 3, "cumulative": t * (m + 1.0) + seed * (m == 2), "simple": 1.0 / t,
         "rejected": method == "he_gp_ucb" and t == 4 - (seed > 1)}
        for scale in (EACH, TRUE, 2.0) for m, method in enumerate(METHODS) for seed in range(4) for t in range(1, 5)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_means_and_differences_are_over_seeds_at_the_last_query(run):
    each = shared.by_seed(run)
    assert len(each) == 3 * 5 * 4
    mle = each[(each["lengthscale"] == TRUE) & (each["method"] == "mle")].sort_values("seed")
    assert mle["wrong"].tolist() == [0, 0.25, 0.5, 0.75] and (mle["cumulative"] == 4.0).all()
    means = shared.means(each).set_index(["lengthscale", "method", "measure"])
    row = means.loc[(2.0, "mle", "wrong")]
    half = stats.t.ppf(0.975, 3) * np.std([0, 0.25, 0.5, 0.75], ddof=1) / 2
    assert row["mean"] == 0.375 and row["seeds"] == 4
    np.testing.assert_allclose([row["low"], row["high"]], [0.375 - half, 0.375 + half])
    found = shared.differences(each).set_index(["lengthscale", "method", "measure"])
    row = found.loc[(TRUE, "mle", "cumulative")]
    assert row["difference"] == pytest.approx(12.0 + 1.5 - 4.0) and row["low"] < 9.5 < row["high"]
    wrong = found.xs("wrong", level="measure")
    assert set(wrong.index.get_level_values("method")) == {"mle"}
    paired = np.array([0.5, 0.75, 0, 0.25]) - [0, 0.25, 0.5, 0.75]
    assert wrong.loc[(EACH, "mle"), "difference"] == pytest.approx(paired.mean())


def test_numbers_are_written_with_their_intervals(run):
    each = shared.by_seed(run)
    wide = shared.written(shared.means(each), "mean", "cumulative")
    assert wide.index.tolist() == ["one each", "0.144", "2"] and tuple(wide) == METHODS
    assert wide.loc["0.144", "mle"] == "4 (4 to 4)"
    gaps = shared.written(shared.differences(each), "difference", "wrong")
    assert list(gaps) == ["mle"] and gaps.loc["2", "mle"].startswith("0 (-")


def test_what_is_followed_and_what_is_dropped(run):
    followed = shared.followed(run).set_index(["lengthscale", "method", "u"])["share"]
    assert followed.loc[(TRUE, "mle")].to_dict() == {1: 6 / 16, 3: 10 / 16}
    assert (followed.groupby(["lengthscale", "method"]).sum() == 1).all()
    drops = shared.drops(run).set_index("lengthscale")
    # HE-GP-UCB follows the truth when it drops, but for seed 1, whose first three queries follow another one.
    assert drops.loc[EACH].to_dict() == {"wrong": 0.0, "true": 1.0}
    early = run.assign(rejected=run["rejected"] | ((run["method"] == "he_gp_ucb") & (run["iteration"] == 1)))
    assert shared.drops(early).set_index("lengthscale").loc[TRUE, "wrong"] == pytest.approx(3 / 4)


def test_every_length_scale_has_its_place_and_a_length_scale_each_is_hollow(run):
    figure = shared.shared_panels(shared.means(shared.by_seed(run)), "Title", TRUE)
    above, below = figure.axes
    assert [label.get_text() for label in below.get_xticklabels()] == ["one each", "0.144", "2"]
    assert [label.get_fontweight() for label in below.get_xticklabels()] == ["normal", "bold", "normal"]
    points = [line for line in below.lines if line.get_marker() not in ("None", None, "")]
    assert [len(line.get_xdata()) for line in points] == [2, 1] * 4
    assert [line.get_markerfacecolor() == "white" for line in points] == [False, True] * 4
    np.testing.assert_allclose(points[0].get_ydata(), [4.0, 4.0])
    assert len([line for line in above.lines if line.get_marker() not in ("None", None, "")]) == 4
    dotted = [line for line in above.lines if list(line.get_ydata()) == [0.1, 0.1]]
    assert len(dotted) == 1 and "4 seeds" in figure.get_suptitle()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:4] == ["MLE", "ExpectedUCB", "HE-GP-UCB", "GP-UCB, true candidate"]
    assert_readable(figure, [])

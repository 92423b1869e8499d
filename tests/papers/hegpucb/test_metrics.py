"""Choosing among priors against single priors, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from metabo.errors import DataError
from metabo.metrics.runs import Runs
from metabo.papers.hegpucb import metrics as elimination

# three priors, two tasks, two iterations
SINGLE = np.array([[[4.0, 2.0], [1.0, 1.0]], [[3.0, 3.5], [5.0, 3.0]], [[9.0, 8.0], [2.0, 0.0]]])


def runs(chosen, folds=(0, 1), **more):
    values = {"h_nll-ucb3": SINGLE[:, None], "he_pretrained": np.asarray(chosen, float)[:, None]}
    return Runs(values, {}, ("a", "b"), np.array([1, 2]), frozenset(), folds, **more)


def test_single_priors_of_every_set():
    """Set 0 has priors 1 and 2: task a: 1 is better (3.25 < 8.5), task b: 2 is (1 < 4)."""
    found = elimination.singles(SINGLE)
    np.testing.assert_allclose(found["mean"][0], [[6.0, 5.75], [3.5, 1.5]])
    np.testing.assert_allclose(found["best"][0], [[3.0, 3.5], [2.0, 0.0]])
    np.testing.assert_allclose(found["worst"][0], [[9.0, 8.0], [5.0, 3.0]])
    np.testing.assert_allclose(found["best"][1], [[4.0, 2.0], [1.0, 1.0]])  # equal means in b: the first
    np.testing.assert_allclose(found["mean"].mean(axis=0), SINGLE.mean(axis=0))
    with pytest.raises(DataError, match="at least two, got 1"):
        elimination.singles(SINGLE[:1])


def test_curves_differences_and_tasks():
    chosen = runs(np.broadcast_to([[2.0, 1.0], [2.0, 1.0]], (3, 2, 2)))
    values = elimination.against_singles(chosen, "h_nll-ucb3")
    assert list(values) == ["he_pretrained", "single_mean", "single_best", "single_worst"]
    curve = elimination.set_curves(values).set_index(["method", "iteration"])
    assert curve.loc[("he_pretrained", 2)].tolist() == [1.0, 1.0, 1.0]
    means = values["single_mean"].mean(axis=1)[:, 0]
    assert curve.loc[("single_mean", 1)].tolist() == pytest.approx([means.mean(), means.min(), means.max()])
    gaps = elimination.set_differences(values, "he_pretrained", [2], chosen, 0).set_index("method")
    assert gaps.loc["single_mean", "difference"] == pytest.approx(1.0 - SINGLE[..., 1].mean())
    assert gaps.loc["single_mean", "wins"] == 1.0 and gaps.loc["single_best", "wins"] == 0.5
    assert gaps.loc["single_mean", "low"] < gaps.loc["single_mean", "difference"] < gaps.loc["single_mean", "high"]
    task = elimination.set_tasks(values, ("a", "b"), 2).set_index(["method", "task"])["mean"]
    assert task["single_mean", "a"] == pytest.approx(SINGLE[:, 0, 1].mean()) and task["he_pretrained", "b"] == 1.0


@pytest.mark.parametrize("folds", [(0, 1), (0, 0)])
def test_sets_that_repeat_one_another_make_no_interval_narrower(folds):
    """Each set three times is the same evidence: intervals speak of folds, or of tasks if there is one fold."""
    chosen = runs(SINGLE[::-1] - 0.3 * SINGLE[:1], folds)
    values = elimination.against_singles(chosen, "h_nll-ucb3")
    once, thrice = (
        elimination.set_differences(found, "he_pretrained", [2], chosen, 0)
        for found in (values, {name: np.repeat(array, 3, axis=0) for name, array in values.items()})
    )
    assert (once["low"] < once["high"]).all()
    np.testing.assert_allclose(thrice[["difference", "low", "high"]], once[["difference", "low", "high"]], rtol=1e-12)


def test_training_tasks_that_folds_share_widen_the_interval_as_in_every_other_comparison():
    chosen = runs(SINGLE[::-1] - 0.3 * SINGLE[:1])
    values = elimination.against_singles(chosen, "h_nll-ucb3")
    alone, shared = (
        elimination.set_differences(values, "he_pretrained", [2], given, 0)
        for given in (chosen, replace(chosen, overlap=2.0))
    )
    widths = [found["high"] - found["low"] for found in (alone, shared)]
    np.testing.assert_allclose(widths[1], np.sqrt(3) * widths[0], rtol=1e-12)


def test_an_interval_for_these_tasks_alone_speaks_of_the_priors_that_were_left_out():
    """The mean of the priors that are kept is a mean of five draws of six, so the interval is that of a mean of six
    independent draws; sets taken for draws would make it five times narrower."""
    draws = np.random.default_rng(0).normal(size=(6, 4))
    single = np.repeat(draws[:, :, None], 2, axis=2)
    values = {"he_pretrained": np.zeros_like(single), "single_mean": elimination.singles(single)["mean"]}
    gap = elimination.set_differences(values, "he_pretrained", [2], runs(SINGLE, drawn="fixed"), 0).iloc[0]
    of_priors = draws.mean(axis=1)
    expected = t.interval(0.95, 5, loc=-of_priors.mean(), scale=of_priors.std(ddof=1) / np.sqrt(6))
    np.testing.assert_allclose([gap["low"], gap["high"]], expected, rtol=1e-12)


def test_equal_runs_of_all_sets_are_stored_once_and_other_numbers_are_refused():
    one = elimination.against_singles(runs(np.ones((1, 2, 2))), "h_nll-ucb3")
    assert one["he_pretrained"].shape == (3, 2, 2)
    with pytest.raises(DataError, match="'he_pretrained' has 2 sets of candidates for 3 single priors of 'h_nll-ucb3'"):
        elimination.against_singles(runs(np.ones((2, 2, 2))), "h_nll-ucb3")

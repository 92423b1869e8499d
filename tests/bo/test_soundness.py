import numpy as np
import pytest

from metabo.bo import acquisition
from metabo.bo.soundness import unsound
from metabo.errors import NumericsError
from tests import tiny
from tests.bo.test_trajectories import lay_out


@pytest.fixture
def rows():
    """Two runs of 40 steps."""
    return lay_out(tiny.benchmark(), "a", np.zeros((2, 40), dtype=int), 40)


def test_too_many_unsound_steps_fail_with_the_first_one_named(rows):
    assert unsound(rows) == 0
    rows.loc[[7, 50, 60, 70], "ok"] = False  # 4 of 80: 5 %
    assert unsound(rows) == 4
    rows.loc[3, "ok"] = False
    with pytest.raises(NumericsError, match=r"5 of 80 steps have no finite posterior.*'task': 'a'.*'iteration': .*4"):
        unsound(rows)


@pytest.mark.parametrize(
    ("score", "mean", "blamed"),
    [
        (lambda mean, std, best, count: mean * np.nan, 0.5, "acquisition 'pi' gives no number .*bo/acquisition.py"),
        (lambda mean, std, best, count: mean * np.nan, np.nan, "no finite posterior or fit.*learning rate"),
        (lambda mean, std, best, count: mean + std, 0.5, "no finite posterior or fit.*learning rate"),
    ],
)
def test_an_acquisition_without_a_number_is_blamed_and_not_the_prior(rows, monkeypatch, score, mean, blamed):
    monkeypatch.setattr(acquisition, "make", {"pi": score}.get)
    wrong = rows.assign(method="h_nll", acquisition="pi", mean=mean, std=1.0, ok=False)
    with pytest.raises(NumericsError, match=blamed):
        unsound(wrong)


def test_the_score_is_that_of_the_step(rows, monkeypatch):
    """A score that needs the best observation and their number: those of the step's own run, before it."""
    seen = []

    def score(mean, std, best, count):
        seen.append((float(mean[0]), float(std[0]), float(best), int(count)))
        return mean * np.nan

    monkeypatch.setattr(acquisition, "make", {"pi": score}.get)
    wrong = rows.assign(method="h_nll", acquisition="pi", mean=0.5, std=2.0)
    wrong.loc[43:, "ok"] = False  # from the fourth step of the second run on
    wrong.loc[[40, 41, 42], "y"] = [1.0, 7.0, 3.0]
    with pytest.raises(NumericsError):
        unsound(wrong)
    assert seen == [(0.5, 2.0, 7.0, 3)]
    seen.clear()
    wrong["ok"] = False
    with pytest.raises(NumericsError):
        unsound(wrong)
    assert seen == [(0.5, 2.0, -np.inf, 0)]

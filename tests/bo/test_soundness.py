import math

import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import acquisition
from metabo.bo.soundness import flat, require_scores, unsound
from metabo.errors import ConfigError, NumericsError
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
        (lambda mean, std, best, count: mean + np.inf, 0.5, "acquisition 'pi' gives inf .*bo/acquisition.py"),
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


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda mean, std, best, count: 0.0 * mean, True),
        (lambda mean, std, best, count: 0.0 * mean + count, True),
        (lambda mean, std, best, count: jnp.where(count < 3, 0.0, 1.0) * mean, False),
        (lambda mean, std, best, count: mean + std, False),
    ],
    ids=["a constant", "one at each step", "equal at first", "of the prediction"],
)
def test_scores_that_are_equal_at_every_step_are_told(rows, monkeypatch, capsys, score, said):
    monkeypatch.setattr(acquisition, "make", {"pi": score}.get)
    run = rows.assign(method="h_nll", acquisition="pi", mean=np.linspace(0, 1, len(rows)), std=1.0)
    assert flat(run) == said
    line = "acquisition 'pi' gives equal scores at every step, whatever is predicted: candidates were drawn at random"
    assert capsys.readouterr().out.startswith(line) == said


def test_nothing_is_told_of_scores_without_predictions_or_of_another_kind(rows, monkeypatch):
    monkeypatch.setattr(acquisition, "make", {"pi": lambda mean, std, best, count: 0.0 * mean}.get)
    assert not flat(rows.assign(acquisition="pi", mean=np.nan, std=np.nan))
    assert not flat(rows.assign(acquisition="uniform", mean=np.linspace(0, 1, len(rows)), std=1.0))


@pytest.mark.parametrize("name", [*acquisition.SCORED, *acquisition.OWN])
def test_acquisitions_of_the_project_give_a_score_for_each_candidate(name):
    require_scores(name)
    if name in acquisition.SCORED:  # what was found without computing is so
        mean, std = jnp.array([0.0, 0.5, 1.0]), jnp.array([1.0, 0.5, 2.0])
        scores = acquisition.make(name)(mean, std, jnp.array(0.4), jnp.array(2))
        assert scores.shape == (3,) and jnp.isfinite(scores).all() and len({*scores.tolist()}) > 1


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda mean, std, best, count: jnp.max(mean), "gives one number for 3 candidates; return a score for each"),
        (lambda mean, std, best, count: mean[:2], r"gives the shape \(2,\) for 3 candidates"),
        (lambda mean, std, best, count: np.asarray(mean), r"cannot be traced by JAX \(Tracer.*jax.numpy in place of"),
        (lambda mean, std, best, count: mean * math.sqrt(count), r"cannot be traced by JAX .*jax.numpy in place of"),
        (lambda mean, std, best, count: mean if count > 0 else std, r"cannot be traced .*jnp.where in place of `if`"),
        (lambda mean, std: mean, r"cannot be traced by JAX .*take \(mean, std, best, count\)"),
    ],
)
def test_an_acquisition_of_another_kind_is_told_in_one_line(monkeypatch, score, said):
    monkeypatch.setattr(acquisition, "make", {"pi": score}.get)
    with pytest.raises(ConfigError, match=r"^src/metabo/bo/acquisition.py: acquisition 'pi' " + said) as error:
        require_scores("pi")
    assert "\n" not in str(error.value)

"""cm-BO's control: two mirrored families, whose average says nothing, and one, whose average is the right prior."""

import numpy as np
import pytest

from metabo.data import cmbo_control
from metabo.data.cmbo_control import ALIKE, FAMILIES, MIRRORED
from metabo.errors import ConfigError

DRAWS = 3


@pytest.fixture(scope="module")
def made():
    return cmbo_control.load("cmbo_control", {"points": 120, "draws": DRAWS, "seed": 3})


def folds_of(made, space):
    return [fold for fold in made.split("held_out") if fold.space == space]


def outputs(made, fold):
    """The outputs (tasks, n) of a draw, and which of its tasks are of family "up"."""
    names = [*fold.train, *fold.test]
    return np.stack([made.tasks[name].y for name in names]), np.array(["/up-" in name for name in names])


@pytest.mark.parametrize("space", FAMILIES)
def test_tasks_of_one_family_agree_and_those_of_the_other_are_their_mirror(made, space):
    for fold in folds_of(made, space):
        y, up = outputs(made, fold)
        assert y.shape == (14, 120) and up.sum() == (7 if space == MIRRORED else 14)
        np.testing.assert_allclose([y.mean(axis=1), y.std(axis=1)], [np.zeros(14), np.ones(14)], atol=1e-12)
        rho = np.corrcoef(y)
        for own in [up, ~up][: len(FAMILIES[space])]:
            within = rho[own][:, own][np.triu_indices(own.sum(), 1)]
            assert within.min() > 0.7 and within.max() < 0.999
        assert space == ALIKE or rho[up][:, ~up].max() < -0.7


def test_only_the_right_family_says_where_the_best_points_are(made):
    """The training tasks' own means: of the target's family, of the other one, of all."""
    regrets = []
    for fold in folds_of(made, MIRRORED):
        mean = {f: np.mean([made.tasks[t].y for t in fold.train if f"/{f}-" in t], axis=0) for f in ("up", "down")}
        for name in fold.test:
            y, own = made.tasks[name].y, "up" if "/up-" in name else "down"
            other, average = mean["down" if own == "up" else "up"], mean["up"] + mean["down"]
            picks = mean[own].argmax(), other.argmax(), average.argmax()
            regrets.append([(y.max() - y[i]) / np.ptp(y) for i in picks])
    right, wrong, both = np.mean(regrets, axis=0)
    assert right < 0.1 and wrong > 0.8 and both > 0.2


def test_where_all_tasks_are_alike_their_average_says_where_the_best_points_are(made):
    regrets = []
    for fold in folds_of(made, ALIKE):
        pick = np.mean([made.tasks[t].y for t in fold.train], axis=0).argmax()
        targets = [made.tasks[t].y for t in fold.test]
        regrets += [(y.max() - y[pick]) / np.ptp(y) for y in targets]
    assert np.mean(regrets) < 0.1


@pytest.mark.parametrize("space", FAMILIES)
def test_the_protocol_is_cm_bos(made, space):
    folds = folds_of(made, space)
    assert len(folds) == DRAWS
    for fold in folds:
        assert (len(fold.train), len(fold.test)) == (12, 2) and not {*fold.train} & {*fold.test}
        for part in (fold.train, fold.test):
            assert sum("/up-" in name for name in part) == len(part) / len(FAMILIES[space])
            assert {made.tasks[name].space for name in part} == {space}
    assert {rows.shape for rows in made.initial.values()} == {(8, 5)}


def test_each_draw_of_each_space_is_its_own_and_a_data_set(made):
    assert tuple(made.spaces) == (MIRRORED, ALIKE)
    first = [made.tasks[fold.train[0]] for fold in made.split("held_out")]
    for place, one in enumerate(first):
        for other in first[:place]:
            assert not np.isin(one.x, other.x).any() and not np.isin(one.y, other.y).any()
    sets = [{made.tasks[name].group for name in (*fold.train, *fold.test)} for fold in made.split("held_out")]
    assert all(len(own) == 1 for own in sets) and len(set.union(*sets)) == 2 * DRAWS
    found = {count.name: count.found for count in made.facts.counts}
    assert found["spaces"] == 2 and found["families of mirrored"] == 2 and found["families of alike"] == 1
    assert found["draws of each space"] == DRAWS


def test_more_draws_leave_those_before_them_as_they_are(made):
    more = cmbo_control.load("cmbo_control", {"points": 120, "draws": DRAWS + 1, "seed": 3})
    for name, task in made.tasks.items():
        np.testing.assert_array_equal(task.y, more.tasks[name].y)
        np.testing.assert_array_equal(made.initial[name], more.initial[name])
    assert len(more.tasks) == len(made.tasks) + 28


def test_the_seed_decides():
    first, again, other = (
        cmbo_control.load("cmbo_control", {"points": 20, "draws": 1, "seed": seed}) for seed in (3, 3, 4)
    )
    for name, task in first.tasks.items():
        np.testing.assert_array_equal(task.y, again.tasks[name].y)
        assert not np.array_equal(task.y, other.tasks[name].y)


@pytest.mark.parametrize(("setting", "value", "least"), [("points", 9, 10), ("draws", 0, 1)])
def test_too_few_points_or_draws_are_refused(setting, value, least):
    with pytest.raises(
        ConfigError, match=rf"cmbo_control\.{setting}: {value} must be a whole number of at least {least}"
    ):
        cmbo_control.load("cmbo_control", {setting: value})

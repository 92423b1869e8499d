"""cm-BO's control: two mirrored families, whose average says nothing, and one, whose average is the right prior."""

import numpy as np
import pytest

from metabo.data import cmbo_control
from metabo.data.cmbo_control import ALIKE, FAMILIES, MIRRORED
from metabo.errors import ConfigError


@pytest.fixture(scope="module")
def made():
    return cmbo_control.load("cmbo_control", {"points": 120, "seed": 3})


def outputs(made, space):
    """The outputs (tasks, n) of a space, and which of its tasks are of family "up"."""
    tasks = [task for task in made.tasks.values() if task.space == space]
    return np.stack([task.y for task in tasks]), np.array(["/up-" in task.name for task in tasks])


def fold_of(made, space):
    (fold,) = [fold for fold in made.split("held_out") if fold.space == space]
    return fold


@pytest.mark.parametrize("space", FAMILIES)
def test_tasks_of_one_family_agree_and_those_of_the_other_are_their_mirror(made, space):
    y, up = outputs(made, space)
    assert y.shape == (20, 120) and up.sum() == (10 if space == MIRRORED else 20)
    np.testing.assert_allclose([y.mean(axis=1), y.std(axis=1)], [np.zeros(20), np.ones(20)], atol=1e-12)
    rho = np.corrcoef(y)
    for own in [up, ~up][: len(FAMILIES[space])]:
        within = rho[own][:, own][np.triu_indices(own.sum(), 1)]
        assert within.min() > 0.7 and within.max() < 0.999
    assert space == ALIKE or rho[up][:, ~up].max() < -0.7


def test_only_the_right_family_says_where_the_best_points_are(made):
    """The training tasks' own means: of the target's family, of the other one, of all."""
    fold = fold_of(made, MIRRORED)
    mean = {f: np.mean([made.tasks[t].y for t in fold.train if f"/{f}-" in t], axis=0) for f in ("up", "down")}
    regrets = []
    for name in fold.test:
        y, own = made.tasks[name].y, "up" if "/up-" in name else "down"
        other, average = mean["down" if own == "up" else "up"], mean["up"] + mean["down"]
        picks = mean[own].argmax(), other.argmax(), average.argmax()
        regrets.append([(y.max() - y[i]) / np.ptp(y) for i in picks])
    right, wrong, both = np.mean(regrets, axis=0)
    assert right < 0.1 and wrong > 0.8 and both > 0.2


def test_where_all_tasks_are_alike_their_average_says_where_the_best_points_are(made):
    fold = fold_of(made, ALIKE)
    pick = np.mean([made.tasks[t].y for t in fold.train], axis=0).argmax()
    targets = [made.tasks[t].y for t in fold.test]
    assert np.mean([(y.max() - y[pick]) / np.ptp(y) for y in targets]) < 0.1


@pytest.mark.parametrize("space", FAMILIES)
def test_the_protocol_is_cm_bos(made, space):
    fold = fold_of(made, space)
    assert (len(fold.train), len(fold.test)) == (12, 8) and not {*fold.train} & {*fold.test}
    for part in (fold.train, fold.test):
        assert sum("/up-" in name for name in part) == len(part) / len(FAMILIES[space])
        assert {made.tasks[name].space for name in part} == {space}
    assert {rows.shape for rows in made.initial.values()} == {(8, 5)}


def test_its_spaces_are_draws_of_their_own(made):
    assert tuple(made.spaces) == (MIRRORED, ALIKE)
    one, other = (next(task for task in made.tasks.values() if task.space == space) for space in FAMILIES)
    assert not np.isin(one.x, other.x).any() and abs(np.corrcoef(one.y, other.y)[0, 1]) < 0.9
    found = {count.name: count.found for count in made.facts.counts}
    assert found["spaces"] == 2 and found["families of mirrored"] == 2 and found["families of alike"] == 1


def test_the_mirrored_families_are_those_drawn_before_there_was_another_space():
    """Recorded then: two inputs, some outputs and initial points of the first task and of the last."""
    made = cmbo_control.load("cmbo_control", {"points": 20, "seed": 3})
    names = [name for name, task in made.tasks.items() if task.space == MIRRORED]
    first, last = made.tasks[names[0]], made.tasks[names[-1]]
    assert (len(names), first.name, last.name) == (20, "mirrored/up-train01", "mirrored/down-test04")
    exact = {"rtol": 1e-10}  # the last digits differ from machine to machine
    np.testing.assert_allclose(first.x[0], [0.501985839736367, 0.643134707364567], **exact)
    np.testing.assert_allclose(first.y[:3], [-0.431530493353383, -0.968662227648363, -0.864506900093399], **exact)
    np.testing.assert_allclose(last.y[:3], [0.366859989428565, 0.750964791631682, 0.778738153414216], **exact)
    np.testing.assert_array_equal(made.initial[first.name][[0, 7]], [[15, 5, 17, 1, 8], [1, 3, 14, 9, 4]])
    np.testing.assert_array_equal(made.initial[last.name][[0, 7]], [[19, 6, 1, 15, 8], [17, 13, 11, 0, 7]])


def test_the_seed_decides():
    first, again, other = (cmbo_control.load("cmbo_control", {"points": 20, "seed": seed}) for seed in (3, 3, 4))
    for name, task in first.tasks.items():
        np.testing.assert_array_equal(task.y, again.tasks[name].y)
        assert not np.array_equal(task.y, other.tasks[name].y)
    with pytest.raises(ConfigError, match=r"cmbo_control\.points: 9 must be a whole number of at least 10"):
        cmbo_control.load("cmbo_control", {"points": 9})

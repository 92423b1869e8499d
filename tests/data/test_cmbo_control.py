"""cm-BO's control: two mirrored families, whose average says nothing."""

import numpy as np
import pytest

from metabo.data import cmbo_control
from metabo.errors import ConfigError


@pytest.fixture(scope="module")
def made():
    return cmbo_control.load("cmbo_control", {"points": 120, "seed": 3})


def test_tasks_of_one_family_agree_and_those_of_the_other_are_their_mirror(made):
    y = np.stack([task.y for task in made.tasks.values()])
    up = np.array(["/up-" in name for name in made.tasks])
    assert y.shape == (20, 120) and up.sum() == 10
    np.testing.assert_allclose([y.mean(axis=1), y.std(axis=1)], [np.zeros(20), np.ones(20)], atol=1e-12)
    rho = np.corrcoef(y)
    within = np.concatenate([rho[up][:, up][np.triu_indices(10, 1)], rho[~up][:, ~up][np.triu_indices(10, 1)]])
    assert within.min() > 0.7 and within.max() < 0.999 and rho[up][:, ~up].max() < -0.7


def test_only_the_right_family_says_where_the_best_points_are(made):
    """The training tasks' own means: of the target's family, of the other one, of all."""
    (fold,) = made.split("held_out")
    mean = {f: np.mean([made.tasks[t].y for t in fold.train if f"/{f}-" in t], axis=0) for f in ("up", "down")}
    regrets = []
    for name in fold.test:
        y, own = made.tasks[name].y, "up" if "/up-" in name else "down"
        other, average = mean["down" if own == "up" else "up"], mean["up"] + mean["down"]
        picks = mean[own].argmax(), other.argmax(), average.argmax()
        regrets.append([(y.max() - y[i]) / np.ptp(y) for i in picks])
    right, wrong, both = np.mean(regrets, axis=0)
    assert right < 0.1 and wrong > 0.8 and both > 0.2


def test_the_protocol_is_cm_bos(made):
    (fold,) = made.split("held_out")
    assert (len(fold.train), len(fold.test)) == (12, 8) and not {*fold.train} & {*fold.test}
    for part in (fold.train, fold.test):
        assert sum("/up-" in name for name in part) == len(part) / 2
    assert {rows.shape for rows in made.initial.values()} == {(8, 5)}


def test_the_seed_decides():
    first, again, other = (cmbo_control.load("cmbo_control", {"points": 20, "seed": seed}) for seed in (3, 3, 4))
    for name, task in first.tasks.items():
        np.testing.assert_array_equal(task.y, again.tasks[name].y)
        assert not np.array_equal(task.y, other.tasks[name].y)
    with pytest.raises(ConfigError, match=r"cmbo_control\.points: 9 must be a whole number of at least 10"):
        cmbo_control.load("cmbo_control", {"points": 9})

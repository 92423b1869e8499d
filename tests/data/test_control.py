"""The control benchmark: one space where past tasks say where the best points are, one where nothing says anything."""

import numpy as np
import pytest

from metabo.data import control
from metabo.errors import ConfigError


@pytest.fixture(scope="module")
def made():
    return control.load("control", {"points": 60, "seed": 3})


def outputs(benchmark, space):
    return np.stack([task.y for task in benchmark.tasks.values() if task.space == space])


def test_tasks_of_alike_are_one_function_with_noise(made):
    y = outputs(made, "alike")
    assert y.shape == (18, 60)
    f = y.mean(axis=0)
    assert np.std(y - f) == pytest.approx(control.NOISE * np.sqrt(17 / 18), rel=0.1)
    assert np.corrcoef(y)[np.triu_indices(18, 1)].min() > 0.95 and np.std(f) > 5 * control.NOISE
    # smooth: the nearest neighbour of a point has nearly its value
    x = next(task.x for task in made.tasks.values())
    distance = np.linalg.norm(x[:, None] - x[None], axis=2) + np.eye(60) * 9
    near, far = (
        np.abs(f - f[order]).mean() for order in (distance.argmin(axis=1), np.random.default_rng(0).permutation(60))
    )
    assert near < far / 2


def test_tasks_of_unlike_are_independent_draws(made):
    y = outputs(made, "unlike")
    assert np.abs(np.corrcoef(y)[np.triu_indices(18, 1)]).max() < 0.5
    assert y.mean() == pytest.approx(0, abs=0.1) and y.std() == pytest.approx(1, abs=0.05)


def test_folds_train_on_ten_tasks_and_test_eight_that_share_their_inputs(made):
    assert {fold.space for fold in made.split("held_out")} == {"alike", "unlike"}
    for fold in made.split("held_out"):
        assert (len(fold.train), len(fold.test)) == (10, 8) and not {*fold.train} & {*fold.test}
        inputs = [made.tasks[name].x for name in (*fold.train, *fold.test)]
        assert all(np.array_equal(inputs[0], x) for x in inputs)
    assert {block.space: block.y.shape for block in made.matched} == {"alike": (60, 18), "unlike": (60, 18)}


def test_the_seed_decides(made):
    again, other = (control.load("control", {"points": 60, "seed": seed}) for seed in (3, 4))
    np.testing.assert_array_equal(outputs(made, "alike"), outputs(again, "alike"))
    assert not np.array_equal(outputs(made, "alike"), outputs(other, "alike"))
    with pytest.raises(ConfigError, match=r"control\.points: 9 must be a whole number of at least 10"):
        control.load("control", {"points": 9})

"""The ceiling: high where the task can be learned, low on noise, never from a row's own output or its repeats."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from metabo.metrics import ceiling as module
from metabo.metrics.ceiling import ceiling


def test_a_smooth_task_is_learned_and_noise_is_not():
    rng = np.random.default_rng(0)
    x = rng.random((300, 2))
    smooth, noise = ceiling(x, -((x - 0.4) ** 2).sum(axis=1)), ceiling(x, rng.normal(size=300))
    assert smooth.r2 > 0.9 and 0 <= smooth.regret < 0.02
    assert noise.r2 < 0.2 and noise.regret > 0


def test_against_plain_folds():
    """Fold by fold, with models of our own, on rows without repeats."""
    rng = np.random.default_rng(1)
    x, predicted = rng.random((60, 3)), np.zeros(60)
    y = x @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=60)
    inputs = np.unique(x, axis=0, return_inverse=True)[1]
    split = module.GroupKFold(module.FOLDS, shuffle=True, random_state=4).split(x, y, inputs)
    for seen, held in split:
        assert not set(seen) & set(held)
        predicted[held] = ExtraTreesRegressor(module.TREES, random_state=4).fit(x[seen], y[seen]).predict(x[held])
    found = ceiling(x, y, seed=4)
    assert found.r2 == pytest.approx(1 - np.mean((y - predicted) ** 2) / np.var(y), abs=1e-12)
    assert found.regret == pytest.approx(y.max() - y[predicted.argmax()], abs=1e-12)


def test_repeats_of_an_input_are_held_out_together():
    rng = np.random.default_rng(2)
    x, y = rng.random((60, 2)), rng.normal(size=60)
    assert ceiling(np.repeat(x, 4, axis=0), np.repeat(y, 4)).r2 < 0.3  # a model that had seen a repeat would reach 1


def test_constants_and_pools_too_small_to_learn_from():
    x = np.random.default_rng(3).random((20, 2))
    constant = ceiling(x, np.full(20, 2.0))
    assert np.isnan(constant.r2) and constant.regret == 0
    assert np.isnan(ceiling(x[:1], np.array([2.0]))).all()
    assert np.isnan(ceiling(np.repeat(x[:1], 3, axis=0), np.arange(3.0))).all()
    two = ceiling(x[:2], np.array([0.0, 1.0]))
    assert two.regret == 1.0  # each is predicted by the other: the worse looks better


def test_trees_of_a_large_pool_see_a_sample(monkeypatch):
    x = np.random.default_rng(5).random((100, 2))
    full = ceiling(x, x[:, 0])
    monkeypatch.setattr(module, "MOST", 20)
    sampled = ceiling(x, x[:, 0])
    assert sampled != full and 0.5 < sampled.r2 < full.r2

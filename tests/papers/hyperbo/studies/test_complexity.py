"""CPLX: the fit on synthetic timings, exact memory, the measured functions; no test compares clocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from metabo.gp.model import build
from metabo.gp.objectives import ekl_training
from metabo.papers.engine.studies import files as tables
from metabo.papers.hyperbo.studies import complexity, scaling


def series(exponent, sizes=(64, 128, 256, 512), noise=0.0, case=("ekl", "loss", "time", "M")):
    rng = np.random.default_rng(0)
    value = 3e-6 * np.asarray(sizes, float) ** exponent * np.exp(noise * rng.normal(size=len(sizes)))
    return pd.DataFrame({**dict(zip(scaling.CASE, case, strict=True)), "size": sizes, "value": value})


def test_the_fit_finds_the_exponent_of_a_power_law():
    assert scaling.slope(np.array([2, 4, 8]), np.array([5.0, 40.0, 320.0])) == pytest.approx((3, 3, 3))
    assert scaling.slope(np.array([2, 4, 8]), np.array([7.0, 7.0, 7.0])) == (0, 0, 0)
    assert scaling.slope(np.array([2, 4]), np.array([1.0, 2.0]))[1:] == (-np.inf, np.inf)


def test_the_interval_covers_the_exponent_as_often_as_it_says():
    sizes, rng, inside = np.array([64, 128, 256, 512]), np.random.default_rng(1), 0
    for _ in range(600):
        _, low, high = scaling.slope(sizes, sizes**2.0 * np.exp(0.1 * rng.normal(size=4)))
        inside += low <= 2 <= high
    assert 0.92 < inside / 600 < 0.98  # 95 % within three standard errors and a bit


def test_exponents_stand_beside_the_stated_orders():
    cases = {
        (3.0, ("ekl", "loss", "time", "M")),
        (2.0, ("nll", "loss", "time", "N")),
        (1.0, ("nll", "GD", "time", "K")),
    }
    measured = pd.concat([series(e, case=case) for e, case in cases])
    table = scaling.exponents(measured).set_index(scaling.CASE)
    agreeing = table.loc[("ekl", "loss", "time", "M")]
    assert agreeing["slope"] == pytest.approx(3) and agreeing["stated"] == 3 and agreeing["agrees"] == 1
    assert table.loc[("nll", "loss", "time", "N"), "agrees"] == 0
    assert np.isnan(table.loc[("nll", "GD", "time", "K"), "agrees"])
    assert (agreeing["from"], agreeing["to"], agreeing["sizes"]) == (64, 512, 4)


def test_the_square_root_keeps_the_sample_covariance_whatever_the_number_of_functions():
    for n in (3, 6, 40):
        root = np.random.default_rng(n).normal(size=(6, n))
        found = complexity.square_root(root)
        assert found.shape == (6, 6)
        np.testing.assert_allclose(found @ found.T, root @ root.T, atol=1e-12)


def test_overhead_is_the_maximum_likelihood_estimate():
    _, y = complexity.data(7, 5, 0)
    mean, cov = complexity.overhead(y)
    np.testing.assert_allclose(mean, y.mean(axis=1))
    np.testing.assert_allclose(cov, np.cov(y, bias=True))


def test_both_ways_to_nll_agree():
    gp = build(complexity.MODEL, 1, jax.random.key(0))
    tasks = complexity.tasks(9, 4, 0)
    assert not np.allclose(tasks[0][0], tasks[0][1]), "functions have inputs of their own"
    assert complexity.sequential(gp, *tasks) == pytest.approx(float(complexity.parallel(gp, *tasks)), rel=1e-12)


def test_steps_take_the_gradient():
    gp, block = build(complexity.MODEL, 1, jax.random.key(0)), complexity.block(6, 4, 0)
    gradient = jax.grad(lambda gp: ekl_training(gp, block))(gp)
    moved = complexity.descend(complexity.ekl, gp, (block,), jnp.asarray(1))
    batches = jax.tree.map(lambda leaf: leaf[None], (block,))
    for new in (moved, complexity.epoch(complexity.ekl, gp, batches)):
        step = (gp.raw_noise - new.raw_noise) / complexity.STEP
        assert step == pytest.approx(float(gradient.raw_noise), rel=1e-4)


def test_the_clock_calls_short_work_several_times():
    calls = []
    assert complexity.seconds(lambda: calls.append(1), repeats=2, shortest=1e-3) > 0
    assert len(calls) > 4
    calls.clear()
    complexity.seconds(lambda: calls.append(1), repeats=3, shortest=0.0)
    assert len(calls) == 2 + 3


@pytest.mark.slow
def test_a_run_measures_every_row_of_the_table_and_memory_is_exact(made):
    measured = tables.read(made("complexity"))["measure"]
    table = scaling.exponents(measured).set_index(scaling.CASE)
    assert list(table.index) == list(scaling.STATED) and (measured["value"] > 0).all()
    # parallel NLL needs the memory of all functions, the loop that of one, EKL none of them
    slopes = table["slope"]
    assert slopes["nll", "parallel", "memory", "N"] == pytest.approx(1, abs=0.2)
    assert slopes["nll", "loss", "memory", "N"] == pytest.approx(0, abs=0.2)
    assert slopes["ekl", "loss", "memory", "N"] == 0

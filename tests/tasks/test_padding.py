import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.plan import registry
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import Fold
from metabo.tasks.padding import columns, narrowed, widened
from metabo.tasks.rows import Rows
from metabo.tasks.task import MatchedBlock
from metabo.tasks.training_set import prior_keys, training_sets
from tests import tiny


def test_columns_of_zeros_come_last():
    x = np.arange(6.0).reshape(1, 3, 2)
    wide = np.asarray(columns(x, 5))
    np.testing.assert_array_equal(wide[..., :2], x)
    assert wide.shape == (1, 3, 5) and not wide[..., 2:].any()
    np.testing.assert_array_equal(columns(x, 1), x)


def test_widened_parameters_are_the_same_function_and_narrow_back():
    rng = np.random.default_rng(0)
    for kernel, sizes in (("matern52", ()), ("dot_product", ()), ("matern32", (4, 3))):
        gp = tiny.random_gp(rng, 2, kernel=kernel, sizes=sizes)
        like, own = (
            jax.eval_shape(lambda d=dim: tiny.random_gp(rng, d, kernel=kernel, sizes=sizes))  # noqa: B023
            for dim in (5, 2)
        )
        wide = widened(tiny.stacked([gp]), like)
        alone = jax.tree.map(lambda leaf: leaf[0], wide)
        x, y, mask = jnp.asarray(rng.uniform(size=(7, 2))), jnp.asarray(rng.normal(size=7)), jnp.ones(7, dtype=bool)
        here, there = gp.log_prob(x, y, mask), alone.log_prob(jnp.asarray(columns(np.asarray(x), 5)), y, mask)
        np.testing.assert_allclose(there, here, rtol=1e-12)
        back = narrowed(wide, own)
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[0], b), back, gp)


def with_a_wider_space(narrow: Benchmark) -> Benchmark:
    """The tiny benchmark, with tasks of a second space of five inputs beside it."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(9, 5))
    plane = narrow.spaces["plane"]
    wide = dataclasses.replace(plane, name="wide", parameters=tuple(
        dataclasses.replace(plane.parameters[0], name=f"w{i}") for i in range(5)
    ))  # fmt: skip
    tasks = [dataclasses.replace(tiny.task(n, x, rng.normal(size=9)), space="wide") for n in ("p", "q", "r")]
    block = MatchedBlock("n", "wide", ("p", "q", "r"), x, np.column_stack([t.y for t in tasks]))
    folds = (*narrow.splits["held_out"], Fold("without r", "wide", ("p", "q"), ("r",)))
    return dataclasses.replace(
        narrow, spaces=narrow.spaces | {"wide": wide}, tasks=narrow.tasks | {t.name: t for t in tasks},
        matched=(*narrow.matched, block), splits={"held_out": folds},
    )  # fmt: skip


@pytest.mark.parametrize("method", ["h_nll", "h_ekl", "ablr"])
def test_a_wider_space_elsewhere_changes_no_prior(method):
    """Zero inputs add exact zeros to sums, and padded parameters have zero gradients."""
    narrow, spec, module = tiny.benchmark(), tiny.spec(method), registry.training_module(method)
    found = []
    for benchmark in (narrow, with_a_wider_space(narrow)):
        training = training_sets(benchmark, "held_out", seeds=spec["seeds"])[0]
        params, log = module.pretrain(spec, training, prior_keys(training, 0, spec["seeds"]), False)
        found.append((training.width, params, log.loss))
    assert [width for width, *_ in found] == [2, 5]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9), *(f[1:] for f in found))


def test_rows_keep_their_width_where_nothing_is_wider():
    training = training_sets(tiny.benchmark(), "held_out")[0]
    assert isinstance(training.rows, Rows) and training.width == training.dim == training.rows.x.shape[2]

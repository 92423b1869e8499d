"""metabo's own code on a table of LCBench's size: its loader, and BO on every data set."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from case import Case
from ours import compiled_case, fixed_prior
from problem import Sizes, observed, reading_case, table, table_sizes, write_table

from metabo.bo.loop import RunBatch, Steps, run_all
from metabo.data import lcbench
from metabo.tasks.benchmark import Benchmark


def load(sizes: Sizes) -> Benchmark:
    """Write the table and read it as the benchmark `lcbench`."""
    with tempfile.TemporaryDirectory() as folder:
        write_table(sizes, Path(folder) / "lcbench.tar")
        return lcbench.load("lcbench", {}, Path(folder) / "lcbench.tar")


def reading(sizes: Sizes) -> Case:
    return reading_case(sizes, partial(lcbench.load, "lcbench", {}))


def arguments(sizes: Sizes) -> tuple:
    """Return what `run_all` takes: one run of the budget on each data set, one after another, from one given row."""
    sizes = table_sizes(sizes)
    x, losses = table(sizes)
    policies = jax.tree.map(lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, fixed_prior(sizes, "pi"))
    tasks = jnp.arange(sizes.data_sets)
    initial = jnp.tile(jnp.asarray(observed(sizes, 1)), (sizes.data_sets, 1))
    runs = RunBatch(jnp.zeros_like(tasks), tasks, initial, jax.random.split(jax.random.key(0), sizes.data_sets))
    pool = (np.broadcast_to(x, (sizes.data_sets, *x.shape)), -np.log(losses[:, :, -1]), np.ones(losses.shape[:2], bool))
    return policies, *map(jnp.asarray, pool), runs, sizes.budget, 1


def run_bo(sizes: Sizes) -> Steps:
    """Do the BO that `bo` measures, for a comparison of what was chosen."""
    return run_all(*arguments(sizes))


def bo(sizes: Sizes) -> Case:
    return compiled_case(eqx.filter_jit(run_all), arguments(sizes), sizes.data_sets)


CASES: dict[str, dict[str, Callable[[Sizes], Case]]] = {
    "tables_load": {"metabo": reading},
    "tables_bo": {"metabo": bo},
}

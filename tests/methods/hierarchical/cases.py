"""A tiny Super-dataset L for the tests of hierarchical GPs: training sets, Step-1 fits, and what is learned of them."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from metabo.bo.priors import SpacePrior
from metabo.data import synthetic
from metabo.methods.hierarchical.train import pretrain, pretrain_across
from metabo.plan import registry
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.training_set import prior_keys, training_sets_of
from tests import tiny

SEEDS = 2
LEARNED, KNOWN = ("mphd", "mphd_squashed", "mphd_non_nn"), ("hgp_hand", "hgp_flat", "hgp_truth", "gp_truth")
HIERARCHICAL = [name for name in registry.methods() if registry.made_of(name).pretrain == "methods.hierarchical.train"]


def spec(method, spaces=None, **overrides):
    """Settings of a method on the tiny super-dataset; `spaces`: "others" for NToT."""
    past = {"base": "held_out"} | ({"spaces": spaces} if spaces else {})
    return tiny.spec(method, seeds=SEEDS, **overrides) | {"benchmark": "mphd_l", "past": past, "split": "held_out"}


def benchmark() -> Benchmark:
    """Four domains, of which the second is described as having a discrete input."""
    loaded = synthetic.load("mphd_l", {"domains": 4, "functions": 3, "points": 12, "seed": 3})
    space = list(loaded.spaces.values())[1]
    two = SearchSpace(space.name, (Parameter("x1", "ordinal", levels=(0, 1)), *space.parameters[1:]))
    return replace(loaded, spaces=loaded.spaces | {space.name: two})


def training_sets(data):
    """The training sets of the four domains."""
    return training_sets_of(data, spec("mphd"))


def fits_of(sets, seed=0):
    """Step-1 GPs with random parameters, as a file of priors gives them."""
    rng, found = np.random.default_rng(seed), []
    for one in sets:
        gps = tiny.stacked([tiny.random_gp(rng, one.dim, "constant", "matern52", ()) for _ in range(SEEDS)])
        gps = eqx.tree_at(lambda g: g.raw_noise, gps, jnp.asarray(rng.normal(-3.0, 0.5, SEEDS)))
        found.append(SpacePrior(one.space, one.dim, 2, one.folds, gps, np.zeros((SEEDS, 0)), 1, np.full(SEEDS, -1)))
    return found


def across(method, sets, fits, spaces=None, **overrides):
    """What a method learns across the spaces: (params, log) of each."""
    given = spec(method, spaces, **overrides)
    return pretrain_across(given, sets, [prior_keys(one, 0, SEEDS) for one in sets], fits, False)


def known(method, training, **overrides):
    """The prior of a method that learns nothing."""
    params, log = pretrain(spec(method, **overrides), training, prior_keys(training, 0, SEEDS), False)
    assert log is None
    return params

"""One laboratory for all method tests: every distinct specification is trained and run once."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from metabo.bo import priors
from metabo.bo.trajectories import optimise
from metabo.compute import mapping
from metabo.compute.keys import stream
from metabo.plan import registry
from metabo.tasks.training_set import training_sets_of
from tests import tiny


class Lab:
    """Train and run methods on the tiny benchmark as the stages do; remembers results by specification."""

    def __init__(self, folder: Path):
        self.folder, self.benchmark, self.trained, self.tables = folder, tiny.benchmark(), {}, {}

    def train(self, spec, accelerator=False):
        """Return the SpacePrior of the one space, as `metabo.stages.pretrain` makes it."""
        module = registry.training_module(spec["method"])
        (training,) = training_sets_of(self.benchmark, spec)
        names = [(training.space, fold.name) for fold in training.folds]
        keys = jnp.stack(
            [jnp.stack([stream(spec["seed"], "prior", *name, s) for s in range(spec["seeds"])]) for name in names]
        )
        params, log = module.pretrain(spec, training, keys, accelerator)
        return priors.of_training(training, params, log)

    def prior(self, spec):
        """Like `train`, once per specification of what training reads, saved and loaded as between two stages."""
        read = {key: spec[key] for key in ("method", "split", "seed", "seeds", "model", "pretrain")}
        key = json.dumps(read, sort_keys=True)
        if key not in self.trained:
            path = self.folder / f"{len(self.trained)}.npz"
            priors.save(path, spec, [self.train(spec)])
            self.trained[key] = priors.load(path)[1][0]
        return self.trained[key]

    def run(self, spec, width=None):
        """Run BO from the stored prior, widened to `width` inputs if that is given."""
        past = registry.made_of(spec["method"]).uses_past
        (training,) = training_sets_of(self.benchmark, spec) if past else (None,)
        prior = priors.widened(self.prior(spec), spec, width) if width else self.prior(spec)
        return optimise(self.benchmark, prior, *tiny.job(spec), 1, training)

    def table(self, spec):
        """Like `run`, once per specification."""
        key = json.dumps(spec, sort_keys=True)
        return self.tables[key] if key in self.tables else self.table_anew(spec)

    def table_anew(self, spec):
        """Like `run`, and what `table` returns from now on."""
        self.tables[json.dumps(spec, sort_keys=True)] = made = self.run(spec)
        return made


@pytest.fixture(scope="package")
def lab(tmp_path_factory):
    """The laboratory, with a compilation cache of its own: equal programs are compiled once."""
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    use_cache(before[0] or str(tmp_path_factory.mktemp("jax")), 0.0)
    yield Lab(tmp_path_factory.mktemp("priors"))
    use_cache(*before)


def use_cache(folder, seconds):
    """Keep programs that took so long to compile in a folder; JAX must forget the folder it began with."""
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
    compilation_cache.reset_cache()


@pytest.fixture
def programs(monkeypatch):
    """Return what JAX compiles a stretch of runs for inside the test, whether or not a test before has compiled it: the
    structure and types of its arrays, and all else, by value."""
    found, stretch = set(), mapping._stretch

    def told(*given):
        arrays, static = eqx.partition(given, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        found.add((*map(jax.typeof, leaves), structure, *jax.tree.leaves(static)))
        return stretch(*given)

    monkeypatch.setattr(mapping, "_stretch", told)
    return found

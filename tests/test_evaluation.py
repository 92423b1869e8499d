import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.errors import NumericsError
from metabo.evaluation import ekl, evaluate
from metabo.priors import SpacePrior
from metabo.tasks import MatchedBlock
from tests import references, tiny
from tests.references import DenseGP


def world(seeds):
    rng = np.random.default_rng(0)
    benchmark = tiny.benchmark()
    folds = benchmark.splits["held_out"]
    gps = [tiny.random_gp(rng, 2) for _ in range(len(folds) * seeds)]
    pairs = len(gps)
    prior = SpacePrior("plane", 2, folds, tiny.stacked(gps), np.zeros((pairs, 0)), 1, np.full(pairs, -1))
    return benchmark, gps, prior, tiny.spec("h_nll", seeds=seeds)


def test_values_against_dense():
    benchmark, gps, prior, spec = world(2)
    table = evaluate(benchmark, spec, [prior])
    columns = ["benchmark", "split", "space", "fold", "task", "method", "prior_seed", "metric", "value"]
    assert list(table) == columns
    assert len(table) == 2 * (1 + 2) * 3
    assert (table[["benchmark", "split", "space", "method"]] == ["tiny", "held_out", "plane", "h_nll"]).all(axis=None)
    value = table.set_index(["fold", "task", "prior_seed", "metric"])["value"].sort_index()
    block = benchmark.matched[0]
    # Columns of the matched block that fold and test task share, by hand.
    shared = {"a": [0, 1, 2], "flat": [0, 1, 2], "point": [0, 1]}
    for f, fold in enumerate(prior.folds):
        for seed in range(2):
            dense = DenseGP(gps[2 * f + seed])
            nll = {name: dense.nll(benchmark.tasks[name].x, benchmark.tasks[name].y) for name in benchmark.tasks}
            for task in fold.test:
                row = value[fold.name, task, seed]
                assert row["test_nll"] == pytest.approx(nll[task], rel=1e-9)
                assert row["train_nll"] == pytest.approx(np.mean([nll[name] for name in fold.train]), rel=1e-9)
                sample = references.maximum_likelihood(block.y[:, shared[task]])
                model = dense.mean(block.x), dense.covariance(block.x)
                expected = references.projected_kl(*model, *sample, rank=len(shared[task]) - 1)
                assert row["ekl"] == pytest.approx(expected, rel=1e-7)


def test_ekl_is_the_mean_over_blocks():
    rng = np.random.default_rng(1)
    gp = tiny.random_gp(rng, 2)
    blocks = tuple(
        MatchedBlock(str(m), "plane", tuple("abc"), rng.uniform(size=(m, 2)), rng.normal(size=(m, 3))) for m in (5, 8)
    )
    dense = DenseGP(gp)
    expected = [
        references.projected_kl(dense.mean(b.x), dense.covariance(b.x), *references.maximum_likelihood(b.y), rank=2)
        for b in blocks
    ]
    assert ekl(gp, blocks) == pytest.approx(np.mean(expected), rel=1e-8)


def test_without_matched_blocks_there_is_no_ekl():
    benchmark, _, prior, spec = world(1)
    bare = type(benchmark)("bare", benchmark.spaces, benchmark.tasks, (), benchmark.splits)
    assert set(evaluate(bare, spec, [prior])["metric"]) == {"test_nll", "train_nll"}


def broken(prior, pair):
    noise = prior.params.raw_noise.at[pair].set(jnp.nan)
    params = eqx.tree_at(lambda gp: gp.raw_noise, prior.params, noise)
    return SpacePrior(prior.space, prior.dim, prior.folds, params, prior.loss, prior.stride, prior.stopped)


def test_too_many_failures_stop_with_the_first_one():
    benchmark, _, prior, spec = world(2)
    with pytest.raises(NumericsError, match=r"3 of 18 values are not finite.*'task': 'a'.*'prior_seed': 1.*test_nll"):
        evaluate(benchmark, spec, [broken(prior, 1)])


def test_few_failures_are_left_out():
    benchmark, _, prior, spec = world(7)
    table = evaluate(benchmark, spec, [broken(prior, 3)])  # 3 of 63 values: below 5 %
    assert len(table) == 60 and np.isfinite(table["value"]).all()
    assert not ((table["fold"] == "without a") & (table["prior_seed"] == 3)).any()
    assert table.index.tolist() == list(range(60))

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from metabo.bo.evaluation import comparable, ekl, evaluate
from metabo.bo.priors import SpacePrior
from metabo.compute import memory
from metabo.errors import ConfigError, NumericsError
from metabo.records import results
from metabo.tasks.task import MatchedBlock
from tests import references, tiny
from tests.references import DenseGP


def world(seeds):
    rng = np.random.default_rng(0)
    benchmark = tiny.benchmark()
    folds = benchmark.splits["held_out"]
    gps = [tiny.random_gp(rng, 2) for _ in range(len(folds) * seeds)]
    pairs = len(gps)
    prior = SpacePrior("plane", 2, 3, folds, tiny.stacked(gps), np.zeros((pairs, 0)), 1, np.full(pairs, -1))
    return benchmark, gps, prior, tiny.spec("h_nll", seeds=seeds)


def test_values_against_dense():
    benchmark, gps, prior, spec = world(2)
    table, left_out = evaluate(benchmark, spec, [prior], "held_out")
    assert list(results.check_evaluations(table)) == list(table)
    # The test task `point` shares no input with others: no EKL.
    assert len(table) == 2 * (3 + 3 + 2) and left_out == {"not_finite": 0, "without_ekl": 2}
    assert (table[["benchmark", "split", "space", "method"]] == ["tiny", "held_out", "plane", "h_nll"]).all(axis=None)
    value = table.set_index(["fold", "task", "prior_seed", "metric"])["value"].sort_index()
    block = benchmark.matched[0]
    # Columns of the matched block that fold and test task share, by hand.
    shared = {"a": [0, 1, 2], "flat": [0, 1, 2]}
    for f, fold in enumerate(prior.folds):
        for seed in range(2):
            dense = DenseGP(gps[2 * f + seed])
            nll = {name: dense.nll(benchmark.tasks[name].x, benchmark.tasks[name].y) for name in benchmark.tasks}
            for task in fold.test:
                row = value[fold.name, task, seed]
                assert row["test_nll"] == pytest.approx(nll[task], rel=1e-9)
                assert row["train_nll"] == pytest.approx(np.mean([nll[name] for name in fold.train]), rel=1e-9)
                if task not in shared:
                    assert "ekl" not in row
                    continue
                sample = references.maximum_likelihood(block.y[:, shared[task]])
                model = dense.mean(block.x), dense.covariance(block.x)
                expected = references.projected_kl(*model, *sample, rank=len(shared[task]) - 1)
                assert row["ekl"] == pytest.approx(expected, rel=1e-7)


def test_priors_that_two_splits_share_are_evaluated_for_each():
    """A ladder's rung that trains as the default does has the default's priors."""
    benchmark, _, prior, spec = world(1)
    table, _ = evaluate(benchmark, spec, [prior], "ladder_decaying_2000")
    assert set(table["split"]) == {"ladder_decaying_2000"}
    pd.testing.assert_frame_equal(
        table.drop(columns="split"), evaluate(benchmark, spec, [prior], "held_out")[0].drop(columns="split")
    )


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


def test_ekl_skips_blocks_without_a_value():
    """Tasks that agree (0.1 leaves a rounding error) have no sample covariance and no EKL; the other block counts."""
    rng = np.random.default_rng(2)
    gp = tiny.random_gp(rng, 2)
    good = MatchedBlock("good", "plane", tuple("ab"), rng.uniform(size=(4, 2)), rng.normal(size=(4, 2)))
    flat = replace(good, name="flat", y=np.full((4, 2), 0.1))
    assert ekl(gp, (good, flat)) == ekl(gp, (good,)) != 0
    assert np.isnan(ekl(gp, (flat,))) and np.isnan(ekl(gp, ()))


def test_blocks_without_the_test_task_or_without_differences_do_not_count():
    block = MatchedBlock("m", "plane", ("a", "b"), np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 3.0]]))
    agree = replace(block, name="agree", y=np.array([[1.0, 1.0], [3.0, 3.0]]))
    assert comparable((block, agree), "a") == (block,)
    assert comparable((block, agree), "c") == ()


def test_tasks_that_agree_everywhere_have_no_ekl_and_are_counted():
    benchmark, _, prior, spec = world(2)
    block = benchmark.matched[0]
    same = replace(block, y=np.repeat(block.y[:, :1], 3, axis=1))
    table, left_out = evaluate(replace(benchmark, matched=(same,)), spec, [prior], "held_out")
    assert set(table["metric"]) == {"test_nll", "train_nll"} and left_out == {"not_finite": 0, "without_ekl": 6}


def test_without_matched_blocks_there_is_no_ekl():
    benchmark, _, prior, spec = world(1)
    table, left_out = evaluate(replace(benchmark, matched=()), spec, [prior], "held_out")
    assert set(table["metric"]) == {"test_nll", "train_nll"} and left_out == {"not_finite": 0, "without_ekl": 3}


def test_tasks_beyond_the_memory_are_refused(monkeypatch):
    benchmark, _, prior, spec = world(1)
    need = 3 * 14**2 * 8  # the largest task has 14 rows
    monkeypatch.setattr(memory, "available", lambda: (int(need / memory.SHARE) + 2, "the machine"))
    evaluate(benchmark, spec, [prior], "held_out")
    monkeypatch.setattr(memory, "available", lambda: (int(need / memory.SHARE) - 2, "the machine"))
    with pytest.raises(ConfigError, match=r"benchmark 'tiny', space 'plane': .* 14 points: needs"):
        evaluate(benchmark, spec, [prior], "held_out")


def test_priors_of_no_split_are_refused():
    benchmark, _, prior, spec = world(1)
    with pytest.raises(ConfigError, match="spec of the priors key 'split' is empty"):
        evaluate(benchmark, {key: value for key, value in spec.items() if key != "split"}, [prior], "held_out")


def broken(prior, pair):
    noise = prior.params.raw_noise.at[pair].set(jnp.nan)
    return replace(prior, params=eqx.tree_at(lambda gp: gp.raw_noise, prior.params, noise))


def test_too_many_failures_stop_with_the_first_one_and_say_what_to_change():
    benchmark, _, prior, spec = world(2)
    message = r"3 of 16 values are not finite.*'task': 'a'.*'prior_seed': 1.*test_nll.*learning rate.*h_nll.*'seed'"
    with pytest.raises(NumericsError, match=message):
        evaluate(benchmark, spec, [broken(prior, 1)], "held_out")


def test_few_failures_are_left_out_and_counted():
    benchmark, _, prior, spec = world(8)
    table, left_out = evaluate(benchmark, spec, [broken(prior, 3)], "held_out")  # 3 of 64 values: below 5 %
    assert len(table) == 61 and np.isfinite(table["value"]).all()
    assert left_out == {"not_finite": 3, "without_ekl": 8}
    assert not ((table["fold"] == "without a") & (table["prior_seed"] == 3)).any()
    assert table.index.tolist() == list(range(61))

"""What cm-BO reports: means over runs, ranks, solved shares, differences and claims, with cases worked out by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from metabo.errors import DataError
from metabo.metrics.runs import Runs
from metabo.papers.cmbo import metrics as cmbo


def runs(values, methods, folds=()):
    """Runs with one prior: values (methods, seeds, targets, iterations)."""
    values = np.asarray(values, dtype=float)
    arrays = {m: v[None] for m, v in zip(methods, values, strict=True)}
    tasks = tuple(f"t{k}" for k in range(values.shape[2]))
    single = frozenset(m for m in methods if m.startswith(("rand", "gp32")))
    return Runs(arrays, {m: (0,) for m in methods}, tasks, np.arange(1, values.shape[3] + 1), single, folds)


TWO = runs([[[[0.4, 0.2], [0.2, 0.0]]], [[[0.4, 0.4], [0.1, 0.001]]]], ["cm_wss_wss", "rand_once"])


def test_means_ranks_and_solved_shares_by_hand():
    regret = cmbo.mean_regret(TWO).set_index(["method", "iteration"])["mean"]
    assert regret["cm_wss_wss", 1] == pytest.approx(0.3) and regret["rand_once", 2] == pytest.approx(0.2005)
    rank = cmbo.average_rank(TWO).set_index(["method", "iteration"])["mean"]
    assert rank["cm_wss_wss", 1] == pytest.approx(1.75) and rank["rand_once", 2] == pytest.approx(2.0)
    share = cmbo.solved(TWO).set_index(["method", "iteration"])["mean"]
    assert share["cm_wss_wss", 2] == share["rand_once", 2] == 0.5 and share["rand_once", 1] == 0.0
    assert cmbo.solved(TWO, 0.001).set_index(["method", "iteration"])["mean"]["rand_once", 2] == 0.0  # strictly below


def test_targets_that_no_run_solves_by_hand():
    """Of two targets and two repetitions one target is never solved, the other in one run; the threshold is open."""
    found = cmbo.unsolved(runs([[[[0.4, 0.2], [0.2, 0.0]], [[0.4, 0.005], [0.1, 0.3]]]], ["cm_wss_wss"]))
    assert found.to_dict("records") == [{"method": "cm_wss_wss", "targets": 2, "never": 1, "runs": 0.75}]
    assert cmbo.unsolved(TWO).set_index("method")["never"].to_dict() == {"cm_wss_wss": 1, "rand_once": 1}


def test_intervals_are_over_targets_not_repetitions():
    """Runs of one target that agree leave the spread of the targets; one target alone has none."""
    spread = np.linspace(0.0, 1.0, 20)[None, None, :, None] * np.ones((1, 7, 1, 2))
    table = cmbo.mean_regret(runs(spread, ["cm_wss_wss"]))
    error = np.std(np.linspace(0, 1, 20)) / np.sqrt(20)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * 1.96 * error, rtol=0.1)
    one = cmbo.mean_regret(runs(np.random.default_rng(0).uniform(size=(1, 30, 1, 2)), ["cm_wss_wss"]))
    np.testing.assert_array_equal(one["low"], one["high"])


def test_targets_about_one_data_set_are_drawn_together():
    """Twenty targets in pairs that agree: as ten."""
    steps = np.repeat(np.linspace(0.0, 1.0, 10), 2)
    plain = runs(steps[None, None, :, None] * np.ones((1, 2, 1, 2)), ["cm_wss_wss"])
    table = cmbo.mean_regret(replace(plain, data_sets=tuple(f"d{k // 2}" for k in range(20))))
    np.testing.assert_allclose(table["high"] - table["low"], 2 * 1.96 * np.std(steps) / np.sqrt(10), rtol=0.1)
    named = replace(plain, data_sets=tuple(f"d{k:02d}" for k in range(20)))
    pd.testing.assert_frame_equal(cmbo.mean_regret(named), cmbo.mean_regret(plain), check_exact=True)


def test_on_one_data_set_intervals_are_over_repetitions():
    """Targets that differ much and repetitions that differ little, the other way round, and one repetition alone."""
    steps = np.linspace(0.0, 1.0, 20)
    targets = runs(steps[None, None, :, None] * np.ones((1, 7, 1, 2)), ["cm_wss_wss"])
    table = cmbo.mean_regret(replace(targets, drawn="fixed"))
    np.testing.assert_allclose(table["high"] - table["low"], 0.0, atol=1e-12)
    assert (cmbo.mean_regret(targets)["high"] > table["high"] + 0.1).all()
    repetitions = replace(runs(steps[None, :, None, None] * np.ones((1, 1, 7, 2)), ["cm_wss_wss"]), drawn="fixed")
    table = cmbo.mean_regret(repetitions)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * 1.96 * np.std(steps) / np.sqrt(20), rtol=0.1)
    two = runs(np.concatenate([np.zeros((1, 1, 7, 2)), np.ones((1, 1, 7, 2))]), ["cm_wss_wss", "hyperbo"])
    (row,) = cmbo.differences(replace(two, drawn="fixed"), ["hyperbo"]).to_dict("records")
    assert row["difference"] == -1 and np.isnan(row["low"]) and np.isnan(row["area_high"]) and row["better"] == 0
    assert cmbo.pooled({"ucb3": replace(two, drawn="fixed")}).drawn == "fixed"


def test_differences_are_paired_by_target():
    """Targets differ much, methods little: the pairs show it."""
    level = np.random.default_rng(1).uniform(0.3, 1.0, size=(1, 3, 40, 4))
    table = cmbo.differences(
        runs(np.concatenate([level - 0.05, level]), ["cm_wss_wss", "hyperbo"]), ["hyperbo", "rgpe"]
    )
    (row,) = table.to_dict("records")
    assert (row["method"], row["reference"]) == ("cm_wss_wss", "hyperbo")
    for key in ("difference", "low", "high", "area"):
        assert row[key] == pytest.approx(-0.05)
    assert row["better"] == 1.0
    other = cmbo.differences(runs(np.concatenate([level + 0.05, level]), ["cm_wss_wss", "hyperbo"]), ["hyperbo"])
    assert other["better"].tolist() == [-1.0]
    noise = np.random.default_rng(2).normal(scale=0.1, size=level.shape)
    same = cmbo.differences(
        runs(np.concatenate([level + noise - noise.mean(2, keepdims=True), level]), ["rgpe", "hyperbo"]), ["hyperbo"]
    )
    assert same["better"].tolist() == [0.0]


def test_runs_of_an_acquisition_and_all_pooled():
    names = ["rand_once", "cm_wss_wss", "cm_wss_wss-ei", "hyperbo", "hyperbo-ucb3", "rm_gp_ucb"]
    assert cmbo.of_acquisition(names, "ucb3") == ["rand_once", "cm_wss_wss", "hyperbo-ucb3", "rm_gp_ucb"]
    assert cmbo.of_acquisition(names, "ei") == ["rand_once", "cm_wss_wss-ei"]
    assert cmbo.of_acquisition(names, "pi") == ["rand_once", "hyperbo"]
    values = np.arange(16.0).reshape(2, 2, 2, 2)
    parts = {"ucb3": runs(values, ["cm_wss_wss", "rm_gp_ucb"]), "ei": runs(values[:1] + 100, ["cm_wss_wss-ei"])}
    joined = cmbo.pooled(parts)
    assert joined.methods == ("cm_wss_wss",) and joined.values["cm_wss_wss"].shape == (1, 4, 2, 2)
    assert cmbo.mean_regret(joined)["mean"].tolist() == [53.0, 54.0]
    with pytest.raises(DataError, match="no method was run with all of ucb3, ei"):
        cmbo.pooled({"ucb3": parts["ucb3"].select(["rm_gp_ucb"]), "ei": parts["ei"]})


def test_overtaken_for_good():
    values = [[[[0.5, 0.2, 0.5, 0.1, 0.1]]], [[[0.4, 0.3, 0.3, 0.3, 0.2]]]]
    both = runs(values, ["cm_wss_wss", "hyperbo"])
    assert cmbo.overtaken(both, "cm_wss_wss", "hyperbo") == 4.0
    assert np.isnan(cmbo.overtaken(both, "hyperbo", "cm_wss_wss"))


def flat(levels, last=50):
    """Regret curves that stay at a level from iteration 20 on, and are twice that before."""
    shape = np.where(np.arange(1, last + 1) < 20, 2.0, 1.0)
    return [[[level * shape]] for level in levels]


def test_claims_by_hand():
    methods = ["cm_wss_wss", "cm_jef_jef", "cm_global", "cm_tasks", "rand_once", "gp32", "rgpe", "rm_gp_ucb", "hyperbo"]
    table = cmbo.claims(runs(flat([0.1, 0.3, 0.2, 0.25, 0.9, 0.15, 0.4, 0.05, 0.35]), methods))
    found = {
        (row["claim"], row["comparison"].split(":")[0]): (row["value"], row["holds"])
        for row in table.to_dict("records")
    }
    assert found["B1", "best variant"] == (pytest.approx(6 / 7), 1.0)
    assert found["B1", "median variant"] == (pytest.approx(4 / 7), 1.0)
    b2 = table[table["claim"] == "B2"].set_index("comparison")["holds"]
    assert b2["share of meta methods with a smaller last regret than rand_once"] == 1.0
    assert b2["share of meta methods with a smaller last regret than gp32"] == 0.0  # two of seven
    values = table.set_index(["claim", "comparison"])["value"]
    assert values["B4", "least last regret of the other baselines minus that of rm_gp_ucb"] == pytest.approx(0.1)
    assert values["B9", "last regret of cm_global minus that of the median variant"] == pytest.approx(0.0, abs=1e-12)
    assert values["B5", "relative gain of hyperbo from iteration 20 to 50"] == pytest.approx(0.0)
    assert values["B15", f"{STAYS_BELOW} (51: never)"] == 1.0
    assert table.loc[table["claim"] == "B3", "value"].item() == pytest.approx((0.4 - 0.2) * (2 * 19 + 31) / 50)
    short = cmbo.claims(runs(flat([0.1, 0.3], 10), ["cm_wss_wss", "hyperbo"]))
    assert "B5" not in set(short["claim"]) and "B3" not in set(short["claim"])
    assert cmbo.claims(runs(flat([0.3]), ["hyperbo"])).empty


STAYS_BELOW = "first iteration from which on the median variant stays below hyperbo"


@pytest.mark.parametrize(
    ("levels", "value", "holds"),
    [
        ([0.5, 0.6, 0.7], 51.0, 0.0),  # none overtakes: refuted, not untested
        ([0.1, 0.6, 0.7], 51.0, 0.0),  # one of three does: the variants do not
        ([0.1, 0.2, 0.7], 1.0, 1.0),
        ([0.1, 0.7], 26.0, 0.0),  # halfway between 1 and 51
    ],
)
def test_variants_that_never_overtake_hyperbo_count_against_the_claim(levels, value, holds):
    methods = [*cmbo.VARIANTS[: len(levels)], "hyperbo"]
    table = cmbo.claims(runs(flat([*levels, 0.4]), methods)).set_index("claim")
    assert table.loc["B15", "comparison"] == f"{STAYS_BELOW} (51: never)"
    assert table.loc["B15", "value"] == value and table.loc["B15", "holds"] == holds


def test_repeated_queries_count_those_before_them_only():
    rows = [("a", t, c) for t, c in enumerate([5, 6, 7, 6, 8, 6], start=-1)]
    table = pd.DataFrame(rows, columns=["task", "iteration", "candidate"])
    table = table.assign(method="hyperbo", space="s", prior_seed=0, seed=0)
    found = cmbo.repeats(pd.concat([table, table.assign(task="b", candidate=range(6))]))
    assert found.set_index("method")["share"]["hyperbo"] == pytest.approx(2 / 8)

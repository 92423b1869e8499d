"""Regret over several spaces: spaces weigh equally, runs fall into the right panels, bootstrap against plain loops."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from metabo.errors import ConfigError, DataError
from metabo.metrics import Runs
from metabo.metrics.clusters import degrees_of_freedom
from metabo.papers.mphd import metrics

ITERATIONS = 4


def runs(*levels: float, tasks: int = 2, seeds: int = 3, noise: float = 0.0) -> Runs:
    """Runs of methods m0, m1, ... whose regret is `level` + task + seed / 10, divided by the iteration."""
    rng = np.random.default_rng(tasks)
    task, seed = np.arange(tasks)[None, None, :, None], np.arange(seeds)[None, :, None, None] / 10
    at = np.arange(1, ITERATIONS + 1)
    values = {
        f"m{i}": (level + task + seed + noise * rng.random((1, seeds, tasks, 1))) / at for i, level in enumerate(levels)
    }
    return Runs(values, dict.fromkeys(values, (0,)), tuple(map(str, range(tasks))), at, frozenset())


def test_spaces_weigh_equally_and_deviate_over_seeds():
    parts = {"two tasks": runs(0.0, 1.0), "four tasks": runs(2.0, 5.0, tasks=4)}
    # m0, space by space: mean over tasks 0.5 and 2 + 1.5; mean over spaces 2; seeds add 0, 0.1, 0.2
    curve = metrics.space_curves(parts, ["m0"]).set_index("iteration")
    assert curve["mean"].tolist() == pytest.approx([2.1 / t for t in (1, 2, 3, 4)])
    assert curve["std"].tolist() == pytest.approx([np.std([0, 0.1, 0.2]) / t for t in (1, 2, 3, 4)])
    assert (curve["high"] - curve["low"]).tolist() == pytest.approx((2 * curve["std"]).tolist())
    assert curve["seeds"].tolist() == [3] * 4
    ends = metrics.endings(parts, ["m0", "m1"]).set_index("method")
    assert ends.loc["m0", "last"] == pytest.approx(2.1 / 4) and ends["place"].tolist() == [1, 2]
    assert ends.loc["m1", "area"] == pytest.approx(4.1 * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_a_method_without_priors_enters_with_the_same_runs_for_each():
    trained = Runs({"m": np.ones((2, 3, 1, 2))}, {"m": (0, 1)}, ("t",), np.arange(1, 3), frozenset())
    both = Runs({**trained.values, "free": np.ones((1, 3, 1, 2))}, {}, ("t",), np.arange(1, 3), frozenset({"free"}))
    assert metrics.seed_curves({"s": both}, ["m", "free"]).shape == (2, 6, 2)


def test_fits_whose_noise_ends_at_its_floor_are_counted():
    noise = np.sqrt([1e-10, 1.5e-10, 1e-4, 1e-10, np.nan])
    table = pd.DataFrame({"method": [*"aabb", "rand"], "iteration": [1, 2, 1, 0, 1], "noise": noise})
    assert metrics.noise_floors(table).to_dict("list") == {"method": ["a", "b"], "floor": [1.0, 0.0]}


def test_fits_that_leave_the_noise_as_it_was_are_counted_in_each_run():
    """The second run begins with the noise that the first ends with; noise at its floor tells nothing of a fit; H-NLL
    does not fit to the test task."""
    noise = {"hgp_hand": [0.3, 0.3, 0.2, 0.2, 0.1, 0.1], "mphd": [0.3, 1e-5, 1e-5, 0.1, 0.2, 0.3], "h_nll": [0.1] * 6}
    rows = [
        {
            "method": method,
            "space": "s",
            "task": "t",
            "prior_seed": 0,
            "seed": seed,
            "iteration": step + 1,
            "noise": value,
        }
        for method, values in noise.items()
        for seed, run in enumerate((values[:3], values[3:]))
        for step, value in enumerate(run)
    ]
    shuffled = pd.DataFrame(rows).sample(frac=1.0, random_state=0).reset_index(drop=True)
    found = metrics.unmoved_fits(shuffled).set_index("method")["unmoved"].to_dict()
    assert found == {"hgp_hand": 0.5, "mphd": 0.0}


def test_spaces_with_different_seeds_are_refused():
    with pytest.raises(DataError, match=r"a \(3, 4\), b \(2, 4\); run them with one setting"):
        metrics.space_curves({"a": runs(0.0), "b": runs(0.0, seeds=2)}, ["m0"])


def test_differences_are_those_of_a_bootstrap_in_plain_loops():
    parts = {"a": runs(0.0, 0.3, noise=1.0), "b": runs(0.0, 0.3, tasks=3, noise=1.0)}
    table = metrics.differences(parts, ["m0", "m1"], "m1", [1, 4], seed=0).set_index("iteration")
    gaps = {space: (part.values["m0"] - part.values["m1"])[0] for space, part in parts.items()}
    listed = list(gaps.values())
    for iteration in (1, 4):
        expected = np.mean([gap[..., iteration - 1].mean() for gap in gaps.values()])
        assert table.loc[iteration, "difference"] == pytest.approx(expected)
    rng, draws = np.random.default_rng(9), []
    for _ in range(4000):
        seeds = rng.integers(3, size=3)
        each = []
        for gap in (listed[i] for i in rng.integers(len(listed), size=len(listed))):
            chosen = rng.integers(gap.shape[1], size=gap.shape[1])
            each.append(gap[seeds][:, chosen, 0].mean())
        draws.append(np.mean(each))
    # two spaces: one degree of freedom, and a deviation of draws from two of them is √2 too small; of two spaces that
    # share what they learn from, the mean has 1 + 2/(2 - 1) times the variance
    half = scipy.stats.t.ppf(0.975, 1) * np.std(draws) * np.sqrt(2.0) * np.sqrt(3.0)
    # the deviation of 4000 draws has a standard error of about 1 % (more for tails; nothing is this narrow by chance)
    assert table.loc[1, "difference"] - table.loc[1, "low"] == pytest.approx(half, rel=0.06)
    assert table.loc[1, "high"] - table.loc[1, "difference"] == pytest.approx(half, rel=0.06)


def test_a_difference_over_all_iterations_has_the_same_bootstrap():
    """Regrets fall as 1/t, and so do their differences: so does the interval of the mean, and units are the spaces."""
    parts = {"a": runs(0.0, 0.3, noise=1.0), "b": runs(0.0, 0.3, tasks=3, noise=1.0)}
    table = metrics.differences(parts, ["m0", "m1"], "m1", [1, 4], seed=0)
    shrunk = np.mean([1, 1 / 2, 1 / 3, 1 / 4])
    for own, of in (("area", "difference"), ("area_low", "low"), ("area_high", "high")):
        assert table[own].tolist() == pytest.approx([shrunk * table[of].iloc[0]] * 2)
    assert table["units"].tolist() == [2, 2]
    alone = metrics.differences({"a": parts["a"]}, ["m0", "m1"], "m1", [1], seed=0)
    assert alone["units"].tolist() == [2]  # the tasks of the only space


def test_spaces_that_share_training_have_a_wider_interval():
    """Nadeau and Bengio: of G spaces the variance of a mean is G/(G - 1) larger. Not for methods that learn nothing,
    and not for one space."""
    nine = {f"s{n}": runs(0.0, 0.3, tasks=2 + n % 3, noise=1.0) for n in range(9)}
    half = lambda parts, of="": (metrics.differences(parts, ["m0", "m1"], "m1", [1], seed=0)  # noqa: E731
                                 .eval(f"{of}high - {of}low").item() / 2)  # fmt: skip
    free = {name: replace(part, single_task=frozenset({"m0", "m1"})) for name, part in nine.items()}
    assert half(nine) == pytest.approx(half(free) * np.sqrt(1 + 9 / 8))
    assert half(nine, "area_") == pytest.approx(half(free, "area_") * np.sqrt(1 + 9 / 8))
    assert half(nine, "suite_") == half(free, "suite_")
    alone = [{"s1": parts["s1"]} for parts in (nine, free)]
    assert half(alone[0]) == half(alone[1])


def test_this_suite_varies_by_its_repetitions_alone():
    """Spaces that differ much, and seeds that do not: the interval for these spaces is narrow, that for a new one wide.
    BO seeds of several priors are no repetitions."""
    parts = {"a": runs(0.0, 0.3, noise=0.01), "b": runs(0.0, 5.0, noise=0.01)}
    row = metrics.differences(parts, ["m0", "m1"], "m1", [1], seed=0).iloc[0]
    assert row["suite_high"] - row["suite_low"] < 0.1 < 1 < row["high"] - row["low"]
    assert (row["suite_units"], row["units"]) == (3, 2)
    priors = {"m0": np.random.default_rng(0).random((2, 3, 4, 1)), "m1": np.zeros((1, 3, 4, 1))}
    several = Runs(priors, {}, tuple("wxyz"), np.arange(1, 2), frozenset({"m1"}))
    assert metrics.differences({"s": several}, ["m0", "m1"], "m1", [1], seed=0)["suite_units"].item() == 2


def test_the_interval_of_an_iteration_is_as_wide_as_few_spaces_say():
    """Three spaces: percentiles of the bootstrap would be a part of this."""
    crossing = {"a": 2, "b": 5, "c": 9}
    parts = {}
    for space, at in crossing.items():
        t = np.arange(1, 61)
        values = {"m": np.where(t < at, 0.0, 1.0)[None, None, None], "r": np.full((1, 1, 1, 60), 0.5)}
        parts[space] = Runs(values, {}, ("t",), t, frozenset())
    found = metrics.differences(parts, ["m", "r"], "r", [60], seed=0).iloc[0]
    draws = metrics._lead(metrics.resampled(parts, "m", "r", 0))
    half = scipy.stats.t.ppf(0.975, 2) * draws.std() * np.sqrt(3 / 2 * (1 + 3 / 2))
    assert found["overtaken"] == 5 and found["overtaken_high"] - 5 == pytest.approx(half) and half > np.ptp(draws)
    assert found["overtaken_low"] == pytest.approx(5 - half)  # symmetric, wherever the iterations end


def test_intervals_of_few_draws_are_honest():
    # Four tasks of one space, three seeds: of 200 made-up panels about 95 % of the intervals hold the truth, 0.3.
    held = 0
    for number in range(200):
        rng = np.random.default_rng(number)
        gap = 0.3 + rng.normal(size=(1, 3, 4, 1)) * 0.3 + rng.normal(size=(1, 1, 4, 1))
        values = {"a": 0.5 + gap, "b": np.full((1, 3, 4, 1), 0.5)}
        part = Runs(values, {}, tuple("wxyz"), np.arange(1, 2), frozenset())
        row = metrics.differences({"s": part}, ["a", "b"], "b", [1], seed=number).iloc[0]
        held += row["low"] <= 0.3 <= row["high"]
    assert held >= 180  # percentiles: 164


def test_spaces_that_test_on_the_same_data_sets_are_crossed_with_them():
    """The bootstrap's variance over spaces, plus that over data sets, minus that over tasks; spaces weigh equally."""
    rng = np.random.default_rng(3)
    names = {"a": ("u", "v", "w"), "b": ("u", "v", "w"), "c": ("v", "w"), "d": ("u", "x")}
    parts, level = {}, {"u": 2.0, "v": -2.0, "w": 0.0, "x": 0.5}
    for space, own in names.items():
        gap = np.array([level[name] for name in own])[None, None, :, None] + 0.1 * rng.normal(size=(1, 2, len(own), 1))
        values = {"m": 5 + gap, "r": np.full(gap.shape, 5.0)}
        parts[space] = Runs(values, {}, tuple(own), np.arange(1, 2), frozenset(), data_sets=own)
    crossed = metrics.differences(parts, ["m", "r"], "r", [1], seed=0).iloc[0]
    alone = {space: replace(runs, data_sets=()) for space, runs in parts.items()}
    nested = metrics.differences(alone, ["m", "r"], "r", [1], seed=0).iloc[0]
    assert crossed["difference"] == nested["difference"] and crossed["units"] == nested["units"] == 4
    weighted = {}
    for space, own in names.items():
        for number, name in enumerate(own):
            gap = (parts[space].values["m"] - 5)[0, :, number, 0].mean()
            weighted[space, name] = (gap - crossed["difference"]) / (4 * len(own))
    share = {(space, name): 1 / (4 * len(own)) for space, own in names.items() for name in own}
    of_set = {name: sum(w for (_, n), w in share.items() if n == name) for name in level}
    over_sets = sum(sum(v for (_, n), v in weighted.items() if n == name) ** 2 / (1 - w) for name, w in of_set.items())
    over_tasks = sum(v**2 / (1 - share[task]) for task, v in weighted.items())
    over_spaces = ((nested["high"] - nested["difference"]) / scipy.stats.t.ppf(0.975, 3)) ** 2
    freedom = degrees_of_freedom(np.array([list(level).index(n) for _, n in share]), np.array(list(share.values())))
    assert freedom < 3  # data sets weigh unlike: 0.33, 0.21, 0.33, 0.13
    wanted = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(
        max(over_spaces + over_sets - over_tasks, over_spaces, over_sets)
    )
    assert crossed["high"] - crossed["difference"] == pytest.approx(wanted)
    assert crossed["area_high"] - crossed["area"] == pytest.approx(wanted)
    assert wanted > nested["high"] - nested["difference"]


def test_spaces_with_data_sets_of_their_own_change_no_bit():
    parts = {"a": runs(0.0, 0.3, noise=1.0), "b": runs(0.0, 0.3, tasks=3, noise=1.0)}
    plain = metrics.differences(parts, ["m0", "m1"], "m1", [1, 4], seed=0)
    named = {s: replace(part, data_sets=tuple(f"{s}{t}" for t in part.tasks)) for s, part in parts.items()}
    pd.testing.assert_frame_equal(
        metrics.differences(named, ["m0", "m1"], "m1", [1, 4], seed=0), plain, check_exact=True
    )


def test_one_run_alone_has_no_interval():
    values = {"a": np.full((1, 1, 1, 2), 0.5), "b": np.full((1, 1, 1, 2), 0.2)}
    part = Runs(values, {}, ("t",), np.arange(1, 3), frozenset())
    row = metrics.differences({"s": part}, ["a", "b"], "b", [2], seed=0).iloc[0]
    assert row["difference"] == pytest.approx(0.3) and np.isnan(row["low"]) and np.isnan(row["high"])


def test_the_reference_overtakes_where_it_stays_below():
    values = {"m": np.array([1.0, 1, 1, 1, 1]), "r": np.array([2.0, 0.5, 1.5, 0.5, 0.5])}
    part = Runs({k: v[None, None, None] for k, v in values.items()}, {}, ("t",), np.arange(1, 6), frozenset())
    found = metrics.differences({"s": part}, ["m", "r"], "r", [5], seed=0)
    ends = found[["overtaken", "overtaken_low", "overtaken_high"]].iloc[0]
    assert ends["overtaken"] == 4 and ends[1:].isna().all()  # one run has no interval
    never = metrics.differences({"s": part}, ["m", "r"], "m", [5], seed=0)
    assert never["overtaken"].tolist() == [6]
    assert metrics.differences({"s": part}, ["m", "r"], "m", [2], seed=0)["difference"].item() == -0.5


SHOWN = {
    "rand": {"default", "ntot", "homogeneous"},
    "hgp_hand-ei": {"default", "ntot", "homogeneous"},
    "gp_truth": {"default", "ntot", "homogeneous"},
    "hgp_truth": {"default", "ntot", "homogeneous"},
    "base_gp": {"default", "homogeneous"},
    "h_nll-ucb3": {"default", "homogeneous"},
    "mphd": {"default"},
    "mphd_non_nn-ei": {"default"},
    "mphd@new_space": {"ntot", "homogeneous"},
    "mphd_non_nn-ei@new_space": {"ntot", "homogeneous"},
}


@pytest.mark.parametrize("name", SHOWN)
def test_panels_of_a_run(name):
    assert {panel for panel in metrics.PANELS if metrics.shown_in(name, panel)} == SHOWN[name]
    with pytest.raises(ConfigError, match=r"unknown panel 'ntott'\. Did you mean 'ntot'"):
        metrics.shown_in(name, "ntott")


def test_rows_of_a_run():
    both = ["ucb3", "ei"]
    assert metrics.row_of("rand", both) == both
    assert metrics.row_of("mphd-ei@new_space", both) == ["ei"] and metrics.row_of("mphd", both) == []
    assert metrics.row_of("mphd", ["pi"]) == ["pi"]


def test_runs_of_two_settings_are_named_apart():
    names = ["rand", "h_nll", "mphd", "mphd", "mphd_non_nn-ei", "mphd_non_nn-ei"]
    table = pd.DataFrame({"method": names, "split": ["held_out", "new_space"] * 3})
    found = metrics.by_setting(table, "held_out")["method"].tolist()
    assert found == ["rand", "h_nll", "mphd", "mphd@new_space", "mphd_non_nn-ei", "mphd_non_nn-ei@new_space"]


def test_spaces_weigh_equally_in_the_number_of_different_candidates():
    def asked(tasks: int, *candidates: list[int]) -> Runs:
        values = {f"m{i}": np.tile(own, (1, 3, tasks, 1)) for i, own in enumerate(candidates)}
        return Runs(values, dict.fromkeys(values, (0,)), tuple(map(str, range(tasks))), np.arange(1, 5), frozenset())

    parts = {"two tasks": runs(0.0, 1.0), "four tasks": runs(0.0, 1.0, tasks=4)}
    queries = {
        "two tasks": asked(2, [7, 7, 7, 7], [3, 1, 3, 2]),
        "four tasks": asked(4, [5, 6, 5, 6], [1, 2, 3, 4]),
    }
    found = metrics.distinct_queries(parts, queries, ["m1", "m0"])
    assert found.to_dict("list") == {"method": ["m1", "m0"], "distinct": [3.5, 1.5]}

"""Regret against the amount of training data, by hand; sizes against a benchmark small enough to count."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from metabo.errors import ConfigError, DataError
from metabo.metrics import Runs
from metabo.metrics.inference import differences
from metabo.papers.hyperbo.metrics import sweeps
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.folds import leave_one_out
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task


def benchmark(points=(30, 6, 8, 5), shared=4, matched=True) -> Benchmark:
    """Tasks a, b, c, d with `points` points, the first `shared` of which all have, and one more that a, b, c have."""
    rng = np.random.default_rng(0)
    space = SearchSpace("s", (Parameter("p", "linear", 0.0, 1.0),))
    common = rng.random((shared + 1, 1))
    tasks = {}
    for name, n in zip("abcd", points, strict=True):
        x = np.concatenate([common[: shared + (name != "d")], rng.random((n, 1))])[:n]
        y = rng.random(n)
        tasks[name] = Task(name, "s", name, x, y, y, np.arange(n), np.zeros((0, 1)))
    blocks = (
        MatchedBlock("m", "s", tuple("abcd"), common[:shared], np.ones((shared, 4))),
        MatchedBlock("m", "s", tuple("abc"), common[shared:], np.ones((1, 3))),
    )
    splits = {"others": leave_one_out(tasks, list("abcd"))}
    return Benchmark("tables", {"s": space}, tasks, blocks if matched else (), splits)


def make(values: dict[str, list], single_task=()) -> Runs:
    """Runs of one BO seed and one task from lists (priors, iterations)."""
    arrays = {m: np.array(v, dtype=float)[:, None, None] for m, v in values.items()}
    last = next(iter(arrays.values())).shape[-1]
    seeds = {m: tuple(range(len(v))) for m, v in arrays.items()}
    return Runs(arrays, seeds, ("t",), np.arange(1, last + 1), frozenset(single_task))


RUNS = make(
    {
        "fsbo@others_sweep": [[9, 1], [9, 3]],  # out of order: sizes sort them
        "fsbo@others_points_4": [[9, 6], [9, 8]],
        "fsbo@others_points_20": [[9, 2], [9, 4]],
        "h_ekl@others_points_4": [[9, 4], [9, 4]],
        "stboh": [[9, 3], [9, 3], [9, 5]],
    },
    {"stboh"},
)


@pytest.fixture
def places() -> pd.DataFrame:
    return sweeps.training_sizes(RUNS.methods, benchmark(), "points", {"h_ekl@others_points_4": 0})


def sizes(names, *args) -> dict[str, int]:
    table = sweeps.training_sizes(names, *args)
    return dict(zip(table["name"], table["size"], strict=True))


def test_sizes_of_points():
    names = [f"fsbo@others_{s}" for s in ("points_20", "points_4", "sweep")]
    assert sizes(names, benchmark(), "points") == {names[1]: 4, names[0]: 20, names[2]: 30}
    assert list(sizes(names, benchmark(), "points")) == [names[1], names[0], names[2]], "sizes ascend"


def test_a_limit_beyond_what_there_is_gives_way_to_the_last_of_that_size():
    names = [f"fsbo@others_{s}" for s in ("points_20", "points_100", "points_4", "points_200", "sweep")]
    assert sizes(names, benchmark(), "points") == {names[2]: 4, names[0]: 20, names[4]: 30}
    other = [name.replace("fsbo", "ablr") for name in names[3:]]
    assert list(sizes([*names, *other], benchmark(), "points"))[-1] == other[1], "each method has its own"


def test_matched_points_are_those_of_a_training_task():
    """Without d, the tasks a, b, c share five points; with d, four and one that d lacks, five of a task still."""
    names = ["h_ekl@others_points_4", "h_ekl@others_points_20", "h_ekl@others_sweep"]
    every = dict.fromkeys(names, 0)
    assert sizes(names, benchmark(), "points", every) == {names[0]: 4, names[2]: 5}
    assert sizes(names, benchmark(), "points") == {names[0]: 4, names[1]: 20, names[2]: 30}
    with pytest.raises(DataError, match="no training task has matched points"):
        sweeps.training_sizes(names, benchmark(matched=False), "points", every)


def test_a_limit_on_matched_points_is_per_block():
    """Of the four points that all share two are read, and the one that d lacks: a training task gives three."""
    names = ["h_ekl@others_points_4", "h_ekl-ei@others_points_4", "h_ekl@others_sweep"]
    limited = {"h_ekl@others_points_4": 0, "h_ekl@others_sweep": 2}
    assert sizes(names, benchmark(), "points", limited) == {names[2]: 3, names[0]: 4, names[1]: 4}


def test_limits_are_those_of_the_training(tmp_path, monkeypatch):
    """The table's sidecar names the priors that it read, theirs has the limit; a method on all rows has none."""
    table, prior = "bo/pd1_mini/others_sweep/h_ekl-pi", "priors/pd1_mini/others_sweep/h_ekl"
    other = table.replace("h_ekl", "h_nll")
    job = {"split": "others_sweep", "acquisition": "pi", "seeds": 1, "iterations": 2}
    write = {
        table: {"spec": job | {"method": "h_ekl"}, "inputs": {f"{prior}.npz": "sum"}},
        other: {"spec": job | {"method": "h_nll"}, "inputs": {}},
        prior: {
            "stage": "pretrain", "outputs": {f"{prior}.npz": "sum"},
            "spec": {"pretrain": {"objective": "ekl", "steps": 5, "matched_points": 7}, "seeds": 1},
        },
    }  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name, content in write.items():
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    assert sweeps.block_limits([f"{table}.parquet", f"{other}.parquet"]) == {"h_ekl@others_sweep": 7}
    assert sweeps.block_limits(["elsewhere/others_sweep/h_ekl-pi.parquet"]) == {"h_ekl@others_sweep": 0}, "no sidecar"


def test_sizes_of_tasks():
    names = [f"h_nll@others_{s}" for s in ("tasks_3", "tasks_8", "sweep")]
    assert sizes(names, benchmark(), "tasks") == {names[2]: 3}, "three other tasks are all there are"


def test_names_without_a_split_have_no_size_and_faults_are_told():
    assert sweeps.training_sizes(["rand", "stboh"], benchmark(), "points").empty
    with pytest.raises(ConfigError, match="unknown quantity that a sweep varies 'point'"):
        sweeps.training_sizes([], benchmark(), "point")
    with pytest.raises(ConfigError, match="unknown split 'others_point_4'"):
        sweeps.training_sizes(["h_nll@others_point_4"], benchmark(), "points")


def test_curves_by_hand(places):
    """FSBO at 4, 20, 30: repetitions (6, 8), (2, 4), (1, 3); the 20th percentile of two is low + 0.2 (high - low)."""
    curves = sweeps.sweep_curves(RUNS, places, 2)
    assert curves["method"].tolist() == ["fsbo"] * 3 + ["h_ekl"] and curves["size"].tolist() == [4, 20, 30, 4]
    assert curves["split"].tolist() == ["others_points_4", "others_points_20", "others_sweep", "others_points_4"]
    assert curves["median"].tolist() == [7, 3, 2, 4] and curves["repetitions"].tolist() == [2] * 4
    assert curves["low"].tolist() == pytest.approx([6.4, 2.4, 1.4, 4]) and curves["high"].iloc[0] == pytest.approx(7.6)
    assert sweeps.sweep_curves(RUNS, places, 1)["median"].tolist() == [9] * 4, "the iteration is used"


def test_slices_take_the_largest_size_below(places):
    slices = sweeps.sweep_slices(RUNS, places, [4, 25, 1000], 2)
    assert slices["size"].drop_duplicates().tolist() == [4, 25, 30]
    at = slices[slices["size"] == 25].set_index("method")
    assert at.loc["fsbo", "used"].tolist() == [20, 20] and at.loc["fsbo", "regret"].tolist() == [2, 4]
    assert at.loc["h_ekl", "used"].tolist() == [4, 4] and at.loc["stboh", "regret"].tolist() == [3, 3, 5]
    assert at.loc["stboh", "used"].isna().all() and at.loc["stboh", "repetition"].tolist() == [0, 1, 2]
    below = sweeps.sweep_slices(RUNS, places, [3], 2)
    assert set(below["method"]) == {"stboh"}, "a method without so small a size is left out"


def test_trends_by_hand(places):
    """Spearman over (4, 6), (4, 8), (20, 2), (20, 4), (30, 1), (30, 3): Pearson of the ranks with ties averaged."""
    trends = sweeps.size_trends(RUNS, places, 2).set_index("method")
    expected = np.corrcoef(rankdata([4, 4, 20, 20, 30, 30]), rankdata([6, 8, 2, 4, 1, 3]))[0, 1]
    assert trends.loc["fsbo", "spearman"] == pytest.approx(expected) and expected < -0.7
    assert 0 < trends.loc["fsbo", "p"] < 0.2 and trends.loc["fsbo", ["points", "smallest", "largest"]].tolist() == [
        6,
        7,
        2,
    ]
    assert np.isnan(trends.loc["h_ekl", "spearman"]), "one size has no trend"


def test_differences_to_the_reference(places):
    """STBOH has three runs, FSBO two priors: pairs need equal numbers; with two, means 3 against 7, 3, 2 and 4."""
    runs = make({**{m: v[:, 0, 0] for m, v in RUNS.values.items()}, "stboh": [[9, 3], [9, 3]]}, {"stboh"})
    table = sweeps.sweep_differences(runs, places, "stboh", 2, 0)
    assert table["difference"].tolist() == pytest.approx([4, 0, -1, 1])
    assert table["ratio"].tolist() == pytest.approx([7 / 3, 1, 2 / 3, 4 / 3])
    assert (table["low"] <= table["difference"]).all() and (table["difference"] <= table["high"]).all()
    assert table["size"].tolist() == [4, 20, 30, 4] and set(table["reference"]) == {"stboh"}


def test_smallest_sizes_below_a_level():
    curves = pd.DataFrame({"method": ["a"] * 4 + ["b"] * 2, "size": [1, 2, 3, 4, 1, 2], "median": [5, 2, 4, 3, 9, 8.0]})
    found = sweeps.sizes_below(curves, 3).set_index("method")
    assert found.loc["a"].tolist() == [2, 4] and found.loc["b"].isna().all()
    assert sweeps.sizes_below(curves, 5)["lasting"].tolist()[0] == 1, "a tie counts as below"


def test_twins_by_hand():
    runs = make({"h_nll": [[4, 2], [6, 2]], "h_nll@held_out_points_100": [[2, 1], [2, 1]]})
    table = sweeps.twin_differences(runs, [("h_nll@held_out_points_100", "h_nll")], 0).set_index("metric")
    assert table.loc["last", ["difference", "low", "high"]].tolist() == [-1, -1, -1]
    # Means over iterations: 1.5, 1.5 against 3, 4: two pairs on one task, standard error 0.5, t with one degree.
    half = 12.7062 * 0.5
    assert table.loc["mean", ["difference", "low", "high"]].tolist() == pytest.approx(
        [-2, -2 - half, -2 + half], rel=0.03
    )
    assert table["reference"].tolist() == ["h_nll"] * 2


def test_twins_have_the_interval_of_every_other_difference():
    """The claims about them have it too: one comparison must not have two intervals in a run."""
    regret = -np.sort(-np.random.default_rng(0).uniform(size=(3, 2, 1, 6, 4)), axis=-1)
    arrays = dict(zip(("h_nll", "h_nll@held_out_points_100", "stbo"), regret, strict=True))
    runs = Runs(
        arrays, dict.fromkeys(arrays, (0, 1)), tuple("abcdef"), np.arange(1, 5), frozenset({"stbo"}),
        folds=(0, 0, 1, 1, 2, 2), overlap=1.5, data_sets=tuple("ppqqrr"),
    )  # fmt: skip
    for variant in ("h_nll@held_out_points_100", "stbo"):
        twin = sweeps.twin_differences(runs, [(variant, "h_nll")], 0).set_index("metric").loc["last"]
        usual = differences(runs, "h_nll", [4], 0).set_index("method").loc[variant]
        assert twin[["difference", "low", "high"]].tolist() == usual[["difference", "low", "high"]].tolist()
        assert twin["low"] < twin["difference"] < twin["high"]


def test_windows():
    table = pd.DataFrame({"method": "a", "iteration": [1, 2, 3, 4], "mean": [4.0, 2, 1, 3]})
    found = sweeps.window_means(table, "mean", [2])
    assert found["window"].tolist() == ["1 to 2", "3 to 4"] and found["value"].tolist() == [3, 2]
    assert sweeps.window_means(table, "mean", [30])["window"].tolist() == ["1 to 4"], "none beyond the last iteration"
    assert sweeps.window_means(table, "mean", [1, 3])["value"].tolist() == [4, 1.5, 3]


def test_losses_and_regrets_by_space():
    """Space u: NLL (1, 2) and (3, 4) of fsbo and h_nll, regret twice the NLL: r = 1. MIMO has no NLL."""
    values = {"mimo": [[9, 5], [9, 7]], "fsbo": [[9, 2], [9, 4]], "h_nll": [[9, 6], [9, 8]]}
    rows = [
        {"space": "u", "fold": "f", "task": "t", "method": m, "prior_seed": s, "metric": metric, "value": v / (1 + k)}
        for m, vs in (("fsbo", (1.0, 2.0)), ("h_nll", (3.0, 4.0)))
        for s, v in enumerate(vs)
        for k, metric in enumerate(("train_nll", "test_nll"))
    ]
    evaluations = pd.DataFrame([*rows, *({**row, "space": "v", "value": 7.0} for row in rows)])
    cells, correlations = sweeps.transfer_by_space({"u": make(values), "v": make(values)}, evaluations)
    mine = cells[cells["space"] == "u"].set_index(["metric", "method"])
    assert mine.loc[("regret", "mimo"), ["mean", "std", "repetitions"]].tolist() == [6, 1, 2]
    assert mine.loc[("regret", "h_nll"), ["mean", "std"]].tolist() == [7, 1]
    assert mine.loc[("train_nll", "fsbo"), ["mean", "std"]].tolist() == [1.5, 0.5]
    assert ("train_nll", "mimo") not in mine.index
    u, v = correlations.to_dict("records")
    assert (u["space"], u["points"]) == ("u", 4) and u["r"] == pytest.approx(1)
    assert np.isnan(v["r"]), "a constant has no correlation"

"""The crossed study: cells, intervals, variance components and effects against hand-made and simulated references."""

import dataclasses
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from metabo.artefacts import api as artefacts
from metabo.errors import ConfigError, DataError
from metabo.papers.hyperbo.figures.crossing import described
from metabo.papers.hyperbo.metrics import crossing, crossing_priors
from metabo.plan import splits
from metabo.tasks.folds import Fold
from metabo.tasks.subsets import Past
from metabo.tasks.training_set import moments, prior_keys, training_sets
from tests import tiny

SPLITS = ("crossed", "crossed_matched", "crossed_candidates", "crossed_matched_candidates")
TASKS = {"a1": "without a", "a2": "without a", "b": "without b"}


def table(split="crossed", method="h_nll", acquisition="pi", shift=0.0, priors=2, seeds=2, last=4):
    """A trajectory table whose regret at iteration t is (1 + task + 10 prior + 100 seed + shift) / t."""
    rows = []
    for (k, (task, fold)), p, s in itertools.product(enumerate(TASKS.items()), range(priors), range(seeds)):
        regret = (1 + k + 10 * p + 100 * s + shift) / np.arange(1, last + 1)
        keys = {"split": split, "method": method, "acquisition": acquisition, "space": "s", "fold": fold, "task": task}
        rows.append(
            pd.DataFrame(
                {**keys, "prior_seed": p, "seed": s, "iteration": np.arange(1, last + 1), "simple_regret": regret}
            )
        )
    return pd.concat(rows, ignore_index=True)


def made(values: np.ndarray, cells: list[tuple], folds=None) -> crossing.Crossing:
    """A study of one measure: `values` (cells, priors, seeds, tasks), `cells` of (method, rows, *SETTING)."""
    listed = [(f"{m}, {r} points", m, r, c, s, a) for m, r, c, s, a in cells]
    k = values.shape[-1]
    names = tuple(f"t{i}" for i in range(k))
    folds = np.arange(k) if folds is None else np.asarray(folds)
    return crossing.Crossing(
        pd.DataFrame(listed, columns=crossing.FACTORS), values[..., None].astype(float), ("m",), names, folds
    )


def test_factors_of_a_run_come_from_split_and_registration():
    read = lambda *run: tuple(crossing.factors(*run).values())  # noqa: E731
    assert read("crossed", "h_nll", "pi") == ("h_nll, all points", "h_nll", "all", "all", "more", "pi")
    assert read("crossed_matched", "ablr_short", "ei") == (
        "ablr, matched points",
        "ablr",
        "matched",
        "all",
        "fewer",
        "ei",
    )
    both = ("ablr, matched points", "ablr", "matched", "matched", "more", "ucb3")
    assert read("crossed_matched_candidates", "ablr", "ucb3") == both
    # H-EKL reads matched rows on every split.
    assert read("crossed", "h_ekl_short", "pi") == ("h_ekl, matched points", "h_ekl", "matched", "all", "fewer", "pi")
    assert read("crossed_candidates", "h_ekl", "pi")[2:4] == ("matched", "matched")


def test_cells_hold_regret_and_area_by_hand():
    study = crossing.cross([table(), table(method="h_nll-ei", acquisition="ei", shift=1.0)], [1, 4])
    assert study.measures == ("iteration 1", "iteration 4", "area") and study.tasks == ("a1", "a2", "b")
    assert study.folds.tolist() == [0, 0, 1]
    assert study.cells["acquisition"].tolist() == ["pi", "ei"] and set(study.cells["method"]) == {"h_nll"}
    assert study.values.shape == (2, 2, 2, 3, 3)
    regret = 1 + np.arange(3) + 10 * np.arange(2)[:, None, None] + 100 * np.arange(2)[None, :, None]
    np.testing.assert_allclose(study.at("iteration 1")[0], regret)
    np.testing.assert_allclose(study.at("iteration 4")[1], (regret + 1) / 4)
    np.testing.assert_allclose(study.at("area")[0], regret * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    np.testing.assert_allclose(study.repeats("iteration 1")[0], [52.0, 62.0])
    with pytest.raises(ConfigError, match=r"unknown measure 'are'\. Did you mean 'area'"):
        study.at("are")


def test_tables_that_do_not_belong_together_are_refused():
    with pytest.raises(DataError, match="'ablr' on split 'crossed' has other tasks, priors"):
        crossing.cross([table(), table(method="ablr", priors=3)], [1])
    with pytest.raises(DataError, match=r"two tables of the same cell: \{'learner': 'h_nll, all points'"):
        crossing.cross([table(), table()], [1])


def test_intervals_are_those_of_students_t():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 5, 1, 3))
    cells = [("h_nll", "all", "all", "more", a) for a in ("pi", "ei")]
    found = crossing.cell_means(made(values, cells))
    for i in range(2):
        reference = stats.ttest_1samp(values[i].mean(axis=(1, 2)), 0).confidence_interval(0.95)
        assert found.loc[i, ["low", "high"]].tolist() == pytest.approx([reference.low, reference.high])
        assert found.loc[i, "mean"] == pytest.approx(values[i].mean())
    one = crossing.cell_means(made(values[:, :1], cells))
    assert one[["low", "high"]].isna().all(axis=None)


def simulate(rng, sd, folds, priors, seeds):
    """Draw r_pks = a_k + b_{p,fold} + c_pk + e_pks with the given standard deviations."""
    folds = np.asarray(folds)
    k, f = len(folds), len(set(folds))
    a, b = sd[0] * rng.normal(size=k), sd[1] * rng.normal(size=(priors, f))[:, folds]
    c, e = sd[2] * rng.normal(size=(priors, k)), sd[3] * rng.normal(size=(priors, seeds, k))
    return (a + b + c)[:, None] + e


@pytest.mark.parametrize("folds", [[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]])
def test_components_are_unbiased_in_simulations_with_known_ones(folds, monkeypatch):
    """Means over 4000 draws against the variances put in (negative estimates kept: the cut at 0 alone is biased)."""
    monkeypatch.setattr(crossing, "max", lambda _zero, value: value, raising=False)
    sd, rng = (1.0, 0.8, 0.6, 0.5), np.random.default_rng(1)
    draws = [list(crossing.components(simulate(rng, sd, folds, 4, 3), np.array(folds)).values()) for _ in range(4000)]
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(mean - np.square(sd)) < 4 * error).all(), (mean, error)
    assert (error < 0.02).all()


def test_components_by_hand():
    """Two folds of two tasks, two priors, one BO seed; every part can be read off.

    Tasks 0, 2, 10, 12 plus the priors of fold 0: +-1, of fold 1: +-3, and +-0.5 with alternating sign on the two tasks
    of a fold. Mean squares: interaction 2 * 0.5^2 * 4 / 2 (df) = 1; priors 2 * (2 * 1 + 2 * 9) / 2 = 20, so var_b is
    (20 - 1) / 2; task means 0, 2, 10, 12: variance 104 / 3, less (9.5 * (1 - 4 / 12) + 1) / 2.
    """
    sign = np.array([1.0, -1.0])[:, None]
    values = np.array([0.0, 2, 10, 12]) + sign * np.array([1.0, 1, 3, 3]) + sign * np.array([0.5, -0.5, 0.5, -0.5])
    found = crossing.components(values[:, None], np.array([0, 0, 1, 1]))
    assert found["priors"] == pytest.approx(9.5) and found["task x prior"] == pytest.approx(1.0)
    assert found["tasks"] == pytest.approx(104 / 3 - (9.5 * 2 / 3 + 1) / 2)
    assert np.isnan(found["seeds"])


def test_components_that_cannot_be_told_apart():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 2, 4))
    alone = crossing.components(values)
    assert np.isnan(alone["task x prior"]) and alone["priors"] >= 0
    assert alone["seeds"] == pytest.approx(values.var(axis=1, ddof=1).mean())
    one = crossing.components(values[:1], np.zeros(4, dtype=int))
    assert np.isnan(one["priors"]) and np.isnan(one["task x prior"])
    assert one["tasks"] == pytest.approx(values[0].mean(axis=0).var(ddof=1))
    same = np.repeat(values[:, :1], 5, axis=1) / 3
    assert crossing.components(same, np.zeros(4, dtype=int))["seeds"] == 0.0  # exactly: the runs are equal


def test_shares_sum_to_one_and_follow_the_part_that_varies():
    rng = np.random.default_rng(3)
    cells = [("h_nll", "all", "all", "more", "pi"), ("ablr", "all", "all", "more", "pi")]
    by_task = np.broadcast_to(rng.normal(size=6), (3, 2, 6))
    by_seed = rng.normal(size=(3, 2, 6))
    study = made(np.stack([by_task, by_seed]), cells, [0, 0, 1, 1, 2, 2])
    shares = crossing.variance_shares(study)
    wide = shares.pivot(index="learner", columns="component", values="share")
    np.testing.assert_allclose(wide.sum(axis=1), 1)
    assert wide.loc["h_nll, all points", "tasks"] == pytest.approx(1)
    assert wide.loc["ablr, all points"].idxmax() == "seeds"
    learners = crossing.learner_shares(shares)
    np.testing.assert_allclose(learners["share"], shares["share"])


def test_comparisons_by_hand():
    """H-EKL minus ABLR: -1, -2, 3 for three priors, equal on both tasks: 0 on average, lower in two of three."""
    ekl, ablr = np.zeros((3, 1, 2)), np.array([1.0, 2.0, -3.0])[:, None, None] * np.ones((3, 1, 2))
    cells = [("h_ekl", "matched", "all", "more", "pi"), ("ablr", "all", "all", "more", "pi")]
    cells.append(("ablr", "all", "all", "more", "ei"))  # another setting: compared with nothing
    found = crossing.comparisons(made(np.stack([ekl, ablr, ablr]), cells), "h_ekl", seed=0, resamples=500)
    assert len(found) == 1
    row = found.iloc[0]
    assert (row["reference"], row["acquisition"], row["difference"]) == ("ablr, all points", "pi", 0.0)
    assert row["lower"] == pytest.approx(2 / 3) and row["flipped"] == 0.5
    reference = stats.ttest_1samp([-1.0, -2.0, 3.0], 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((reference.low, reference.high))
    counted = crossing.verdicts(found.assign(high=-0.1)).iloc[0]
    assert (counted["settings"], counted["lower"], counted["higher"]) == (1, 1, 0)


def test_a_new_data_set_has_the_wider_interval():
    """A difference that depends on the task: certain on this suite, open for a new data set."""
    ekl = np.zeros((4, 1, 3)) + 1e-3 * np.arange(4)[:, None, None]
    other = np.broadcast_to([-1.0, 1.0, 6.0], (4, 1, 3))
    cells = [(m, "matched", "all", "more", "pi") for m in ("h_ekl", "h_nll")]
    row = crossing.comparisons(made(np.stack([ekl, other]), cells), "h_ekl", seed=0).iloc[0]
    assert row["high"] < 0 < row["high_new"] and row["flipped"] == 0
    counted = crossing.verdicts(pd.DataFrame([row])).iloc[0]
    assert (counted["lower"], counted["lower_new"]) == (1, 0)


def test_tasks_of_one_fold_are_no_evidence_of_their_own():
    """Nine tasks of three data sets, on each of which all agree: three numbers, not nine."""
    values = np.repeat([1.0, 2.0, 4.0], 3) + 1e-3 * np.random.default_rng(0).normal(size=(4, 1, 9))
    cells = [(m, "matched", "all", "more", "pi") for m in ("h_ekl", "h_nll")]
    study = made(np.stack([0 * values, values]), cells, np.repeat([0, 1, 2], 3))
    row = crossing.comparisons(study, "h_ekl", seed=0, resamples=20_000).iloc[0]
    reference = stats.ttest_1samp([-1.0, -2.0, -4.0], 0).confidence_interval(0.95)
    assert row[["low_new", "high_new"]].tolist() == pytest.approx([reference.low, reference.high], abs=0.1)
    alike = crossing.comparisons(dataclasses.replace(study, one_data_set=True), "h_ekl", seed=0, resamples=20_000).iloc[
        0
    ]
    assert alike[["low_new", "high_new"]].isna().all() and alike["low"] == row["low"]


def test_intervals_for_a_new_data_set_cover_it():
    """300 studies of the folds of pd1_mini, whose tasks share data set and priors; the true difference is 0."""
    folds, rng, covered = np.repeat(np.arange(7), (2, 6, 2, 4, 6, 2, 2)), np.random.default_rng(11), 0
    cells = [(m, "matched", "all", "more", "pi") for m in ("h_ekl", "h_nll")]
    for seed in range(300):
        of_set = 0.7 * rng.normal(size=7)[folds]
        values = simulate(rng, (0.5, 0.5, 0.3, 0.2), folds, 5, 2) + of_set
        study = made(np.stack([values, 0 * values]), cells, folds)
        row = crossing.comparisons(study, "h_ekl", seed, resamples=300).iloc[0]
        covered += row["low_new"] <= 0 <= row["high_new"]
    assert 0.91 <= covered / 300 <= 0.985


def run_records(tmp_path, method, split, acquisition, steps, matched_points=None):
    """Write the sidecars of one table and of its priors, as the stages do; return the table's path."""
    pretrain = {"objective": "ekl" if "ekl" in method else "nll", "steps": steps}
    pretrain |= {"learning_rate": 1e-3} if matched_points is None else {"matched_points": matched_points}
    prior = tmp_path / "priors" / splits.prior_split(split) / f"{method}.npz"
    prior.parent.mkdir(parents=True, exist_ok=True)
    record = {"stage": "pretrain", "spec": {"pretrain": pretrain, "seeds": 5}, "outputs": {str(prior): "1"}}
    prior.with_suffix(".json").write_text(json.dumps(record))
    path = tmp_path / "bo" / split / f"{method}-{acquisition}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    spec = {"split": split, "method": method, "acquisition": acquisition, "seeds": 2, "iterations": 9}
    path.with_suffix(".json").write_text(json.dumps({"spec": spec, "inputs": {str(prior): "1"}}))
    return str(path)


def test_what_priors_were_trained_with_is_read_from_the_sidecars(tmp_path):
    base = tiny.benchmark()
    folds = (Fold("f", "plane", ("b", "flat"), ("a",)), Fold("g", "plane", ("a", "b"), ("flat",)))
    benchmark = dataclasses.replace(base, splits={"held_out": folds})
    write = lambda *run: run_records(tmp_path, *run)  # noqa: E731
    paths = [write("h_ekl", split, a, 70, 4) for split in ("crossed", "crossed_candidates") for a in ("pi", "ei")]
    paths += [write("h_ekl_short", "crossed", "pi", 7, 4), write("ablr", "crossed", "pi", 300)]
    paths += [write("ablr", "crossed_matched", "pi", 300), str(tmp_path / "crossed" / "h_nll-pi.parquet")]
    found = crossing_priors.trained(paths, benchmark).set_index(["learner", "steps"])
    columns = ["optimiser", "number", "priors", "least", "most", "settings"]
    expected = {
        ("h_ekl, matched points", "more"): ["L-BFGS", 70, 5, 8, 8, 4],  # 4 of 6 points of two tasks
        ("h_ekl, matched points", "fewer"): ["L-BFGS", 7, 5, 8, 8, 1],
        ("ablr, all points", "more"): ["Adam", 300, 5, 19, 25, 1],  # 11 + 8 and 14 + 11 rows
        ("ablr, matched points", "more"): ["Adam", 300, 5, 12, 12, 1],
    }
    for key, values in expected.items():
        assert found.loc[key, columns].tolist() == values
    unknown = found.loc[("h_nll, all points", "more")]
    assert pd.isna(unknown["number"]) and (unknown["least"], unknown["most"]) == (19, 25)
    numbers = artefacts.numbers({"training": found.reset_index().drop(columns="optimiser")}, crossing_priors.KEYS)
    assert numbers.loc[numbers["quantity"] == "number", "value"].isna().sum() == 1
    text = described(found.reset_index())
    assert (
        "H-EKL, matched points: pre-training steps 70 (more), 7 (fewer), L-BFGS; task-rows that a prior sees: 8;"
        in text
    )
    assert "settings: 5; sets of priors that these share: 2, each of 5 seeds" in text and "sees: 19 to 25;" in text
    assert "H-NLL, all points: pre-training steps unknown (more), unknown optimiser" in text
    assert text.endswith("equally many task-rows? no.")
    capless = found.reset_index().assign(least=12, most=12)
    assert described(capless).endswith("equally many task-rows? yes.")
    assert described(found.reset_index().assign(least=pd.NA)).endswith("equally many task-rows? unknown.")
    paths.append(write("ablr_short", "crossed", "pi", 30))
    write("ablr_short", "crossed_matched", "pi", 31)
    crossing_priors.trained([*paths, str(tmp_path / "bo/crossed_matched/ablr_short-pi.parquet")], benchmark)
    other = tmp_path / "elsewhere"
    again = [*paths, run_records(other, "ablr_short", "crossed_candidates", "pi", 31)]
    with pytest.raises(DataError, match="priors of 'ablr, all points', fewer steps, were not all trained alike"):
        crossing_priors.trained(again, benchmark)


@pytest.mark.parametrize(("rows", "limit"), [("all", 0), ("matched", 0), ("matched", 4)])
def test_task_rows_are_those_that_training_reads(rows, limit):
    base = tiny.benchmark()
    folds = (Fold("f", "plane", ("b", "flat"), ("a",)), Fold("g", "plane", ("a", "b", "flat"), ("point",)))
    benchmark = dataclasses.replace(base, splits={"held_out": folds})
    split = "crossed_matched" if rows == "matched" else "crossed"
    found = crossing_priors.task_rows(benchmark, split, rows == "matched", limit)
    (training,) = training_sets(benchmark, Past("held_out", rows=rows), seeds=1)
    if limit:
        data = moments(training, prior_keys(training, 0, 1), limit)
        read = [int(data.mask[f].sum()) * len(fold.train) for f, fold in enumerate(folds)]
    else:
        read = [int(np.asarray(training.past(f, 0).mask).sum()) for f in range(2)]
    assert found == read
    with pytest.raises(ConfigError, match="split 'held_out_points_10' draws points or tasks"):
        crossing_priors.task_rows(benchmark, "held_out_points_10", False)


def test_stability_by_hand():
    """Three learners; prior 0: 1 < 2 < 3; prior 1: 2.5 < 3 with the best one at 4. Means 2.5, 2.25, 3."""
    values = np.array([[1.0, 4.0], [2.0, 2.5], [3.0, 3.0]])[:, :, None, None]
    cells = [(m, "matched", "all", "more", "pi") for m in ("h_ekl", "h_nll", "ablr")]
    row = crossing.stability(made(values, cells)).iloc[0]
    assert row["best_kept"] == 0.5  # h_nll has the lowest mean and is lowest in prior 1 only
    assert row["pairs_flipped"] == pytest.approx((1 + 1 + 0) / 6)  # (ekl, nll): prior 0; (ekl, ablr): prior 1


def test_anova_is_the_classic_one_for_a_single_factor():
    """One factor in blocks: F of the randomised block design, from the sums of squares written out."""
    rng = np.random.default_rng(4)
    y = rng.normal(size=(4, 6)) + np.arange(4)[:, None] + rng.normal(size=6)
    row = crossing.anova(y, ["steps"]).iloc[0]
    grand, levels, blocks = y.mean(), y.mean(axis=1), y.mean(axis=0)
    treatment = 6 * ((levels - grand) ** 2).sum() / 3
    error = ((y - levels[:, None] - blocks + grand) ** 2).sum() / 15
    assert (row["df"], row["share"]) == (3, pytest.approx(1.0))
    assert row["f"] == pytest.approx(treatment / error)
    assert row["p"] == pytest.approx(stats.f.sf(treatment / error, 3, 15))


def test_anova_splits_the_sum_of_squares_by_term():
    """A design with one main effect and one interaction only: they take all, in the ratio of their squares."""
    a, b, c = np.array([-1.0, 1])[:, None, None], np.array([-1.0, 1])[:, None], np.array([-1.0, 0, 1])
    y = (3 * a * np.ones((2, 2, 3)) + 2 * b * c)[..., None] + np.random.default_rng(5).normal(size=3)
    found = crossing.anova(y, ["x", "y", "z"]).set_index("term")
    assert found["share"].sum() == pytest.approx(1) and len(found) == 7
    squares = {"x": 9 * 12, "y x z": 4 * 8}
    for term, value in squares.items():
        assert found.loc[term, "share"] == pytest.approx(value / sum(squares.values()))
    assert found.loc["y x z", "df"] == 2 and found.index[0] == "x"
    np.testing.assert_allclose(found["share"].drop(list(squares)), 0, atol=1e-12)


def test_effects_have_levels_and_refuse_an_incomplete_design():
    cells = [(m, "matched", "all", "more", a) for m in ("h_ekl", "ablr") for a in ("pi", "ei")]
    values = np.array([1.0, 2.0, 5.0, 8.0])[:, None, None, None] + np.arange(3)[:, None, None]
    terms, levels = crossing.effects(made(values, cells), ["method", "acquisition"], "m")
    assert terms["term"].tolist() == ["method", "acquisition", "method x acquisition"]
    by_level = levels.set_index("level")["effect"]
    assert by_level.to_dict() == pytest.approx({"h_ekl": -2.5, "ablr": 2.5, "pi": -1.0, "ei": 1.0})
    with pytest.raises(DataError, match="factors method, acquisition are not crossed"):
        crossing.effects(made(values, cells).select([True, True, True, False]), ["method", "acquisition"], "m")


@pytest.mark.parametrize(("benchmark", "candidates"), [("pd1", 2), ("pd1_mini", 1), ("lcbench", 1)])
def test_the_default_catalogue_entry_is_balanced(benchmark, candidates):
    """Every learner, candidates, steps and acquisition meet exactly once in hyperbo_x01. Tasks that share all points
    have one kind of candidates."""
    from pathlib import Path

    from metabo.plan import catalogue

    entry = catalogue.load(Path(__file__).parents[4])["hyperbo_x01"]
    runs = catalogue.Artefact("x", "x", benchmark, entry).trajectories
    cells = pd.DataFrame([crossing.factors(split, method, acq) for method, acq, split in runs])
    levels = cells[["learner", *crossing.SETTING]].nunique()
    counts = cells.groupby(["learner", *crossing.SETTING]).size()
    assert levels.pop("candidates") == candidates
    assert (levels > 1).all() and (counts == 1).all()
    assert len(counts) == levels.prod() * candidates == len(cells) == len(cells.drop_duplicates())
    assert {split for _, _, split in runs} == set(SPLITS[: 2 * candidates])

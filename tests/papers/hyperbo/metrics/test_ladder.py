"""How far training goes: rungs from records, one value per prior, and where the Test NLL turns."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as t_distribution

from metabo.errors import DataError
from metabo.metrics.runs import Runs
from metabo.papers.hyperbo.figures import ladder as drawings
from metabo.papers.hyperbo.metrics import ladder
from metabo.plan import config, splits
from tests.stage_runs import ROOT


def runs(**levels):
    """Runs of two tasks and three queries; a level per prior."""
    curve = np.broadcast_to([1.0, 0.5, 0.0], (1, 1, 2, 3))
    values = {name.replace("__", "@"): np.array(own)[:, None, None, None] * curve for name, own in levels.items()}
    seeds = {name: tuple(range(len(v))) for name, v in values.items()}
    return Runs(values, seeds, ("a", "b"), np.arange(1, 4), frozenset({"rand"}))


def losses(**levels):
    """Losses of two spaces; the second has one task and a loss that is 2 higher."""
    rows = [
        {"split": split, "space": space, "task": task, "method": "h_nll", "prior_seed": seed, "metric": metric,
         "value": level + sign * 0.1 + more}
        for split, own in levels.items() for seed, level in enumerate(own)
        for metric, sign in (("test_nll", 1), ("train_nll", -1))
        for space, task, more in (("s", "a", 0.0), ("s", "b", 0.2), ("t", "c", 2.0))
    ]  # fmt: skip
    return pd.DataFrame(rows)


PLACES = pd.DataFrame(
    [("one", ladder.CONSTANT, 10, 1e-3), ("two", ladder.CONSTANT, 20, 1e-3), ("three", ladder.DECAYING, 20, 1e-2)],
    columns=["split", "kind", "steps", "rate"],
)


@pytest.fixture
def climbed():
    own = runs(rand=[3.0], h_nll__one=[2.0, 1.0], h_nll__two=[1.0, 1.0], h_nll__three=[0.5, 0.7])
    return ladder.climb(PLACES, own, losses(one=[1.0, 2.0], two=[3.0, 3.0], three=[0.0, 1.0]))


def test_every_prior_has_its_losses_and_its_area(climbed):
    value = climbed.set_index(["split", "metric", "prior_seed"])["value"]
    assert value["one", "area", 0] == pytest.approx(1.0) and value["three", "area", 1] == pytest.approx(0.35)
    # the mean of the spaces' means: s has 1.1 and 1.3, t 3.1
    assert value["one", "test_nll", 0] == pytest.approx((1.2 + 3.1) / 2)
    assert value["one", "train_nll", 1] == pytest.approx((2.0 + 3.9) / 2)
    found = ladder.summary(climbed).set_index(["split", "metric"])
    assert found.loc[("one", "area"), ["mean", "std", "priors"]].tolist() == pytest.approx(
        [0.75, np.std([1, 0.5], ddof=1), 2]
    )


def test_a_test_loss_that_rises_is_over_fitting(climbed):
    found = ladder.overfitting(climbed).set_index("kind")
    assert found.loc[ladder.CONSTANT, "best_steps"] == 10 and found.loc[ladder.CONSTANT, "rise"] == pytest.approx(1.5)
    assert found.loc[ladder.DECAYING, "rise"] == 0 and found.loc[ladder.CONSTANT, "priors"] == 2


def test_over_fitting_compares_the_priors_that_all_rungs_have(climbed):
    """The anchor has one prior; that the first prior is better than the others is no over-fitting."""
    one = climbed[~((climbed["split"] == "two") & (climbed["prior_seed"] == 1))]
    found = ladder.overfitting(one).set_index("kind").loc[ladder.CONSTANT]
    assert found["priors"] == 1 and found["rise"] == pytest.approx(2.0)


def test_a_split_without_runs_or_losses_stops():
    with pytest.raises(DataError, match="split 'two' has 0 runs"):
        ladder.climb(PLACES.iloc[1:2], runs(h_nll__one=[1.0]), losses(one=[1.0]))


def test_the_rungs_of_tables_without_a_record_are_those_of_the_default_scale():
    """And these are what config.yaml sets."""
    sizes = config.load(ROOT).sizes
    for split, (kind, steps, rate) in ladder.PLANNED.items():
        (section,) = splits.entry(split).sizes
        own = sizes[section]
        assert (own["adam_steps"], own["learning_rate"]) == (steps, rate)
        assert (own["decay"] < 1) == (kind == ladder.DECAYING)
    found = ladder.rungs([f"results/nowhere/evaluation/tables/{split}/h_nll.parquet" for split in ladder.PLANNED])
    assert set(found["origin"]) == {ladder.PLANNED_ONLY}
    assert found["steps"].tolist() == [200, 500, 1000, 2000, 5000, 50_000, 2000, 5000]
    with pytest.raises(DataError, match="split 'held_out' has no record of its training"):
        ladder.rungs(["results/nowhere/evaluation/tables/held_out/h_nll.parquet"])


def test_each_rung_has_a_verdict_against_random():
    """Curves fall from the level to 0, so that the first query shows it and the last one nothing."""
    rng = np.random.default_rng(0)
    task = rng.normal(scale=0.01, size=(8, 1)) * [1.0, 1.0, 0.0]
    curve = np.array([1.0, 0.5, 0.0])
    levels = {"rand": 3.0, "h_nll@one": 3.0, "h_nll@two": 1.0, "h_nll@three": 4.0}
    shift = {"rand": 0.0, "h_nll@one": task, "h_nll@two": task, "h_nll@three": task}
    values = {name: np.broadcast_to(level * curve + shift[name], (2, 1, 8, 3)) for name, level in levels.items()}
    own = Runs(
        values, dict.fromkeys(values, (0, 1)), tuple("abcdefgh"), np.arange(1, 4), frozenset({"rand"}),
        folds=tuple(range(8)),
    )  # fmt: skip
    found = ladder.against_random(PLACES, own).set_index(["split", "measure"])
    of_first = found.xs("first query", level="measure")
    assert of_first["verdict"].to_dict() == {"one": "undecided", "two": "ahead", "three": "behind"}
    assert of_first.loc["two", "difference"] == pytest.approx(-2.0 + task[:, 0].mean())
    gap = task[:, 0]
    half = t_distribution.ppf(0.975, 7) * gap.std(ddof=1) / np.sqrt(8)
    assert of_first.loc["two", "high"] - of_first.loc["two", "difference"] == pytest.approx(half)
    assert found.loc[("two", "area"), "difference"] == pytest.approx(-1.0 + 2 / 3 * gap.mean())
    assert found.loc[("three", "last query"), "difference"] == 0


GAPS = pd.DataFrame(
    [(*place, "first query", -0.5, -0.7, high, said)
     for *place, high, said in zip(*(PLACES[c] for c in ("split", "kind", "steps")), (-0.3, 0.1, -0.2),
                                   ("ahead", "undecided", "ahead"), strict=True)],
    columns=["split", "kind", "steps", "measure", "difference", "low", "high", "verdict"],
)  # fmt: skip


def test_panels_show_every_prior(climbed):
    figure = drawings.ladder_panels(climbed, 1.5, GAPS, "Title", "simple regret")
    assert [ax.get_ylabel() for ax in figure.axes] == [
        "training NLL (nats)", "Test NLL (nats)", "mean simple regret",
        "simple regret of the first\nquery minus Random's",
    ]  # fmt: skip
    more = pd.concat([GAPS, GAPS.assign(measure="area", verdict="undecided", difference=9.0)])
    figure = drawings.ladder_panels(climbed, 1.5, more, "Title", "simple regret")
    points = [line for line in figure.axes[3].lines if len(line.get_xdata()) == 1]
    assert [line.get_ydata()[0] for line in points] == [-0.5] * 3
    assert [line.get_markerfacecolor() == "white" for line in points] == [False, True, False]
    marks = [len(line.get_xdata()) for line in figure.axes[2].lines if line.get_linestyle() == "None"]
    one = climbed[~((climbed["split"] == "two") & (climbed["prior_seed"] == 1))]
    joined = drawings.ladder_panels(one, 1.5, GAPS, "Title", "simple regret").axes[0].lines[0]
    assert list(joined.get_xdata()) == [10]  # the rung with one prior of two is no part of the line
    assert marks == [4, 2] and figure.axes[2].lines[-1].get_ydata()[0] == 1.5

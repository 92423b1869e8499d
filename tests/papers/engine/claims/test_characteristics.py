"""Operating characteristics of the verdicts, by simulation at the numbers of clusters that the benchmarks have.

A null difference must read `holds` in at most 2.5 % of studies and `contradicted` in at most 2.5 %; the interval must
cover the truth in 93 to 97 %. Data sets (folds) differ, their tasks share the fold's deviation, priors differ within a
task; folds share training tasks, which correlates them as Nadeau and Bengio assume. Where several folds test on the
same data sets (`layouts`), tasks share the data set's deviation too; there an interval may cover the truth more often.

A share of tasks is wrong as rarely, but its interval covers the truth more often: it assumes that the tasks of a fold
always agree. Here they do so by a beta-binomial distribution, from not at all to nearly always.
"""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata
from scipy.stats import t as student

from metabo.metrics import Runs, paired_difference
from metabo.metrics.clusters import clusters, variance_of_mean
from metabo.metrics.runs import shared_training
from metabo.papers.engine.claims.comparing import independent_folds
from metabo.papers.engine.claims.intervals import of_ranks
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS, order, share_of_units
from tests.papers.engine.claims.layouts import CROSSED, labels

STUDIES = 2000
RESAMPLES = 400
"""Of each study: fewer than a verdict's 10,000, and unbiased for the width."""
SIZES = {
    "lcbench": ((7, 7, 7, 7, 6), 5),
    "pd1_mini": ((2, 6, 2, 4, 6, 2, 2), 3),
    "pd1_mini, five priors": ((2, 6, 2, 4, 6, 2, 2), 5),
    "mphd_l": ((2,) * 20, 1),
}
"""Tasks of each fold and priors, where every data set (or domain) is in one fold."""
DEVIATIONS = [(1.0, 1.0, 1.0), (0.5, 1.0, 1.0), (0.3, 1.0, 0.5), (1.0, 0.3, 0.5), (0.0, 0.0, 1.0)]
"""Standard deviations over folds, over data sets, and of what is left, where these are crossed."""


def study(rng: np.random.Generator, tasks: Sequence[int], priors: int, rho: float, alone: float = 1.0) -> np.ndarray:
    """Return differences (priors, tasks) of mean 0 for folds of so many `tasks`: correlation `rho` between folds, 0.5
    within one, or less where tasks deviate more (`alone`)."""
    common = rng.normal() * np.sqrt(rho)
    fold = np.repeat(rng.normal(size=len(tasks)) * np.sqrt(1 - rho), tasks)
    task = alone * rng.normal(size=sum(tasks))
    return (common + fold + task)[None] + 0.5 * rng.normal(size=(priors, sum(tasks)))


def decided(
    tasks: Sequence[int], priors: int, rho: float, overlap: float, seed: int, alone: float = 1.0
) -> tuple[float, float, float]:
    """Return the shares of studies that read `holds`, that read `contradicted`, and whose interval covers 0."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(len(tasks)), tasks)
    holds = contradicted = covered = 0
    for _ in range(STUDIES):
        d = study(rng, tasks, priors, rho, alone)
        gap = paired_difference(d, 0 * d, rng, "nested", RESAMPLES, folds=number, overlap=overlap)
        verdict = order("a", gap, clusters=len(tasks)).verdict
        holds += verdict == HOLDS
        contradicted += verdict == CONTRADICTED
        covered += gap.low <= 0 <= gap.high
    return holds / STUDIES, contradicted / STUDIES, covered / STUDIES


NOISE = 3 * np.sqrt(0.025 * 0.975 / STUDIES)
"""Three standard errors of a share of 2.5 %."""


@pytest.mark.parametrize("benchmark", SIZES)
def test_independent_folds(benchmark):
    holds, contradicted, covered = decided(*SIZES[benchmark], rho=0.0, overlap=0.0, seed=1)
    assert max(holds, contradicted) <= 0.025 + NOISE and 0.93 <= covered <= 0.97


@pytest.mark.parametrize("alone", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("priors", [3, 5])
def test_folds_unlike_in_size_are_wrong_as_rarely(priors, alone):
    """40,000 studies at pd1_mini's sizes: with the folds less one as degrees of freedom, which was the rule, more than
    the limit are wrong; with those of the folds' sizes, at most that, within three standard errors."""
    tasks, studies = SIZES["pd1_mini"][0], 40_000
    rng, number = np.random.default_rng(11), np.repeat(np.arange(len(tasks)), tasks)
    fold = rng.normal(size=(studies, len(tasks)))[:, number]
    own = alone * rng.normal(size=(studies, len(number)))
    means = fold + own + 0.5 / np.sqrt(priors) * rng.normal(size=(studies, len(number)))
    value, of = means.mean(axis=1), clusters(len(number), number)
    statistic = value / np.sqrt(variance_of_mean(means, of.unit))
    resampled = value / np.sqrt(of.units / (of.units - 1) * bootstrap_variance(means, tasks))
    wrong = [(np.mean(x < -limit), np.mean(x > limit)) for x, limit in (
        (statistic, student.ppf(0.975, of.freedom)), (resampled, student.ppf(0.975, len(tasks) - 1)),
    )]  # fmt: skip
    assert max(wrong[0]) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / studies)
    assert min(wrong[1]) > 0.0285


def bootstrap_variance(means: np.ndarray, tasks: Sequence[int]) -> np.ndarray:
    """The variance of the mean of resampled folds, as its linear approximation has it: the squared sums of the folds'
    deviations."""
    number = np.repeat(np.arange(len(tasks)), tasks)
    deviations = (means - means.mean(axis=1, keepdims=True)) / means.shape[1]
    return sum(deviations[:, number == fold].sum(axis=1) ** 2 for fold in range(len(tasks)))


def crossed(
    fold: np.ndarray, data_set: np.ndarray, sd: tuple[float, float, float], shared: bool, studies: int = STUDIES
) -> np.ndarray:
    """Return the shares of studies that read `holds`, that read `contradicted`, and whose interval covers 0.

    `shared`: data sets are units beside the folds; else folds alone, which was the rule."""
    rng, found = np.random.default_rng(5), []
    for _ in range(studies):
        d = sd[0] * rng.normal(size=fold.max() + 1)[fold] + sd[1] * rng.normal(size=data_set.max() + 1)[data_set]
        d = (d + sd[2] * rng.normal(size=len(fold)))[None]
        units = min(fold.max(), data_set.max() if shared else fold.max()) + 1
        names = data_set if shared else None
        gap = paired_difference(d, 0 * d, rng, "nested", RESAMPLES, folds=fold, data_sets=names)
        verdict = order("a", gap, clusters=int(units)).verdict
        found.append((verdict == HOLDS, verdict == CONTRADICTED, gap.low <= 0 <= gap.high))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("sd", DEVIATIONS)
@pytest.mark.parametrize("benchmark", CROSSED)
def test_folds_and_data_sets_crossed(benchmark, sd):
    holds, contradicted, covered = crossed(*labels(benchmark), sd, shared=True)
    assert max(holds, contradicted) <= 0.025 + NOISE and 0.93 <= covered <= (0.99 if sd[:2] == (0, 0) else 0.97)


def test_folds_alone_are_too_few_units_where_they_share_data_sets():
    """Six spaces that test on six data sets: the interval over spaces does not see how data sets vary."""
    fold, data_set = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    for sd, most in zip(DEVIATIONS[:3], (0.91, 0.82, 0.65), strict=True):
        assert crossed(fold, data_set, sd, shared=False, studies=600)[2] < most
        assert 0.93 <= crossed(fold, data_set, sd, shared=True, studies=1000)[2] <= 0.97


@pytest.mark.parametrize("folds", [5, 7])
def test_folds_that_share_training_tasks(folds):
    """Each of G folds tests 1/G of the tasks: correlation 1/G, and the correction for it."""
    import pandas as pd

    table = pd.DataFrame({"space": "s", "fold": [f"f{n}" for n in range(folds)]})
    overlap = shared_training(table)
    assert overlap == pytest.approx(folds / (folds - 1))
    holds, contradicted, covered = decided((3,) * folds, 5, rho=1 / folds, overlap=overlap, seed=2)
    # What tasks and priors deviate by is shared by no two folds: the correction makes the interval longer by that, too.
    own, alone = 1 - 1 / folds, 1 / 3 + 0.25 / 15
    longer = np.sqrt((own + alone) * (1 + overlap) / folds / (1 / folds + (own + alone) / folds))
    expected = 1 - 2 * student.sf(student.ppf(0.975, folds - 1) * longer, folds - 1)
    assert 0.95 < expected < 0.97
    assert max(holds, contradicted) <= 0.025 + NOISE and abs(covered - expected) <= 3 * np.sqrt(
        expected * (1 - expected) / STUDIES
    )
    wrong = decided((3,) * folds, 5, rho=1 / folds, overlap=0.0, seed=2)
    assert 1 - wrong[2] > 0.1  # without the correction one study in ten and more is wrong


def test_more_priors_never_narrow_the_interval_of_a_new_task():
    rng = np.random.default_rng(3)
    number = np.repeat(np.arange(5), 3)
    few = study(rng, (3,) * 5, 5, 0.2)
    many = np.concatenate([few] * 20)
    gaps = [paired_difference(d, 0 * d, np.random.default_rng(0), "nested", folds=number) for d in (few, many)]
    assert gaps[1].high - gaps[1].low == pytest.approx(gaps[0].high - gaps[0].low, rel=1e-6)


def test_true_nulls_of_several_parts_rarely_read_contradicted():
    """Thirty parts without a difference: the old rule failed them with probability 1 - 2^-30."""
    from metabo.papers.engine.claims.conjunctions import together
    from metabo.papers.engine.claims.verdicts import UNDECIDED

    rng, found = np.random.default_rng(4), []
    for _ in range(400):
        parts = []
        for _ in range(30):
            d = rng.normal(size=7)
            half = 2.4469 * d.std(ddof=1) / np.sqrt(7)  # Student's t, 6 degrees of freedom
            parts.append(order("a", (d.mean(), d.mean() - half, d.mean() + half), clusters=7))
        found.append(together(parts).verdict)
    assert found.count(HOLDS) == 0 and found.count(CONTRADICTED) / 400 <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 400)
    assert found.count(UNDECIDED) > 370


EVEN = {5: [7] * 5, 6: [6] * 6, 12: [3] * 12, 34: [1] * 34}
UNEVEN = {5: [3, 5, 7, 9, 11], 6: [1, 2, 3, 4, 6, 8], 12: [1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6], 34: [1] * 20 + [2] * 14}
WITHIN = (0.0, 0.3, 0.9)
"""Correlation of two tasks of a fold."""


def shares(rng: np.random.Generator, truth: np.ndarray, within: float, sizes: list[int]) -> np.ndarray:
    """Return how many tasks of each fold are a success: (STUDIES, folds); `truth` (STUDIES, 1)."""
    chance = np.broadcast_to(truth, (STUDIES, len(sizes)))
    if within:
        chance = rng.beta(chance * (1 / within - 1) + 1e-9, (1 - chance) * (1 / within - 1) + 1e-9)
    return rng.binomial(sizes, chance)


def share_decided(counts: np.ndarray, truth: float, units: float, of: int) -> tuple[float, float, float]:
    """Return the shares of studies that read `holds` and `contradicted` at the true share, and that cover it."""
    totals, studies = np.unique(counts.sum(axis=1), return_counts=True)
    found = [share_of_units("a", total / of, units, truth) for total in totals]
    wrong = [studies[[f.verdict == verdict for f in found]].sum() / STUDIES for verdict in (HOLDS, CONTRADICTED)]
    return *wrong, studies[[f.low <= truth <= f.high for f in found]].sum() / STUDIES


def worth(sizes: list[int], overlap: float = 0.0) -> float:
    """Return how many draws folds of these sizes are worth."""
    folds = tuple(fold for fold, size in enumerate(sizes) for _ in range(size))
    tasks = tuple(f"t{number}" for number in range(len(folds)))
    runs = Runs({}, {}, tasks, np.arange(1), frozenset(), folds, overlap=overlap)
    return independent_folds(SimpleNamespace(runs=runs), tasks)


@pytest.mark.parametrize("folds", EVEN)
@pytest.mark.parametrize("sized", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_shares_of_tasks(sized, folds):
    rng, sizes = np.random.default_rng(folds), sized[folds]
    for truth in (0.2, 0.5, 0.8):
        for within in WITHIN:
            counts = shares(rng, np.full((STUDIES, 1), truth), within, sizes)
            holds, contradicted, covered = share_decided(counts, truth, worth(sizes), sum(sizes))
            assert max(holds, contradicted) <= 0.025 + NOISE and covered >= 0.95


@pytest.mark.parametrize("folds", [5, 7, 12])
def test_shares_over_folds_that_share_training_tasks(folds):
    rng, rho = np.random.default_rng(folds), 1 / folds
    for truth in (0.3, 0.5):
        for within in WITHIN:
            common = rng.beta(truth * (1 / rho - 1), (1 - truth) * (1 / rho - 1), (STUDIES, 1))
            counts = shares(rng, common, within, [3] * folds)
            units = worth([3] * folds, folds / (folds - 1))
            holds, contradicted, covered = share_decided(counts, truth, units, 3 * folds)
            assert max(holds, contradicted) <= 0.025 + NOISE and covered >= 0.95


def test_many_folds_decide_a_share():
    """Of 34 tasks with a share of 0.8 most studies say that it is above one half; of five folds none can."""
    rng = np.random.default_rng(0)
    for folds, least in ((34, 0.9), (12, 0.4), (5, 0.0)):
        counts = shares(rng, np.full((STUDIES, 1), 0.8), 0.3, EVEN[folds])
        found = share_decided(counts, 0.5, worth(EVEN[folds]), sum(EVEN[folds]))[0]
        assert found >= least and (folds > 5 or found == 0)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("units", [3, 6, 7, 12])
def test_ranks_of_methods_that_do_not_differ(units, shared):
    """Methods are exchangeable; with Student's t alone up to 12 % of the studies are wrong on one side."""
    rng, studies = np.random.default_rng(units), STUDIES // 2
    rho, overlap = (1 / units, units / (units - 1)) if shared else (0.0, 0.0)
    for methods in (2, 3, 9):
        regrets = np.sqrt(rho) * rng.normal(size=(methods, studies, 1, 1))
        regrets = regrets + np.sqrt(1 - rho) * rng.normal(size=(methods, studies, units, 1))
        ranks = rankdata(regrets + 0.5 * rng.normal(size=(methods, studies, units, 2)), axis=0).mean(axis=-1)
        found = [of_ranks(gaps, methods - 1, overlap=overlap) for gaps in ranks[0] - ranks[1]]
        wrong = [np.mean([f.high < 0 for f in found]), np.mean([f.low > 0 for f in found])]
        assert max(wrong) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / studies)

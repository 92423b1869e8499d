"""The default policy: what it finds where the past helps, what it costs where it does not, and what it never does."""

from dataclasses import replace

import numpy as np
import pytest

from metabo.errors import ConfigError
from metabo.tuner.asking import Told
from metabo.tuner.blend import belief, choose, outcomes, past, points
from tests.tuner.blend import worlds

NOTHING = Told([], [], [])
BEST = (0.62, 0.31, 0.5)
FAILED = float("nan")


@pytest.fixture(scope="module")
def flat():
    return worlds.space(worlds.FLAT)


@pytest.fixture(scope="module")
def same(flat):
    """The past of the very function that is tuned."""
    return learned(worlds.studies(flat, [worlds.bowl(BEST)] * 4, trials=25))


def learned(given):
    return past.conditioned(past.learn(given, 0, 60))


def play(space, known, function, budget, seed=0):
    told = Told([], [], [])
    for _ in range(budget):
        (found,) = choose.suggest(space, known, told, 1, seed)
        told.done.append(found.configuration)
        told.outcomes.append(function(found.configuration))
    return told


def test_a_history_of_the_same_function_gives_its_optimum_at_once(flat, same):
    """The gate for related history: the best past trial first, and the optimum itself at the fifth query. A random
    configuration is 0.25 below the best on the median."""
    for seed in range(3):
        found = play(flat, same, worlds.bowl(BEST), 5, seed).outcomes
        assert found[0] > -0.02 and max(found) > -0.003


SEEDS = 10
LIMITS = {5: 0.3, 12: 0.15}
"""The most that a useless past may cost after so many queries, on the mean over the seeds: regret beyond a plain GP's,
where 0 is the best of the function and 1 its median."""


def cost(flat, history):
    """Return what a history costs after each number of queries in `LIMITS`. Each seed has its own function, and studies
    that are other functions ("unrelated") or its negative ("opposite")."""
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        function, *others = (worlds.waves(rng) for _ in range(5))
        given = {"unrelated": others, "opposite": [lambda c, f=function: -f(c)] * 4}[history]
        known = learned(worlds.studies(flat, given, seed=seed))
        y = np.array([function(c) for c in flat.at(rng.random((3000, 3)))])
        ours, plain = (play(flat, one, function, max(LIMITS), seed).outcomes for one in (known, None))
        found.append([(max(plain[:n]) - max(ours[:n])) / (y.max() - np.median(y)) for n in LIMITS])
    return dict(zip(LIMITS, np.mean(found, axis=0).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("history", ["unrelated", "opposite"])
def test_a_useless_history_costs_little(flat, history):
    """The gate for useless history. The next two tests show that it has teeth."""
    assert {n: shown for n, shown in cost(flat, history).items() if shown > LIMITS[n]} == {}


@pytest.mark.slow
def test_the_gate_stops_a_policy_that_trusts_the_past_fully(flat, monkeypatch):
    monkeypatch.setattr(belief, "TRUST", ((1.0, 1.0),))
    monkeypatch.setattr(belief, "PLAIN", 1e-30)
    assert cost(flat, "opposite")[12] > 2 * LIMITS[12]


@pytest.mark.slow
def test_the_gate_stops_a_policy_that_begins_with_the_past_alone(flat, monkeypatch):
    monkeypatch.setattr(choose, "RECALL", (0, 1, 2, 3))
    monkeypatch.setattr(choose, "COVER", ())
    assert cost(flat, "opposite")[5] > LIMITS[5]


def test_the_first_trials_take_turns_between_the_past_and_the_space(flat, same):
    told = play(flat, same, worlds.bowl(BEST), 4)
    elites = flat.at(same.past.elites)
    assert [any(flat.same(c, one) for one in elites) for c in told.done] == [True, False, True, False]
    covering = choose.covering(choose.Untaken(flat, points.of(flat, told.done[:1])), 0)
    assert flat.same(told.done[1], flat.at(covering.units)[0])


def test_a_past_that_predicts_badly_loses_its_weight(flat, same):
    rng = np.random.default_rng(1)
    done = flat.at(rng.random((8, 3)))
    model = belief.Model(flat, points.owners(flat), same)
    weights = []
    for sign in (1.0, -1.0):
        z = np.array([sign * worlds.bowl(BEST)(c) for c in done])
        seen = belief.seen_of(points.of(flat, done), z)
        shown = belief.predicted(model, seen, seen.points, belief.fitted(model, seen))
        weights.append(shown.weight.reshape(len(belief.TRUST) + 1, -1).sum(axis=1)[1:-1].sum())
    assert weights[0] > 0.6 and weights[1] < 0.1


def test_equal_calls_give_equal_answers_and_another_seed_others(flat, same):
    told = play(flat, same, worlds.bowl(BEST), 5)
    first = choose.suggest(flat, same, told, 2)
    assert first == choose.suggest(flat, same, told, 2)
    assert first != choose.suggest(flat, same, told, 2, seed=1)


@pytest.mark.parametrize("change", [lambda y: 1e4 * y + 3.0, lambda y: 1e-5 * y])
def test_the_unit_of_the_new_study_does_not_matter(flat, same, change):
    one, other = (play(flat, same, f, 7) for f in (worlds.bowl(BEST), lambda c: change(worlds.bowl(BEST)(c))))
    for mine, theirs in zip(one.done, other.done, strict=True):
        np.testing.assert_allclose(list(mine.values()), list(theirs.values()), atol=1e-4)


def test_suggestions_are_valid_distinct_and_new_in_a_mixed_space():
    space = worlds.space(worlds.MIXED, goal="minimise", scale="log")

    def function(c):
        return float(np.exp(abs(np.log10(c["rate"]) + 2) + (c["solver"] == "sgd") * (0.5 - (c["momentum"] or 0.0))))

    known = learned(worlds.studies(space, [function] * 3))
    told = play(space, known, function, 6)
    found = choose.suggest(space, known, told._replace(running=[told.done[0]]), 4)
    shown = [*told.done, *(one.configuration for one in found)]
    assert all(space.used(c) == c == space.read({k: v for k, v in c.items() if v is not None}) for c in shown)
    assert not any(space.same(one, other) for i, one in enumerate(shown) for other in shown[:i])
    assert all(one.low <= one.median <= one.high and one.low > 0 for one in found)


def test_running_trials_and_failures_count(flat, same):
    told = play(flat, same, worlds.bowl(BEST), 5)
    (after,) = choose.suggest(flat, same, told)
    (other,) = choose.suggest(flat, same, told._replace(running=[after.configuration]))
    assert not flat.same(after.configuration, other.configuration)
    failed = told._replace(outcomes=[*told.outcomes[:-1], FAILED])
    assert choose.suggest(flat, same, failed)[0].configuration != after.configuration
    for equal in ([FAILED] * 5, [1.0] * 5):  # nothing to learn from: it goes on all the same
        (found,) = choose.suggest(flat, same, told._replace(outcomes=equal))
        assert not any(flat.same(found.configuration, one) for one in told.done)


def test_one_success_among_failures_is_better_than_they_are(flat):
    """Whichever it is: the model predicts most there, and another success makes another suggestion."""
    done, found = points.at(flat, np.random.default_rng(4).random((5, 3))), []
    model = belief.Model(flat, points.owners(flat), None)
    for good in range(5):
        y = np.where(np.arange(5) == good, 1.0, FAILED)
        seen = belief.seen_of(done, outcomes.scale_of(y).z(y))
        mean = belief.mean_of(belief.predicted(model, seen, done, belief.fitted(model, seen)))
        assert np.argmax(mean) == good
        found += choose.suggest(flat, None, Told(flat.at(done.units), y.tolist(), []))
    assert len({tuple(one.configuration.values()) for one in found}) == 5


def test_predictions_are_in_the_unit_of_the_outcome(flat, same):
    (first,) = choose.suggest(flat, same, NOTHING)  # quantiles of the past
    assert -1.0 < first.low <= first.median <= first.high <= 0.0
    told = play(flat, same, lambda c: 100.0 + 10.0 * worlds.bowl(BEST)(c), 8)
    (found,) = choose.suggest(flat, same, told)
    assert 95.0 < found.low < found.median < found.high < 105.0
    assert all(np.isnan(one) for one in choose.suggest(flat, None, NOTHING)[0][1:])


def test_before_outcomes_differ_the_interval_is_that_of_studies_of_the_past(flat):
    """Five studies of one function at five levels. A good point is good in each: by the ranks of all outcomes together
    it would be as good as the best of the best study."""
    levels = [10.0, 11.0, 12.0, 13.0, 14.0]
    known = learned(worlds.studies(flat, [lambda c, at=at: at + worlds.bowl(BEST)(c) for at in levels], trials=25))
    (first,) = choose.suggest(flat, known, NOTHING)
    assert first.low < 10.0 and 11.8 < first.median < 12.0 and 13.7 < first.high <= 14.0
    told = Told([first.configuration], [20.0], [])
    (second,) = choose.suggest(flat, known, told)
    assert second.low < 14.0 and 19.0 < second.high < 21.0, "half of it as in the past, half at the level that was told"
    told = Told([first.configuration], [FAILED], [])
    assert choose.suggest(flat, known, told)[0].high <= 14.0, "a failure tells no level"


def test_a_prior_of_an_older_version_gives_an_interval(flat, same, tmp_path):
    """It has the quantiles of all studies together, in one row."""
    older = same.past._replace(quantiles=np.quantile(same.past.quantiles, outcomes.LEVELS))
    past.save(tmp_path / "prior.npz", older)
    known = past.conditioned(past.load(tmp_path / "prior.npz"))
    assert known.past.quantiles.shape == (1, len(outcomes.LEVELS))
    (first,) = choose.suggest(flat, known, NOTHING)
    assert first.low <= first.median <= first.high <= 0.0


def test_the_interval_has_the_noise_of_the_prior_that_has_the_weight(flat, same, monkeypatch):
    """Where the plain GP is believed, its noise counts and not that of the past; and noise moves no choice."""
    rng = np.random.default_rng(3)
    told = play(flat, None, lambda c: float(np.sin(9 * c["a"]) + 0.3 * rng.normal()), 12)
    monkeypatch.setattr(belief, "TRUST", ((0.0, 1e-9),))
    found = choose.suggest(flat, same, told, 3)
    noisy = same._replace(past=same.past._replace(numbers=same.past.numbers * [1, 1, 100]))
    np.testing.assert_allclose(choose.suggest(flat, noisy, told)[0][1:], found[0][1:], rtol=1e-4)
    made = belief.predict
    monkeypatch.setattr(belief, "predict", lambda *a: (one := made(*a))._replace(noise=100 * one.noise))
    wider = choose.suggest(flat, same, told, 3)
    assert [one.configuration for one in wider] == [one.configuration for one in found]
    assert all(one.high - one.low > 2 * (other.high - other.low) for one, other in zip(wider, found, strict=True))


def test_a_finite_space_is_used_up_and_then_said():
    space = worlds.space(worlds.GRID)
    known = learned(worlds.studies(space, [lambda c: c["a"] + (c["b"] == "x")] * 2))
    told = play(space, known, lambda c: float(c["a"] + (c["b"] == "x")), 10)
    assert choose.suggest(space, known, told, 2)
    with pytest.raises(ConfigError, match=r"2 configurations are left .* 3 are asked for"):
        choose.suggest(space, known, told, 3)


def test_of_many_trials_the_best_and_the_latest_are_known(flat, monkeypatch):
    monkeypatch.setattr(belief, "KNOWN", 6)
    monkeypatch.setattr(belief, "RECENT", 4)
    z = np.array([0.0, 5.0, 1.0, 4.0, 2.0, 0.1, 0.2, 0.3, 0.4])
    done = flat.at(np.random.default_rng(0).random((9, 3)))
    assert belief.seen_of(points.of(flat, done), z).z.tolist() == [5.0, 4.0, 0.1, 0.2, 0.3, 0.4]


def test_a_prediction_of_nothing_has_no_sign(flat):
    """-0 reads oddly in a line of text."""
    less = replace(flat, maximise=False)
    assert [f"{value:g}" for value in choose.as_told((0.0, -1.5, 0.0), less)] == ["0", "0", "1.5"]

"""Every suggestion lies in its space and survives being printed, told and read, to the last digit."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from metabo.data.history import description
from metabo.data.history import told as history
from metabo.errors import ConfigError, DataError, MetaboError
from metabo.tuner import commands, learning, pool, store, trials
from metabo.tuner.blend import choose, past
from metabo.tuner.study import Study
from metabo.tuner.suggest import Prior, Suggestion, Told, suggest
from tests.tuner.blend import worlds

SIZES = st.integers(-305, 305).map(lambda power: float(f"1e{power}"))
NUMBERS = st.one_of(st.floats(-1e300, 1e300), SIZES, SIZES.map(lambda size: -size), st.integers(-10, 10))
WHOLES = st.one_of(st.integers(-20, 20), st.integers(-(2**53), 2**53), st.sampled_from([4 * 10**9, 2**53, 10**30]))
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["64", " sgd ", "sgd", "True", "nan", "1e3", '"64"', "failed"]))
LEVEL = st.one_of(TEXTS, TEXTS, WHOLES, NUMBERS, st.booleans(), st.sampled_from([64, 1000.0]))


def numeric(kind, bounds):
    """A parameter of any range; on a log scale where that is possible."""

    def entry(ends, log):
        low, high = sorted(ends)
        return {"type": kind, "low": low, "high": high} | ({"scale": "log"} if log and low > 0 else {})

    return st.builds(entry, st.lists(bounds, min_size=2, max_size=2, unique=True), st.booleans())


CHOICES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["ordinal", "categorical"]),
        "choices": st.lists(LEVEL, min_size=2, max_size=5, unique_by=lambda one: (isinstance(one, str), one)),
    }
)
ANY = st.one_of(CHOICES, numeric("float", NUMBERS), numeric("int", WHOLES))


def described(first, second, third, needs):
    """The space with these parameters, the second used only where the first has one of its choices; None: refused."""
    if needs is not None:
        second = second | {"when": {"a": first["choices"][needs % len(first["choices"])]}}
    data = {"name": "s", "study": "study", "outcome": {"column": "y", "goal": "minimise"},
            "parameters": {"a": first, "b": second, "c": third}}  # fmt: skip
    try:
        return description.of_mapping(data, "s")
    except ConfigError:
        return None


def equal(one, other):
    """Equal, and of the same types: Python takes True for 1 and 1 for 1.0."""
    return one == other and all(type(other[name]) is type(value) for name, value in one.items())


def assert_survives(space, configurations, folder):
    """Print configurations, fill in outcomes, read the file, tell it, and read what was kept."""
    printed = commands._csv(space, [Suggestion(one, math.nan, math.nan, math.nan) for one in configurations])
    path = folder / "todo.csv"
    path.write_text("\n".join([printed[0], *(f"{line}0.5" for line in printed[1:])]) + "\n", encoding="utf-8")
    told = history.read_told(path, space)
    assert len(printed) == len(told) + 1 == len(configurations) + 1
    for one, row in zip(configurations, told, strict=True):
        assert equal(space.read(one), one) and equal(row.configuration, one) and row.outcome == 0.5
    running = [trials.trial(number, one, "running", None) for number, one in enumerate(configurations)]
    results = [trials.Result(row.configuration, row.outcome, "") for row in told]
    index = trials.TrialIndex(space, running)
    trials.recorded(index, results)
    kept = index.trials
    assert [one["state"] for one in kept] == ["done"] * len(configurations)  # each ended its own trial
    store.write_trials(folder, "s", kept, space)
    again = store.read_trials(folder, "s", space)
    assert all(equal(a["parameters"], b["parameters"]) for a, b in zip(again, kept, strict=True))


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(first=CHOICES, second=ANY, third=ANY, needs=st.none() | st.integers(0, 4), seed=st.integers(0, 2**32 - 1))
def test_every_candidate_survives_print_tell_and_read(first, second, third, needs, seed, tmp_path, monkeypatch):
    """What is suggested is a candidate, and distinct candidates stay distinct."""
    monkeypatch.setattr(pool, "SPREAD", 64)
    monkeypatch.setattr(pool, "NEAR", 64)
    assume((space := described(first, second, third, needs)) is not None)
    rng = np.random.default_rng(seed)
    made = pool.make(space, [], 16, space.at(rng.random((1, 3))), [seed])
    rows = rng.permutation(np.flatnonzero(made.mask))[:6]
    assert_survives(space, [made.configurations[row] for row in rows], tmp_path)


def extreme():
    """A space of all that is hard to print: 1e±30, billions, and choices that look alike."""
    parameters = {
        "rate": {"type": "float", "low": 1e-300, "high": 1e300, "scale": "log"},
        "size": {"type": "float", "low": -1e30, "high": 1e30},
        "count": {"type": "int", "low": 1, "high": 4_000_000_000, "scale": "log"},
        "mixed": {"type": "categorical", "choices": [64, "64", " sgd ", "sgd"]},
        "share": {"type": "float", "low": 0.0, "high": 1e-30, "when": {"mixed": [64, " sgd "]}},
    }
    outcome = {"column": "y", "goal": "maximise"}
    return description.of_mapping({"name": "s", "study": "d", "outcome": outcome, "parameters": parameters}, "s")


@pytest.mark.parametrize("method", ["rand", "stboh"])
def test_suggestions_of_an_extreme_space_survive(method, tmp_path):
    """With outcomes as large as may be told, too."""
    space = extreme()
    spec = learning.specification(method, 0)
    spec["policy"] = spec["policy"] | ({"refit_steps": 2} if "refit_steps" in spec["policy"] else {})
    stored, _ = learning.learn(spec, space.space, [])
    prior = Prior(space, None, spec, stored.of(0, 0))
    found = [one.configuration for one in suggest(prior, Told([], [], []), 5)]
    assert_survives(space, found, tmp_path)
    more = suggest(prior, Told(found[:3], [1e300, -1e300, math.nan], found[3:]), 3)
    assert not any(one.configuration in found for one in more)
    assert_survives(space, [one.configuration for one in more], tmp_path)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(first=CHOICES, second=ANY, third=ANY, needs=st.none() | st.integers(0, 4), seed=st.integers(0, 2**32 - 1))
def test_every_suggestion_of_the_default_survives(first, second, third, needs, seed, tmp_path, monkeypatch):
    """The four first trials, two of them recalled from past studies, and those of the model; each is new."""
    for name, size in (("SPREAD", 64), ("NEAR", 32), ("CLOSER", 16)):
        monkeypatch.setattr(choose, name, size)
    assume((space := described(first, second, third, needs)) is not None)
    rng = np.random.default_rng(seed)
    learned = past.learn(worlds.studies(space, [lambda c: rng.normal()] * 2, trials=6, seed=seed), 0, 2)
    past.save(tmp_path / "prior.npz", learned)
    known, told, found = past.conditioned(past.load(tmp_path / "prior.npz")), Told([], [], []), []
    try:
        for number in range(6):
            found += choose.suggest(space, known, told, 1, seed)
            told.done.append(found[-1].configuration)
            told.outcomes.append(math.nan if number == 3 else float(rng.normal()))
        found += choose.suggest(space, known, told, 2, seed)
    except ConfigError as error:
        assert "configurations are left" in str(error)  # a small space
    assert_survives(space, [one.configuration for one in found], tmp_path)
    assert not any(
        space.same(one.configuration, other.configuration) for n, one in enumerate(found) for other in found[:n]
    )


def test_suggestions_of_the_default_survive_in_an_extreme_space(tmp_path):
    space, rng = extreme(), np.random.default_rng(0)
    studies = worlds.studies(space, [lambda c: 1e300 * rng.normal() / 5] * 3)
    known, told = past.conditioned(past.learn(studies, 0, 5)), Told([], [], [])
    for outcome in (1e300, -1e300, math.nan, 0.0, 1e-300):
        (one,) = choose.suggest(space, known, told)
        told.done.append(one.configuration)
        told.outcomes.append(outcome)
    assert_survives(space, told.done, tmp_path)
    for recalled in (told.done[0], told.done[2]):
        assert any(equal(recalled, one) for trials in studies.configurations.values() for one in trials)


@pytest.mark.parametrize("outcome", [1e301, -1.7e308])
def test_an_outcome_of_infinite_differences_is_refused(folder, outcome):
    tuned = Study(folder)
    tuned.description = SimpleNamespace(**{**vars(tuned.description), "log": False, "read": tuned.description.read})
    with pytest.raises(DataError, match=r"is larger than 1e\+300 in size; tell it in another unit, or that the trial"):
        tuned.tell({"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}, outcome)
    assert tuned.trials == []


def test_billions_stay_apart():
    """1 and 3 on [1, 4e9] are the same point to nine digits, and two trials."""
    parameters = {"n": {"type": "int", "low": 1, "high": 4_000_000_000}}
    space = description.of_mapping(extreme().source | {"parameters": parameters}, "s")
    results = [trials.Result({"n": n}, 0.5, "") for n in (1, 3, 4_000_000_000, 3_999_999_999, 1)]
    kept, _ = trials.recorded(trials.TrialIndex(space), results)
    assert [one["parameters"]["n"] for one in kept] == [1, 3, 4_000_000_000, 3_999_999_999]
    with pytest.raises(MetaboError, match=r"n 2\) was never told"):
        trials.corrected(kept, [trials.Result({"n": 2}, 0.1, "")], space)


@example(rates=[9.88874228327539e-45], shift=0.0, which=0, edge=False, single=True)
@example(rates=[1.17549438e-38], shift=-1e-9, which=0, edge=False, single=True)
@example(rates=[0.0], shift=0.0, which=0, edge=False, single=False)
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    rates=st.lists(st.floats(0.0, 1e30), min_size=1, max_size=6),
    shift=st.floats(-1.2e-9, 1.2e-9),
    which=st.integers(0, 5),
    edge=st.booleans(),
    single=st.booleans(),
)
def test_a_trial_is_found_by_its_configuration_as_by_a_look_at_all(rates, shift, which, edge, single):
    """Numbers that lie at the edge of two of the index's places, too."""
    space = description.of_mapping(extreme().source, "s")
    if edge:
        rates = [float(f"{rate:.5e}".replace("e", "5e")) * (1 - shift / 2) for rate in rates]
    known = [{"rate": 1.0, "size": rate, "count": 1, "mixed": "sgd", "share": None} for rate in rates]
    index = trials.TrialIndex(space, [trials.trial(number, one, "done", 0.1) for number, one in enumerate(known)])
    size = rates[which % len(known)] * (1 + shift)
    asked = known[which % len(known)] | {"size": float(np.float32(rates[which % len(known)])) if single else size}
    expected = [number for number, one in enumerate(known) if space.same(one, asked)]
    assert [one["number"] for one in index.same(asked)] == expected
    assert index.same(asked | {"count": 2}) == []

"""The prior inside a real Optuna study."""

import json
import pickle
import shutil
import warnings

import numpy as np
import optuna
import pytest
import yaml
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metabo.data.history.fields import Field
from metabo.errors import ConfigError
from metabo.tuner import asked
from metabo.tuner.asking import Range
from metabo.tuner.samplers import ATTRIBUTE, PriorSampler
from metabo.tuner.study import Study, pretrain
from metabo.tuner.suggest import Told, suggest
from tests.tuner import workers
from tests.tuner.conftest import HEADER, SPACE, error, rows, write

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


def objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 6)
    trial.suggest_categorical("batch", [16, 32, 64])
    if trial.suggest_categorical("optimiser", ["sgd", "adam"]) == "sgd":
        trial.suggest_float("momentum", 0.0, 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it is drawn at random, which is told once
        trial.suggest_float("not in the prior", -1.0, 1.0)
    if trial.number == 1:
        raise optuna.TrialPruned
    if trial.number == 2:
        raise ValueError("broken")
    return error(rate, layers, -2.0)


def claimed(trial):
    """Return what the prior suggests for a trial, before the objective asks for anything."""
    assert trial.relative_params == {}
    return trial.storage.get_trial_system_attrs(trial._trial_id)[ATTRIBUTE]


@pytest.fixture(scope="module")
def tuned(trained):
    study = optuna.create_study(direction="minimize", sampler=PriorSampler(trained))
    study.optimize(objective, n_trials=5, catch=(ValueError,))
    return study


def test_every_trial_is_what_the_prior_suggests(tuned, trained):
    """Trial for trial the same as asking the prior, with failed and pruned trials told as failed."""
    prior, done, outcomes = Study(trained).prior, [], []
    for trial in tuned.trials:
        (expected,) = suggest(prior, Told(done, outcomes, []), 1)
        own = {name: value for name, value in trial.params.items() if name != "not in the prior"}
        assert own == {name: value for name, value in expected.configuration.items() if value is not None}
        done.append(expected.configuration)
        outcomes.append(trial.value if trial.state.name == "COMPLETE" else float("nan"))
    assert [trial.state.name for trial in tuned.trials] == ["COMPLETE", "PRUNED", "FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize("seed", [-1, 1.5, None, "2"])
def test_a_seed_that_is_none_is_refused(trained, seed):
    with pytest.raises(ConfigError, match="a seed is a whole number from 0"):
        PriorSampler(trained, seed=seed)


def test_an_objective_that_asks_for_nothing_of_the_space_is_told_so(trained):
    """The first trials are drawn at random, with a warning; then no parameter of the space is in use, and nothing is
    left to suggest."""
    study = optuna.create_study(direction="minimize", sampler=PriorSampler(trained))
    said = r"asks for no parameter of the prior's space '.*': it asks for rate, the space has learning_rate, layers"
    with warnings.catch_warnings(), pytest.raises(ConfigError, match=said):
        warnings.simplefilter("ignore", UserWarning)  # each parameter without a value is told once
        study.optimize(lambda trial: trial.suggest_float("rate", 0.0, 1.0), n_trials=5)


def test_it_starts_where_past_studies_were_good(tuned):
    assert tuned.trials[0].value < 2 * error(0.01, 3, -2.0)
    assert all(-1 <= trial.params["not in the prior"] <= 1 for trial in tuned.trials)


def test_running_and_foreign_trials(trained):
    study = optuna.create_study(direction="minimize", sampler=PriorSampler(trained))
    first, second = study.ask(), study.ask()
    rates = [trial.suggest_float("learning_rate", 1e-4, 1.0, log=True) for trial in (first, second)]
    assert rates[0] != rates[1]  # the second one knows that the first is running
    study.enqueue_trial({"learning_rate": 5.0, "layers": 1})  # outside the space: not told
    study.optimize(lambda trial: trial.suggest_float("learning_rate", 1e-4, 10.0, log=True), n_trials=1)
    sampler = PriorSampler(trained)
    with pytest.warns(UserWarning) as caught:
        assert sampler._told(study.get_trials(), 99).done == []
    assert [str(one.message) for one in caught] == [
        "trial 2 is not used: parameter 'learning_rate': 5.0 is outside [0.0001, 1]; give a number from 0.0001 to 1, "
        "or change the parameter in space.yaml (`when` says with which choices of another one it is used) and learn "
        "the prior again"
    ]
    sampler._told(study.get_trials(), 99)  # no second warning: it would raise


@pytest.fixture
def storages(tmp_path):
    """Return a function that opens a storage of a kind, the same one each time."""

    def opened(kind):
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / 'optuna.db'}"
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "optuna.log")))

    return opened


def everything(trial):
    """Ask for all parameters, and take no time, so that workers ask at once."""
    trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    trial.suggest_int("layers", 1, 6)
    trial.suggest_categorical("batch", [16, 32, 64])
    if trial.suggest_categorical("optimiser", ["sgd", "adam"]) == "sgd":
        trial.suggest_float("momentum", 0.0, 0.9)
    return float(trial.number + 1)


def distinct(study, count):
    """Tell that a study has so many trials, all finished, no two with the same configuration."""
    states = [trial.state.name for trial in study.trials]
    return (
        states == ["COMPLETE"] * count and len({str(sorted(trial.params.items())) for trial in study.trials}) == count
    )


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_threads_never_repeat_a_suggestion(blended, storages, kind):
    study = optuna.create_study(storage=storages(kind), direction="minimize", sampler=PriorSampler(blended))
    study.optimize(everything, n_trials=16, n_jobs=8)
    assert distinct(study, 16)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "asks"), [("sqlite", "all"), ("journal", "all"), ("journal", "less")])
def test_processes_never_repeat_a_suggestion(tmp_path, kind, asks):
    """`make test-workers` does the same for minutes, with threads too."""
    workers.learn(tmp_path)
    counts = workers.share(kind, "processes", tmp_path, 3, 4, asks)
    assert counts.trials >= 4 and (counts.repeated, counts.lost) == (0, 0)


def test_repeated_and_lost_trials_are_counted(tmp_path):
    """One configuration twice; a trial that never ended, one that is not in the storage, one with another value."""
    study = optuna.create_study(direction="minimize")
    for rate in (0.1, 0.1, 0.2):
        study.enqueue_trial(
            {"batch_size": 32, "learning_rate": rate, "one_minus_momentum": 0.1, "decay_power": 1, "decay_steps": 0.5}
        )
        study.optimize(workers.ask_all, n_trials=1)
    noted = [[t.number, workers.configuration(t.params), t.value] for t in study.trials]
    (tmp_path / "finished.1").write_text("".join(json.dumps(line) + "\n" for line in noted))
    assert workers.count(study, tmp_path) == (3, 1, 0)
    noted[0][2] = -1.0
    noted.append([7, noted[2][1], 0.2])
    (tmp_path / "finished.1").write_text("".join(json.dumps(line) + "\n" for line in noted))
    study.ask()
    assert workers.count(study, tmp_path) == (4, 1, 3)


def test_who_finds_its_suggestion_taken_takes_another_one(blended, monkeypatch):
    """Two workers that read the same trials before either wrote: the one that writes last sees it."""
    study = optuna.create_study(direction="minimize")
    first, second = PriorSampler(blended), PriorSampler(blended)
    others, told = [], PriorSampler._told

    def late(sampler, trials, number):
        found = told(sampler, trials, number)
        if sampler is second and not others:  # meanwhile the other one suggests
            others.append(claimed(study.ask()))
        return found

    monkeypatch.setattr(PriorSampler, "_told", late)
    study.sampler = first
    waiting = optuna.create_study(direction="minimize", sampler=second)
    waiting._storage, waiting._study_id = study._storage, study._study_id
    trial = waiting.ask()
    chosen = claimed(trial)
    assert len(others) == 1 and others[0] != chosen
    assert study.trials[trial.number].system_attrs["metabo:suggested"] == chosen


def test_a_narrower_range_is_filled_by_the_prior_and_told(blended):
    """Not by a random draw, although it is first known when it is asked for; and the model is told what was tried."""
    sampler = PriorSampler(blended)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    trial = study.ask()
    chosen = claimed(trial)
    narrow = (min(chosen["learning_rate"] * 2, 0.5), 1.0)
    with pytest.warns(UserWarning, match=r"'learning_rate': the objective asks for FloatDistribution.*what both have"):
        rate = trial.suggest_float("learning_rate", *narrow, log=True)
    assert narrow[0] <= rate <= 1 and rate == pytest.approx(claimed(trial)["learning_rate"])
    low, high = (1, 5) if claimed(trial)["layers"] == 6 else (claimed(trial)["layers"] + 1, 6)
    with pytest.warns(UserWarning, match="'layers': the objective asks for IntDistribution"):
        layers = trial.suggest_int("layers", low, high)
    assert low <= layers <= high and claimed(trial)["layers"] == layers
    assert claimed(trial)["learning_rate"] == pytest.approx(rate)  # which cannot be taken back
    study.ask().suggest_float("learning_rate", *narrow, log=True)  # no second warning: it would raise
    assert sampler._configuration(study.get_trials()[0])["learning_rate"] == rate


def narrower(trial):
    """Ask for less than the space has, and take no time."""
    rate = trial.suggest_float("learning_rate", 0.1, 0.4, log=True)
    layers = trial.suggest_int("layers", 5, 6)
    return error(rate, layers, -2.0) + 0.01 * trial.suggest_float("momentum", 0.0, 0.4, step=0.2)


@pytest.fixture(scope="module")
def simple(tmp_path_factory):
    """A folder with a prior of three parameters that are always in use."""
    place = tmp_path_factory.mktemp("simple")
    parameters = yaml.safe_load(SPACE)["parameters"]
    parameters = {name: parameters[name] for name in ("learning_rate", "layers")}
    parameters["momentum"] = {"type": "ordinal", "choices": [0.0, 0.2, 0.4, 0.6]}
    space = yaml.safe_load(SPACE) | {"parameters": parameters}
    (place / "space.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    history = [[row[0], *row[1:3], str((0.0, 0.2, 0.4, 0.6)[i % 4]), row[-1]] for i, row in enumerate(rows())]
    table = write(place / "history.csv", ["dataset", *parameters, "error"], history)
    return pretrain(table, place / "space.yaml", place / "prior").folder


class TestNarrowerRanges:
    """Candidates are among what the objective asks for, so that nothing is moved onto what another trial has."""

    @pytest.mark.filterwarnings("ignore:parameter")
    @pytest.mark.parametrize("jobs", [1, 8])
    def test_no_two_trials_are_the_same(self, simple, jobs):
        """Though past studies were good far below the range."""
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(simple))
        study.optimize(narrower, n_trials=16, n_jobs=jobs)
        assert distinct(study, 16)
        assert len(PriorSampler(simple)._told(study.get_trials(), 99).done) == 16

    @pytest.mark.filterwarnings("ignore:parameter")
    def test_the_last_configuration_is_found_and_then_it_ends(self, simple):
        """Of a grid in a space with numbers: 3 x 2 x 2."""
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(simple))

        def grid(trial):
            rate = trial.suggest_float("learning_rate", 0.2, 0.6, step=0.2)
            layers = trial.suggest_categorical("layers", [2, 5])
            return error(rate, layers, -2.0) + trial.suggest_int("momentum", 0, 1)

        study.optimize(grid, n_trials=6)  # of the choices of momentum 0 alone is a whole number
        assert distinct(study, 6)
        with pytest.raises(ConfigError, match=r"no configuration is left .*: the space has been tried out; stop"):
            study.optimize(grid, n_trials=1)

    def test_two_workers_compare_what_they_return(self, simple):
        """Both claimed before anybody knew the range, and are moved to the same bound."""
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(simple))
        given = []
        for trial in [study.ask(), study.ask()]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                given.append((trial.suggest_int("layers", 6, 6), trial.suggest_float("learning_rate", 0.3, 0.6)))
        assert given[0] != given[1] and all(layers == 6 and 0.3 <= rate <= 0.6 for layers, rate in given)

    def test_a_grid_is_matched_up_to_rounding(self, simple):
        """Optuna's 0.6000000000000001 is the space's 0.6; what is alike is not warned of."""
        sampler = PriorSampler(simple)
        study = optuna.create_study(direction="minimize", sampler=sampler)

        def whole(trial):
            momentum = trial.suggest_float("momentum", 0.0, 0.6, step=0.2)
            return 1.0 + momentum * trial.suggest_int("layers", 1, 6) + trial.suggest_float("learning_rate", 1e-4, 1.0)

        study.optimize(whole, n_trials=8)
        assert distinct(study, 8) and len({one.params["momentum"] for one in study.trials}) > 1
        told = sampler._told(study.get_trials(), 99)
        assert len(told.done) == 8 and {one["momentum"] for one in told.done} <= {0.0, 0.2, 0.4, 0.6}
        trial = optuna.trial.create_trial(
            params={"learning_rate": 0.1, "layers": 2, "momentum": 0.2 * 3}, value=1.0,
            distributions={"learning_rate": FloatDistribution(0.0, 1.0), "layers": IntDistribution(1, 6),
                           "momentum": FloatDistribution(0.0, 1.0)},
        )  # fmt: skip
        assert sampler._told([trial], 99).done == [{"learning_rate": 0.1, "layers": 2, "momentum": 0.6}]


ORDINAL = Field("x", "ordinal", choices=(16, 32, 64, 128))
TENTHS = Field("x", "ordinal", choices=(0.1, 0.2, 0.3, 0.4))
WHOLE, REAL = Field("x", "int", 1, 8), Field("x", "float", 1e-5, 1.0, log=True)


@pytest.mark.parametrize(
    ("field", "to", "expected"),
    [(ORDINAL, IntDistribution(16, 100), {16: 16, 32: 32, 64: 64}),
     (ORDINAL, IntDistribution(10, 100, step=10), {}),
     (TENTHS, FloatDistribution(0.1, 0.4, step=0.1), {0.1: 0.1, 0.2: 0.2, 0.3: 0.1 + 0.2, 0.4: 0.4}),
     (TENTHS, CategoricalDistribution([0.1, 0.1 + 0.2, 0.35]), {0.1: 0.1, 0.3: 0.1 + 0.2}),
     (Field("x", "ordinal", choices=(1e-14, 1e-13)), CategoricalDistribution([1e-13, 1e-12]), {1e-13: 1e-13}),
     (WHOLE, FloatDistribution(0.5, 3.5), Range(1, 3, 1)), (WHOLE, IntDistribution(2, 20, step=3), Range(2, 8, 3)),
     (WHOLE, FloatDistribution(0.0, 6.0, step=1.5), Range(3, 6, 3)),
     (WHOLE, FloatDistribution(2.25, 3.75, step=0.5), {}),
     (WHOLE, CategoricalDistribution([2, 9, None, "a"]), {2: 2}), (WHOLE, IntDistribution(9, 12), {}),
     (REAL, FloatDistribution(1e-4, 10.0), Range(1e-4, 1.0)), (REAL, FloatDistribution(2.0, 5.0), {}),
     (REAL, IntDistribution(0, 5), Range(1, 1, 1)),
     (REAL, FloatDistribution(0.0, 2.0, step=0.5), Range(0.5, 1.0, 0.5))],
)  # fmt: skip
def test_what_objective_and_space_both_have(field, to, expected):
    assert asked.both(field, to) == expected


@pytest.mark.parametrize(
    ("number", "to", "expected"),
    [(0.3, FloatDistribution(0.0, 1.0, step=0.25), 0.25), (7.0, IntDistribution(2, 5), 5),
     (3.4, IntDistribution(1, 6), 3), (4.0, IntDistribution(1, 6, step=5), 6),
     (-1.0, FloatDistribution(0.1, 1.0, log=True), 0.1)],
)  # fmt: skip
def test_a_number_moves_to_the_nearest_one_that_is_asked_for(number, to, expected):
    found = asked.moved(number, to)
    assert found == expected and to._contains(found) and isinstance(found, int) == isinstance(to, IntDistribution)


def test_a_parameter_that_is_not_in_the_space_is_told_once(blended):
    study = optuna.create_study(direction="minimize", sampler=PriorSampler(blended))
    with pytest.warns(UserWarning, match=r"'width' is not in the prior's space \(learning_rate, .*drawn at random"):
        assert 0 <= study.ask().suggest_float("width", 0, 1) <= 1
    study.ask().suggest_float("width", 0, 1)


def test_random_parameters_differ_between_trials_not_between_runs(blended):
    """Whoever draws: each process has a sampler of its own."""
    drawn = {}
    for seed in (0, 0, 1):
        study = optuna.create_study(direction="minimize")
        for _ in range(3):
            study.sampler = PriorSampler(blended, seed=seed)
            trial = study.ask()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                both = trial.suggest_float("width", 0, 1), trial.suggest_float("depth", 0, 1)
            assert drawn.setdefault((seed, trial.number), both) == both
    assert len({one for both in drawn.values() for one in both}) == 12


def test_a_parameter_that_is_never_asked_for_is_told_once_and_stays(blended):
    sampler = PriorSampler(blended)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.optimize(lambda trial: 1.0 + trial.suggest_int("layers", 1, 6), n_trials=1)
    claim = study.trials[0].system_attrs[ATTRIBUTE]
    with pytest.warns(UserWarning) as caught:
        study.optimize(lambda trial: 1.0 + trial.suggest_int("layers", 1, 6), n_trials=5)
    told = [str(one.message) for one in caught]
    assert [text.split("'")[1] for text in told] == [name for name in claim if name != "layers"]
    assert told[0] == (
        "parameter 'learning_rate' is in the prior's space, and the objective did not ask for it in trial 0; it counts "
        f"as {claim['learning_rate']} from now on: ask for it, or leave it out of space.yaml and learn the prior again"
    )
    assert distinct(study, 6)  # all six values, where the prior would repeat those that it likes
    with pytest.warns(UserWarning):
        done = PriorSampler(blended)._told(study.get_trials(), 99).done
    assert all(one == done[0] | {"layers": one["layers"]} for one in done)


def test_a_trial_that_breaks_a_constraint_counts_as_failed(blended):
    sampler = PriorSampler(blended)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for broken in (-1.0, 0.5):
        trial = study.ask()
        everything(trial)
        trial.set_constraint("memory", broken)
        study.tell(trial, 0.2)
    np.testing.assert_array_equal(sampler._told(study.get_trials(), 99).outcomes, [0.2, np.nan])


def test_a_sampler_goes_to_another_process(blended):
    """It suggests there what it would have suggested here."""
    found = []
    for sampler in (PriorSampler(blended), pickle.loads(pickle.dumps(PriorSampler(blended)))):
        study = optuna.create_study(direction="minimize", sampler=sampler)
        study.optimize(everything, n_trials=1)
        found.append(study.trials[0].params)
    assert found[0] == found[1]


def test_an_outcome_without_a_logarithm_is_warned_of_once_and_not_used(trained):
    """A perfect 0 must not push the search away, and must not end the study: Optuna removes no trial."""
    sampler = PriorSampler(trained)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.optimize(lambda trial: objective(trial) * 0.0, n_trials=1)
    with pytest.warns(UserWarning, match=r"trial 0: outcome 0 of 'error' has no logarithm .* return a number above 0"):
        study.optimize(objective, n_trials=1)
    study.optimize(lambda trial: trial.suggest_int("layers", 1, 6), n_trials=1)  # no second warning: it would raise
    told = sampler._told(study.get_trials(), 99)
    assert [one["learning_rate"] for one in told.running] == [study.trials[0].params["learning_rate"]]
    assert len(told.done) == 2
    assert len({tuple(one.items()) for one in [*told.done, *told.running]}) == 3  # it is not suggested again


def test_a_pruned_trial_tells_what_it_reported(blended):
    """Not better than the finished ones, and not as bad as one that failed."""
    sampler = PriorSampler(blended)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.optimize(lambda trial: objective(trial) if trial.number else 0.4 + 0.0 * objective(trial), n_trials=1)
    for value in (0.9, 0.01, float("nan"), None):
        trial = study.ask()
        trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
        if value is not None:
            trial.report(value, 3)
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    told = sampler._told(study.get_trials(), 99)
    np.testing.assert_array_equal(told.outcomes, [0.4, 0.9, 0.4, np.nan, np.nan])


@pytest.mark.parametrize("directions", [["maximize"], ["minimize", "minimize"]])
def test_another_direction_is_refused(trained, directions):
    study = optuna.create_study(directions=directions, sampler=PriorSampler(trained))
    with pytest.raises(ConfigError, match=r"for an outcome to minimize.*direction='minimize'"):
        study.optimize(objective, n_trials=1)


def test_a_study_in_another_process_goes_on(trained, tmp_path):
    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    for _ in range(2):
        study = optuna.create_study(
            storage=storage, study_name="s", direction="minimize", sampler=PriorSampler(trained), load_if_exists=True
        )
        study.optimize(objective, n_trials=1)
    assert len({trial.params["learning_rate"] for trial in study.trials}) == 2


@pytest.fixture(scope="module")
def bounded(tmp_path_factory):
    """A folder with a prior of a space with two constraints."""
    place = tmp_path_factory.mktemp("bounded")
    bounds = {"memory": {"at_most": 8}, "accuracy": {"at_least": 0.5, "at_most": 1.0}}
    (place / "space.yaml").write_text(yaml.safe_dump(yaml.safe_load(SPACE) | {"constraints": bounds}, sort_keys=False))
    history = [[*row[:-1], "6", "0.9", row[-1]] for row in rows()]
    table = write(place / "history.csv", [*HEADER[:-1], "memory", "accuracy", "error"], history)
    return pretrain(table, place / "space.yaml", place / "prior").folder


class TestConstraints:
    """The values that Optuna's trials have agree with what `tell` is told."""

    def test_both_ways_tell_the_same(self, bounded, tmp_path):
        """Six trials, two of them infeasible: one by each constraint, with the best outcomes."""
        tuned = Study(shutil.copytree(bounded, tmp_path / "study"))
        sampler = PriorSampler(bounded)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        for outcome, memory, accuracy in ((0.3, 6, 0.9), (0.01, 8.5, 0.9), (0.02, 8, 0.4), (0.25, 8, 0.5), (0.2, 1, 1)):
            trial = study.ask()
            everything(trial)
            trial.set_constraint("memory", memory - 8)
            trial.set_constraint("accuracy", max(accuracy - 1.0, 0.5 - accuracy))
            study.tell(trial, outcome)
            measured = {"memory": memory, "accuracy": accuracy}
            tuned.tell(sampler._configuration(study.trials[-1]), outcome, constraints=measured)
        one, other = sampler._told(study.get_trials(), 99), tuned._told(tuned.trials)
        assert (one.done, one.running) == (other.done, other.running)
        np.testing.assert_array_equal(one.outcomes, other.outcomes)
        np.testing.assert_array_equal(one.outcomes, [0.3, np.nan, np.nan, 0.25, 0.2])
        assert study.best_trial.number == tuned.best["number"] == 4

    def test_a_trial_without_a_value_is_warned_of_once_and_not_used(self, bounded):
        sampler = PriorSampler(bounded)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        with pytest.warns(UserWarning) as caught:
            for number in range(3):
                trial = study.ask()
                everything(trial)
                if number:
                    trial.set_constraint("memory", -1.0)
                study.tell(trial, 0.1)
        told = sampler._told(study.get_trials(), 99)  # no second warning: it would raise
        assert [str(one.message) for one in caught] == [
            "trial 0: no value of constraint 'memory' (at most 8), so no trial without one is used; call "
            "trial.set_constraint('memory', value - 8) in the objective (above 0: broken)",
            "trial 1: no value of constraint 'accuracy' (at least 0.5 and at most 1), so no trial without one is used; "
            "call trial.set_constraint('accuracy', max(value - 1, 0.5 - value)) in the objective (above 0: broken)",
        ]
        assert told.done == [] and len(told.running) == 3

    def test_what_a_constraints_func_of_another_sampler_stored_counts(self, bounded):
        values = [(-1.0, -0.1), (0.5, -0.1), (-1.0, 0.1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Optuna will take it away
            tpe = optuna.samplers.TPESampler(constraints_func=lambda trial: values[trial.number], seed=0)
        study = optuna.create_study(direction="minimize", sampler=tpe)
        study.optimize(everything, n_trials=3)
        assert [list(one.constraints) for one in study.trials] == [["0", "1"]] * 3
        told = PriorSampler(bounded)._told(study.get_trials(), 99)
        np.testing.assert_array_equal(told.outcomes, [1.0, np.nan, np.nan])

    def test_a_pruned_trial_that_broke_one_says_nothing_else(self, bounded):
        sampler = PriorSampler(bounded)
        study = optuna.create_study(direction="minimize", sampler=sampler)
        for over in (1.0, -1.0):
            trial = study.ask()
            everything(trial)
            trial.report(0.4, 1)
            trial.set_constraint("memory", over)
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        np.testing.assert_array_equal(sampler._told(study.get_trials(), 99).outcomes, [np.nan, 0.4])


class TestOtherChoices:
    """What the objective offers is other than the space: suggestions keep to what both have, and it is said once."""

    def asked(self, trial, batch=(16, 32, 64), optimiser=("sgd", "adam")):
        trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
        trial.suggest_int("layers", 1, 6)
        trial.suggest_categorical("batch", batch)
        if trial.suggest_categorical("optimiser", optimiser) == "sgd":
            trial.suggest_float("momentum", 0.0, 0.9)
        return 0.1 + 0.01 * trial.number

    @pytest.mark.parametrize("kind", ["trained", "blended"])
    def test_fewer_choices(self, request, kind):
        """The prior likes what is not offered; from the second trial on it is not even suggested."""
        sampler = PriorSampler(request.getfixturevalue(kind))
        study = optuna.create_study(direction="minimize", sampler=sampler)
        liked = claimed(study.ask())
        others = tuple(one for one in (16, 32, 64) if one != liked["batch"])
        rest = tuple(one for one in ("sgd", "adam") if one != liked["optimiser"])
        with pytest.warns(UserWarning) as caught:
            study.optimize(lambda trial: self.asked(trial, others, rest), n_trials=6)
        assert [str(one.message).partition(":")[0] for one in caught if "parameter" in str(one.message)] == [
            "parameter 'batch'"
        ]
        assert "one of 16, 32, 64; suggestions keep to what both have" in str(caught[0].message)
        done = [one for one in study.trials if one.state.name == "COMPLETE"]
        assert all(one.params["batch"] in others and one.params["optimiser"] == rest[0] for one in done)
        for one in done[1:]:  # Optuna gives out a single choice itself, so that the first trial did not know of it
            assert all(one.params[name] == value for name, value in one.system_attrs[ATTRIBUTE].items())
        assert len({str(sorted(one.params.items())) for one in done}) == 6
        assert len(sampler._told(study.get_trials(), 99).done) == 6

    def test_another_order_is_the_same(self, blended):
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(blended))
        study.optimize(lambda trial: self.asked(trial, (64, 16, 32), ("adam", "sgd")), n_trials=3)
        for one in study.trials:
            assert all(one.params[name] == value for name, value in one.system_attrs[ATTRIBUTE].items())

    def test_more_choices_are_never_suggested(self, blended):
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(blended))
        with pytest.warns(
            UserWarning, match="'batch'.*keep to what both have, and never to 128, None, which the space"
        ):
            study.optimize(lambda trial: self.asked(trial, (128, 64, 32, 16, None)), n_trials=5)
        assert {one.params["batch"] for one in study.trials} <= {16, 32, 64}

    def test_nothing_in_common_is_refused(self, blended):
        for wrong in ({"batch": (128, 256)}, {"optimiser": ("lbfgs", "rmsprop")}):
            study = optuna.create_study(direction="minimize", sampler=PriorSampler(blended))
            with pytest.raises(ConfigError) as error:
                study.optimize(lambda trial, wrong=wrong: self.asked(trial, **wrong), n_trials=1)
            (name,) = wrong
            assert str(error.value).startswith(f"parameter '{name}': the objective asks for CategoricalDistribution(")
            assert "no value is in both; ask for values of the space, or change them in space.yaml" in str(error.value)
            assert "\n" not in str(error.value)

    def test_a_range_that_the_space_does_not_have_is_refused(self, blended):
        """Again and again, for a failed trial has the range too."""
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(blended))
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"'learning_rate': the objective asks for Float.*low=2.0.*in both"):
                study.optimize(lambda trial: trial.suggest_float("learning_rate", 2.0, 5.0), n_trials=1)

    def test_a_range_where_the_space_has_words_is_refused(self, blended):
        trial = optuna.create_study(direction="minimize", sampler=PriorSampler(blended)).ask()
        with pytest.raises(ConfigError, match=r"'optimiser': the objective asks for IntDistribution.*one of sgd, adam"):
            trial.suggest_int("optimiser", 0, 1)

    def test_numbers_of_another_kind_move(self, blended):
        """An int asked for as a float, a float as choices, choices as an int, and a log scale that is left out."""
        study = optuna.create_study(direction="minimize", sampler=PriorSampler(blended))
        trial = study.ask()
        chosen = claimed(trial)
        assert trial.suggest_float("learning_rate", 1e-4, 1.0) == chosen["learning_rate"]  # no warning: it would raise
        with pytest.warns(UserWarning, match="'layers': the objective asks for CategoricalDistribution"):
            assert trial.suggest_categorical("layers", [1, 6]) == claimed(trial)["layers"]
        with pytest.warns(UserWarning, match="'batch': the objective asks for IntDistribution"):
            assert trial.suggest_int("batch", 16, 64, step=16) == claimed(trial)["batch"]

    def test_other_processes_know_what_was_asked_for(self, blended, storages):
        for number in range(2):
            study = optuna.create_study(
                storage=storages("sqlite"), study_name="s", direction="minimize", sampler=PriorSampler(blended),
                load_if_exists=True,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                study.optimize(lambda trial: self.asked(trial, (16,), ("adam",)), n_trials=1 + number)
        for one in study.trials[1:]:
            assert (one.system_attrs[ATTRIBUTE]["batch"], one.system_attrs[ATTRIBUTE]["optimiser"]) == (16, "adam")

    def test_a_parameter_that_optuna_fixes(self, blended):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.PartialFixedSampler({"batch": 32}, PriorSampler(blended))
        study = optuna.create_study(direction="minimize", sampler=sampler)
        study.optimize(self.asked, n_trials=3)
        assert {one.params["batch"] for one in study.trials} == {32}
        assert len(PriorSampler(blended)._told(study.get_trials(), 99).done) == 3


def test_a_choice_may_be_none(tmp_path):
    """Optuna's None is the text 'None' in a space that was imported; trials with it are told and suggested."""
    parameters = {"kind": {"type": "categorical", "choices": ["None", "l1", "l2"]},
                  "rate": {"type": "float", "low": 0.0, "high": 1.0}}  # fmt: skip
    space = {"study": "s", "outcome": {"column": "y", "goal": "minimise"}, "parameters": parameters}
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    table = [[f"s{i % 3}", ("None", "l1", "l2")[i % 3 if i < 9 else 0], i / 30, 0.1 + (i % 7) / 10] for i in range(30)]
    history = write(tmp_path / "h.csv", ["s", "kind", "rate", "y"], table)
    sampler = PriorSampler(pretrain(history, tmp_path / "space.yaml", tmp_path / "to").folder)
    study = optuna.create_study(direction="minimize", sampler=sampler)

    def objective(trial):
        kind = trial.suggest_categorical("kind", [None, "l1", "l2"])
        return (0.0 if kind is None else 1.0) + trial.suggest_float("rate", 0.0, 1.0)

    study.optimize(objective, n_trials=8)
    assert len(sampler._told(study.get_trials(), 99).done) == 8
    assert None in {one.params["kind"] for one in study.trials} and study.best_params["kind"] is None

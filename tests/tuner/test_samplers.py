"""The prior inside a real Optuna study."""

import numpy as np
import optuna
import pytest

from metabo.errors import ConfigError
from metabo.tuner.samplers import PriorSampler
from metabo.tuner.study import Study
from metabo.tuner.suggest import Told, suggest
from tests.tuner.conftest import error

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
SEEN = []


def objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 6)
    trial.suggest_categorical("batch", [16, 32, 64])
    if trial.suggest_categorical("optimiser", ["sgd", "adam"]) == "sgd":
        trial.suggest_float("momentum", 0.0, 0.9)
    trial.suggest_float("not in the prior", -1.0, 1.0)
    if trial.number == 1:
        raise optuna.TrialPruned
    if trial.number == 2:
        raise ValueError("broken")
    return error(rate, layers, -2.0)


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
    assert PriorSampler(trained)._told(study.get_trials(), 99).done == []


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

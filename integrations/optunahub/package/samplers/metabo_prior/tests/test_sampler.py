"""The package as the registry loads it: a prior of past studies, and a study that goes on from it."""

import importlib.util
import sys
from pathlib import Path

import optuna
import pandas as pd
import pytest

REGISTRY = Path(__file__).parents[3]
SPACE = """
study: study
outcome: {column: value, goal: minimise}
parameters:
  x: {type: float, low: -1.0, high: 1.0}
  n: {type: int, low: 1, high: 9}
  kind: {type: categorical, choices: [a, b]}
"""


def load(package: str):
    """Load a package as `optunahub.load_local_module` does, by it where it is installed."""
    try:
        from optunahub import load_local_module
    except ModuleNotFoundError:
        name = f"optunahub_registry.package.{package.replace('/', '.')}"
        spec = importlib.util.spec_from_file_location(name, REGISTRY / package / "__init__.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    return load_local_module(package, registry_root=str(REGISTRY))


@pytest.fixture(scope="module")
def module():
    return load("samplers/metabo_prior")


@pytest.fixture(scope="module")
def folder(module, tmp_path_factory):
    place = tmp_path_factory.mktemp("prior")
    (place / "space.yaml").write_text(SPACE)
    past = {}
    for number in range(4):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=number))
        study.optimize(objective, n_trials=15)
        past[f"s{number}"] = pd.DataFrame([{**trial.params, "value": trial.value} for trial in study.trials])
    return module.pretrain(past, place / "space.yaml", place / "to").folder


def objective(trial: optuna.Trial) -> float:
    x, n = trial.suggest_float("x", -1.0, 1.0), trial.suggest_int("n", 1, 9)
    return (x - 0.3) ** 2 + 0.1 * abs(n - 4) + (trial.suggest_categorical("kind", ["a", "b"]) == "a")


def test_the_first_trial_is_where_the_past_was_good(module, folder):
    study = optuna.create_study(sampler=module.PriorSampler(folder))
    study.optimize(objective, n_trials=6)
    assert study.trials[0].value < 0.5 and study.best_value < 0.1
    assert len({str(trial.params) for trial in study.trials}) == 6


def test_equal_seeds_give_equal_trials(module, folder):
    found = []
    for seed in (1, 1, 2):
        study = optuna.create_study(sampler=module.PriorSampler(folder, seed=seed))
        study.optimize(objective, n_trials=5)
        found.append([trial.params for trial in study.trials])
    assert found[0] == found[1] != found[2]


def test_a_trial_that_breaks_a_constraint_is_never_the_best(module, folder):
    study = optuna.create_study(sampler=module.PriorSampler(folder))

    def constrained(trial: optuna.Trial) -> float:
        value = objective(trial)
        trial.set_constraint("size", trial.params["n"] - 3)
        return value

    study.optimize(constrained, n_trials=10)
    assert any(trial.params["n"] > 3 for trial in study.trials) and study.best_params["n"] <= 3


def test_another_direction_is_refused(module, folder):
    study = optuna.create_study(direction="maximize", sampler=module.PriorSampler(folder))
    with pytest.raises(Exception, match="direction='minimize'"):
        study.optimize(objective, n_trials=1)

"""Tune a new problem with a prior of five past studies: the best rate differs from study to study, and is about 0.01 in
each."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import optuna
import optunahub
import pandas as pd

SPACE = """
study: study
outcome: {column: value, goal: minimise}
parameters:
  rate: {type: float, low: 1.0e-5, high: 1.0, scale: log}
  layers: {type: int, low: 1, high: 8}
  solver: {type: categorical, choices: [sgd, adam]}
"""


def problem(best: float) -> Callable[[optuna.Trial], float]:
    """Return an objective whose best rate is 10 to the power of `best`."""

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
        layers = trial.suggest_int("layers", 1, 8)
        solver = trial.suggest_categorical("solver", ["sgd", "adam"])
        return (math.log10(rate) - best) ** 2 + 0.1 * abs(layers - 3) + (0.3 if solver == "sgd" else 0.0)

    return objective


def trials_of(study: optuna.Study) -> pd.DataFrame:
    """Return a study's trials as a history has them: parameters and value."""
    return pd.DataFrame([{**trial.params, "value": trial.value} for trial in study.trials])


def main() -> tuple[float, float]:
    """Return the best values of six trials with the prior, and of six at random."""
    module = optunahub.load_module("samplers/metabo_prior")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    past = {}
    for number, best in enumerate((-2.2, -1.9, -2.1, -1.8, -2.0)):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=number))
        study.optimize(problem(best), n_trials=20)
        past[f"study {number}"] = trials_of(study)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        space = Path(folder) / "space.yaml"
        space.write_text(SPACE)
        module.pretrain(past, space, Path(folder) / "prior")
        for sampler in (module.PriorSampler(Path(folder) / "prior"), optuna.samplers.RandomSampler(seed=9)):
            study = optuna.create_study(sampler=sampler)
            study.optimize(problem(-2.05), n_trials=6)
            found.append(study.best_value)
    print(f"best of six trials: {found[0]:.2g} with the prior, {found[1]:.2g} at random")
    return found[0], found[1]


if __name__ == "__main__":
    main()

"""Optuna's samplers on the same told trials: the next configuration. They learn nothing from past studies."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import optuna
import tuning
from case import Timed
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from problem import Sizes


def distribution(parameter: tuning.Parameter) -> BaseDistribution:
    """Return Optuna's description of a parameter; choices have no order there."""
    if parameter.choices:
        return CategoricalDistribution(parameter.choices)
    if parameter.whole:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)


DISTRIBUTIONS = {name: distribution(parameter) for name, parameter in tuning.SPACE.items()}


def study(sampler: optuna.samplers.BaseSampler, number: int) -> optuna.Study:
    """Return a new study in memory to which `number` trials were told."""
    made = optuna.create_study(direction="minimize", sampler=sampler)
    for configuration, outcome in tuning.told(number):
        made.add_trial(optuna.trial.create_trial(params=configuration, distributions=DISTRIBUTIONS, value=outcome))
    return made


def next_configuration(asked: optuna.Study) -> dict[str, Any]:
    """Ask for a trial; TPE draws each parameter when the trial is asked for its value."""
    trial = asked.ask(DISTRIBUTIONS)
    return trial.params


def ask(sizes: Sizes, sampler: optuna.samplers.BaseSampler, number: int) -> Timed:
    """CPU time of asking after `number` trials. Each time the study is new, so that it does not grow; the sampler stays
    and keeps what it remembers between trials (GPSampler: the parameters of its last fit)."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)

    def turn() -> float:
        taken = 0.0
        for _ in range(sizes.asks):
            asked = study(sampler, number)
            start = time.process_time()
            next_configuration(asked)
            taken += time.process_time() - start
        return 1e3 * taken / sizes.asks

    return Timed(turn)


def tpe(sizes: Sizes, number: int) -> Timed:
    return ask(sizes, optuna.samplers.TPESampler(seed=0), number)


def gp(sizes: Sizes, number: int) -> Timed:
    import torch  # GPSampler needs it, TPE does not

    torch.set_num_threads(1)
    return ask(sizes, optuna.samplers.GPSampler(seed=0), number)


CASES: dict[str, dict[str, Callable[[Sizes], Timed]]] = {
    "ask_few": {
        "optuna_tpe": lambda sizes: tpe(sizes, sizes.told_few),
        "optuna_gp": lambda sizes: gp(sizes, sizes.told_few),
    },
    "ask_many": {
        "optuna_tpe": lambda sizes: tpe(sizes, sizes.told_many),
        "optuna_gp": lambda sizes: gp(sizes, sizes.told_many),
    },
}

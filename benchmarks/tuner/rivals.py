"""What the default is compared with: Optuna's samplers, the portfolio, RGPE, random search. Each plays a whole study.

A rival is a function of a world, a data set, past studies, a seed and the budget; it returns the outcomes in the order
of their evaluation. Rivals that learn nothing from the past ignore it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from worlds import NO_RANKS, Trial, World, ask, distributions, oriented, random_configuration

from metabo.data.history.description import Configuration, Description
from metabo.tasks.spaces import Level

History = list[list[Trial]]
Rival = Callable[[World, str, History, int, int], list[float]]

ENQUEUED = 6
"""Past incumbents that TPE starts with."""
EARLY = 4
"""Trials, enqueued ones among them, after which the variants named `early` choose by their model: as many as cover the
space for the plain GP. Optuna's own number is ten, two thirds of the budget."""


def random(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    rng, outcome = np.random.default_rng([2, seed]), one.outcome(task)
    return [outcome(random_configuration(one.description, rng)) for _ in range(budget)]


def tpe(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    return _optuna(one, task, optuna.samplers.TPESampler(seed=seed), [], budget)


def tpe_early(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    return _optuna(one, task, optuna.samplers.TPESampler(seed=seed, n_startup_trials=EARLY), [], budget)


def tpe_enqueued(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    """TPE, which starts with the best configuration of each past study (the best ones first, `ENQUEUED` at most)."""
    return _optuna(one, task, optuna.samplers.TPESampler(seed=seed), incumbents(one.description, past, seed), budget)


def tpe_enqueued_early(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    """TPE from past incumbents as `tpe_enqueued`, whose model chooses as soon as they are evaluated."""
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=EARLY)
    return _optuna(one, task, sampler, incumbents(one.description, past, seed), budget)


def gpsampler(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    return _optuna(one, task, _gp(seed, 10), [], budget)


def gpsampler_early(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    return _optuna(one, task, _gp(seed, EARLY), [], budget)


def _gp(seed: int, startup: int) -> optuna.samplers.GPSampler:
    import torch

    torch.set_num_threads(1)
    return optuna.samplers.GPSampler(seed=seed, n_startup_trials=startup)


def cmaes_warm(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    """CMA-ES that starts from the past trials (Nomura et al. 2021), each study's outcomes standardised. It searches the
    parameters that have an order and no condition, ordinal ones by rank; Optuna draws the others at random."""
    space, shown = one.description, distributions(one.description)
    ranks = {field.name: field.choices for field in space.fields if field.kind == "ordinal"}
    shown |= {name: IntDistribution(0, len(choices) - 1) for name, choices in ranks.items()}
    numeric = [field.name for field in space.fields if field.kind != "categorical" and field.parent is None]
    source = []
    for study in past:
        y = oriented(space, np.array([value for _, value in study], dtype=np.float64))
        z = (y - np.nanmean(y)) / (np.nanstd(y) or 1.0)
        for (c, _), value in zip(study, z, strict=True):
            if np.isfinite(value):
                params = {name: ranks[name].index(c[name]) if name in ranks else c[name] for name in numeric}
                of = {name: shown[name] for name in numeric}
                source.append(create_trial(params=params, distributions=of, value=float(value)))
    sampler = _WarmCma(seed=seed, source_trials=source or None, n_startup_trials=1, warn_independent_sampling=False)
    sampler.searched = {name: shown[name] for name in numeric}
    return _optuna(one, task, sampler, [], budget, ranks)


class _WarmCma(optuna.samplers.CmaEsSampler):
    """CMA-ES on given parameters. Optuna's own choice has conditional ones among them if the first trial used them, and
    then takes no past trial for compatible."""

    searched: dict[str, BaseDistribution]

    def infer_relative_search_space(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return dict(self.searched)


def incumbents(space: Description, past: History, seed: int) -> list[Configuration]:
    """Return the best configuration of each study, studies in random order, repeats left out."""
    found: list[Configuration] = []
    for place in np.random.default_rng([4, seed]).permutation(len(past)):
        study = [(c, y) for c, y in past[place] if np.isfinite(y)]
        best = min(study, key=lambda trial: trial[1])[0]
        if best not in found:
            found.append(best)
    return found[:ENQUEUED]


def portfolio(one: World, task: str, past: History, seed: int, budget: int) -> list[float]:
    """Past configurations in a greedy order: each next one lowers most the mean over past studies of the best rank so
    far, where a study's rank of a configuration that it did not try is that of the nearest one that it tried."""
    space, outcome = one.description, one.outcome(task)
    configurations = [space.read(c) for study in past for c, _ in study]
    x = space.encode(configurations)
    costs = []
    for study in past:
        own = space.encode([space.read(c) for c, _ in study])
        y = np.array([value for _, value in study], dtype=np.float64)
        y = np.where(np.isfinite(y), y, np.inf)
        ranks = np.argsort(np.argsort(y)) / max(len(y) - 1, 1)
        costs.append(ranks[((x[:, None] - own) ** 2).sum(-1).argmin(1)])
    cost, best, out = np.array(costs), np.full(len(past), np.inf), []
    ties = np.random.default_rng([10, seed]).random(len(x)) * 1e-9
    free = np.ones(len(x), dtype=bool)
    for _ in range(budget):
        after = np.minimum(best[:, None], cost).mean(0) + 1e-3 * cost.mean(0) + ties
        pick = int(np.argmin(np.where(free, after, np.inf)))
        best = np.minimum(best, cost[:, pick])
        free &= ((x - x[pick]) ** 2).sum(1) > 1e-12
        out.append(outcome(configurations[pick]))
    return out


def _optuna(
    one: World, task: str, sampler: optuna.samplers.BaseSampler, enqueued: list[Configuration], budget: int,
    ranks: Mapping[str, Sequence[Level]] = NO_RANKS,
) -> list[float]:  # fmt: skip
    outcome, out = one.outcome(task), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=sampler)
        for configuration in enqueued:
            study.enqueue_trial({name: value for name, value in configuration.items() if value is not None})
        for _ in range(budget):
            trial = study.ask()
            value = outcome(ask(trial, one.description, ranks))
            out.append(value)
            finite = bool(np.isfinite(value))
            told = float(oriented(one.description, np.array(value))) if finite else None
            study.tell(trial, told, state=None if finite else TrialState.FAIL)
    return out

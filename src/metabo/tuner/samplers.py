"""An Optuna sampler that suggests from a prior learned with `metabo pretrain` (extra `optuna`).

The objective asks for the parameters as usual. Those of the prior's space come from the prior, by the method's policy,
from the first trial on; others come from Optuna's random sampler. Trials live in Optuna's storage, not in the folder.

Workers (threads, processes, machines) do not repeat each other. Each one writes its suggestion into the storage, then
reads all trials again; where another trial has the same configuration it suggests another one. Of two workers the one
that wrote last sees what the other wrote, so that not both keep it.
"""

import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

try:
    import optuna
except ModuleNotFoundError as error:
    if error.name != "optuna":
        raise
    raise ModuleNotFoundError(
        "metabo.PriorSampler needs Optuna, which is not installed; install the extra: pip install 'metabo[optuna]'",
        name="optuna",
    ) from error
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from metabo.data.history.description import Configuration
from metabo.data.history.fields import Field, Value
from metabo.data.imports import partials
from metabo.errors import ConfigError, DataError
from metabo.tuner.asking import Told
from metabo.tuner.numbers import seed_of
from metabo.tuner.study import Study
from metabo.tuner.suggest import suggest


def distribution(field: Field) -> BaseDistribution:
    """Return Optuna's description of a parameter. An ordinal one is categorical there."""
    if field.choices:
        return CategoricalDistribution(field.choices)
    if field.kind == "int":
        return IntDistribution(int(field.low), int(field.high), log=field.log)
    return FloatDistribution(field.low, field.high, log=field.log)


def moved(number: float, to: FloatDistribution | IntDistribution) -> float | int:
    """Return the number of a distribution that is nearest to a number."""
    inside = min(max(number, to.low), to.high)
    if to.step is not None:
        inside = min(to.low + round((inside - to.low) / to.step) * to.step, to.high)
    return round(inside) if isinstance(to, IntDistribution) else inside


class PriorSampler(optuna.samplers.BaseSampler):
    """Suggest from the prior in `folder`. `seed`: of candidates and ties.

        import metabo
        import optuna


        def objective(trial):
            rate = trial.suggest_float("learning_rate", 1e-5, 10.0, log=True)  # ... and the other parameters
            return 0.1 + abs(rate - 0.01)


        study = optuna.create_study(direction="minimize", sampler=metabo.PriorSampler("my_study"))
        study.optimize(objective, n_trials=3)
        print(study.best_params)

    A pruned trial counts with the last value that it reported, or the median of the finished ones if that is worse;
    without a report it counts as a failure, as failed trials and those that break a constraint do: it has a value above
    0 (`trial.set_constraint`, or what the `constraints_func` of another sampler stored). Running ones count as pending;
    trials with values outside the space (enqueued by hand, say) are left out. An outcome without a logarithm, where the
    scale is log, or without a value of a constraint of the space, is warned of once and not used: its trial counts as
    pending, so that it neither repels nor is suggested again. (`metabo tell` refuses such an outcome; an error here
    would end a study whose trials cannot be removed.) Raises ConfigError for a study with another direction, or
    several, and for a seed that is none.
    """

    def __init__(self, folder: str | Path, seed: int = 0) -> None:
        self._study, self._seed = Study(folder), seed_of(seed)
        self._space = self._study.description
        self._distributions = {field.name: distribution(field) for field in self._space.fields}
        self._others = optuna.samplers.RandomSampler(self._seed % 2**32)
        self._warned: set[int] = set()
        self._told_of: set[str] = set()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        """Leave out the lock, which no other process has a use for."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take the state, and a lock of one's own."""
        for name, value in state.items():
            setattr(self, name, value)
        self._lock = threading.Lock()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the prior's space, before any trial has told which parameters there are."""
        return dict(self._distributions)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> Configuration:
        """Return the next configuration, without the parameters that it does not use."""
        self._check_direction(study)
        with self._lock:  # threads share the core that suggests, and would only disturb each other
            return self._claimed(study, trial)

    def _claimed(self, study: optuna.Study, trial: FrozenTrial) -> Configuration:
        """Write the next configuration that no other trial has into the storage, and return it."""
        place = 0
        while True:
            told = self._told(study.get_trials(deepcopy=False), trial.number)
            found = suggest(self._study.prior, told, 1 + place, self._seed)[place].configuration
            chosen: Configuration = {name: value for name, value in found.items() if value is not None}
            study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, chosen)
            same = [
                other.number
                for other in study.get_trials(deepcopy=False)
                if other.number != trial.number and (its := self._configuration(other)) and self._space.same(its, found)
            ]
            if not same:
                return chosen
            place = sum(number < trial.number for number in same)  # workers that clash go on with different ones

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> object:
        """Return the prior's value moved into a range that is narrower than the space, or has steps. A parameter that
        the prior does not know, or that its configuration does not use, is drawn at random. Both are warned of once."""
        known = param_name in self._distributions
        suggested = study.get_trials(deepcopy=False)[trial.number].system_attrs.get(ATTRIBUTE, {}) if known else {}
        number = suggested.get(param_name)
        if isinstance(number, int | float) and isinstance(param_distribution, FloatDistribution | IntDistribution):
            self._warn(
                param_name,
                f"parameter '{param_name}': the objective asks for {param_distribution}, the prior's space has "
                f"{self._distributions[param_name]}; suggestions are moved into what is asked for: give both the same "
                "bounds, and no steps",
            )
            return moved(float(number), param_distribution)
        if not known:
            self._warn(
                param_name,
                f"parameter '{param_name}' is not in the prior's space ({', '.join(self._distributions)}), so it is "
                "drawn at random; if it should be tuned, describe it in space.yaml and learn the prior again",
            )
        return self._others.sample_independent(study, trial, param_name, param_distribution)

    def _warn(self, name: str, text: str) -> None:
        if name not in self._told_of:
            self._told_of.add(name)
            warnings.warn(text, stacklevel=4)

    def reseed_rng(self) -> None:
        """Give each thread of Optuna its own random parameters; the prior's suggestions stay as they are."""
        self._others.reseed_rng()

    def _check_direction(self, study: optuna.Study) -> None:
        goal = "MAXIMIZE" if self._space.maximise else "MINIMIZE"
        if [direction.name for direction in study.directions] != [goal]:
            shown = ", ".join(direction.name.lower() for direction in study.directions)
            raise ConfigError(
                f"the prior is for an outcome to {goal.lower()}, the Optuna study is to {shown}; "
                f"say optuna.create_study(direction='{goal.lower()}')"
            )

    def _told(self, trials: Sequence[FrozenTrial], current: int) -> Told:
        """Sort Optuna's trials into finished and running ones, the current one left out."""
        done: list[Configuration] = []
        outcomes: list[float] = []
        running: list[Configuration] = []
        typical = partials.typical(trials)
        for trial in trials:
            if (configuration := self._configuration(trial)) is None:
                continue
            if trial.state.is_finished() and any(value > 0 for value in trial.constraints.values()):
                done.append(configuration)
                outcomes.append(float("nan"))
            elif trial.state == TrialState.COMPLETE and (self._lacks_logarithm(trial) or self._lacks_values(trial)):
                running.append(configuration)
            elif trial.state == TrialState.COMPLETE:
                done.append(configuration)
                outcomes.append(self._outcome(trial.value))
            elif trial.state in (TrialState.FAIL, TrialState.PRUNED):
                done.append(configuration)
                outcomes.append(self._partial(trial, typical))
            elif trial.state == TrialState.RUNNING and trial.number != current:
                running.append(configuration)
        return Told(done, outcomes, running)

    def _configuration(self, trial: FrozenTrial) -> Configuration | None:
        """Return a trial's configuration, None if it has none yet, or one outside the space."""
        try:
            return self._space.read({**trial.system_attrs.get(ATTRIBUTE, {}), **self._own(trial.params)})
        except DataError:
            return None

    def _own(self, parameters: Mapping[str, Value]) -> Configuration:
        return {name: value for name, value in parameters.items() if name in self._distributions}

    def _lacks_logarithm(self, trial: FrozenTrial) -> bool:
        """Tell whether the scale is log and a trial's outcome has none; warn of it the first time."""
        value = trial.value
        if not self._space.log or value is None or not np.isfinite(value) or value > 0:
            return False
        if trial.number not in self._warned:
            self._warned.add(trial.number)
            warnings.warn(
                f"trial {trial.number}: outcome {value:g} of '{self._space.outcome}' has no logarithm (its scale is "
                "log), so it is not used; return a number above 0 from the objective, or remove 'scale: log' of the "
                "outcome from space.yaml and make the prior again with metabo pretrain",
                stacklevel=2,
            )
        return True

    def _lacks_values(self, trial: FrozenTrial) -> bool:
        """Tell whether a trial has no value of a constraint of the space; warn of the first one. Values that a
        `constraints_func` stored have numbers for names."""
        if sum(name.isdecimal() for name in trial.constraints) >= len(self._space.constraints):
            return False
        lacks = [one for one in self._space.constraints if one.name not in trial.constraints]
        for one in lacks[:1]:
            self._warn(
                f"constraint {one.name}",
                f"trial {trial.number}: no value of constraint '{one.name}' ({one.said}), so it is not used; call "
                f"trial.set_constraint('{one.name}', {one.excess}) in the objective (above 0: broken)",
            )
        return bool(lacks)

    def _partial(self, trial: FrozenTrial, typical: float | None) -> float:
        """Return what a trial that did not finish counts with; NaN if it says nothing."""
        value = partials.partial(trial, typical, self._space.maximise) if trial.state == TrialState.PRUNED else None
        return float("nan") if value is None or (self._space.log and value <= 0) else value

    def _outcome(self, value: float | None) -> float:
        return float(value) if value is not None and np.isfinite(value) else float("nan")


ATTRIBUTE = "metabo:suggested"
"""Where a trial's suggestion is kept in Optuna's storage."""

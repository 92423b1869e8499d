"""An Optuna sampler that suggests from a prior learned with `metabo pretrain` (extra `optuna`).

The objective asks for the parameters as usual. From the first trial on, those of the prior's space come from the prior,
by the method's policy and within what the objective asks for; others come from Optuna's random sampler. Trials live in
Optuna's storage, not in the folder.

Workers (threads, processes, machines) do not repeat each other. Each one writes its suggestion into the storage, then
reads all trials again; if another trial has the same configuration, it suggests another one. Of two workers, the one
that wrote last sees what the other wrote, so they never both keep it.
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
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from metabo.data.history.description import Configuration
from metabo.data.history.fields import Field, Value
from metabo.data.imports import partials
from metabo.errors import ConfigError, DataError
from metabo.tuner import asked
from metabo.tuner.asking import ALL, Only, Told
from metabo.tuner.numbers import seed_of
from metabo.tuner.study import Study
from metabo.tuner.suggest import suggest


class PriorSampler(optuna.samplers.BaseSampler):
    """Suggest from the prior in `folder`. `seed` is that of candidates and ties.

        import metabo
        import optuna


        def objective(trial):
            rate = trial.suggest_float("learning_rate", 1e-5, 10.0, log=True)  # ... and the other parameters
            return 0.1 + abs(rate - 0.01)


        study = optuna.create_study(direction="minimize", sampler=metabo.PriorSampler("my_study"))
        study.optimize(objective, n_trials=3)
        print(study.best_params)

    A pruned trial counts with the last value that it reported, or with the median of the finished trials if that is
    worse; without a report it counts as a failure. So do failed trials and those that break a constraint, that is, have
    a constraint value above 0 (from `trial.set_constraint`, or stored by the `constraints_func` of another sampler).
    Running trials count as pending; trials with values outside the space (such as those enqueued by hand) are left out.
    An outcome without a logarithm on a log scale, or without a value for a constraint of the space, causes one warning
    and is not used: its trial counts as pending, so that it neither repels nor is suggested again. (`metabo tell`
    refuses such an outcome; an error here would end a study whose trials cannot be removed.) Raises ConfigError for a
    study with another direction or several directions, and for an invalid seed.
    """

    def __init__(self, folder: str | Path, seed: int = 0) -> None:
        self._study, self._seed = Study(folder), seed_of(seed)
        self._space = self._study.description
        self._fields = {field.name: field for field in self._space.fields}
        self._distributions = {name: asked.distribution(field) for name, field in self._fields.items()}
        self._others = optuna.samplers.RandomSampler(self._seed % 2**32)
        self._warned: set[int] = set()
        self._told_of: set[str] = set()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        """Leave out the lock, which is useless in another process."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore the state, with a new lock."""
        for name, value in state.items():
            setattr(self, name, value)
        self._lock = threading.Lock()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return nothing: Optuna refuses values whose ranges differ from those returned here, and the objective's
        ranges are not known."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> Configuration:
        """Claim the next configuration. `sample_independent` returns its values."""
        self._check_direction(study)
        self._claimed(study, trial)
        return {}

    def _claimed(self, study: optuna.Study, trial: FrozenTrial, fixed: Only = ALL) -> Configuration:
        """Write the next configuration that no other trial has into the storage, and return it without the parameters
        that it does not use. It is restricted to the choices that the objective offers, as far as trials show, and to
        those in `fixed`."""
        with self._lock:  # threads share the core that suggests, and would only slow each other down
            return self._first_free(study, trial, fixed)

    def _first_free(self, study: optuna.Study, trial: FrozenTrial, fixed: Only) -> Configuration:
        place = 0
        while True:
            trials = study.get_trials(deepcopy=False)
            told, only = self._told(trials, trial.number), {**asked.narrowed(self._fields, trials), **fixed}
            found = suggest(self._study.prior, told, 1 + place, self._seed, only=only)[place].configuration
            chosen: Configuration = {name: value for name, value in found.items() if value is not None}
            study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, chosen)
            same = [
                other.number
                for other in study.get_trials(deepcopy=False)
                if other.number != trial.number and (its := self._configuration(other)) and self._space.same(its, found)
            ]
            if not same:
                return chosen
            place = sum(number < trial.number for number in same)  # workers that clash continue with different ones

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> object:
        """Return the prior's value. A number is moved into the objective's range if that is narrower than the space or
        has steps; a choice is one that the objective offers too. A parameter that the prior does not know, or that its
        configuration does not use, is drawn at random. Each of these, except an unused parameter, causes one warning.

        Raises ConfigError for a parameter whose distribution has no value of the prior's space.
        """
        field, value = self._fields.get(param_name), trial.system_attrs.get(ATTRIBUTE, {}).get(param_name)
        if field is None:
            self._warn(
                param_name,
                f"parameter '{param_name}' is not in the prior's space ({', '.join(self._fields)}), so it is drawn at "
                "random; if it should be tuned, describe it in space.yaml and learn the prior again",
            )
        elif not (field.numeric and isinstance(param_distribution, FloatDistribution | IntDistribution)):
            both = asked.required(field, param_distribution)
            self._warn_of_choices(field, param_distribution, both)
            if field.choices and value is not None and value not in both:
                fixed = {**self._choices_of(trial), param_name: tuple(both)}
                value = self._claimed(study, trial, fixed).get(param_name)
            if value is not None:
                return asked.nearest(field, value, both)
        elif value is not None:
            self._warn_of_range(field, param_distribution)
            return asked.moved(value, param_distribution)
        return self._others.sample_independent(study, trial, param_name, param_distribution)

    def _choices_of(self, trial: FrozenTrial) -> Only:
        """Return the choices that a trial already has."""
        return {name: (value,) for name, value in self._own(trial.params).items() if self._fields[name].choices}

    def _warn_of_range(self, field: Field, of: FloatDistribution | IntDistribution) -> None:
        own = self._distributions[field.name]
        if type(own) is not type(of) or any(getattr(own, end) != getattr(of, end) for end in ("low", "high", "step")):
            self._warn(
                field.name,
                f"parameter '{field.name}': the objective asks for {of}, the prior's space has {own}; suggestions are "
                "moved into what is asked for: give both the same bounds, and no steps",
            )

    def _warn_of_choices(self, field: Field, of: BaseDistribution, both: Mapping[Value, object]) -> None:
        others = [choice for choice in getattr(of, "choices", ()) if choice not in both.values()]
        if others or not field.choices or len(both) < len(field.choices):
            never = f", and never to {', '.join(map(repr, others))}, which the space does not have" if others else ""
            self._warn(
                field.name,
                f"parameter '{field.name}': the objective asks for {of}, the prior's space has {field.allowed}; "
                f"suggestions keep to what both have{never}",
            )

    def _warn(self, name: str, text: str) -> None:
        if name not in self._told_of:
            self._told_of.add(name)
            warnings.warn(text, stacklevel=4)

    def reseed_rng(self) -> None:
        """Give each Optuna thread its own random parameters. The prior's suggestions stay as they are."""
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
        """Sort Optuna's trials into finished and running ones, leaving out the current one."""
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
        """Return a trial's configuration, or None if it has none yet or one outside the space."""
        try:
            return self._space.read({**trial.system_attrs.get(ATTRIBUTE, {}), **self._own(trial.params)})
        except DataError:
            return None

    def _own(self, parameters: Mapping[str, Value]) -> Configuration:
        """Return the parameters of the space, with choices as the space writes them."""
        own: Configuration = {}
        for name, value in parameters.items():
            if (field := self._fields.get(name)) is not None:
                own[name] = next(iter(asked.offered(field, [value])), value) if field.choices else value
        return own

    def _lacks_logarithm(self, trial: FrozenTrial) -> bool:
        """Tell whether the scale is log and a trial's outcome has no logarithm; warn the first time."""
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
        """Tell whether a trial lacks a value for a constraint of the space, and warn about the first one. Values that a
        `constraints_func` stored have numbers as names."""
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
        """Return the outcome with which an unfinished trial counts, or NaN if it has no usable value."""
        value = partials.partial(trial, typical, self._space.maximise) if trial.state == TrialState.PRUNED else None
        return float("nan") if value is None or (self._space.log and value <= 0) else value

    def _outcome(self, value: float | None) -> float:
        return float(value) if value is not None and np.isfinite(value) else float("nan")


ATTRIBUTE = "metabo:suggested"
"""The attribute that holds a trial's suggestion in Optuna's storage."""

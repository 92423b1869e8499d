"""An Optuna sampler that suggests from a prior learned with `metabo pretrain` (extra `optuna`).

The objective asks for the parameters as usual. Those of the prior's space come from the prior, by the method's policy,
from the first trial on, among the values that the objective asks for; others are drawn at random. Trials live in
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
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from metabo.data.history.description import Configuration
from metabo.data.history.fields import Field
from metabo.data.imports import partials
from metabo.errors import ConfigError, DataError
from metabo.tuner import asked
from metabo.tuner.asking import Only, Told
from metabo.tuner.numbers import seed_of
from metabo.tuner.study import Study
from metabo.tuner.suggest import suggest


class PriorSampler(optuna.samplers.BaseSampler):
    """Suggest from the prior in `folder`. `seed`: of candidates, ties, and parameters that the prior does not know.

        import metabo
        import optuna


        def objective(trial):
            rate = trial.suggest_float("learning_rate", 1e-5, 10.0, log=True)
            trial.suggest_categorical("batch_size", [32, 128])
            trial.suggest_float("one_minus_momentum", 1e-3, 1.0, log=True)
            power, steps = trial.suggest_float("decay_power", 0.1, 2.0), trial.suggest_float("decay_steps", 0.01, 0.99)
            return 0.1 + abs(rate - 0.01)


        study = optuna.create_study(direction="minimize", sampler=metabo.PriorSampler("my_study"))
        study.optimize(objective, n_trials=3)

    A pruned trial counts with the last value that it reported, or the median of the finished ones if that is worse;
    without a report it counts as a failure, as do failed trials and those that break a constraint, that is, have a
    value above 0 for it (`trial.set_constraint`, or what the `constraints_func` of another sampler stored). Running
    ones count as pending; trials with values outside the space (enqueued by hand, say) cause a warning and are left
    out. An outcome without a logarithm, where the scale is log, or without a value for a constraint of the space,
    causes one warning and is not used: its trial counts as pending, so that it neither repels nor is suggested again.
    (`metabo tell` refuses such an outcome; an error here would end a study whose trials cannot be removed.) Raises
    ConfigError for a study with another direction, or several, and for an invalid seed.
    """

    def __init__(self, folder: str | Path, seed: int = 0) -> None:
        self._study, self._seed = Study(folder), seed_of(seed)
        self._space = self._study.description
        self._fields = {field.name: field for field in self._space.fields}
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

    def _claimed(
        self, study: optuna.Study, trial: FrozenTrial, asks: Mapping[str, BaseDistribution] | None = None
    ) -> Configuration:
        """Write the next configuration that no other trial has into the storage, and return it without the parameters
        that it does not use. It has the values that the trial has already, and those that the objective asks for: by
        `asks`, and as far as trials tell."""
        with self._lock:  # threads share the core that suggests, and would only disturb each other
            return self._first_free(study, trial, asks or {})

    def _first_free(
        self, study: optuna.Study, trial: FrozenTrial, asks: Mapping[str, BaseDistribution]
    ) -> Configuration:
        place, has = 0, asked.values(self._fields, trial.params)
        while True:
            trials = study.get_trials(deepcopy=False)
            told = self._told(trials, trial.number)
            idle = {name: value for name, value in self._idle(trials).items() if name not in asks}
            ranges = {**asked.latest(self._fields, trials), **asks}
            pinned: Only = {name: (value,) for name, value in {**idle, **has}.items()}
            only = {**asked.narrowed(self._fields, ranges), **pinned}
            left = True
            try:
                found = suggest(self._study.prior, told, 1 + place, self._seed, only=only)[place].configuration
            except ConfigError as error:  # no configuration is left
                if idle.keys() >= self._fields.keys():
                    raise asked.strangers(self._space, trials) from error
                if not has:
                    raise
                left, found = False, trial.system_attrs.get(ATTRIBUTE, {})  # Optuna takes back no value: it must repeat
            found = self._space.used({**asked.settled(self._fields, found, ranges), **idle, **has})
            chosen: Configuration = {name: value for name, value in found.items() if value is not None}
            study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, chosen)
            same = [
                other.number
                for other in study.get_trials(deepcopy=False)
                if other.number != trial.number
                and (its := self._configuration(other, idle))
                and self._space.same(its, found)
            ]
            if not same or not left:
                return chosen
            place = sum(number < trial.number for number in same)  # workers that clash continue with different ones

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> object:
        """Return the prior's value, one that the objective asks for and the space has; if these differ, warn once. Warn
        once, too, of a parameter that the prior does not know; it is drawn at random, as is one that the prior's
        configuration does not use. Raises ConfigError for a parameter none of whose values is in the prior's space.
        """
        field = self._fields.get(param_name)
        if field is None:
            self._warn(
                param_name,
                f"parameter '{param_name}' is not in the prior's space ({', '.join(self._fields)}), so it is drawn at "
                "random; if it should be tuned, describe it in space.yaml and learn the prior again",
            )
            return self._drawn(study, trial, param_name, param_distribution)
        both = asked.required(field, param_distribution)
        self._warn_of_range(field, param_distribution, both)
        claim = trial.system_attrs.get(ATTRIBUTE, {})
        value = claim.get(param_name)
        if not self._holds(claim, trial) or (
            value is not None and not asked.close(field, value, asked.nearest(field, value, param_distribution, both))
        ):
            value = self._claimed(study, trial, {param_name: param_distribution}).get(param_name)
        if value is None:
            return self._drawn(study, trial, param_name, param_distribution)
        return asked.given(asked.nearest(field, value, param_distribution, both), param_distribution, both)

    def _holds(self, claim: Configuration, trial: FrozenTrial) -> bool:
        """Tell whether the values that a trial has are those that it claimed: Optuna may have fixed some."""
        before = self._space.used(claim)
        now = self._space.used({**claim, **asked.values(self._fields, trial.params)})
        return all(asked.close(field, before[name], now[name]) for name, field in self._fields.items())

    def _drawn(self, study: optuna.Study, trial: FrozenTrial, name: str, of: BaseDistribution) -> object:
        """Draw a value at random: another one in each trial, the same one whoever runs it."""
        numbers = np.random.SeedSequence([self._seed, trial.number, *name.encode()]).generate_state(1)
        return optuna.samplers.RandomSampler(int(numbers[0])).sample_independent(study, trial, name, of)

    def _warn_of_range(self, field: Field, of: BaseDistribution, both: asked.Both) -> None:
        if asked.differs(field, of, both):
            others = asked.others(of, both)
            never = f", and never to {', '.join(map(repr, others))}, which the space does not have" if others else ""
            self._warn(
                field.name,
                f"parameter '{field.name}': the objective asks for {of}, the prior's space has {field.allowed}; "
                f"suggestions keep to what both have{never}; for more, give both the same and learn the prior again",
            )

    def _warn(self, name: str, text: str) -> None:
        if name not in self._told_of:
            self._told_of.add(name)
            warnings.warn(text, stacklevel=4)

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
        typical, idle = partials.typical(trials), self._idle(trials)
        for trial in trials:
            try:
                configuration = self._read(trial, idle)
            except DataError as error:
                self._warn_of_unused(trial, error)
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

    def _configuration(self, trial: FrozenTrial, idle: Configuration | None = None) -> Configuration | None:
        """Return a trial's configuration, None if it has none yet, or one outside the space."""
        try:
            return self._read(trial, idle or {})
        except DataError:
            return None

    def _read(self, trial: FrozenTrial, idle: Configuration) -> Configuration:
        """Return a trial's configuration: what it asked for, the rest as it was claimed, with the values of parameters
        that are `idle`. Raises DataError if it has none yet, or one outside the space."""
        claim = {name: value for name, value in trial.system_attrs.get(ATTRIBUTE, {}).items() if name in self._fields}
        own = {name: value for name, value in trial.params.items() if name in self._fields}
        return self._space.read({**claim, **idle, **own, **asked.values(self._fields, own)})

    def _idle(self, trials: Sequence[FrozenTrial]) -> Configuration:
        """Return the parameters that the objective does not ask for, though a trial that finished uses them, with the
        values that they keep: those of the first such trial. Warn of each once."""
        left = dict(self._fields)
        for name in (name for trial in trials for name in trial.params):
            left.pop(name, None)
            if not left:
                return {}
        found: Configuration = {}
        for trial in trials:
            if trial.state != TrialState.COMPLETE or (configuration := self._configuration(trial, found)) is None:
                continue
            for name in [name for name in left if name not in found and configuration[name] is not None]:
                found[name] = value = configuration[name]
                self._warn(
                    f"idle {name}",
                    f"parameter '{name}' is in the prior's space, and the objective did not ask for it in trial "
                    f"{trial.number}; it counts as {self._fields[name].written(value)} from now on: ask for it, or "
                    "leave it out of space.yaml and learn the prior again",
                )
        return found

    def _warn_of_unused(self, trial: FrozenTrial, error: DataError) -> None:
        """Warn once of a trial that finished and has no configuration of the space."""
        if trial.state.is_finished() and trial.number not in self._warned:
            self._warned.add(trial.number)
            warnings.warn(
                f"trial {trial.number} is not used: {error}, or change the parameter in space.yaml (`when` says with "
                "which choices of another one it is used) and learn the prior again",
                stacklevel=2,
            )

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
                f"trial {trial.number}: no value of constraint '{one.name}' ({one.said}), so no trial without "
                f"one is used; call trial.set_constraint('{one.name}', {one.excess}) in the objective (above 0: "
                "broken)",
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

"""The trials of a study as a list, oldest first, each numbered by its position, and how telling, correcting and
releasing change the list. Nothing here reads or writes a file."""

import hashlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Literal, NamedTuple, NotRequired, TypedDict, get_args

from metabo.data.history import constraints
from metabo.data.history.account import several
from metabo.data.history.description import Configuration, Description
from metabo.errors import ConfigError, DataError, quoted
from metabo.records.files import canonical

State = Literal["running", "done", "failed"]
STATES: tuple[State, ...] = get_args(State)


class Claimant(TypedDict):
    """Who claimed a trial, and when (ISO 8601, UTC)."""

    by: str
    at: str


class StudyTrial(TypedDict):
    """A trial as it is stored. `outcome` is None unless it is done. Running trials have a `claim`, unless an older
    version claimed them, which did not record it; done ones have the values of their `constraints`, if the space has
    any."""

    number: int
    parameters: Configuration
    state: State
    outcome: float | None
    claim: NotRequired[Claimant]
    constraints: NotRequired[dict[str, float]]


class Result(NamedTuple):
    """The result of a configuration: the outcome (NaN: it failed), and the values of the constraints. `where` is the
    start of a message about it."""

    configuration: Configuration
    outcome: float
    where: str
    measured: Mapping[str, float] = MappingProxyType({})


def trial(number: int, configuration: Configuration, state: State, outcome: float | None) -> StudyTrial:
    """Return a trial as it is stored."""
    return {"number": number, "parameters": configuration, "state": state, "outcome": outcome}


def broken(one: StudyTrial, space: Description) -> list[str]:
    """Return the names of the constraints that a trial breaks. It is infeasible if there are any."""
    return constraints.broken(space.constraints, one.get("constraints", {}))


def counted(one: StudyTrial, space: Description) -> float | None:
    """Return the outcome that counts, or None if the trial is not done or is infeasible."""
    return None if broken(one, space) else one["outcome"]


def counts(trials: Sequence[StudyTrial]) -> str:
    """Return how many trials there are, and how many are in each state."""
    states = [f"{sum(one['state'] == name for one in trials)} {name}" for name in STATES]
    return f"{several(len(trials), 'trial')} ({', '.join(states)})"


class TrialIndex:
    """The trials of a study, indexed by their configuration. `trials` has all of them, oldest first."""

    def __init__(self, space: Description, trials: Iterable[StudyTrial] = ()) -> None:
        self.space = space
        self.trials = list(trials)
        self._places: dict[tuple[object, ...], list[int]] = {}
        self._entered = 0
        self._names = [field.name for field in space.fields]

    def put(self, one: StudyTrial) -> None:
        """Put a trial in the place of the one with its number, which must have the same configuration, or after the
        last one."""
        if one["number"] < len(self.trials):
            self.trials[one["number"]] = one
        else:
            self.trials.append(one)

    def same(self, configuration: Configuration) -> list[StudyTrial]:
        """Return the trials of a configuration, up to digits lost in printing or in single precision, oldest first."""
        for place in range(self._entered, len(self.trials)):
            values = map(self.trials[place]["parameters"].get, self._names)
            key = tuple(_digits(value) if isinstance(value, float) else value for value in values)
            self._places.setdefault(key, []).append(place)
        self._entered = len(self.trials)
        options = [_digits_near(v) if isinstance(v, float) else [v] for v in map(configuration.get, self._names)]
        places = {place for key in itertools.product(*options) for place in self._places.get(key, ())}
        near = [self.trials[place] for place in sorted(places)]
        return [one for one in near if self.space.same(one["parameters"], configuration)]


def _digits(number: float) -> str:
    """Return the six digits of a number by which it is indexed; all that single precision cannot hold with six digits
    have one place."""
    return "0" if abs(number) < TINY else f"{number:.5e}"


def _digits_near(number: float) -> list[str]:
    """Return the digits that the same number may have after it was printed and read, or rounded to single precision."""
    return list(dict.fromkeys(_digits(end) for end in (number, number * (1 - EDGE), number * (1 + EDGE))))


TINY = 1.1754943508222875e-38
"""The smallest normal number of single precision, which has fewer and fewer digits below it."""
EDGE = 1e-7
"""A relative change that exceeds that of digits lost in printing (`metabo.data.history.fields.CLOSE`), and what single
precision loses (6e-8)."""


def claimed(count: int, configurations: Sequence[Configuration], claim: Claimant) -> list[StudyTrial]:
    """Return the configurations as running trials, numbered after `count` others."""
    new = [trial(number, one, "running", None) for number, one in enumerate(configurations, start=count)]
    for one in new:
        one["claim"] = claim
    return new


def claim_id(running: StudyTrial) -> str:
    """Return the name of a running trial, which is fixed while it runs; its number may change when trials are released
    or corrected. The name is made from its configuration and its claim, so a later claim of the same configuration has
    another name."""
    said = canonical({"parameters": running["parameters"], "claim": running.get("claim")})
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def released(
    trials: list[StudyTrial], chosen: Collection[str], where: str
) -> tuple[list[StudyTrial], list[StudyTrial]]:
    """Return the trials without the running ones of the chosen claims (`claim_id`), and the running ones that were
    removed. The kept trials are renumbered.

    Raises ConfigError, which starts with `where`, for a claim that no running trial has.
    """
    running = {one["number"]: claim_id(one) for one in trials if one["state"] == "running"}
    for name in chosen:
        if name not in running.values():
            shown = ", ".join(running.values()) or "none"
            raise ConfigError(
                f"{where}: no running trial has the claim {quoted(name)}; it may have been told or released meanwhile "
                f"(metabo trials lists them); running: {shown}"
            )
    kept = _copies([one for one in trials if running.get(one["number"]) not in chosen])
    gone = [one for one in trials if running.get(one["number"]) in chosen]
    return _numbered(kept), gone


def recorded(index: TrialIndex, results: Sequence[Result]) -> tuple[list[StudyTrial], list[StudyTrial]]:
    """Add the results to the trials. Return the trials that are new or changed, and the trials of the results, in
    order.

    A result ends the running trial of its configuration. The same outcome again is the same trial, whatever values it
    has of constraints that the space has no more; another outcome is a repeat.
    """
    changed: dict[int, StudyTrial] = {}
    told = []
    for result in results:
        new = _finished(len(index.trials), result)
        same = index.same(result.configuration)
        match = next((one for one in same if one["state"] == "running"), None)
        if match is None and (known := next((one for one in same if _equal(one, new, index.space)), None)):
            told.append(known)
            continue
        if match:  # its digits are those that were suggested
            new["number"], new["parameters"] = match["number"], match["parameters"]
        index.put(new)
        changed[new["number"]] = new
        told.append(new)
    return list(changed.values()), told


def corrected(
    trials: list[StudyTrial], results: Sequence[Result], space: Description
) -> tuple[list[StudyTrial], list[StudyTrial]]:
    """Return the trials with the results in place of all earlier outcomes of the same configurations, and the trials of
    the results, in order. Several outcomes of one configuration are its repeats. Trials are renumbered. Values of
    constraints that the space has no more cannot be told again: they stay if all earlier outcomes have the same ones.

    Raises DataError, which starts with the `where` of the result, for a configuration that has no outcome yet.
    """
    trials = _copies(trials)
    places: list[list[StudyTrial]] = [[one] for one in trials]
    cleared: set[int] = set()
    told = []
    for result in results:
        same = [one for one in trials if space.same(one["parameters"], result.configuration)]
        ended = [one["number"] for one in same if one["state"] != "running"]
        if not ended:
            shown = ", ".join(f"{name} {value}" for name, value in result.configuration.items() if value is not None)
            what = "is running and has no outcome yet" if same else "was never told"
            raise DataError(
                f"{result.where}the configuration ({shown}) {what}, so there is nothing to correct; check its values, "
                "or tell it without --correct (in Python: correct=True)"
            )
        place = places[ended[0]]
        if ended[0] not in cleared:
            cleared.add(ended[0])
            for number in ended:
                places[number].clear()
        new = _finished(0, result)
        new["parameters"] = trials[ended[0]]["parameters"]
        if new["state"] == "done" and (retired := _retired([trials[number] for number in ended], space)):
            new["constraints"] = {**retired, **new.get("constraints", {})}
        match = next((one for one in place if _equal(one, new, space)), None)
        if match is None:
            place.append(new)
        told.append(match or new)
    return _numbered([one for place in places for one in place]), told


def require_logarithms(trials: list[StudyTrial], space: Description, where: str, described: str) -> None:
    """Raise DataError if the outcome's scale is log and the outcome of a trial has no logarithm. `where` and
    `described` are the files of the trials and of the space.

    Such outcomes were told before the scale was changed. To the model they would be infinitely good or bad.
    """
    for one in trials if space.log else ():
        if one["outcome"] is not None and one["outcome"] <= 0:
            raise DataError(
                f"{where}: trial {one['number']} has outcome {one['outcome']:g} of '{space.outcome}', which has no "
                f"logarithm, and {described} key 'outcome.scale' is log; remove 'scale: log' and make the prior with "
                "metabo pretrain, correct the outcome with metabo tell --correct, or choose another folder"
            )


def require_measured(trials: list[StudyTrial], space: Description, where: str, described: str) -> None:
    """Raise DataError if a done trial has no value for a constraint, because it was told before the space had it.
    `where` and `described` are the files of the trials and of the space."""
    for one in trials:
        known = one.get("constraints", {})
        lacks = [constraint.name for constraint in space.constraints if constraint.name not in known]
        if one["state"] == "done" and lacks:
            raise DataError(
                f"{where}: trial {one['number']} has no value of '{lacks[0]}', and {described} key "
                f"'constraints.{lacks[0]}' asks for it; remove the constraint, or choose another folder and tell the "
                "trials there with their values"
            )


def _finished(number: int, result: Result) -> StudyTrial:
    if not isfinite(result.outcome):
        return trial(number, result.configuration, "failed", None)
    done = trial(number, result.configuration, "done", result.outcome)
    if result.measured:
        done["constraints"] = dict(result.measured)
    return done


def _retired(trials: list[StudyTrial], space: Description) -> dict[str, float]:
    """Return the values that all done trials have in common, of constraints that the space has no more."""
    asked = {constraint.name for constraint in space.constraints}
    first, *others = [one.get("constraints", {}) for one in trials if one["state"] == "done"] or [{}]
    return {
        name: value
        for name, value in first.items()
        if name not in asked and all(other.get(name) == value for other in others)
    }


def _copies(trials: list[StudyTrial]) -> list[StudyTrial]:
    return [one.copy() for one in trials]


def _numbered(trials: list[StudyTrial]) -> list[StudyTrial]:
    for number, one in enumerate(trials):
        one["number"] = number
    return trials


def _equal(one: StudyTrial, other: StudyTrial, space: Description) -> bool:
    names = [constraint.name for constraint in space.constraints]
    measured = [[trial.get("constraints", {}).get(name) for name in names] for trial in (one, other)]
    return measured[0] == measured[1] and all(one.get(key) == other.get(key) for key in ("state", "outcome"))

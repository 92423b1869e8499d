"""The told and claimed trials of a study, in the folder that `pretrain` made. This never reads the prior, so it needs
no JAX."""

import getpass
import platform
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from metabo.data.csv_layout import Sheet
from metabo.data.history import description as descriptions
from metabo.data.history import told as history
from metabo.data.history.description import Configuration, Description
from metabo.data.history.fields import few
from metabo.errors import ConfigError, DataError, MetaboError, nearest, printable, quoted
from metabo.tuner import store
from metabo.tuner.journal import TrialJournal
from metabo.tuner.results import ToldResult, read_result
from metabo.tuner.trials import (
    Claimant,
    Result,
    StudyTrial,
    broken,
    claim_id,
    claimed,
    corrected,
    counted,
    counts,
    recorded,
    released,
    require_logarithms,
)

DEFAULT = "study"
"""The name of the study unless another one is given."""


class Ledger:
    """The trials of a study. `name` distinguishes studies that share the prior of a folder."""

    def __init__(self, folder: str | Path, name: str = DEFAULT) -> None:
        self.folder, self.name = Path(folder), name
        self.record = store.require(self.folder)
        store.trials_path(self.folder, name)  # refuses a bad name
        self._known: TrialJournal | None = None

    def __repr__(self) -> str:
        """Say folder, study, the numbers of trials by state, and the best outcome; never raise, since debuggers and
        failing tests call it."""
        try:
            trials = self.trials
            best = best_of(trials, self.description)
        except MetaboError:
            shown = "cannot be read"
        else:
            shown = counts(trials) + (f", best {self.description.outcome} {best['outcome']:g}" if best else "")
        return f"<{type(self).__name__} '{self.name}' in {self.folder}: {shown}>"

    @cached_property
    def description(self) -> Description:
        """The space, as ``space.yaml`` described it."""
        return descriptions.of_mapping(dict(self.record["space"]), str(self.folder / store.RECORD))

    @property
    def trials(self) -> list[StudyTrial]:
        """The trials, oldest first, each with number, parameters, state (running, done, failed) and outcome. A running
        trial also has a `claim` (by whom, and when); a done one has the values of its `constraints`, if the space has
        any."""
        try:
            return store.read_trials(self.folder, self.name, self.description)
        except DataError:
            store.current(self.folder, self.record)  # values that this space lacks may be of a wider one
            raise

    @property
    def best(self) -> StudyTrial | None:
        """The best feasible trial so far, or None."""
        return best_of(self.trials, self.description)

    def broken(self, trial: StudyTrial) -> list[str]:
        """Return the names of the constraints that a trial breaks. It is infeasible if there are any."""
        return broken(trial, self.description)

    def tell(
        self,
        configuration: Configuration,
        outcome: float | None,
        correct: bool = False,
        constraints: Mapping[str, float] | None = None,
    ) -> StudyTrial:
        """Record the outcome of a configuration (None, or not finite: it failed), and return the trial. `correct`: see
        `tell_all`. `constraints`: the measured values of all constraints of the space; a failed trial needs none.
        Raises DataError for a configuration or value that cannot be used; nothing is recorded then."""
        (told,) = self.tell_all([(configuration, outcome, constraints)], correct)
        return told

    def tell_all(self, results: Sequence[ToldResult], correct: bool = False) -> list[StudyTrial]:
        """Record several outcomes (None, or not finite: failed), all or none, and return their trials. Each result may
        have the values of its constraints as a third part.

        An outcome ends the running trial of its configuration. A configuration that was told before with the same
        outcome and values stays one trial; with other ones it is a repeat.

        `correct`: the earlier outcomes of these configurations were wrong, and these outcomes replace them. Give all
        repeats of a configuration again. Trials are renumbered. Raises DataError for a configuration or value that
        cannot be used and, with `correct`, for a configuration that has no outcome yet; nothing is recorded then.
        """
        if isinstance(results, Mapping | str | bytes) or not isinstance(results, Sequence):
            raise DataError(f"results are {quoted(results)}; tell a list of pairs: a configuration and its outcome")
        places = [f"result {number}: " if len(results) > 1 else "" for number in range(1, len(results) + 1)]
        read = [read_result(one, self.description, where) for one, where in zip(results, places, strict=True)]
        return self._record(read, correct)

    def tell_file(self, path: str | Path | Sheet, correct: bool = False) -> list[StudyTrial]:
        """Record the rows of a CSV as printed by `metabo suggest`, with the outcomes filled in ("failed": it failed).
        `path`: the file, or what was read from it; `correct`: see `tell_all`. If it has a column of the study, this
        names no other study.

        Raises DataError, which names row and field; nothing is recorded then.
        """
        where = path.where if isinstance(path, Sheet) else path
        rows = history.read_told(path, self.description, self.name)
        results = [Result(one.configuration, one.outcome, f"{where}: row {one.row}, ", one.measured) for one in rows]
        return self._record(results, correct)

    def release(
        self, claims: Collection[str | StudyTrial] | None = None, older: timedelta | None = None
    ) -> list[StudyTrial]:
        """Give up claimed trials that will get no outcome, and return them: those of the `claims` (trials as in
        `trials`, or claims as `metabo trials` names them), or those claimed longer ago than `older`, or all. They may
        be suggested again. The remaining trials are renumbered.

        If an outcome of a released trial is told after all, it is recorded. Raises ConfigError for both `claims` and
        `older`, for values of another type, and for a claim that no running trial has: it may have been told, or
        released and claimed again, since it was looked up.
        """
        if claims is not None and older is not None:
            raise ConfigError("release: give claims or an age, not both")
        if older is not None and not isinstance(older, timedelta):
            raise ConfigError(f"release: older is {quoted(older)}; give an age, e.g. datetime.timedelta(hours=2)")
        names = None if claims is None else _names(claims)
        now = datetime.now(UTC)
        with self._held() as held:
            trials = held.index.trials
            running = [one for one in trials if one["state"] == "running"]
            if older is not None:
                running = [one for one in running if (age := age_of(one, now)) is not None and age > older]
            chosen = [claim_id(one) for one in running] if names is None else names
            kept, gone = released(trials, chosen, str(store.trials_path(self.folder, self.name)))
            if gone:
                self._replace(kept)
        return gone

    @contextmanager
    def _held(self) -> Iterator[TrialJournal]:
        """Yield the trials under the folder's lock, so no other process changes them; `_add` or `_replace` may change
        them once. The first change of a study says so on standard error if the folder has others: its name may be
        mistyped. Raises DataError if they cannot be read."""
        known, self._known = self._known, None  # a change that fails leaves the file in doubt
        with store.locked(self.folder):
            store.settle(self.folder, self.record)
            held = store.held_trials(self.folder, self.name, self.description, known)
            said = "" if held.seal else self.newness()
            yield held
            changed = self._known is not None
            self._known = self._known or held
        if changed and said:
            print(printable(f"note: {said}"), file=sys.stderr, flush=True)

    def newness(self) -> str:
        """Say that nothing was told or claimed in this study, if that is so while the folder has others, and name them:
        its name may be mistyped; else return "". Raises DataError if the folder cannot be read."""
        others = store.told_studies(self.folder)
        if not others or self.name in others:
            return ""
        near = nearest(self.name, others)
        return f"'{self.name}' is a new study in {self.folder}; others there: {few(others)}{near and f'.{near}'}"

    def _add(self, held: TrialJournal, new: list[StudyTrial]) -> None:
        """Save trials that are new or changed and already in the index. They are on the disk afterwards. Raises
        MetaboError if that fails."""
        self._known = store.add_trials(self.folder, self.name, held, new)

    def _replace(self, trials: list[StudyTrial]) -> None:
        """Replace all held trials by others. They are on the disk afterwards. Raises MetaboError if that fails."""
        self._known = store.write_trials(self.folder, self.name, trials, self.description)

    def _claim(self, held: TrialJournal, configurations: list[Configuration], claim: Claimant) -> None:
        """Record configurations as running. Raises MetaboError if that fails."""
        new = claimed(len(held.index.trials), configurations, claim)
        for one in new:
            held.index.put(one)
        self._add(held, new)

    def _record(self, results: list[Result], correct: bool) -> list[StudyTrial]:
        with self._held() as held:
            if correct:
                changed, told = corrected(held.index.trials, results, self.description)
                self._replace(changed)
            else:
                new, told = recorded(held.index, results)
                self._add(held, new)
        return [_copy(one) for one in told]

    def _require_logarithms(self, trials: list[StudyTrial]) -> None:
        """Raise DataError for an outcome that its scale does not allow."""
        path, record = store.trials_path(self.folder, self.name), self.folder / store.RECORD
        require_logarithms(trials, self.description, str(path), str(record))


def best_of(trials: Sequence[StudyTrial], space: Description) -> StudyTrial | None:
    """Return the best of some trials, or None if none is feasible with an outcome."""
    sign = 1.0 if space.maximise else -1.0
    done = [(sign * outcome, one) for one in trials if (outcome := counted(one, space)) is not None]
    return max(done, key=lambda pair: pair[0], default=(0.0, None))[1]


def _copy(trial: StudyTrial) -> StudyTrial:
    """Return a trial that its reader may change."""
    copied: StudyTrial = {**trial, "parameters": dict(trial["parameters"])}
    if "constraints" in trial:
        copied["constraints"] = dict(trial["constraints"])
    return copied


def _names(claims: Collection[str | StudyTrial]) -> list[str]:
    """Return the names of claims. Raises ConfigError for anything but a collection of claims, and for a trial that has
    ended."""
    names = []
    try:
        listed = list(claims) if isinstance(claims, Collection) and not isinstance(claims, str | Mapping) else [None]
    except TypeError:  # an array without axes calls itself a collection
        listed = [None]
    for one in listed:
        if isinstance(one, str):
            names.append(one)
        elif isinstance(one, Mapping) and one.get("state") == "running":
            names.append(claim_id(one))
        else:
            raise ConfigError(
                f"release: {quoted(claims if one is None else one)} is no claim; give a list of running trials, as "
                "study.trials has them, or of claims, as metabo trials shows them (numbers change when others release)"
            )
    return names


def claim_of(by: str | None = None) -> Claimant:
    """Return a claim made now. Raises ConfigError if `by` is not a short text in one line."""
    if by is not None and not (isinstance(by, str) and by.strip() and by.isprintable() and len(by) <= 100):
        raise ConfigError(f"by {quoted(by)}: say who claims in one line of at most 100 characters")
    return {"by": by or f"{_user()}@{platform.node() or 'this machine'}", "at": _seconds(datetime.now(UTC))}


def age_of(trial: StudyTrial, now: datetime) -> timedelta | None:
    """Return how long ago a trial was claimed, or None if that is unknown."""
    return now - datetime.fromisoformat(trial["claim"]["at"]) if "claim" in trial else None


def _seconds(now: datetime) -> str:
    return now.isoformat(timespec="seconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        return "someone"

"""Tune with your own past studies: learn a prior once (`pretrain`), then ask and tell (`Study`).

A study lives in a folder, so another process, or `metabo suggest` in a shell, can continue it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import nan
from pathlib import Path
from typing import cast

from metabo.bo import priors
from metabo.compute.guest import float64
from metabo.data.history import description as descriptions
from metabo.data.history.description import Description
from metabo.data.history.frames import PastTrials, required, required_spaces
from metabo.data.history.past import PastStudies, Scale, read_all
from metabo.data.history.space_yaml import SpaceSource
from metabo.errors import ConfigError, DataError
from metabo.plan.specs import MethodSpec
from metabo.tuner import formats, learning, store
from metabo.tuner.asking import Prior, Suggestion, Told
from metabo.tuner.blend import past as blend
from metabo.tuner.formats import PastSummary, StudyRecord
from metabo.tuner.journal import TrialJournal
from metabo.tuner.ledger import Ledger, claim_of
from metabo.tuner.numbers import seed_of, steps_of, whole
from metabo.tuner.suggest import suggest
from metabo.tuner.trials import Claimant, StudyTrial, counted, require_logarithms, require_measured

UNLOCKED = 5
"""How often a claim is computed without the folder's lock. If others change the trials in the meantime each time, it is
then computed with the lock held."""

RELEASE = "give running trials up with metabo release, "
MOST = 10_000
"""The most suggestions at once: most methods hold their covariance in memory (800 MB), and the default method makes
them one after another."""


@float64
def pretrain(
    histories: PastTrials | Sequence[PastTrials],
    spaces: SpaceSource | Sequence[SpaceSource],
    to: str | Path,
    *,
    target: SpaceSource | None = None,
    method: str | None = None,
    seed: int = 0,
    steps: int | None = None,
    skip_bad_rows: bool = False,
) -> "Study":
    """Learn a prior from past studies and put it into the folder `to`, replacing any prior there.

        import metabo

        study = metabo.pretrain(["history.csv"], ["space.yaml"], "my_study", steps=200)
        (first,) = study.suggest()
        print(first.configuration)
        print(f"predicted: {first.median:.3g} (90 %: {first.low:.3g} to {first.high:.3g})")

    Each history goes with the space at the same position; a single one needs no list. A history is a CSV file, a
    DataFrame with a column for the study, or a dict of DataFrames by study; several DataFrames with one space are one
    history. A space is a ``space.yaml``, or what that says as a dict. `target`: the space to tune, by default the first
    one; it needs no history. `method`: by default blend for one space, mphd for several. `seed`: the seed of the
    training. `steps`: the most training steps. `skip_bad_rows`: leave out rows with a fault. Raises DataError and
    ConfigError, which name file, row, field and fix.
    """
    seed, steps = seed_of(seed), steps_of(steps)
    if Path(to).is_file():
        raise DataError(f"{to}: is a file; choose a folder for the prior with --to (in Python: the argument `to`)")
    given = required(histories)
    past = read_all(given, required_spaces(spaces), skip_bad_rows)
    goal = descriptions.load(required_spaces(target)[0]) if target else past[0].description
    here = next((one for one in past if one.description.name == goal.name), None)
    if here is not None and here.description.source != goal.source:
        raise ConfigError(
            f"{goal.where}: space '{goal.name}' has another description in --space; give one of them a name"
        )
    method = method or (learning.BLEND if len(past) == 1 and here is not None else "mphd")
    spec = learning.specification(method, seed, steps)
    folder = Path(to)
    _refuse_other_space(folder, goal)
    if steps is not None and method != learning.BLEND:  # which stops once it has converged
        learning.require_affordable(steps, past)
    save, remarks = _learned(spec, goal, past)
    record: StudyRecord = {
        "space": goal.source,
        "scale": here.scale._asdict() if here else None,
        "spec": spec,
        "past": [_summary(one) for one in past],
        "remarks": [*(remark for one in past for remark in one.remarks), *remarks],
    }
    with store.publishing(folder) as scratch:
        _refuse_other_space(folder, goal)  # others may have told outcomes during the training
        save(scratch / "prior.npz")
        store.publish(folder, record, scratch / "prior.npz")
    return Study(folder)


def _learned(spec: MethodSpec, goal: Description, past: list[PastStudies]) -> tuple[Callable[[Path], None], list[str]]:
    """Learn a prior, and return a function that writes it to a file, and remarks."""
    if spec["method"] == learning.BLEND:
        here, steps = learning.require_here(goal.name, past), int(cast(int, spec["pretrain"]["steps"]))
        return partial(blend.save, past=blend.learn(here, spec["seed"], steps)), []
    prior, remarks = learning.learn(spec, goal.space, past)
    if (prior.stopped >= 0).any():
        remarks = [*remarks, f"training stopped at step {int(prior.stopped.max())}, which was not finite"]
    return partial(priors.save, spec=spec, priors=[prior]), remarks


class Study(Ledger):
    """A study in a folder that `pretrain` made. `name` distinguishes studies that share the prior.

        import metabo

        study = metabo.Study("my_study")
        for suggestion in study.suggest(3, claim=True):
            chosen = suggestion.configuration
            outcome = 0.1 + abs(chosen["learning_rate"] - 0.01)  # train with it; None if that fails
            study.tell(chosen, outcome)  # constraints={"memory_gb": 6.5} if the space has constraints
        print(study.best)

    Another process, or `metabo suggest` in a shell, can continue it. Raises DataError for a folder without an intact
    record, and ConfigError for a name that is not a plain file name.
    """

    def __getstate__(self) -> dict[str, object]:
        """Leave out the prior: its arrays could be unpickled as float32 elsewhere, and it is in the folder anyway."""
        return {**{name: value for name, value in vars(self).items() if name != "prior"}, "_known": None}

    @cached_property
    def prior(self) -> Prior:
        """The prior with its space, as it is in the folder on first access."""
        try:
            return self._loaded()
        except DataError:
            now = store.current(self.folder, self.record)
            if now["checksum"] == self.record["checksum"]:
                raise
            self.record = now  # another one was learned since the study was opened
            return self._loaded()

    @float64
    def _loaded(self) -> Prior:
        path = store.prior_path(self.folder, self.record)
        scale = Scale(**self.record["scale"]) if self.record["scale"] else None
        if self.record["spec"]["method"] == learning.BLEND:
            return Prior(
                self.description, scale, cast(MethodSpec, self.record["spec"]), blend.conditioned(blend.load(path))
            )
        spec, (stored,) = priors.load(path)
        return Prior(self.description, scale, cast(MethodSpec, spec), stored.of(0, 0))  # which `learn` stored

    def suggest(
        self, count: int = 1, seed: int = 0, claim: bool = False, by: str | None = None, acquisition: str | None = None
    ) -> list[Suggestion]:
        """Return `count` configurations to try next. Without `claim` nothing changes, so the same call gives the same
        answer.

        `claim` records them as running, so that other suggestions avoid them until their outcomes are told or they are
        released. `by`: who claims them, by default user and host. `acquisition`: ei, pi, ucb3, ..., in place of the
        method's own. Raises ConfigError for an invalid count, seed, name or acquisition, and if the space has fewer
        configurations left; DataError for files that are not as they were written. Warns (NumericsWarning) if the model
        is not numerically sound: a suggestion is then a guess without a prediction.
        """
        count = whole("count", count, 1, "ask for one suggestion at least, and a whole number of them")
        seed = seed_of(seed)
        if count > MOST:
            raise ConfigError(f"count is {count}, and at most {MOST:,} are suggested at once; ask for fewer")
        if not claim:
            return suggest(self.prior, self._told(self.trials), count, seed, acquisition)
        made = claim_of(by)
        for _ in range(UNLOCKED):  # no worker waits for the model, unless others keep changing the trials
            before = self.trials
            found = suggest(self.prior, self._told(before), count, seed, acquisition)
            with self._held() as held:
                if held.index.trials == before:
                    return self._claimed(held, found, made)
        with self._held() as held:
            told = self._told(held.index.trials)
            return self._claimed(held, suggest(self.prior, told, count, seed, acquisition), made)

    def _claimed(self, held: TrialJournal, found: list[Suggestion], made: Claimant) -> list[Suggestion]:
        """Record suggestions as running, and return them."""
        self._claim(held, [one.configuration for one in found], made)
        return found

    def _told(self, trials: list[StudyTrial]) -> Told:
        """Sort trials for the model, with infeasible ones as failed. Raises DataError for an outcome that its scale
        does not allow."""
        self._require_logarithms(trials)
        finished = [one for one in trials if one["state"] != "running"]
        seen = [counted(one, self.description) for one in finished]
        outcomes = [nan if outcome is None else outcome for outcome in seen]
        running = [one["parameters"] for one in trials if one["state"] == "running"]
        return Told([one["parameters"] for one in finished], outcomes, running)


def _summary(past: PastStudies) -> PastSummary:
    return {
        "history": past.name,
        "space": past.description.name,
        "studies": len(past.tasks),
        "trials": sum(len(task.y) for task in past.tasks.values()),
        "layout": past.layout,
        "accounts": past.accounts,
    }


def _refuse_other_space(folder: Path, goal: Description) -> None:
    """Raise ConfigError if trials in the folder belong to another space than `goal`. Raise DataError if they cannot be
    read, or if `goal` needs logarithms that their outcomes do not have, or constraints of which they have no values."""
    studies = store.told_studies(folder)
    before = _space_before(folder) if studies else goal
    if before is not None:
        if differing := _differing(before, goal):
            raise ConfigError(
                f"{folder}: has trials of another space ({', '.join(studies)}), whose {differing}; choose another "
                "folder"
            )
        for name in studies:
            _require_inside(folder, name, before, goal)
    for name in studies if goal.log or goal.constraints or before is None else ():
        trials, where = store.read_trials(folder, name, before or goal), str(store.trials_path(folder, name))
        require_logarithms(trials, goal, where, goal.where)
        require_measured(trials, goal, where, goal.where)


def _require_inside(folder: Path, study: str, before: Description, goal: Description) -> None:
    """Raise ConfigError unless every trial of a study, read in the space `before`, is the same in the space `goal`."""
    there, space = store.read_trials(folder, study, before), replace(before, fields=goal.fields)
    try:
        moved = store.read_trials(folder, study, space)
    except DataError as error:
        said = str(error).splitlines()[0].partition("; ")[0]
        free = RELEASE * _ended_inside(there, store.trials_path(folder, study), space)
        raise ConfigError(f"{goal.where}: {said}; widen the space, {free}or choose another folder") from error
    changed = [
        (one, name, value, other["parameters"][name])
        for one, other in zip(there, moved, strict=True)
        for name, value in one["parameters"].items()
        if (type(value), value) != (type(other["parameters"][name]), other["parameters"][name])
    ]
    if changed:
        one, name, value, now = changed[0]
        free = RELEASE * all(other["state"] == "running" for other, *_ in changed)
        raise ConfigError(
            f"{goal.where}: parameter '{name}' of trial {one['number']} of study '{study}' is {json.dumps(value)} and "
            f"would be {json.dumps(now)}; write its values as they were, {free}or choose another folder"
        )


def _ended_inside(trials: list[StudyTrial], path: Path, space: Description) -> bool:
    """Return whether all trials but those that run lie in a space."""
    try:
        formats.parse_trials(path, ((one["number"], one) for one in trials if one["state"] != "running"), space, "")
    except DataError:
        return False
    return True


def _differing(before: Description, goal: Description) -> str:
    """Return what keeps trials of one space from being trials of another one, or "" if only bounds, scales or choices
    differ."""
    if (before.outcome, before.maximise) != (goal.outcome, goal.maximise):
        goals = [f"'{one.outcome}', to be {'maximised' if one.maximise else 'minimised'}" for one in (before, goal)]
        return f"outcome is {goals[0]}, not {goals[1]}"
    first, second = ({one.name: one for one in space.fields} for space in (before, goal))
    if apart := [name for name in {**first, **second} if name not in first or name not in second]:
        return f"parameters differ: {', '.join(apart)} {'is' if len(apart) == 1 else 'are'} in one of them alone"
    for name, one in first.items():
        other = second[name]
        if (one.kind, one.parent, one.needs) != (other.kind, other.parent, other.needs):
            return f"parameter '{name}' is of another type, or is used under another condition"
    return "parameters stand in another order" if list(first) != list(second) else ""


def _space_before(folder: Path) -> Description | None:
    """Return the space of the folder's record, or None if the record is gone or damaged. Then it is about to be made
    again, and the values of the trials show whether they lie in the new space."""
    try:
        record = store.require(folder)
    except DataError:
        return None
    return descriptions.of_mapping(dict(record["space"]), str(folder / store.RECORD))

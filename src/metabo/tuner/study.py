"""Tune with one's own past studies: learn a prior once (`pretrain`), then ask and tell (`Study`).

A study lives in a folder, so that another process, or `metabo suggest` in a shell, goes on with it.
"""

from collections.abc import Sequence
from functools import cached_property
from math import isfinite, nan
from pathlib import Path
from typing import cast

from metabo.bo import priors
from metabo.compute.precision import float64
from metabo.data.history import description as descriptions
from metabo.data.history import read as history
from metabo.data.history.description import LARGEST, Configuration, Description
from metabo.data.history.past import PastStudies, Scale, read_all
from metabo.errors import ConfigError, DataError
from metabo.plan.specs import MethodSpec
from metabo.tuner import learning, store
from metabo.tuner.suggest import Prior, Suggestion, Told, suggest
from metabo.tuner.trials import Result, StudyTrial, corrected, recorded, require_logarithms, trial

DEFAULT = "study"
"""Name of the tuned study unless another one is given."""


@float64
def pretrain(
    histories: str | Path | Sequence[str | Path],
    spaces: str | Path | Sequence[str | Path],
    to: str | Path,
    *,
    target: str | Path | None = None,
    method: str | None = None,
    seed: int = 0,
    steps: int | None = None,
    skip_bad_rows: bool = False,
) -> "Study":
    """Learn a prior from past studies and put it into the folder `to`, in place of the one there.

        import metabo

        study = metabo.pretrain(["history.csv"], ["space.yaml"], "my_study", steps=200)
        (first,) = study.suggest()
        print(first.configuration)
        print(f"predicted: {first.median:.3g} (90 %: {first.low:.3g} to {first.high:.3g})")

    Each history (CSV) goes with the space (``space.yaml``) at the same position; one may be given without a list.
    `target`: the space to tune, the first one unless given; it needs no history. `method`: h_nll for one space, mphd
    for several, unless given. `steps`: of the training. Raises DataError and ConfigError that name file, row, field and
    fix.
    """
    histories, spaces = ([given] if isinstance(given, str | Path) else given for given in (histories, spaces))
    past = read_all(histories, spaces, skip_bad_rows)
    goal = descriptions.load(target) if target else past[0].description
    here = next((one for one in past if one.description.name == goal.name), None)
    if here is not None and here.description.source != goal.source:
        raise ConfigError(f"{target}: space '{goal.name}' has another description in --space; give one of them a name")
    method = method or ("h_nll" if len(past) == 1 and here is not None else "mphd")
    spec = learning.specification(method, seed, steps)
    folder = Path(to)
    described = str(target or spaces[0])
    _refuse_other_space(folder, goal, described)
    prior, remarks = learning.learn(spec, goal.space, past)
    if (prior.stopped >= 0).any():
        remarks = [*remarks, f"training stopped at step {int(prior.stopped.max())}, which was not finite"]
    record: store.StudyRecord = {
        "space": goal.source,
        "scale": here.scale._asdict() if here else None,
        "spec": spec,
        "past": [_summary(str(path), one) for path, one in zip(histories, past, strict=True)],
        "remarks": [*(remark for one in past for remark in one.remarks), *remarks],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with store.locked(folder), store.scratch(folder) as scratch:
            _refuse_other_space(folder, goal, described)  # training took a while, and others may have told meanwhile
            priors.save(scratch / "prior.npz", spec, [prior])
            store.publish(folder, record, scratch / "prior.npz")
    except OSError as error:
        raise DataError(f"{folder}: cannot write here ({error.strerror}); choose another folder with --to") from error
    return Study(folder)


class Study:
    """A study that is tuned, in a folder that `pretrain` made. `name` tells apart studies that share the prior.

        import metabo

        study = metabo.Study("my_study")
        for suggestion in study.suggest(3, claim=True):
            chosen = suggestion.configuration
            outcome = 0.1 + abs(chosen["learning_rate"] - 0.01)  # train with it; None if that fails
            study.tell(chosen, outcome)
        print(study.best)

    Another process, or `metabo suggest` in a shell, can go on with it.
    """

    def __init__(self, folder: str | Path, name: str = DEFAULT) -> None:
        self.folder, self.name = Path(folder), name
        self.record = store.require(self.folder)
        store.trials_path(self.folder, name)  # refuses a bad name

    def __getstate__(self) -> dict[str, object]:
        """Leave out the prior: unpickled elsewhere its arrays would be float32, and it is in the folder anyway."""
        return {name: value for name, value in vars(self).items() if name != "prior"}

    @cached_property
    @float64
    def prior(self) -> Prior:
        """The prior with its space."""
        spec, (stored,) = priors.load(store.prior_path(self.folder, self.record))
        scale = Scale(**self.record["scale"]) if self.record["scale"] else None
        return Prior(self.description, scale, cast(MethodSpec, spec), stored.of(0, 0))  # which `learn` stored

    @cached_property
    def description(self) -> Description:
        """The space, as ``space.yaml`` described it."""
        return descriptions.of_mapping(dict(self.record["space"]), str(self.folder / store.RECORD))

    @property
    def trials(self) -> list[StudyTrial]:
        """What was told, oldest first: number, parameters, state (running, done, failed), outcome."""
        return store.read_trials(self.folder, self.name)

    @property
    def best(self) -> StudyTrial | None:
        """The best trial so far."""
        sign = 1.0 if self.description.maximise else -1.0
        done = [(sign * one["outcome"], one) for one in self.trials if one["outcome"] is not None]
        return max(done, key=lambda pair: pair[0], default=(0.0, None))[1]

    def suggest(self, count: int = 1, seed: int = 0, claim: bool = False) -> list[Suggestion]:
        """Return `count` configurations to try next. Nothing changes, so the same call gives the same answer.

        `claim` records them as running: other suggestions then avoid them, until their outcomes are told. Warns
        (NumericsWarning) where the model is not numerically sound: what it suggests is then a guess without prediction.
        """
        if count < 1:
            raise ConfigError(f"count is {count}; ask for one suggestion at least")
        if not claim:
            return suggest(self.prior, self._told(self.trials), count, seed)
        with store.locked(self.folder):
            trials = self.trials
            found = suggest(self.prior, self._told(trials), count, seed)
            new = [trial(len(trials) + i, one.configuration, "running", None) for i, one in enumerate(found)]
            store.write_trials(self.folder, self.name, [*trials, *new])
        return found

    def tell(self, configuration: Configuration, outcome: float | None, correct: bool = False) -> StudyTrial:
        """Record the outcome of a configuration (None, or not finite: it failed), and return the trial. `correct`: see
        `tell_all`."""
        (told,) = self.tell_all([(configuration, nan if outcome is None else float(outcome))], correct)
        return told

    def tell_all(self, results: Sequence[tuple[Configuration, float]], correct: bool = False) -> list[StudyTrial]:
        """Record several outcomes (NaN: failed), all or none, and return their trials.

        A running trial of the same configuration ends with it. A configuration that was told before with the same
        outcome stays one trial; with another one it is a repeat.

        `correct`: what was told of these configurations before was wrong; the outcomes take its place. Give all repeats
        of a configuration again. Trials are numbered anew. Raises DataError for a configuration that has no outcome
        yet; nothing is recorded then.
        """
        space = self.description
        several = len(results) > 1
        return self._record(
            [
                Result(space.read(configuration), _checked(outcome, space), f"result {number}: " if several else "")
                for number, (configuration, outcome) in enumerate(results, start=1)
            ],
            correct,
        )

    def tell_file(self, path: str | Path, correct: bool = False) -> list[StudyTrial]:
        """Record the rows of a CSV such as `metabo suggest` prints, its outcomes filled in ("failed": it failed).
        `correct`: see `tell_all`.

        Raises DataError that names row and field; nothing is recorded then.
        """
        rows = history.read_told(path, self.description)
        results = [Result(trial, outcome, f"{path}: row {number}, ") for number, trial, outcome in rows]
        return self._record(results, correct)

    def _record(self, results: list[Result], correct: bool) -> list[StudyTrial]:
        with store.locked(self.folder):
            change = corrected if correct else recorded
            trials, told = change(self.trials, results, self.description)
            store.write_trials(self.folder, self.name, trials)
        return told

    def _told(self, trials: list[StudyTrial]) -> Told:
        """Sort trials for the model. Raises DataError for an outcome that its scale does not allow."""
        path, record = store.trials_path(self.folder, self.name), self.folder / store.RECORD
        require_logarithms(trials, self.description, str(path), str(record))
        finished = [one for one in trials if one["state"] != "running"]
        outcomes = [nan if one["outcome"] is None else one["outcome"] for one in finished]
        running = [one["parameters"] for one in trials if one["state"] == "running"]
        return Told([one["parameters"] for one in finished], outcomes, running)


def _checked(outcome: float, space: Description) -> float:
    if space.log and isfinite(outcome) and outcome <= 0:
        raise DataError(
            f"outcome {outcome:g} of '{space.outcome}' has no logarithm (its scale is log); tell a number above 0, or "
            "that the trial failed"
        )
    if not space.log and isfinite(outcome) and abs(outcome) > LARGEST:
        raise DataError(
            f"outcome {outcome:g} of '{space.outcome}' is larger than {LARGEST:g} in size; tell it in another unit, or "
            "that the trial failed"
        )
    return outcome


def _summary(path: str, past: PastStudies) -> store.PastSummary:
    return {
        "history": path,
        "space": past.description.name,
        "studies": len(past.tasks),
        "trials": sum(len(task.y) for task in past.tasks.values()),
    }


def _refuse_other_space(folder: Path, goal: Description, described: str) -> None:
    """Raise ConfigError if trials in the folder are of another space than `goal`, DataError if it asks for logarithms
    that their outcomes do not have. `described`: the file that describes the goal."""
    if not (folder / store.RECORD).exists() or not (studies := store.told_studies(folder)):
        return
    before = descriptions.of_mapping(dict(store.require(folder)["space"]), str(folder / store.RECORD))
    if (before.fields, before.outcome, before.maximise) != (goal.fields, goal.outcome, goal.maximise):
        raise ConfigError(f"{folder}: has trials of another space ({', '.join(studies)}); choose another folder")
    for name in studies if goal.log else ():
        trials = store.read_trials(folder, name)
        require_logarithms(trials, goal, str(store.trials_path(folder, name)), described)

"""Past studies of Optuna as a history with a drafted ``space.yaml``."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from metabo.data.history.account import StudyAccount, account
from metabo.data.history.fields import Value
from metabo.data.history.space_yaml import LARGEST, StudyYaml
from metabo.data.imports import optuna_ranges as ranges
from metabo.data.imports import partials, unlike
from metabo.data.imports.draft import Draft, Drafted, DraftedConstraint, Goal, few, with_conditions
from metabo.data.imports.imported import Imported, free
from metabo.data.imports.optuna_storage import OptunaStudy
from metabo.errors import ConfigError, DataError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

Pruned = Literal["partial", "failed", "drop"]
UNFINISHED = {"RUNNING": "still running", "WAITING": "waiting to be run"}


def imported(
    studies: Sequence[OptunaStudy], where: str, name: str, goal: Goal | None = None, pruned: Pruned = "partial"
) -> Imported:
    """Turn studies into a history. `where`: what to call their storage; `name`: of the space; `goal`: today's, that of
    most studies unless given; `pruned`: whether a pruned trial counts as a partial result (`partial`), as failed, or is
    left out.

    Trials that are not finished are left out, and so are those that ended before they had all parameters. Constraints
    become columns with Optuna's values, which break one above 0. Raises
    ConfigError if as many studies are minimised as maximised, DataError for parameters that do not go together.
    """
    goal = goal or _goal(studies, where)
    found, constant = _parameters(studies, where)
    names = {one.name for one in found}
    values = {
        one.name: [(trial, {key: trial.params[key] for key in trial.params if key in names}) for trial in one.trials]
        for one in studies
    }
    entries = {one.name: one.entry for one in found}
    complete = [
        (study, {key: ranges.cell(value, entries[key]) for key, value in own.items()})
        for study, trials in values.items()
        for trial, own in trials
        if trial.state.name == "COMPLETE"
    ]
    parameters = with_conditions(found, complete)
    taken = [one.name for one in parameters]
    columns = [free(column, taken) for column in ("study", "trial", "state")]
    outcome = free(_outcome(studies), [*taken, *columns])
    measured = _constraints(studies, [*taken, *columns, outcome])
    names = [*taken, *(one.name for one in measured.values())]
    header, rows, accounts = [*columns[:2], *names, columns[2], outcome], [], []
    for study in studies:
        kept, told = _rows(study, parameters, list(measured), goal, pruned)
        rows += kept
        accounts.append(told)
    if not rows:
        raise DataError(f"{where}: no study has a finished trial with parameters; check that it is the right storage")
    having = {row[0] for row in rows}
    others: dict[str, StudyYaml] = {
        one.name: {"goal": one.goal} for one in studies if one.goal != goal and one.name in having
    }
    ignore = {columns[1]: "number of the trial in its study", columns[2]: "what Optuna says of the trial"}
    shares = Counter(one.goal for one in studies)
    share = f"{shares[goal]} of {len(studies)} studies {goal} it; the sign of the others is flipped"
    notes = (share,) if others else ()
    draft = Draft(name, where, columns[0], outcome, goal, parameters, ignore, others, notes, tuple(measured.values()))
    remarks = [f"{where}: parameter '{key}' is {why}, so it is left out" for key, why in constant.items()]
    signs = {one.name: 1.0 if one.goal == goal else -1.0 for one in studies}
    values = {one.name: [signs[one.name] * float(row[-1]) for row in rows if row[0] == one.name and row[-1] != "failed"]
              for one in studies}  # fmt: skip
    remarks += unlike.remarks(values, where)
    return Imported(header, rows, draft, accounts, remarks)


def _goal(studies: Sequence[OptunaStudy], where: str) -> Goal:
    shares = Counter(one.goal for one in studies)
    if shares["minimise"] == shares["maximise"]:
        raise ConfigError(
            f"{where}: {shares['minimise']} studies minimise and as many maximise; say which is today's with --goal "
            "minimise or --goal maximise"
        )
    return "minimise" if shares["minimise"] > shares["maximise"] else "maximise"


def _outcome(studies: Sequence[OptunaStudy]) -> str:
    """Return what all studies call their outcome, or "value"."""
    names = {one.outcome for one in studies}
    return " ".join(names.pop().split()) or "value" if len(names) == 1 else "value"


def _parameters(studies: Sequence[OptunaStudy], where: str) -> tuple[list[Drafted], dict[str, str]]:
    """Return the parameters of all studies, and why others are not parameters."""
    given: dict[str, dict[str, list]] = {}
    for study in studies:
        for trial in study.trials:
            for name, one in trial.distributions.items() if trial.state.name == "COMPLETE" else ():
                several = given.setdefault(name, {}).setdefault(study.name, [])
                if one not in several:
                    several.append(one)
    found: list[Drafted] = []
    none = {
        name: "in no trial that completed"
        for study in studies
        for trial in study.trials
        for name in trial.params
        if name not in given
    }
    for name, by_study in given.items():
        one = ranges.together(name, by_study, where)
        if isinstance(one, str):
            none[name] = one
        else:
            found.append(one)
    return found, none


def _constraints(studies: Sequence[OptunaStudy], taken: Sequence[str]) -> dict[str, DraftedConstraint]:
    """Return the constraints of all studies, by what Optuna calls each: a number if a `constraints_func` made it."""
    having: dict[str, list[str]] = {}
    for study in studies:
        for name in dict.fromkeys(name for trial in study.trials for name in trial.constraints):
            having.setdefault(name, []).append(study.name)
    found: dict[str, DraftedConstraint] = {}
    for name, known in having.items():
        called = f"constraint_{name}" if name.isdecimal() else " ".join(name.split())
        others = [study.name for study in studies if study.name not in known]
        lacking = f"check: not recorded in {few(others)}: add unrecorded: met, or drop" if others else ""
        column = free(called, [*taken, *(one.name for one in found.values())])
        found[name] = DraftedConstraint(column, {"at_most": 0}, ("Optuna's: above 0 it is broken", lacking))
    return found


def _rows(
    study: OptunaStudy, parameters: Sequence[Drafted], constraints: Sequence[str], goal: Goal, pruned: Pruned
) -> tuple[list[list[str]], StudyAccount]:
    """Return the rows of a study, and its account; trials have their numbers in it."""
    rows, dropped, failed, partly, counted, unmeasured = [], [], 0, 0, 0, 0
    typical = partials.typical(study.trials)
    tuned = {key for trial in study.trials for key in trial.params}
    recorded = {name for trial in study.trials for name in trial.constraints}
    for trial in study.trials:
        state = trial.state.name
        why = UNFINISHED.get(state) or ("pruned" if state == "PRUNED" and pruned == "drop" else "")
        if not why and state != "COMPLETE" and (lacks := _lacking(trial.params, parameters, tuned)):
            why = f"ended before it had {lacks}"
        if why:
            dropped.append((why, trial.number))
            continue
        outcome = _written(trial)
        if state == "PRUNED" and pruned == "partial":
            value = partials.partial(trial, typical, study.goal == "maximise")
            outcome = "failed" if value is None else repr(value)
        failed += outcome == "failed"
        partly += state == "PRUNED" and outcome != "failed"
        counted += state == "PRUNED" and outcome == "failed"
        cells = [ranges.cell(trial.params[p.name], p.entry) if p.name in trial.params else "" for p in parameters]
        without = recorded - set(trial.constraints) if state == "PRUNED" and outcome != "failed" else set()
        unmeasured += bool(without)
        values = {**trial.constraints, **dict.fromkeys(without, 0.0)}
        cells += [repr(min(max(values[name], -LARGEST), LARGEST)) if name in values else "" for name in constraints]
        rows.append([study.name, str(trial.number), *cells, state.lower(), outcome])
    notes = [f"{partly} pruned count with their last value, or as the median of the finished ones if that is worse"]
    notes = [*(notes if partly else []), *([f"{counted} pruned count as failed"] if counted else [])]
    notes += [f"{unmeasured} pruned without a value of a constraint, taken as met"] if unmeasured else []
    notes += [f"goal {study.goal}: its sign is flipped"] if study.goal != goal else []
    return rows, account(study.name, len(rows), failed, dropped, notes)


def _written(trial: "FrozenTrial") -> str:
    good = trial.state.name == "COMPLETE" and trial.value is not None and math.isfinite(trial.value)
    return repr(float(trial.value)) if good else "failed"


def _lacking(values: Mapping[str, Value], parameters: Sequence[Drafted], tuned: set[str]) -> str:
    """Return a parameter that a trial should have but lacks, or "" if it has all."""
    for one in parameters:
        if one.name in values or one.name not in tuned:
            continue
        parent, needs = next(iter(one.entry.get("when", {"": ()}).items()))
        choices = needs if isinstance(needs, list | tuple) else [needs]
        if not parent or (parent in values and ranges.level(values[parent]) in choices):
            return one.name
    return ""

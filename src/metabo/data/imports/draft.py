"""A ``space.yaml`` drafted for past trials, for a person to look through: what was guessed has a comment "check"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import yaml

from metabo.data.history.constraints import ConstraintYaml
from metabo.data.history.space_yaml import EXPONENT, ParameterYaml, StudyYaml, field_of
from metabo.errors import DataError
from metabo.tasks.spaces import Level

Goal: TypeAlias = Literal["minimise", "maximise"]
SHOWN = 5
"""Studies that a comment names."""


@dataclass(frozen=True)
class Drafted:
    """A parameter of the draft, and what its comment says."""

    name: str
    entry: ParameterYaml
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DraftedConstraint:
    """A constraint of the draft, and what its comment says."""

    name: str
    entry: ConstraintYaml
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """What a drafted ``space.yaml`` says: where it is from, columns with their comments (`ignore`: why each is not
    tuned), parameters, the studies that differ from today's, and constraints."""

    name: str
    source: str
    study: str
    outcome: str
    goal: Goal
    parameters: tuple[Drafted, ...]
    ignore: Mapping[str, str]
    studies: Mapping[str, StudyYaml]
    notes: tuple[str, ...] = ()
    constraints: tuple[DraftedConstraint, ...] = ()


def text(draft: Draft) -> str:
    """Return the draft as the text of a ``space.yaml``.

    Raises DataError without a parameter: there is nothing to tune.
    """
    if not draft.parameters:
        why = "; ".join(f"{column}: {reason}" for column, reason in draft.ignore.items())
        raise DataError(f"{draft.source}: no column is a parameter that was tuned ({why or 'there is none'}); add one")
    notes = ("if ratios of outcomes count and all are above 0, add scale: log", *draft.notes)
    lines = [
        f"# Drafted by `metabo import` from {_line(draft.source)}.",
        '# Look through it: what follows "check" was guessed. docs/own-data.md explains every key.',
        _pair("name", draft.name),
        _pair("study", draft.study),
        _pair("outcome", {"column": draft.outcome, "goal": draft.goal}) + _comment(notes),
    ]
    if draft.ignore:
        lines.append("ignore:")
        lines += [f"  - {_flow(column)}{_comment([why])}" for column, why in draft.ignore.items()]
    lines.append("parameters:")
    lines += [f"  {_pair(one.name, one.entry)}{_comment(one.notes)}" for one in draft.parameters]
    if draft.constraints:
        lines.append("constraints: # a trial that breaks one counts as failed")
        lines += [f"  {_pair(one.name, one.entry)}{_comment(one.notes)}" for one in draft.constraints]
    if draft.studies:
        lines.append("studies: # what sets single past studies apart")
        lines += [f"  {_pair(study, entry)}" for study, entry in draft.studies.items()]
    return "\n".join(lines) + "\n"


def with_conditions(
    parameters: Sequence[Drafted], trials: Sequence[tuple[str, Mapping[str, str]]]
) -> tuple[Drafted, ...]:
    """Return the parameters with what the trials say about missing values; those that depend on others come last.

    A parameter without a value in a whole study needs a `default`; one without a value in some trials of a study gets a
    `when` if one other parameter explains all of them: it has a value exactly for some choices. `trials`: the study and
    the cells that each has.
    """
    always, depends, unclear = [], [], []
    for one in parameters:
        having = {study for study, values in trials if one.name in values}
        without = [study for study in dict.fromkeys(study for study, _ in trials) if study not in having]
        within = [values for study, values in trials if study in having]
        told = one
        if without:
            told = _noted(told, f"check: not tuned in {few(without)}: add default: with the value that it had there")
        if all(one.name in values for values in within):
            always.append(told)
        else:
            depends.append((told, within))
    for told, within in depends:
        found = [when for parent in always if (when := _explained(told.name, parent, within))]
        if found:
            others = [next(iter(when)) for when in found[1:]]
            also = f" (so would {', '.join(others)})" if others else ""
            entry: ParameterYaml = {**told.entry, "when": found[0]}
            told = _noted(replace(told, entry=entry), f"check: has a value exactly there{also}")
            unclear.append(told)
        else:
            lacking = sum(told.name not in values for values in within)
            unclear.append(_noted(told, f"check: {lacking} trials have no value, and no other parameter tells when"))
    return (*always, *unclear)


def _explained(
    name: str, parent: Drafted, trials: Iterable[Mapping[str, str]]
) -> dict[str, Level | list[Level]] | None:
    """Return the choices of a parent for which a parameter has a value, if it has none for the others."""
    choices = parent.entry.get("choices")
    if not choices:
        return None
    field = field_of(parent.name, parent.entry)
    used, unused = set(), set()
    for values in trials:
        if parent.name not in values:
            return None
        (used if name in values else unused).add(choices.index(field.parse(values[parent.name])))
    if not used or used & unused:
        return None
    some = [choices[i] for i in sorted(used)]
    return {parent.name: some[0] if len(some) == 1 else some}


def _noted(one: Drafted, note: str) -> Drafted:
    return replace(one, notes=(*one.notes, note))


def few(studies: Sequence[str]) -> str:
    """Name the first studies in a sentence, and say how many more there are."""
    shown = ", ".join(f"'{_line(study)}'" for study in studies[:SHOWN])
    return shown + (f" and {len(studies) - SHOWN} more" if len(studies) > SHOWN else "")


class _Dumper(yaml.SafeDumper):
    """Writes text that looks like a number in quotes, which a reader of ``space.yaml`` asks for."""


def _quoted(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = '"' if "\n" in value else "'" if EXPONENT.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _quoted)


def _flow(value: object) -> str:
    """Return a value as YAML in one line."""
    made = yaml.dump(
        [value], Dumper=_Dumper, default_flow_style=True, width=float("inf"), sort_keys=False, allow_unicode=True
    )
    return made.strip()[1:-1]


def _pair(key: str, value: object) -> str:
    return f"{_flow(key)}: {_flow(value)}"


def _comment(notes: Iterable[str]) -> str:
    said = "; ".join(_line(note) for note in notes if note)
    return f"  # {said}" if said else ""


def _line(said: str) -> str:
    return " ".join(said.split())

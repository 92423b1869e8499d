"""``space.yaml``: the parameters that a user tunes, the number that comes out, and the columns that hold them.

A configuration is a dict from parameter to value; a parameter that is not in use (`when`) is None. To the model it is
a point of `SearchSpace`'s unit cube, where an unused parameter takes its lowest value or first choice.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from jaxtyping import Float

from metabo.data.history.constraints import Constraint, constraint_of
from metabo.data.history.fields import Field, Value
from metabo.data.history.goals import respelt
from metabo.data.history.space_yaml import (
    REST,
    SpaceSource,
    SpaceYaml,
    StudyFacts,
    facts_of,
    faults_of,
    field_of,
    objectives,
    plain,
    text_choices,
)
from metabo.errors import ConfigError, DataError, nearest, printable, quoted
from metabo.plan.schema import violations
from metabo.plan.yaml_files import read_yaml
from metabo.tasks.spaces import SearchSpace

SCHEMA = Path(__file__).with_name("space.schema.yaml")
NESTED = " (nested values after --config always arrive as text: put them into a file for --configfile)"
"""What the schema's messages say of text in place of a number. It helps with ``config.yaml`` alone. It is taken off
here, since all jobs of the workflow run the code of the schema, and a change there would run them again."""
Configuration = dict[str, Value]


@dataclass(frozen=True)
class Description:
    """A search space and the columns of its history. `rest`: columns that are not named are ignored; `studies`: what
    sets single past studies apart; `source` is what ``space.yaml`` says, as it says it but for the spelling of
    goals; `where` names the file."""

    name: str
    study: str
    outcome: str
    maximise: bool
    log: bool
    ignore: tuple[str, ...]
    rest: bool
    fields: tuple[Field, ...]
    constraints: tuple[Constraint, ...]
    studies: Mapping[str, StudyFacts]
    source: SpaceYaml
    where: str = dataclasses.field(compare=False)

    @property
    def numeric(self) -> set[str]:
        """Return the columns whose cells are numbers."""
        fields = (field.name for field in self.fields if field.numeric)
        return {self.outcome, *fields, *(one.name for one in self.constraints)}

    @property
    def space(self) -> SearchSpace:
        """Return the space as the model sees it."""
        return SearchSpace(self.name, tuple(field.parameter() for field in self.fields))

    def used(self, configuration: Configuration) -> Configuration:
        """Return the configuration with None for each parameter that is not in use. Parents stand before children."""
        out: Configuration = {}
        for field in self.fields:
            on = field.parent is None or out[field.parent] in field.needs
            out[field.name] = configuration.get(field.name) if on else None
        return out

    def read(self, configuration: Mapping[str, Value]) -> Configuration:
        """Check one configuration given from Python or JSON. Raises DataError that names the field and the fix."""
        for name in configuration:
            if name not in (names := [field.name for field in self.fields]):
                shown = printable(name, 80) if isinstance(name, str) else quoted(name)
                raise DataError(f"unknown parameter '{shown}'.{nearest(shown, names)} Parameters: {', '.join(names)}")
        out: Configuration = {}
        for field in self.fields:
            if field.parent is not None and out[field.parent] not in field.needs:
                out[field.name] = None
                continue
            if configuration.get(field.name) is None:
                raise DataError(f"parameter '{field.name}' has no value; give {field.allowed}")
            try:
                out[field.name] = field.read(configuration[field.name])
            except ValueError as error:
                given = quoted(configuration[field.name])
                raise DataError(f"parameter '{field.name}': {given} {error}; give {field.allowed}") from None
        return out

    def same(self, one: Configuration, other: Configuration) -> bool:
        """Tell whether two configurations are the same, up to digits lost in printing or in single precision."""
        return all(field.same(one[field.name], other[field.name]) for field in self.fields)

    def cut(self, whole: Configuration, short: Configuration) -> bool:
        """Tell whether a configuration is another one with digits that a spreadsheet may have cut."""
        return all(field.cut(whole[field.name], short[field.name]) for field in self.fields)

    def encode(self, configurations: list[Configuration]) -> Float[np.ndarray, "n d"]:
        """Map configurations to the unit cube."""
        columns = {}
        for field in self.fields:
            idle = field.choices[0] if field.choices else field.low
            cells = [idle if c[field.name] is None else c[field.name] for c in configurations]
            columns[field.name] = np.array(cells, dtype=object if field.choices else None)
        return self.space.encode(columns) if configurations else np.zeros((0, self.space.dim))

    def at(self, points: Float[np.ndarray, "n p"]) -> list[Configuration]:
        """Return the configurations at points of the cube that has one coordinate per parameter."""
        rows = points.tolist()
        return [self.used({field.name: field.at(u) for field, u in zip(self.fields, row, strict=True)}) for row in rows]

    def units(self, configuration: Configuration) -> Float[np.ndarray, " p"]:
        """Return a point of that cube where a configuration lies."""
        return np.array([field.unit(configuration[field.name]) for field in self.fields])

    def every(self, most: int) -> list[Configuration] | None:
        """Return all configurations if there are at most `most` combinations of values, else None."""
        if math.prod(field.options for field in self.fields) > most:
            return None
        names = [field.name for field in self.fields]
        grid = itertools.product(*(field.values() for field in self.fields))
        found = [self.used(dict(zip(names, values, strict=True))) for values in grid]
        return [dict(items) for items in dict.fromkeys(tuple(c.items()) for c in found)]


def load(space: SpaceSource) -> Description:
    """Read a ``space.yaml``, or what it would say, which messages call "space". Raises ConfigError that lists every
    fault with its key, what is valid and the fix."""
    if isinstance(space, Mapping):
        said = cast(dict[str, object], plain(space))
        return of_mapping({"name": "space", **said}, "space")
    path = Path(space)
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must be a mapping with the keys study, outcome and parameters")
    return of_mapping({"name": path.stem, **data}, str(path), text_choices(path))


def of_mapping(data: Mapping[str, object], where: str, found: Sequence[str] = ()) -> Description:
    """Build a description from what ``space.yaml`` says; `where` names the file in messages, `found` are faults that
    its text has. Raises ConfigError."""
    data = respelt(data)
    said = cast(SpaceYaml, data)  # if the schema finds no fault
    if several := objectives(data.get("outcome")):
        raise ConfigError(
            f"{where} key '{several}' names several outcomes, and one is tuned at a time; name one, or make a column "
            "of what counts, e.g. a weighted sum"
        )
    broken = [line.removesuffix(NESTED) for line in violations(data, read_yaml(SCHEMA), where)]
    faults = broken or [*faults_of(said, where), *found]
    if faults:
        raise ConfigError(*faults)
    outcome, ignore = said["outcome"], said.get("ignore", ())
    return Description(
        name=said.get("name", Path(where).stem),
        study=said["study"],
        outcome=outcome["column"],
        maximise=outcome["goal"] == "maximise",
        log=outcome.get("scale") == "log",
        ignore=() if ignore == REST else tuple(ignore),
        rest=ignore == REST,
        fields=tuple(field_of(name, entry) for name, entry in said["parameters"].items()),
        constraints=tuple(constraint_of(name, entry) for name, entry in said.get("constraints", {}).items()),
        studies={study: facts_of(entry, outcome) for study, entry in said.get("studies", {}).items()},
        source=said,
        where=where,
    )

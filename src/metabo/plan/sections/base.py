"""What all sections of the configuration share: frozen records, and the kinds of numbers and lists in them."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

T = TypeVar("T")


class Section(BaseModel):
    """A frozen mapping of config.yaml: no other keys, and no value that is silently turned into another type.

    `metabo.plan.reference` derives the JSON schema and the tables of config/README.md from the fields; the first
    paragraph of a section's docstring is its description there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Natural = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Several = Annotated[int, Field(ge=2)]
Positive = Annotated[float, Field(gt=0)]
Level = Annotated[float, Field(gt=0, lt=1)]
"""A probability, or another number strictly between 0 and 1."""

UNIQUE: JsonDict = {"uniqueItems": True}
Listed = Annotated[tuple[T, ...], Field(json_schema_extra=UNIQUE)]
"""A list without repeats; it may be empty."""
Some = Annotated[tuple[T, ...], Field(min_length=1, json_schema_extra=UNIQUE)]
Grid = Annotated[tuple[Count, ...], Field(min_length=3, json_schema_extra=UNIQUE)]
"""Sizes at which a slope is fitted."""

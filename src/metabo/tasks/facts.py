"""What a loader says of its benchmark beside the tasks: counts, flags, and how inputs and failures are to be read.

In a benchmark's file the facts are the header's field `notes`; what a benchmark has nothing to say about is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NotRequired, TypedDict, get_args

from metabo.errors import DataError, nearest

Inputs = Literal["unit", "warped"]
"""Scale of all inputs: the unit cube, or warped (log, 1 - β) and unscaled as in HyperBO's code (PD1)."""
Divergence = Literal["nan", "status", "chance"]
"""Which evaluations count as diverged: those without a finite value, or also those whose status is not "done" (PD1);
"chance": none, the latter have the error of guessing (pd1_mini)."""
SCALES: tuple[Inputs, ...] = get_args(Inputs)
RULES: tuple[Divergence, ...] = get_args(Divergence)
DROPPING: tuple[Divergence, ...] = ("nan", "status")
"""Rules that drop rows."""


class Count(NamedTuple):
    """A number that the loader found, beside what a paper states of it (None: nothing) and whether the two differ."""

    name: str
    expected: float | None
    found: float
    differs: bool


class TrueParameters(TypedDict):
    """Parameters of the GP that the functions of a space were drawn from; one length-scale for each input."""

    constant: float
    lengthscale: list[float]
    variance: float
    noise: float


class TruePriors(TypedDict):
    """Priors of these parameters: [mean, std] of the constant's Normal, [shape, rate] of the others' Gamma."""

    constant: list[float]
    lengthscale: list[float]
    variance: list[float]
    noise: list[float]


class Truth(TypedDict):
    """The GP that the functions of a space were drawn from, as a benchmark's file has it."""

    parameters: TrueParameters
    prior: TruePriors


class CountJson(TypedDict):
    """`Count` as files have it."""

    name: str
    expected: float | None
    found: float
    differs: bool


class FactsJson(TypedDict):
    """`Facts` as files have them."""

    counts: NotRequired[list[CountJson]]
    flags: NotRequired[list[str]]
    inputs: NotRequired[Inputs]
    divergence: NotRequired[Divergence]
    unseen: NotRequired[list[str]]
    truth: NotRequired[dict[str, Truth]]
    labels: NotRequired[dict[str, str]]


@dataclass(frozen=True)
class Facts:
    """Facts of a benchmark; each default says that there is nothing to say.

    `counts`: what was counted (None: the loader forgot to; nothing to count is an empty tuple). `flags`: sentences for
    the log. `inputs`: their scale. `divergence`: the rule that kept failures apart, if the source needs one. `unseen`:
    spaces whose training tasks never feed what is learned across spaces (mphd §4.2). `truth`: the true GP of every
    space, if functions were drawn. `labels`: name of each space in the paper, where that is another one.
    """

    counts: tuple[Count, ...] | None = None
    flags: tuple[str, ...] = ()
    inputs: Inputs = "unit"
    divergence: Divergence | None = None
    unseen: tuple[str, ...] = ()
    truth: Mapping[str, Truth] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> FactsJson:
        """Return the facts as a file has them."""
        written: FactsJson = {"flags": list(self.flags), "inputs": self.inputs}
        if self.counts is not None:
            written["counts"] = [CountJson(**count._asdict()) for count in self.counts]
        if self.divergence is not None:
            written["divergence"] = self.divergence
        if self.unseen:
            written["unseen"] = list(self.unseen)
        if self.truth:
            written["truth"] = dict(self.truth)
        if self.labels:
            written["labels"] = dict(self.labels)
        return written

    @classmethod
    def from_json(cls, data: FactsJson, where: str) -> "Facts":
        """Inverse of `to_json`; `where` names the file. Raises DataError for a fact that there is not."""
        known = FactsJson.__annotations__
        if strange := [name for name in data if name not in known]:
            raise DataError(
                f"{where}: header, field 'notes': unknown fact '{strange[0]}'.{nearest(strange[0], known)} Valid: "
                f"{', '.join(sorted(known))}; make the file again with this version"
            )
        counts = data.get("counts")
        return cls(
            counts=None if counts is None else tuple(Count(**count) for count in counts),
            flags=tuple(data.get("flags", ())),
            inputs=data.get("inputs", "unit"),
            divergence=data.get("divergence"),
            unseen=tuple(data.get("unseen", ())),
            truth=data.get("truth", {}),
            labels=data.get("labels", {}),
        )

"""What a loader states about its benchmark besides the tasks: counts, flags, and how to read inputs and failures.

In a benchmark's file the facts are the header's field `notes`; facts with nothing to say are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NotRequired, TypedDict, get_args

from metabo.errors import DataError, nearest

Inputs = Literal["unit", "warped"]
"""Scale of all inputs: the unit cube, or warped (log, 1 - β) and unscaled as in HyperBO's code (PD1)."""
Divergence = Literal["nan", "status", "chance"]
"""Which evaluations count as diverged. "nan": those without a finite value; "status": also those whose status is not
"done" (PD1); "chance": none, and those whose status is not "done" get the error of guessing (pd1_mini)."""
SCALES: tuple[Inputs, ...] = get_args(Inputs)
RULES: tuple[Divergence, ...] = get_args(Divergence)
DROPPING: tuple[Divergence, ...] = ("nan", "status")
"""Rules that drop rows."""


class Count(NamedTuple):
    """A number that the loader found, next to the one that a paper states (None if it states none), and whether they
    differ."""

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
    """Priors of these parameters: [mean, std] of the Normal prior of the constant, [shape, rate] of the Gamma priors of
    the others."""

    constant: list[float]
    lengthscale: list[float]
    variance: list[float]
    noise: list[float]


class Truth(TypedDict):
    """The GP that the functions of a space were drawn from, as stored in a benchmark's file."""

    parameters: TrueParameters
    prior: TruePriors


class CountJson(TypedDict):
    """`Count` as stored in files."""

    name: str
    expected: float | None
    found: float
    differs: bool


class FactsJson(TypedDict):
    """`Facts` as stored in files."""

    counts: NotRequired[list[CountJson]]
    flags: NotRequired[list[str]]
    inputs: NotRequired[Inputs]
    divergence: NotRequired[Divergence]
    unseen: NotRequired[list[str]]
    truth: NotRequired[dict[str, Truth]]
    labels: NotRequired[dict[str, str]]


@dataclass(frozen=True)
class Facts:
    """Facts of a benchmark; each default means that there is nothing to state.

    `counts`: what was counted (None if the loader forgot to count; an empty tuple if there is nothing to count).
    `flags`: sentences for the log. `inputs`: the scale of the inputs. `divergence`: the rule that separated failures,
    if the source needs one. `unseen`: spaces whose training tasks are never used for learning across spaces (mphd
    §4.2). `truth`: the true GP of every space, if the functions were drawn from one. `labels`: the name of each space
    in the paper, where it differs.
    """

    counts: tuple[Count, ...] | None = None
    flags: tuple[str, ...] = ()
    inputs: Inputs = "unit"
    divergence: Divergence | None = None
    unseen: tuple[str, ...] = ()
    truth: Mapping[str, Truth] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> FactsJson:
        """Return the facts as they are stored in a file."""
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
        """Inverse of `to_json`; `where` names the file. Raises DataError for an unknown fact."""
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

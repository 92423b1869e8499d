"""Specs: all settings that each job reads, and nothing else. Written as JSON they decide whether a job runs again, and
priors keep the spec that they were trained from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from metabo.plan.past import Past
from metabo.plan.typed import Count, Values, written
from metabo.records.files import Json


@dataclass(frozen=True)
class DownloadSpec:
    """The download of one archive: its name, its addresses in order, and its expected checksum and size.

    `members` is the list of the files that it is packed from; the addresses are then those of their folder.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str
    size: int | None = None
    retries: int = 4
    pause: float = 2.0
    members: str | None = None


@dataclass(frozen=True)
class CollectSpec:
    """The collection of one unit (a task or a data set) of an embedded benchmark."""

    benchmark: str
    seed: int
    sizes: Values
    unit: str
    version: Count = 1


@dataclass(frozen=True)
class PackSpec:
    """The join of the units of a re-collection."""

    benchmark: str
    seed: int
    sizes: Values
    version: Count = 1


@dataclass(frozen=True)
class ArchiveSpec:
    """The archive that a collected table is written to; a shipped one is compared with its checksum."""

    benchmark: str
    source: Literal["shipped", "collected"]
    version: Count = 1


@dataclass(frozen=True)
class DataSpec:
    """The loading of a benchmark, with the settings that its loader registers."""

    benchmark: str
    settings: Values


@dataclass(frozen=True)
class PretrainSpec:
    """The training of a method's priors, `seeds` of them for every fold, possibly starting from the priors of the
    method `fits`."""

    benchmark: str
    split: str
    past: Past
    method: str
    seed: int
    seeds: Count
    model: Values
    pretrain: Values
    fits: str | None = None


class TrainingSpec(TypedDict):
    """The part of a spec, as JSON, that training reads and priors keep. `fits` is the method whose priors it starts
    from, or their spec."""

    method: str
    seed: int
    seeds: int
    past: Mapping[str, Json]
    model: Mapping[str, Json]
    pretrain: Mapping[str, Json]
    benchmark: NotRequired[str]
    split: NotRequired[str]
    fits: NotRequired["str | TrainingSpec"]


class MethodSpec(TrainingSpec):
    """The same, with what a method's suggestions read. It has everything that determines them."""

    acquisition: str
    policy: Mapping[str, Json]


def training_spec(spec: PretrainSpec) -> TrainingSpec:
    """Return the spec of a job as JSON, as `written` does."""
    made: TrainingSpec = {
        "benchmark": spec.benchmark, "split": spec.split, "past": written(spec.past), "method": spec.method,
        "seed": spec.seed, "seeds": spec.seeds, "model": written(spec.model), "pretrain": written(spec.pretrain),
    }  # fmt: skip
    return made if spec.fits is None else {**made, "fits": spec.fits}


@dataclass(frozen=True)
class EvaluateSpec:
    """The evaluation of a method's priors."""

    benchmark: str
    split: str
    method: str


@dataclass(frozen=True)
class BOSpec:
    """Bayesian optimisation of every test task of a split, `seeds` times from every prior.

    `once`: a candidate is queried once; `exceptions`: spaces in which it is the other way round.
    """

    benchmark: str
    split: str
    method: str
    acquisition: str
    seed: int
    seeds: Count
    iterations: Count
    policy: Values
    candidates: str | int
    once: bool
    exceptions: tuple[str, ...]

    def repeats(self, space: str) -> bool:
        """Return whether a candidate of a space may be queried again."""
        return self.once == (space in self.exceptions)


@dataclass(frozen=True)
class OnlineSpec:
    """Online tuning of every test task of a split, `seeds` times."""

    benchmark: str
    split: str
    method: str
    acquisition: str
    seed: int
    seeds: Count
    iterations: Count
    online: Values


@dataclass(frozen=True)
class TheorySpec:
    """One check of a paper's theory, with a share of its replicates."""

    paper: str
    check: str
    seed: int
    share: float


@dataclass(frozen=True)
class ClaimsSpec:
    """The verdicts on a paper's claims: the artefacts (id, benchmark) that they are judged on, and the folder of
    results."""

    paper: str
    results: str
    artefacts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PagesSpec:
    """The notebooks of a paper as HTML: the artefacts' names in order, the index page, and for each artefact the claims
    that it is evidence for (none if they are not judged)."""

    names: tuple[str, ...]
    index: str
    paper: str = ""
    claims: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ReportSpec:
    """The report page of a run."""

    scale: str
    papers: tuple[str, ...]
    names: tuple[str, ...]

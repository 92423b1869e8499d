"""Registrations as records: methods, benchmarks, studies, splits and the catalogue's tables and figures.

Each default is defined here and nowhere else.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from metabo.plan.typed import NOTHING, Count, Values

Names = Annotated[tuple[str, ...], Values({"minItems": 1, "uniqueItems": True})]


@dataclass(frozen=True)
class MethodEntry:
    """A method of ``methods.yaml``, which describes the keys. Settings written "@section.key" are sizes."""

    label: str
    colour: str
    marker: str
    dashes: tuple[float, ...]
    method: str
    acquisition: str
    model: Values = NOTHING
    pretrain: Values = NOTHING
    policy: Values | None = None
    online: Values | None = None
    prior_seeds: str = "@pretrain.seeds"
    bo_seeds: str = "@bo.seeds"
    variant_of: str | None = None
    fits: str | None = None
    own_features: bool = False
    needs_matched: bool = False
    needs_truth: bool = False


@dataclass(frozen=True)
class NetworkSizes:
    """The layers of the network that a benchmark's methods use in place of their own."""

    features: tuple[Count, ...]


@dataclass(frozen=True)
class BenchmarkEntry:
    """A benchmark of a literal table ``BENCHMARKS = {...}`` below `metabo.data`.

    It is read from `dataset`, a row of workflow/datasets.csv, from `package`, or from the collected archive of the
    benchmark `archive_of`. `collector` and `writer`: modules below `metabo` that train it and write it as `archive`;
    `versions`: the number of versions of the collection. `members`: the benchmarks that it is made of, `unseen` those
    that methods across spaces do not learn from, `dropped` the tasks that it leaves out. `settings`: the keys of its
    section of config.yaml that its loader reads, `fixed` other settings with their values, which no scale changes,
    `files` those of both that name files. `splits`: those that its loader makes (none: the default one). `sizes`: the
    section that overrides `pretrain`. `model`: the layers that its methods use in place of their own. `matched`: tasks
    share some inputs. `truth`: the parameters that its functions were drawn with are known. `memory_mb`: the memory of
    a job that reads it. `one_data_set`: its tasks are variants of one data set, so no interval generalises to a new
    data set. `once`: its authors query a candidate once (HPO-B); `exceptions`: the spaces in which it is the other way
    round. `control`: methods must work on it, and claims about them rest on its gates.
    """

    default_split: str
    settings: tuple[str, ...] = ()
    fixed: Values = NOTHING
    dataset: str | None = None
    package: str | None = None
    archive_of: str | None = None
    collector: str | None = None
    writer: str | None = None
    archive: str | None = None
    versions: Count = 1
    members: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    sizes: str | None = None
    model: NetworkSizes | None = None
    matched: bool = False
    truth: bool = False
    memory_mb: Count = 3000
    one_data_set: bool = False
    once: bool = False
    exceptions: tuple[str, ...] = ()
    control: bool = False

    @property
    def loaded(self) -> tuple[str, ...]:
        """The splits that its loader makes."""
        return self.splits or (self.default_split,)


def collection(benchmark: str, version: int) -> str:
    """Return the name of one version of an embedded benchmark's collection, which its files and its sizes have."""
    return benchmark if version == 1 else f"{benchmark}_{version}"


@dataclass(frozen=True)
class StudyEntry:
    """A study of a literal table ``STUDIES = {...}``. `alone`: it measures time, so no other job may run at the same
    time."""

    alone: bool = False


@dataclass(frozen=True)
class Split:
    """A split of ``splits.yaml``, which describes the keys."""

    base: str | None = None
    points: Count | None = None
    tasks: Count | None = None
    rows: Literal["all", "matched", "half"] = "all"
    spaces: Literal["all", "others"] = "all"
    sizes: tuple[str, ...] = ()
    prior: str | None = None
    candidates: Literal["all", "matched", "rest"] | Count = "all"
    queries: Literal["protocol", "other", "repeats", "once"] = "protocol"
    benchmarks: Names | None = None


@dataclass(frozen=True)
class Inputs:
    """What the notebook of an artefact reads besides the benchmark file. None means that it has no such parameter."""

    split: str | None = None
    splits: Names | None = None
    theory: Names | None = None
    studies: Names | None = None
    trajectories: tuple[str, ...] | None = None
    evaluations: tuple[str, ...] | None = None
    online: tuple[str, ...] | None = None

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """The names of the tables that it reads, by the parameter that has them."""
        named = {
            "trajectories": self.trajectories, "evaluations": self.evaluations, "online": self.online,
            "theory": self.theory, "studies": self.studies,
        }  # fmt: skip
        return {kind: names for kind, names in named.items() if names is not None}


@dataclass(frozen=True)
class CatalogueEntry:
    """A table or figure of ``workflow/catalogue.yaml``; workflow/schemas/catalogue.yaml describes the keys."""

    title: str
    paper: str
    notebook: str
    caption: str
    benchmarks: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()
    parameters: Values = NOTHING
    inputs: Inputs = Inputs()
    claims: tuple[str, ...] = ()

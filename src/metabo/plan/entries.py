"""What is registered, as records: methods, benchmarks, studies, splits and the catalogue's tables and figures.

Each default stands here and nowhere else.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from metabo.plan.typed import NOTHING, Count, Values

Names = Annotated[tuple[str, ...], Values({"minItems": 1, "uniqueItems": True})]


@dataclass(frozen=True)
class MethodEntry:
    """A method of ``methods.yaml``, where its keys are described. Settings written "@section.key" are sizes."""

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
    """Layers of the network that a benchmark's methods have in place of their own."""

    features: tuple[Count, ...]


@dataclass(frozen=True)
class BenchmarkEntry:
    """A benchmark of a literal table ``BENCHMARKS = {...}`` below `metabo.data`.

    `dataset`: the row of workflow/datasets.csv that it is read from, `package` the package, `archive_of` the benchmark
    whose collected archive. `collector` and `writer`: modules below `metabo` that train it and write it as `archive`;
    `versions`: of the collection. `members`: the benchmarks that it is made of, `unseen` those that methods across
    spaces do not learn from, `dropped` the tasks that it leaves out. `settings`: the keys of its section of config.yaml
    that its loader reads, `fixed` others with their values, which no scale changes, `files` the ones of both that name
    files. `splits` that its loader makes (none: the default one).
    `sizes`: the section that is laid over `pretrain`. `model`: what its methods have in place of their own. `matched`:
    some inputs are shared by tasks. `truth`: the parameters that its functions were drawn with are known. `memory_mb`:
    of a job that reads it. `one_data_set`: its tasks are variants of one, so that no interval speaks of a new data set.
    `once`: its authors query a candidate once (HPO-B); `exceptions`: the spaces in which it is the other way round.
    `control`: methods must work on it, and claims about them rest on its gates.
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
    """Return the name of one version of an embedded benchmark's collection: of its files, and of its sizes."""
    return benchmark if version == 1 else f"{benchmark}_{version}"


@dataclass(frozen=True)
class StudyEntry:
    """A study of a literal table ``STUDIES = {...}``. `alone`: it measures time, so no other job runs beside it."""

    alone: bool = False


@dataclass(frozen=True)
class Split:
    """A split of ``splits.yaml``, where its keys are described."""

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
    """What the notebook of an artefact reads besides the benchmark file; None: it has no such parameter."""

    split: str | None = None
    splits: Names | None = None
    theory: Names | None = None
    studies: Names | None = None
    trajectories: tuple[str, ...] | None = None
    evaluations: tuple[str, ...] | None = None
    online: tuple[str, ...] | None = None

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """The names of tables that it reads, by the parameter that has them."""
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

"""One table or figure on one benchmark: its inputs, and the places of its files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metabo.plan import registry, splits
from metabo.plan.entries import CatalogueEntry, Inputs
from metabo.plan.runs import RunId, resolved

NOTEBOOKS = Path("notebooks")


@dataclass(frozen=True)
class Artefact:
    """One table or figure on one benchmark ("": on none). `name` is the name of the rule, and `entry` is the catalogue
    entry named `id`."""

    name: str
    id: str
    benchmark: str
    entry: CatalogueEntry

    @property
    def inputs(self) -> Inputs:
        """The entry's inputs besides the benchmark file. There are none for an artefact that describes the
        benchmark."""
        return self.entry.inputs

    @property
    def judges(self) -> bool:
        """Whether verdicts read it, because claims are tested on it or because it has the controls of the paper's
        methods."""
        return bool(self.entry.claims) or (self.benchmark != "" and registry.benchmark(self.benchmark).control)

    @property
    def on_request(self) -> bool:
        """Whether it is made only if it, or its benchmark, is requested by name."""
        return self.benchmark in self.entry.on_request

    @property
    def splits(self) -> list[str]:
        """The splits of the tables that the artefact reads, as far as the benchmark has them. There are none if it
        reads no such tables."""
        if not (listed := _listed(self.inputs)):
            return []
        have = splits.of(self.benchmark)
        return [split for split in listed if split in have]

    @property
    def template(self) -> str:
        """The path of the notebook template."""
        return (NOTEBOOKS / self.entry.notebook).as_posix()

    @property
    def trajectories(self) -> list[RunId]:
        """The runs whose trajectories it reads, on this benchmark, each with its acquisition and split."""
        return [resolved(run) for run in self._runs("trajectories")]

    @property
    def evaluations(self) -> list[RunId]:
        """The methods whose evaluations it reads, on this benchmark, each with its split."""
        return self._runs("evaluations")

    @property
    def online(self) -> list[RunId]:
        """The methods whose online tuning it reads, on this benchmark, each with its split."""
        return self._runs("online")

    @property
    def place(self) -> str:
        """The artefact's folder below results/{scale}."""
        return "/".join(filter(None, (self.entry.paper, self.benchmark, self.id)))

    @property
    def files(self) -> dict[str, list[str]]:
        """The tables that it reads, as paths below results/{scale}, by the notebook parameter that names them."""
        paper, on, named = self.entry.paper, self.benchmark, self.inputs.kinds
        paths = {
            "trajectories": [f"bo/{on}/{run.split}/{run.on('')}.parquet" for run in self.trajectories],
            "evaluations": [f"evaluation/{on}/{run.split}/{run.method}.parquet" for run in self.evaluations],
            "online": [f"online/{on}/{run.split}/{run.method}.parquet" for run in self.online],
            "theory": [f"theory/{paper}/{check}.json" for check in named.get("theory", ())],
            "studies": [f"studies/{study}.parquet" for study in named.get("studies", ())],
        }
        return {kind: found for kind, found in paths.items() if kind in named}

    def _runs(self, kind: str) -> list[RunId]:
        """Expand runs without a split over the artefact's splits, and drop runs that the benchmark cannot have."""
        listed = [RunId.parse(name) for name in self.inputs.kinds.get(kind, ())]
        own = self.splits if any(not run.split for run in listed) else []
        runs = [run.on(split) for run in listed for split in ([run.split] if run.split else own)]
        have = splits.of(self.benchmark) if self.benchmark else []
        return [run for run in runs if run.split in have and applies(run.method, self.benchmark)]


def applies(method: str, benchmark: str) -> bool:
    """Tell whether a method can run on a benchmark: EKL needs inputs that are matched across tasks, and ground-truth
    methods need tasks drawn from known priors."""
    needs, has = registry.method(method), registry.benchmark(benchmark)
    return (has.matched or not needs.needs_matched) and (has.truth or not needs.needs_truth)


def _listed(inputs: Inputs) -> Sequence[str]:
    """Return the splits of an entry's tables."""
    return inputs.splits or ([inputs.split] if inputs.split else [])

"""Read what a job used and made: the benchmark of its table, wherever that lies here, and its priors."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from metabo.bo import priors
from metabo.bo.priors import SpacePrior
from metabo.plan.specs import TrainingSpec
from metabo.records.files import digest
from metabo.records.inventory import StoredSidecar
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.training_set import TrainingSet, training_sets_of


class TrainedPriors(NamedTuple):
    """Priors of all spaces of a split, their specification, and what they were trained on."""

    spec: TrainingSpec
    priors: list[SpacePrior]
    training: list[TrainingSet]


class Tables:
    """The benchmarks in the given folders, looked up by their checksums in records. Each is read once."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders, self.read = list(folders), dict[str, Benchmark | None]()

    def of(self, record: StoredSidecar) -> Benchmark | None:
        """Return the benchmark that a job read, or None if it is in none of the folders."""
        for name, expected in record.inputs.items():
            if Path(name).parent.name == "data":
                if expected not in self.read:
                    self.read[expected] = self._found(Path(name).name, expected)
                return self.read[expected]
        return None

    def _found(self, name: str, expected: str) -> Benchmark | None:
        places = [folder / name for folder in self.folders]
        path = next((path for path in places if path.is_file() and digest(path) == expected), None)
        return Benchmark.load(path) if path else None


def benchmark_of(record: StoredSidecar) -> str:
    """Return the name of the benchmark that a job read."""
    return str(record.content.get("spec", {}).get("benchmark"))


def trained(path: Path, benchmark: Benchmark) -> TrainedPriors:
    """Read priors and rebuild the data that they were trained on. Raises DataError for a file that holds no priors."""
    spec, found = priors.load(path)
    return TrainedPriors(spec, found, training_sets_of(benchmark, spec))


def prior_path(record: StoredSidecar) -> Path | None:
    """Return where the priors that a job read or made lie now, or None if it has none."""
    names: Sequence[str] = [*record.inputs, *record.outputs]
    return next((record.located(name) for name in names if "/priors/" in name and name.endswith(".npz")), None)


def making(scale: str, benchmarks: Iterable[str], overlays: Sequence[Path] = ()) -> str:
    """Return the command that makes the tables of benchmarks at a scale: with the overlays of the run, or that of the
    scale if it has one."""
    own = Path("config", f"{scale}.yaml")
    given = overlays or ([own] if own.is_file() else [])
    chosen = f"--configfile {' '.join(map(str, given))} " if given else ""
    return f"snakemake --cores 1 {chosen}-- {' '.join(f'results/{scale}/data/{name}.npz' for name in benchmarks)}"

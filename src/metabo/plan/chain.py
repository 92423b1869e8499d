"""The jobs behind a table or figure: the result, inputs and settings of each.

The rules of the workflow express the same as files and wildcards, from the same specs; tests compare the two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from metabo.plan import collectors, registry
from metabo.plan import config as settings
from metabo.plan.artefact import Artefact
from metabo.plan.config import Config
from metabo.plan.entries import collection
from metabo.plan.runs import RunId
from metabo.plan.specs import ArchiveSpec
from metabo.plan.trainings import prior_of, trainings
from metabo.plan.typed import written
from metabo.records.files import Json


@dataclass(frozen=True, eq=False)
class PlannedJob:
    """A job: its stage, the file that represents its results, its record, its spec, and the jobs that it waits for."""

    stage: str
    result: str
    record: str
    spec: Mapping[str, Json]
    needs: tuple["PlannedJob", ...] = ()


def behind(wanted: Iterable[PlannedJob]) -> list[PlannedJob]:
    """Return the jobs and all jobs that they wait for, each once and after those that it waits for."""
    found: dict[str, PlannedJob] = {}

    def visit(job: PlannedJob) -> None:
        if job.result not in found:
            for other in job.needs:
                visit(other)
            found[job.result] = job

    for job in wanted:
        visit(job)
    return list(found.values())


def parameters(artefact: Artefact, out: str) -> dict[str, Json]:
    """Return the parameters of an artefact's notebook, without those for inputs that its entry does not list. `out` is
    results/{scale}."""
    inputs, entry = artefact.inputs, artefact.entry
    given: dict[str, Json] = {"artefact": artefact.id, "title": entry.title, "caption": entry.caption}
    if artefact.benchmark:
        given |= {"benchmark": artefact.benchmark, "data": f"{out}/data/{artefact.benchmark}.npz"}
    given |= {"split": inputs.split} if inputs.split else {}
    given |= {"splits": artefact.splits} if inputs.splits else {}
    given |= {kind: [f"{out}/{path}" for path in paths] for kind, paths in artefact.files.items()}
    return given | {"out": f"{out}/{artefact.place}"} | written(entry.parameters)


class Chain:
    """The jobs of a configuration. `archives` has the rows of workflow/datasets.csv by name."""

    def __init__(self, config: Config, archives: Mapping[str, dict[str, str]]):
        self.config = config
        self.out = f"results/{config.scale}"
        self._archives = archives
        known = cache(lambda *place: trainings(config, *place))
        self._trainings = lambda _, *place: known(*place)

    def artefact(self, artefact: Artefact) -> PlannedJob:
        """Return the job that executes the notebook of an artefact."""
        on, paper, kinds = artefact.benchmark, artefact.entry.paper, artefact.inputs.kinds
        needs = [self.load(on)] if on else []
        needs += [self.trajectories(on, run) for run in artefact.trajectories]
        needs += [self.evaluation(on, run) for run in artefact.evaluations]
        needs += [self.online(on, run) for run in artefact.online]
        needs += [self.study(name) for name in kinds.get("studies", ())]
        needs += [self.check(paper, name) for name in kinds.get("theory", ())]
        place = f"{self.out}/{artefact.place}"
        given = parameters(artefact, self.out)
        return PlannedJob("notebook", f"{place}/notebook.ipynb", f"{place}/provenance.json", given, tuple(needs))

    def trajectories(self, benchmark: str, run: RunId) -> PlannedJob:
        """Return the job of a run's BO. The run must have an acquisition and a split."""
        spec = settings.bo_spec(self.config, benchmark, run.split, run.method, run.acquisition)
        return self._on_prior("bo", f"bo/{benchmark}/{run.split}/{run.on('')}.parquet", spec, benchmark, run)

    def evaluation(self, benchmark: str, run: RunId) -> PlannedJob:
        """Return the job of the losses of a method's priors on a split."""
        spec = settings.evaluate_spec(self.config, benchmark, run.split, run.method)
        name = f"evaluation/{benchmark}/{run.split}/{run.method}.parquet"
        return self._on_prior("evaluate", name, spec, benchmark, run)

    def online(self, benchmark: str, run: RunId) -> PlannedJob:
        """Return the job of a method's online tuning on a split."""
        spec = settings.online_spec(self.config, benchmark, run.split, run.method)
        return self._on_prior("online", f"online/{benchmark}/{run.split}/{run.method}.parquet", spec, benchmark, run)

    def prior(self, benchmark: str, split: str, method: str) -> PlannedJob:
        """Return the job that trains the priors of a method on a split, which may be that of another method or split
        with equal settings."""
        place, trainer = prior_of(self.config, benchmark, split, method, self._trainings)
        spec = settings.pretrain_spec(self.config, benchmark, place, trainer)
        needs = [self.load(benchmark)]
        needs += [self.prior(benchmark, place, spec.fits)] if spec.fits else []
        return self._job("pretrain", f"priors/{benchmark}/{place}/{trainer}.npz", spec, *needs)

    def load(self, benchmark: str) -> PlannedJob:
        """Return the job that loads a benchmark."""
        entry = registry.benchmark(benchmark)
        source = entry.archive_of or benchmark
        needs = [self._download(entry.dataset)] if entry.dataset else []
        needs += [self._archive(source)] if registry.benchmark(source).collector else []
        needs += [self.load(member) for member in entry.members]
        return self._job("data", f"data/{benchmark}.npz", settings.data_spec(self.config, benchmark), *needs)

    def study(self, name: str) -> PlannedJob:
        """Return the job of a synthetic study."""
        return self._job("study", f"studies/{name}.parquet", settings.study_spec(self.config, name))

    def check(self, paper: str, name: str) -> PlannedJob:
        """Return the job of a check of a paper's theory."""
        place = f"{self.out}/theory/{paper}/{name}"
        spec = written(settings.theory_spec(self.config, paper, name))
        return PlannedJob("theory", f"{place}.json", f"{place}.meta.json", spec)

    def _on_prior(self, stage: str, result: str, spec: object, benchmark: str, run: RunId) -> PlannedJob:
        return self._job(stage, result, spec, self.load(benchmark), self.prior(benchmark, run.split, run.method))

    def _job(self, stage: str, result: str, spec: object, *needs: PlannedJob) -> PlannedJob:
        path = f"{self.out}/{result}"
        return PlannedJob(stage, path, Path(path).with_suffix(".json").as_posix(), written(spec), needs)

    def _download(self, dataset: str) -> PlannedJob:
        row = self._archives[dataset]
        path, stem = f".cache/archives/{row['file']}", row["file"].partition(".")[0]
        spec = written(settings.download_spec(self.config, row))
        return PlannedJob("download", path, f".cache/archives/{stem}.json", spec)

    def _archive(self, benchmark: str) -> PlannedJob:
        """Return the job that packs the archive of a collected benchmark, from the shipped table or from one made
        here."""
        entry, own = registry.benchmark(benchmark), self.config.sizes["benchmarks"][benchmark]
        assert isinstance(own, dict), "the schema of the configuration says so"
        source, version = own["source"], own["version"]
        assert isinstance(version, int), "likewise"
        needs = () if source == "shipped" else (self._collection(benchmark, version),)
        spec = written(ArchiveSpec(benchmark, "collected" if needs else "shipped", version))
        place = f"{self.out}/archives"
        return PlannedJob("archive", f"{place}/{entry.archive}", f"{place}/{benchmark}.json", spec, needs)

    def _collection(self, benchmark: str, version: int) -> PlannedJob:
        name = f"collect/{collection(benchmark, version)}"
        units = [
            self._job("collect", f"{name}/{unit}.parquet", settings.collect_spec(self.config, benchmark, unit, version))
            for unit in collectors.units(benchmark)
        ]
        return self._job("pack", f"{name}.parquet", settings.pack_spec(self.config, benchmark, version), *units)

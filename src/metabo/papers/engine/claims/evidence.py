"""What a check may look at: the tables behind one artefact on one benchmark, each read when it is first asked for."""

import copy
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypedDict, TypeVar

import pandas as pd

from metabo.artefacts import api as artefacts
from metabo.artefacts import tidy
from metabo.errors import DataError
from metabo.metrics import Runs
from metabo.papers.engine.studies import files as studies
from metabo.papers.engine.studies.files import Frames
from metabo.papers.engine.theory import tables as theory
from metabo.papers.engine.theory.tables import CheckResult
from metabo.plan.artefact import Artefact
from metabo.plan.typed import plain
from metabo.records import results
from metabo.records.files import Json

SYNTHETIC = "synthetic"
"""What an artefact without a benchmark is on."""


Loaded = TypeVar("Loaded")


class EvidenceSources(TypedDict, total=False):
    """The readers of the tables, one for each kind that the artefact has."""

    data: Callable[[], pd.DataFrame]
    trajectories: Callable[[], pd.DataFrame]
    evaluations: Callable[[], pd.DataFrame]
    online: Callable[[], pd.DataFrame]
    studies: Callable[[], dict[str, Frames]]
    theory: Callable[[], list[CheckResult]]


class NoTable(DataError):
    """The artefact's data.csv lacks a table: at a small scale its notebook may have nothing to put there."""


class Evidence:
    """The tables of one artefact on one benchmark (`benchmark`; SYNTHETIC for none).

    `parameters` are the artefact's own (catalogue), such as the regret that it shows (papers after HyperBO: the
    normalised one). `estimand`: which interval decides (`metabo.papers.engine.claims.comparing`).
    """

    def __init__(self, benchmark: str, sources: EvidenceSources, parameters: Mapping[str, Json] | None = None):
        self.benchmark = benchmark
        self.parameters = dict(parameters or {})
        self.estimand = "new"
        self.failing: Mapping[str, str] = {}
        self._sources = sources
        self._tables: dict[str, pd.DataFrame] = {}
        self._runs: dict[str, Runs] = {}

    def about(self, estimand: str, failing: Mapping[str, str] | None = None) -> "Evidence":
        """Return the same evidence for a claim about "suite" (these tasks) or "new" (a new data set). `failing`: runs
        that fail a gate, with the reason: comparisons with them are not testable."""
        other = copy.copy(self)
        other.estimand, other.failing = estimand, failing or {}
        return other

    def has(self, kind: str) -> bool:
        """Return whether the artefact has tables of this kind, such as "trajectories"."""
        return kind in self._sources

    def _read(self, kind: str, source: Callable[[], Loaded] | None) -> Loaded:
        if source is None:
            raise DataError(f"the artefact has no {kind}, only {', '.join(self._sources)}; name another in the claim")
        return source()

    @cached_property
    def data(self) -> pd.DataFrame:
        """The artefact's data.csv: one number per row."""
        return self._read("data", self._sources.get("data"))

    @cached_property
    def trajectories(self) -> pd.DataFrame:
        """The trajectory table, methods named as in the figure (``method-acquisition``, ``method@split``)."""
        return self._read("trajectories", self._sources.get("trajectories"))

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """The table of the priors' losses."""
        return self._read("evaluations", self._sources.get("evaluations"))

    @cached_property
    def online(self) -> pd.DataFrame:
        """The table of online tuning."""
        return self._read("online", self._sources.get("online"))

    @cached_property
    def studies(self) -> dict[str, Frames]:
        """The tables of each study, by its name."""
        return self._read("studies", self._sources.get("studies"))

    @cached_property
    def theory(self) -> list[CheckResult]:
        """The records of the theory checks."""
        return self._read("theory", self._sources.get("theory"))

    @property
    def regret(self) -> str:
        """The regret that the artefact shows: "simple_regret" or "normalised_regret"."""
        return str(self.parameters.get("regret", "simple_regret"))

    @property
    def runs(self) -> Runs:
        """The BO runs as arrays of that regret; made once for both estimands."""
        if self.regret not in self._runs:
            self._runs[self.regret] = artefacts.runs(self.trajectories, self.regret)
        return self._runs[self.regret]

    def table(self, name: str) -> pd.DataFrame:
        """Return one named table of data.csv (a copy), a column per key and per quantity.

        Raises NoTable if there is none of that name.
        """
        if name not in self._tables:
            self._tables[name] = self._wide(name)
        return self._tables[name].copy()

    def _wide(self, name: str) -> pd.DataFrame:
        rows = self.data[self.data["table"] == name]
        if rows.empty:
            held = ", ".join(dict.fromkeys(self.data["table"]))
            raise NoTable(f"data.csv of benchmark '{self.benchmark}': no table '{name}'; it holds {held}")
        keys = [column for column in rows if column not in tidy.RESERVED and rows[column].notna().any()]
        filled = rows.assign(**{key: _filled(rows[key]) for key in keys})
        quantities = list(dict.fromkeys(rows["quantity"]))
        wide = filled.set_index([*keys, "quantity"])["value"].unstack("quantity")
        return wide[quantities].reset_index().rename_axis(columns=None)


def _filled(column: pd.Series) -> pd.Series:
    """Give missing keys a value, and whole numbers back their type: a row of another table left them empty."""
    if pd.api.types.is_numeric_dtype(column):
        whole = column.notna().all() and (column % 1 == 0).all()
        return column.astype("int64") if whole else column.fillna(-1.0)
    return column.fillna("").astype(str)


def gather(artefact: Artefact, root: Path) -> tuple[Evidence, dict[str, list[Path]]]:
    """Return the evidence of an artefact below the results folder `root` (results/{scale}), and the files it may read.

    Nothing is read here. Raises DataError when a file is read that does not exist.
    """
    files = {"data": [root / artefact.place / "data.csv"]}
    files |= {kind: [root / path for path in paths] for kind, paths in artefact.files.items()}
    chosen = (artefact.inputs.splits is not None, *artefact.splits)
    texts = {kind: [str(path) for path in paths] for kind, paths in files.items()}
    sources: EvidenceSources = {"data": lambda: _csv(files["data"][0])}
    if "trajectories" in files:
        sources["trajectories"] = lambda: _trajectories(tuple(texts["trajectories"]), artefact.benchmark, *chosen)
    if "evaluations" in files:
        sources["evaluations"] = lambda: results.read_evaluations(texts["evaluations"])
    if "online" in files:
        sources["online"] = lambda: results.read_online(texts["online"])
    if "studies" in files:
        sources["studies"] = lambda: {path.stem: studies.read(path) for path in files["studies"]}
    if "theory" in files:
        sources["theory"] = lambda: theory.read(texts["theory"])
    shown = {} if artefact.entry.paper == "hyperbo" else {"regret": "normalised_regret"}
    return Evidence(
        artefact.benchmark or SYNTHETIC,
        sources,
        shown | {key: plain(value) for key, value in artefact.entry.parameters.items()},
    ), files


def _csv(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"{path}: no such table; make it (`snakemake --cores 2 -- {path}`)")
    try:
        table = pd.read_csv(path, dtype={"space": str, "task": str, "level": str})  # spaces of HPO-B are numbers
    except ValueError as error:
        raise DataError(f"{path}: not a readable table ({error}); delete it and run again") from error
    if missing := {"table", "quantity", "value"} - set(table):
        raise DataError(f"{path}: no column {', '.join(sorted(missing))}; delete it and run again")
    return table


@lru_cache(maxsize=1)  # several figures show the same runs
def _trajectories(paths: tuple[str, ...], benchmark: str, several: bool, *splits: str) -> pd.DataFrame:
    table = artefacts.load_trajectories(list(paths), benchmark, list(splits))
    return artefacts.by_split(table) if several else table

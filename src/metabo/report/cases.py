"""Differences from Random, last regrets and distinct queries, by table and protocol: of the artefacts of a run, and of
recorded runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from metabo import metrics
from metabo.artefacts import api
from metabo.plan import registry, splits

PROTOCOLS = "hyperbo_x10"
"""The artefact with every method against Random, where candidates may be queried again and where they may not."""
SHOWN = (1, 10, 100)
"""Queries after which regrets are compared; an iteration beyond the last is left out."""
TEXTS = ("benchmark", "space", "split", "fold", "task", "method", "acquisition", "data")


class ShownTable(NamedTuple):
    """The data.csv of an artefact on the page; `name`: of its rule."""

    name: str
    id: str
    benchmark: str
    path: Path


class Gap(NamedTuple):
    """Normalised regret of a method minus that of another after `iteration` queries, with its 95 % interval."""

    iteration: int
    difference: float
    low: float
    high: float

    @property
    def said(self) -> str:
        """Write it out."""
        return f"{self.difference:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Case(NamedTuple):
    """A table under one protocol: the differences from Random by method, mean last regrets and distinct queries.
    `ekl`: the difference of H-EKL and H-NLL, where it is known."""

    where: str
    benchmark: str
    by_others: bool
    once: bool
    gaps: dict[str, list[Gap]]
    last: dict[str, float]
    distinct: dict[str, float]
    artefact: str
    ekl: Gap | None = None


def cases_of(tables: Iterable[ShownTable], recorded: Iterable[Path]) -> list[Case]:
    """Return the cases of a run's tables, then those of the folders of recorded results (evidence/{scale})."""
    shown = [case for table in tables if table.id == PROTOCOLS for case in _shown(table)]
    return shown + [case for folder in recorded for case in _recorded(folder)]


def by_others(benchmark: str) -> bool:
    """Tell whether a benchmark is a table that is downloaded."""
    return benchmark in registry.benchmarks() and bool(registry.benchmark(benchmark).dataset)


def _named(benchmark: str) -> str:
    """Name a table with its origin, and what its intervals are about if its tasks are all of one data set."""
    origin = "a table by others" if by_others(benchmark) else "a table of our own"
    one = benchmark in registry.benchmarks() and registry.one_data_set(benchmark)
    return f"{benchmark} ({origin}{', one data set: intervals over repetitions, for these tasks' if one else ''})"


def rule(once: bool) -> str:
    """Say how the candidates of a case may be queried."""
    return "each candidate is queried once" if once else "candidates may be queried again"


def _where(benchmark: str, split: str, once: bool) -> str:
    """Name the table of a case, how its candidates may be queried, and whether the priors were trained without them."""
    new = ", candidates that no past task has tried" if splits.entry(split).candidates == "rest" else ""
    return f"{_named(benchmark)}, {rule(once)}{new}"


def _shown(table: ShownTable) -> list[Case]:
    found = pd.read_csv(table.path, low_memory=False)
    budget, gaps = found[found["table"] == "budget"], found[found["table"] == "difference"]
    regret = found[(found["table"] == "regret") & (found["quantity"] == "mean")]
    cases = []
    for split, own in gaps.groupby("split", sort=False):
        wide = own.pivot(index=["method", "iteration"], columns="quantity", values="value").reset_index()
        of = {
            str(method): [Gap(int(r.iteration), r.difference, r.low, r.high) for r in rows.itertuples()]
            for method, rows in wide.sort_values("iteration").groupby("method", sort=False)
        }
        here = regret[(regret["split"] == split) & (regret["iteration"] == regret["iteration"].max())]
        asks = budget[(budget["split"] == split) & (budget["quantity"] == "distinct")].set_index("method")["value"]
        distinct = {str(method): float(value) for method, value in asks.items()}
        once, _ = splits.queries(table.benchmark, str(split))
        last = {str(row.method): float(row.value) for row in here.itertuples()}
        where = _where(table.benchmark, str(split), once)
        cases.append(Case(where, table.benchmark, by_others(table.benchmark), once, of, last, distinct, table.name))
    return cases


def _recorded(folder: Path) -> list[Case]:
    """Return a case for each benchmark and split whose recorded runs include Random's. Runs on a benchmark, or of a
    method, that this version does not have are left out."""
    cases = []
    for baseline in sorted(folder.glob("bo/*/*/rand-uniform.parquet")):
        split, benchmark = baseline.parent.name, baseline.parent.parent.name
        paths = sorted(baseline.parent.glob("*-pi.parquet"))
        if not paths or benchmark not in registry.benchmarks():
            continue
        read = [pd.read_parquet(path) for path in (baseline, *paths)]
        table = pd.concat([one.astype({c: str for c in TEXTS if c in one}) for one in read])
        table = table[table["method"].isin(registry.methods())]
        runs = api.runs(table, "normalised_regret")
        at = [t for t in SHOWN if t <= runs.last]
        of: dict[str, list[Gap]] = {}
        for method in (m for m in runs.methods if m != "rand"):  # pair by pair, as docs/findings/ has them
            rows = metrics.differences(runs.select([method, "rand"]), "rand", at, seed=0)
            of[method] = [Gap(int(row.iteration), row.difference, row.low, row.high) for row in rows.itertuples()]
        queried = table[table["iteration"] > 0]
        asks = queried.groupby(["method", "task", "prior_seed", "seed"])["candidate"].nunique().groupby("method").mean()
        distinct = {str(method): float(value) for method, value in asks.items()}
        once, _ = splits.queries(benchmark, split)
        last = {m: float(values[..., -1].mean()) for m, values in runs.values.items()}
        where = f"{_where(benchmark, split, once)}; recorded in {folder.as_posix()}"
        ekl = None
        if {"h_ekl", "h_nll"} <= set(runs.methods):
            pair = metrics.differences(runs.select(["h_ekl", "h_nll"]), "h_nll", [runs.last], seed=0).iloc[0]
            ekl = Gap(runs.last, pair["difference"], pair["low"], pair["high"])
        cases.append(Case(where, benchmark, by_others(benchmark), once, of, last, distinct, "", ekl))
    return cases

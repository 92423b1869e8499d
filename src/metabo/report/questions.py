"""Plain questions that no single claim answers, answered from the tables of a run and from recorded runs. No sentence
is written by hand for a result: which one is shown, and every number, follows from the tables.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from metabo import metrics
from metabo.papers.hegpucb.figures import PROBLEMS, PROFILES
from metabo.plan import registry
from metabo.plots import look
from metabo.report.wording import names, number, verb

PROTOCOLS = "hyperbo_x10"
"""The artefact with every method against Random, where candidates may be queried again and where they may not."""
ELIMINATION = ("hegpucb_fig02", "hegpucb_fig02b", "hegpucb_fig02c")
SHOWN = (1, 10, 100)
"""Queries after which regrets are compared; an iteration beyond the last is left out."""
LEVEL = 1e-6
"""Means that are closer than this share a place."""
TEXTS = ("benchmark", "space", "split", "fold", "task", "method", "acquisition", "data")


class ShownTable(NamedTuple):
    """The data.csv of an artefact on the page; `name`: of its rule."""

    name: str
    id: str
    benchmark: str
    path: Path


class AnswerRow(NamedTuple):
    """What one table says. `artefact`: the name of the artefact that shows it, "" for recorded runs."""

    where: str
    numbers: str
    artefact: str


class Question(NamedTuple):
    """A question with its answer, and what it rests on."""

    asked: str
    answer: str
    rows: tuple[AnswerRow, ...]


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
    """A table under one protocol: the differences from Random by method, mean last regrets and distinct queries."""

    where: str
    by_others: bool
    once: bool
    gaps: dict[str, list[Gap]]
    last: dict[str, float]
    distinct: dict[str, float]
    artefact: str


def questions(paper: str, tables: Sequence[ShownTable], recorded: Iterable[Path] = ()) -> list[Question]:
    """Answer the questions on a paper. `recorded`: folders of recorded results (evidence/{scale}), whose runs count as
    tables too. A question that no table answers is left out."""
    if paper == "hegpucb":
        return [found for found in (_dropped(tables),) if found]
    if paper != "hyperbo":
        return []
    cases = [case for table in tables if table.id == PROTOCOLS for case in _cases(table)]
    cases += [case for folder in recorded for case in _recorded(folder)]
    asked: tuple[Callable[[Sequence[Case]], Question | None], ...] = (_beats_random, _ends_best, _poor)
    return [found for ask in asked if (found := ask(cases))]


def _by_others(benchmark: str) -> bool:
    """Tell whether a benchmark is a table that is downloaded."""
    return benchmark in registry.benchmarks() and bool(registry.benchmark(benchmark).dataset)


def _origin(benchmark: str) -> str:
    return "a table by others" if _by_others(benchmark) else "a table of our own"


def _cases(table: ShownTable) -> list[Case]:
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
        once = all(value >= own["iteration"].max() for method, value in distinct.items() if method in of)
        protocol = "each candidate queried once" if once else "candidates may be queried again"
        last = {str(row.method): float(row.value) for row in here.itertuples()}
        where = f"{table.benchmark} ({_origin(table.benchmark)}), {protocol}"
        cases.append(Case(where, _by_others(table.benchmark), once, of, last, distinct, table.name))
    return cases


def _recorded(folder: Path) -> list[Case]:
    """Return a case for each benchmark and split whose recorded runs include Random's."""
    cases = []
    for baseline in sorted(folder.glob("bo/*/*/rand-uniform.parquet")):
        split, benchmark = baseline.parent.name, baseline.parent.parent.name
        paths = [path for path in sorted(baseline.parent.glob("*-pi.parquet"))]
        if not paths:
            continue
        read = [pd.read_parquet(path) for path in (baseline, *paths)]
        table = pd.concat([one.astype({c: str for c in TEXTS if c in one}) for one in read])
        runs = metrics.collect(table, "normalised_regret")
        at = [t for t in SHOWN if t <= runs.last]
        of: dict[str, list[Gap]] = {}
        for method in (m for m in runs.methods if m != "rand"):  # pair by pair, as docs/findings.md has them
            rows = metrics.differences(runs.select([method, "rand"]), "rand", at, seed=0)
            of[method] = [Gap(int(row.iteration), row.difference, row.low, row.high) for row in rows.itertuples()]
        queried = table[table["iteration"] > 0]
        asks = queried.groupby(["method", "task", "prior_seed", "seed"])["candidate"].nunique().groupby("method").mean()
        distinct = {str(method): float(value) for method, value in asks.items()}
        once = all(distinct[method] == runs.last for method in of)
        last = {m: float(values[..., -1].mean()) for m, values in runs.values.items()}
        protocol = "each candidate queried once" if once else "candidates may be queried again"
        rows_of = ", candidates that no past task has tried" if split == "new_rows" else ""
        where = f"{benchmark} ({_origin(benchmark)}), {protocol}{rows_of}; recorded, {folder.name} sizes"
        cases.append(Case(where, _by_others(benchmark), once, of, last, distinct, ""))
    return cases


def _label(method: str) -> str:
    return look.of(method).label


def _said(gaps: Sequence[Gap]) -> str:
    shown = [gap for gap in gaps if gap.iteration in SHOWN]
    return f"after {names([str(gap.iteration) for gap in shown])} queries: {', '.join(gap.said for gap in shown)}"


def _some(count: int) -> str:
    return number(count) if count else "none"


def _beats_random(cases: Sequence[Case]) -> Question | None:
    own = [(case, case.gaps["h_nll"]) for case in cases if "h_nll" in case.gaps]
    if not own:
        return None
    lower = [case for case, gaps in own if gaps[-1].high < 0]
    higher = [case for case, gaps in own if gaps[-1].low > 0]
    rest = len(own) - len(lower) - len(higher)
    real = [case for case, _ in own if case.by_others]
    of_real = f", among them {_some(sum(case.by_others for case in lower))} of {number(len(real))} on tables by others"
    against = f"; it is above Random in {number(len(higher))}" if higher else ""
    open_ = f"; {number(rest)} {verb(rest, 'is', 'are')} not decided" if rest else ""
    answer = (
        f"After {own[0][1][-1].iteration} queries it is below Random in {_some(len(lower))} of {number(len(own))} cases"
        f"{of_real if real else ''}{against}{open_}. H-NLL minus Random, normalised regret, with 95 % "
        "intervals for a new task:"
    )
    rows = tuple(AnswerRow(case.where, _said(gaps), case.artefact) for case, gaps in own)
    return Question("Does H-NLL beat random search?", answer, rows)


def _ends_best(cases: Sequence[Case]) -> Question | None:
    rows, best, level = [], 0, 0
    for case in cases:
        if "h_ekl" not in case.last or len(case.last) < 3:
            continue
        least, mine = min(case.last.values()), case.last["h_ekl"]
        place = 1 + sum(value < mine - LEVEL for value in case.last.values())
        same = [_label(m) for m, value in case.last.items() if m != "h_ekl" and abs(value - mine) <= LEVEL]
        first = names([_label(m) for m, value in case.last.items() if value <= least + LEVEL])
        best, level = best + (place == 1 and not same), level + (place == 1 and bool(same))
        shared = f", level with {names(same)}" if same else ""
        lead = "" if place == 1 else f"; lowest: {first} ({least:.4f})"
        rows.append(
            AnswerRow(case.where, f"place {place} of {len(case.last)}, mean {mine:.4f}{shared}{lead}", case.artefact)
        )
    if not rows:
        return None
    shared = f", and shares the lowest in {number(level)}" if level else ""
    answer = (
        f"H-EKL alone has the lowest mean of the methods shown in {_some(best)} of {number(len(rows))} cases{shared}; "
        "places are by means, without intervals (C34, C35 and C52 have these):"
    )
    return Question("Does H-EKL end best?", answer, tuple(rows))


def _poor(cases: Sequence[Case]) -> Question | None:
    own = [case for case in cases if "rfgp" in case.gaps]
    if not own:
        return None
    again = [case for case in own if not case.once]
    worse = [case for case in again if case.gaps["rfgp"][-1].high >= 0]
    saved = [case for case in own if case.once and case.gaps["rfgp"][-1].high < 0]
    asks = names([f"{case.distinct['rfgp']:.0f}" for case in again]) if again else ""
    parts = []
    if worse:
        parts.append(
            f"where candidates may be queried again it is not below Random in {number(len(worse))} of "
            f"{number(len(again))} cases, and makes only {asks} different queries of "
            f"{again[0].gaps['rfgp'][-1].iteration}"
        )
    once = [case for case in own if case.once]
    if once:
        parts.append(
            f"where each is queried once it is below Random in {_some(len(saved))} of {number(len(once))} cases"
        )
    why = (
        "Largely by repeating itself" if worse and saved else "Not by repeating itself alone" if worse else "It is not"
    )
    rows = []
    for case in own:
        distinct = f"{case.distinct['rfgp']:.1f} different queries"
        rows.append(AnswerRow(case.where, f"RFGP minus Random {_said(case.gaps['rfgp'])}; {distinct}", case.artefact))
    return Question("Why is RFGP poor?", f"{why}: {'; '.join(parts)}.", tuple(rows))


def _dropped(tables: Sequence[ShownTable]) -> Question | None:
    rows, said = [], []
    for table in tables:
        if table.id not in ELIMINATION:
            continue
        found = pd.read_csv(table.path, low_memory=False)
        own = found[found["table"] == "drop"]
        wide = own.pivot(index=["problem", "profile"], columns="quantity", values="value").reset_index()
        order = list(dict.fromkeys(own["problem"]))
        wide = wide.set_index("problem").loc[order]
        profile = str(wide["profile"].iloc[0])
        numbers = "; ".join(
            f"{PROBLEMS[name]}: {row.dropped:.0f} in {row.runs:.0f} runs, the true one {row.true:.0f} times"
            for name, row in zip(wide.index, wide.itertuples(), strict=True)
        )
        some = [PROBLEMS[name] for name in wide.index[wide["dropped"] > 0]]
        where = f"all {number(len(wide))}" if len(some) == len(wide) > 1 else names(some)
        said.append(f"in {where} with {PROFILES[profile]}" if some else f"in none with {PROFILES[profile]}")
        rows.append(AnswerRow(PROFILES[profile], numbers, table.name))
    if not rows:
        return None
    yes = any(not one.startswith("in none") for one in said)
    answer = f"{'Yes' if yes else 'No'}: it drops candidates {'; '.join(said)}. Candidates dropped in all runs:"
    return Question("Does HE-GP-UCB drop candidates?", answer, tuple(rows))

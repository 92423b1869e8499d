"""Plain questions that no single claim answers, answered from the tables of a run and from recorded runs. No sentence
is written by hand for a result: which one is shown, and every number, follows from the tables.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from metabo.papers.hegpucb.figures import PROBLEMS, PROFILES
from metabo.plots import look
from metabo.report.cases import SHOWN, Case, Gap, ShownTable, by_others, cases_of, rule
from metabo.report.wording import names, number, verb

ELIMINATION = ("hegpucb_fig02", "hegpucb_fig02b", "hegpucb_fig02c")
LEVEL = 1e-6
"""Means that are closer than this share a place."""


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


def questions(paper: str, tables: Sequence[ShownTable], recorded: Iterable[Path] = ()) -> list[Question]:
    """Answer the questions on a paper. `recorded`: folders of recorded results (evidence/{scale}), whose runs count as
    tables too. A question that no table answers is left out."""
    if paper == "hegpucb":
        return [found for found in (_dropped(tables),) if found]
    if paper != "hyperbo":
        return []
    found = cases_of(tables, recorded)
    asked: tuple[Callable[[Sequence[Case]], Question | None], ...] = (_beats_random, _ends_best, _poor)
    return [answer for ask in asked if (answer := ask(found))]


def _by_table(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Group cases by their benchmark."""
    tables: dict[str, list[Case]] = {}
    for case in cases:
        tables.setdefault(case.benchmark, []).append(case)
    return tables


def _some(count: int) -> str:
    return number(count) if count else "none"


def _label(method: str) -> str:
    return look.of(method).label


def _said(gaps: Sequence[Gap]) -> str:
    shown = [gap for gap in gaps if gap.iteration in SHOWN]
    return f"after {names([str(gap.iteration) for gap in shown])} queries: {', '.join(gap.said for gap in shown)}"


def _against(gap: Gap) -> str:
    """Say where an interval of a difference from Random lies."""
    return "below Random" if gap.high < 0 else "above Random" if gap.low > 0 else "not told from Random"


def _beats_random(cases: Sequence[Case]) -> Question | None:
    own = [case for case in cases if "h_nll" in case.gaps]
    if not own:
        return None
    tables = _by_table(own)
    below = {name: sum(one.gaps["h_nll"][-1].high < 0 for one in those) for name, those in tables.items()}
    always = [name for name, those in tables.items() if below[name] == len(those)]
    parts = [f"below Random on {names(always)} in every case shown"] if always else []
    for name in (name for name in tables if name not in always):
        seen = dict.fromkeys(_against(one.gaps["h_nll"][-1]) for one in tables[name])
        how = names([one for one in seen if one != "below Random"])
        parts.append(f"on {name} below Random in {_some(below[name])} of {number(len(tables[name]))} cases, else {how}")
    real = [name for name in tables if by_others(name)]
    others = f" {names(real)} {verb(len(real), 'is a table', 'are tables')} by others." if real else ""
    answer = (
        f"After {own[0].gaps['h_nll'][-1].iteration} queries: {'; '.join(parts)}.{others} H-NLL minus Random, "
        "normalised regret, with 95 % intervals for a new data set:"
    )
    rows = tuple(AnswerRow(case.where, _said(case.gaps["h_nll"]), case.artefact) for case in own)
    return Question("Does H-NLL beat random search?", answer, rows)


def _ends_best(cases: Sequence[Case]) -> Question | None:
    rows, best = [], 0
    for case in cases:
        if "h_ekl" not in case.last or len(case.last) < 3:
            continue
        least, mine = min(case.last.values()), case.last["h_ekl"]
        place = 1 + sum(value < mine - LEVEL for value in case.last.values())
        same = [_label(m) for m, value in case.last.items() if m != "h_ekl" and abs(value - mine) <= LEVEL]
        first = names([_label(m) for m, value in case.last.items() if value <= least + LEVEL])
        best += place == 1 and not same
        shared = f", level with {names(same)}, so that it ranks nothing" if same else ""
        lead = "" if place == 1 else f"; lowest: {first} ({least:.4f})"
        pair = f"; H-EKL minus H-NLL {case.ekl.said}" if case.ekl else ""
        said = f"place {place} of {len(case.last)}, mean {mine:.4f}{shared}{lead}{pair}"
        rows.append(AnswerRow(case.where, said, case.artefact))
    if not rows:
        return None
    begun = "By means, yes" if best == len(rows) else "By means, not everywhere" if best else "Not shown"
    answer = (
        f"{begun}: H-EKL alone has the lowest mean of the methods shown in {_some(best)} of {number(len(rows))} cases. "
        "A place by means is no evidence; where the difference from H-NLL has an interval, the row has it (and C34):"
    )
    return Question("Does H-EKL end best?", answer, tuple(rows))


def _poor(cases: Sequence[Case]) -> Question | None:
    own = [case for case in cases if "rfgp" in case.gaps]
    if not own:
        return None
    parts = []
    for name, those in _by_table(own).items():
        told = [f"{_against(one.gaps['rfgp'][-1])} where {rule(one.once)}" for one in those]
        parts.append(f"on {name} it is {' and '.join(told)}")
    lower = [
        f"{names(found)} on {case.benchmark}"
        for case in own
        if not case.once and (found := [_label(m) for m in case.gaps if _repeats_as_much(case, m)])
    ]
    also = f" It repeats itself, but so do methods that end lower ({'; '.join(lower)})."
    rows = []
    for case in own:
        place = 1 + sum(value < case.last["rfgp"] - LEVEL for value in case.last.values())
        said = f"{case.distinct['rfgp']:.1f} different queries, place {place} of {len(case.last)}"
        rows.append(AnswerRow(case.where, f"RFGP minus Random {_said(case.gaps['rfgp'])}; {said}", case.artefact))
    begun = "; ".join(parts)
    return Question("Why is RFGP poor?", f"{begun[0].upper()}{begun[1:]}.{also if lower else ''}", tuple(rows))


def _repeats_as_much(case: Case, method: str) -> bool:
    """Tell whether a method makes no more distinct queries than RFGP and ends lower."""
    less = case.distinct[method] <= case.distinct["rfgp"] and case.last[method] < case.last["rfgp"] - LEVEL
    return method != "rfgp" and less


def _dropped(tables: Sequence[ShownTable]) -> Question | None:
    rows, said, lost = [], [], []
    for table in tables:
        if table.id not in ELIMINATION:
            continue
        found = pd.read_csv(table.path, low_memory=False)
        own, left = found[found["table"] == "drop"], found[(found["table"] == "left") & (found["quantity"] == "alive")]
        known = set(found.loc[found["table"] == "wrong", "problem"])  # where a candidate is the true one
        wide = own.pivot(index=["problem", "profile"], columns="quantity", values="value").reset_index()
        wide = wide.set_index("problem").loc[list(dict.fromkeys(own["problem"]))]
        profile = str(wide["profile"].iloc[0])
        numbers = []
        for name, row in zip(wide.index, wide.itertuples(), strict=True):
            ends = left[left["problem"] == name].sort_values("iteration")["value"]
            kept = f", {ends.iloc[-1]:.1f} left at the end" if len(ends) else ""
            of = f"the true one in {row.true:.0f} runs of {row.runs:.0f}"
            true = of if name in known else "no candidate is the true one"
            numbers.append(f"{PROBLEMS[str(name)]}: {row.dropped / row.runs:.2f} dropped a run{kept}; {true}")
            lost += [(row.true / row.runs, row.true, row.runs)] if name in known else []
        some = [PROBLEMS[str(name)] for name in wide.index[wide["dropped"] > 0]]
        where = f"all {number(len(wide))} problems" if len(some) == len(wide) > 1 else names(some)
        said.append(f"in {where} with {PROFILES[profile]}" if some else f"in none with {PROFILES[profile]}")
        rows.append(AnswerRow(PROFILES[profile], ". ".join(numbers), table.name))
    if not rows:
        return None
    yes = any(not one.startswith("in none") for one in said)
    _, true, runs = max(lost, default=(0.0, 0.0, 0.0))
    wrong = f" The true one is dropped in up to {true:.0f} of {runs:.0f} runs." if true else ""
    return Question(
        "Does HE-GP-UCB drop candidates?",
        f"{'Yes' if yes else 'No'}: it drops some {'; '.join(said)}.{wrong}",
        tuple(rows),
    )

"""The findings at the published sizes have one page a paper, which says what is recorded."""

import re

import pandas as pd
import pytest

from metabo import metrics
from metabo.papers.engine.claims import sheet
from metabo.papers.engine.claims.verdicts import VERDICTS
from tests.docs.findings import DETAILS, JUDGED, PAPERS, SHORT, compared, judged, row

VERDICT_HEADINGS = ("What holds", "What is contradicted", "What is undecided, and why", "What is not testable")
HEADLINE = "**"


def page(name: str) -> str:
    """Return the page of a paper."""
    return SHORT.split(f"\n## {name}\n")[1].split("\n## ")[0]


def claims_of(lead: str) -> list[str]:
    """Return the claims that the lead of an item names, e.g. "C14 to C20, **C22**"; headlines keep their stars."""
    found: list[str] = []
    for part in lead.split(", "):
        first, _, last = part.partition(" to ")
        if last:
            numbers = range(int(first[1:]), int(last[1:]) + 1)
            found += [f"{first[0]}{number:0{len(first) - 1}d}" for number in numbers]
        else:
            found.append(part)
    return found


@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_are_counted_as_recorded(name):
    found = [claim.whole.verdict for claim in judged(name)]
    written = pd.read_csv(JUDGED[PAPERS[name]][0])
    whole = (written["role"] == "claim").sum()
    counts = [f"{len(found)} of {whole}", *(str(found.count(verdict)) for verdict in VERDICTS)]
    assert row(f"[{name}](#{name.lower()})", SHORT)[:-1] == counts


@pytest.mark.parametrize("name", PAPERS)
def test_each_judged_claim_stands_once_on_its_papers_page_and_under_its_verdict(name):
    headline = {claim.id for claim in sheet.load(PAPERS[name]) if claim.headline}
    parts = re.split(r"(?m)^\*\*(What [^*]+)\*\*$", page(name))
    assert tuple(parts[1::2]) == VERDICT_HEADINGS
    for verdict, items in zip(VERDICTS, parts[2::2], strict=True):
        said = [claim for lead in re.findall(r"(?m)^- ([^:]+):", items) for claim in claims_of(lead)]
        found = [one.whole.claim for one in judged(name) if one.whole.verdict == verdict]
        marked = [f"{HEADLINE}{claim}{HEADLINE}" if claim in headline else claim for claim in found]
        assert sorted(said) == sorted(marked), verdict


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_has_one_page_and_its_intervals_are_those_of_the_details(name):
    own, behind = page(name), " ".join(DETAILS[name].split())
    prose = " ".join(line for line in own.splitlines() if not line.startswith("|")).split()  # its table: see below
    assert len(prose) <= 900
    said = " ".join(prose)
    intervals = re.findall(r"(-?\d[\d.]* \[-?[\d.]+, -?[\d.]+\](?: above| below)?)", said)
    assert intervals and [interval for interval in intervals if interval not in behind] == []
    numbers = re.findall(r"\b\d+\.\d+|\b\d+(?:,\d+)? of \d+|\b\d+(?:,\d+)? (?:%|runs)", said)
    assert numbers and [one for one in numbers if one not in behind] == []


@pytest.mark.parametrize("name", PAPERS)
def test_how_many_claims_are_not_judged(name):
    waiting = len(sheet.load(PAPERS[name])) - len(judged(name))
    said = re.findall(r"\bThe other (\d+)\b", page(name))
    assert said == ([str(waiting)] if waiting > 1 else [])


@pytest.mark.parametrize(
    ("shown", "benchmark", "split"),
    [
        ("[LCBench](data.md)", "lcbench", "held_out"),
        ("LCBench, new rows", "lcbench", "new_rows"),
        ("[`pd1_mini`](data.md)", "pd1_mini", "held_out"),
        ("`pd1_mini`, new rows", "pd1_mini", "new_rows"),
        ("[TaskSet](data.md)", "taskset", "held_out"),
        ("TaskSet, new rows", "taskset", "new_rows"),
    ],
)
def test_what_h_nll_is_worth_after_ten_queries(shown, benchmark, split):
    found = []
    for other in ("rand-uniform", "stboh-ucb18", "portfolio-sequence"):
        runs = compared(benchmark, split, ("h_nll-pi", other))
        (one,) = metrics.differences(runs, other.split("-")[0], [10], seed=0).itertuples()
        found.append(f"{one.difference:.3f} [{one.low:.3f}, {one.high:.3f}]")
    assert row(shown, SHORT) == found
    assert float(found[0].split("[")[1].split(", ")[1][:-1]) < 0, "ahead of random search on every table"

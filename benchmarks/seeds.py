"""Compare the verdicts of two runs of the default that differ in the config key `seed`.

    snakemake --cores 2 --config seed=1 -- results/laptop/claims/{hyperbo,mphd,cmbo,hegpucb}.csv   # in another checkout
    python benchmarks/seeds.py results/laptop/claims OTHER/results/laptop/claims --out benchmarks/results/seeds.csv

The table has a row for every claim and for every test of it, with verdict and number of both runs. What is printed:
how often which verdict of the first run became which one in the second, the claims that changed, and how many numbers
lie in the interval that the other run gave. Runs that were judged by different code are refused.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from metabo.errors import DataError, MetaboError
from metabo.papers.engine.claims.settling import OWN_TABLE
from metabo.papers.engine.claims.verdicts import CONTRADICTED, HOLDS
from metabo.report import scorecard

TEST = ["paper", "claim", "role", "benchmark", "artefact", "reading", "metrics"]
"""What a test is about. Tests of a claim that agree in it are told apart by their order."""
KEPT = ["headline", "verdict", "cause", "value", "low", "high"]
RUNS = ("_first", "_second")


def papers(first: Path, second: Path) -> list[str]:
    """Return the papers that both runs have judged. Raises DataError if there is none, or if their code differs."""
    one, two = ({p.stem: json.loads(p.read_text())["code_sha256"] for p in f.glob("*.json")} for f in (first, second))
    both = sorted(one.keys() & two.keys())
    if not both:
        raise DataError(
            f"{first} and {second}: no paper was judged in both; snakemake results/laptop/claims/hyperbo.csv"
        )
    if differ := [paper for paper in both if one[paper] != two[paper]]:
        raise DataError(f"{', '.join(differ)}: {first} and {second} were not judged by the same code; judge both again")
    return both


def read(folder: Path, chosen: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the chosen papers of one run. Raises DataError for a table that cannot be read."""
    table = scorecard.read([folder / f"{paper}.csv" for paper in chosen])
    return table.assign(order=table.groupby(TEST).cumcount())[[*TEST, "order", *KEPT]]


def joined(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Put the rows of two runs beside each other. Raises DataError if they are not about the same tests."""
    both = first.merge(second, how="outer", on=[*TEST, "order"], suffixes=RUNS, indicator=True)
    alone = both[both["_merge"] != "both"]
    if len(alone):
        row = alone.iloc[0]
        raise DataError(f"{len(alone)} tests are in one run only, the first: {row['paper']} {row['claim']}")
    return both.drop(columns="_merge")


def turned(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that hold in one run and are contradicted in the other."""
    pairs = zip(rows["verdict_first"], rows["verdict_second"], strict=True)
    return rows[[set(pair) == {HOLDS, CONTRADICTED} for pair in pairs]]


def tests_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of single tests: parts, what stands beside, and claims of one test. What the paper's own table
    says depends on no seed."""
    with_parts = rows.loc[rows["role"] == "part", ["paper", "claim"]].agg(" ".join, axis=1)
    whole = (rows["role"] == "claim") & rows[["paper", "claim"]].agg(" ".join, axis=1).isin(set(with_parts))
    return rows[~whole & (rows["reading"] != OWN_TABLE)]


def covered(rows: pd.DataFrame) -> tuple[int, int]:
    """Return how many numbers lie in the interval of the other run, in both directions, and how many have one."""
    inside = of = 0
    for own, other in (RUNS, RUNS[::-1]):
        has = rows[[f"value{own}", f"low{other}", f"high{other}"]].dropna()
        has = has[has[f"low{other}"] < has[f"high{other}"]]
        inside += int(has[f"value{own}"].between(has[f"low{other}"], has[f"high{other}"]).sum())
        of += len(has)
    return inside, of


def report(rows: pd.DataFrame) -> Iterator[str]:
    """Say how two runs compare: counts, what turned, the claims that changed, and coverage."""
    claims, tests = rows[rows["role"] == "claim"], tests_of(rows)
    for what, some in (("claims", claims), ("tests", tests)):
        same = int((some["verdict_first"] == some["verdict_second"]).sum())
        counted = pd.crosstab(some["verdict_first"], some["verdict_second"])
        yield f"{what}: {same} of {len(some)} have the same verdict; down: first run, across: second run"
        yield (
            counted.reindex(scorecard.VERDICTS, axis=0, fill_value=0)
            .reindex(scorecard.VERDICTS, axis=1, fill_value=0)
            .to_string()
        )
        for row in turned(some).itertuples():
            yield f"turned: {row.paper} {row.claim}, {row.benchmark}, {row.reading}: {numbers(row)}"
    for row in claims[claims["verdict_first"] != claims["verdict_second"]].itertuples():
        yield f"{row.paper} {row.claim}{' (headline)' if row.headline_first == '1' else ''}: {numbers(row)}"
    inside, of = covered(tests)
    yield f"numbers in the interval of the other run: {inside} of {of}"


def numbers(row) -> str:
    """Return verdict, cause and number of both runs."""
    of = [[getattr(row, f"{name}{run}") for name in ("verdict", "cause", "value", "low", "high")] for run in RUNS]
    return ", then ".join(f"{v} {f'({cause}) ' if cause else ''}{x:.3g} [{a:.3g}, {b:.3g}]" for v, cause, x, a, b in of)


def main(given: Sequence[str] | None = None) -> None:
    """Compare two runs, write the table and print the rest; say in one line why two cannot be compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="folder of verdicts")
    parser.add_argument("second", type=Path, help="the same of the other run")
    parser.add_argument("--out", type=Path, required=True, help="where the table goes")
    args = parser.parse_args(given)
    try:
        chosen = papers(args.first, args.second)
        rows = joined(read(args.first, chosen), read(args.second, chosen))
    except MetaboError as error:
        parser.exit(1, f"{error}\n")
    args.out.write_text(rows.to_csv(index=False))
    print(f"papers judged in both: {', '.join(chosen)}", *report(rows), sep="\n")


if __name__ == "__main__":
    main()

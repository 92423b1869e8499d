"""What is published about data sets that are downloaded: lists of their files, and numbers to compare them with."""

import csv
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def initial_maxima() -> dict[tuple[str, str, str], float]:
    """Return (space, data set, set) -> largest normalised output of the five initial points of HPO-B, from the results
    of ten methods that its repository keeps: they agree on all 430."""
    with (FOLDER / "hpob_initial.csv").open(newline="", encoding="utf-8") as stream:
        return {(r["space"], r["dataset"], r["seed"]): float(r["best"]) for r in csv.DictReader(stream)}

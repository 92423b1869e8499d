"""Fit the typical times of `metabo.plan.typical`, from which the progress of a run starts, to records of finished runs.

    python benchmarks/typical.py results/laptop > src/metabo/plan/typical.csv

Several folders may be given. Each sum is that of the records; within it a job counts by the square root of its time,
since long ones scatter most.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from paper_plan import FOLDERS, ROOT
from scipy.optimize import nnls

from metabo.plan import config
from metabo.plan.runs import RunId
from metabo.plan.sections.config import Config
from metabo.plan.typical import NOTEBOOK, Cost, family
from metabo.plan.work import NumericJob, loops

RULES = {folder: rule for rule, folder in FOLDERS.items()}
OTHERS = {
    "theory": "check_theory",
    "studies": "run_study",
    "data": "load",
    "claims": "judge_claims",
    "collect": "collect",
}
FEW = 5
"""Jobs below which a line has no start of its own: it would be fitted to noise."""
START = 3.0

Rows = list[tuple[float, float]]


def taken(results: Path) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the place of each job below `benchmarks` and the seconds that it took."""
    for path in sorted((results / "benchmarks").rglob("*.tsv")):
        seconds = path.read_text().splitlines()[1].split("\t")[0]
        yield path.relative_to(results / "benchmarks").with_suffix("").parts, float(seconds)


def numeric(place: tuple[str, ...]) -> NumericJob:
    """Return the job whose time lies there."""
    folder, benchmark, split, name = place
    run = RunId.parse(name)
    return NumericJob(RULES[folder], benchmark, split, run.method, run.acquisition)


def fit(folders: Sequence[Path], settings: Config) -> dict[tuple[str, str], Cost]:
    """Return the costs by kind and family, by rule and study, and of all of a kind or a rule under ""."""
    found: defaultdict[tuple[str, str], Rows] = defaultdict(list)
    for place, seconds in (job for folder in folders for job in taken(folder)):
        if place[0] in RULES:
            job = numeric(place)
            kind, steps = loops(job, settings)
            names = kind, family(job.method)
        else:
            rule = "pages" if place[-1] == "pages" else OTHERS.get(place[0], NOTEBOOK)
            names, steps = (rule, place[-1] if rule == "run_study" else ""), 0.0
        for group in dict.fromkeys([names, (names[0], "")]):
            found[group].append((steps, seconds))
    return {group: line(rows) for group, rows in sorted(found.items())}


def line(rows: Rows) -> Cost:
    """Fit start and pace, neither below 0: least squares, a job weighted by 1/√(its time), then scaled to their sum."""
    steps, seconds = np.array(rows).T
    unit = steps.max()
    if unit == 0:
        return Cost(float(seconds.mean()), 0.0)
    if len(rows) < FEW:
        start, slope = START, np.maximum(seconds - START, 0).sum() / (steps / unit).sum()
    else:
        weight = 1 / np.sqrt(np.maximum(seconds, 1.0))
        columns = np.stack([np.ones_like(steps), steps / unit], axis=1)
        (start, slope), _ = nnls(columns * weight[:, None], seconds * weight)
    scale = seconds.sum() / (start + slope * steps / unit).sum()
    return Cost(float(start * scale), float(slope * scale / unit))


def main() -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("jobs", "of", "start", "pace"))
    for (jobs, of), cost in fit([Path(name) for name in sys.argv[1:]], config.load(ROOT)).items():
        writer.writerow((jobs, of, f"{cost.start:.1f}", f"{cost.pace:.2g}"))


if __name__ == "__main__":
    main()

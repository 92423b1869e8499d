"""Measure the paces of `metabo.plan.limits`, which decide the time limits on a cluster, from a run at laptop scale.

    python benchmarks/paces.py results/laptop

Prints, for each kind of loop, the most seconds that one step took in any job, and the name of that job.
"""

import sys
from pathlib import Path

from paper_plan import ROOT, file, jobs

from metabo.plan import config
from metabo.plan.limits import PACES, START
from metabo.plan.work import loops


def main() -> None:
    settings, slowest = config.load(ROOT), {}
    for job in jobs(settings):
        path = Path(sys.argv[1], "benchmarks", file(job)).with_suffix(".tsv")
        if path.is_file():
            seconds = float(path.read_text().splitlines()[1].split("\t")[0])
            kind, steps = loops(job, settings)
            slowest[kind] = max(slowest.get(kind, (0.0, "")), (max(seconds - START, 0) / steps, file(job)))
    for kind, pace in PACES.items():
        found, name = slowest.get(kind, (0.0, "not measured"))
        print(f"{kind:12} {found:.1e} s, here {pace:.1e} s ({name})")


if __name__ == "__main__":
    main()

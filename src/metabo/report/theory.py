"""The verdicts on the papers' theory behind the artefacts of the page."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from metabo.papers.engine.theory import tables
from metabo.records.checksums import checksums
from metabo.report.jobs import Job


@dataclass(frozen=True)
class ShownStatement:
    """A statement of a paper's theory (`metabo.papers.engine.theory.tables.verdicts`) and the link to its numbers."""

    check: str
    statement: str
    version: str
    title: str
    where: str
    verdict: str
    sees: str
    decided: str
    paper: str
    link: str


def verdicts(made: Mapping[str, Job], page: Path) -> list[ShownStatement]:
    """Return the statements, by paper and check.

    `made`: the jobs behind the artefacts; those of the stage `theory` name the results that are read. `page`: the file
    that links to them. Raises DataError if a result is missing or damaged.
    """
    rows = []
    for job in made.values():
        if job.stage == "theory":
            (path,) = job.record.outputs
            link = quote(Path(os.path.relpath(path, page.parent)).as_posix())
            checksums([path])
            table, paper = tables.verdicts(tables.read([path])), job.record.spec.text("paper")
            shown = table[["check", "statement", "version", "title", "where", "verdict", "sees", "decided"]]
            rows += [ShownStatement(*row, paper=paper, link=link) for row in shown.itertuples(index=False, name=None)]
    return sorted(rows, key=lambda row: (row.paper, row.check))

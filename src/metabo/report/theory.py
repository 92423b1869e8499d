"""The verdicts on the papers' theory behind the artefacts of the page."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from metabo.papers.engine.theory import tables
from metabo.records.checksums import checksums
from metabo.report.jobs import Job


def verdicts(made: Mapping[str, Job], page: Path) -> list[dict[str, Any]]:
    """Return one row per statement (`metabo.papers.engine.theory.tables.verdicts`), with its `paper` and the `link` to
    its numbers.

    `made`: the jobs behind the artefacts; those of the stage `theory` name the results that are read. `page`: the file
    that links to them. Raises DataError if a result is missing or damaged.
    """
    rows = []
    for job in made.values():
        if job.stage == "theory":
            (path,) = job.record["outputs"]
            link = quote(Path(os.path.relpath(path, page.parent)).as_posix())
            checksums([path])
            table = tables.verdicts(tables.read([path]))
            rows += [row | {"paper": job.record["spec"]["paper"], "link": link} for row in table.to_dict("records")]
    return sorted(rows, key=lambda row: (row["paper"], row["check"]))

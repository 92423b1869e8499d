"""The artefacts of a run as the page shows them: figure, caption, files, provenance."""

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from metabo.errors import DataError
from metabo.plan.entries import CatalogueEntry
from metabo.report import jobs
from metabo.report.jobs import Job

FILES = ("notebook.html", "notebook.ipynb", "figure.png", "figure.pdf", "data.csv", "provenance.json")


@dataclass(frozen=True)
class ShownArtefact:
    """One artefact: what it is, links to its files, pixels of its figure, and the jobs behind it.

    `commit`, `code`, `settings`, `finished`: of the job that made it; `outdated`: inputs that were made anew since.
    """

    name: str
    id: str
    paper: str
    title: str
    caption: str
    benchmark: str
    claims: Sequence[str]
    links: Mapping[str, str]
    width: int
    height: int
    commit: str
    code: str
    settings: str
    finished: str
    jobs: int
    seconds: float
    outdated: Sequence[str]


def entry(
    sidecar: str, name: str, catalogue: Mapping[str, CatalogueEntry], made: Mapping[str, Job], page: Path
) -> ShownArtefact:
    """Return what the page shows of one artefact.

    `sidecar`: its provenance.json; `name`: of its rule; `made`: the jobs of all artefacts (`jobs.behind`); `page`: the
    file that links to it. Raises DataError if a file of the artefact is missing or its figure is not a PNG.
    """
    record, folder = made[sidecar].record, Path(sidecar).parent
    if absent := [file for file in FILES if not (folder / file).is_file()]:
        raise DataError(f"{folder}: no {', '.join(absent)}; make the artefact again (`snakemake --cores 2 -f {name}`)")
    spec, upstream = record.spec, jobs.behind([sidecar], made)
    listed = catalogue[spec.text("artefact")]
    width, height = png_size(folder / "figure.png")
    place = quote(Path(os.path.relpath(folder, page.parent)).as_posix())
    return ShownArtefact(
        name=name,
        id=spec.text("artefact"),
        paper=listed.paper,
        title=spec.text("title"),
        caption=spec.text("caption"),
        benchmark=spec.text("benchmark") if spec.maybe("benchmark") else "",
        claims=listed.claims,
        links={file: f"{place}/{file}" for file in FILES},
        width=width,
        height=height,
        commit=record.commit,
        code=record.code[:10],
        settings=record.settings[:10],
        finished=record.finished,
        jobs=len(upstream),
        seconds=sum(job.seconds for job in upstream.values()),
        outdated=jobs.outdated(record, made),
    )


def png_size(path: Path) -> tuple[int, int]:
    """Return (width, height) in pixels, from the file's first bytes, so that the page keeps its place while loading."""
    with path.open("rb") as stream:
        head = stream.read(24)
    if len(head) < 24 or head[:8] != b"\x89PNG\r\n\x1a\n":
        raise DataError(f"{path}: not a PNG; make the artefact again")
    return struct.unpack(">II", head[16:24])

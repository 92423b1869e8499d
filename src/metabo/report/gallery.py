"""The artefacts of a run as the page shows them: figure, caption, files, provenance."""

import os
import struct
from pathlib import Path
from typing import Any
from urllib.parse import quote

from metabo.errors import DataError
from metabo.report import jobs
from metabo.report.jobs import Job

FILES = ("notebook.html", "notebook.ipynb", "figure.png", "figure.pdf", "data.csv", "provenance.json")


def entry(sidecar: str, name: str, catalogue: dict[str, Any], made: dict[str, Job], page: Path) -> dict[str, Any]:
    """Return what the page shows of one artefact.

    `sidecar`: its provenance.json; `name`: of its rule; `made`: the jobs of all artefacts (`jobs.behind`); `page`: the
    file that links to it. Raises DataError if a file of the artefact is missing or its figure is no PNG.
    """
    record, folder = made[sidecar].record, Path(sidecar).parent
    if absent := [file for file in FILES if not (folder / file).is_file()]:
        raise DataError(f"{folder}: no {', '.join(absent)}; make the artefact again (`snakemake --cores 2 -f {name}`)")
    spec, upstream = record["spec"], jobs.behind([sidecar], made)
    width, height = png_size(folder / "figure.png")
    place = quote(Path(os.path.relpath(folder, page.parent)).as_posix())
    return {
        "name": name,
        "id": spec["artefact"],
        "paper": catalogue[spec["artefact"]]["paper"],
        "title": spec["title"],
        "caption": spec["caption"],
        "benchmark": spec.get("benchmark", ""),
        "claims": catalogue[spec["artefact"]].get("claims", []),
        "links": {file: f"{place}/{file}" for file in FILES},
        "width": width,
        "height": height,
        "commit": (record["git"]["commit"] or "unknown")[:10] + (" with changes" if record["git"]["dirty"] else ""),
        "code": record["code_sha256"][:10],
        "settings": record["spec_sha256"][:10],
        "finished": record["finished"],
        "jobs": len(upstream),
        "seconds": sum(job.seconds for job in upstream.values()),
        "outdated": jobs.outdated(record, made),
    }


def png_size(path: Path) -> tuple[int, int]:
    """Return (width, height) in pixels, from the file's first bytes, so that the page keeps its place while loading."""
    with path.open("rb") as stream:
        head = stream.read(24)
    if len(head) < 24 or head[:8] != b"\x89PNG\r\n\x1a\n":
        raise DataError(f"{path}: not a PNG; make the artefact again")
    return struct.unpack(">II", head[16:24])

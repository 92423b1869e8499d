"""Where a figure or table comes from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from metabo.plan import chain
from metabo.plan.artefact import Artefact
from metabo.plan.chain import Chain
from metabo.plan.schema import required_mapping
from metabo.plan.typed import written
from metabo.plan.yaml_files import read_yaml
from metabo.records.fields import Fields
from metabo.report.explain import layout, times
from metabo.report.listing import committed, kind, origin

PAPERS = Path(__file__).parents[1] / "papers.yaml"


def lines(artefact: Artefact, planned: Chain, overlays: Iterable[Path], everything: Sequence[Artefact]) -> list[str]:
    """Return the entry, the inputs, the claims, the command, and the jobs with settings and times."""
    entry = artefact.entry
    others = dict.fromkeys(one.name for one in everything if one.id == artefact.id and one.name != artefact.name)
    job = planned.artefact(artefact)
    return [
        f"{artefact.name}: {entry.title}",
        *layout.paragraph(entry.caption),
        "",
        *layout.field("paper", about(entry.paper)),
        *layout.field("benchmark", _benchmark(artefact.benchmark, planned)),
        *(layout.field("also on", ", ".join(f"{_on(name, everything)} ({name})" for name in others)) if others else []),
        *layout.field("template", f"{artefact.template}; its entry is '{artefact.id}' in workflow/catalogue.yaml"),
        *layout.listed("inputs", _inputs(artefact)),
        *layout.field("parameters", layout.settings(written(entry.parameters))),
        *layout.field("decides", ", ".join(entry.claims) + " (`metabo explain` with one of them)" * bool(entry.claims)),
        *layout.field("files", f"{Path(job.result).parent}/: figure.png, figure.pdf, data.csv, notebook.ipynb"),
        *layout.field("make", layout.command(overlays, artefact.name)),
        *times.lines(chain.behind([job])),
    ]


def about(paper: str) -> str:
    """Return a paper's name here, its title and where it appeared."""
    known = required_mapping(read_yaml(PAPERS), PAPERS.name)
    if paper not in known:
        return paper
    entry = Fields(known, PAPERS.name, "correct it").object(paper)
    return f"{paper}: {entry.text('title')}, {entry.text('where')}"


def _benchmark(name: str, planned: Chain) -> str:
    files = committed(name, planned.config) if name else ()
    return f"{name} ({kind(name, files)}: {origin(name, files=files)})" if name else ""


def _on(name: str, everything: Iterable[Artefact]) -> str:
    return next(one.benchmark for one in everything if one.name == name)


def _inputs(artefact: Artefact) -> list[str]:
    """Return the names of the tables that the notebook reads, kind by kind."""
    inputs = artefact.inputs
    where = f" on {inputs.split}" if inputs.split else f" on {', '.join(artefact.splits)}" if inputs.splits else ""
    per_split = ("trajectories", "evaluations", "online")
    found = [f"{name}{where if name in per_split else ''}: {', '.join(names)}" for name, names in inputs.kinds.items()]
    return found or ["the benchmark alone"] * bool(artefact.benchmark)

"""Where a run of a method comes from."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from metabo.errors import ConfigError, nearest
from metabo.plan import chain, registry, splits
from metabo.plan.artefact import Artefact
from metabo.plan.chain import Chain, PlannedJob
from metabo.plan.runs import ACQUISITIONS, RunId, resolved
from metabo.plan.typed import written
from metabo.report.explain import layout, times


def lines(
    name: str, planned: Chain, overlays: Iterable[Path], enabled: Sequence[Artefact], everything: Sequence[Artefact]
) -> list[str]:
    """Return the method, the split, the figures that show the run, and the jobs with settings and times.

    The run is told of the figures that the configuration makes, or else of all. Raises ConfigError for an unknown
    acquisition or split, and for a run that no figure shows.
    """
    wanted = resolved(RunId.parse(name))
    if wanted.split:
        splits.entry(wanted.split)
    showing = _showing(wanted, enabled, planned) or _showing(wanted, everything, planned)
    if not showing:
        raise ConfigError(_unshown(name, wanted, everything))
    entry, made = registry.method(wanted.method), registry.made_of(wanted.method)
    tables = {job.result: job for jobs in showing.values() for job in jobs}
    parts = {"pretrain": made.pretrain}
    parts |= {"policy": made.policy} if entry.policy is not None else {}
    parts |= {"online": made.online} if entry.online is not None else {}
    return [
        f"{name}: {entry.label} with {ACQUISITIONS[wanted.acquisition]}",
        "",
        *layout.field("method", f"'{wanted.method}' in src/metabo/plan/methods.yaml; metabo.{entry.method}"),
        *layout.listed("code", [f"{part}: metabo.{module}" for part, module in parts.items() if module]),
        *layout.field("split", _split(wanted.split) if wanted.split else "every one that a figure shows it on"),
        *layout.field("shown in", ", ".join(showing)),
        *layout.listed("make", [layout.command(overlays, path) for path in tables]),
        *_recorded(tables.values()),
        *times.lines(chain.behind(tables.values())),
    ]


def _recorded(jobs: Iterable[PlannedJob]) -> list[str]:
    """Return where the run is recorded, if it is."""
    from metabo.report import recorded  # it imports pandas

    found = [line for job in jobs for line in recorded.of_run(job.record, job.result)]
    return layout.listed("recorded", found) if found else []


def _split(name: str) -> str:
    given = layout.settings(written(splits.entry(name)))
    return f"{name} ({given or 'as the loader of the benchmark makes it'}); src/metabo/plan/splits.yaml"


def _showing(wanted: RunId, artefacts: Iterable[Artefact], planned: Chain) -> dict[str, list[PlannedJob]]:
    """Return the jobs whose tables of the run an artefact reads, by artefact, where there are some."""
    found = {}
    for artefact in artefacts:
        on = artefact.benchmark
        jobs = [planned.trajectories(on, one) for one in artefact.trajectories if _is(wanted, one)]
        jobs += [planned.evaluation(on, one) for one in artefact.evaluations if _is(wanted, resolved(one))]
        jobs += [planned.online(on, one) for one in artefact.online if _is(wanted, resolved(one))]
        found |= {artefact.name: jobs} if jobs else {}
    return found


def _is(wanted: RunId, run: RunId) -> bool:
    return wanted == (run if wanted.split else run.on(""))


def _unshown(name: str, wanted: RunId, everything: Iterable[Artefact]) -> str:
    shown = {str(run) for artefact in everything for run in artefact.trajectories if run.method == wanted.method}
    listed = f" Shown are {', '.join(sorted(shown))}" if shown else ""
    return f"'{name}': no figure or table shows this run.{nearest(str(wanted), shown)}{listed}"

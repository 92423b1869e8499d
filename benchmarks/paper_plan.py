"""Estimate what the paper-scale plan costs, per rule, from the step times of a run at laptop scale.

    python benchmarks/paper_plan.py results/laptop    # writes its table into docs/paper-scale.md

Every job of `snakemake -n --configfile config/paper.yaml` is compared with the job of the same method that ran at
laptop scale: hours = its measured seconds (compilation taken off) x work at paper scale / work at laptop scale. Work is
what a job's loops count; the sizes of the papers' archives are those that the papers state.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from metabo.plan import catalogue, config, registry, splits
from metabo.plan.artefact import Artefact
from metabo.plan.sections.config import Config
from metabo.plan.trainings import prior_of, trainings
from metabo.plan.work import NumericJob, loops, network
from metabo.records.files import write_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "paper-scale.md"
BEGIN, END = "<!-- paper: written by benchmarks/paper_plan.py -->", "<!-- paper: end -->"
FOLDERS = {"pretrain": "priors", "evaluate": "evaluation", "run_bo": "bo", "run_online": "online"}
MEASURED_ON = {"pd1": "pd1_mini", "hpob": "hpob_mini", "super": "super_mini", "cmbo_hpob": "cmbo_mini"}
GPU_CORES = 20  # an assumption: cores whose work one GPU does


def jobs(settings: Config) -> set[NumericJob]:
    """List the jobs that compute: what the enabled artefacts read."""
    return behind(catalogue.enabled(settings, catalogue.artefacts(settings, catalogue.load(ROOT))), settings)


def behind(artefacts: Iterable[Artefact], settings: Config) -> set[NumericJob]:
    """List the jobs that compute what some artefacts read."""
    found = set()
    known = cache(lambda benchmark, split: trainings(settings, benchmark, split))

    def prior(benchmark: str, split: str, method: str) -> NumericJob:
        place = prior_of(settings, benchmark, split, method, lambda _, *place: known(*place))
        return NumericJob("pretrain", benchmark, *place, "")

    for artefact in artefacts:
        b = artefact.benchmark
        for method, acquisition, split in artefact.trajectories:
            found |= {NumericJob("run_bo", b, split, method, acquisition), trained := prior(b, split, method)}
            if fits := registry.method(method).fits:
                found.add(prior(b, trained.split, fits))
        for method, _, split in artefact.evaluations:
            found |= {NumericJob("evaluate", b, split, method, ""), prior(b, split, method)}
        for method, _, split in artefact.online:
            found |= {NumericJob("run_online", b, split, method, ""), prior(b, split, method)}
    return found


def work(job: NumericJob, settings: Config, benchmark: str, split: str) -> float:
    """Count the innermost steps of a job as if it were on another benchmark and split."""
    return loops(job._replace(benchmark=benchmark, split=split), settings).steps


def file(job: NumericJob) -> str:
    """Return the record that a job writes, below results/{scale}."""
    name = f"{job.method}-{job.acquisition}" if job.rule == "run_bo" else job.method
    return f"{FOLDERS[job.rule]}/{job.benchmark}/{job.split}/{name}.json"


def measured(job: NumericJob, folder: Path, laptop: Config) -> tuple[float, float] | None:
    """Return (seconds, work) of the most alike job at laptop scale: of the same method, or the one that it is a variant
    of, on the same or the nearest split."""
    benchmark = MEASURED_ON.get(job.benchmark, job.benchmark)
    base = splits.base(job.split)
    for split in dict.fromkeys([job.split, f"{base}_sweep", "held_out", "others"]):
        for method in dict.fromkeys([job.method, registry.method(job.method).variant_of or job.method]):
            twin = job._replace(benchmark=benchmark, split=split, method=method)
            path = folder / file(twin)
            if path.is_file():
                record = json.loads(path.read_text())
                seconds = max(record["wall_s"] - record["compile_s"], 0.1)
                return seconds, loops(twin, laptop).steps
    return None


def estimate(folder: Path) -> Iterator[tuple[NumericJob, float | None]]:
    """Yield every job of the paper-scale plan with its estimated hours on one core of the machine that was measured."""
    laptop, paper = config.load(ROOT), config.load(ROOT, (ROOT / "config" / "paper.yaml",))
    for job in sorted(jobs(paper)):
        # At laptop scale a run re-trains for a few steps at each iteration, so its seconds are not those of the steps.
        source = job._replace(rule="pretrain", acquisition="") if network(job.method) else job
        twin = measured(source, folder, laptop)
        yield job, twin and twin[0] / 3600 * work(job, paper, job.benchmark, job.split) / twin[1]


def main() -> None:
    hours: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)
    for job, value in estimate(Path(sys.argv[1])):
        hours[job.rule, job.benchmark, registry.method(job.method).variant_of or job.method].append(value)
    write_text(PAGE, filled(PAGE.read_text(), table(hours)))


def table(hours: Mapping[tuple[str, str, str], Sequence[float | None]]) -> list[str]:
    """Return the table in Markdown. `hours`: of each job, by rule, benchmark and method; None: not measured."""
    lines = ["| rule | benchmark | method | jobs | core hours | GPU hours |", "|---|---|---|---:|---:|---:|"]
    total: dict[str, float] = defaultdict(float)
    for (rule, benchmark, method), values in sorted(hours.items()):
        known = [value for value in values if value is not None]
        total[rule] += sum(known)
        shown = [f"{sum(known) / n:,.1f}" if len(known) == len(values) else "not measured" for n in (1, GPU_CORES)]
        lines.append(f"| {rule} | {benchmark} | {method} | {len(values)} | {' | '.join(shown)} |")
    for rule, value in total.items():
        lines.append(f"| **{rule}** | all | all | | **{value:,.0f}** | **{value / GPU_CORES:,.0f}** |")
    return lines


def filled(text: str, lines: Iterable[str], begin: str = BEGIN, end: str = END) -> str:
    """Return the text of the page with lines between two marks."""
    before, _, rest = text.partition(begin)
    return before + "\n".join([begin, "", *lines, "", end]) + rest.partition(end)[2]


if __name__ == "__main__":
    main()

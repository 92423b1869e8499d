"""The scale `published`: its steps in their order, what they should cost, and what they have cost.

    python benchmarks/published.py steps                     # the commands, and the core hours that are left of each
    python benchmarks/published.py run --cores 2             # runs them (--until STEP: up to it; --only STEP: it alone)
    python benchmarks/published.py used evidence/published   # predicted and used by method; of results/published too

    python benchmarks/published.py measure                   # published_steps.csv: what a step costs, in half an hour
    python benchmarks/published.py plan --again              # published_plan.csv: the prediction for each job
    python benchmarks/published.py document [RESULTS]        # the section of docs/paper-scale.md, with what was used

`plan` comes before the first run. After it, only `--again` makes it again: `used` compares with what was said before.
"""

import csv
import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import published_costs
from paper_plan import PAGE, ROOT, behind, file, filled
from published_costs import MEASURED, OTHERS, MeasuredStep, measure, predicted, settings, study
from published_left import Planned, PublishedStep, left, numeric, unjudged, unkept

from metabo.evidence.manifest import NAME
from metabo.plan import catalogue, registry, typical
from metabo.plan.artefact import Artefact
from metabo.plan.sections.config import Config
from metabo.plan.yaml_files import read_yaml
from metabo.records.checksums import read_sidecar
from metabo.records.files import write_text
from metabo.records.spent import core_seconds

STEPS = ROOT / "workflow" / "published.yaml"
PLAN = Path(__file__).with_name("published_plan.csv")
RECORDED = ROOT / "evidence" / "published"
BEGIN, END = "<!-- published: written by benchmarks/published.py -->", "<!-- published: end -->"
UNKEPT = "<!-- not kept: written by benchmarks/published.py -->", "<!-- not kept: end -->"
OFF = 1.5
"""The factor between predicted and used beyond which a row is marked."""


def steps() -> list[PublishedStep]:
    """Read the steps."""
    return [PublishedStep(name, one["decides"], one["artefacts"]) for name, one in read_yaml(STEPS).items()]


def command(chosen: Sequence[PublishedStep], cores: int) -> list[str]:
    """Return the command for some steps: what is missing of them, the verdicts and the report."""
    wanted = [artefact for one in chosen for artefact in one.artefacts]
    section = f"run={json.dumps({'artefacts': wanted}, separators=(',', ':'))}"
    return ["snakemake", "--cores", str(cores), "--configfile", "config/published.yaml", "--config", section]


def tables_first(step: PublishedStep, cores: int) -> list[str]:
    """Return the command for the tables of a step."""
    known = {one.name: one for one in catalogue.artefacts(settings(), catalogue.load(ROOT))}
    on = dict.fromkeys(known[name].benchmark for name in step.artefacts)
    files = [f"results/published/data/{benchmark}.npz" for benchmark in on if benchmark]
    return ["snakemake", "--cores", str(cores), "--configfile", "config/published.yaml", "--", *files]


def restored() -> list[str]:
    """Return the arguments of `metabo` that bring recorded results back."""
    return ["evidence", "restore", "results/published", "--configfile", "config/published.yaml"]


def plan(given: Config) -> Iterator[Planned]:
    """Yield every job of the scale, under the first step that needs it."""
    known = {one.name: one for one in catalogue.artefacts(given, catalogue.load(ROOT))}
    seen = set[str]()
    for step in steps():
        wanted = [known[name] for name in step.artefacts]
        for job in (*_numeric(step.name, wanted, given), *_others(step.name, wanted, given)):
            if job.record not in seen:
                seen.add(job.record)
                yield job


def _numeric(step: str, wanted: Sequence[Artefact], given: Config) -> Iterator[Planned]:
    for job in sorted(behind(wanted, given)):
        yield Planned(step, job.rule, job.benchmark, job.method, file(job), *predicted(job, given))


def _others(step: str, wanted: Sequence[Artefact], given: Config) -> Iterator[Planned]:
    for one in wanted:
        paper, kinds = one.entry.paper, one.inputs
        for name in kinds.studies or ():
            yield Planned(step, "run_study", "", name, f"studies/{name}.json", study(name, given), OTHERS)
        for name in kinds.theory or ():
            seconds = typical.of_rule("check_theory").seconds
            yield Planned(step, "check_theory", "", paper, f"theory/{paper}/{name}.meta.json", seconds, OTHERS)
        seconds = typical.of_rule(one.name).seconds
        yield Planned(step, "notebook", one.benchmark, paper, f"{one.place}/provenance.json", seconds, 0)


def read_plan() -> list[Planned]:
    """Read what was predicted."""
    with PLAN.open(newline="") as stream:
        rows = [[row[key] for key in Planned._fields] for row in csv.DictReader(stream)]
    return [Planned(*row[:5], *map(float, row[5:])) for row in rows]


class MethodHours(NamedTuple):
    """What a method costs on a benchmark: jobs, predicted core hours and megabytes; of the jobs that are done, their
    number, and their predicted and used core hours."""

    jobs: int
    hours: float
    megabytes: float
    done: int
    expected: float
    used: float

    @property
    def ratio(self) -> float:
        """Used over predicted."""
        return self.used / self.expected if self.expected else float("nan")


def totals(jobs: Iterable[Planned], results: Path | None) -> dict[tuple[str, str], MethodHours]:
    """Add up by benchmark and method, or rule where a job has none; `results`: of the run, to see what is done."""
    groups: defaultdict[tuple[str, str], list[Planned]] = defaultdict(list)
    for job in jobs:
        groups[job.benchmark or "none", _name(job)].append(job)
    return {key: _total(group, results) for key, group in sorted(groups.items())}


def _name(job: Planned) -> str:
    if job.rule in ("notebook", "check_theory", "run_study"):
        return {"notebook": "figures", "check_theory": "theory"}.get(job.rule, f"study {job.method}")
    return registry.method(job.method).variant_of or job.method


def _total(jobs: Sequence[Planned], results: Path | None) -> MethodHours:
    done = [job for job in jobs if results and (results / job.record).is_file()]
    used = sum(core_seconds(read_sidecar(Path(results or "", job.record))) for job in done)
    hours, expected = (sum(job.seconds for job in some) / 3600 for some in (jobs, done))
    return MethodHours(len(jobs), hours, sum(job.size for job in jobs) / 1e6, len(done), expected, used / 3600)


def table(results: Path | None) -> list[str]:
    """Return the table of hours in Markdown; with `results`, what was used of them too."""
    more = " done | predicted for these | used | used / predicted |" if results else ""
    lines = [
        f"| benchmark | method | jobs | core hours | MB |{more}",
        f"|---|---|---:|---:|---:|{'---:|' * 4 if results else ''}",
    ]
    found = totals(read_plan(), results)
    whole = MethodHours(*(sum(column) for column in zip(*found.values(), strict=True)))
    return lines + [_line(*key, row, results) for key, row in found.items()] + [_line("**all**", "", whole, results)]


def _line(benchmark: str, method: str, row: MethodHours, results: Path | None) -> str:
    line = f"| {benchmark} | {method} | {row.jobs} | {row.hours:,.2f} | {row.megabytes:,.1f} |"
    if not results:
        return line
    if not row.done:
        return f"{line} 0 | | | |"
    mark = "" if 1 / OFF <= row.ratio <= OFF else " (!)"
    return f"{line} {row.done} | {row.expected:,.2f} | {row.used:,.2f} | {row.ratio:.2f}{mark} |"


def by_step(results: Path | None) -> list[str]:
    """Return the steps in Markdown, with what each should cost; with `results`, what is left of it too, and which
    claims are not judged yet that need it. Figures do not count: they are made again from what is kept."""
    jobs, waiting = read_plan(), unjudged(steps(), settings()) if results else {}
    more = " done | hours left | claims that wait for it |" if results else ""
    lines = [
        f"| step | it decides | jobs | core hours | MB |{more}",
        f"|---|---|---:|---:|---:|{'---:|---:|---|' * bool(more)}",
    ]
    for step in steps():
        own = numeric(step, jobs)
        hours, size = sum(job.seconds for job in own) / 3600, sum(job.size for job in own) / 1e6
        line = f"| {step.name} | {step.decides} | {len(own)} | {hours:,.1f} | {size:,.1f} |"
        if results:
            rest = left(own, results)
            line += f" {len(own) - len(rest)} | {sum(job.seconds for job in rest) / 3600:,.1f} |"
            line += f" {' '.join(waiting[step.name])} |"
        lines.append(line)
    return lines


def run(until: str, only: str | None, cores: int) -> int:
    """Run the steps up to one in their order, or one alone; return the worst exit status. Later steps try again what
    failed. What is recorded of a step is not made again, unless it is damaged, which one line says: its tables are made
    first, since recorded results fit no others."""
    worst, known = 0, {one.name: one for one in steps()}
    names = [only] if only else list(known)[: list(known).index(until) + 1]
    for place, step in enumerate(known[name] for name in names):
        print(f"{step.name}: {step.decides}", flush=True)
        if (RECORDED / NAME).is_file():
            subprocess.run([sys.executable, "-m", *tables_first(step, cores)], cwd=ROOT)
            subprocess.run([Path(sys.executable).with_name("metabo"), *restored()], cwd=ROOT)
        making = command([known[name] for name in names[: place + 1]], cores)
        worst = max(worst, subprocess.run([sys.executable, "-m", *making], cwd=ROOT).returncode)
    return worst


def write(path: Path, fields: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV."""
    lines = [[f"{value:.6g}" if isinstance(value, float) else str(value) for value in row] for row in rows]
    write_text(path, "".join(",".join(line) + "\n" for line in (fields, *lines)))


def main() -> None:
    args = _parsed()
    if args.action == "run":
        raise SystemExit(run(args.until, args.only, args.cores))
    if args.action == "measure":
        subprocess.run([sys.executable, "-m", *published_costs.command()], cwd=ROOT, check=True)
        found = measure(ROOT / "results" / "laptop")
        write(
            MEASURED,
            ("rule", "benchmark", "split", "method", *MeasuredStep._fields),
            ((*key, *cost) for *key, cost in found),
        )
    elif args.action == "plan":
        begun = [folder for folder in (RECORDED, ROOT / "results" / "published") if folder.exists()]
        if PLAN.exists() and begun and not args.again:
            sys.exit(
                f"{PLAN.name} was made before the runs in {begun[0].relative_to(ROOT)}, which are compared with it; "
                "--again replaces it"
            )
        write(PLAN, Planned._fields, plan(settings()))
    elif args.action == "document":
        lines = [*by_step(args.results), "", *table(args.results)]
        text = filled(PAGE.read_text(), lines, BEGIN, END)
        write_text(PAGE, filled(text, unkept(read_plan(), args.results), *UNKEPT) if args.results else text)
    elif args.action == "steps":
        for step in steps():
            own = numeric(step, read_plan())
            rest = left(own, args.results) if args.results else own
            hours = sum(job.seconds for job in rest) / 3600
            print(f"# {step.name}, {len(rest)} of {len(own)} jobs and {hours:,.1f} core hours left: {step.decides}")
            print(f"python benchmarks/published.py run --only {step.name} --cores {args.cores}")
    else:
        print("\n".join(table(args.results)))


def _parsed() -> Namespace:
    names = [one.name for one in steps()]
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "action",
        choices=("steps", "run", "used", "measure", "plan", "document"),
        help="steps: print the commands of the steps, and what is left; run: run them; used: print what methods should "
        "cost and did; measure and plan: write the prediction; document: write the tables into docs/paper-scale.md",
    )
    parser.add_argument(
        "results",
        nargs="?",
        type=Path,
        help="what is done is looked up there, e.g. in results/published or evidence/published",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--until", choices=names, help="run: the last step (default: all)")
    which.add_argument("--only", choices=names, help="run: this step alone")
    parser.add_argument("--cores", type=int, default=2, help="run: cores of this machine (2)")
    parser.add_argument("--again", action="store_true", help="plan: replace the prediction that runs are compared with")
    args = parser.parse_args()
    if args.again and args.action != "plan":
        parser.error("--again belongs to `plan`")
    if (args.until or args.only) and args.action != "run":
        parser.error("--until and --only belong to `run`")
    if args.results and not any((args.results / kind).is_dir() for kind in ("bo", "priors", "studies")):
        parser.error(f"{args.results}: has no results of a run; name results/published or evidence/published")
    if args.action in ("steps", "document") and args.results is None and RECORDED.is_dir():
        args.results = RECORDED
    args.until = args.until or names[-1]
    return args


if __name__ == "__main__":
    main()

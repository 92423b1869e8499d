"""What a job of the scale `published` should cost, from the steps that were measured on LCBench.

What is measured are the jobs of WANTED with the sizes of benchmarks/measure.yaml, most of them on one fold of LCBench.
A prediction is the seconds until a job computes, and the seconds of a step times its steps (`metabo.plan.work`). What
was not measured has its typical time at the default scale (`metabo.plan.typical`) times the ratio of the steps; a study
has that time times the ratio of its counts.
"""

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import NamedTuple

from paper_plan import FOLDERS, ROOT

from metabo.evidence.manifest import LARGEST, LARGEST_UNUSED
from metabo.plan import config, registry, splits, typical
from metabo.plan.runs import RunId
from metabo.plan.sections.config import Config
from metabo.plan.typed import plain
from metabo.plan.work import NumericJob, loops, shape_of
from metabo.records.checksums import read_sidecar
from metabo.records.files import canonical

MEASURED = Path(__file__).with_name("published_steps.csv")
SIZES = Path(__file__).with_name("measure.yaml")
PLACES = (("lcbench", "first"), ("mphd_l", "held_out"), ("cmbo_mini", "clustered"))
"""Where a method was measured, if not on the benchmark and split of a job: the first that has it."""
START = 1.1
"""Seconds of a job before it compiles: what one that trains nothing takes."""
ROW, OTHERS = 30, 10_000
"""Bytes of a row of a trajectory, as in tables of 6,000 rows on TaskSet, and of a record with what is short."""
RULES = {folder: rule for rule, folder in FOLDERS.items()}
WANTED = {
    "priors/lcbench/first": "h_nll h_ekl fsbo ablr emp_gp mimo rfgp maf stbo stboh rand portfolio h_nll_linear_128",
    **{f"priors/lcbench/others_{part}": "h_nll" for part in ("points_4", "points_20", "tasks_3", "tasks_8")},
    "evaluation/lcbench/first": "h_nll",
    "bo/lcbench/first": "h_nll-pi h_ekl-pi fsbo-pi ablr-pi emp_gp-pi stbo-pi stboh-ucb18 rand-uniform mimo-ucb18 "
    "rfgp-ucb18 maf-learned portfolio-sequence mean_z-sequence",
    "bo/mphd_l/held_out": "gp_truth-pi hgp_hand-pi mphd-pi mphd_non_nn-pi",
    "bo/cmbo_mini/clustered": "cm_wss_wss-ucb3 cm_wss_bary-ucb3 cm_jef_jef-ucb3 gp32-ucb3 rgpe-ucb3 rm_gp_ucb-ucb3",
}
"""The runs that are measured, by their folder below results/laptop."""


class MeasuredStep(NamedTuple):
    """What a job has cost: seconds until it computed, seconds of a step, and bytes of a prior."""

    fixed: float
    pace: float
    size: float


def settings(*overlays: Path) -> Config:
    """Return the settings of the scale, with overlays."""
    return config.load(ROOT, (ROOT / "config" / "published.yaml", *overlays))


@cache
def default() -> Config:
    """Return the settings of the default scale."""
    return config.load(ROOT)


def command() -> list[str]:
    """Return the command that makes what is measured, one job at a time."""
    kinds = {"priors": "npz"}
    files = [
        f"results/laptop/{place}/{run}.{kinds.get(place.partition('/')[0], 'parquet')}"
        for place, runs in WANTED.items()
        for run in runs.split()
    ]
    overlays = ["config/published.yaml", SIZES.relative_to(ROOT).as_posix()]
    return ["snakemake", "--cores", "1", "--configfile", *overlays, "--", *files]


def measure(folder: Path) -> Iterator[tuple[str, str, str, str, MeasuredStep]]:
    """Yield rule, benchmark, split and method of each job that ran with the sizes of SIZES, and its cost."""
    given = settings(SIZES)
    for path in sorted(path for name in RULES for path in folder.glob(f"{name}/*/*/*.json")):
        run, record = RunId.parse(path.stem), read_sidecar(path)
        job = NumericJob(RULES[path.parts[-4]], *path.parts[-3:-1], run.method, run.acquisition)
        if canonical(record["spec"]) != canonical(plain(_spec(job, given))):
            continue
        share = record["cpu_s"] / max(record["wall_s"], record["cpu_s"])  # compilation is timed by the wall
        fixed = min(START + share * (record["compile_s"] or 0.0), record["cpu_s"])
        size = sum((path.parent / Path(name).name).stat().st_size for name in record["outputs"])
        pace = (record["cpu_s"] - fixed) / loops(job, given).steps
        yield *job[:4], MeasuredStep(fixed, pace, size / priors(job, given))


def _spec(job: NumericJob, given: Config) -> object:
    """Return what a job reads."""
    place = (given, job.benchmark, job.split, job.method)
    if job.rule == "run_bo":
        return config.bo_spec(*place, job.acquisition)
    specs = {"pretrain": config.pretrain_spec, "evaluate": config.evaluate_spec, "run_online": config.online_spec}
    return specs[job.rule](*place)


def priors(job: NumericJob, given: Config) -> int:
    """Return the number of priors that a job trains or reads."""
    seeds = config.pretrain_spec(given, job.benchmark, splits.prior_split(job.split), job.method).seeds
    return _of(shape_of(job.benchmark, given).folds, job) * seeds


def rows(job: NumericJob, given: Config) -> int:
    """Return the number of rows of a table of trajectories."""
    spec = config.bo_spec(given, job.benchmark, job.split, job.method, job.acquisition)
    seeds = config.pretrain_spec(given, job.benchmark, splits.prior_split(job.split), job.method).seeds
    return _of(shape_of(job.benchmark, given).test, job) * seeds * spec.seeds * spec.iterations


def _of(counts: Mapping[str, int], job: NumericJob) -> int:
    return counts.get(splits.base(job.split), max(counts.values()))


@cache
def measured() -> Mapping[tuple[str, str, str, str], MeasuredStep]:
    """Read what was measured, by rule, benchmark, split and method."""
    with MEASURED.open(newline="") as stream:
        _, *rows = csv.reader(stream)
    return {(rule, on, split, method): MeasuredStep(*map(float, cost)) for rule, on, split, method, *cost in rows}


def alike(job: NumericJob) -> MeasuredStep | None:
    """Return what was measured of the most alike job of the same kind of loop: of the method, the one that it is a
    variant of, H-NLL, or one with the same parts; where it is run, on LCBench's split of that name, or in PLACES."""
    entry, kind = registry.method(job.method), loops(job, default()).kind
    parts = [name for *_, name in measured() if registry.method(name).method == entry.method]
    names = [
        job.method,
        entry.variant_of,
        *(["h_nll"] if entry.method.startswith("methods.pretrained.") else []),
        *parts,
    ]
    split = splits.prior_split(job.split)
    for benchmark, place in ((job.benchmark, split), ("lcbench", split), *PLACES):
        for name in dict.fromkeys(filter(None, names)):
            found = measured().get((job.rule, benchmark, place, name))
            if found and loops(NumericJob(job.rule, benchmark, place, name, ""), default()).kind == kind:
                return found
    return None


def wider(job: NumericJob, given: Config) -> tuple[float, float]:
    """Return how much more a step and a prior cost than was measured, where layers are 128 wide in place of 32."""
    spec = config.pretrain_spec(given, job.benchmark, splits.prior_split(job.split), job.method)
    narrow, wide = (measured()["pretrain", *PLACES[0], name] for name in ("h_nll", "h_nll_linear_128"))
    if 128 not in (spec.model.get("features") or ()) or job.method == "h_nll_linear_128":
        return 1.0, 1.0
    trains = job.rule == "pretrain" or "refit_steps" in (registry.method(job.method).policy or {})
    return wide.pace / narrow.pace if trains else 1.0, wide.size / narrow.size


def predicted(job: NumericJob, given: Config) -> tuple[float, float]:
    """Return the seconds of one core that a numeric job should take, and the bytes that are kept of it."""
    found, (dearer, larger) = alike(job), wider(job, given)
    if found is None or not found.pace:  # what was measured ended before it could tell
        ratio = loops(job, given).steps / loops(job, default()).steps
        seconds = START + max(typical.of_numeric(job, default()).seconds - START, 0.0) * ratio
    else:
        seconds = found.fixed + dearer * found.pace * loops(job, given).steps
    if job.rule == "run_bo":
        return seconds, OTHERS + ROW * rows(job, given)
    size = larger * found.size * priors(job, given) if found else 0.0
    unused = registry.made_of(job.method).uses_past
    return seconds, OTHERS + size * (size <= (LARGEST_UNUSED if unused else LARGEST))


COUNTS = ("draws", "seeds", "repeats", "runs", "steps", "adam_steps", "samples", "subsamples", "train", "functions")
"""Settings of studies that their time is proportional to; of a list its sum."""


def study(name: str, given: Config) -> float:
    """Return the seconds that a study should take."""
    sizes, before = (one.sizes["studies"][name] for one in (given, default()))
    ratios = [_total(sizes[key]) / _total(before[key]) for key in COUNTS if key in sizes]
    return typical.of_rule("run_study", name).seconds * prod(ratios)


def _total(value: object) -> float:
    if isinstance(value, Mapping):
        return sum(map(_total, value.values()))
    return float(sum(value)) if isinstance(value, list | tuple) else float(str(value))

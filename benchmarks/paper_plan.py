"""Estimate what the paper-scale plan costs, per rule, from the step times of a run at laptop scale.

    python benchmarks/paper_plan.py results/laptop > docs/paper-scale.md

Every job of `snakemake -n --configfile config/paper.yaml` is compared with the job of the same method that ran at
laptop scale: hours = its measured seconds (compilation taken off) x work at paper scale / work at laptop scale. Work is
what a job's loops count; the sizes of the papers' archives are those that the papers state.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from metabo.data.initial import fifth
from metabo.plan import catalogue, config, registry, splits
from metabo.plan.sections.config import Config
from metabo.plan.typed import plain

ROOT = Path(__file__).resolve().parents[1]


class Shape(NamedTuple):
    """The numbers of a benchmark that decide the cost: folds, training tasks per fold, test tasks, points per task."""

    folds: dict[str, int]
    train: dict[str, int]
    test: dict[str, int]
    points: int


SHAPES = {
    "pd1_mini": Shape({"held_out": 7, "others": 9}, {"held_out": 20, "others": 23}, {"held_out": 24, "others": 9}, 880),
    "hpob_mini": Shape({"held_out": 6}, {"held_out": 22}, {"held_out": 32}, 1060),
    # hyperbo §7.1, D.5: 24 tasks of about 2,000 usable points; 23 are tested, 9 data sets
    "pd1": Shape({"held_out": 9, "others": 23}, {"held_out": 20, "others": 23}, {"held_out": 23, "others": 23}, 2000),
    # hyperbo §7.6: 16 spaces, 758 training tasks, 3.3 million evaluations, 86 test tasks
    "hpob": Shape({"held_out": 16}, {"held_out": 47}, {"held_out": 86}, 4300),
    "control": Shape({"held_out": 2}, {"held_out": 10}, {"held_out": 16}, 200),
    "cmbo_control": Shape({"held_out": 2}, {"held_out": 12}, {"held_out": 16}, 200),
    # pd1_mini with another filter
    "pd1_mini_nan": Shape({"held_out": 7}, {"held_out": 20}, {"held_out": 24}, 880),
    "super_mini": Shape({"held_out": 10}, {"held_out": 16}, {"held_out": 39}, 1060),
    # mphd §4.1, E.2: both of them, 19 and 4 tasks of pd1
    "super": Shape({"held_out": 17}, {"held_out": 46}, {"held_out": 90}, 4300),
}
"""Of benchmarks whose shape no setting changes."""
TASKS = {"cmbo_mini": (32, 330), "cmbo_hpob": (63, 4300)}
"""Tasks of a space and points of a task of cm-BO's benchmarks, whose folds are draws of 15 % of the tasks (§4.1)."""
MEASURED_ON = {"pd1": "pd1_mini", "hpob": "hpob_mini", "super": "super_mini", "cmbo_hpob": "cmbo_mini"}
NETWORKS = ("mimo", "rfgp")
EPOCHS, BATCH = 1000, 64  # hyperbo §7.2
GPU_CORES = 20  # an assumption: cores whose work one GPU does


def shape_of(benchmark: str, settings: Config) -> Shape:
    """Return the shape of a benchmark; that of a synthetic one is in the settings."""
    if benchmark in SHAPES:
        return SHAPES[benchmark]
    own = settings.sizes["benchmarks"][benchmark]
    if benchmark in TASKS:
        tasks, points = TASKS[benchmark]
        drawn, folds = round(0.15 * tasks), len(own["spaces"]) * own["folds"]
        each = {"held_out": tasks - drawn, "first": tasks - drawn}
        return Shape({"held_out": folds, "first": 1}, each, {"held_out": folds * drawn, "first": drawn}, points)
    tested = fifth(own["functions"])
    each = {"held_out": own["functions"] - tested}
    return Shape({"held_out": own["domains"]}, each, {"held_out": own["domains"] * tested}, own["points"])


class Job(NamedTuple):
    """One job of the plan: its rule, its benchmark, the method, and the file that it makes (below results/{scale})."""

    rule: str
    benchmark: str
    split: str
    method: str
    acquisition: str

    def file(self, benchmark: str, split: str) -> str:
        folder = {"pretrain": "priors", "evaluate": "evaluation", "run_bo": "bo", "run_online": "online"}[self.rule]
        name = f"{self.method}-{self.acquisition}" if self.rule == "run_bo" else self.method
        return f"{folder}/{benchmark}/{split}/{name}.json"


def jobs(settings: Config) -> set[Job]:
    """List the jobs that compute: what the enabled artefacts read."""
    found = set()
    known = cache(lambda benchmark, split: config.trainings(settings, benchmark, split))

    def prior(benchmark: str, split: str, method: str) -> Job:
        place = config.prior_of(settings, benchmark, split, method, lambda _, *place: known(*place))
        return Job("pretrain", benchmark, *place, "")

    for artefact in catalogue.enabled(settings, catalogue.artefacts(settings, catalogue.load(ROOT))):
        b = artefact.benchmark
        for method, acquisition, split in artefact.trajectories:
            found |= {Job("run_bo", b, split, method, acquisition), trained := prior(b, split, method)}
            if fits := registry.method(method).fits:
                found.add(prior(b, trained.split, fits))
        for method, _, split in artefact.evaluations:
            found |= {Job("evaluate", b, split, method, ""), prior(b, split, method)}
        for method, _, split in artefact.online:
            found |= {Job("run_online", b, split, method, ""), prior(b, split, method)}
    return found


def network(job: Job) -> bool:
    """Tell whether the job trains a network of all tasks, whose work is counted in mini-batches times its features."""
    method = job.method.removesuffix("_online")
    return (registry.method(method).variant_of or method) in NETWORKS


def work(job: Job, settings: Config, benchmark: str, split: str) -> float:
    """Count the innermost steps of a job, weighted by what one step is proportional to."""
    shape, base, entry = shape_of(benchmark, settings), splits.base(split), splits.entry(splits.prior_split(split))
    spec = config.pretrain_spec(settings, benchmark, splits.prior_split(split), job.method)
    train = min(shape.train[base], entry.tasks or shape.train[base])
    points = min(shape.points, entry.points or shape.points)
    pairs = shape.folds[base] * spec.seeds
    own = plain(spec.pretrain)
    epochs = EPOCHS * train * points / BATCH  # as mini-batches
    features = plain(spec.model).get("random_features", 1)
    if job.rule == "pretrain":
        if network(job):
            return pairs * (own["steps"] or epochs) * features
        if job.method == "maf":
            return (
                pairs
                * own["steps"]
                * own["episodes"]
                * own["horizon"]
                * (own["candidates"] or points)
                * sum(a * b for a, b in zip(spec.model["hidden"], spec.model["hidden"][1:], strict=False))
            )
        if own.get("objective", "").startswith("ekl"):
            matched = own["matched_points"] or 242
            return pairs * own["steps"] * matched**3
        return pairs * own.get("steps", 1) * train * min(points, own.get("batch", 50)) ** 2
    if job.rule == "evaluate":
        return pairs * (train * points**3 + shape.points**3)  # the test task is evaluated whole
    runs = shape.test[base] * spec.seeds
    if job.rule == "run_online":
        online = config.online_spec(settings, benchmark, split, job.method)
        own = plain(online.online)
        inner = [own[key] or epochs for key in ("retrain_steps", "refit_steps", "steps") if key in own] or [1]
        return runs * online.iterations * inner[0] * features
    bo = config.bo_spec(settings, benchmark, split, job.method, job.acquisition)
    runs, policy = runs * bo.seeds, plain(bo.policy)
    if network(job):
        return runs * bo.iterations * (policy["steps"] or epochs) * features
    limit = splits.entry(split).candidates
    searched = min(shape.points, limit) if isinstance(limit, int) else shape.points
    return runs * bo.iterations * policy.get("refit_steps", 1) * (1 if "refit_steps" in policy else searched)


def measured(job: Job, folder: Path, laptop: Config) -> tuple[float, float] | None:
    """Return (seconds, work) of the most alike job at laptop scale: of the same method, or the one that it is a variant
    of, on the same or the nearest split."""
    benchmark = MEASURED_ON.get(job.benchmark, job.benchmark)
    base = splits.base(job.split)
    for split in dict.fromkeys([job.split, f"{base}_sweep", "held_out", "others"]):
        for method in dict.fromkeys([job.method, registry.method(job.method).variant_of or job.method]):
            twin = job._replace(method=method)
            path = folder / twin.file(benchmark, split)
            if path.is_file():
                record = json.loads(path.read_text())
                seconds = max(record["wall_s"] - record["compile_s"], 0.1)
                return seconds, work(twin, laptop, benchmark, split)
    return None


def estimate(folder: Path) -> Iterator[tuple[Job, float | None]]:
    """Yield every job of the paper-scale plan with its estimated hours on one core of the machine that was measured."""
    laptop, paper = config.load(ROOT), config.load(ROOT, (ROOT / "config" / "paper.yaml",))
    for job in sorted(jobs(paper)):
        # At laptop scale a run re-trains for a few steps at each iteration, so its seconds are not those of the steps.
        source = job._replace(rule="pretrain", acquisition="") if network(job) else job
        twin = measured(source, folder, laptop)
        yield job, twin and twin[0] / 3600 * work(job, paper, job.benchmark, job.split) / twin[1]


def main() -> None:
    hours: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)
    for job, value in estimate(Path(sys.argv[1])):
        hours[job.rule, job.benchmark, registry.method(job.method).variant_of or job.method].append(value)
    print(Path(__file__).with_name("paper_plan.md").read_text())
    print("| rule | benchmark | method | jobs | core hours | GPU hours |\n|---|---|---|---:|---:|---:|")
    total: dict[str, float] = defaultdict(float)
    for (rule, benchmark, method), values in sorted(hours.items()):
        known = [value for value in values if value is not None]
        total[rule] += sum(known)
        shown = [f"{sum(known) / n:,.1f}" if len(known) == len(values) else "not measured" for n in (1, GPU_CORES)]
        print(f"| {rule} | {benchmark} | {method} | {len(values)} | {' | '.join(shown)} |")
    for rule, value in total.items():
        print(f"| **{rule}** | all | all | | **{value:,.0f}** | **{value / GPU_CORES:,.0f}** |")


if __name__ == "__main__":
    main()

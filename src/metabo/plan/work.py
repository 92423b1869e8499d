"""The amount of work of a numeric job, known before any data are loaded: the counts of its loops.

Sizes of archives are those stated in the papers. The unit of a count depends on the kind of loop, so only jobs of one
kind can be compared.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from metabo.plan import config, registry, splits
from metabo.plan.sections.config import Config
from metabo.plan.typed import plain
from metabo.records.files import Json

Rule = Literal["pretrain", "evaluate", "run_bo", "run_online"]
RULES: tuple[Rule, ...] = get_args(Rule)
Kind = Literal[
    "untrained", "steps", "sources", "ekl", "networks", "features", "maf",
    "candidates", "clusters", "refits", "evaluations", "online",
]  # fmt: skip
EPOCHS, BATCH = 1000, 64  # hyperbo §7.2
NETWORKS = ("mimo", "rfgp")


class Shape(NamedTuple):
    """The numbers of a benchmark that determine the cost: folds, training tasks per fold, test tasks, points per
    task."""

    folds: Mapping[str, int]
    train: Mapping[str, int]
    test: Mapping[str, int]
    points: int


SHAPES = {
    "pd1_mini": Shape({"held_out": 7, "others": 9}, {"held_out": 20, "others": 23}, {"held_out": 24, "others": 9}, 880),
    "hpob_mini": Shape({"held_out": 6}, {"held_out": 22}, {"held_out": 32}, 1060),
    # hyperbo §7.1, D.5: 24 tasks of about 2,000 usable points; 23 are tested, 9 data sets
    "pd1": Shape({"held_out": 9, "others": 23}, {"held_out": 20, "others": 23}, {"held_out": 23, "others": 23}, 2000),
    # hyperbo §7.6: 16 spaces, 758 training tasks, 3.3 million evaluations, 86 test tasks
    "hpob": Shape({"held_out": 16}, {"held_out": 47}, {"held_out": 86}, 4300),
    "lcbench": Shape({"held_out": 5, "first": 1}, {"held_out": 28}, {"held_out": 34, "first": 7}, 2000),
    "taskset": Shape(
        {"held_out": 4, "others": 12, "first": 1},
        {"held_out": 10, "others": 11, "first": 7},
        {"held_out": 12, "first": 5},
        880,
    ),
    "control": Shape({"held_out": 2}, {"held_out": 10}, {"held_out": 16}, 200),
    # pd1_mini with another filter
    "pd1_mini_nan": Shape({"held_out": 7}, {"held_out": 20}, {"held_out": 24}, 880),
    "super_mini": Shape({"held_out": 10}, {"held_out": 16}, {"held_out": 39}, 1060),
    # mphd §4.1, E.2: both of them, 19 and 4 tasks of pd1
    "super": Shape({"held_out": 17}, {"held_out": 46}, {"held_out": 90}, 4300),
}
"""The shapes of benchmarks whose shape no setting changes."""
TASKS = {"cmbo_mini": (32, 330), "cmbo_hpob": (63, 4300)}
"""The numbers of tasks of a space and of points of a task in cm-BO's benchmarks, whose folds are draws of 15 % of the
tasks (§4.1)."""
OTHER = Shape({"held_out": 10}, {"held_out": 35}, {"held_out": 40}, 2000)
"""The shape of a benchmark that is not described here, such as a user's own."""


class NumericJob(NamedTuple):
    """One job of the plan: its rule, its benchmark, the split, the method, and the acquisition of a `run_bo`."""

    rule: Rule
    benchmark: str
    split: str
    method: str
    acquisition: str = ""


class Loops(NamedTuple):
    """What a job repeats: the kind of its innermost step, and the number of steps, weighted by their cost."""

    kind: Kind
    steps: float


def shape_of(benchmark: str, settings: Config) -> Shape:
    """Return the shape of a benchmark. For a synthetic one, it is in the settings."""
    if benchmark in SHAPES:
        return SHAPES[benchmark]
    own = _mapping(_mapping(settings.sizes["benchmarks"]).get(benchmark, {}))
    if benchmark == "cmbo_control":  # two spaces, and twelve training tasks and two targets of a draw
        folds = 2 * int(_number(own, "draws"))
        return Shape({"held_out": folds}, {"held_out": 12}, {"held_out": 2 * folds}, int(_number(own, "points")))
    if benchmark in TASKS:
        tasks, points = TASKS[benchmark]
        drawn, folds = round(0.15 * tasks), len(_list(own["spaces"])) * int(_number(own, "folds"))
        each = {"held_out": tasks - drawn, "first": tasks - drawn}
        return Shape({"held_out": folds, "first": 1}, each, {"held_out": folds * drawn, "first": drawn}, points)
    if not {"domains", "functions", "points"} <= own.keys():
        return OTHER
    domains, functions = int(_number(own, "domains")), int(_number(own, "functions"))
    tested = max(1, functions // 5)  # as `metabo.data.initial.fifth`, which needs JAX
    each = {"held_out": functions - tested}
    return Shape({"held_out": domains}, each, {"held_out": domains * tested}, int(_number(own, "points")))


def network(method: str) -> bool:
    """Tell whether a method trains a network for all tasks, whose work is the number of mini-batches times that of its
    features."""
    own = method.removesuffix("_online")
    return (registry.method(own).variant_of or own) in NETWORKS


def _of_sources(method: str) -> bool:
    """Tell whether a method fits a GP to each source task, so that its cost lies more in fits and clusters than in
    queries."""
    return registry.method(method).method.startswith("methods.source_gps.")


def loops(job: NumericJob, settings: Config) -> Loops:
    """Count the innermost steps of a job, weighted by what the cost of one step is proportional to."""
    sizes = _Sizes(job, settings)
    if job.rule == "pretrain":
        return _of_training(job, sizes)
    if job.rule == "evaluate":  # the test task is evaluated completely
        return Loops("evaluations", sizes.pairs * (sizes.train * sizes.points**3 + sizes.shape.points**3))
    return _of_online(job, settings, sizes) if job.rule == "run_online" else _of_bo(job, settings, sizes)


class _Sizes:
    """The sizes of a job: of its data and of the priors that it trains or reads."""

    def __init__(self, job: NumericJob, settings: Config):
        place = splits.prior_split(job.split)
        entry, base = splits.entry(place), splits.base(job.split)
        spec = config.pretrain_spec(settings, job.benchmark, place, job.method)
        self.shape = shape_of(job.benchmark, settings)
        self.train = min(_of(self.shape.train, base), entry.tasks or _of(self.shape.train, base))
        self.points = min(self.shape.points, entry.points or self.shape.points)
        self.seeds, self.pairs = spec.seeds, _of(self.shape.folds, base) * spec.seeds
        self.runs = _of(self.shape.test, base) * spec.seeds
        self.pretrain, self.model = _mapping(plain(spec.pretrain)), _mapping(plain(spec.model))
        self.epochs = EPOCHS * self.train * self.points / BATCH  # as mini-batches
        self.features = _number(self.model, "random_features", 1)
        self.network: Literal["networks", "features"] = "features" if "random_features" in self.model else "networks"


def _of_training(job: NumericJob, sizes: _Sizes) -> Loops:
    own, pairs = sizes.pretrain, sizes.pairs
    if network(job.method):
        return Loops(sizes.network, pairs * (_number(own, "steps") or sizes.epochs) * sizes.features)
    if job.method == "maf":
        hidden = [float(str(width)) for width in _list(sizes.model["hidden"])]
        weights = sum(a * b for a, b in pairwise(hidden))
        played = _number(own, "steps") * _number(own, "episodes") * _number(own, "horizon")
        return Loops("maf", pairs * played * (_number(own, "candidates") or sizes.points) * weights)
    if str(own.get("objective", "")).startswith("ekl"):
        matched = min(_number(own, "matched_points") or 242, sizes.points)
        return Loops("ekl", pairs * _number(own, "steps") * matched**3)
    batch = min(sizes.points, _number(own, "batch", 50))
    kind = "untrained" if "steps" not in own else "sources" if _of_sources(job.method) else "steps"
    return Loops(kind, pairs * _number(own, "steps", 1) * sizes.train * batch**2)


def _of_online(job: NumericJob, settings: Config, sizes: _Sizes) -> Loops:
    online = config.online_spec(settings, job.benchmark, job.split, job.method)
    own = _mapping(plain(online.online))
    inner = [_number(own, key) or sizes.epochs for key in ("retrain_steps", "refit_steps", "steps") if key in own]
    return Loops("online", sizes.runs * online.iterations * (inner or [1])[0] * sizes.features)


def _of_bo(job: NumericJob, settings: Config, sizes: _Sizes) -> Loops:
    bo = config.bo_spec(settings, job.benchmark, job.split, job.method, job.acquisition)
    queries, policy = sizes.runs * bo.seeds * bo.iterations, _mapping(plain(bo.policy))
    if network(job.method):
        return Loops(sizes.network, queries * (_number(policy, "steps") or sizes.epochs) * sizes.features)
    if "refit_steps" in policy:
        return Loops("refits", queries * _number(policy, "refit_steps"))
    limit = splits.entry(job.split).candidates
    searched = min(sizes.shape.points, limit) if isinstance(limit, int) else sizes.shape.points
    return Loops("clusters" if _of_sources(job.method) else "candidates", queries * searched)


def _of(counts: Mapping[str, int], base: str) -> int:
    """Return the count of a loader's split, or the largest count if that split is not described."""
    return counts.get(base, max(counts.values()))


def _mapping(value: Json) -> Mapping[str, Json]:
    assert isinstance(value, Mapping), f"{value!r} is no mapping: the types of the sections say so"
    return value


def _list(value: Json) -> list[Json]:
    assert isinstance(value, (list, tuple)), f"{value!r} is no list: the types of the sections say so"
    return list(value)


def _number(settings: Mapping[str, Json], key: str, default: float = 0) -> float:
    """Return a number of the settings, or 0 for `null`, which stands for all."""
    value = settings.get(key, default)
    assert value is None or isinstance(value, (int, float)), f"{key}: {value!r} is no number"
    return value or 0

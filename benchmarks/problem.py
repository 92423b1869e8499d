"""The work that every implementation does: sizes, and seeded inputs, outputs and GP parameters as NumPy arrays."""

import io
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from case import Case

JITTER = 1e-6
"""Added to the noise variance in every covariance, as in metabo."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measured work. `rounds` is how often each implementation is measured, in turns."""

    rounds: int = 7
    tasks: int = 18
    rows: int = 1500
    batch: int = 50
    dim: int = 4
    layers: tuple[int, ...] = (32, 32)
    adam_steps: int = 600
    textbook_adam_steps: int = 15
    pairs: int = 4
    pair_steps: int = 150
    accelerator_pairs: int = 40
    matched: int = 242
    lbfgs_steps: int = 30
    pool: int = 1500
    budget: int = 100
    runs: int = 64
    accelerator_runs: int = 512
    refit_runs: int = 1
    refit_steps: int = 20
    evaluations: int = 300
    accelerator_refits: int = 256
    refit_sizes: tuple[int, ...] = (10, 30, 50, 70, 90)
    functions: int = 16
    points: int = 300
    inputs: int = 8
    widest: int = 14
    step1_steps: int = 200
    textbook_step1_steps: int = 15
    lengthscales: int = 160
    network_steps: int = 2000
    textbook_network_steps: int = 200
    map_runs: int = 4
    map_steps: int = 10
    accelerator_maps: int = 64
    data_sets: int = 35
    configurations: int = 2000
    epochs: int = 52
    textbook_data_sets: int = 2
    limit_tries: int = 20
    fit_points: int = 100
    fit_points_large: int = 400
    fits: int = 3
    predictions: int = 20
    told_few: int = 20
    told_many: int = 100
    asks: int = 5
    past_studies: int = 8
    past_trials: int = 40
    prior_steps: int = 500
    growth_tasks: tuple[int, ...] = (4, 8, 16, 32, 64)
    growth_points: tuple[int, ...] = (16, 32, 64, 128, 256)
    growth_candidates: tuple[int, ...] = (500, 1000, 2000, 4000, 8000)
    growth_observations: tuple[int, ...] = (25, 50, 100, 200, 400)
    growth_shuffles: int = 4
    batches_per_shuffle: int = 10
    growth_runs: int = 8
    textbook_growth_steps: int = 3


QUICK = Sizes(
    rounds=2, tasks=3, rows=60, batch=10, layers=(4, 4), adam_steps=12, textbook_adam_steps=2, pairs=2, pair_steps=6,
    accelerator_pairs=2, matched=12, lbfgs_steps=3, pool=40, budget=6, runs=2, accelerator_runs=2, refit_steps=2,
    accelerator_refits=2, accelerator_maps=2,
    refit_sizes=(2, 4), evaluations=2, functions=3, points=20, inputs=2, widest=3, step1_steps=6,
    textbook_step1_steps=2,
    lengthscales=12, network_steps=8, textbook_network_steps=4, map_runs=2, map_steps=2,
    configurations=40, epochs=5, textbook_data_sets=1, limit_tries=1, fit_points=8, fit_points_large=12, fits=1,
    predictions=1, told_few=11, told_many=13, asks=1, past_studies=3, past_trials=6, prior_steps=4,
    growth_tasks=(1, 2, 3, 4), growth_points=(4, 6, 8, 10), growth_candidates=(30, 40, 50, 60),
    growth_observations=(3, 4, 5, 6), growth_shuffles=1, batches_per_shuffle=3, growth_runs=1,
    textbook_growth_steps=1,
)  # fmt: skip
"""Sizes for a test that everything runs; its times mean nothing."""

Parameters = dict[str, np.ndarray]


def parameters(sizes: Sizes, seed: int = 1) -> Parameters:
    """Return an untrained H-NLL prior, unconstrained (softplus makes lengthscale, variance and noise positive).

    Keys: weight0, bias0, weight1, ..., mean_weight, mean_bias, lengthscale, variance, noise.
    """
    rng = np.random.default_rng(seed)
    widths = (sizes.dim, *sizes.layers)
    drawn: Parameters = {}
    for i in range(len(sizes.layers)):
        drawn[f"weight{i}"] = rng.normal(size=(widths[i], widths[i + 1])) / np.sqrt(widths[i])
        drawn[f"bias{i}"] = np.zeros(widths[i + 1])
    drawn["mean_weight"] = rng.normal(size=widths[-1]) / np.sqrt(widths[-1])
    drawn |= {"mean_bias": np.zeros(()), "lengthscale": np.zeros(widths[-1])}
    return drawn | {"variance": np.zeros(()), "noise": np.array(-4.0)}


def outputs(x: np.ndarray, tasks: int, rng: np.random.Generator) -> np.ndarray:
    """Return (tasks, n) noisy outputs of one smooth function per task; `x` is (n, d) or (tasks, n, d)."""
    x = np.broadcast_to(x, (tasks, *x.shape[-2:]))
    centre = rng.uniform(size=(tasks, 1, x.shape[-1]))
    height = rng.uniform(0.5, 1.5, size=(tasks, 1))
    bowl = np.sum((x - centre) ** 2, axis=-1)
    return height * (np.cos(3.0 * bowl) - bowl) + 0.1 * rng.normal(size=bowl.shape)


def training_rows(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (tasks, rows, dim) and outputs (tasks, rows) of the pre-training tasks."""
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(sizes.tasks, sizes.rows, sizes.dim))
    return x, outputs(x, sizes.tasks, rng)


def matched_rows(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (matched, dim), shared by all tasks, and outputs (matched, tasks)."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(sizes.matched, sizes.dim))
    return x, outputs(x, sizes.tasks, rng).T


def candidates(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return the pool of a test task: inputs (pool, dim) and outputs (pool,)."""
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(sizes.pool, sizes.dim))
    return x, outputs(x, 1, rng)[0]


def observed(sizes: Sizes, number: int) -> np.ndarray:
    """Return `number` distinct candidates that a re-fit starts from; a smaller number gives a prefix."""
    return np.random.default_rng(5).permutation(sizes.pool)[:number]


def fit_rows(sizes: Sizes, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `number` observations, inputs (number, dim) and outputs (number,), and the pool that they are from."""
    x, y = candidates(sizes)
    chosen = observed(sizes, number)
    return x[chosen], y[chosen], x


def likelihood_per_point(
    x: np.ndarray, y: np.ndarray, mean: float, lengthscale: np.ndarray, variance: float, noise: float
) -> float:
    """Return the log marginal likelihood of `x` (n, d) and `y` (n,), over n: the judge of every fit.

    The GP has a constant mean and a Matérn-5/2 kernel with one lengthscale for each input; `noise` is all that is added
    to the diagonal.
    """
    scaled = x / lengthscale
    r = np.sqrt(5.0 * np.sum((scaled[:, None] - scaled) ** 2, axis=-1))
    covariance = variance * (1.0 + r + r**2 / 3.0) * np.exp(-r) + noise * np.eye(len(y))
    _, logdet = np.linalg.slogdet(covariance)
    quadratic = (y - mean) @ np.linalg.solve(covariance, y - mean)
    return float(-0.5 * (quadratic + logdet) / len(y) - 0.5 * np.log(2.0 * np.pi))


THETA = {"constant": 1.0, "lengthscale": 1.0, "variance": 0.0, "noise": -4.0}
"""MPHD's initial values of a domain's GP, unconstrained (App. E.2); the lengthscale is that of each input."""

HYPERPRIOR = {"constant": (0.5, 0.2), "lengthscale": (1.5, 3.0), "variance": (15.0, 100.0), "noise": (1.0, 100.0)}
"""Mean and standard deviation of the constant, shape and rate of the others."""


def domain_rows(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (functions, points, inputs) and outputs (functions, points) of the functions of one domain."""
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(sizes.functions, sizes.points, sizes.inputs))
    return x, outputs(x, sizes.functions, rng)


def domain_pool(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return the pool of a test function: inputs (points, inputs) and outputs (points,)."""
    rng = np.random.default_rng(7)
    x = rng.uniform(size=(sizes.points, sizes.inputs))
    return x, outputs(x, 1, rng)[0]


def estimates(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return contexts (lengthscales, 4) and estimates (lengthscales,) that a prior network is fitted to."""
    rng = np.random.default_rng(8)
    count = rng.integers(2, sizes.widest + 1, size=sizes.lengthscales).astype(float)
    context = np.stack([np.zeros_like(count), np.ones_like(count), np.zeros_like(count), count], axis=1)
    return context, rng.gamma(1.0 + 0.08 * count, 1.0 / (5.7 - 0.35 * count))


LCBENCH = Path(__file__).parents[1] / "src/metabo/data/published/lcbench.sha256"
"""The list of LCBench's files, which says how they are called."""
LOW = np.array([16, 1e-4, 0.1, 1e-5, 1, 64, 0.0])
HIGH = np.array([512, 1e-1, 0.99, 1e-1, 4, 1024, 1.0])
LOG = np.array([True, True, False, False, False, True, False])
"""Ranges and scales of LCBench's inputs."""


def table_sizes(sizes: Sizes) -> Sizes:
    """Return the sizes with LCBench's pool and inputs in place of the others'."""
    return replace(sizes, dim=len(LOW), pool=sizes.configurations)


def table(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (configurations, 7) in the unit cube, and losses (data_sets, configurations, epochs), above 0."""
    rng = np.random.default_rng(9)
    unit = rng.uniform(size=(sizes.configurations, len(LOW)))
    final = np.exp(-0.5 * outputs(unit, sizes.data_sets, rng))
    return unit, final[:, :, None] * np.linspace(2.0, 1.0, sizes.epochs)


def write_table(sizes: Sizes, path: Path) -> None:
    """Write the table as an archive in LCBench's format: one file of arrays X and Y a data set."""
    unit, losses = table(sizes)
    raw = np.where(LOG, LOW * (HIGH / np.where(LOG, LOW, 1.0)) ** unit, LOW + (HIGH - LOW) * unit)
    names = [line.split()[-1] for line in LCBENCH.read_text().splitlines()]
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, own in zip(names, losses, strict=True):
            stream = io.BytesIO()
            np.savez(stream, X=raw, Y=own)
            member = tarfile.TarInfo(name)
            member.size = stream.tell()
            stream.seek(0)
            archive.addfile(member, stream)


def reading_case(sizes: Sizes, read: Callable[[Path], object]) -> Case:
    """Return the case of reading the table's archive with `read`; the file lives as long as the case."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "lcbench.tar"
    write_table(sizes, path)

    def repeat(folder: tempfile.TemporaryDirectory = folder) -> int:  # the default keeps the folder
        read(path)
        return 1

    return Case(repeat)

"""The benchmark `control`: one case in which a method that learns from tasks must work, and one in which none can.

Space `alike`: all tasks are one smooth function, seen with noise, so that past tasks say where its best points are.
Space `unlike`: every output is an independent draw, so that nothing is known about a point that was not queried. A
method that is no better than random search on the first is broken or not trained; one that is better on the second
has seen what it should not have. The benchmark is ours (docs/claims.md, Gates).
"""

from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from metabo.compute.keys import stream
from metabo.data import counts
from metabo.data.synthetic import outputs
from metabo.errors import NumericsError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import MatchedBlock, Task

BENCHMARKS = {
    "control": {
        "default_split": "held_out",
        "settings": ["points", "seed"],
        "matched": True,
        "once": True,
        "control": True,
    },
}
ALIKE, UNLIKE = "alike", "unlike"
DIM = 2
TRAIN, TEST = 10, 8
LENGTHSCALE, NOISE = 0.25, 0.05
"""Of the function of `alike` (Matérn-5/2, variance 1), and the standard deviation of its outputs."""


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Draw the two spaces. Settings: `points`, the same for all tasks of a space; `seed`.

    Each space has one fold: ten tasks train, eight are tested. Raises ConfigError for fewer than ten points,
    NumericsError if the function cannot be drawn.
    """
    chosen = counts.take(name, settings, {"points": 200, "seed": 0})
    points = counts.whole_number(name, "points", chosen["points"], least=10)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    spaces, tasks, blocks, folds = {}, {}, [], []
    for space in (ALIKE, UNLIKE):
        x, y = _draws(name, space, points, seed)
        names = [f"{space}/train{i:02d}" for i in range(1, TRAIN + 1)] + [
            f"{space}/test{i}" for i in range(1, TEST + 1)
        ]
        spaces[space] = SearchSpace(space, tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(1, DIM + 1)))
        none = np.zeros((0, DIM))
        tasks |= {t: Task(t, space, t, x, own, own, np.arange(points), none) for t, own in zip(names, y, strict=True)}
        blocks.append(MatchedBlock(space, space, tuple(names), x, y.T))
        folds.append(Fold(space, space, tuple(names[:TRAIN]), tuple(names[TRAIN:])))
    lines = [
        ("spaces", len(spaces)),
        ("training tasks of each", TRAIN),
        ("test tasks of each", TEST),
        ("points", points),
    ]
    facts = Facts(counts=tuple(counts.count(label, number) for label, number in lines))
    return Benchmark(name, spaces, tasks, tuple(blocks), {"held_out": tuple(folds)}, facts=facts)


def _draws(name: str, space: str, points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs (n, d) of a space and the outputs (tasks, n)."""
    where, values, noise = jax.random.split(stream(seed, name, space), 3)
    x = jax.random.uniform(where, (points, DIM))
    errors = jax.random.normal(noise, (TRAIN + TEST, points))
    if space == UNLIKE:
        return np.asarray(x), np.asarray(errors)
    f, ok = outputs(values, x, 0.0, jnp.full(DIM, LENGTHSCALE), 1.0, 0.0, "matern52")
    if not ok:
        raise NumericsError(
            f"{name}, {space}: the covariance of {points} points cannot be factorised; take another seed"
        )
    return np.asarray(x), np.asarray(f + NOISE * errors)

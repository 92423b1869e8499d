"""The benchmark `cmbo_control`: one case that clusters must decide, and one in which the average of all tasks is right.

Space `mirrored`: half of the tasks are one smooth function seen with deviations of their own, the other half its
negative. So the best points of a target are the best ones of its own family and the worst ones of the other, and the
average of all tasks says nothing. A method that clusters past tasks and weighs the clusters by what it has seen must
find the right one here; a method that averages all of them cannot. Space `alike`: the same with one family alone, so
that the average of all tasks is the right prior, and whoever learns from them must find the best points. In cm-BO's
protocol (§4.1): standardised outputs and five initial points. The benchmark is ours (docs/claims.md, Gates).

Each space has many draws of its function, a fold each, with points and tasks of their own. All tasks of a draw share
its function, so a draw is what an interval may resample; in which order the methods come depends on the function more
than on the target.
"""

from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from metabo.compute.keys import stream
from metabo.data import counts
from metabo.data.cmbo import initial_points, standardised
from metabo.data.synthetic import outputs
from metabo.errors import NumericsError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Facts
from metabo.tasks.folds import Fold
from metabo.tasks.spaces import Parameter, SearchSpace
from metabo.tasks.task import Task

BENCHMARKS = {
    "cmbo_control": {
        "default_split": "held_out",
        "settings": ["points", "draws", "seed"],
        "sizes": "cmbo",
        "once": True,
        "control": True,
    },
}
MIRRORED, ALIKE = "mirrored", "alike"
FAMILIES = {MIRRORED: {"up": 1.0, "down": -1.0}, ALIKE: {"up": 1.0}}
"""Sign of the function in each family of a space."""
DIM = 2
TRAIN, TEST = 12, 2
"""Tasks that train and targets of a draw, as many of each family."""
LENGTHSCALE, OWN, NOISE = 0.25, 0.2, 0.05
"""Of a draw's function (Matérn-5/2, variance 1); standard deviations of a task's own deviation from it (the same
kernel) and of the noise of its outputs."""


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Draw the two spaces. Settings: `points` of each draw, the same for all its tasks; `draws` of each space; `seed`.

    A draw is a fold: twelve tasks train, two are targets. Raises ConfigError for fewer than ten points or no draw,
    NumericsError if a function cannot be drawn.
    """
    chosen = counts.take(name, settings, {"points": 200, "draws": 24, "seed": 0})
    points = counts.whole_number(name, "points", chosen["points"], least=10)
    draws = counts.whole_number(name, "draws", chosen["draws"], least=1)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    spaces, tasks, folds = {}, {}, []
    for space in FAMILIES:
        spaces[space] = SearchSpace(space, tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(1, DIM + 1)))
        for number in range(1, draws + 1):
            draw = f"{space}/draw{number:02d}"
            own = _tasks(draw, space, *_draw(name, draw, space, points, seed))
            tasks |= own
            folds.append(Fold(draw, space, tuple(own)[:TRAIN], tuple(own)[TRAIN:]))
    initial = {t: initial_points(task, seed) for t, task in tasks.items()}
    return Benchmark(name, spaces, tasks, (), {"held_out": tuple(folds)}, initial, _facts(points, draws))


def _tasks(draw: str, space: str, x: np.ndarray, y: np.ndarray) -> dict[str, Task]:
    """Name the outputs (tasks, n) at the inputs (n, d): first those that train, then the targets, families in turn."""
    names = [
        f"{draw}/{family}-{part}{i:02d}"
        for part, count in (("train", TRAIN), ("test", TEST))
        for i in range(1, count // len(FAMILIES[space]) + 1)
        for family in FAMILIES[space]
    ]
    none = np.zeros((0, DIM))
    return {
        t: standardised(Task(t, space, draw, x, own, own, np.arange(len(x)), none))
        for t, own in zip(names, y, strict=True)
    }


def _facts(points: int, draws: int) -> Facts:
    lines = [("spaces", len(FAMILIES)), *((f"families of {space}", len(own)) for space, own in FAMILIES.items())]
    lines += [("draws of each space", draws), ("training tasks of each draw", TRAIN), ("targets of each draw", TEST)]
    lines += [("points", points)]
    return Facts(counts=tuple(counts.count(label, number) for label, number in lines))


def _draw(name: str, label: str, space: str, points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs (n, d) of a draw of a space and the outputs (tasks, n), families in turn."""
    where, common, single, noise = jax.random.split(stream(seed, name, label), 4)
    x = jax.random.uniform(where, (points, DIM))

    def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return outputs(key, x, 0.0, jnp.full(DIM, LENGTHSCALE), 1.0, 0.0, "matern52")

    f, ok = draw(common)
    own, sound = jax.vmap(draw)(jax.random.split(single, TRAIN + TEST))
    if not (ok & sound.all()):
        raise NumericsError(
            f"{name}, {label}: the covariance of {points} points cannot be factorised; take another seed"
        )
    signs = np.resize(list(FAMILIES[space].values()), TRAIN + TEST)
    errors = jax.random.normal(noise, own.shape)
    return np.asarray(x), np.asarray(signs[:, None] * f + OWN * own + NOISE * errors)

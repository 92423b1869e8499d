"""A user's own past studies, from CSV files and the ``space.yaml`` of each (docs/own-data.md), compared offline.

`own` compares within each space: its studies are dealt into folds, each tested on priors of the others. `own_spaces` is
for several spaces, so that MPHD takes part: a fifth of the studies of each is tested, as in MPHD's super-datasets.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from metabo.data import counts
from metabo.data.history.past import PastStudies, read_all
from metabo.data.initial import POINTS, fifth, initial_points
from metabo.errors import ConfigError, DataError
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Count, Facts
from metabo.tasks.folds import Fold

SPACES = 3
"""Search spaces of a comparison with MPHD: one is tested, and a hyperprior is estimated from two others at least."""

BENCHMARKS = {
    "own": {
        "dataset": None,
        "matched": False,
        "default_split": "held_out",
        "package": None,
        "settings": ["history", "space", "folds", "skip_bad_rows", "seed"],
        "files": ["history", "space"],
    },
    "own_spaces": {
        "dataset": None,
        "matched": False,
        "default_split": "held_out",
        "package": None,
        "settings": ["history", "space", "skip_bad_rows", "seed"],
        "files": ["history", "space"],
        "sizes": "mphd",
    },
}


def load(name: str, settings: Mapping[str, object], archive: Path | None = None) -> Benchmark:
    """Read the histories. Settings: `history` and `space` (files that go together), `folds` (most folds of a space),
    `skip_bad_rows`, `seed` (which studies are tested together, initial points).

    Studies with fewer than 5 trials are trained on and never tested. Raises ConfigError without files, DataError for
    their content, for a space without enough studies, and for `own_spaces` without enough spaces.
    """
    chosen = counts.take(name, settings, {"history": [], "space": [], "folds": 5, "skip_bad_rows": False, "seed": 0})
    folds = counts.whole_number(name, "folds", chosen["folds"], least=2)
    seed = counts.whole_number(name, "seed", chosen["seed"], least=0)
    history, space = (counts.listed(name, key, chosen[key]) for key in ("history", "space"))
    if not history:
        raise ConfigError(
            f"config key 'benchmarks.{name}.history' is empty; name your CSV files there and their descriptions under "
            f"'benchmarks.{name}.space', or say: metabo compare history.csv --space space.yaml"
        )
    past = read_all(history, space, bool(chosen["skip_bad_rows"]))
    if name == "own_spaces":
        require_spaces(past)
    dealt = [fold for one in past for fold in (_folds(one, folds, seed) if name == "own" else [_one(one, seed)])]
    tasks = {task.name: task for one in past for task in one.tasks.values()}
    tested = [tasks[study] for fold in dealt for study in fold.test]
    initial = {task.name: initial_points(task, seed) for task in tested} if name == "own_spaces" else {}
    flags = [remark for one in past for remark in one.remarks]
    flags += [f"space '{one.description.name}': outcomes are scaled by all of its studies, the tested ones too"
              for one in past]  # fmt: skip
    facts = Facts(counts=tuple(_counts(past, len(tested))), flags=tuple(flags))
    spaces = {one.description.name: one.description.space for one in past}
    return Benchmark(name, spaces, tasks, (), {"held_out": tuple(dealt)}, initial, facts)


def require_spaces(past: list[PastStudies]) -> None:
    """Raise DataError for fewer spaces than a comparison with MPHD needs."""
    if len(past) < SPACES:
        names = " and ".join(f"'{one.description.name}'" for one in past)
        raise DataError(
            f"{len(past)} search spaces ({names}): MPHD is also tested on a space that it has not seen, and learns "
            f"from two others at least; name the histories of {SPACES} spaces, or compare on each history by itself"
        )


def _drawn(past: PastStudies, seed: int) -> list[str]:
    """Return the studies that can be tested, in random order. Raises DataError if a hold-out leaves nothing."""
    space = past.description.name
    large = [name for name, task in past.tasks.items() if len(task.y) >= POINTS]
    if len(past.tasks) < 2 or not large:
        raise DataError(
            f"space '{space}': {len(past.tasks)} usable studies, {len(large)} of them with {POINTS} trials; a "
            "comparison holds out studies of that length and learns from the others; add studies"
        )
    order = np.random.default_rng([seed, zlib.crc32(space.encode())]).permutation(len(large))
    return [large[i] for i in order]


def _folds(past: PastStudies, most: int, seed: int) -> list[Fold]:
    """Deal the studies of a space into at most `most` folds of nearly equal size."""
    space, drawn = past.description.name, _drawn(past, seed)
    number = min(most, len(drawn))
    hands = [tuple(drawn[k::number]) for k in range(number)]
    return [
        Fold(f"{space}, fold {k + 1}", space, tuple(name for name in past.tasks if name not in hand), hand)
        for k, hand in enumerate(hands)
    ]


def _one(past: PastStudies, seed: int) -> Fold:
    """Test a fifth of the studies of a space, at least one (mphd App. E.2)."""
    space, drawn = past.description.name, _drawn(past, seed)
    test = tuple(drawn[: fifth(len(past.tasks))])
    return Fold(space, space, tuple(name for name in past.tasks if name not in test), test)


def _counts(past: list[PastStudies], tested: int) -> list[Count]:
    lines = [counts.count("search spaces", len(past)), counts.count("tested studies", tested)]
    for one in past:
        name, sizes = one.description.name, [len(task.y) for task in one.tasks.values()]
        lines.append(counts.count(f"{name}: studies", len(sizes)))
        lines.append(counts.count(f"{name}: trials", sum(sizes)))
        lines.append(counts.count(f"{name}: fewest trials of a study", min(sizes)))
        lines.append(counts.count(f"{name}: repeated inputs", counts.repeated_inputs(one.tasks)))
    return lines

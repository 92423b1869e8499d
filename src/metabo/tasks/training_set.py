"""The training data of one search space as arrays for pre-training: padded rows, folds, matched moments."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from metabo.compute.keys import stream
from metabo.compute.memory import check_memory
from metabo.errors import DataError, unknown
from metabo.plan.past import SPACES, Past
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.facts import Truth
from metabo.tasks.folds import Fold
from metabo.tasks.outputs import INFEASIBLE, rescale
from metabo.tasks.padding import columns
from metabo.tasks.rows import Moments, Rows, pad, sample_moments, stack
from metabo.tasks.spaces import SearchSpace
from metabo.tasks.subsets import block_points, fewer_matched, training_half, training_points, training_tasks
from metabo.tasks.task import MatchedBlock, Task, cut_by_tasks, restrict

OUTPUTS = ["raw", "mapped"]
"""The outputs that a method trains on: as they are, or mapped to [-2, 2] with diverged inputs at -2 (online tuning)."""


@dataclass(frozen=True)
class TrainingSet:
    """The folds of one space. `dim` is the number of its input columns, `width` that of the benchmark's widest space.
    `rows` holds the training rows, and `counts` the number of rows per entry of `rows`. `members` (folds, seeds, m)
    indexes the training tasks of each fold and pre-training seed in `rows`, padded with 0 where `present` is False, and
    `trained` has their names. `matched` has the matched blocks per fold and seed.

    `test_rows` holds the test tasks, and `tested` (folds, t; padded where `tested_present` is False) indexes them. They
    serve only what the paper itself fits to the test task (MAF's GPs, hyperbo D.5). With `rows: half` they too have
    only the training half of the configurations.

    `described` is the space itself. `unseen` says that learning across spaces never uses these tasks (mphd §4.2, PD1).
    `truth` has the parameters, and their priors, of the GP that the tasks were drawn from, if they were drawn from one
    (`metabo.tasks.facts.Truth`).
    """

    space: str
    dim: int
    width: int
    folds: tuple[Fold, ...]
    rows: Rows
    counts: tuple[int, ...]
    members: np.ndarray
    present: np.ndarray
    trained: tuple[tuple[tuple[str, ...], ...], ...]
    matched: tuple[tuple[tuple[MatchedBlock, ...], ...], ...]
    test_rows: Rows
    tested: np.ndarray
    tested_present: np.ndarray
    described: SearchSpace
    unseen: bool
    truth: Truth | None

    @property
    def tasks(self) -> int:
        """Number of training tasks of the fold that has the most."""
        return self.members.shape[2]

    def widened(self) -> "TrainingSet":
        """Return a copy whose training rows and matched blocks have columns of zeros after the inputs, up to `width`,
        so that all spaces have one shape."""
        rows = self.rows._replace(x=columns(self.rows.x, self.width))
        matched = tuple(
            tuple(tuple(replace(block, x=columns(block.x, self.width)) for block in blocks) for blocks in of_fold)
            for of_fold in self.matched
        )
        return replace(self, dim=self.width, rows=rows, matched=matched)

    def past(self, fold: int | Int[Array, ""], seed: int | Int[Array, ""]) -> Rows:
        """Return the training rows of one (fold, seed): x (m, n, d), y (m, n), mask (m, n). Fold and seed may be
        traced."""
        members, present = jnp.asarray(self.members)[fold, seed], jnp.asarray(self.present)[fold, seed]
        x, y, mask = (jnp.asarray(array)[members] for array in self.rows)
        return Rows(x, y, mask & present[:, None])


def training_sets_of(benchmark: Benchmark, spec: TrainingSpec) -> list[TrainingSet]:
    """Return what the priors of a pre-training specification are (or were) trained on."""
    past = read(Past, spec["past"], "spec", "past")
    return training_sets(benchmark, past, outputs_of(spec), spec["seed"], spec["seeds"])


def outputs_of(spec: TrainingSpec) -> str:
    """Return the outputs, one of `OUTPUTS`, that a specification trains on."""
    return read(str, spec["pretrain"].get("outputs", "raw"), "spec", "pretrain.outputs")


def training_sets(
    benchmark: Benchmark, past: Past | str, outputs: str = "raw", seed: int = 0, seeds: int = 1
) -> list[TrainingSet]:
    """Group the folds of a split (or of the part that a `Past` takes of it) by search space and pad their training
    tasks.

    `outputs`: one of `OUTPUTS`. "mapped" applies `metabo.tasks.outputs` to every task and matched block, with the
    median and maximum of each task, and adds diverged inputs at -2 to both. `seed` and `seeds`: the seed and the number
    of seeds of the draws that `past` asks for. If `past.rows` is "matched", the rows are the points of the matched
    blocks of their fold and seed, before `moments` may cut these; if it is "half", nothing here has a configuration of
    the other half (`metabo.tasks.subsets.held_back`). Raises ConfigError for an unknown name, and DataError for a task
    without such a point.
    """
    if outputs not in OUTPUTS:
        raise unknown("outputs", outputs, OUTPUTS)
    past = Past(past) if isinstance(past, str) else past
    if past.spaces not in SPACES:
        raise unknown("split spaces", past.spaces, SPACES)
    folds = benchmark.split(past.base)
    benchmark = training_half(benchmark, seed) if past.rows == "half" else benchmark
    mapped = outputs == "mapped"
    blocks = mapped_blocks(benchmark.matched, benchmark.tasks) if mapped else benchmark.matched
    spaces = dict.fromkeys(fold.space for fold in folds)
    here = [tuple(fold for fold in folds if fold.space == space) for space in spaces]
    return [_of_space(benchmark, group, past, mapped, blocks, seed, seeds) for group in here]


def _of_space(
    benchmark: Benchmark,
    folds: tuple[Fold, ...],
    past: Past,
    mapped: bool,
    blocks: tuple[MatchedBlock, ...],
    seed: int,
    seeds: int,
) -> TrainingSet:
    def data(name: str) -> tuple[np.ndarray, np.ndarray]:
        task = benchmark.tasks[name]
        return mapped_rows(task) if mapped else (task.x, task.y)

    numbers = range(seeds)
    trained = tuple(tuple(training_tasks(benchmark, fold, past, seed, s) for s in numbers) for fold in folds)
    matched = tuple(
        tuple(fewer_matched(restrict(blocks, of_seed), fold, past, seed, s) for s, of_seed in enumerate(of_fold))
        for fold, of_fold in zip(folds, trained, strict=True)
    )
    # Equal rows are stored once: rows of all points never depend on the fold, and on the seed only if they are drawn.
    pairs = [(f, s) for f in range(len(folds)) for s in numbers]
    sources = [[past.source(f, name, s) for name in trained[f][s]] for f, s in pairs]
    entries = {source: i for i, source in enumerate(dict.fromkeys(source for pair in sources for source in pair))}
    index = [np.array([entries[source] for source in pair]) for pair in sources]
    if past.rows == "matched":
        reduced = [block_points(matched[f][s], folds[f], name) for f, s, name in entries]
    else:
        reduced = [training_points(benchmark.tasks[n], data(n), past, seed, s) for _, s, n in entries]
    tests = list(dict.fromkeys(name for fold in folds for name in fold.test))
    tested = [np.array([tests.index(name) for name in fold.test]) for fold in folds]
    members, present = pad(index), pad([np.ones(len(i), dtype=bool) for i in index])
    return TrainingSet(
        space=folds[0].space,
        dim=reduced[0][0].shape[1],
        width=benchmark.width,
        folds=folds,
        rows=stack([x for x, _ in reduced], [y for _, y in reduced]),
        counts=tuple(len(y) for _, y in reduced),
        members=members.reshape(len(folds), seeds, -1),
        present=present.reshape(len(folds), seeds, -1),
        trained=trained,
        matched=matched,
        test_rows=stack([data(name)[0] for name in tests], [data(name)[1] for name in tests]),
        tested=pad(tested),
        tested_present=pad([np.ones(len(i), dtype=bool) for i in tested]),
        described=benchmark.spaces[folds[0].space],
        unseen=folds[0].space in benchmark.facts.unseen,
        truth=benchmark.facts.truth.get(folds[0].space),
    )


def mapped_rows(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and mapped outputs of a task, its diverged inputs last, at -2 (hyperbo §7.5)."""
    y = np.concatenate([rescale(task.y), np.full(len(task.diverged), INFEASIBLE)])
    return np.concatenate([task.x, task.diverged]), y


def mapped_blocks(blocks: tuple[MatchedBlock, ...], tasks: dict[str, Task]) -> tuple[MatchedBlock, ...]:
    """Map matched tables (blocks of one space and name) like the rows: each task by its own median and maximum, and to
    -2 where it diverged at exactly that input (hyperbo §7.5). An input that the task never evaluated stays missing.

    Each table is cut again by the tasks that are present, as `restrict` needs it. Inputs at which every task diverged
    are in no table, so they are not added.
    """
    tables: dict[tuple[str, str], list[MatchedBlock]] = {}
    for block in blocks:
        tables.setdefault((block.space, block.name), []).append(block)
    return tuple(piece for pieces in tables.values() for piece in _mapped_table(pieces, tasks))


def _mapped_table(pieces: list[MatchedBlock], tasks: dict[str, Task]) -> tuple[MatchedBlock, ...]:
    space, name = pieces[0].space, pieces[0].name
    here = {task.name: task for task in tasks.values() if task.space == space}
    x = np.concatenate([piece.x for piece in pieces])
    points = [tuple(point) for point in x.tolist()]
    y = np.full((len(x), len(here)), np.nan)
    for column, task in zip(y.T, here.values(), strict=True):
        own = [p.y[:, p.tasks.index(task.name)] if task.name in p.tasks else np.full(len(p.x), np.nan) for p in pieces]
        column[:] = np.concatenate(own)
        good, lost = np.isfinite(column), set(map(tuple, task.diverged.tolist()))
        column[~good & [point in lost for point in points]] = INFEASIBLE
        column[good] = rescale(column[good], task.y)
    return cut_by_tasks(name, space, list(here), x, y)


def prior_keys(training: TrainingSet, seed: int, seeds: int) -> Key[Array, "folds seeds"]:
    """Return the key of every (fold, pre-training seed), derived from the names of the space and the fold."""
    names = [(training.space, fold.name) for fold in training.folds]
    return jnp.stack([jnp.stack([stream(seed, "prior", *name, s) for s in range(seeds)]) for name in names])


def sample_rows(training: TrainingSet, keys: Key[Array, "folds seeds"], batch: int) -> Rows:
    """Draw `batch` rows of every training task (or all, if it has fewer) without replacement, once per (fold, seed).

    Returns Rows with a leading axis of folds x seeds; tasks that a fold lacks are masked.
    """
    width = min(batch, training.rows.mask.shape[1])
    chosen = []
    for of_fold in zip(training.members, training.present, keys, strict=True):
        for members, present, key in zip(*of_fold, strict=True):
            mask = training.rows.mask[members] & present[:, None]
            order = np.where(mask, np.asarray(jax.random.uniform(key, mask.shape)), 2.0)
            index = np.argsort(order, axis=1, kind="stable")[:, :width]
            tasks = members[:, None]
            kept = np.take_along_axis(mask, index, axis=1)
            chosen.append(Rows(training.rows.x[tasks, index], training.rows.y[tasks, index], kept))
    return jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *chosen)


def block_moments(blocks: tuple[MatchedBlock, ...]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return (x, μ̃, root of Σ̃) of each block (hyperbo Eq. 4)."""
    return [(block.x, *sample_moments(block.y)) for block in blocks]


def moments(training: TrainingSet, keys: Key[Array, "folds seeds"], limit: int) -> Moments:
    """Stack the sample moments of every (fold, seed) pair: arrays with a leading axis of folds x seeds.

    `limit` > 0 keeps that many matched points per block, drawn once per pair without replacement (the authors' code
    sub-samples once before fitting); 0 keeps all. Raises DataError for a fold without a matched block of two tasks,
    ConfigError if the moments do not fit in memory.
    """
    _check_size(training, keys.size, limit)
    pairs = []
    for fold, of_fold, fold_keys in zip(training.folds, training.matched, keys, strict=True):
        for blocks, key in zip(of_fold, fold_keys, strict=True):
            if not blocks:
                raise DataError(
                    f"fold '{fold.name}' of space '{fold.space}': no matched inputs shared by two training tasks, "
                    "which EKL needs; leave h_ekl out for this benchmark"
                )
            chosen = [_subsample(block, key, limit) for block in blocks]
            pairs.append(block_moments(tuple(chosen)))
    points = max(len(x) for pair in pairs for x, _, _ in pair)
    tasks = max(root.shape[1] for pair in pairs for _, _, root in pair)

    def stacked(part: list[list[np.ndarray]]) -> np.ndarray:
        return pad([pad(blocks, points) for blocks in part])

    x = stacked([[b[0] for b in pair] for pair in pairs])
    mean = stacked([[b[1] for b in pair] for pair in pairs])
    root = stacked([[np.pad(b[2], ((0, 0), (0, tasks - b[2].shape[1]))) for b in pair] for pair in pairs])
    mask = stacked([[np.ones(len(b[1]), dtype=bool) for b in pair] for pair in pairs])
    return Moments(jnp.asarray(x), jnp.asarray(mean), jnp.asarray(root), jnp.asarray(mask))


def _check_size(training: TrainingSet, pairs: int, limit: int) -> None:
    groups = [blocks for of_fold in training.matched for blocks in of_fold]
    blocks = [block for group in groups for block in group]
    if not blocks:
        return
    points, tasks = max(len(block.x) for block in blocks), max(len(block.tasks) for block in blocks)
    points = min(points, limit) if limit > 0 else points
    need = pairs * max(map(len, groups)) * points * (tasks + training.dim + 2) * 8
    where = f"space '{training.space}': the moments of {pairs} trainings on {points} matched points a block"
    check_memory(need, where, "lower matched_points or seeds in config section 'pretrain' ('online' for online tuning)")


def _subsample(block: MatchedBlock, key: Key[Array, ""], limit: int) -> MatchedBlock:
    if not 0 < limit < len(block.x):
        return block
    keep = np.sort(np.asarray(jax.random.permutation(key, len(block.x)))[:limit])
    return MatchedBlock(block.name, block.space, block.tasks, block.x[keep], block.y[keep])


def pair_indices(folds: int, seeds: int) -> tuple[Int[Array, " p"], Int[Array, " p"]]:
    """Return the fold and the seed of each pair, in the order of all stored priors: fold-major."""
    fold, seed = np.divmod(np.arange(folds * seeds), seeds)
    return jnp.asarray(fold), jnp.asarray(seed)

"""Pre-training of EmpGP: train a GP as H-NLL does, run EM at matched inputs, then extend its result to all inputs by
the GP.

This differs from the paper (Lin et al. 2026) in three ways. The kernel and its noise are trained by mini-batches on all
rows of the training tasks and stay fixed during EM. The share of the kernel in the covariance is chosen by leaving out
training tasks. At most `anchors` matched inputs are used, drawn per pre-training seed.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Key

from metabo.bo.priors import SpacePrior
from metabo.errors import DataError
from metabo.gp.features import Anchored
from metabo.gp.fit import Log, over_pairs
from metabo.gp.kernels import Corrected, Stationary
from metabo.gp.linalg import cholesky, masked_covariance
from metabo.gp.means import Constant, Linear
from metabo.gp.model import GP, build
from metabo.methods.empirical.em import AnchorPrior, AnchorTable, choose
from metabo.methods.empirical.settings import anchors_of, read_settings
from metabo.methods.pretrained import train as pretrained
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import written
from metabo.records.files import Json
from metabo.tasks.task import MatchedBlock
from metabo.tasks.training_set import TrainingSet


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> GP:
    """Return the GP before EM: the GP of the kernel, with anchors that are all padding."""
    count, own = anchors_of(model)
    nothing = AnchorPrior(jnp.zeros(count), jnp.eye(count))
    anchors, present = jnp.zeros((count, dim)), jnp.zeros(count, bool)
    return extended(build(own, dim, key), anchors, present, nothing, jnp.ones(()))


def extended(
    gp: GP, anchors: Float[Array, "m d"], present: Bool[Array, " m"], prior: AnchorPrior, share: Float[Array, ""]
) -> GP:
    """Return the GP that has the mean and covariance of `prior` at the anchors, and elsewhere, given its values at the
    anchors, is distributed as `gp`: μ(x) = c + k(x, Z) K⁻¹ (μ - c) and k(x, x') + k(x, Z) K⁻¹ (Σ - K) K⁻¹ k(Z, x'), K =
    k(Z, Z).

    `gp` must have a constant mean and a stationary kernel on its inputs.
    """
    base, level = gp.kernel, gp.mean
    assert isinstance(base, Stationary) and isinstance(level, Constant), "`start` refuses others"
    factor, _ = cholesky(masked_covariance(base.gram(anchors), jnp.zeros(()), present))
    both = present[:, None] & present
    half = solve_triangular(factor, jnp.where(both, prior.covariance, 0.0), lower=True)
    whitened = solve_triangular(factor, half.T, lower=True)
    correction = jnp.where(both, 0.5 * (whitened + whitened.T) - jnp.eye(len(anchors)), 0.0)
    weight = solve_triangular(factor, jnp.where(present, prior.mean - level.value, 0.0), lower=True)
    mean = Linear(jnp.concatenate([jnp.zeros(anchors.shape[1]), weight]), level.value)
    return GP(
        Anchored(base, anchors, present.astype(anchors.dtype), factor),
        mean,
        Corrected(base, correction, share),
        gp.raw_noise,
    )


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[GP, Log]:
    """Train one GP per (fold, seed), as `metabo.methods.pretrained.train.pretrain` does. The log covers the EM
    iterations.

    Raises ConfigError for unknown settings, and DataError for a fold without inputs that two training tasks share.
    """
    settings = read_settings(spec["method"], spec["pretrain"])
    limit, own = anchors_of(spec["model"])
    base: TrainingSpec = {**spec, "model": own, "pretrain": written(settings.base)}
    gps, log = pretrained.pretrain(base, training, keys, accelerator)
    tables = shared_tables(training, keys, limit)
    shares = jnp.asarray(settings.shrinkage)

    def fit(pair):
        gp, anchors, present, table = pair
        kernel = jnp.where(present[:, None] & present, gp.kernel.gram(anchors), 0.0)
        begin = AnchorPrior(jnp.where(present, gp.mean.value, 0.0), kernel)
        prior, trace, share = choose(begin, table, gp.noise, shares, settings.em_steps, settings.parts)
        finite = jnp.isfinite(prior.mean).all() & jnp.isfinite(prior.covariance).all()
        kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), prior, begin)
        return extended(gp, anchors, present, kept, share), Log(trace, jnp.where(finite, -1, settings.em_steps))

    trained, em_log = over_pairs(fit, (gps, *tables), accelerator)
    return trained, Log(em_log.loss, jnp.where(log.stopped >= 0, log.stopped, em_log.stopped))


def shared_tables(
    training: TrainingSet, keys: Key[Array, "folds seeds"], limit: int
) -> tuple[Float[Array, "pairs m d"], Bool[Array, "pairs m"], AnchorTable]:
    """Return the anchors of every (fold, seed), a mask that is False for padding, and the outputs there.

    Inputs that more training tasks share are preferred; ties are broken at random. Raises DataError for a fold in which
    no two training tasks share an input.
    """
    made = []
    for fold, of_fold, fold_keys in zip(training.folds, training.matched, keys, strict=True):
        for blocks, key in zip(of_fold, fold_keys, strict=True):
            if not any(len(block.tasks) > 1 for block in blocks):
                raise DataError(
                    f"fold '{fold.name}' of space '{fold.space}': no matched inputs shared by two training tasks, "
                    "from which EmpGP learns; leave emp_gp out for this benchmark"
                )
            made.append(drawn(joined(blocks), key, limit))
    tasks, kinds = max(len(one.y) for one in made), max(len(np.unique(one.seen, axis=0)) for one in made)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[_padded(one, limit, tasks, kinds) for one in made])


class Joined(NamedTuple):
    """Matched blocks as one table: distinct inputs (m, d), outputs (tasks, m), and the mask of the outputs that
    exist."""

    x: np.ndarray
    y: np.ndarray
    seen: np.ndarray


def joined(blocks: tuple[MatchedBlock, ...]) -> Joined:
    """Return the blocks as one table, joined where their inputs are equal."""
    names = list(dict.fromkeys(task for block in blocks for task in block.tasks))
    x, place = np.unique(np.concatenate([block.x for block in blocks]), axis=0, return_inverse=True)
    y, seen = np.zeros((len(names), len(x))), np.zeros((len(names), len(x)), bool)
    place, first = place.reshape(-1), 0
    for block in blocks:
        at, first = place[first : first + len(block.x)], first + len(block.x)
        rows = [names.index(task) for task in block.tasks]
        for row, values in zip(rows, block.y.T, strict=True):
            y[row, at], seen[row, at] = values, True
    return Joined(x, y, seen)


def drawn(table: Joined, key: Key[Array, ""], limit: int) -> Joined:
    """Return at most `limit` inputs of a table, and the tasks that have any of them. Inputs that more tasks share are
    preferred; ties are broken at random."""
    order = np.asarray(jax.random.permutation(key, len(table.x)))
    chosen = np.sort(order[np.argsort(-table.seen.sum(axis=0)[order], kind="stable")][:limit])
    some = table.seen[:, chosen].any(axis=1)
    return Joined(table.x[chosen], table.y[some][:, chosen], table.seen[some][:, chosen])


def _padded(found: Joined, anchors: int, tasks: int, kinds: int) -> tuple[Array, Array, AnchorTable]:
    more, spare = anchors - len(found.x), tasks - len(found.y)
    patterns, kind = np.unique(found.seen, axis=0, return_inverse=True)
    table = AnchorTable(
        jnp.pad(found.y, ((0, spare), (0, more))),
        jnp.pad(patterns, ((0, kinds - len(patterns)), (0, more))),
        jnp.pad(kind.reshape(-1), (0, spare), constant_values=kinds),
        jnp.pad(jnp.ones(len(found.y)), (0, spare)),
    )
    return jnp.pad(found.x, ((0, more), (0, 0))), jnp.arange(anchors) < len(found.x), table


def report(prior: SpacePrior) -> dict[str, Json]:
    """Return the number of anchors of each prior, and the share of the kernel's covariance in its own covariance."""
    present, share = np.asarray(prior.params.features.present), np.asarray(prior.params.kernel.share)
    return {"anchors": [int(count) for count in present.sum(axis=1)], "shrinkage": [float(one) for one in share]}

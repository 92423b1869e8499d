"""One GP (Matérn 5/2) for each source task, fitted once: what RGPE and RM-GP-UCB know about the past (cm-BO §4.1).

For BO see `metabo.methods.source_gps.rgpe_policy` and `metabo.methods.source_gps.rm_gp_ucb`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from metabo.gp.fit import Log
from metabo.gp.model import GP
from metabo.methods.source_gps.settings import SourceFits, SourceModel
from metabo.methods.source_gps.sources import fit_all, make, repeated, taken
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.training_set import TrainingSet


class Sources(NamedTuple):
    """GPs of the source tasks (leading axis m), and the untrained one that the target's fits start from."""

    sources: GP
    target: GP


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> Sources:
    """Return untrained GPs."""
    gp = make([read(SourceModel, model, "model").kernel], dim)
    return Sources(repeated(gp, tasks), gp)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[Sources, Log]:
    """Fit a GP to every source task once (type-II maximum likelihood), and return those of each (fold, seed).

    The log's loss is the mean over the source tasks of a (fold, seed), and `stopped` is the first step at which one of
    their fits was not finite.
    """
    kernel, tasks = read(SourceModel, spec["model"], "model").kernel, training.tasks
    steps = read(SourceFits, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain").steps
    fitted, log = fit_all([kernel], training.rows, training.width, steps, accelerator)
    pairs, losses, stopped = [], [], []
    for members, present in zip(
        training.members.reshape(-1, tasks), training.present.reshape(-1, tasks), strict=True
    ):  # fmt: skip
        pairs.append(Sources(taken(fitted, members), make([kernel], training.dim)))
        losses.append(jnp.mean(log.loss[members[present]], axis=0))
        ends = np.asarray(log.stopped)[members[present]]
        stopped.append(int(ends[ends >= 0].min()) if (ends >= 0).any() else -1)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *pairs), Log(jnp.stack(losses), jnp.asarray(stopped))

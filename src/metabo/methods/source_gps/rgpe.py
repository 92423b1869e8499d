"""One GP for each source task, Matérn 5/2, fitted once: what RGPE and RM-GP-UCB know of the past (cm-BO §4.1).

BO: `metabo.methods.source_gps.rgpe_policy`, `metabo.methods.source_gps.rm_gp_ucb`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from metabo.gp.fit import Log
from metabo.gp.model import GP
from metabo.methods.source_gps.sources import fit_all, make, repeated, taken
from metabo.tasks.training_set import TrainingSet


class Sources(NamedTuple):
    """GPs of the source tasks (leading axis m), and the untrained one that the target's fits start from."""

    sources: GP
    target: GP


def start(model: dict[str, Any], dim: int, tasks: int, key: Key[Array, ""]) -> Sources:
    """Return untrained GPs."""
    gp = make([model["kernel"]], dim)
    return Sources(repeated(gp, tasks), gp)


def pretrain(
    spec: dict[str, Any], training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[Sources, Log]:
    """Fit every source task once (type-II maximum likelihood) and hand out those of each (fold, seed).

    The log's loss is the mean over the source tasks of a (fold, seed); `stopped` the first step at which one of their
    fits was not finite.
    """
    model, tasks = spec["model"], training.tasks
    fitted, log = fit_all([model["kernel"]], training.rows, training.width, spec["pretrain"]["steps"], accelerator)
    pairs, losses, stopped = [], [], []
    for members, present in zip(
        training.members.reshape(-1, tasks), training.present.reshape(-1, tasks), strict=True
    ):  # fmt: skip
        pairs.append(Sources(taken(fitted, members), make([model["kernel"]], training.dim)))
        losses.append(jnp.mean(log.loss[members[present]], axis=0))
        ends = np.asarray(log.stopped)[members[present]]
        stopped.append(int(ends[ends >= 0].min()) if (ends >= 0).any() else -1)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *pairs), Log(jnp.stack(losses), jnp.asarray(stopped))

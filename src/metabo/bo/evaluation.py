"""How well a prior fits: Test NLL, training NLL and EKL of every pre-trained GP (hyperbo §7.4.2, Table 6, Figure 10).

All three are negative log likelihoods or divergences in nats, for outputs on the benchmark's maximised scale.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float

from metabo.bo.priors import SpacePrior
from metabo.compute import progress
from metabo.compute.memory import check_memory
from metabo.errors import ConfigError, NumericsError
from metabo.gp.model import GP
from metabo.gp.objectives import degenerate_ekl
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.tasks.benchmark import Benchmark
from metabo.tasks.rows import sample_moments
from metabo.tasks.task import MatchedBlock, restrict
from metabo.tasks.training_set import TrainingSet, outputs_of, training_sets_of

MISSING_SHARE = 0.05
"""If more than this share of the values is not finite, the evaluation fails instead of leaving them out."""


@jax.jit
def _task_nll(gp: GP, x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """NLL (Eq. 14) of each padded task, one after another, because a task's matrix is the largest array in memory."""
    return jax.lax.map(lambda task: -gp.log_prob(*task), (x, y, mask))


@jax.jit
def _model_moments(gp: GP, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    phi = gp.features(x)
    return gp.mean(phi), gp.covariance(phi, jnp.ones(len(x), dtype=bool))


def comparable(blocks: tuple[MatchedBlock, ...], task: str) -> tuple[MatchedBlock, ...]:
    """Return the matched blocks that are informative about `task`: it is in them, and their tasks do not all agree."""
    return tuple(block for block in blocks if task in block.tasks and np.ptp(block.y, axis=1).any())


def ekl(gp: GP, blocks: tuple[MatchedBlock, ...]) -> float:
    """Mean of the degenerate EKL (Eq. 8 with Eq. 6) over the matched blocks where it is a number; NaN if none is."""
    values = []
    for block in blocks:
        mean, covariance = _model_moments(gp, jnp.asarray(block.x))
        values.append(degenerate_ekl(np.asarray(mean), np.asarray(covariance), *sample_moments(block.y)))
    numbers = [value for value in values if not np.isnan(value)]
    return float(np.mean(numbers)) if numbers else float("nan")


def training_losses(prior: SpacePrior, training: TrainingSet, rows: int) -> Float[np.ndarray, "folds seeds"]:
    """Return the mean NLL (Eq. 14) of the first `rows` rows of each training task, under each prior (a GP) of one
    space."""
    past = jax.tree.map(lambda array: jnp.asarray(array[:, :rows]), training.rows)
    found = np.empty((len(prior.folds), prior.seeds))
    for f, seed in np.ndindex(found.shape):
        used = training.members[f, seed][training.present[f, seed]]
        found[f, seed] = np.mean(_task_nll(prior.of(f, seed), *(a[used] for a in past)))
    return found


def _rows(benchmark: Benchmark, prior: SpacePrior, training: TrainingSet) -> Iterator[dict[str, str | int | float]]:
    past, tests = (jax.tree.map(jnp.asarray, rows) for rows in (training.rows, training.test_rows))
    points = max(past.x.shape[1], tests.x.shape[1])
    where = f"benchmark '{benchmark.name}', space '{prior.space}': the likelihood of a task of {points} points"
    check_memory(3 * points**2 * 8, where, "load fewer points (config key 'benchmarks')")
    for f, fold in progress.loop(enumerate(prior.folds), "folds"):
        for seed in progress.loop(range(prior.seeds), "seeds"):
            gp = prior.of(f, seed)
            used = training.members[f, seed][training.present[f, seed]]
            train_nll = float(np.mean(_task_nll(gp, *(a[used] for a in past))))
            tested = training.tested[f][training.tested_present[f]]
            for task, loss in zip(fold.test, np.asarray(_task_nll(gp, *(a[tested] for a in tests))), strict=True):
                blocks = comparable(restrict(benchmark.matched, (*training.trained[f][seed], task)), task)
                values = {"test_nll": float(loss), "train_nll": train_nll}
                if blocks:
                    values["ekl"] = ekl(gp, blocks)
                for metric, value in values.items():
                    yield {
                        "space": fold.space, "fold": fold.name, "task": task, "prior_seed": seed,
                        "metric": metric, "value": value,
                    }  # fmt: skip


def evaluate(
    benchmark: Benchmark, spec: TrainingSpec, priors: list[SpacePrior], split: str
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the table of `test_nll`, `train_nll` and `ekl` per test task and pre-training seed, and counts of missing
    values.

    `spec`: the specification that the priors were trained from; `split`: the split to evaluate them for, which may be
    another one, because splits that train alike share priors. `test_nll`: NLL of all rows of the test task (of those in
    the training half, if the split has `rows: half`). `train_nll`: mean NLL of the training tasks, over all rows that
    the prior was trained on (Eq. 13). `ekl`: Eq. 8 with Eq. 6 on the blocks matched between training tasks and the test
    task. The counts are "not_finite", the values left out, and "without_ekl", the pairs of test task and seed without
    an EKL because no matched block compares the task with others. Raises NumericsError if more than 5 % of the values
    are not finite, and ConfigError if a task does not fit in memory, if the priors belong to no split, or if they were
    trained on mapped outputs, whose losses are on another scale.
    """
    if (outputs := outputs_of(spec)) != "raw":
        raise ConfigError(
            f"method '{spec['method']}' is trained on outputs '{outputs}', for online tuning; its losses on the "
            "benchmark's outputs mean nothing: evaluate a method trained on raw ones"
        )
    read(str, spec.get("split"), "spec of the priors", "split")
    sets = training_sets_of(benchmark, spec)
    pairs = zip(priors, sets, strict=True)
    table = pd.DataFrame([row for prior, training in pairs for row in _rows(benchmark, prior, training)])
    table.insert(0, "benchmark", benchmark.name)
    table.insert(1, "split", split)
    table.insert(5, "method", spec["method"])
    finite = np.isfinite(table["value"])
    bad = table[~finite]
    if len(bad) > MISSING_SHARE * len(table):
        first = bad.iloc[0].to_dict()
        raise NumericsError(
            f"{len(bad)} of {len(table)} values are not finite, the first: {first}. The same training gives the same "
            f"prior: change its learning rate or steps (config key 'methods.{spec['method']}.pretrain') or 'seed'"
        )
    with_ekl = int((table["metric"] == "ekl").sum())
    counts = {"not_finite": len(bad), "without_ekl": int((table["metric"] == "test_nll").sum()) - with_ekl}
    return table.loc[finite].reset_index(drop=True), counts

"""Priors of hierarchical GPs: MPHD Standard and Non-NN, which are learned across search spaces; hand-specified,
non-informative and true priors; and the true GP itself (MPHD §2, §4, App. E.2).

MPHD has two steps. Step 1 fits a GP to the training tasks of each space (Eq. 3); these are the priors of the method
registered under `fits`. Step 2 fits the priors of the GPs' parameters to these estimates (Eq. 4): a Normal to the
constants, a Gamma each to the signal and noise variances, and for lengthscales a network of their contexts (Standard)
or one Gamma (Non-NN). BO then fits a GP to each test task under that prior (`metabo.methods.hierarchical.policy`).

A space's own training tasks belong to the past of its test tasks, unless the split says `spaces: others` (NToT, §2.5).
The paper leaves open, and we chose: an estimate beyond the limits counts like any other, and the sidecar names it; an
estimate that is not finite ends the job; the network starts from the same weights for every space.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Key, PyTree

from metabo.bo.priors import SpacePrior
from metabo.compute.keys import stream
from metabo.errors import ConfigError, DataError
from metabo.gp.fit import Log, over_pairs
from metabo.gp.model import GP, build
from metabo.methods.hierarchical import network as prior_network
from metabo.methods.hierarchical.estimates import Estimates, step1
from metabo.methods.hierarchical.hyperprior import (
    NAMES,
    Hyperprior,
    Parameters,
    fit_gamma,
    fit_normal,
    to_gp,
)
from metabo.methods.hierarchical.settings import KINDS, HierarchicalModel, NetworkSettings, numbers_of, read_model
from metabo.plan.past import Past
from metabo.plan.specs import TrainingSpec
from metabo.plan.typed import read
from metabo.records.files import Json
from metabo.tasks.facts import Truth
from metabo.tasks.training_set import TrainingSet


class Hierarchical(NamedTuple):
    """A hierarchical GP: the GP that its fits start from, and the prior of that GP's parameters."""

    gp: GP
    prior: Hyperprior


def start(model: Mapping[str, Json], dim: int, tasks: int, key: Key[Array, ""]) -> Hierarchical | GP:
    """Return the unfitted parameters: a GP at its initial values, with the prior that the model gives or, if that is
    yet to be found, placeholder numbers; for prior "point", the GP alone. Raises ConfigError as `read_model` does."""
    settings = read_model(model)
    gp = build(settings.gp, dim, key)
    return gp if settings.prior == "point" else Hierarchical(gp, given_prior(settings, dim))


def given_prior(model: HierarchicalModel, dim: int) -> Hyperprior:
    """Return the prior that the model gives or, if that is yet to be found, one with placeholder numbers."""
    given = numbers_of(model.hyperparameters) or dict.fromkeys(Parameters._fields, (1.0, 1.0))
    return make_prior(Parameters(**given), dim, model.prior if model.prior in KINDS else "gamma")


def make_prior(numbers: Parameters, dim: int, kind: str = "gamma") -> Hyperprior:
    """Return the prior with these numbers, (2,) for each parameter and (2,) or (d, 2) for the lengthscale."""
    constant, lengthscale, variance, noise = (jnp.asarray(pair, jnp.float64) for pair in numbers)
    return Hyperprior(constant, jnp.broadcast_to(lengthscale, (dim, 2)), variance, noise, kind)


def pretrain(
    spec: TrainingSpec, training: TrainingSet, keys: Key[Array, "folds seeds"], accelerator: bool
) -> tuple[Hierarchical | GP, None]:
    """Return the prior of a space that needs no learning, once per (fold, seed): the model's own prior, or the truth.

    Raises DataError if the truth is requested but the benchmark has none, and ConfigError for initial values without
    density under the prior, where no fit could start.
    """
    model = read_model(spec["model"])
    if model.prior == "point":
        drawn = {name: np.asarray(value, np.float64) for name, value in _truth(spec, training)["parameters"].items()}
        return _repeated(to_gp(Parameters(**drawn), model.kernel), keys.size), None
    if model.prior == "truth":
        prior = make_prior(Parameters(**_truth(spec, training)["prior"]), training.dim)
    else:
        prior = given_prior(model, training.dim)
    gp = build(model.gp, training.dim, jax.random.fold_in(keys.reshape(-1)[0], 0))
    if not np.isfinite(prior.log_density(gp)):
        raise ConfigError(
            f"method '{spec['method']}': the initial values of its GP are outside the support of its prior; set others "
            f"(config key 'methods.{spec['method']}.model.initial')"
        )
    return _repeated(Hierarchical(gp, prior), keys.size), None


def _truth(spec: TrainingSpec, training: TrainingSet) -> Truth:
    if training.truth is None:
        raise DataError(
            f"space '{training.space}': method '{spec['method']}' needs the parameters that its functions were drawn "
            "with; they are known of synthetic benchmarks only (flag `truth`)"
        )
    return training.truth


def pretrain_across(
    spec: TrainingSpec,
    sets: list[TrainingSet],
    keys: list[Key[Array, "folds seeds"]],
    fits: list[SpacePrior] | None,
    accelerator: bool,
) -> list[tuple[Hierarchical, Log | None]]:
    """Learn the prior of every space from the Step-1 `fits` (of GPs, one entry per space), one per pre-training seed.

    Estimates of unseen spaces (PD1, §2.5) never count; if `spec["past"]["spaces"]` is "others", a space's own estimates
    do not count either. The log is that of the network, or None for a shared Gamma. Raises DataError for fits that do
    not belong to these sets, for too few estimates, and for spaces with several folds (it would be unclear which fold's
    fit to use); NumericsError for an estimate that is not finite; and ConfigError for a model without a learned prior.
    """
    model, seeds = read_model(spec["model"]), spec["seeds"]
    if model.prior not in ("network", "shared"):
        raise ConfigError(f"prior '{model.prior}' is not learned across spaces; 'network' and 'shared' are")
    past, estimates = read(Past, spec["past"], "spec", "past"), step1(sets, fits, seeds)
    pools = [pool(sets, i, past.spaces) for i in range(len(sets))]
    distinct = list(dict.fromkeys(pools))
    networks, log = None, None
    if model.prior == "network":
        settings = read(NetworkSettings, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain")
        networks, log = train_networks(estimates, distinct, settings, spec["seed"], accelerator)
    results = []
    for i, training in enumerate(sets):
        first = distinct.index(pools[i]) * seeds
        gp = build(model.gp, training.dim, jax.random.fold_in(keys[i].reshape(-1)[0], 0))
        priors = []
        for s in range(seeds):
            network = jax.tree.map(lambda leaf, place=first + s: leaf[place], networks)
            priors.append(Hierarchical(gp, learned(estimates, pools[i], s, network, i)))
        own = jax.tree.map(lambda leaf, at=first: leaf[at : at + seeds], log)
        results.append((jax.tree.map(lambda *leaves: jnp.stack(leaves), *priors), own))
    return results


def pool(sets: list[TrainingSet], target: int, spaces: str) -> tuple[int, ...]:
    """Return the positions of the spaces whose training tasks belong to the past of space `target` (sheet §2.5): all
    but unseen spaces and, if `spaces` is "others", the space itself."""
    return tuple(i for i, one in enumerate(sets) if not one.unseen and (spaces == "all" or i != target))


def of_pool(estimates: Estimates, spaces: tuple[int, ...]) -> Bool[np.ndarray, " l"]:
    """Return the mask of the lengthscales that belong to these spaces."""
    return np.isin(estimates.owner, spaces)


def train_networks(
    estimates: Estimates, pools: list[tuple[int, ...]], settings: NetworkSettings, seed: int, accelerator: bool
) -> tuple[PyTree, Log]:
    """Train one prior network per (pool, pre-training seed) in one program. The result has a leading axis of pools x
    seeds.

    All networks read the same table of lengthscales, each with the mask of its pool.
    """
    seeds = len(estimates.values.lengthscale)
    begin = [
        prior_network.make(stream(seed, "lengthscale prior", s), settings.hidden, settings.output) for s in range(seeds)
    ]
    starts = jax.tree.map(lambda *leaves: jnp.stack(leaves * len(pools)), *begin)
    masks = np.repeat([of_pool(estimates, one) for one in pools], seeds, axis=0)
    values = np.tile(estimates.values.lengthscale, (len(pools), 1))
    for row, mask in zip(values, masks, strict=True):  # the same checks as for a Gamma fitted in closed form
        _fit_lengthscale(estimates, row, mask)
    context = jnp.asarray(estimates.context)

    def fit(pair):
        network, value, mask = pair
        rate = settings.learning_rate
        return prior_network.train(network, context, value, mask, steps=settings.steps, learning_rate=rate)

    return over_pairs(fit, (starts, jnp.asarray(values), jnp.asarray(masks)), accelerator)


def _fit_lengthscale(
    estimates: Estimates, values: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray | np.floating, np.ndarray | np.floating]:
    names = [estimates.spaces[i] for i in estimates.owner[mask]]
    return fit_gamma(values[mask], NAMES.lengthscale, names)


def learned(
    estimates: Estimates,
    spaces: tuple[int, ...],
    seed: int,
    network: prior_network.PriorNetwork | None,
    target: int,
) -> Hyperprior:
    """Return the prior of space `target` learned from the estimates of `spaces` (Eq. 4): lengthscales by the network of
    their contexts or, if it is None, by one Gamma in which every dimension counts once."""
    values, names = estimates.values, [estimates.spaces[i] for i in spaces]
    own = estimates.owner == target
    if network is None:
        lengthscale = _fit_lengthscale(estimates, values.lengthscale[seed], of_pool(estimates, spaces))
    else:
        lengthscale = network(jnp.asarray(estimates.context[own]))
    index = list(spaces)
    numbers = Parameters(
        constant=fit_normal(values.constant[seed, index], NAMES.constant, names),
        lengthscale=lengthscale,
        variance=fit_gamma(values.variance[seed, index], NAMES.variance, names),
        noise=fit_gamma(values.noise[seed, index], NAMES.noise, names),
    )
    return make_prior(numbers, int(own.sum()))


def _repeated(params: PyTree, pairs: int) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (pairs, *leaf.shape)), params)

"""From past studies to the prior of one space, by the pre-training of the experiments on all studies at once.

Methods and their settings are those of `metabo/plan/methods.yaml`, at the sizes of the default scale.
"""

import jax
import jax.numpy as jnp
import numpy as np

from metabo.bo.priors import SpacePrior, of_training
from metabo.compute.keys import stream
from metabo.compute.precision import accelerated
from metabo.data.history.past import PastStudies
from metabo.errors import ConfigError, unknown
from metabo.gp.model import build
from metabo.methods.hierarchical import contexts
from metabo.methods.hierarchical.estimates import Estimates, remarks, step1
from metabo.methods.hierarchical.settings import NetworkSettings, read_model
from metabo.methods.hierarchical.train import Hierarchical, learned, train_networks
from metabo.plan import config, costs, limits, registry
from metabo.plan.specs import MethodSpec, TrainingSpec
from metabo.plan.typed import NOTHING, read
from metabo.tasks.folds import Fold
from metabo.tasks.rows import Rows, stack
from metabo.tasks.spaces import SearchSpace
from metabo.tasks.training_set import TrainingSet, prior_keys


def _suggests(name: str) -> bool:
    entry = registry.method(name)
    only_compared = entry.variant_of or entry.needs_matched or entry.needs_truth
    return registry.made_of(name).tunes and not only_compared


METHODS = tuple(name for name in registry.methods("policy", ordered=True) if _suggests(name))
"""Methods that can suggest: those that are not a variant of another and need no matched inputs, no known truth and no
past rows when they suggest."""
LEARNS = tuple(m for m in METHODS if registry.method(m).pretrain or registry.made_of(m).across_spaces)
"""Those of them that learn from past studies."""
SIZES = {
    "pretrain": {
        "adam_steps": 2000, "learning_rate": 3.0e-3, "ablr_learning_rate": 1.0e-2, "decay": 0.01, "lbfgs_steps": 100,
        "matched_points": 242,
    },
    "crossing": {"short_adam_steps": 100, "short_lbfgs_steps": 10},
    "mphd": {
        "adam_steps": 2000, "learning_rate": 1.0e-2, "decay": 1.0, "network_steps": 10000, "map_steps": 10,
    },
    "cmbo": {
        "clusters": 6, "restarts": 3, "fit_steps": 50, "refit_steps": 10, "locations": 100, "grid": 100,
        "tolerance": 1.0e-3, "samples": 64,
    },
    "bo": {"refit_steps": 20},
    "mimo": {"learning_rate": 8.0e-3, "steps": 3000, "retrain_steps": 30, "warm_start": True},
    "rfgp": {
        "random_features": 64, "ridge": 1.0, "lengthscale": 0.3, "learning_rate": 3.0e-2, "steps": 2000,
        "retrain_steps": 30, "warm_start": True,
    },
    "maf": {
        "iterations": 400, "episodes": 8, "horizon": 15, "candidates": 64, "minibatches": 4, "learning_rate": 1.0e-3,
        "hidden": [32, 32], "evaluate_every": 10, "points": 1559, "gp_points": 100, "gp_steps": 50,
    },
}  # fmt: skip
"""The sizes that methods refer to, as in config.yaml."""
ALL = "all studies"
LONGEST = 365 * 86400.0
"""The most seconds that a training may take, as estimated."""
BATCH = 50
"""The most points of a study that a step of Adam reads."""


BLEND, STEPS = "blend", 60
"""The default method for one space, which is the tuner's own (`metabo.tuner.blend`), and its number of L-BFGS steps."""


def specification(method: str, seed: int, steps: int | None = None) -> MethodSpec:
    """Return everything that determines a prior and the suggestions from it. `steps`: the number of steps of Adam (of
    L-BFGS for `BLEND`), in place of the method's own.

    Raises ConfigError for a method that cannot suggest.
    """
    if method == BLEND:
        return {"method": BLEND, "acquisition": "ei", "seed": seed, "seeds": 1, "past": {"base": ALL}, "model": {},
                "pretrain": {"steps": STEPS if steps is None else steps}, "policy": {}}  # fmt: skip
    if method not in METHODS:
        raise unknown("method", method, (BLEND, *METHODS))
    sizes = SIZES if steps is None else {**SIZES, "pretrain": {**SIZES["pretrain"], "adam_steps": steps}, "mphd": {
        **SIZES["mphd"], "adam_steps": steps, "network_steps": min(steps, SIZES["mphd"]["network_steps"])
    }}  # fmt: skip
    entry = registry.method(method)
    made: MethodSpec = {
        "method": method,
        "acquisition": entry.acquisition,
        "seed": seed,
        "seeds": 1,
        "past": {"base": ALL},
        "model": config.sized(sizes, entry.model),
        "pretrain": config.sized(sizes, entry.pretrain),
        "policy": config.sized(sizes, entry.policy or NOTHING),
    }
    return {**made, "fits": specification(entry.fits, seed, steps)} if entry.fits else made


def require_affordable(steps: int, past: list[PastStudies]) -> None:
    """Raise ConfigError if `steps` of Adam on the past studies would take longer than `LONGEST`; the error states the
    estimate."""
    read = sum(min(len(task.y), BATCH) ** 2 for one in past for task in one.tasks.values())
    seconds = limits.PACES["steps"] * steps * read
    if seconds > LONGEST:
        raise ConfigError(
            f"steps is {steps}: on these past studies they would take about {costs.in_words(seconds)}; give fewer, or "
            f"leave it out ({SIZES['pretrain']['adam_steps']:,})"
        )


def learn(spec: MethodSpec, target: SearchSpace, past: list[PastStudies]) -> tuple[SpacePrior, list[str]]:
    """Return the prior of the space `target` and remarks on its training. `past` has the studies of each space.

    Raises ConfigError or DataError if there is too little to learn from.
    """
    here = next((one for one in past if one.description.name == target.name), None)
    fits = spec.get("fits")
    if fits is not None and not isinstance(fits, str):
        return _across(spec, fits, target, past)
    if spec["method"] in LEARNS:
        require_studies(spec["method"], require_here(target.name, past, spec["method"]))
    return _prior(spec, training_set(target, here)), []


def require_here(space: str, past: list[PastStudies], method: str = BLEND) -> PastStudies:
    """Return the past studies of a space. Raises ConfigError if there are none."""
    here = next((one for one in past if one.description.name == space), None)
    if here is None:
        raise ConfigError(
            f"method '{method}' learns from past studies of the same space, and there is none of '{space}'; describe "
            "the histories by its space.yaml (--space) if it has the same parameters, or give histories of several "
            "spaces and use --method mphd, which learns from other spaces"
        )
    return here


def require_studies(method: str, past: PastStudies) -> None:
    """Raise ConfigError for a single study, because a prior over functions cannot be learned from one function."""
    if len(past.tasks) < 2:
        raise ConfigError(
            f"space '{past.description.name}' has one usable past study, '{next(iter(past.tasks))}'; '{method}' learns "
            "how studies differ and needs two at least: add a study (its name goes into column "
            f"'{past.description.study}'), or use --method stboh, which learns nothing from the past"
        )


def training_set(space: SearchSpace, past: PastStudies | None) -> TrainingSet:
    """Return all past studies of a space as one training set without a test task. If `past` is None, it is empty."""
    tasks = list(past.tasks.values()) if past else []
    xs, ys = [task.x for task in tasks], [task.y for task in tasks]
    nothing = Rows(np.zeros((1, 1, space.dim)), np.zeros((1, 1)), np.zeros((1, 1), dtype=bool))
    names = tuple(task.name for task in tasks)
    members = np.arange(max(len(tasks), 1))[None, None]
    return TrainingSet(
        space=space.name, dim=space.dim, width=space.dim, folds=(Fold(ALL, space.name, names, ()),),
        rows=stack(xs, ys) if tasks else nothing, counts=tuple(len(y) for y in ys), members=members,
        present=np.full(members.shape, bool(tasks)), trained=((names,),), matched=(((),),),
        test_rows=Rows(*(part[:0] for part in nothing)), tested=np.zeros((1, 0), dtype=int),
        tested_present=np.zeros((1, 0), dtype=bool), described=space, unseen=False, truth=None,
    )  # fmt: skip


def _prior(spec: TrainingSpec, training: TrainingSet) -> SpacePrior:
    keys = prior_keys(training, spec["seed"], 1)
    pretrain = registry.training_module(spec["method"]).pretrain
    return of_training(training, *pretrain(spec, training, keys, accelerated()))


def _across(
    spec: MethodSpec, first: TrainingSpec, target: SearchSpace, past: list[PastStudies]
) -> tuple[SpacePrior, list[str]]:
    """Learn the prior by MPHD: a GP per space with a history (Step 1), then the prior of the target's GP (Step 2). The
    target's own studies, if any, belong to the past (mphd §2.5)."""
    if len(past) < 2:
        raise ConfigError(
            f"method '{spec['method']}' learns how search spaces differ and needs histories of two at least; give "
            "several histories, each with its --space, or for one space use --method h_nll without --target"
        )
    sets = [training_set(one.description.space, one) for one in past]
    fits = [_prior(first, training) for training in sets]
    estimates = _with_target(step1(sets, fits, 1), target)
    spaces, network, log = tuple(range(len(sets))), None, None
    model = read_model(spec["model"])
    if model.prior == "network":
        settings = read(NetworkSettings, spec["pretrain"], "config", f"methods.{spec['method']}.pretrain")
        networks, log = train_networks(estimates, [spaces], settings, spec["seed"], accelerator=False)
        network = jax.tree.map(lambda leaf: leaf[0], networks)
    prior = learned(estimates, spaces, 0, network, len(sets))
    here = next((one for one in past if one.description.name == target.name), None)
    training = training_set(target, here)
    gp = build(model.gp, target.dim, stream(spec["seed"], "prior", target.name))
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], Hierarchical(gp, prior))
    return of_training(training, params, log), remarks(sets, fits)


def _with_target(estimates: Estimates, target: SearchSpace) -> Estimates:
    """Add the contexts of the target's inputs as those of one more space, which no pool of spaces contains. Its
    length-scales are placeholders."""
    values = estimates.values
    places = np.ones((len(values.lengthscale), target.dim))
    return estimates._replace(
        values=values._replace(lengthscale=np.concatenate([values.lengthscale, places], axis=1)),
        owner=np.append(estimates.owner, np.full(target.dim, len(estimates.spaces))),
        context=np.concatenate([estimates.context, contexts.of_space(target)]),
    )

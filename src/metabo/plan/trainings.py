"""Which jobs share their priors: equal settings are trained once, whatever the names of method and split."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from metabo.plan import registry, splits
from metabo.plan.config import pretrain_spec
from metabo.plan.sections.config import Config
from metabo.plan.specs import PretrainSpec


class Recipe(NamedTuple):
    """Everything that determines priors: a spec without the names of method and split, and the module that trains."""

    spec: PretrainSpec
    module: str


def trainings(config: Config, benchmark: str, split: str) -> dict[Recipe, str]:
    """Return the first registered method of each training on a split.

    Keys of random streams do not depend on names of methods or splits, so equal settings give equal priors.
    """
    found: dict[Recipe, str] = {}
    for method in registry.methods(ordered=True):
        found.setdefault(_training(pretrain_spec(config, benchmark, split, method)), method)
    return found


Known = Callable[[Config, str, str], dict[Recipe, str]]


def prior_of(config: Config, benchmark: str, split: str, method: str, known: Known = trainings) -> tuple[str, str]:
    """Return the (split, method) whose pre-training job makes the priors of a method on a split. These are the given
    ones unless the split that this one is made from, or a method registered earlier, has the same settings.

    `known` is `trainings`, or a cached version of it.
    """
    wanted = _training(pretrain_spec(config, benchmark, splits.prior_split(split), method))
    for place in (splits.base(split), splits.prior_split(split)):
        if wanted in (found := known(config, benchmark, place)):
            return place, found[wanted]
    raise AssertionError("a method's training is one of those on its own split")


def _training(spec: PretrainSpec) -> Recipe:
    return Recipe(replace(spec, method="", split=""), registry.made_of(spec.method).pretrain)

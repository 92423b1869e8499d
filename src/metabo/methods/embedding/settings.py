"""The settings of the networks with an embedding of each task, and of their training."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Schedule:
    """How long to train and how: `epochs`, but at most `steps` mini-batches (0: no limit), by Adam."""

    learning_rate: float
    batch: int
    epochs: float
    steps: int


@dataclass(frozen=True)
class FirstSchedule(Schedule):
    """Of the training on past tasks; `outputs`: one of `metabo.tasks.training_set.OUTPUTS`."""

    outputs: str = "raw"


@dataclass(frozen=True)
class EnsembleModel:
    """Of MIMO: members, size of the embedding, widths of shared layers and of those that each member has."""

    members: int
    embedding: int
    shared: tuple[int, ...]
    unshared: tuple[int, ...]


@dataclass(frozen=True)
class FeaturesModel:
    """Of RFGP: number of random features, size of the embedding, noise variance, length-scale of the kernel, and
    whether the mean has the weights that training reached or those of the closed form."""

    random_features: int
    embedding: int
    ridge: float
    lengthscale: float = 1.0
    weights: Literal["trained", "solved"] = "trained"

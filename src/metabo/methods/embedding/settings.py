"""The settings of the networks with an embedding of each task, and of their training."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Schedule:
    """How to train, and for how long: by Adam, for `epochs`, but at most `steps` mini-batches (0: no limit)."""

    learning_rate: float
    batch: int
    epochs: float
    steps: int


@dataclass(frozen=True)
class FirstSchedule(Schedule):
    """The schedule of the training on past tasks, and its `outputs`, one of `metabo.tasks.training_set.OUTPUTS`."""

    outputs: str = "raw"


@dataclass(frozen=True)
class EnsembleModel:
    """Settings of MIMO: number of members, size of the embedding, widths of the shared layers and of each member's
    own, and whether the variance of a prediction has the noise that the members predict or is the spread of their means
    alone."""

    members: int
    embedding: int
    shared: tuple[int, ...]
    unshared: tuple[int, ...]
    noise: bool = True


@dataclass(frozen=True)
class FeaturesModel:
    """Settings of RFGP: number of random features, size of the embedding, noise variance (`ridge`), length-scale of the
    kernel, and whether the mean uses the trained weights or those of the closed form."""

    random_features: int
    embedding: int
    ridge: float
    lengthscale: float = 1.0
    weights: Literal["trained", "solved"] = "trained"

"""The settings of GPs of past tasks and of their clusters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceModel:
    """The kernel of the GPs."""

    kernel: str


@dataclass(frozen=True)
class SourceFits:
    """The number of L-BFGS steps of each fit."""

    steps: int


@dataclass(frozen=True)
class ClusterModel:
    """The kernel of the prototypes, the factors of the clusters' kernel, and the largest number of clusters."""

    kernel: str
    cluster_kernel: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class Clustering:
    """The distance, the number of L-BFGS steps of each fit, of restarts of k-means, and of locations of the
    posteriors."""

    distance: str
    steps: int
    restarts: int
    locations: int

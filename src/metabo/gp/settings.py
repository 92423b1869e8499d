"""The settings of an untrained GP, as methods.yaml gives them under `model`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from metabo.errors import ConfigError, unknown
from metabo.plan.typed import read
from metabo.records.files import Json

MEANS = ["zero", "constant", "linear_mlp"]
KERNELS = ["matern12", "matern32", "matern52", "squared_exponential", "dot_product"]


@dataclass(frozen=True)
class InitialValues:
    """Initial values before warping (open in hyperbo; sheet §2.10): softplus turns them into 0.693 for lengthscales and
    signal variance, and into 0.018 for the noise variance."""

    constant: float = 0.0
    lengthscale: float = 0.0
    variance: float = 0.0
    noise: float = -4.0


DEFAULT = InitialValues()


@dataclass(frozen=True)
class GPSettings:
    """A mean (`MEANS`) and a kernel (`KERNELS`) on a network with layers of the sizes `features`, or on the raw inputs
    for (). `initial` holds the initial values before warping."""

    mean: str
    kernel: str
    features: tuple[int, ...] = ()
    initial: InitialValues = DEFAULT


def read_gp(model: Mapping[str, Json]) -> GPSettings:
    """Read the settings of a GP. Raises ConfigError if they name an unknown mean or kernel, lack features that the mean
    needs, or give an initial value for a parameter that this GP does not have."""
    check_initial(model)
    settings = read(GPSettings, model, "model")
    check_gp(settings)
    return settings


def check_gp(settings: GPSettings) -> None:
    """Raise ConfigError for an unknown mean or kernel, or a mean that lacks its features."""
    if settings.mean not in MEANS:
        raise unknown("mean", settings.mean, MEANS)
    if settings.kernel not in KERNELS:
        raise unknown("kernel", settings.kernel, KERNELS)
    if settings.mean == "linear_mlp" and not settings.features:
        raise ConfigError("mean 'linear_mlp' needs at least one layer in 'features', e.g. [32, 32]")


def check_initial(model: Mapping[str, Json]) -> None:
    """Raise ConfigError for an initial value of a parameter that a GP with this mean and kernel does not have."""
    absent = {"constant"} if model.get("mean") != "constant" else set()
    absent |= {"lengthscale", "variance"} if model.get("kernel") == "dot_product" else set()
    valid = {field.name for field in fields(InitialValues)} - absent
    given = model.get("initial", {})
    for name in given if isinstance(given, Mapping) else ():
        if name not in valid:
            raise unknown("initial value of this mean and kernel", name, valid)

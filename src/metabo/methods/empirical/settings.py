"""The settings of EmpGP, as methods.yaml has them under `model` and `pretrain`."""

from collections.abc import Mapping
from dataclasses import dataclass

from metabo.errors import ConfigError
from metabo.plan.typed import Count, Values, read
from metabo.records.files import Json


@dataclass(frozen=True)
class EmpiricalSettings:
    """`base`: settings of the objective "nll", which trains the kernel that extends the prior; `em_steps`: number of EM
    iterations; `shrinkage`: shares of the kernel's covariance to choose from; `parts`: number of parts of the training
    tasks, one of which is left out at a time for that choice."""

    base: Values
    em_steps: Count
    shrinkage: tuple[float, ...]
    parts: Count


def read_settings(method: str, pretrain: Mapping[str, Json]) -> EmpiricalSettings:
    """Read the settings of training. Raises ConfigError for no shares or shares outside [0, 1], and for fewer than two
    parts."""
    own = {key: value for key, value in pretrain.items() if key in ("em_steps", "shrinkage", "parts")}
    base = {key: value for key, value in pretrain.items() if key not in own}
    settings = read(EmpiricalSettings, {**own, "base": base}, "config", where := f"methods.{method}.pretrain")
    if not settings.shrinkage or not all(0.0 <= share <= 1.0 for share in settings.shrinkage):
        raise ConfigError(f"config key '{where}.shrinkage': {list(settings.shrinkage)} must be shares from 0 to 1")
    if settings.parts < 2:
        raise ConfigError(f"config key '{where}.parts': {settings.parts} must be at least 2")
    return settings


def anchors_of(model: Mapping[str, Json]) -> tuple[int, dict[str, Json]]:
    """Return the number of anchors, and the model of the GP that extends the prior. Raises ConfigError for no anchors,
    and for a GP without a constant mean and a stationary kernel on the raw inputs."""
    anchors = read(int, model.get("anchors"), "config", "model.anchors")
    if anchors < 1:
        raise ConfigError(f"model setting 'anchors': {anchors} must be at least 1")
    own = {key: value for key, value in model.items() if key != "anchors"}
    if own.get("mean") != "constant" or own.get("kernel") == "dot_product" or own.get("features"):
        raise ConfigError(f"model {own}: EmpGP extends a constant mean by a stationary kernel on the raw inputs")
    return anchors, own

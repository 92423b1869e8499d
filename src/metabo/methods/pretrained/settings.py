"""The settings of training by each objective (hyperbo §7.2, §7.5)."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TypeAlias

from metabo.errors import ConfigError, unknown
from metabo.plan.typed import read
from metabo.records.files import Json

OBJECTIVES = ["nll", "ekl", "ekl_nll"]


@dataclass(frozen=True)
class NLLSettings:
    """Objective "nll": Adam on mini-batches of `batch` rows of each task. `decay` is the last learning rate as a share
    of the first."""

    objective: str
    learning_rate: float
    steps: int
    batch: int
    decay: float = 1.0
    outputs: str = "raw"


@dataclass(frozen=True)
class EKLSettings:
    """Objective "ekl": L-BFGS on `matched_points` matched points of each block (0: all)."""

    objective: str
    steps: int
    matched_points: int
    outputs: str = "raw"


@dataclass(frozen=True)
class JointSettings:
    """Objective "ekl_nll": L-BFGS on EKL + `nll_weight` x NLL over `batch` rows of each task, drawn once."""

    objective: str
    steps: int
    matched_points: int
    batch: int
    nll_weight: float
    outputs: str = "raw"


Objective: TypeAlias = NLLSettings | EKLSettings | JointSettings


def read_objective(method: str, settings: Mapping[str, Json]) -> Objective:
    """Read the settings of training. Raises ConfigError if they name an unknown objective or are not the settings of
    that objective."""
    objective, where = settings["objective"], f"methods.{method}.pretrain"
    kind = {"nll": NLLSettings, "ekl": EKLSettings, "ekl_nll": JointSettings}.get(str(objective))
    if kind is None:
        raise unknown("objective", str(objective), OBJECTIVES)
    known = {field.name for field in fields(kind)} - {"objective"}
    needed = {field.name for field in fields(kind) if field.default is MISSING} - {"objective"}
    found = set(settings) - {"objective"}
    if not needed <= found <= known:
        raise ConfigError(
            f"config key '{where}': objective '{objective}' reads {', '.join(sorted(needed))}; "
            f"got {', '.join(sorted(found - (known - needed)))}"
        )
    return read(kind, settings, "config", where)

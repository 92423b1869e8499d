"""The settings that the policies of several methods share."""

from dataclasses import dataclass
from typing import Literal

PI_THRESHOLD = 0.1
"""The margin of probability of improvement (hyperbo §7.2)."""


@dataclass(frozen=True)
class FixedSettings:
    """Settings of a policy whose GP does not change: the margin of PI."""

    pi_threshold: float = PI_THRESHOLD


@dataclass(frozen=True)
class ReadingSettings:
    """Settings of `metabo.bo.readings`: the margin of PI, its unit (that of the outputs, or their standard deviation),
    and whether the variance is multiplied by n/(n-1)."""

    pi_threshold: float = PI_THRESHOLD
    margin: Literal["outputs", "deviations"] = "outputs"
    unbiased: bool = False


@dataclass(frozen=True)
class RefitSettings:
    """Settings of a policy that re-fits after every observation: the number of L-BFGS steps, and the margin of PI."""

    refit_steps: int
    pi_threshold: float = PI_THRESHOLD

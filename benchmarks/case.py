"""What one implementation gives to be measured."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """`repeat` does the work once and returns how many units (steps, iterations) it was; it is warm.

    `trace_s` and `compile_s` are seconds spent before, None where nothing is compiled.
    """

    repeat: Callable[[], int]
    trace_s: float | None = None
    compile_s: float | None = None

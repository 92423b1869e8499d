"""What one implementation gives to be measured."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """`repeat` does the work once and returns how many units (steps, iterations) it was; it is warm.

    `trace_s` and `compile_s` are seconds spent before, None where nothing is compiled. `facts`: numbers to be stated
    beside the time, under the names of `report.FACTS`; they may change until the end.
    """

    repeat: Callable[[], int]
    trace_s: float | None = None
    compile_s: float | None = None
    facts: dict[str, float] = field(default_factory=dict)

    def turn(self) -> float:
        """Do the work once; return the wall time in milliseconds per unit."""
        start = time.perf_counter()
        units = self.repeat()
        return 1e3 * (time.perf_counter() - start) / units


@dataclass(frozen=True)
class Timed:
    """Work whose time is not the wall time of a repetition: `turn` takes it, in milliseconds per unit.

    It returns one number, or one for each size of a curve. The other fields are those of `Case`.
    """

    turn: Callable[[], float | list[float]]
    trace_s: float | None = None
    compile_s: float | None = None
    facts: dict[str, float] = field(default_factory=dict)


def curve(cases: Sequence[Case]) -> Timed:
    """Return the same work at several sizes as one: a turn measures each size once, in the given order."""

    def total(seconds: list[float | None]) -> float | None:
        known = [value for value in seconds if value is not None]
        return sum(known) if known else None

    traced, compiled = total([case.trace_s for case in cases]), total([case.compile_s for case in cases])
    return Timed(lambda: [case.turn() for case in cases], traced, compiled)

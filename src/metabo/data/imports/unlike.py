"""Studies of an import whose outcomes are unlike those of the others: another unit, or another quantity."""

import math
from collections.abc import Mapping, Sequence
from statistics import median, quantiles

FAR = 10.0
"""Spreads between the medians of outcomes of one unit, at most."""
WIDER = 100.0
"""How much wider the spread of outcomes of one unit may be, at most."""
FEWEST = 4
"""The fewest outcomes with which a study is compared with others."""


def remarks(outcomes: Mapping[str, Sequence[float]], where: str) -> list[str]:
    """Return a line for each study whose outcomes are unlike those of more than half of the others. `outcomes`: of each
    study, with the sign that they have in the history; `where`: the storage."""
    places = {name: _place(own) for name, own in outcomes.items() if len(own) >= FEWEST}
    found = []
    for name, place in places.items():
        others = [other for key, other in places.items() if key != name]
        unlike = [other for other in others if _unlike(place, other)]
        if 2 * len(unlike) > len(others):
            middle, spread = place
            usual, width = (median(numbers) for numbers in zip(*unlike, strict=True))
            found.append(
                f"{where}: outcomes of study '{name}' lie around {middle:.4g} (spread {spread:.2g}), those of others "
                f"around {usual:.4g} (spread {width:.2g}): leave it out with --without '{name}' if it is another "
                "quantity, or give its unit under 'studies' in space.yaml (scale_by)"
            )
    return found


def _unlike(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Tell whether two studies with these medians and spreads have no common unit."""
    (middle, spread), (usual, width) = one, other
    apart = abs(middle - usual) / (max(spread, width) or 1.0)
    ratio = spread / width if spread > 0 and width > 0 else 1.0
    return apart > FAR or not 1 / WIDER <= ratio <= WIDER


def _place(values: Sequence[float]) -> tuple[float, float]:
    """Return median and interquartile range."""
    low, _, high = quantiles(values, n=4)
    return median(values), high - low if math.isfinite(high - low) else 0.0

"""The page's figures as SVG: few marks, axes with round numbers, and text that stays legible on a phone."""

import math
import sys
from collections.abc import Collection, Sequence
from html import escape
from typing import NamedTuple

from metabo.tuner.page.facts import PredictedTrial

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 44


LEAST, MOST = math.log(5e-324), math.log(sys.float_info.max)
"""The logarithms of the ends of a float's range; an axis with room beyond them ends there."""


class Axis(NamedTuple):
    """Numbers from `low` to `high` along `length` units from `start`; on a log scale if `log`."""

    low: float
    high: float
    start: float
    length: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the position of a number."""
        low, high, now = (math.log(one) if self.log else one for one in (self.low, self.high, value))
        return self.start + self.length * (now - low) / (high - low)


def axis(values: Sequence[float], start: float, length: float, log: bool = False) -> Axis:
    """Return an axis that covers the numbers, with some room."""
    seen = [math.log(one) if log else one for one in values]
    low, high = min(seen), max(seen)
    room = 0.05 * (high - low) or max(abs(high) * 0.05, 0.5)
    ends = low - room, high + room
    low, high = map(_exp, ends) if log else ends
    return Axis(low, high, start, length, log)


def _exp(value: float) -> float:
    return math.exp(min(max(value, LEAST), MOST))


def ticks(low: float, high: float, log: bool, most: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`, about `most` of them at most."""
    if log and high / low >= 10:
        powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        every = -(-len(powers) // most)
        return [float(f"1e{power}") for power in powers[::every]]
    size = (high - low) / most
    power = 10.0 ** math.floor(math.log10(size))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= size)
    return [float(f"{k * step:.12g}") for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def best_so_far(
    trials: Sequence[tuple[int, float | None]],
    best: Sequence[float | None],
    name: str,
    log: bool,
    out: Collection[int] = (),
) -> str:
    """Draw the outcome of each finished trial, which comes with its number, as a dot, or as a ring if that number is
    among `out`, and the best so far as a line. `name` is that of the outcome."""
    known = [one for one in (*(outcome for _, outcome in trials), *best) if one is not None]
    x, y = _x([1, max(len(best), 2)]), _y(known, log)
    steps, before = [], None
    for number, value in enumerate(best, start=1):
        if value is not None:
            place = f"{x.at(number):.1f}"
            steps.append(f"M{place} {y.at(value):.1f}" if before is None else f"H{place}V{y.at(value):.1f}")
            before = value
    ring = {number: ' class="out"' for number in out}
    dots = [
        f'<circle{ring.get(number, "")} cx="{x.at(place):.1f}" cy="{y.at(value):.1f}" r="3.2">'
        f"<title>trial {number}: {value:.6g}</title></circle>"
        for place, (number, value) in enumerate(trials, start=1)
        if value is not None
    ]
    marks = f'<g class="dots">{"".join(dots)}</g><path class="line" d="{"".join(steps)}"/>'
    whole = [one for one in ticks(x.low, x.high, False) if one == int(one) and one >= 1]
    return _framed(marks, x, y, whole, "finished trials", name, "Best outcome so far")


def predicted_against_observed(rows: Sequence[PredictedTrial], name: str, log: bool) -> str:
    """Draw each trial's predicted median against its outcome, with the central 90 % interval, and the diagonal."""
    values = [number for row in rows for number in (row.outcome, row.median)]
    x, y = axis(values, LEFT, WIDTH - LEFT - RIGHT, log), axis(values, HEIGHT - BOTTOM, TOP - HEIGHT + BOTTOM, log)
    marks = [f'<path class="diagonal" d="M{LEFT} {HEIGHT - BOTTOM}L{WIDTH - RIGHT} {TOP}"/>']
    for number, outcome, middle, low, high in rows:
        place, ends = x.at(outcome), [y.at(min(max(end, y.low), y.high)) for end in (low, high)]
        said = f"trial {number}: {outcome:.6g}, predicted {middle:.4g} ({low:.4g} to {high:.4g})"
        marks.append(f'<path class="range" d="M{place:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>')
        marks.append(f'<circle cx="{place:.1f}" cy="{y.at(middle):.1f}" r="3.2"><title>{escape(said)}</title></circle>')
    drawn = f'<g class="dots">{"".join(marks)}</g>'
    return _framed(drawn, x, y, ticks(x.low, x.high, log, 4), f"observed {name}", f"predicted {name}", "Predictions")


def _x(values: Sequence[float]) -> Axis:
    return axis(values, LEFT, WIDTH - LEFT - RIGHT)


def _y(values: Sequence[float], log: bool) -> Axis:
    return axis(values, HEIGHT - BOTTOM, TOP - HEIGHT + BOTTOM, log)


def _framed(marks: str, x: Axis, y: Axis, xs: Sequence[float], below: str, beside: str, title: str) -> str:
    """Put axes with ticks and names around marks. `below` and `beside` are the names; `title` is for screen readers."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for value in ticks(y.low, y.high, y.log):
        place = f"{y.at(value):.1f}"
        parts.append(f'<path class="grid" d="M{LEFT} {place}H{right}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{place}" dy=".32em" text-anchor="end">{_short(value)}</text>')
    for value in xs:
        place = f"{x.at(value):.1f}"
        parts.append(f'<path class="tick" d="M{place} {bottom}v4"/>')
        parts.append(f'<text x="{place}" y="{bottom + 17}" text-anchor="middle">{_short(value)}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>{marks}')
    middle = (LEFT + right) / 2
    parts.append(f'<text class="name" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(_cut(below))}</text>')
    turned = f"translate(13 {(TOP + bottom) / 2}) rotate(-90)"
    parts.append(f'<text class="name" transform="{turned}" text-anchor="middle">{escape(_cut(beside))}</text></svg>')
    return "".join(parts)


def _short(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _cut(text: str) -> str:
    return text if len(text) <= 36 else f"{text[:35]}…"

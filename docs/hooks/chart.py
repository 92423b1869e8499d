"""Regret curves drawn from the tables of a page of docs/, so that a picture says what the tables say."""

import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from docs.hooks import prose

AT = (1, 10, 30, 100)
"""Queries after which the tables have the regret."""
LEAST = 5e-4
"""What a regret of 0.000 is drawn as: half of the last digit."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 300, 230, 44, 10, 28, 34
STYLES = {
    "H-NLL": ("h_nll", "", "H-NLL: a GP trained on past tasks"),
    "H-EKL": ("h_ekl", "5 2", "H-EKL: the same, on inputs that past tasks share"),
    "Portfolio": ("portfolio", "2 2", "Portfolio: a look-up in past tasks, no model"),
    "STBOH": ("stboh", "7 3 2 3", "STBOH: a GP without past tasks"),
    "Rand": ("rand", "1 3", "Random search"),
}
"""Rows that are drawn: the method whose colour they have, dashes, and what the legend says."""


def panels(tables: Sequence[str], column: str) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return the regrets at `AT` in the columns of this name: the heading of the column before -> row -> numbers."""
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for table in tables:
        head, _, *rows = (prose.cells(row) for row in table.splitlines())
        for place in (place for place, name in enumerate(head) if name == column):
            numbers = {row[0]: _numbers(row[place]) for row in rows}
            found[head[place - 1]] = {row: values for row, values in numbers.items() if values}
    return found


def _numbers(cell: str) -> tuple[float, ...]:
    values = cell.split(",")
    return tuple(float(value) for value in values) if len(values) == len(AT) else ()


def colours(root: Path) -> dict[str, str]:
    """Return the colour of each method that is drawn."""
    entries = yaml.load((root / "src/metabo/plan/methods.yaml").read_text(), Loader=yaml.CSafeLoader)
    return {label: entries[name]["colour"] for label, (name, _, _) in STYLES.items()}


def shown(drawn: Mapping[str, Mapping[str, Sequence[float]]], colour: Mapping[str, str]) -> str:
    """Return a drawing for each panel, title -> method -> regrets at `AT`, and their legend."""
    curves = "".join(
        _panel(title, {row: rows[row] for row in STYLES if row in rows}, colour) for title, rows in drawn.items()
    )
    legend = "".join(
        f'<li><svg viewBox="0 0 34 10" aria-hidden="true"><path d="M1 5H33" {_stroke(colour[row], dashes)}/></svg>'
        f"{text}</li>"
        for row, (_, dashes, text) in STYLES.items()
    )
    return f'<div class="curves">{curves}</div>\n<ul class="legend">{legend}</ul>\n'


def _panel(title: str, rows: Mapping[str, Sequence[float]], colour: Mapping[str, str]) -> str:
    said = "; ".join(f"{row} {', '.join(f'{value:.3f}' for value in values)}" for row, values in rows.items())
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(f"{title}. {said}")}">']
    parts.append(f'<text class="title" x="{LEFT}" y="16">{html.escape(title)}</text>')
    for value, label in ((1, "1"), (0.1, "0.1"), (0.01, "0.01"), (0.001, "0.001")):
        y = _y(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for query in AT:
        parts.append(f'<text x="{_x(query):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{query}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 3}" text-anchor="middle">queries</text>')
    for row, values in rows.items():
        points = [(_x(query), _y(value)) for query, value in zip(AT, values, strict=True)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="{path}" {_stroke(colour[row], STYLES[row][1])}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" {_stroke(colour[row], "")}/>' for x, y in points]
    return "".join([*parts, "</svg>"])


def _stroke(colour: str, dashes: str) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'class="line" style="--line: {colour}"{dashed}'


def _x(query: float) -> float:
    return LEFT + 8 + (WIDTH - LEFT - RIGHT - 20) * math.log10(query) / 2


def _y(value: float) -> float:
    least, most = math.log10(LEAST), 0.0
    return TOP + (HEIGHT - TOP - BOTTOM) * (most - math.log10(max(value, LEAST))) / (most - least)

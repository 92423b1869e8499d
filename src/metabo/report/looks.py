"""Looks that methods have, and free ones for a new method: `metabo list looks`."""

from collections.abc import Iterable, Iterator
from itertools import product

from metabo.plan import registry
from metabo.plan.runs import SCORED
from metabo.plots import colours, look
from metabo.plots.look import Look

FREE = 5
"""How many free looks are listed; these differ from each other, too."""
STEPS = tuple(f"{step:02x}" for step in range(0, 256, 51))
LIGHTNESS = (25.0, 60.0)
"""Of a free colour: darker ones pass for black, lighter ones are hard to see on white."""


def lines() -> list[str]:
    """List colour, marker and dashes of every method, and some looks that are free, as an entry has them."""
    taken = {name: look.of(name) for name in registry.methods()}
    free = free_looks(FREE)
    return [
        *(f"{name:24} {_entry(one)}" for name, one in taken.items()),
        *(f"{'free':24} {_entry(one)}" for one in free),
    ]


def _entry(one: Look) -> str:
    dashes = ", ".join(f"{part:g}" for part in one.dashes)
    return f'colour: "{one.colour}"  marker: "{one.marker}"  dashes: [{dashes}]'


def shown_together() -> dict[str, Look]:
    """Return the looks of the methods that one figure may show: one for each label, without variants, which are shown
    with each other only."""
    plain = [name for name in registry.methods() if not registry.method(name).variant_of]
    return {name: look.of(name) for name in {registry.method(name).label: name for name in plain}.values()}


def free_looks(count: int) -> list[Look]:
    """Return up to `count` looks that differ from those of all methods, and from each other, as tests of looks ask."""
    taken = [*shown_together().values(), *(look.of(f"h_nll-{name}") for name in SCORED)]
    found: list[Look] = []
    for colour in _spread([one.colour for one in taken]):
        if len(found) == count:
            break
        if all(colours.distance(colour, one.colour) >= colours.LEAST for one in found):
            found += list(_patterns(colour, [*taken, *found]))[:1]
    return found


def _spread(taken: Iterable[str]) -> list[str]:
    """Return colours that full vision can tell from all that are taken, those farthest from them first."""
    there = list(taken)
    nearest = {}
    for colour in map("".join, product("#", STEPS, STEPS, STEPS)):
        least = min(colours.distance(colour, other) for other in there)
        if least >= colours.LEAST and LIGHTNESS[0] <= colours.lab(colour)[0] <= LIGHTNESS[1]:
            nearest[colour] = least
    return sorted(nearest, key=lambda colour: -nearest[colour])


def _patterns(colour: str, taken: list[Look]) -> Iterator[Look]:
    """Yield the looks of a colour with markers and dashes that no other look has together, and that differ in both from
    each look whose colour some reader could take for this one."""
    alike = [one for one in taken if any(colours.distance(colour, one.colour, vision) < colours.LEAST
                                         for vision in colours.DEFICIENCIES)]  # fmt: skip
    pairs = {(one.marker, one.dashes) for one in taken}
    markers = sorted({one.marker for one in taken} | {*look.MARKERS})
    dashes = sorted({one.dashes for one in taken} | {*look.DASHES})
    for marker, pattern in product(markers, dashes):
        alone = all(marker != one.marker and pattern != one.dashes for one in alike)
        if alone and pattern and (marker, pattern) not in pairs:
            yield Look("", colour, marker, pattern)

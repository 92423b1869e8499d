"""How each method looks in every figure and table: label, colour, marker and dash pattern. This does not use
matplotlib.

All four come from the method's registration (methods.yaml). A test makes sure that every pair of methods can be told
apart without colour. A run's look depends only on its own name, so registering another method or split changes no
figure.
"""

import zlib
from typing import NamedTuple

from metabo.errors import unknown
from metabo.plan import registry, splits
from metabo.plan.runs import ACQUISITIONS, RunId

MARKERS = ("<", ">", "p", "h", "*", "H")
DASHES: tuple[tuple[float, ...], ...] = ((5, 1, 1, 1), (2, 2), (8, 1.5), (1, 2.5), (4, 1, 4, 3), (6, 2.5))
REDUCED: tuple[tuple[float, ...], ...] = ((1.5, 3.5), (4, 4), (8, 3.5), (5, 3, 1.5, 3), (2.5, 2.5, 2.5, 6))
"""Dash patterns of priors on less data: sparser than a method's own, with its marker, hollow."""


class Look(NamedTuple):
    """How one method is drawn: `dashes` is an on-off pattern in points, () for a solid line; a `hollow` marker is white
    with a rim of the colour."""

    label: str
    colour: str
    marker: str
    dashes: tuple[float, ...]
    hollow: bool = False

    @property
    def face(self) -> str:
        """Colour of the marker."""
        return "white" if self.hollow else self.colour

    @property
    def rim(self) -> tuple[str, float]:
        """Colour and width in points of the marker's edge."""
        return (self.colour, 1.0) if self.hollow else ("white", 0.4)


DEALT = (
    ("clustered", "crossed_matched", "held_out_points_100", "others_points_400", "others_tasks_3"),
    ("clustered_2000", "crossed_matched_candidates", "held_out_points_1000", "others_points_100", "others_points_800",
     "others_tasks_8"),
    ("clustered_first", "others_points_20"),
    ("held_out_tasks_2", "others_points_200", "others_tasks_13"),
    ("crossed_candidates", "held_out_points_10", "others_points_4", "others_tasks_18"),
)  # fmt: skip
"""The splits of each pattern of REDUCED. Any other split gets one by the checksum of its name; if a figure shows two of
the same pattern, name one of them here."""

COMPARED = {
    "pi": Look("PI", "#0072b2", "o", ()),
    "ei": Look("EI", "#e69f00", "s", (4, 1.5)),
    "ucb3": Look("UCB 3", "#009e73", "^", (1, 1.2)),
}
"""Looks of the acquisition functions of one method (hyperbo D.2)."""


def of(name: str) -> Look:
    """Return the look of ``method`` or ``method-acquisition``, either also with ``@split``: priors on less data; or of
    an acquisition alone, where a panel holds one method.

    Raises ConfigError for an unregistered method, acquisition or split.
    """
    if name in COMPARED:
        return COMPARED[name]
    run = RunId.parse(name)
    if run.split:
        return _on(of(str(run.on(""))), run.split)
    entry, acquisition = registry.method(run.method), run.acquisition
    if not acquisition:
        return Look(entry.label, entry.colour, entry.marker, entry.dashes)
    # Another acquisition of a method keeps its colour and marker and takes dashes by its place in the list, so that
    # methods with one acquisition are told apart, and acquisitions of one method.
    if acquisition not in ACQUISITIONS:
        raise unknown("acquisition", acquisition, ACQUISITIONS)
    free = [dashes for dashes in DASHES if dashes != entry.dashes]
    turn, place = divmod(list(ACQUISITIONS).index(acquisition), len(free))
    label = f"{entry.label} ({ACQUISITIONS[acquisition]})"
    marker = MARKERS[(turn - 1) % len(MARKERS)] if turn else entry.marker  # the next turn has each pattern again
    return Look(label, entry.colour, marker, free[place])


def _on(plain: Look, split: str) -> Look:
    """Return the look of a method on a split: what the split leaves out follows the label (hyperbo Figure 19: "-100").

    Colour and marker stay; the marker becomes hollow and the dashes sparse, as a method's own dashes may be so too. A
    split that leaves out nothing changes nothing."""
    own, past = splits.entry(split), splits.past(split)
    label = plain.label + (f"-{past.points}" if past.points else "")
    words = [f"{past.tasks} tasks"] if past.tasks else []
    words += ["matched points"] if past.rows == "matched" else []
    words += ["matched candidates"] if own.candidates == "matched" else []
    words += ["new rows"] if own.candidates == "rest" else []
    label = ", ".join([label, *words])
    if label == plain.label:
        return plain
    chosen = next((place for place, dealt in enumerate(DEALT) if split in dealt), zlib.crc32(split.encode()))
    return plain._replace(label=label, dashes=REDUCED[chosen % len(REDUCED)], hollow=True)

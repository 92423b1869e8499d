"""Whether the texts of a figure can be read: none overlaps another one, none is cut off."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from metabo.plots import look


def texts(figure: Figure) -> list[tuple[str, object]]:
    """Drawn texts with their boxes, tick labels beyond the axes left out."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    beyond = set()
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        beyond |= {id(label) for t in ticks if not low <= t.get_loc() <= high for label in (t.label1, t.label2)}
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and id(t) not in beyond]
    return [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in found]


def assert_readable(figure: Figure, methods: list[str]) -> None:
    """No two texts overlap and none is cut off; slanted method names are left out: their boxes cross, they do not."""
    labels = {look.of(m).label for m in methods}
    box, found = figure.bbox, texts(figure)
    for (a, one), (b, two) in itertools.combinations(found, 2):
        width, height = min(one.x1, two.x1) - max(one.x0, two.x0), min(one.y1, two.y1) - max(one.y0, two.y0)
        assert {a, b} <= labels or width < 1 or height < 1, (a, b)
    for text, t in found:
        assert box.x0 <= t.x0 and t.x1 <= box.x1 and box.y0 <= t.y0 and t.y1 <= box.y1, text

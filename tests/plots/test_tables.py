"""Tables that are drawn as figures."""

import numpy as np

from metabo.plots import tables


def test_a_title_that_fits_stands_in_one_line():
    """Whatever the room: 14 letters times 7.7 over 7.7 is less than 14."""
    title = "Times of cm-BO"
    assert all(tables._lines(title, room, 10.0) == [title] for room in np.linspace(2.0, 12.0, 999))
    assert len(tables._lines(title, 0.6, 10.0)) > 1

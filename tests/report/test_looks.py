"""Looks that are free: those that `metabo list looks` offers a new method pass the tests of looks."""

import itertools

import pytest

from metabo import cli
from metabo.plan import registry
from metabo.plan.runs import SCORED
from metabo.plots import colours, look
from metabo.report import looks


def test_every_method_is_listed_with_its_look_and_free_ones_below(capsys):
    cli.main(["list", "looks"])
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == [*registry.methods(), *["free"] * looks.FREE]
    assert 'h_ekl                    colour: "#6a3d9a"  marker: "s"  dashes: [4, 1.5]' in said


@pytest.fixture(scope="module")
def free():
    return looks.free_looks(looks.FREE)


def test_free_looks_are_apart_from_all_others_and_from_each_other(free):
    taken = [*looks.shown_together().values(), *(look.of(f"h_nll-{name}") for name in SCORED)]
    assert len(taken) > 30
    pairs = [*itertools.product(free, taken), *itertools.combinations(free, 2)]
    for one, other in pairs:
        assert (one.marker, one.dashes) != (other.marker, other.dashes)
        assert colours.distance(one.colour, other.colour) >= colours.LEAST
        both = one.marker != other.marker and one.dashes != other.dashes
        near = [v for v in colours.DEFICIENCIES if colours.distance(one.colour, other.colour, v) < colours.LEAST]
        assert both or not near, (one, other, near)


def test_matplotlib_draws_free_looks_and_white_paper_shows_them(free):
    from matplotlib.lines import Line2D

    for one in free:
        assert one.marker in Line2D.filled_markers and one.dashes
        assert 25 <= colours.lab(one.colour)[0] <= 60  # at least 3:1 against white


def test_a_look_that_is_taken_is_offered_no_more(free, monkeypatch):
    known = looks.shown_together()
    monkeypatch.setattr(looks, "shown_together", lambda: known | {"new": free[0]})
    again = looks.free_looks(looks.FREE)
    assert free[0].colour not in {one.colour for one in again}
    assert free[0][2:] not in {one[2:] for one in again}

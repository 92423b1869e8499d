"""Looks of the methods: unique without colour, and safe for colour-blind readers."""

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from metabo.errors import ConfigError
from metabo.plan import registry, splits
from metabo.plan.runs import SCORED
from metabo.plots import colours, style
from metabo.plots import look as looks

ENTRIES = {name: registry.method(name) for name in registry.methods()}
# Online tuning registers a method a second time, under the same label: no figure shows both. Variants of a method are
# shown with each other only; H-NLL and H-EKL have structures of the same label.
PLAIN = [name for name in ENTRIES if not ENTRIES[name].variant_of]
METHODS = list({ENTRIES[name].label: name for name in PLAIN}.values())
STRUCTURES = list({entry.label: name for name, entry in ENTRIES.items() if entry.own_features}.values())
ACQUISITIONS = list(looks.COMPARED)
FREE = "`metabo list looks` names free ones"
SHOWN = {"methods": METHODS, "structures": STRUCTURES, "acquisitions": ACQUISITIONS}


def test_lab_of_known_colours():
    np.testing.assert_allclose(colours.lab("#ffffff"), [100, 0, 0], atol=0.05)
    np.testing.assert_allclose(colours.lab("#ff0000"), [53.24, 80.09, 67.20], atol=0.1)
    assert colours.distance("#000000", "#ffffff") == pytest.approx(100, abs=0.05)


def test_colours_that_a_deficiency_takes_for_each_other_are_close_to_it_alone():
    red, green = "#a05a2c", "#5a7a2c"
    assert colours.distance(red, green, "deuteranopia") < colours.LEAST < colours.distance(red, green)


@pytest.mark.parametrize("together", SHOWN)
@pytest.mark.parametrize("deficiency", colours.DEFICIENCIES)
def test_pairs_that_look_alike_differ_in_marker_and_dashes(deficiency, together):
    """Colours closer than 12 (Delta E 1976) are not relied on: such a pair needs another marker and dash pattern."""
    for a, b in itertools.combinations(SHOWN[together], 2):
        first, second = looks.of(a), looks.of(b)
        distance = colours.distance(first.colour, second.colour, deficiency)
        apart = distance >= 12 or (first.marker != second.marker and first.dashes != second.dashes)
        assert apart, f"{a} and {b} look alike ({distance:.1f}); {FREE}"


@pytest.mark.parametrize("together", SHOWN)
def test_colours_differ_for_full_vision(together):
    for a, b in itertools.combinations(SHOWN[together], 2):
        distance = colours.distance(looks.of(a).colour, looks.of(b).colour)
        assert distance >= 12, f"the colours of {a} and {b} are close ({distance:.1f}); {FREE}"


@pytest.mark.parametrize("together", SHOWN)
def test_marker_and_dash_combinations_are_unique(together):
    names = [*SHOWN[together], *(f"h_nll-{acquisition}" for acquisition in SCORED if together == "methods")]
    for a, b in itertools.combinations(names, 2):
        assert looks.of(a)[2:] != looks.of(b)[2:], f"{a} and {b} have one marker and dash pattern; {FREE}"


def test_many_acquisitions_stay_apart(monkeypatch):
    many = {f"a{i}": f"A {i}" for i in range(len(looks.MARKERS) * len(looks.DASHES))}
    monkeypatch.setattr(looks, "ACQUISITIONS", many)
    assert len({looks.of(f"h_nll-{name}")[2:] for name in many}) == len(many)


def test_one_acquisition_of_many_methods_leaves_them_apart_without_colour():
    together = ("stboh", "ablr", "h_nll", "emp_gp")  # hyperbo_x15
    for acquisition in SCORED:
        assert len({looks.of(f"{name}-{acquisition}").marker for name in together}) == len(together)
    for name, acquisition in itertools.product(ENTRIES, SCORED):
        assert looks.of(f"{name}-{acquisition}")[2:] != looks.of(name)[2:], f"{name} and {name}-{acquisition}; {FREE}"


def test_structures_are_named_as_in_the_paper():
    labels = {f"{mean} {size}" for mean in ("Zero", "Constant", "Linear MLP") for size in ("(4,)", "(8,)", "(32, 32)")}
    assert {looks.of(name).label for name in STRUCTURES} == labels | {"Linear MLP (128, 128)"}
    for name in [name for name, entry in ENTRIES.items() if entry.own_features]:
        model, label = ENTRIES[name].model, looks.of(name).label
        assert label.endswith(str(tuple(model["features"])))
        assert label.startswith({"zero": "Zero", "constant": "Constant", "linear_mlp": "Linear MLP"}[model["mean"]])
        same_mean = [other for other in STRUCTURES if ENTRIES[other].model["mean"] == model["mean"]]
        assert len({looks.of(other).marker for other in same_mean}) == 1


def test_labels_come_from_the_registry_and_name_another_acquisition():
    assert looks.of("h_nll").label == "H-NLL"
    assert looks.of("h_nll-ei").label == "H-NLL (EI)"
    seen = [looks.of(f"h_nll-{a}") for a in ("ei", "ucb3")] + [looks.of("h_nll")]
    assert len({look.colour for look in seen}) == 1
    assert len({(look.marker, look.dashes) for look in seen}) == 3


LOOKS_OF_SPLITS = {
    "h_nll@held_out": ("H-NLL", ()),
    "h_nll@held_out_points_10": ("H-NLL-10", (2.5, 2.5, 2.5, 6)),
    "h_nll@held_out_points_100": ("H-NLL-100", (1.5, 3.5)),
    "h_nll@held_out_points_1000": ("H-NLL-1000", (4, 4)),
    "h_ekl@others_points_20": ("H-EKL-20", (8, 3.5)),
    "h_ekl@others_points_200": ("H-EKL-200", (5, 3, 1.5, 3)),
    "h_ekl-ei@crossed_candidates": ("H-EKL (EI), matched candidates", (2.5, 2.5, 2.5, 6)),
}


def test_another_split_changes_no_look(monkeypatch):
    """A figure is not drawn again when a split is added that it does not show."""
    before = {f"h_nll@{split}": looks.of(f"h_nll@{split}") for split in splits.names()}
    assert {name: looks.of(name)[::3] for name in LOOKS_OF_SPLITS} == LOOKS_OF_SPLITS
    names = splits.names()
    monkeypatch.setattr(splits, "names", lambda: ["a", *names, "held_out_points_50"])
    assert {name: looks.of(name) for name in before} == before


def test_a_new_split_gets_a_pattern_by_its_name(monkeypatch):
    entry, past = splits.entry("held_out_points_100"), splits.past("held_out_points_100")
    monkeypatch.setattr(splits, "entry", lambda name: entry)
    monkeypatch.setattr(splits, "past", lambda name: past)
    seen = [looks.of(f"h_nll@{name}") for name in ("held_out_points_50", "another", "a_third", "held_out_points_50")]
    assert seen[0] == seen[3] and seen[0].label == "H-NLL-100"
    assert all(look.dashes in looks.REDUCED for look in seen)
    assert len({look.dashes for look in seen}) > 1


def test_a_split_has_one_pattern():
    dealt = [split for group in looks.DEALT for split in group]
    assert len(set(dealt)) == len(dealt) and len(looks.DEALT) == len(looks.REDUCED)
    assert set(dealt) <= set(splits.names())


def test_methods_of_one_label_look_the_same():
    seen = {}
    for name in registry.methods():
        assert seen.setdefault(looks.of(name).label, looks.of(name)) == looks.of(name), name
    assert len({seen[looks.of(name).label] for name in PLAIN}) == len(METHODS) < len(PLAIN)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("count", [1, 2, 50, 200])
def test_lines_on_each_other_keep_their_markers_in_sight(count, log):
    marks = [style.marks(count, place, log) for place in range(12)]
    assert all(places and min(places) >= 0 and max(places) < count for places in marks)
    assert count < 200 or len({max(places) for places in marks}) == len(marks)


def test_markers_are_spread_over_the_axis_as_it_is():
    even, log = np.array(style.marks(1001, 3)), np.array(style.marks(1001, 3, log=True))
    np.testing.assert_allclose(np.diff(even), 1000 / style.MARKS, atol=1)
    np.testing.assert_allclose(np.diff(np.log(log[2:] + 1)), np.log(1001) / style.MARKS, atol=0.05)


def test_unknown_method_is_named_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown method 'h_nl'\. Did you mean 'h_nll'"):
        looks.of("h_nl")


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        ("Ranks (pd1_mini)", ["Ranks (pd1_mini)"]),
        (f"{'Ranks ' * 10}(pd1_mini, 24 tasks)", [("Ranks " * 10).strip(), "(pd1_mini, 24 tasks)"]),
    ],
)
def test_a_long_title_breaks_before_its_bracket(title, lines):
    figure = Figure(figsize=(style.WIDEST, 3.0))
    figure.suptitle(title)
    style.fit_title(figure)
    assert figure.get_suptitle().split("\n") == lines


def test_a_title_of_many_words_fills_lines():
    figure = Figure(figsize=(style.WIDEST, 3.0))
    figure.suptitle("rank " * 60)
    style.fit_title(figure)
    assert "\n" in figure.get_suptitle() and figure.texts[0].get_window_extent().width <= figure.bbox.width
    style.fit_title(Figure())  # no title, no change

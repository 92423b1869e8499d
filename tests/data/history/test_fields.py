"""One parameter: what its cells mean, to the last digit, and that what is printed is read again."""

import math

import numpy as np
import pytest

from metabo.data.history.fields import Field, OutsideSpace

RATE = Field("rate", "float", 1e-10, 100.0, log=True)
SHARE = Field("share", "float", 0.0, 1e6)
COUNT = Field("count", "int", 1.0, 4e9)
MIXED = Field(
    "mixed", "categorical", choices=(64, "64", " sgd ", "sgd", "", '"64"', True, "True", 0.5, "a\rb", "\u2028")
)


@pytest.mark.parametrize(
    "cell", [-5e-8, 0, 1e-30, "1e-30", 1e-10 * (1 - 2e-9), 100.0000002, math.nan, 10**400, "9" * 400]
)
def test_what_lies_outside_a_log_scale_is_no_bound(cell):
    with pytest.raises(ValueError, match=r"is outside|is not a number"):
        RATE.read(cell)


@pytest.mark.parametrize("field", [SHARE, Field("x", "float", -1e-3, 1e6)])
@pytest.mark.parametrize("beyond", [-1.1e-3, 1e6 * (1 + 2e-9)])
def test_what_lies_outside_a_linear_scale_is_no_bound(field, beyond):
    with pytest.raises(ValueError, match="is outside"):
        field.read(beyond)


def test_a_bound_may_have_lost_digits_of_its_own():
    assert RATE.read(1e-10 * (1 - 5e-10)) == 1e-10 and RATE.read("100.00000005") == 100.0
    with pytest.raises(ValueError, match="is outside"):
        SHARE.read(-1e-12)  # 0 has no digits to lose


def test_whole_numbers_are_exact():
    assert COUNT.read("4000000000") == COUNT.read(4e9) == COUNT.read("4e9") == 4_000_000_000
    for cell in (4_000_000_001, "4000000001", 0, "0.9999999999"):
        with pytest.raises(ValueError, match=r"is outside \[1, 4e\+09\]|is not a whole number"):
            COUNT.read(cell)
    assert not COUNT.same(1, 3) and not COUNT.same(3_999_999_999, 4_000_000_000) and COUNT.same(7, 7)
    widest = Field("n", "int", 0.0, 2.0**53)
    assert widest.read("9007199254740991") == 2**53 - 1 and widest.read(2**53) == 2**53
    with pytest.raises(ValueError, match=r"is outside \[0, 9007199254740992\]"):
        widest.read("9007199254740993")  # as a float it would be the bound


def test_numbers_are_the_same_up_to_digits_lost_in_printing():
    assert RATE.same(1e-10, 1e-10 * (1 + 5e-10)) and not RATE.same(1e-10, 1.00001e-10)
    assert not SHARE.same(0.0, 1e-12) and not SHARE.same(1e-3, 1.1e-3)
    narrow = Field("x", "float", 1e9, 1e9 + 2)  # 1e-9 of its values is half of its range
    assert not narrow.same(1e9, 1e9 + 0.1) and narrow.same(1e9, 1e9)
    assert RATE.same(None, None) and not RATE.same(None, 1e-10)


def test_numbers_are_the_same_in_single_precision():
    for value in (1e-10, 3e-5, 0.1, 0.7):
        kept = float(np.float32(value))
        assert kept != value and RATE.same(value, kept) and RATE.same(kept, value)
        assert not RATE.same(value, float(np.nextafter(np.float32(value), np.float32(1))))
    assert not RATE.same(0.1, 0.1 * (1 + 2e-8)), "not what single precision keeps of it"
    narrow = Field("x", "float", 1e7, 1e7 + 2)  # single precision has two numbers there
    assert not narrow.same(1e7 + 0.1, 1e7)
    wide = Field("x", "float", 1e-60, 1e300)
    assert not wide.same(1e-60, 1e-50) and not wide.same(1e300, 9e299)


def test_a_bound_may_be_in_single_precision():
    above = Field("x", "float", 0.0, 0.1)
    assert float(np.float32(0.1)) > 0.1 and above.read(float(np.float32(0.1))) == 0.1
    below = Field("x", "float", 0.7, 1.0)
    assert float(np.float32(0.7)) < 0.7 and below.read(float(np.float32(0.7))) == 0.7
    with pytest.raises(ValueError, match="is outside"):
        above.read(0.1 * (1 + 2e-8))


@pytest.mark.parametrize("choice", MIXED.choices)
def test_a_choice_is_read_as_it_was_given_and_as_it_was_printed(choice):
    for found in (MIXED.read(choice), MIXED.parse(MIXED.written(choice)), MIXED.parse(MIXED.written(choice).strip())):
        assert found == choice and type(found) is type(choice)


def test_choices_that_a_table_confuses_are_printed_in_quotes():
    printed = [MIXED.written(choice) for choice in MIXED.choices]
    assert printed[:5] == ["64", '"64"', '" sgd "', "sgd", ""] and len(set(printed)) == len(printed)
    assert all(text.isprintable() for text in printed)
    plain = Field("plain", "categorical", choices=("64", "sgd"))
    assert [plain.written(choice) for choice in plain.choices] == ["64", "sgd"] and plain.read(64) == "64"


def test_long_and_many_choices_are_told_in_a_short_line():
    field = Field("x", "categorical", choices=("x" * 300, *(f"choice {n}" for n in range(30))))
    assert (
        field.allowed.startswith("one of xxx")
        and "[...]" in field.allowed
        and "choice 6 (and 23 more)" in field.allowed
    )
    with pytest.raises(ValueError, match="is not one of xxx") as error:
        field.parse("none of these")
    assert len(str(error.value)) < 250
    assert Field("x", "categorical", choices=("a", "b")).allowed == "one of a, b"


def test_a_choice_that_begins_like_a_formula_is_printed_in_quotes():
    field = Field("x", "categorical", choices=("=1+1", "-x", "@a", "+b", "-1", "adam"))
    printed = [field.written(choice) for choice in field.choices]
    assert printed == ['"=1+1"', '"-x"', '"@a"', '"+b"', "-1", "adam"]
    assert [field.parse(cell) for cell in printed] == [field.parse(one) for one in field.choices] == list(field.choices)


def test_a_text_that_could_be_two_choices_is_not_guessed():
    spaced = Field("spaced", "categorical", choices=(" sgd", "sgd ", "adam"))
    with pytest.raises(ValueError, match='could be " sgd" or "sgd ": write one of these, quotes included'):
        spaced.parse("sgd")
    assert Field("one", "categorical", choices=(" sgd ", "adam")).parse("sgd") == " sgd "


def test_a_choice_may_be_called_as_what_has_no_value():
    assert Field("x", "categorical", choices=("none", "adam")).blank("nan")
    assert not Field("x", "categorical", choices=("none", "adam")).blank("none")
    assert Field("x", "categorical", choices=(" nan ", "adam")).parse("nan") == " nan "
    assert not Field("x", "categorical", choices=(" nan ", "adam")).blank("nan")


@pytest.mark.parametrize(
    ("field", "cell", "outside"),
    [(RATE, 0, True), (RATE, "fast", False), (COUNT, "4000000001", True), (COUNT, "1.5", False), (MIXED, "65", True),
     (MIXED, "SGD", False), (Field("x", "ordinal", choices=(1, 2)), "two", False)],
)  # fmt: skip
def test_what_another_space_could_have_is_no_slip(field, cell, outside):
    with pytest.raises(ValueError, match=r"is outside|is not") as error:
        field.read(cell)
    assert isinstance(error.value, OutsideSpace) == outside


def test_choices_are_read_from_numpy_and_in_other_spellings():
    assert MIXED.read(np.int64(64)) == 64 and MIXED.read(np.bool_(True)) is True and MIXED.read(np.str_("64")) == "64"
    sizes = Field("sizes", "ordinal", choices=(16, 9007199254740993, 9007199254740992))
    assert sizes.read("16.0") == sizes.read(16.0) == 16
    assert sizes.read("9007199254740993") == 9007199254740993 and sizes.read(9007199254740992) == 9007199254740992
    assert Field("flag", "categorical", choices=("true", "false")).read(True) == "true"


@pytest.mark.parametrize(
    "field",
    [
        Field("x", "float", 1e-300, 1e300, log=True),
        Field("x", "float", -1e300, 1e300),
        Field("x", "float", 0.0, 1e-300),
        Field("x", "float", 1e30, 1e30 * (1 + 1e-9), log=True),
        Field("x", "int", -(2.0**53), 2.0**53),
        RATE,
        COUNT,
    ],
)
def test_values_of_every_range_lie_in_it_and_where_they_belong(field):
    found = [field.at(u) for u in np.linspace(0, 1, 101)]
    assert found == sorted(found) and len(set(found)) == 101 and all(map(math.isfinite, found))
    assert found[0] == field.low and found[-1] == field.high
    assert all(field.parse(field.written(value)) == value for value in found)
    np.testing.assert_allclose([field.unit(value) for value in found], np.linspace(0, 1, 101), atol=1e-4)

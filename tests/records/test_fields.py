"""Fields of JSON records: each type is read as it stands, any other one is refused with file, place and remedy."""

import pytest

from metabo.errors import DataError
from metabo.records.fields import Fields

RECORD = {
    "stage": "bo", "wall_s": 2, "git": None, "losses": [1, 2.5], "sizes": [[3], [1, 2]],
    "spec": {"seed": 0, "grid": [{"space": "s"}, {"space": 3}]}, "inputs": {"a.npz": "x"}, "x64": True,
}  # fmt: skip
FIELDS = Fields(RECORD, "bo.json", "run the job again")


def test_fields_are_read_as_they_stand():
    assert FIELDS.text("stage") == "bo" and FIELDS.number("wall_s") == 2
    assert FIELDS.numbers("losses") == [1, 2.5] and FIELDS.lists("sizes") == [[3], [1, 2]]
    assert FIELDS.texts("inputs") == {"a.npz": "x"}
    assert FIELDS.object("spec").number("seed") == 0
    assert FIELDS.object("spec").objects("grid")[0].text("space") == "s"
    assert FIELDS.maybe("stage") and not FIELDS.maybe("git") and not FIELDS.maybe("absent")


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda f: f.text("absent"), "field 'absent' is missing"),
        (lambda f: f.text("wall_s"), "field 'wall_s' is 2, must be text"),
        (lambda f: f.number("x64"), "field 'x64' is True, must be a number"),
        (lambda f: f.numbers("sizes"), "field 'sizes' is [[3], [1, 2]], must be a list of numbers"),
        (lambda f: f.lists("losses"), "field 'losses.0' is 1, must be a list of numbers"),
        (lambda f: f.object("losses"), "field 'losses' is [1, 2.5], must be an object"),
        (lambda f: f.objects("stage"), "field 'stage' is 'bo', must be a list of objects"),
        (lambda f: f.object("spec").object("seed"), "field 'spec.seed' is 0, must be an object"),
        (lambda f: f.object("spec").objects("grid")[1].text("space"), "field 'spec.grid.1.space' is 3, must be text"),
    ],
)  # fmt: skip
def test_other_types_are_refused_with_their_place(read, message):
    with pytest.raises(DataError) as refused:
        read(FIELDS)
    assert str(refused.value) == f"bo.json: {message}; run the job again"


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(DataError, match=r"is '9{59}\.\.\., must be a number"):
        Fields({"wall_s": "9" * 500}, "bo.json").number("wall_s")

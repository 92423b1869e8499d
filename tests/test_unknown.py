"""What is said of an unknown name."""

import pytest

from metabo import errors


def test_all_names_are_listed_where_none_is_near():
    names = [f"name_{k:02d}" for k in range(errors.LISTED + 5)]
    assert str(errors.unknown("method", "zzz", names)) == f"unknown method 'zzz'. Valid: {', '.join(names)}"


def test_a_near_one_shortens_the_list():
    names = [f"name_{k:02d}" for k in range(errors.LISTED + 5)]
    said = str(errors.unknown("method", "nam_34", names))
    assert said.startswith("unknown method 'nam_34'. Did you mean 'name_34'? Valid: name_00, ")
    assert said.endswith("name_29 and 5 more")
    assert str(errors.unknown("m", "a1", ["a2", "b"])).endswith("Did you mean 'a2'? Valid: a2, b")


@pytest.mark.parametrize(
    ("name", "valid", "meant"),
    [
        ("hyperbo_fig8", ["hyperbo_fig28", "hyperbo_fig08", "hyperbo_fig18"], "hyperbo_fig08"),
        ("FIG008", ["fig80", "fig8"], "fig8"),
        ("C1", ["C10", "C01", "C11"], "C01"),
        ("fig0", ["fig00", "fig10"], "fig00"),
        ("fig80", ["fig08", "fig88"], "fig88"),
        ("FIG08", ["fig8", "fig08"], "fig08"),
    ],
)
def test_zeros_before_a_number_do_not_count(name, valid, meant):
    assert errors.nearest(name, valid) == f" Did you mean '{meant}'?"

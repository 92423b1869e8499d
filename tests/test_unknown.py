"""What is said of an unknown name."""

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

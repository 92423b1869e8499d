"""A module of the package that an edit broke is told with file, line and remedy."""

import importlib.util

import pytest

from metabo.plan import broken


@pytest.fixture
def error(tmp_path, monkeypatch):
    """Return a function that gives the error of importing a module with this text."""
    monkeypatch.setattr(broken, "PACKAGE_ROOT", tmp_path)

    def importing(text, folder=tmp_path):
        (folder / "sections.py").write_text(text)
        spec = importlib.util.spec_from_file_location("sections", folder / "sections.py")
        with pytest.raises(Exception) as caught:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        return caught.value

    return importing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nclass A:\n    y: Som[str] = 1\n", ":3: NameError: name 'Som' is not defined; mend this file"),
        ("class A(\n", ":1: '(' was never closed; mend this file and run the same command"),
        ("import nothing_of_the_kind\n", ":1: ModuleNotFoundError: No module named 'nothing_of_the_kind'; mend"),
        ("from metabo.errors import Nothing\n", ":1: ImportError: cannot import name 'Nothing' from"),
        ("\n\nint('a\\nb')", ":3: ValueError: invalid literal for int() with base 10: 'a\\nb'; mend"),
    ],
)
def test_an_edit_that_cannot_be_imported_is_one_line(error, tmp_path, text, said):
    found = str(broken.told(error(text)))
    assert found.startswith(f"{tmp_path / 'sections.py'}{said}") and "\n" not in found


def test_what_breaks_elsewhere_is_not_told(error, tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    broken.PACKAGE_ROOT = tmp_path / "ours"  # the fixture puts it back
    assert broken.told(error("1 / 0\n", tmp_path / "theirs")) is None
    assert broken.told(error("class A(\n", tmp_path / "theirs")) is None
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018 (it shall fail)
    assert broken.told(caught.value) is None

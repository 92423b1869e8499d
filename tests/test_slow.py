"""The list of tests that take long names tests that are there, and is what a timed run says."""

import ast

from tests import slow


def functions(file):
    """Return the test functions of a file, those of classes behind the class."""
    found = set()
    for node in ast.parse((slow.ROOT / file).read_text()).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        place = [file, node.name] if isinstance(node, ast.ClassDef) else [file]
        found |= {"::".join([*place, one.name]) for one in inside if isinstance(one, ast.FunctionDef)}
    return found


def test_every_listed_test_is_there():
    files = {name.partition("::")[0] for name in slow.listed()}
    assert [name for name in sorted(slow.listed() - set().union(*map(functions, files)))] == []


def test_the_list_is_written_from_a_report(tmp_path):
    report = tmp_path / "report.xml"
    cases = [
        ("tests.gp.test_fit", "test_a[0.5-b]", 0.1), ("tests.gp.test_fit", "test_a[c]", 0.7),
        ("tests.tuner.test_samplers", "test_b", 0.3), ("tests.workflow.test_code.TestFaults", "test_c", 12.0),
        ("tests.test_slow", "test_every_listed_test_is_there", 9.0),
    ]  # fmt: skip
    text = "".join(f'<testcase classname="{place}" name="{name}" time="{time}"/>' for place, name, time in cases)
    report.write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    assert slow.written(slow.of_report(report)) == (
        "tests/gp/test_fit.py::test_a\ntests/workflow/test_code.py::TestFaults::test_c\n"
    )


def test_the_functions_of_a_listed_name_are_left_out(request):
    """All cases, by the mark that `make test-fast` selects by."""
    long = slow.listed()
    for item in request.session.items:
        assert slow.function_of(item.nodeid) not in long or item.get_closest_marker("slow")
    assert slow.function_of("tests/x/test_y.py::TestZ::test_a[b::c]") == "tests/x/test_y.py::TestZ::test_a"

"""Which tests `make test-fast` leaves out: those that took long when all were last timed, and those marked by hand.

`tests/slow.txt` lists the functions of which a case took more than `SECONDS`, set-up included. `make test-times` runs
all tests and writes it anew; until then, a new test that takes long is marked `@pytest.mark.slow`.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "slow.txt"
SECONDS = 0.3
ALWAYS = "tests/test_slow.py::"  # the list is checked wherever it is used, or a renamed test is told by a full run only


def function_of(nodeid: str) -> str:
    """Return the function of a test: `tests/x/test_y.py::TestZ::test_a[case]` without the case."""
    return nodeid.partition("[")[0]


def listed() -> set[str]:
    """Return the functions in the list."""
    return set(LIST.read_text().split())


def of_report(report: Path) -> Iterable[tuple[str, float]]:
    """Return function and seconds of each test of a report in JUnit's format."""
    for case in ElementTree.parse(report).iter("testcase"):
        *modules, last = case.get("classname", "").split(".")
        places = [Path(*modules, last).with_suffix(".py"), Path(*modules).with_suffix(".py")]
        file, classes = (places[0], []) if (ROOT / places[0]).is_file() else (places[1], [last])
        name = function_of(case.get("name", ""))
        yield "::".join([file.as_posix(), *classes, name]), float(case.get("time", 0))


def written(times: Iterable[tuple[str, float]]) -> str:
    """Return the text of the list."""
    long = {name for name, seconds in times if seconds > SECONDS and not name.startswith(ALWAYS)}
    return "".join(f"{name}\n" for name in sorted(long))


if __name__ == "__main__":
    LIST.write_text(written(of_report(Path(sys.argv[1]))))

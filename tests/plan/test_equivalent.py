"""Changes that changed no result keep the digests of before; `python -m tests.plan.test_equivalent` prints the hashes
of the modules that differ from the last commit."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from metabo.plan import codegraph, digests, equivalent
from metabo.plan.equivalent import Change

ROOT = Path(__file__).parents[2]
LISTING = """
import json
from metabo.plan import codegraph, digests
root = codegraph.PACKAGE_ROOT
modules = [path for path in codegraph.everything() if path.suffix == ".py"]
print(json.dumps({path.relative_to(root).as_posix(): (%s) for path in modules}))
"""
BEFORE, NOW = "digests.plain(path)[0], digests._content(path), digests.of(path)", "digests.plain(path)"


def test_hashes_go_back_through_all_changes_of_a_module():
    listed = (
        Change("a.py", ("c1", "c2"), ("d1", "d2"), "first"),
        Change("b.py", ("x1", "x2"), ("y1", "y2"), "another module"),
        Change("a.py", ("c2", "c3"), ("d2", "d3"), "second"),
    )
    assert [equivalent.before(value, listed) for value in ("c3", "d3", "c2", "d2", "x2")] == [
        "c1", "d1", "c1", "d1", "x1"
    ]  # fmt: skip
    assert [equivalent.before(value, listed) for value in ("c1", "c4", None)] == ["c1", "c4", None]


@pytest.mark.parametrize("module", sorted({change.module for change in equivalent.CHANGES}))
def test_every_change_is_of_the_code_that_is_there(module):
    """One that is not stands for nothing any more: an edit came after it. Then delete it, or list that edit too."""
    last = [change for change in equivalent.CHANGES if change.module == module][-1]
    assert (last.content[1], last.digest[1]) == digests.plain(codegraph.PACKAGE_ROOT / module)


def test_every_change_says_why_and_names_a_test_that_is_there():
    for change in equivalent.CHANGES:
        named = [word.strip("().,;:") for word in change.why.split() if word.startswith("tests/")]
        assert named and all((ROOT / name).is_file() for name in named), change.module


def hashes(source: Path, which: str) -> dict[str, list[str]]:
    """Return the hashes of all modules of the package in a folder `src`."""
    command = [sys.executable, "-c", LISTING % which]
    done = subprocess.run(command, cwd=source.parent, env={"PYTHONPATH": str(source)}, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    """Print an entry for every module whose content differs from the last commit.

    The second hashes of modules that refer to one another are right once the entries of those referred to are there.
    """
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", "HEAD", "src"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        old, new = hashes(Path(folder, "src"), BEFORE), hashes(ROOT / "src", NOW)
    for module in sorted(old.keys() & new.keys()):
        (plain, before, whole), (now, all_now) = old[module], new[module]
        if plain != now and not codegraph.keeps_books(codegraph.PACKAGE_ROOT / module):
            print(f'    Change("{module}", ("{before}", "{now}"), ("{whole}", "{all_now}"), ""),')


if __name__ == "__main__":
    main()

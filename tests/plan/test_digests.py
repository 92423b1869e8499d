"""Digests of modules: what a comment, a move or another format leaves as it is, and what an edit of code changes."""

import ast
import hashlib
import os
import re
import shutil
import zlib
from pathlib import Path

import pytest

from metabo.errors import MetaboError
from metabo.plan import codegraph, digests, snapshot, syntax

PACKAGE = codegraph.PACKAGE_ROOT


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Return a function that writes a package in place of the real one and gives the digest of each module."""
    count = iter(range(1000))

    def made(sources: dict[str, str]) -> dict[str, str | None]:
        root = tmp_path / str(next(count)) / "metabo"
        for name, text in {"__init__.py": "", **sources}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        monkeypatch.setattr(codegraph, "PACKAGE_ROOT", root)
        return {name: digests.of(root / name) for name in sources}

    return made


KERNELS = "SCALE = 2.0\n\ndef f(x):\n    return SCALE * x\n\ndef g(x):\n    return x\n"
USER = "from metabo import kernels\n\ndef h(x):\n    return kernels.f(x)\n"


@pytest.mark.parametrize(
    "same",
    [
        "# a comment\n" + KERNELS,
        '"""A docstring."""\n' + KERNELS,
        KERNELS.replace("2.0\n", '2.0\n"""What it is."""\n'),
        KERNELS.replace("f(x):\n", 'f(x):\n    """Scale."""\n'),
        KERNELS.replace("\n\n", "\n\n\n\n").replace("SCALE * x", "(SCALE\n            * x)"),
        KERNELS.replace("2.0", "2.00"),
    ],
)
def test_comments_docstrings_and_format_leave_a_digest(build, same):
    assert build({"a.py": same})["a.py"] == build({"a.py": KERNELS})["a.py"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("2.0", "2"), ("2.0", "2.5"), ("SCALE * x", "x * SCALE"), ("f(x)", "f(x, y=None)"), ("return x", "")],
)
def test_an_edit_of_code_changes_a_digest(build, old, new):
    edited = KERNELS.replace(old, new) if new else KERNELS.replace("    return x\n", "    pass\n")
    assert build({"a.py": edited})["a.py"] != build({"a.py": KERNELS})["a.py"]


def test_documentation_alone_has_no_digest(build):
    assert build({"a.py": '"""Room."""\n# nothing yet\n'}) == {"a.py": None}


@pytest.mark.parametrize(
    "user",
    [
        "from metabo.gp import matern\n\ndef h(x):\n    return matern.f(x)\n",
        "from .gp import matern\n\ndef h(x):\n    '''Say.'''\n    return matern.f(x)\n",
        "def h(x):\n    from metabo.gp import matern\n    return matern.f(x)\n",
    ],
)
def test_a_move_and_a_new_name_of_a_module_leave_all_digests(build, user):
    before = build({"kernels.py": KERNELS, "user.py": USER})
    after = build({"gp/__init__.py": "", "gp/matern.py": KERNELS, "user.py": user})
    assert (after["gp/matern.py"], after["user.py"]) == (before["kernels.py"], before["user.py"])


def test_a_name_is_followed_to_the_module_that_defines_it(build):
    user = "from metabo.{} import f\n\ndef h(x):\n    return f(x)\n"
    direct = build({"kernels.py": KERNELS, "user.py": user.format("kernels")})
    through = build(
        {"kernels.py": KERNELS, "p/__init__.py": "from metabo.kernels import f", "user.py": user.format("p")}
    )
    assert through["user.py"] == direct["user.py"]


def test_another_modules_function_of_the_same_name_changes_the_caller(build):
    both = {"kernels.py": KERNELS, "means.py": KERNELS.replace("2.0", "3.0")}
    imports = "from metabo import kernels, means\n\ndef h(x):\n    return {}.f(x) + {}.g(x)\n"
    first = build({**both, "user.py": imports.format("kernels", "means")})
    second = build({**both, "user.py": imports.format("means", "kernels")})
    assert first["user.py"] != second["user.py"]


def test_an_edit_of_the_bookkeeping_changes_no_module_that_imports_it(build):
    """Every stage imports `stages.common`, half the package `errors`: a new field of the sidecar re-ran everything."""
    user = "from metabo.errors import MetaboError as E\nfrom metabo.stages import common\nx = common.f(E)\n"

    def digest(errors, common):
        return build({"errors.py": errors, "stages/__init__.py": "", "stages/common.py": common, "user.py": user})

    first, second = digest("class MetaboError: ...\n", "def f(x): ...\n"), digest("MetaboError = 1\n", "f = 2\n")
    assert first["user.py"] == second["user.py"]
    assert first["errors.py"] != second["errors.py"], "the sidecar's hash tells them apart"


def test_an_alias_that_others_use_counts(build):
    def user(text):
        return build({"kernels.py": KERNELS, "user.py": text})["user.py"]

    assert user("from metabo.kernels import f as a, g as b\n") != user("from metabo.kernels import g as a, f as b\n")


def test_a_name_with_a_second_meaning_is_compared_as_it_is_written(build):
    """`kernels` is a module and a parameter: the digest may change by a move, but it never hides an edit."""
    text = USER + "\ndef k(kernels):\n    return {}\n"
    values = [build({"kernels.py": KERNELS, "user.py": text.format(body)})["user.py"] for body in ("kernels", "None")]
    assert values[0] != values[1]


def test_the_reach_of_an_import_counts_for_the_name_of_a_builtin(build):
    """In `h` it is Python's `sum`, until the import stands at the top."""
    line, uses = "from metabo.kernels import f as sum\n", "    return sum(x)\n\ndef h(x):\n    return sum(x)\n"
    texts = [f"def g(x):\n    {line}{uses}", f"{line}def g(x):\n{uses}"]
    inner, outer = (build({"kernels.py": KERNELS, "user.py": text})["user.py"] for text in texts)
    assert inner != outer


def test_the_place_of_a_star_import_counts(build):
    star, own = "from metabo.kernels import *\n", "SCALE = 3.0\n"
    before, after = (build({"kernels.py": KERNELS, "user.py": text})["user.py"] for text in (star + own, own + star))
    assert before != after


def test_no_module_of_ours_reads_documentation():
    """Digests leave docstrings out, so no result may depend on one."""
    readers = [path for path in PACKAGE.rglob("*.py") if re.search(r"__doc__|getdoc", path.read_text())]
    assert readers == []


def test_modules_that_import_each_other_have_digests(build):
    first = build({"a.py": "from metabo import b\nx = 1\ny = b.z\n", "b.py": "def z():\n    from metabo import a\n"})
    second = build({"a.py": "from metabo import b\nx = 2\ny = b.z\n", "b.py": "def z():\n    from metabo import a\n"})
    assert all(first.values()) and first["a.py"] != second["a.py"]


def rewritten(tmp_path, monkeypatch, edit) -> list[str]:
    """Return the sorted digests of the real package after `edit(text)` of every module."""
    root = tmp_path / "metabo"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    for path in root.rglob("*.py"):
        path.write_text(edit(path.read_text()))
    monkeypatch.setattr(codegraph, "PACKAGE_ROOT", root)
    return sorted(filter(None, map(digests.of, codegraph.everything())))


@pytest.mark.slow
def test_every_module_written_anew_has_the_same_digest(tmp_path, monkeypatch):
    """The whole package printed from its syntax trees: no comment, another format."""
    now = sorted(filter(None, map(digests.of, codegraph.everything())))
    assert len(now) > 250 and len(set(now)) == len(now)
    assert rewritten(tmp_path, monkeypatch, lambda text: ast.unparse(ast.parse(text)) + "\n# end\n") == now


@pytest.mark.slow
def test_every_changed_constant_changes_its_module(tmp_path, monkeypatch):
    now = {path: digests.of(path) for path in codegraph.everything()}

    class Change(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.Constant(node.value + 1) if type(node.value) in (int, float) else node

    changed = 0
    root = tmp_path / "metabo"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    edited = {}
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text())
        text = ast.unparse(Change().visit(tree))
        edited[path] = text != ast.unparse(ast.parse(path.read_text()))
        path.write_text(text)
    monkeypatch.setattr(codegraph, "PACKAGE_ROOT", root)
    for path, differs in edited.items():
        if differs:
            changed += 1
            assert digests.of(path) != now[PACKAGE / path.relative_to(root)], path
    assert changed > 200


class TestFiles:
    """The files that rules list."""

    def test_the_file_of_some_modules_comes_back_as_it_was(self, tmp_path, build):
        build({"a.py": KERNELS, "b.py": USER.replace("kernels", "a"), "empty.py": ""})
        folder = tmp_path / "code"
        every = codegraph.everything()
        listed = Path(digests.listed(every, folder))
        value = digests.value_of(str(listed))
        assert value == digests.together(every) and listed.read_text() == f"{value}\n"
        assert listed.parent.parent == folder and len(list(listed.parent.iterdir())) == 1
        time = listed.stat().st_mtime_ns
        assert digests.listed(every, folder) == str(listed) and listed.stat().st_mtime_ns == time
        fewer = Path(digests.listed([path for path in every if path.name != "b.py"], folder))
        assert fewer != listed, "a job that runs other modules has another input"
        listed.unlink()
        assert digests.listed(every, folder) == str(listed) and listed.read_text() == f"{value}\n"

    def test_the_index_is_written_once(self, tmp_path, build):
        now = build({"a.py": KERNELS, "b.py": USER.replace("kernels", "a"), "empty.py": ""})
        folder = tmp_path / "code"
        digests.record(folder)
        index = {name: value for value, name in map(str.split, (folder / digests.INDEX).read_text().splitlines())}
        assert index == {"metabo/a.py": now["a.py"], "metabo/b.py": now["b.py"]}
        times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
        digests.record(folder)
        assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times

    def test_a_file_is_as_old_as_the_code_that_it_stands_for(self, tmp_path, build):
        """A result that was copied here after the code was read is newer, although its job is planned later."""
        build({"a.py": KERNELS})
        digests.record(tmp_path)
        os.utime(tmp_path / digests.INDEX, (1_000_000_000, 1_000_000_000))
        listed = Path(digests.listed(codegraph.everything(), tmp_path))
        assert listed.stat().st_mtime == 1_000_000_000
        build({"a.py": KERNELS.replace("2.0", "3.0")})
        digests.record(tmp_path)
        assert Path(digests.listed(codegraph.everything(), tmp_path)).stat().st_mtime > 1_000_000_000

    def test_a_damaged_file_is_written_again(self, tmp_path, build):
        build({"a.py": KERNELS})
        listed = Path(digests.listed(codegraph.everything(), tmp_path))
        listed.write_text("?")
        assert digests.listed(codegraph.everything(), tmp_path) == str(listed)
        assert listed.read_text() == f"{digests.value_of(str(listed))}\n"

    def test_a_module_with_a_fault_does_not_keep_the_others_out(self, tmp_path, build):
        build({"a.py": KERNELS})
        (codegraph.PACKAGE_ROOT / "broken.py").write_text("x = = 1\n")
        digests.record(tmp_path)
        assert [line.split()[1] for line in (tmp_path / digests.INDEX).read_text().splitlines()] == ["metabo/a.py"]
        with pytest.raises(MetaboError, match=r"broken\.py:1: cannot be parsed"):
            digests.listed(codegraph.everything(), tmp_path)

    def test_a_stale_digest_names_the_file(self, build, tmp_path):
        build({"a.py": KERNELS, "b.py": "x = 1\n"})
        digests.record(tmp_path)
        planned = digests.value_of(digests.listed(codegraph.everything(), tmp_path))
        digests.require_planned(planned, codegraph.everything())
        build({"a.py": KERNELS.replace("2.0", "3.0"), "b.py": "x = 1\n"})
        message = r"changed since the run was planned \([^ ]*a\.py\); run the same command"
        with pytest.raises(MetaboError, match=message):
            digests.require_planned(planned, codegraph.everything(), tmp_path)

    def test_a_table_is_compared_by_its_name_and_bytes(self, build):
        """Code asks for a table by name: two that swap their names are another input."""
        first = build({"t.csv": "x\n1\n", "u.csv": "x\n2\n"})
        swapped = build({"t.csv": "x\n2\n", "u.csv": "x\n1\n"})
        assert len({*first.values(), *swapped.values()}) == 4
        assert build({"sub/t.csv": "x\n1\n"})["sub/t.csv"] == first["t.csv"], "a moved folder changes nothing"


SOURCES = {"a.py": KERNELS, "b.py": "import jax.numpy\n" + USER.replace("kernels", "a")}


class TestRecord:
    """What an earlier process read."""

    @pytest.fixture(autouse=True)
    def project(self, build, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        build(SOURCES)
        self.parsed = []
        read = syntax.read
        monkeypatch.setattr(syntax, "read", lambda path, *rest: self.parsed.append(path.name) or read(path, *rest))

    def read(self):
        """Return what a process that finds a record says (imports, packages and digests), and what it parsed."""
        caches = (codegraph.first_state, codegraph._recorded, codegraph._read, codegraph._known, codegraph.imported)
        for cached in (*caches, digests._digest, digests._content):
            cached.cache_clear()
        self.parsed.clear()
        paths = codegraph.everything()
        said = [(codegraph.imported(path), codegraph.packages(path), digests.of(path)) for path in paths]
        return said, sorted({*self.parsed} - {"__init__.py"})

    def edit(self, name="a.py"):
        path = codegraph.PACKAGE_ROOT / name
        path.write_text(KERNELS.replace("2.0", "3.0"))
        return path

    def test_a_second_process_parses_nothing_and_says_the_same(self):
        first, parsed = self.read()
        assert parsed == ["a.py", "b.py"] and (["metabo"], ["jax"], None) not in first
        digests.record()
        assert self.read() == (first, [])

    def test_after_an_edit_only_what_was_edited_is_parsed(self):
        old = self.read()[0]
        digests.record()
        self.edit()
        said, parsed = self.read()
        assert parsed == ["a.py"] and said[1] != old[1] and said[2] != old[2], "b.py takes its kernels from a.py"
        digests.record()
        assert self.read() == (said, [])

    def test_what_is_recorded_gives_the_digests_of_parsing_all_modules(self):
        digests.record()
        self.edit()
        said, parsed = self.read()
        snapshot.SYNTAX.unlink()
        assert self.read() == (said, ["a.py", "b.py"]) and parsed == ["a.py"]

    def test_another_reader_believes_nothing_of_the_syntax(self, monkeypatch):
        """Another Python, or other code that reads the modules."""
        digests.record()
        self.edit()
        monkeypatch.setattr(snapshot, "_reader", lambda: "another")
        assert self.read()[1] == ["a.py", "b.py"]

    def test_the_syntax_of_a_module_belongs_to_its_place(self):
        """A relative import means another module in another package."""
        content = b"from . import kernels\n"
        assert snapshot.parsed(content, "metabo.gp") != snapshot.parsed(content, "metabo.bo")

    def test_a_process_that_read_the_code_before_an_edit_records_no_digests(self):
        """It has the old digests in memory: with the new state they would be believed by everyone after it."""
        self.read()
        digests.record()
        old = digests.of(self.edit())
        digests.record()
        said, parsed = self.read()
        assert parsed == ["a.py"] and said[1][2] not in (None, old)

    def test_a_damaged_record_is_not_believed(self):
        said = self.read()[0]
        digests.record()
        snapshot.SYNTAX.unlink()
        whole = snapshot.FILE.read_text()
        for text in (whole.replace(said[1][2], "0" * 16), whole[:-9], "", "[]", "null"):
            snapshot.FILE.write_text(text)
            assert self.read() == (said, ["a.py", "b.py"])

    def test_damaged_syntax_is_not_believed(self):
        said = self.read()[0]
        digests.record()
        snapshot.FILE.unlink()
        whole = snapshot.SYNTAX.read_bytes()
        assert self.read() == (said, [])
        packed = zlib.compress(b"[]")
        sealed = hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed
        for content in (whole[:-9], whole[:80] + bytes([whole[80] ^ 1]) + whole[81:], b"", b"\n", sealed):
            snapshot.SYNTAX.write_bytes(content)
            assert self.read() == (said, ["a.py", "b.py"])

    def test_a_file_that_changes_while_it_is_read_is_not_recorded(self, build, tmp_path):
        build(SOURCES)
        root = codegraph.PACKAGE_ROOT
        before = snapshot.state(root)
        (root / "a.py").write_text("")
        snapshot.save({}, before, root, tmp_path / "read.json")
        assert not (tmp_path / "read.json").exists()


class TestBadCode:
    def test_a_module_that_cannot_be_parsed_names_file_and_line(self, build):
        with pytest.raises(MetaboError, match=re.escape("a.py:2: cannot be parsed")):
            build({"a.py": "x = 1\ny = = 2\n"})

    @pytest.mark.parametrize("content", [b"x = 1\0\n", b"x = '\xe9'\n"])
    def test_null_bytes_and_wrong_encodings_too(self, build, content):
        build({"a.py": ""})
        path = codegraph.PACKAGE_ROOT / "b.py"
        path.write_bytes(content)
        with pytest.raises(MetaboError, match=r"b\.py:1: cannot be parsed"):
            digests.of(path)

    def test_a_file_is_read_in_its_own_encoding(self, build):
        first = build({"a.py": "x = 'é'\n"})["a.py"]
        path = codegraph.PACKAGE_ROOT / "b.py"
        path.write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
        assert digests.of(path) == first

    def test_an_import_of_a_missing_module_names_file_and_line(self, build):
        with pytest.raises(MetaboError, match=r"a\.py:2: imports metabo\.nowhere, which is not in"):
            build({"a.py": "\nfrom metabo.nowhere import f\n"})
            codegraph.files(["metabo.a"])

    def test_a_missing_root_is_named(self, build):
        build({"a.py": ""})
        with pytest.raises(MetaboError, match=r"module 'metabo\.nowhere' is not in"):
            codegraph.files(["metabo.nowhere"])

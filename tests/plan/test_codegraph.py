"""The code files of a job: complete, transitive, and free of what the job does not run."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from metabo.errors import MetaboError
from metabo.plan import codegraph, registry
from metabo.plan.entries import MethodEntry
from metabo.plan.method import Method
from metabo.plan.typed import NOTHING

ROOT = Path(__file__).parents[2]
COMPUTE = ("pretrain", "evaluate", "bo")
METHODS = registry.methods("policy")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with every form of import, in place of the real one."""
    sources = {
        "__init__.py": "",
        "a.py": "from metabo.sub import leaf, NAME\nimport numpy as np",
        "b.py": "def f():\n    from .sub.deep import value\n    return value",
        "c.py": "import metabo.sub.deep as deep\nfrom metabo import a",
        "d.py": "from . import b",
        "alone.py": "import jax.numpy",
        "sub/__init__.py": "NAME = 1",
        "sub/leaf.py": "from ..e import x\nfrom . import sibling",
        "sub/sibling.py": "",
        "sub/deep.py": "value = 1",
        "e.py": "x = 1",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(codegraph, "PACKAGE_ROOT", tmp_path)
    return lambda roots: {p.relative_to(tmp_path).as_posix() for p in codegraph.files(roots)}


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("a", {"a.py", "sub/__init__.py", "sub/leaf.py", "sub/sibling.py", "e.py"}),
        ("b", {"b.py", "sub/__init__.py", "sub/deep.py"}),
        ("c", {"c.py", "a.py", "sub/__init__.py", "sub/deep.py", "sub/leaf.py", "sub/sibling.py", "e.py"}),
        ("d", {"d.py", "b.py", "sub/__init__.py", "sub/deep.py"}),
        ("alone", {"alone.py"}),
        ("sub.deep", {"sub/__init__.py", "sub/deep.py"}),
    ],
)
def test_every_form_of_import_is_followed(package, root, expected):
    assert package([f"metabo.{root}"]) == expected | {"__init__.py"}


def test_an_unknown_module_is_an_error(package):
    with pytest.raises(MetaboError, match=r"metabo\.nowhere"):
        package(["metabo.nowhere"])


def names(stage: str, spec: dict) -> set[str]:
    sources = codegraph.files(codegraph.stage_roots(stage, spec))
    return {p.relative_to(codegraph.PACKAGE_ROOT).as_posix() for p in sources}


def test_presentation_never_appears_in_a_compute_stage():
    for stage in COMPUTE:
        for method in METHODS:
            listed = names(stage, {"method": method})
            shown = ("plots/", "metrics/", "papers/", "artefacts/", "report/", "tuner/")
            assert not [n for n in listed if n.startswith(shown) or "notebook" in n], stage
            assert not listed & {"plan/config.py", "plan/catalogue.py", "cli.py"}, stage
    assert not [n for n in names("data", {"benchmark": "tables"}) if n.startswith(("plots/", "gp/", "bo/"))]


def test_a_job_depends_on_its_own_method_and_data_source_only():
    listed = names("pretrain", {"method": "h_nll"})
    assert "methods/pretrained/train.py" in listed
    assert not listed & {"methods/single_task/policy.py", "methods/random/policy.py"}
    assert not listed & {"bo/acquisition.py", "bo/policy.py", "bo/fixed_prior.py", "bo/loop.py"}  # BO trains nothing
    assert "methods/single_task/policy.py" in names("bo", {"method": "stbo"})
    assert {"bo/fixed_prior.py", "bo/acquisition.py"} <= names("bo", {"method": "h_nll"})
    listed = names("data", {"benchmark": "pd1"})
    assert "data/pd1.py" in listed and not listed & {"data/hpob.py", "data/tables.py"}


def test_a_training_that_starts_from_stored_priors_depends_on_their_module(monkeypatch):
    look = ("Label", "#000000", "o", ())
    parts = {
        "first": Method("methods.embedding.rfgp"),
        "second": Method("methods.random.policy", "bo.fixed_prior", report="methods.source_gps.clusters.report"),
    }
    entries = {
        "first": MethodEntry(*look, "first", "pi"),
        "second": MethodEntry(*look, "second", "pi", policy=NOTHING, fits="first"),
    }
    monkeypatch.setattr(registry, "_methods", lambda: entries)
    monkeypatch.setattr(registry, "made_of", lambda name: parts[name])
    assert {"methods/embedding/rfgp.py", "methods/random/policy.py"} <= names("pretrain", {"method": "second"})
    assert "methods/source_gps/clusters.py" in names("pretrain", {"method": "second"})  # `report` is in it
    assert not {"methods/embedding/rfgp.py", "methods/source_gps/clusters.py"} & names("bo", {"method": "second"})
    assert "methods/random/policy.py" not in names("pretrain", {"method": "first"})


@pytest.mark.parametrize(
    "paper", sorted(path.parent.name for path in codegraph.PACKAGE_ROOT.glob("papers/*/claims.yaml"))
)
def test_claims_depend_on_the_checks_that_their_paper_names_and_on_no_other_papers(paper):
    """Nothing imports these modules: if the stage did not list them, an edited check would judge nothing again."""
    papers = codegraph.PACKAGE_ROOT / "papers"
    listed = set(codegraph.inputs(codegraph.stage_roots("claims", {"paper": paper})))
    own = {*papers.glob(f"{paper}/checks.py"), *papers.glob(f"{paper}/checks/*.py")}
    others = {*papers.glob("*/checks.py"), *papers.glob("*/checks/*.py")} - own
    assert own and {*own, papers / "engine/claims/shared.py"} <= listed and not others & listed


def test_the_bookkeeping_is_there_and_alone_is_no_input():
    """By path: one of a file that moved would be an input of every job, and its base name would leave others out."""
    roots = [codegraph.module_name(path) for path in codegraph.everything() if path.suffix == ".py"]
    left_out = set(codegraph.files(roots)) - set(codegraph.inputs(roots))
    assert left_out == {codegraph.PACKAGE_ROOT / path for path in codegraph.BOOKKEEPING}


def test_another_file_of_a_bookkeeping_files_name_is_an_input(package, tmp_path):
    for name in ("stages/__init__.py", "stages/common.py", "sub/common.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    assert tmp_path / "stages/common.py" not in codegraph.inputs(["metabo.stages.common"])
    assert tmp_path / "sub/common.py" in codegraph.inputs(["metabo.sub.common"])


def test_a_benchmark_made_of_others_reads_their_files_not_their_loaders():
    listed = names("data", {"benchmark": "super_mini"})
    assert "data/combined.py" in listed and not listed & {"data/hpob.py", "data/tables.py", "data/pd1.py"}


@pytest.mark.parametrize("stage", ["pretrain", "bo"])
def test_the_list_holds_every_module_that_really_gets_imported(stage):
    """Independent check: import the stage's dependencies in a fresh process and look at sys.modules."""
    spec = {"method": "h_nll"}
    roots = codegraph.stage_roots(stage, spec)
    stage_file = codegraph.source(roots[0])
    inner = [ast.unparse(n) for n in ast.walk(ast.parse(stage_file.read_text())) if isinstance(n, ast.ImportFrom)]
    program = "\n".join(
        [*inner, *(f"import {r}" for r in roots), "import sys", "print(*[m.__file__ for n, m in sys.modules.items()"]
    )
    program += " if n.split('.')[0] == 'metabo'], sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    imported = {Path(line).resolve() for line in done.stdout.split()}
    assert len(imported) > 10
    assert imported <= {p.resolve() for p in codegraph.files(roots)}


def test_use_of_jax_is_seen_in_compute_stages_only():
    def uses(stage, spec):
        return codegraph.uses(codegraph.files(codegraph.stage_roots(stage, spec)), "jax")

    assert all(uses(stage, {"method": method}) for stage in COMPUTE for method in METHODS)
    assert not uses("data", {"benchmark": "tables"})
    assert not uses("notebook", {})


def test_the_imports_of_a_notebook(tmp_path):
    import nbformat.v4 as v4

    cells = [
        v4.new_markdown_cell("import metabo.gp"),
        v4.new_code_cell("%matplotlib inline\nfrom metabo.records import results"),
    ]
    path = tmp_path / "n.ipynb"
    path.write_text(__import__("nbformat").writes(v4.new_notebook(cells=cells)))
    assert codegraph.notebook_roots(path) == ["metabo.records", "metabo.records.results"]


@pytest.mark.parametrize(
    "text",
    [
        '{"cells": [{"cell_type": "code"',
        '{"nbformat": 4}',
        "[]",
    ],
)
def test_a_notebook_that_cannot_be_read_is_named(tmp_path, text):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    with pytest.raises(MetaboError, match=r"n\.ipynb: its code cells cannot be read \(.+\); mend the notebook"):
        codegraph.notebook_roots(path)


def test_a_cell_that_is_no_python_is_named_with_its_line(tmp_path):
    path = tmp_path / "n.ipynb"
    cells = [{"cell_type": "markdown", "id": "title", "source": ["x = ="]}]
    cells += [{"cell_type": "code", "id": "draw", "source": ["%matplotlib inline\n", "x = (1\n", "y = 2"]}]
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(MetaboError, match=r"n\.ipynb, cell 'draw', line 2: '\(' was never closed; mend the notebook"):
        codegraph.notebook_roots(path)


def test_tables_beside_a_package_belong_to_it():
    paper_numbers = {"tab05.csv", "tab06.csv"}
    assert paper_numbers <= {path.name for path in codegraph.files(["metabo.papers.hyperbo.printed"])}
    assert "timing.csv" in {path.name for path in codegraph.files(["metabo.papers.cmbo.printed"])}
    assert "pd1_tasks.csv" in {path.name for path in codegraph.files(["metabo.papers.engine.printed.tasknames"])}
    assert not paper_numbers & {path.name for path in codegraph.files(["metabo.stages.bo"])}


def test_every_table_of_the_package_belongs_to_some_module():
    """One in a folder without `__init__` would be read by jobs that do not depend on it."""
    tables = sorted(codegraph.PACKAGE_ROOT.rglob("*.csv"))
    assert tables and set(tables) <= set(codegraph.everything())


def test_reading_the_graph_takes_less_than_parsing_all_modules_and_imports_nothing_heavy():
    """Every plan reads it. In CPU time of one process, since the machine may be busy."""
    program = (
        "import ast, sys, time; begun = time.process_time();"
        "from metabo.plan import catalogue, codegraph, config, preflight;"
        "[codegraph.files(codegraph.stage_roots(s, {'method': 'h_nll'})) for s in ('pretrain', 'evaluate', 'bo')];"
        "read = time.process_time(); heavy = {'jax', 'pandas', 'matplotlib', 'scipy'} & set(sys.modules);"
        "[ast.parse(path.read_text()) for path in codegraph.PACKAGE_ROOT.rglob('*.py')];"
        "print((read - begun) / (time.process_time() - read), sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    share, heavy = done.stdout.split(maxsplit=1)
    assert heavy.strip() == "[]"
    assert float(share) < 1

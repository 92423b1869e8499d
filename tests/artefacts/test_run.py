"""The notebook runner refuses unknown parameters, keeps a failed notebook, publishes a good one."""

import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from metabo.artefacts import run as notebook
from metabo.errors import ConfigError, MetaboError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

DRAW = """
import os, pathlib, sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
import metabo
figure, axes = plt.subplots()
axes.plot(range(points))
figure.savefig(f"{out}/figure.pdf")
figure.savefig(f"{out}/figure.png")
row = [str(points), sys.executable, os.getcwd(), metabo.__file__]
pathlib.Path(out, "data.csv").write_text("points,python,folder,package\\n" + ",".join(row) + "\\n")
"""


@pytest.fixture
def template(tmp_path):
    """Return a function that writes a template with the given code after its parameters cell."""

    def write(code: str = DRAW, tags: tuple[str, ...] = ("parameters",)) -> Path:
        parameters = v4.new_code_cell("points = 2\nout = '.'", metadata={"tags": list(tags)})
        book = v4.new_notebook(cells=[parameters, v4.new_code_cell(code)])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = tmp_path / "template.ipynb"
        nbformat.write(book, path)
        return path

    return write


@pytest.fixture
def run(tmp_path):
    def call(template: Path, **parameters):
        out = tmp_path / "out" / "notebook.ipynb"
        parameters = {"out": str(out.parent), **parameters}
        return notebook.run(template, tmp_path / "logs" / "n.ipynb", out, parameters)

    return call


def test_an_unknown_parameter_is_refused_before_anything_runs(template, run, tmp_path):
    with pytest.raises(ConfigError, match=r"unknown parameter 'pionts'\. Did you mean 'points'\? Known: out, points"):
        run(template(), pionts=3)
    assert not (tmp_path / "out").exists() and not (tmp_path / "logs").exists()


def test_a_template_needs_a_parameters_cell(template, run, tmp_path):
    with pytest.raises(ConfigError, match="no cell tagged 'parameters'"):
        run(template(tags=()))
    (tmp_path / "template.ipynb").write_text("not json")
    with pytest.raises(ConfigError, match="not a readable notebook"):
        run(tmp_path / "template.ipynb")


def test_an_assignment_in_a_comment_is_no_parameter_and_hides_none(template, tmp_path):
    path = template()
    book = nbformat.read(path, as_version=4)
    book.cells[0].source = "points = 2  # or points = 3, with width = 4\nout = '.'"
    nbformat.write(book, path)
    notebook.check_parameters(path, {"points": 3, "out": "."})
    with pytest.raises(ConfigError, match=r"unknown parameter 'width'\. Known: out, points$"):
        notebook.check_parameters(path, {"width": 3})


def test_a_figure_that_is_shown_and_was_not_saved_is_told(template, run):
    shown = r"template\.ipynb: cell 'save': `artefacts\.show` finds no figure\.png in \S+"
    said = shown + r"; call `artefacts\.save\(figure, [^\n]*$"
    with pytest.raises(MetaboError, match=said) as error:
        run(template("from metabo.artefacts import api as artefacts\nartefacts.show(out, 'T', 'C')"))
    assert "Traceback" not in str(error.value)


DRAWN_BY = """
import importlib.util
spec = importlib.util.spec_from_file_location("drawing", "drawing.py")
drawing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(drawing)
drawing.draw()
"""


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("int('x')", "ValueError: invalid literal for int() with base 10: 'x'"),
        (
            "pd.DataFrame({'mean': [1.0]})['meen']",
            "KeyError: 'meen'; no column or key has that name: correct it, or give the table that column",
        ),
    ],
)
def test_a_drawing_that_fails_is_told_with_its_file_and_line(template, run, tmp_path, monkeypatch, fault, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drawing.py").write_text(f"import pandas as pd\n\n\ndef draw():\n    {fault}\n")
    with pytest.raises(MetaboError) as error:
        run(template(DRAWN_BY))
    last = str(error.value).splitlines()[-1]
    assert last.endswith(f"template.ipynb: cell 3 failed in drawing.py:5 with {said}")


def test_a_function_of_the_project_that_fails_is_told_by_its_path_there(template, run):
    with pytest.raises(MetaboError, match=r"cell 3 failed in src/metabo/metrics/speedups.py:\d+ with [^\n]*$"):
        run(template("from metabo.metrics import speedup_summary\nspeedup_summary(None, [])"))


def test_a_failing_cell_keeps_the_executed_notebook(template, run, tmp_path):
    with pytest.raises(
        MetaboError, match=r"(?s)n\.ipynb.*failed in line 3 with ZeroDivisionError: division by zero$"
    ) as error:
        run(template("before = 'here'\nprint(before)\n1 / 0"))
    assert "\x1b" not in str(error.value) and "1 / 0" in str(error.value)
    assert (
        str(error.value)
        .splitlines()[-1]
        .endswith("template.ipynb: cell 3 failed in line 3 with ZeroDivisionError: division by zero")
    )
    kept = nbformat.read(tmp_path / "logs" / "n.ipynb", as_version=4)
    outputs = [output for cell in kept.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.get("ename") == "ZeroDivisionError" for output in outputs)
    assert any("here" in output.get("text", "") for output in outputs)
    assert not (tmp_path / "out" / "notebook.ipynb").exists()


def test_an_error_that_says_itself_what_to_do_comes_last_without_a_traceback(template, run):
    with pytest.raises(MetaboError, match=r"n\.ipynb\n.*template\.ipynb: row 3 is bad; mend it$") as error:
        run(template("from metabo.errors import DataError\nraise DataError('row 3 is bad; mend it')"))
    assert "Traceback" not in str(error.value)


def test_the_kernel_says_nothing_of_its_own(template, run, capfd):
    run(template())
    assert "[IPKernelApp] WARNING" not in capfd.readouterr().err  # the kernel of an earlier test may end meanwhile


def test_a_notebook_that_writes_too_little_is_refused_even_if_old_files_lie_there(template, run, tmp_path):
    for name in notebook.FIGURE_FILES:
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / name).write_text("old")
    missing = r"did not write .*figure\.pdf, .*figure\.png, .*data\.csv; save them in its cell 'save' by `artef"
    with pytest.raises(MetaboError, match=missing):
        run(template("1 + 1"))
    assert not (tmp_path / "out" / "notebook.ipynb").exists()


def test_success_is_published_and_runs_this_python_here_with_this_package(template, run, tmp_path, monkeypatch):
    kernels = tmp_path / "home" / "kernels" / "python3"  # a user's kernel of the same name must not be taken
    kernels.mkdir(parents=True)
    (kernels / "kernel.json").write_text(json.dumps({"argv": ["false"], "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home"))
    files = run(template(), points=5)
    assert [Path(f).name for f in files] == ["figure.pdf", "figure.png", "data.csv"]
    points, python, folder, package = (tmp_path / "out" / "data.csv").read_text().splitlines()[1].split(",")
    assert points == "5" and folder == str(Path.cwd())
    assert Path(python) == Path(sys.executable)
    assert Path(package) == Path(notebook.__file__).parents[1] / "__init__.py"
    published = nbformat.read(tmp_path / "out" / "notebook.ipynb", as_version=4)
    assert published.metadata.papermill.parameters["points"] == 5
    assert published.metadata.papermill.exception is None


@pytest.mark.parametrize(
    ("target", "theory", "own", "check"),
    [
        ("x --configfile a.yaml", ["l.json", "m"], "x --configfile a.yaml", "l.json --configfile a.yaml"),
        ("x", None, "x", "results/laptop/theory/hyperbo/lemma10.json"),
    ],
)  # fmt: skip
def test_the_text_tells_how_to_make_this_artefact(template, tmp_path, target, theory, own, check):
    path = template()
    book = nbformat.read(path, as_version=4)
    book.cells[0].source += "\nartefact = 'hyperbo_fig01'"
    text = "Change a value, or `snakemake --cores 2 {}`. One check alone: `snakemake --cores 2 {}`."
    cell = v4.new_markdown_cell(text.format("hyperbo_fig01", "results/laptop/theory/hyperbo/lemma10.json"))
    book.cells.insert(0, cell)
    nbformat.write(book, path)
    ran = nbformat.read(path, as_version=4)
    notebook._name_target(ran, path, {"theory": theory} if theory else {}, target)
    assert ran.cells[0].source == text.format(own, check)
    assert ran.cells[1:] == book.cells[1:]


def test_equal_figures_are_equal_files(template, run, tmp_path):
    first = [Path(f).read_bytes() for f in run(template())]
    assert [Path(f).read_bytes() for f in run(template())] == first


def test_the_environment_is_restored(template, run, monkeypatch):
    import os

    before = dict(os.environ)
    run(template())
    assert {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"} == {
        k: v for k, v in before.items() if k != "PYTEST_CURRENT_TEST"
    }

"""Run a notebook template with parameters: refuse unknown ones, keep a failed run, publish a successful one."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nbformat
import papermill
from papermill.exceptions import PapermillException, PapermillExecutionError

from metabo.errors import ConfigError, MetaboError, nearest
from metabo.plan import templates
from metabo.records.files import Json, write_text

FIGURE_FILES = ("figure.pdf", "figure.png", "data.csv")
"""What every notebook writes into its parameter `out`."""

_CLEAR = ("MetaboError", "DataError", "ConfigError", "NumericsError")
"""Errors that say themselves what to do: no traceback."""

COMMAND = "`snakemake --cores 2"
"""How a template says what makes its artefact; the artefact's name follows."""
EXAMPLE = f"{COMMAND} results/laptop/theory/hyperbo/lemma10.json`"
"""How the template of theory checks says what makes one of them."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

EPOCH = "1704067200"  # 2024-01-01: a fixed clock in PDF metadata, so equal figures are equal files


def run(template: Path, scratch: Path, out: Path, parameters: dict[str, Json], target: str = "") -> list[str]:
    """Execute `template` into `scratch`, then publish the executed copy as `out`; return the figure files.

    `target`: what `snakemake` is given to make this artefact, its name first; the text of the notebook says so in place
    of the name that the template has. The kernel is this process's Python, its working folder the present one. Raises
    ConfigError for a parameter that the template's `parameters` cell does not have, MetaboError for a failing cell (the
    executed notebook with its traceback stays at `scratch`) and for a figure file that the notebook did not write.
    """
    check_parameters(template, parameters)
    files = [out.parent / name for name in FIGURE_FILES]
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch.parent.mkdir(parents=True, exist_ok=True)
    for file in files:
        file.unlink(missing_ok=True)
    with _kernel_environment():
        try:
            papermill.execute_notebook(
                template, scratch, parameters=parameters, kernel_name="python3", cwd=os.getcwd(), progress_bar=False
            )
        except PapermillExecutionError as error:
            if error.ename in _CLEAR:
                said = f"{template}: {error.evalue}".splitlines()
                raise MetaboError(f"The executed notebook is kept: {scratch}", *said) from error
            traceback = _COLOURS.sub("", "\n".join(error.traceback))
            raise MetaboError(  # what a reader needs comes last: Snakemake prints the log below much else
                f"{template}: cell {error.exec_count} failed",
                *traceback.splitlines(),
                f"The executed notebook with its traceback is kept: {scratch}",
                f"{template}: cell {error.exec_count} failed{_place(traceback)} with {_said(error)}",
            ) from error
        except PapermillException as error:
            raise MetaboError(f"{template}: papermill could not run it: {error}") from error
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise MetaboError(
            f"{template}: did not write {', '.join(missing)}; save them in its cell 'save' by "
            f"`artefacts.save(figure, tables, out, artefact, title, caption, keys=[...])`. Executed copy: {scratch}"
        )
    book = nbformat.read(scratch, as_version=nbformat.NO_CONVERT)
    if target:
        _name_target(book, template, parameters, target)
    write_text(out, nbformat.writes(book))
    return [str(file) for file in files]


def _name_target(book: nbformat.NotebookNode, template: Path, parameters: Mapping[str, Json], target: str) -> None:
    """Let the text of an executed notebook say how to make this artefact, and its first theory check."""
    commands = {f"{COMMAND} {templates.parameters(template).get('artefact')}`": target}
    match parameters.get("theory"):
        case [str(check), *_]:
            commands[EXAMPLE] = " ".join([check, *target.split()[1:]])
    for cell in book.cells:
        if cell.cell_type == "markdown":
            for text, own in commands.items():
                cell.source = cell.source.replace(text, f"{COMMAND} {own}`")


_FRAME = re.compile(r"^File (\S.*?):(\d+)|^Cell In\[\d+\], line (\d+)", re.M)
"""The head of a frame in a traceback of IPython: a file with its line, or a line of a cell."""

_PROJECT = Path(__file__).parents[3]


def _place(traceback: str) -> str:
    """Say where a cell failed: in the innermost frame that is a file of the project or of the working folder, no
    installed package, else in the line of the cell; "" if the traceback has neither."""
    line = ""
    for found in reversed(list(_FRAME.finditer(traceback))):
        if found[3]:
            line = line or f" in line {found[3]}"
            continue
        file = Path(found[1]).expanduser()
        for root in (_PROJECT, Path.cwd()):
            if file.is_relative_to(root) and "site-packages" not in file.parts:
                return f" in {file.relative_to(root)}:{found[2]}"
    return line


def _said(error: PapermillExecutionError) -> str:
    """Return name and first line of an error, and what to do about one that only names a key."""
    first = (str(error.evalue).strip().splitlines() or [""])[0]
    lacks = "; no column or key has that name: correct it, or give the table that column"
    return f"{error.ename}: {first}{lacks if error.ename == 'KeyError' else ''}"


def check_parameters(template: Path, parameters: dict[str, Json]) -> None:
    """Raise ConfigError unless the `parameters` cell of the template has every given parameter.

    papermill itself only warns, and the notebook would run with its default.
    """
    known = templates.parameters(template)  # papermill takes a `=` in a comment for another parameter
    faults = [f"'{name}'.{nearest(name, known)}" for name in sorted(set(parameters) - set(known))]
    if faults:
        raise ConfigError(f"{template}: unknown parameter {'; '.join(faults)} Known: {', '.join(sorted(known))}")


@contextmanager
def _kernel_environment() -> Iterator[None]:
    """Set the environment that the kernel inherits, and restore it.

    The kernel must be this environment's (never a user's kernel of the same name), find this checkout's package, ignore
    the user's IPython profile, write no clock time into figures, and log errors alone: it warns of every start that
    others on this machine could listen.
    """
    source = str(Path(__file__).parents[2])
    with tempfile.TemporaryDirectory(prefix="metabo-notebook-") as folder:
        profile = Path(folder, "profile_default", "ipython_kernel_config.py")
        profile.parent.mkdir()
        profile.write_text("get_config().IPKernelApp.log_level = 'ERROR'\n")
        changes = {
            "JUPYTER_PREFER_ENV_PATH": "1",
            "IPYTHONDIR": folder,
            "JUPYTER_RUNTIME_DIR": folder,
            "SOURCE_DATE_EPOCH": EPOCH,
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")])),
        }
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

"""The source files of this package that a job runs: the import graph, read from syntax trees without importing
anything.

The workflow lists a file that stands for their digests (`metabo.plan.digests`) as an input of a job, so a change of
code re-runs exactly the jobs that use it. A sidecar records their combined hash. Modules that a stage loads by name (a
method, a data source) come from the registry.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from metabo.errors import MetaboError
from metabo.plan import collectors, registry, snapshot, syntax

PACKAGE = "metabo"
BOOKKEEPING = (
    "__init__.py", "compute/blas.py", "compute/checkpoint.py", "compute/cores.py", "compute/machine.py",
    "compute/orphans.py", "compute/progress.py", "errors.py", "plan/codegraph.py", "plan/digests.py",
    "plan/equivalent.py", "plan/preflight.py", "plan/schema.py", "plan/snapshot.py", "plan/syntax.py",
    "plan/typical.csv", "plan/yaml_files.py", "records/checksums.py", "records/provenance.py", "stages/common.py",
)  # fmt: skip
"""Files of the package that every stage imports and that cannot change a result: locks, cores, checked inputs,
progress, what is kept of unfinished jobs, that jobs stop with their run, the machine's name, times of jobs, errors,
schemas, sidecars, digests. Also the package's own `__init__`, whose names jobs do not use. (`stages/common.py` sets the
headers of archives under old Pythons: the file's bytes, not its arrays.)"""
PACKAGE_ROOT = Path(__file__).parents[1]


def files(roots: Iterable[str]) -> list[Path]:
    """Return the sorted source files of `roots` (module names) and of every package module they import, transitively.

    Imports inside functions count, and so do the `__init__` files of parent packages, with the CSV tables next to them.
    Raises MetaboError if a module cannot be parsed or imports one that does not exist.
    """
    found: dict[str, Path] = {}
    queue = list(roots)
    while queue:
        name = queue.pop()
        if name not in found:
            found[name] = source(name)
            queue += imported(found[name])
            queue += [name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)]
    return sorted({*found.values(), *_tables(found.values())})


def everything() -> list[Path]:
    """Return all files of the package that a job may run: modules, and tables next to the `__init__` of a package."""
    modules = sorted(PACKAGE_ROOT.rglob("*.py"))
    return sorted({*modules, *_tables(modules)})


def _tables(modules: Iterable[Path]) -> list[Path]:
    return [table for path in modules if path.name == "__init__.py" for table in path.parent.glob("*.csv")]


def inputs(roots: Iterable[str]) -> list[Path]:
    """Return `files` without the bookkeeping. A job depends on these, so that, say, a new sidecar field re-runs
    nothing.

    The sidecar's code hash covers all `files`.
    """
    return [path for path in files(roots) if not keeps_books(path)]


def keeps_books(path: Path) -> bool:
    """Tell whether a file of the package is one of BOOKKEEPING."""
    return path.relative_to(PACKAGE_ROOT).as_posix() in BOOKKEEPING


def source(module: str) -> Path:
    """Return the file of a package module. Raises MetaboError if there is none."""
    path = _locate(module)
    if path is None:
        folder = PACKAGE_ROOT.joinpath(*module.split(".")[1:])
        if folder.is_dir():
            raise MetaboError(f"{folder} has no __init__.py; add an empty one, so that it is a package")
        raise MetaboError(f"module '{module}' is not in {PACKAGE_ROOT}; check the name in the rule or registry")
    return path


def read(path: Path) -> syntax.Source:
    """Read a module of the package. Raises MetaboError if it cannot be parsed."""
    return _read(path)[1]


@cache
def _read(path: Path) -> tuple[str, syntax.Source]:
    """Return the key of a module's syntax (`snapshot.parsed`), and the syntax itself, recorded or read now."""
    name = module_name(path)
    inside = name if path.name == "__init__.py" else name.rpartition(".")[0]
    content = path.read_bytes()
    key = snapshot.parsed(content, inside)
    return key, _known().get(key) or syntax.read(path, content, PACKAGE, inside)


@cache
def _known() -> dict[str, syntax.Source]:
    return snapshot.load_syntax()


def record_syntax(paths: Iterable[Path], file: Path) -> None:
    """Record the syntax of modules for later processes. Raises MetaboError if one cannot be parsed, or if the folder
    cannot be written."""
    snapshot.save_syntax(dict(map(_read, paths)), file)


@cache
def first_state(root: Path) -> str:
    """Return the state of the package when this process began to read it: what it keeps in memory is no newer."""
    return snapshot.state(root)


@cache
def _recorded(root: Path) -> dict[str, snapshot.Module]:
    return snapshot.load(first_state(root))


def recorded(path: Path) -> snapshot.Module | None:
    """Return what an earlier process read in a module, if the package has not changed since."""
    return _recorded(PACKAGE_ROOT).get(path.relative_to(PACKAGE_ROOT).as_posix())


@cache
def imported(path: Path) -> list[str]:
    """List the package modules that a file imports. Raises MetaboError if one does not exist."""
    if known := recorded(path):
        return known.imports
    found = []
    for line, base, name in read(path).imports:
        if base.split(".")[0] == PACKAGE:
            if not _locate(base):
                raise MetaboError(
                    f"{path}:{line}: imports {base}, which is not in {PACKAGE_ROOT}; mend the import or add the module"
                )
            found += [base, *([f"{base}.{name}"] if name and _locate(f"{base}.{name}") else [])]
    return found


def resolve(base: str, name: str) -> tuple[Path, str]:
    """Return the file that defines the object of `from base import name`, and its name there ("" for a module)."""
    seen = set()
    while (base, name) not in seen:
        seen.add((base, name))
        if not name:
            return source(base), ""
        if inner := _locate(f"{base}.{name}"):
            return inner, ""
        base, name = read(source(base)).exports.get(name, (base, name))
    return source(base), name


def uses(sources: Iterable[Path], package: str) -> bool:
    """Tell whether any of the source files imports `package` (a top-level name such as "jax")."""
    return any(package in packages(path) for path in sources if path.suffix == ".py")


def packages(path: Path) -> list[str]:
    """List the other packages that a file imports, by their top-level names."""
    if known := recorded(path):
        return known.packages
    return sorted({base.split(".")[0] for _, base, _ in read(path).imports} - {PACKAGE})


def stage_roots(stage: str, spec: Mapping[str, object]) -> list[str]:
    """Return the modules where the code of one job starts: the stage, and the modules that it loads by registered name.

    `spec` is that of the job, as JSON, or the part of it that names something."""
    name = {key: value for key, value in spec.items() if isinstance(value, str)}
    roots = [f"{PACKAGE}.stages.{stage}"]
    if "method" in name:
        loops: dict[str, registry.Part] = {"bo": "policy", "online": "online"}
        ran: list[registry.Part] = ["pretrain", *([loops[stage]] if stage in loops else [])]
        roots += [registry.method_module(name["method"], part) for part in ran]
        if stage == "pretrain":
            parts = registry.made_of(name["method"])
            told = [function for function in (parts.remarks, parts.report) if function]
            roots += [f"{PACKAGE}.{function.rpartition('.')[0]}" for function in told]
        if stage == "pretrain" and (fits := registry.method(name["method"]).fits):
            roots.append(registry.method_module(fits, "pretrain"))  # it reads the priors of these fits
    if stage == "theory":
        roots.append(registry.check_module(name["paper"], name["check"]))
    if stage == "claims":
        roots += [*registry.claim_modules(name["paper"]), *registry.gate_modules(name["paper"])]
    if stage == "study":
        roots.append(registry.study_module(name["study"]))
    if stage == "online":
        roots.append(collectors.evaluator(name["benchmark"]))
    if stage in ("data", "online"):
        roots.append(registry.loader(name["benchmark"]))
    if stage in ("collect", "pack", "archive"):
        module = collectors.writer_module if stage == "archive" else collectors.collector_module
        roots.append(module(name["benchmark"]))
    return roots


def flags(stage: str, method: str) -> dict[str, bool]:
    """Return the flags of a method's parts that a stage reads. They are not modules, so the code of a job does not show
    them."""
    parts = registry.made_of(method)
    return {
        "pretrain": {"across_spaces": parts.across_spaces, "report": bool(parts.report)},
        "bo": {"pads_inputs": parts.pads_inputs, "uses_past": parts.uses_past},
    }[stage]


def notebook_roots(template: str | Path) -> list[str]:
    """Return the package modules that the code cells of a notebook import. Raises MetaboError if it cannot be read."""
    try:
        cells = json.loads(Path(template).read_text())["cells"]
        code = [(str(cell.get("id", i)), cell["source"]) for i, cell in enumerate(cells, 1) if _is_code(cell)]
    except (ValueError, KeyError, TypeError) as error:
        raise MetaboError(f"{template}: its code cells cannot be read ({error}); mend the notebook") from error
    found = [one for name, source in code for one in cell_imports(template, name, source)]
    names = {name for _, base, inner in found for name in (base, f"{base}.{inner}")}
    return sorted(name for name in names if _locate(name))


def _is_code(cell: Mapping[str, object]) -> bool:
    return cell["cell_type"] == "code"


def cell_imports(template: str | Path, cell: str, source: str | list[str]) -> Iterable[tuple[int, str, str]]:
    """Return line, module and name of each import of a code cell, ignoring lines for IPython. Raises MetaboError, which
    names cell and line, if the cell cannot be parsed."""
    plain = ["" if line.lstrip().startswith(("%", "!")) else line for line in "".join(source).splitlines()]
    try:
        return syntax.read_text("\n".join(plain), PACKAGE).imports
    except (SyntaxError, ValueError) as error:
        line, said = getattr(error, "lineno", None) or 1, getattr(error, "msg", error)
        raise MetaboError(f"{template}, cell '{cell}', line {line}: {said}; mend the notebook") from error


def _locate(name: str) -> Path | None:
    """Return the file of a package module, or None if the name is not one."""
    return _found(PACKAGE_ROOT, name) if name.split(".")[0] == PACKAGE else None


@cache
def _found(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split(".")[1:])
    candidates = (base / "__init__.py", base.with_name(f"{base.name}.py"))
    return next((path for path in candidates if path.is_file()), None)


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE_ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))

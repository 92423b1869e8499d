"""Which source files of this package a job runs: the import graph, read from syntax trees, nothing imported.

The workflow lists these files as inputs of a job, so a change of code re-runs exactly the jobs that use it, and a
sidecar records their common hash. Modules that a stage loads by name (a method, a data source) come from the registry.
"""

import ast
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from metabo import registry

PACKAGE = "metabo"
BOOKKEEPING = {
    "codegraph.py", "common.py", "errors.py", "guard.py", "integrity.py", "progress.py", "provenance.py", "runtime.py",
}  # fmt: skip
"""Files that every stage imports and that cannot change a result: locks, cores, checked inputs, progress, errors,
sidecars."""
PACKAGE_ROOT = Path(__file__).parent


def files(roots: Iterable[str]) -> list[Path]:
    """Return the sorted source files of `roots` (module names) and of every package module they import, transitively.

    Imports inside functions count, and so do the `__init__` files of parent packages, with the CSV tables beside them.
    """
    found: dict[str, Path] = {}
    queue = list(roots)
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found[name] = source(name)
        queue += [m for m in _imports(found[name], name) if _locate(m)]
    packages = {path.parent for path in found.values() if path.name == "__init__.py"}
    return sorted({*found.values(), *(table for folder in packages for table in folder.glob("*.csv"))})


def inputs(roots: Iterable[str]) -> list[Path]:
    """Return `files` without the bookkeeping: what a rule lists as input, so that a new sidecar field re-runs nothing.

    The sidecar's code hash covers all `files`.
    """
    return [path for path in files(roots) if path.name not in BOOKKEEPING]


def source(module: str) -> Path:
    """Return the file of a package module. Raises ModuleNotFoundError."""
    path = _locate(module)
    if path is None:
        raise ModuleNotFoundError(f"module '{module}' is not in {PACKAGE_ROOT}; check the name in the rule or registry")
    return path


def uses(sources: Iterable[Path], package: str) -> bool:
    """Tell whether any of the source files imports `package` (a top-level name such as "jax")."""
    modules = [path for path in sources if path.suffix == ".py"]
    return any(name.split(".")[0] == package for path in modules for name in _imports(path, _module_name(path)))


def stage_roots(stage: str, spec: dict[str, Any]) -> list[str]:
    """Return the modules where the code of one job starts: the stage, and what it loads by registered name."""
    roots = [f"{PACKAGE}.stages.{stage}"]
    if "method" in spec:
        loops = {"bo": ("policy_module",), "online": ("online_module",)}
        parts = ("module", *loops.get(stage, ()))
        roots += [registry.method_module(spec["method"], part) for part in parts]
        if stage == "pretrain" and (fits := registry.method(spec["method"]).get("fits")):
            roots.append(registry.method_module(fits, "module"))  # it reads their priors
    if stage == "theory":
        roots.append(registry.check_module(spec["paper"], spec["check"]))
    if stage == "study":
        roots.append(registry.study_module(spec["study"]))
    if stage == "online":
        roots.append(registry.evaluator(spec["benchmark"]))
    if stage in ("data", "online"):
        roots.append(registry.loader(spec["benchmark"]))
    if stage in ("collect", "pack", "archive"):
        part = "writer" if stage == "archive" else "collector"
        roots.append(f"{PACKAGE}.{registry.benchmark(spec['benchmark'])[part]}")
    return roots


def notebook_roots(template: str | Path) -> list[str]:
    """Return the package modules that the code cells of a notebook import."""
    cells = json.loads(Path(template).read_text())["cells"]
    source = "\n".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code")
    plain = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith(("%", "!")))
    return sorted(m for m in _imported(ast.parse(plain), "") if _locate(m))


def _locate(name: str) -> Path | None:
    """Return the file of a package module, or None if the name is not one."""
    if name.split(".")[0] != PACKAGE:
        return None
    base = PACKAGE_ROOT.joinpath(*name.split(".")[1:])
    candidates = (base / "__init__.py", base.with_name(f"{base.name}.py"))
    return next((path for path in candidates if path.is_file()), None)


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE_ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))


@cache
def _imports(path: Path, name: str) -> frozenset[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    parents = {name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)}
    return frozenset(_imported(ast.parse(path.read_text()), package) | parents)


def _imported(tree: ast.AST, package: str) -> set[str]:
    """List the dotted names that a syntax tree imports; `package` resolves relative imports.

    `from a import b` gives both "a" and "a.b", because `b` may be a module or a name in `a`.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names

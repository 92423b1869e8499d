"""Find imports in notebook templates that name nothing in the package, from syntax trees. Otherwise only a run would
find them."""

import json
from pathlib import Path

from metabo.errors import MetaboError, nearest
from metabo.plan import codegraph, defined


def faults(template: Path) -> list[str]:
    """Return a line for each import from the package, in a template's code cells, of a module that does not exist or a
    name that its module does not define."""
    cells = json.loads(template.read_text(encoding="utf-8"))["cells"]
    found = []
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code":
            where = f"{template}, cell '{cell.get('id', number)}'"
            for line, base, name in codegraph.cell_imports(template, str(cell.get("id", number)), cell["source"]):
                if base.split(".")[0] == codegraph.PACKAGE and (fault := _fault(base, name)):
                    found.append(f"{where}, line {line}: {fault}")
    return found


def _fault(module: str, name: str) -> str:
    """Return what is wrong with `from module import name`, or with `import module` (no name), or "" if nothing is."""
    try:
        path = codegraph.source(module)
    except MetaboError:
        return f"there is no module {module}; correct the import, or add the module.{nearest(module, _modules())}"
    try:
        codegraph.source(f"{module}.{name}")
        return ""
    except MetaboError:
        known = defined.names(path)
    if not name or known is None or name in known:
        return ""
    inside = [one.stem for one in path.parent.glob("*.py")] if path.name == "__init__.py" else []
    file = path.relative_to(codegraph.PACKAGE_ROOT.parents[1])
    return f"{file} defines no '{name}'; correct the import, or add it there.{nearest(name, [*known, *inside])}"


def _modules() -> list[str]:
    return [codegraph.module_name(path) for path in codegraph.PACKAGE_ROOT.rglob("*.py")]

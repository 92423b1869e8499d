"""Check, from syntax trees and without importing it, that code provides what registrations promise: the acquisitions
that `make` returns and their arguments, the functions of a method's parts and the settings that these read, and `load`
of a loader. Otherwise the first job that meets a fault would report it.

A module that cannot be read is skipped: only the jobs that run it must stop, and they say why.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from metabo.errors import MetaboError, nearest
from metabo.plan import codegraph, defined, registry, syntax
from metabo.plan.parts import path_of
from metabo.plan.runs import OWN, SCORED
from metabo.plan.typed import NOTHING

ACQUISITION = "src/metabo/bo/acquisition.py"
SLUG, SLUGS = "[a-z][a-z0-9_]*", "a name has lower-case letters, digits and underscores only"
"""What the names of files may be made of, and what is said of other names."""
ARGUMENTS = ("mean", "std", "best", "count")
"""The arguments of an acquisition."""
LOADED = 3
"""The number of arguments of a loader's `load`: name, settings, archive."""
WHICH = 3
"""The place of the acquisition among the arguments of `policy`."""
GIVEN = "settings"
"""The parameter of `policy` and `online` that has an entry's settings."""

Fields = Mapping[str, bool]
"""The names of the settings that a function reads, and whether an entry must give each."""


def acquisitions() -> list[str]:
    """Return a line for each name that no file can have, for each in SCORED that `make` does not return, for each in
    `make` that SCORED lacks, and for each function that cannot be called as an acquisition."""
    try:
        body = list(ast.walk(_defined(path_of("bo.acquisition"), "make")))
    except MetaboError:
        return []
    named = {node.value for node in body if isinstance(node, ast.Constant)}
    listed = [key for node in body if isinstance(node, ast.Dict) for key in node.keys]
    made = [key.value for key in listed if isinstance(key, ast.Constant)]
    lost = [name for name in SCORED if name not in named]
    bare = [name for name in made if name not in SCORED]
    return [
        *(f"{ACQUISITION}: acquisition '{one}': {SLUGS}" for one in SCORED | OWN if not re.fullmatch(SLUG, one)),
        *(f"{ACQUISITION}: SCORED has '{name}', which `make` does not give; add it to `make`" for name in lost),
        *(f"{ACQUISITION}: `make` gives '{name}', which SCORED has no label for; add it to SCORED" for name in bare),
        *(said for node in body if isinstance(node, ast.Dict) for one in node.values for said in _uncallable(one)),
    ]


def _uncallable(made: ast.expr) -> list[str]:
    """Return the fault of a function that `make` returns, alone or with arguments bound, if it does not take an
    acquisition's arguments in their order. Anything but a function of that module is skipped."""
    match made:
        case ast.Lambda():
            return _miscalled("a lambda", made.args, set())
        case ast.Name(id=name):
            bound = set[str | None]()
        case ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id=name)], keywords=keywords):
            bound = {keyword.arg for keyword in keywords}
        case _:
            return []
    function = _defined(path_of("bo.acquisition"), name)
    return _miscalled(f"'{name}'", function.args, bound) if isinstance(function, ast.FunctionDef) else []


def _miscalled(name: str, arguments: ast.arguments, bound: set[str | None]) -> list[str]:
    if arguments.vararg:
        return []
    taken = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    named = [one.arg for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if not value]
    needed, first = taken[: len(taken) - len(arguments.defaults)], taken[: len(ARGUMENTS)]
    free = [one for one in needed[len(ARGUMENTS) :] + named if one not in bound]
    turned = sorted(first) == sorted(ARGUMENTS) and tuple(first) != ARGUMENTS
    if len(first) == len(ARGUMENTS) and not free and not turned and not bound & {*first}:
        return []
    remedy = f"bind {', '.join(free)} in `make`" if free else f"give it these four first: {', '.join(ARGUMENTS)}"
    return [
        f"{ACQUISITION}: {name} takes ({', '.join(taken + named)}), and cannot be called as an acquisition; {remedy}"
    ]


def loaders() -> list[str]:
    """Return a line for each module that registers a benchmark but has no function `load` with the right arguments."""
    return [
        f"src/{module.replace('.', '/')}.py: it registers '{name}' and {fault}"
        for name in registry.benchmarks()
        if (fault := _unloadable(_defined(codegraph.source(module := registry.loader(name)), "load")))
    ]


def _unloadable(load: ast.stmt) -> str:
    if not isinstance(load, ast.FunctionDef):
        return "has no function `load(name, settings, archive)`; write one, docs/new-data.md shows how"
    taken = [one.arg for one in (*load.args.posonlyargs, *load.args.args)]
    free = sum(default is None for default in load.args.kw_defaults)
    if len(taken) - len(load.args.defaults) <= LOADED <= len(taken) + LOADED * bool(load.args.vararg) and not free:
        return ""
    return (
        f"its `load({ast.unparse(load.args)})`, line {load.lineno}, cannot be called as load(name, settings, archive); "
        "write `def load(name, settings, archive=None):`"
    )


FUNCTIONS: Mapping[registry.Part, tuple[str, ...]] = {
    "pretrain": ("start", "pretrain"), "policy": ("policy",), "online": ("online",),
}  # fmt: skip
"""What the module of each part of a method defines."""


def parts(methods: Iterable[str]) -> list[str]:
    """Return a line for each function that the module of a method's part does not have."""
    found, able = dict[str, None](), {part: registry.methods(part) for part in FUNCTIONS}
    for name in methods:
        for part, functions in FUNCTIONS.items():
            if name in able[part]:
                across = part == "pretrain" and registry.made_of(name).across_spaces
                module = registry.method_module(name, part)
                asked = ("start", "pretrain_across") if across else functions
                found |= dict.fromkeys(_without(module, asked, f"the {part} of method '{name}'"))
        made = registry.made_of(name)
        for field, dotted in (("report", made.report), ("remarks", made.remarks)):
            if dotted:
                module, _, function = dotted.rpartition(".")
                found |= dict.fromkeys(_without(f"metabo.{module}", (function,), f"the {field} of method '{name}'"))
    return list(found)


def ignored(methods: Iterable[str]) -> list[str]:
    """Return a line for each method whose `policy` takes no notice of the acquisition that its entry names, though any
    method may be asked for that one: its runs would be the same under other names."""
    found, able = [], registry.methods("policy")
    for name in methods:
        acquisition = registry.method(name).acquisition
        if name in able and acquisition in SCORED and _ignores(registry.method_module(name, "policy")):
            found.append(
                f"{registry.METHODS.name} key '{name}.acquisition' is '{acquisition}', of which `policy` takes no "
                f"notice; give it a name of its own and put that into OWN in {ACQUISITION}"
            )
    return found


def _ignores(module: str) -> bool:
    try:
        path, name = _found(codegraph.source(module), "policy")
        body = _defined(path, name) if path else ast.Pass()
    except MetaboError:
        return False
    if not isinstance(body, ast.FunctionDef) or body.decorator_list:
        return False
    taken = [one.arg for one in (*body.args.posonlyargs, *body.args.args, *body.args.kwonlyargs)]
    if len(taken) < WHICH:  # another test says so
        return False
    given = "acquisition" if "acquisition" in taken else taken[WHICH - 1]
    used = {node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return not used & {given, "locals"}


def _without(module: str, asked: tuple[str, ...], what: str) -> Iterator[str]:
    try:
        codegraph.source(module.rpartition(".")[0])
    except MetaboError as error:  # a folder that is no package
        yield str(error)
        return
    try:
        known = defined.names(codegraph.source(module))
    except MetaboError:
        return
    for function in asked:
        if known is not None and function not in known:
            near = nearest(function, known)
            yield f"src/{module.replace('.', '/')}.py: {what} has no function `{function}`; write it there.{near}"


def settings() -> list[str]:
    """Return a line for each setting of an entry of methods.yaml that nothing reads, and for each that it lacks."""
    parts: tuple[registry.Part, ...] = ("policy", "online")
    return [line for part in parts for name in registry.methods(part) for line in _settings(name, part)]


def _settings(name: str, part: registry.Part) -> list[str]:
    entry, module = registry.method(name), registry.method_module(name, part)
    given = (entry.policy if part == "policy" else entry.online) or NOTHING
    fields = reads(module, part)
    if fields is None:
        return []
    where, listed = f"{registry.METHODS.name} key '{name}.{part}", ", ".join(fields) or "none"
    return [
        *(
            f"{where}.{key}' is read by nothing; leave it out.{nearest(key, fields)} Settings of {module}: {listed}"
            for key in given
            if key not in fields
        ),
        *(
            f"{where}.{key}' is missing; {module} reads it"
            for key, needed in fields.items()
            if needed and key not in given
        ),
    ]


@cache
def reads(module: str, function: str) -> Fields | None:
    """Return the settings that `policy` or `online` of a module reads: the fields of the dataclass that it makes from
    its parameter `settings` by `read`, or those of the function that it passes them to. Return None if it uses them in
    another way."""
    try:
        path, name = _found(codegraph.source(module), function)
        return _read(path, _defined(path, name)) if path else None
    except MetaboError:
        return None


def _read(path: Path, body: ast.stmt) -> Fields | None:
    found: dict[str, bool] = {}
    used = [node for node in ast.walk(body) if isinstance(node, ast.Name) and node.id == GIVEN]
    calls = [node for node in ast.walk(body) if isinstance(node, ast.Call) and any(one in used for one in node.args)]
    for call in calls:
        fields = _read_by(path, call)
        if fields is None:
            return None
        found |= fields
    return found if len(calls) == len(used) else None


def _read_by(path: Path, call: ast.Call) -> Fields | None:
    """Return which of the settings a call with them reads, or None if that is unknown."""
    match call:
        case ast.Call(func=ast.Name(id="read"), args=[ast.Name(id=kind), ast.Name(id=given), *_]) if given == GIVEN:
            return _fields(path, kind)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=alias), attr=function)):
            target, name = _found(path, alias)
            return None if target is None or name else reads(codegraph.module_name(target), function)
    return None


def _fields(path: Path, kind: str) -> Fields | None:
    """Return the fields of a dataclass, those of its bases first, or None if one of these classes is not found."""
    where, name = _found(path, kind)
    made = _defined(where, name) if where else None
    if not (where and isinstance(made, ast.ClassDef)):
        return None
    found: dict[str, bool] = {}
    for base in made.bases:
        inherited = _fields(where, base.id) if isinstance(base, ast.Name) else None
        if inherited is None:
            return None
        found |= inherited
    return found | dict(_annotated(made))


def _annotated(made: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    for node in made.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value is None


def _found(path: Path, name: str) -> tuple[Path | None, str]:
    """Return the file of the package that defines what a module calls `name`, and its name there. The file is None if
    it is not in the package."""
    if any(_is(node, name) for node in _tree(path).body):
        return path, name
    target = codegraph.read(path).exports.get(name)
    return codegraph.resolve(*target) if target else (None, "")


_tree = cache(syntax.tree)


def _is(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name


def _defined(path: Path, name: str) -> ast.stmt:
    """Return a function or class of a module, or an empty statement if the module lacks it."""
    return next((node for node in _tree(path).body if _is(node, name)), ast.Pass())

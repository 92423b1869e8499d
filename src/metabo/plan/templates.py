"""Templates of notebooks: the parameters in their tagged cell, read without running it."""

import ast
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from metabo.errors import ConfigError, nearest, unknown
from metabo.plan import registry
from metabo.plan.runs import RunId, method_of
from metabo.plan.typed import Setting, Values
from metabo.records.files import Json


def parameters(path: Path) -> Values:
    """Return the names and defaults in a template's cell that is tagged `parameters`.

    Raises ConfigError, which names the file, if it does not exist, is not a notebook, has no such cell, or has
    something other than literals in the cell."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        near = nearest(path.name, [one.name for one in path.parent.glob("*.ipynb")])
        raise ConfigError(f"notebook {path} does not exist, or cannot be read ({error.strerror}).{near}") from error
    except ValueError as error:
        raise _unreadable(path, error) from error
    return _parameters(path, text)


@lru_cache(maxsize=256)  # a plan asks for the parameters of a template about ten times
def _parameters(path: Path, text: str) -> Values:
    try:
        cells = json.loads(text)["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(path, error) from error
    if not tagged:
        raise ConfigError(f"notebook {path} has no cell tagged 'parameters'; tag the one with the defaults")
    return _literals("".join(tagged[0]["source"]), path)


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"notebook {path} is not a readable notebook ({error!r}); take it from git (`git checkout -- {path}`), or copy "
        "another template and change its cells"
    )


def _literals(code: str, path: Path) -> Values:
    found: dict[str, Json] = {}
    try:
        for node in ast.parse(code).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found[name] = _literal(value)
                case _:
                    raise ValueError(f"line {node.lineno} is no assignment to one name")
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"notebook {path}, cell 'parameters': {error}; write `name = literal` lines only") from error
    return Values(found)


def _literal(value: ast.expr) -> Json:
    try:
        return ast.literal_eval(value)
    except ValueError as error:
        raise ValueError(f"line {value.lineno}: '{ast.unparse(value)}' is no literal") from error


def require(path: Path, given: Iterable[str], own: Mapping[str, Setting]) -> None:
    """Raise ConfigError unless a template has every parameter that the workflow gives (`given`), and other parameters
    with the names and types of an entry's `own`."""
    known, given = parameters(path), list(given)
    faults = [f"'{name}' is no parameter of it.{nearest(name, known)}" for name in (*given, *own) if name not in known]
    faults += [f"'{name}' is given by the workflow; leave it out of 'parameters'." for name in own if name in given]
    faults += [
        f"'{name}' is {value!r}, must be of the type of the default, {known[name]!r}{_as_float(value, known[name])}."
        for name, value in own.items()
        if name in known and type(value) is not type(known[name])
    ]
    if faults:
        raise ConfigError(f"template {path}: {' '.join(faults)} Parameters: {', '.join(sorted(known))}")


def naming_methods(path: Path, own: Mapping[str, Setting], given: Iterable[str] = ()) -> dict[str, Setting]:
    """Return the parameters of a template, with their values, whose default or value in an entry's `own` names a method
    or is a list with methods. `given` parameters come from the workflow and are left out."""
    known = set(registry.methods())
    chosen = {
        name: (default, own.get(name, default)) for name, default in parameters(path).items() if name not in given
    }
    return {
        name: value
        for name, (default, value) in chosen.items()
        if any(method_of(one) in known for one in (*_texts(default), *_texts(value)))
    }


def require_methods(path: Path, own: Mapping[str, Setting], given: Iterable[str], runs: Iterable[RunId]) -> None:
    """Raise ConfigError for a method that an entry's `own` parameters name but that is not registered, or is in none of
    the `runs` that the entry reads on all of its benchmarks: what the parameter asks for would silently be left out."""
    known, read = registry.methods(), sorted({run.method for run in runs})
    for name in naming_methods(path, own, given):
        for one in _texts(own.get(name)):
            if (method := method_of(one)) not in known:
                raise ConfigError(f"parameter '{name}': {unknown('method', method, read or known)}")
            if read and method not in read:
                raise ConfigError(
                    f"parameter '{name}' names '{one}', which the inputs do not have; add it to them, or take it out "
                    f"of '{name}'. They have: {', '.join(read)}"
                )


def require_shown(
    path: Path, own: Mapping[str, Setting], given: Iterable[str], runs: Iterable[RunId], benchmark: str
) -> None:
    """Raise ConfigError for a parameter that names a method that is not in the `runs` of an entry on a benchmark, or a
    list of methods none of which is: the notebook would fail, or leave that part out, after all runs are done."""
    shown = {
        str(run if run.acquisition != registry.method(run.method).acquisition else RunId(run.method)) for run in runs
    }
    for name, value in naming_methods(path, own, given).items():
        named = _texts(value)
        of_list = {one for one in shown if isinstance(value, tuple) and method_of(one) in named}
        if shown and not shown & {*named, *of_list}:
            source = "" if name in own else ", the template's default"
            none = ", or [] for none" if isinstance(value, tuple) else ""
            raise ConfigError(
                f"parameter '{name}' is {', '.join(named)}{source}, which the inputs on {benchmark} lack; "
                f"give '{name}' under 'parameters'{none}. They have: {', '.join(sorted(shown))}"
            )


def _texts(value: Setting) -> tuple[str, ...]:
    """Return the texts in a value that is a text or a list."""
    return tuple(one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, str))


def _as_float(value: Setting, default: Setting) -> str:
    """Return how to write a whole number if the default has decimals, or ""."""
    return f": write {float(value)!r}" if type(value) is int and isinstance(default, float) else ""

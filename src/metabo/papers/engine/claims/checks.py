"""The checks that claims name: pure functions from the evidence of one artefact to a finding.

A check is a public function of a module of checks, of the claim's paper (`papers/{paper}/checks`) or of all papers
(`shared`): `check(evidence, **arguments) -> Finding`. The modules are found by name
(`metabo.plan.registry.claim_modules`).
"""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Concatenate

from pydantic import TypeAdapter, ValidationError

from metabo.errors import ConfigError, quoted, unknown
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding
from metabo.plan import registry
from metabo.records.files import Json

LAST = (50, 100)
"""The last iteration of the papers' runs: 50 of cm-BO's, 100 of all others."""
Check = Callable[Concatenate[Evidence, ...], Finding]
"""(evidence, arguments of the claim's test by name) -> finding."""


@cache
def of(paper: str) -> dict[str, Check]:
    """Return the checks that claims of a paper may name. Raises ConfigError if two modules have one of the same
    name."""
    found: dict[str, Check] = {}
    for module in map(importlib.import_module, registry.claim_modules(paper)):
        for name, check in vars(module).items():
            if inspect.isfunction(check) and check.__module__ == module.__name__ and not name.startswith("_"):
                if name in found:
                    raise ConfigError(f"check '{name}' of {paper} is in {found[name].__module__} and {module.__name__}")
                found[name] = check
    return found


def run(paper: str, name: str, evidence: Evidence, arguments: Mapping[str, Json]) -> Finding:
    """Run a check of a paper by its name. Raises ConfigError for one that does not exist."""
    return _check(paper, name)(evidence, **arguments)


def faults(paper: str, name: str, arguments: Mapping[str, Json]) -> list[str]:
    """Say what is wrong with a check's name or arguments, such as a text where it takes a list; nothing is run."""
    try:
        signature = inspect.signature(_check(paper, name))
        signature.bind(None, **arguments)
    except ConfigError as error:
        return [str(error)]
    except TypeError as error:
        return [str(ConfigError(f"check '{name}': {error}"))]
    return [
        str(ConfigError(f"check '{name}': argument '{key}' is {quoted(value)}, must be {_words(kind)}"))
        for key, value in arguments.items()
        if not _fits(value, kind := signature.parameters[key].annotation)
    ]


def _fits(value: Json, kind: Any) -> bool:
    """Tell whether a value of a sheet is of an argument's type; a text is no list of texts."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


def _words(kind: Any) -> str:
    """Return a type as Python writes it, without the modules."""
    return re.sub(r"\b[\w.]+\.(?=\w)", "", str(kind) if not isinstance(kind, type) else kind.__name__)


def arguments(paper: str, name: str, given: Mapping[str, Json]) -> dict[str, object]:
    """Return the arguments of a check, its defaults filled in. Raises ConfigError for one that does not exist."""
    parameters = inspect.signature(_check(paper, name)).parameters
    defaults = {key: one.default for key, one in parameters.items() if one.default is not inspect.Parameter.empty}
    return {**defaults, **given}


def moments(paper: str, name: str, arguments: Mapping[str, Json]) -> set[str]:
    """Return when a check of regrets compares: "area", "last" or "named" (an iteration that is not the last).

    Empty for checks that take no `at`, or an iteration and nothing else (ranks). 50 and 100 are the last iterations of
    the papers' runs.
    """
    given = inspect.signature(_check(paper, name)).parameters
    if "at" not in given or given["at"].annotation in (int, int | None):
        return set()
    if "at" not in arguments and given["at"].default in (None, inspect.Parameter.empty):
        return set()
    at = arguments.get("at", given["at"].default)
    listed = at if isinstance(at, list | tuple) else [at]
    return {"area" if one == "area" else "last" if one in LAST else "named" for one in listed if one is not None}


def _check(paper: str, name: str) -> Check:
    if name not in of(paper):
        raise unknown(f"check of {paper}", name, of(paper))
    return of(paper)[name]

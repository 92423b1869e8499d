"""Everything that is registered is found by its name, wherever its module lies in the room."""

import ast

import pytest

from metabo.errors import ConfigError
from metabo.plan import codegraph, registry

ROOMS = {"BENCHMARKS": "data", "STUDIES": "papers", "CHECKS": "papers"}


def tables(name: str) -> dict[str, list[str]]:
    """Return the names that each module below the room gives in a top-level table, read by another way than ours."""
    found = {}
    for path in (codegraph.PACKAGE_ROOT / ROOMS[name]).rglob("*.py"):
        for node in ast.parse(path.read_bytes()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if name in [getattr(target, "id", None) for target in targets] and isinstance(node.value, ast.Dict):
                found[codegraph.module_name(path)] = [key.value for key in node.value.keys]
    return found


def test_every_benchmark_study_and_theory_check_is_found_in_its_module():
    """A pattern that misses a folder finds less, and nothing else would say so."""
    found = {
        "BENCHMARKS": {name: registry.loader(name) for name in registry.benchmarks()},
        "STUDIES": {name: registry.study_module(name) for name in registry.studies()},
    }
    for table, modules in found.items():
        assert modules == {name: module for module, names in tables(table).items() for name in names}
    checks = {
        (p, name): registry.check_module(p, name) for p in registry.papers_with_checks() for name in registry.checks(p)
    }
    written = tables("CHECKS")
    assert checks == {(module.split(".")[2], name): module for module, names in written.items() for name in names}


@pytest.mark.parametrize("name", registry.methods())
def test_every_module_that_a_method_names_is_there(name):
    parts = ("module", "policy_module", "online_module")
    modules = [registry.method_module(name, part) for part in parts if registry.method(name).get(part)]
    assert modules and all(codegraph.source(module).is_file() for module in modules)


def test_every_module_that_a_benchmark_names_is_there():
    for name in registry.benchmarks():
        for part in ("collector", "writer"):
            if part in (entry := registry.benchmark(name)):
                assert codegraph.source(f"metabo.{entry[part]}").is_file()


def test_a_missing_table_names_module_and_table():
    with pytest.raises(ConfigError, match=r"module metabo\.bo\.acquisition has no top-level literal NOTHING"):
        registry.literal("bo.acquisition", "NOTHING")

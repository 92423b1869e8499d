"""Everything that is registered is found by its name, wherever its module lies in the room."""

import ast

import pytest

from metabo.errors import ConfigError
from metabo.plan import codegraph, registry
from metabo.plan.entries import BenchmarkEntry, StudyEntry
from metabo.plan.yaml_files import read_yaml

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
    parts = ("pretrain", "policy", "online")
    modules = [registry.method_module(name, part) for part in parts if name in registry.methods(part)]
    assert modules and all(codegraph.source(module).is_file() for module in modules)


def test_every_module_that_a_benchmark_names_is_there():
    for name in registry.benchmarks():
        for part in ("collector", "writer"):
            if module := getattr(registry.benchmark(name), part):
                assert codegraph.source(f"metabo.{module}").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NAME = 'a'\nBENCHMARKS = {NAME: {}}", r"new.py, line 2: BENCHMARKS is read without .* must be a literal"),
        ("BENCHMARKS = {'a': {}", r"new.py:1: cannot be parsed .*never closed.*mend this file"),
    ],
)
def test_a_table_that_cannot_be_read_is_told(tmp_path, text, message):
    (tmp_path / "new.py").write_text(text)
    with pytest.raises(ConfigError, match=message):
        registry.find_literal(tmp_path / "new.py", "BENCHMARKS")


def test_a_missing_table_names_module_and_table():
    with pytest.raises(ConfigError, match=r"module metabo\.bo\.acquisition has no top-level literal NOTHING"):
        registry.literal("bo.acquisition", "NOTHING")


H_NLL = "h_nll: {label: H, colour: '#000000', marker: o, dashes: [], method: m, acquisition: pi}\n"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (H_NLL.replace("label", "lable"), r"methods.yaml key 'h_nll.lable' is unknown. Did you mean 'label'\?"),
        (H_NLL.replace("label: H, ", ""), r"methods.yaml key 'h_nll.label' is missing"),
        (H_NLL.replace("[]", "solid"), r"methods.yaml key 'h_nll.dashes' is the text 'solid', must be a list"),
        ("h_nll: 3", r"methods.yaml key 'h_nll' is the number 3, must be a mapping"),
        (
            H_NLL + "twin: {like: h_nl}",
            r"methods.yaml: 'twin' is like 'h_nl', which is not another method there. Did you mean 'h_nll'\? "
            "Others: h_nll$",
        ),
        (
            H_NLL.replace("{", "\n  ").replace(", ", "\n  ").replace("}", "").replace("'#", "#").replace("0'", "0"),
            "methods.yaml key 'h_nll.colour' is empty, must be text; write text in quotes if it begins with #",
        ),
        (H_NLL.replace("marker: o", "marker: *"), r"; write text that begins with \* in quotes"),
        ("a: {like: b}\nb: {like: a}", r"methods.yaml: 'b' is like 'a', which is not another method there"),
        (H_NLL + H_NLL, r"methods.yaml: key 'h_nll' stands twice, in lines 1 and 2; delete or rename one"),
    ],
)
def test_a_faulty_table_of_methods_is_told(tmp_path, monkeypatch, written, message):
    (tmp_path / "methods.yaml").write_text(written)
    monkeypatch.setattr(registry, "METHODS", tmp_path / "methods.yaml")
    with pytest.raises(ConfigError, match=message):
        registry._methods.__wrapped__()


def test_a_key_that_is_merged_and_given_does_not_stand_twice(tmp_path):
    (tmp_path / "table.yaml").write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4}")
    assert read_yaml(tmp_path / "table.yaml")["c"] == {"x": 3, "y": 4}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "{'a': {'settings': [], 'defalt_split': 'x'}}",
            r"new: BENCHMARKS key 'a.defalt_split' is unknown",
        ),
        ("{'a': {'settings': []}}", r"new: BENCHMARKS key 'a.default_split' is missing"),
        (
            "{'a': {'settings': [], 'default_split': 'x', 'memory_mb': 0}}",
            r"BENCHMARKS key 'a.memory_mb': 0 is less",
        ),
    ],
)
def test_a_faulty_benchmark_is_told_with_its_module(tmp_path, monkeypatch, written, message):
    monkeypatch.setattr(registry, "PACKAGE_ROOT", tmp_path)
    (tmp_path / "new.py").write_text(f"BENCHMARKS = {written}")
    with pytest.raises(ConfigError, match=message):
        registry._registered("BENCHMARKS", [tmp_path / "new.py"], BenchmarkEntry)


def test_a_name_that_is_registered_twice_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "PACKAGE_ROOT", tmp_path)
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path in paths:
        path.write_text("STUDIES = {'a': {}}")
    with pytest.raises(ConfigError, match=r"'a' is registered twice: in metabo.one and metabo.two"):
        registry._registered("STUDIES", paths, StudyEntry)

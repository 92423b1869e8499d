"""Specs as JSON: the text decides what runs again, so a change of the types must not change it; and back from JSON.

`specs.json` has a hash of the specs of each method, benchmark, study and archive at each scale. If a change of
config.yaml or a registration is meant to change what jobs read, make it anew: `python -m tests.plan.test_specs`.
"""

import csv
import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from metabo.errors import ConfigError
from metabo.plan import collectors, config, registry, specs, splits
from metabo.plan.entries import collection
from metabo.plan.typed import plain, read, written
from metabo.records.files import canonical

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("specs.json")
SCALES = {"laptop": (), "smoke": ("smoke",), "paper": ("paper",)}


def places() -> list[list[str]]:
    return [[benchmark, split] for benchmark in registry.benchmarks() for split in splits.of(benchmark)]


def of_methods(given: config.Config, on: list[list[str]]) -> dict[str, list]:
    """The specs of every method on the benchmarks and splits `on`, by kind and method."""
    found = {}
    for method in registry.methods():
        found[f"pretrain/{method}"] = [config.pretrain_spec(given, *place, method) for place in on]
        found[f"evaluate/{method}"] = [config.evaluate_spec(given, *place, method) for place in on]
    for method in registry.methods("policy"):
        acquisitions = (registry.method(method).acquisition, "ei")
        found[f"bo/{method}"] = [config.bo_spec(given, *place, method, a) for place in on for a in acquisitions]
    for method in registry.methods("online"):
        found[f"online/{method}"] = [config.online_spec(given, *place, method) for place in on]
    return found


def others(given: config.Config) -> dict[str, list]:
    """The specs that read no method."""
    found = {f"data/{benchmark}": [config.data_spec(given, benchmark)] for benchmark in registry.benchmarks()}
    for benchmark in [b for b in registry.benchmarks() if registry.benchmark(b).collector]:
        units = collectors.units(benchmark)
        for version in range(1, registry.benchmark(benchmark).versions + 1):
            name = collection(benchmark, version)
            found[f"pack/{name}"] = [config.pack_spec(given, benchmark, version)]
            found[f"collect/{name}"] = [config.collect_spec(given, benchmark, unit, version) for unit in units]
    with (ROOT / "workflow" / "datasets.csv").open() as stream:
        found |= {f"download/{row['name']}": [config.download_spec(given, row)] for row in csv.DictReader(stream)}
    found |= {f"study/{study}": [config.study_spec(given, study)] for study in registry.studies()}
    for paper in registry.papers_with_checks():
        found |= {f"theory/{paper}/{c}": [config.theory_spec(given, paper, c)] for c in registry.checks(paper)}
    return found


def hashes(on: list[list[str]]) -> dict[str, dict[str, str]]:
    found = {}
    for scale, overlays in SCALES.items():
        given = config.load(ROOT, tuple(ROOT / "config" / f"{name}.yaml" for name in overlays))
        text = {name: canonical(plain(made)) for name, made in (of_methods(given, on) | others(given)).items()}
        found[scale] = {name: hashlib.sha256(one.encode()).hexdigest()[:16] for name, one in text.items()}
    return found


@pytest.mark.slow
def test_specs_are_the_json_that_they_were():
    recorded = json.loads(FILE.read_text())
    found = hashes(recorded["places"])
    for scale, known in recorded["hashes"].items():
        assert {name: found[scale].get(name) for name in known} == known, scale


def kinds() -> list[type]:
    return [
        kind for kind in vars(specs).values() if dataclasses.is_dataclass(kind) and kind.__module__ == specs.__name__
    ]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_a_spec_is_what_its_json_gives_and_has_a_hash(kind):
    values = {
        "urls": ["u"], "sizes": {"pool": 3}, "source": "shipped", "settings": {"spaces": ["a"], "max_points": None},
        "past": {"base": "b", "tasks": 3}, "model": {"features": [4]}, "pretrain": {}, "policy": {"t": 0.1},
        "online": {}, "candidates": 300, "artefacts": [["a", ""]], "names": ["a"], "papers": [], "share": 1.0,
        "once": True, "exceptions": ["s"],
    }  # fmt: skip
    values |= dict.fromkeys(("seed", "seeds", "iterations"), 2)
    given = {f.name: values.get(f.name, "text") for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
    spec = read(kind, given, "spec")
    assert written(spec) == given and read(kind, written(spec), "spec") == spec
    assert hash(spec) == hash(read(kind, given, "spec"))


@pytest.mark.parametrize("method", ["h_nll", "mphd"])
def test_priors_keep_the_spec_of_their_job(method):
    spec = config.pretrain_spec(config.load(ROOT), "tables", "held_out", method)
    assert specs.training_spec(spec) == written(spec)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sed": 0}, r"spec key 'sed' is unknown. Did you mean 'seed'\?"),
        ({"seeds": 0}, r"spec key 'seeds': 0 is less than the minimum of 1"),
        ({"past": {"base": "held_out", "rows": "some"}}, r"spec key 'past.rows' is the text 'some', must be one of"),
        ({"model": 3}, r"spec key 'model' is the number 3, must be a mapping"),
    ],
)
def test_a_spec_that_is_none_is_refused(change, message):
    spec = config.pretrain_spec(config.load(ROOT), "tables", "held_out", "h_nll")
    with pytest.raises(ConfigError, match=message):
        read(specs.PretrainSpec, written(spec) | change, "spec")


if __name__ == "__main__":
    FILE.write_text(json.dumps({"places": places(), "hashes": hashes(places())}, indent=1) + "\n")

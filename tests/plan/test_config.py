"""Bad configurations stop with the key, what is allowed and the nearest match; specs hold what their job reads."""

import copy
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from pydantic import Field, create_model

from metabo.errors import ConfigError
from metabo.plan import catalogue, config, names, reference, registry, runs, splits
from metabo.plan.entries import Split, collection
from metabo.plan.past import Past
from metabo.plan.schema import violations
from metabo.plan.sections.base import Section
from metabo.plan.trainings import prior_of
from metabo.plan.typed import Values, plain
from metabo.records.files import canonical

ROOT = Path(__file__).parents[2]
PAPERS = ["hyperbo", "mphd", "cmbo"]


@pytest.fixture
def good():
    return config.read(ROOT)


def put(settings: dict, key: str, value) -> dict:
    """Return a copy with the value at a dotted key replaced."""
    changed = copy.deepcopy(settings)
    *path, last = key.split(".")
    place = changed
    for part in path:
        place = place[part]
    place[last] = value
    return changed


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("pretrain.adam_stepz", 5, ["'pretrain.adam_stepz' is unknown", "Did you mean 'adam_steps'?", "lbfgs_steps"]),
        ("sede", 0, ["'sede' is unknown", "Did you mean 'seed'?", "benchmarks"]),
        ("scale", "laptpo", ["'scale'", "'laptpo'", "smoke, laptop, published, paper", "Did you mean 'laptop'?"]),
        ("device", "tpu", ["'device'", "'tpu'", "cpu, gpu"]),
        ("seed", "0", ["'seed' is the text '0'", "must be an integer", "write 0"]),
        ("seed", -1, ["'seed'", "-1 is less than the minimum of 0"]),
        ("seed", True, ["'seed' is the boolean True", "must be an integer"]),
        ("pretrain.adam_steps", 8000.0, ["'pretrain.adam_steps' is the number 8000.0", "must be an integer"]),
        ("pretrain.adam_steps", "1e4", ["'pretrain.adam_steps' is the text '1e4'", "write 10000"]),
        ("bo.iterations", 0, ["'bo.iterations'", "0 is less than the minimum of 1"]),
        ("bo", None, ["'bo' is empty", "must be a mapping"]),
        ("run.benchmarks", ["tabels"], ["unknown benchmark 'tabels'", "Did you mean 'tables'?", "hpob, hpob_mini"]),
        ("run.benchmarks", [], ["'run.benchmarks'"]),
        ("run.papers", ["hyprbo"], ["unknown paper 'hyprbo'", "Did you mean 'hyperbo'?"]),
        ("benchmarks.tables.spaces", ["hpobnch"], ["'benchmarks.tables.spaces.0'", "Did you mean 'hpobench'?"]),
        (
            "benchmarks.hpob.spaces",
            [4796],
            ["'benchmarks.hpob.spaces.0' is the number 4796", "write it in quotes: '4796'"],
        ),
        ("benchmarks.pd1.inputs", "units", ["'benchmarks.pd1.inputs'", "unit, warped", "Did you mean 'unit'?"]),
        ("benchmarks.pd1.mirrors", ["ftp://x"], ["'benchmarks.pd1.mirrors.0'", "ftp://x"]),
        (
            "benchmarks.pd1.mirrors",
            ["https://me:s3cret@host/x"],
            ["'benchmarks.pd1.mirrors': https://***@host/x has a password", "~/.netrc"],
        ),
        ("benchmarks.hpob.mirrors", ["https://host/x?token=s3cret"], ["https://host/x?token=*** has a password"]),
        ("benchmarks.hpob.mirrors", ["ftp://me:s3cret@host/x"], ["'ftp://***@host/x' does not match"]),
        ("methods", {"hnll": {}}, ["'methods.hnll'", "unknown method 'hnll'", "Did you mean 'h_nll'?"]),
        ("methods", {"h_nll": {"pretrian": {}}}, ["'methods.h_nll.pretrian' is unknown", "Did you mean 'pretrain'?"]),
        ("methods", {"h_nll": {"pretrain": 3}}, ["'methods.h_nll.pretrain'", "must be a mapping"]),
        (
            "methods",
            {"h_nll": {"pretrain": {"learning_rat": 0.1}}},
            ["'methods.h_nll.pretrain.learning_rat' is unknown", "Did you mean 'learning_rate'?", "objective"],
        ),
        (
            "methods",
            {"h_nll": {"pretrain": {"learning_rate": "1e-4"}}},
            [
                "'methods.h_nll.pretrain.learning_rate' is the text '1e-4'",
                "must be a number",
                "write 1.0e-04",
            ],
        ),
        (
            "methods",
            {"h_nll": {"pretrain": {"learning_rate": float("nan")}}},
            ["'methods.h_nll.pretrain.learning_rate'", "must be a number"],
        ),
        (
            "methods",
            {"h_nll": {"model": {"features": [32, "a"]}}},
            ["'methods.h_nll.model.features", "must be an integer"],
        ),
        ("methods", {"rand": {"pretrain": {"steps": 3}}}, ["'methods.rand.pretrain.steps'", "no settings here"]),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(good, key, value, parts):
    with pytest.raises(ConfigError) as error:
        config.check(put(good, key, value), PAPERS)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("registered", [True, False])
def test_a_section_of_a_benchmark_without_types_is_told_where_they_belong(good, monkeypatch, registered):
    if registered:
        known = registry._benchmarks() | {"bowl": registry.Registered("metabo.data.bowl", registry.benchmark("tables"))}
        monkeypatch.setattr(registry, "_benchmarks", lambda: known)
    with pytest.raises(ConfigError, match=r"'benchmarks.bowl' is unknown.*\n.*src/metabo/plan/sections/bench") as error:
        config.check(put(good, "benchmarks.bowl", {"a": 3}))
    said = "metabo.data.bowl registers 'bowl'" if registered else "no module in src/metabo/data registers 'bowl'"
    assert said in str(error.value)


def test_a_setting_without_a_type_is_told_where_it_belongs_but_not_a_slip(good):
    for key, told in (("fifty", True), ("versoin", False)):
        with pytest.raises(ConfigError, match=rf"'benchmarks.pd1_mini.{key}' is unknown") as error:
            config.check(put(good, f"benchmarks.pd1_mini.{key}", 3))
        line = f"'benchmarks.pd1_mini.{key}': the type of a new setting belongs into src/metabo/plan/sections/bench"
        assert (line in str(error.value)) == told


def test_a_long_number_is_told_in_a_short_line(good):
    with pytest.raises(ConfigError, match=r"must be text; write it in quotes: '10+ \[\.\.\.\] 0+'") as error:
        config.check(put(good, "benchmarks.hpob.spaces", [10**190]))
    assert max(map(len, str(error.value).splitlines())) < 450


@pytest.mark.parametrize(
    "place", ["benchmarks", "benchmarks.pd1_mini", "methods", "methods.h_nll", "methods.h_nll.model"]
)
def test_a_long_key_is_told_in_a_short_line(good, place):
    with_method = put(good, "methods", {"h_nll": {"model": {}}})
    with pytest.raises(ConfigError) as error:
        config.check(put(with_method, f"{place}.{'x' * 3000}", {"y" * 3000: {}}))
    head = max(line.partition(" Allowed: ")[0].partition(" Valid: ")[0] for line in str(error.value).splitlines())
    assert "[...]" in head and len(head) < 500
    assert "Allowed: " in str(error.value) or "Valid: " in str(error.value)


def test_files_that_settings_name_must_exist(good, tmp_path):
    (tmp_path / "a.csv").write_text("x\n")
    there, lost = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")
    assert config.named_files(config.check(put(good, "benchmarks.own.history", [there])), "own") == [there]
    with pytest.raises(
        ConfigError,
        match=rf"^config key 'benchmarks.own.history': {lost} does not exist; correct",
    ):
        config.named_files(config.check(put(good, "benchmarks.own.history", [there, lost])), "own")


def test_a_folder_in_place_of_files_is_refused(good, tmp_path):
    settings = config.check(put(good, "benchmarks.own.history", [str(tmp_path)]))
    with pytest.raises(ConfigError, match=rf"^config key 'benchmarks.own.history': {tmp_path} is a folder; name the "):
        config.named_files(settings, "own")


def test_a_setting_that_names_one_file_may_be_no_list(good, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("x\n")
    monkeypatch.setattr(config, "_of_benchmark", lambda *_: {"history": str(tmp_path / "a.csv"), "space": None})
    assert config.named_files(config.check(good), "own") == [str(tmp_path / "a.csv")]


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        (tuple[str, ...], True),
        (str | None, True),
        (dict[str, list[str]], True),
        (Literal["a", "b"], False),
        (Literal["a"], False),
        (tuple[Annotated[str, Field(pattern="^https?://")], ...], False),
        (tuple[int, ...], False),
    ],
)
def test_text_that_may_name_files_must_be_named_under_files(good, monkeypatch, kind, refused):
    section = create_model("WithText", __base__=Section, history=(kind, Field(description="A type: string.")))
    types = {**reference.schema()["properties"]["benchmarks"]["properties"]}
    types["own"] = reference._told(section.model_json_schema(), {})
    whole = {"properties": {"benchmarks": {"properties": types}}}
    monkeypatch.setattr(names.reference, "schema", lambda: whole)
    known = registry._benchmarks()
    entry = replace(registry.benchmark("own"), settings=("history", "seed"), files=())
    changed = known | {"own": known["own"]._replace(entry=entry)}
    monkeypatch.setattr(registry, "_benchmarks", lambda: changed)
    found = names._files()
    assert len(found) == refused and all(
        line.startswith("metabo.data.history.benchmark: BENCHMARKS key 'own.files' lacks 'history', which is free text")
        for line in found
    )


def test_a_registration_that_leaves_its_files_out_is_refused(good, monkeypatch):
    known = registry._benchmarks()
    changed = known | {"own": known["own"]._replace(entry=replace(registry.benchmark("own"), files=("space",)))}
    monkeypatch.setattr(registry, "_benchmarks", lambda: changed)
    with pytest.raises(ConfigError, match=r"^metabo.data.history.benchmark: .*'own.files' lacks 'history'.*add it"):
        config.check(good)


@pytest.mark.parametrize("colour", ["teall", "#1f77b", "d62728"])
def test_faults_of_registered_methods_are_told(good, monkeypatch, colour):
    known = registry._methods()
    entry = registry.method("h_nll")
    wrong = {
        "h_Two": replace(entry, label="Two", colour="#123456", marker="4"),
        "z_twin": replace(entry, label="Twin", marker="1"),
        "a_slip": replace(entry, label="Slip", colour="#123457", marker="2", acquisition="pie"),
        "a_colour": replace(entry, label="Colour", colour=colour, marker="3"),
    }
    monkeypatch.setattr(registry, "_methods", lambda: known | wrong)
    with pytest.raises(ConfigError) as error:
        config.check(good)
    said = sorted(str(error.value).splitlines(), key=lambda line: line.split("'")[1])
    assert len(said) == 4 and all(line.startswith("methods.yaml key '") for line in said)
    assert "'a_colour.colour' is '" + colour in said[0] and "six hexadecimal digits" in said[0]
    assert "'a_slip.acquisition': unknown acquisition 'pie'. Did you mean 'pi'?" in said[1]
    assert "'h_Two': a name has lower-case letters" in said[2]
    assert "'z_twin.colour' is that of 'h_nll'" in said[3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"default_split": "heldout"}, "'tables.default_split': unknown split 'heldout'. Did you mean 'held_out'?"),
        ({"default_split": "first"}, "'tables.default_split': unknown split 'first'. Valid: held_out, others"),
        ({"splits": ("held_out", "other")}, "'tables.splits': unknown split 'other'. Did you mean 'others'?"),
    ],
)
def test_a_split_that_a_registration_names_is_told_with_its_module_and_key(monkeypatch, changes, message):
    known = registry._benchmarks()
    changed = known["tables"]._replace(entry=replace(registry.benchmark("tables"), **changes))
    monkeypatch.setattr(registry, "_benchmarks", lambda: {**known, "tables": changed})
    with pytest.raises(ConfigError) as error:
        splits._splits.__wrapped__()
    assert f"metabo.data.tables: BENCHMARKS key {message}" in str(error.value)


def test_yaml_reads_the_number_that_a_message_suggests():
    schema = {"type": "object", "properties": {"rate": {"type": "number"}}}
    (line,) = violations(yaml.safe_load("rate: 5e-5"), schema, "config")
    suggested = line.split("write ")[1].split(" ")[0]
    assert yaml.safe_load(f"rate: {suggested}") == {"rate": 5e-5}


def test_every_fault_is_reported_at_once(good):
    with pytest.raises(ConfigError) as error:
        config.check(put(put(good, "seed", "x"), "bo.iterationz", 3))
    assert "'seed'" in str(error.value) and "'bo.iterationz'" in str(error.value)


@pytest.mark.parametrize("key", ["seed", "pretrain.seeds", "benchmarks.tables.pool", "methods"])
def test_a_missing_key_is_named(good, key):
    *path, last = key.split(".")
    place = good
    for part in path:
        place = place[part]
    del place[last]
    with pytest.raises(ConfigError, match=f"'{key}' is missing"):
        config.check(good)


def test_a_file_that_is_missing_or_not_yaml(tmp_path):
    with pytest.raises(ConfigError, match=r"config\.yaml: cannot read it"):
        config.load(tmp_path)
    (tmp_path / "config.yaml").write_text("a: [1")
    with pytest.raises(ConfigError, match="not valid YAML"):
        config.load(tmp_path)


def leaves(settings: dict, path: str = "") -> list[str]:
    found = []
    for key, value in settings.items():
        found += leaves(value, f"{path}{key}.") if isinstance(value, dict) and value else [f"{path}{key}"]
    return found


DEFAULTS = yaml.safe_load((ROOT / "config.yaml").read_text())
STUDIES = DEFAULTS["studies"]
SIZES = {
    *("benchmarks.control.points", "benchmarks.cmbo_control.points", "benchmarks.cmbo_control.draws"),
    *leaves({"ladder": DEFAULTS["ladder"]}),
    *("benchmarks.tables.pool", "benchmarks.tables.spaces", "benchmarks.hpob.max_points", "benchmarks.hpob.spaces"),
    *(f"pretrain.{key}" for key in ("seeds", "adam_steps", "learning_rate", "decay", "lbfgs_steps", "matched_points")),
    "pretrain.ablr_learning_rate",
    *(f"{section}.{key}" for section in ("sweep", "crossing", "mphd") for key in ("seeds", "adam_steps")),
    "structures.adam_steps",
    *("mphd.learning_rate", "mphd.decay", "mphd.network_steps", "mphd.map_steps", "mphd.bo_seeds"),
    *("elimination.seeds", "elimination.adam_steps", "elimination.bo_seeds", "hpob.features", "hpob.bo_seeds"),
    *(f"benchmarks.{name}.{key}" for name in ("mphd_s", "mphd_l") for key in ("domains", "functions", "points")),
    *("sweep.lbfgs_steps", "crossing.short_adam_steps", "crossing.short_lbfgs_steps", "crossing.bo_seeds"),
    *("bo.iterations", "bo.seeds", "bo.random_seeds", "bo.refit_steps", "benchmarks.hpob_mini.max_points"),
    *(f"maf.{key}" for key in ("iterations", "episodes", "horizon", "candidates", "minibatches", "learning_rate")),
    *(f"maf.{key}" for key in ("hidden", "evaluate_every", "points", "gp_points", "gp_steps")),
    *(f"{network}.{key}" for network in ("mimo", "rfgp") for key in ("learning_rate", "steps", "retrain_steps")),
    *("mimo.warm_start", "rfgp.warm_start", "rfgp.random_features", "rfgp.ridge", "rfgp.lengthscale"),
    *(f"online.{key}" for key in ("iterations", "seeds", "adam_steps", "retrain_steps", "matched_points")),
    *(f"online.{key}" for key in ("starts", "polish", "polish_steps")),
    *(f"collect.pd1_mini.{key}" for key in ("pilot", "matched", "unmatched")),
    *(f"collect.{name}.{key}" for name in ("hpob_mini", "hpob_mini_2") for key in ("shared", "own", "pool")),
    *("collect.pd1_mini_2.matched", "collect.pd1_mini_2.repeats"),
    *(f"cmbo.{key}" for key in ("adam_steps", "bo_seeds", "bo_iterations", "clusters", "restarts", "fit_steps")),
    *(f"cmbo.{key}" for key in ("refit_steps", "locations", "grid", "tolerance", "samples")),
    *(
        "cmbo_control.bo_seeds",
        "cmbo_first.bo_seeds",
        "benchmarks.cmbo_mini.spaces",
        "benchmarks.cmbo_mini.folds",
        "benchmarks.cmbo_hpob.folds",
    ),
    "theory.share",
    *(f"studies.{path}" for path in leaves(STUDIES)),
}


@pytest.mark.parametrize("overlay", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.stem)
def test_overlays_validate_and_set_sizes_only(overlay):
    merged = config.read(ROOT, (overlay,))
    config.check(merged, catalogue.papers(catalogue.load(ROOT)))
    assert merged["scale"] == overlay.stem
    allowed = SIZES | {"scale", "run.benchmarks", "methods.emp_gp.model.anchors"}
    assert set(leaves(yaml.safe_load(overlay.read_text()))) <= allowed


def test_merge_replaces_lists_and_merges_mappings():
    base = {"a": {"b": [1, 2], "c": 3}, "d": 4}
    assert config.merge(base, {"a": {"b": [5]}, "e": None}) == {"a": {"b": [5], "c": 3}, "d": 4, "e": None}
    assert base == {"a": {"b": [1, 2], "c": 3}, "d": 4}


def all_specs(settings: dict) -> dict[str, dict]:
    """Every spec of every job that the configuration can lead to, by a readable name."""
    specs = {}
    settings = config.check(settings)
    for benchmark in ("pd1_mini", "hpob_mini"):
        for version in (1, 2):
            specs[f"collect/{collection(benchmark, version)}"] = config.collect_spec(
                settings, benchmark, "any", version
            )
    for sizes, split in (("sweep", "others_sweep"), ("crossing", "crossed")):
        for method in ("h_nll", "h_ekl"):
            specs[f"{sizes}/{method}"] = config.pretrain_spec(settings, "pd1_mini", split, method)
    specs["structures/h_nll"] = config.pretrain_spec(settings, "pd1_mini", "held_out_sweep", "h_nll_linear_4")
    for method in ("h_nll_short", "h_ekl_short"):
        specs[f"crossing/{method}"] = config.pretrain_spec(settings, "pd1_mini", "crossed", method)
    for split in [name for name in splits.names() if name.startswith("ladder_")]:
        specs[split] = config.pretrain_spec(settings, "pd1_mini", split, "h_nll")
    for split in ("crossed", "crossed_candidates"):
        specs[f"crossing/bo/{split}"] = config.bo_spec(settings, "pd1_mini", split, "h_nll_short", "ei")
    for method in ELIMINATION:
        specs[f"elimination/{method}"] = config.pretrain_spec(settings, "pd1_mini", "held_out_tasks_2", method)
    specs["elimination/bo"] = config.bo_spec(settings, "pd1_mini", "held_out_tasks_2", "h_nll", "ucb3")
    specs["cmbo/control"] = config.bo_spec(settings, "cmbo_control", "clustered_control", "cm_wss_wss", "ucb3")
    specs["cmbo/first"] = config.bo_spec(settings, "cmbo_mini", "clustered_first", "cm_wss_2", "ucb3")
    for study in registry.studies():
        specs[f"study/{study}"] = config.study_spec(settings, study)
    for paper, check in CHECKS:
        specs[f"theory/{paper}/{check}"] = config.theory_spec(settings, paper, check)
    for split in ("held_out", "new_space"):
        specs[f"across/{split}"] = config.pretrain_spec(settings, "super_mini", split, "mphd")
    for method in registry.methods("online"):
        specs[f"online/{method}"] = config.online_spec(settings, "pd1_mini", "others", method)
    for benchmark in registry.benchmarks():
        specs[f"data/{benchmark}"] = config.data_spec(settings, benchmark)
        row = {"name": benchmark, "urls": "https://published", "checksum": "md5:0"}
        specs[f"download/{benchmark}"] = config.download_spec(settings, row)
        for method in [m for m in registry.methods() if not registry.method(m).variant_of]:
            where = (settings, benchmark, "held_out", method)
            specs[f"pretrain/{benchmark}/{method}"] = config.pretrain_spec(*where)
            specs[f"evaluate/{benchmark}/{method}"] = config.evaluate_spec(*where)
        for method in [m for m in registry.methods("policy") if not registry.method(m).variant_of]:
            specs[f"bo/{benchmark}/{method}"] = config.bo_spec(settings, benchmark, "held_out", method, "pi")
    return specs


@cache
def specs_of(settings: str) -> dict[str, dict]:
    """`all_specs` of settings that are written as JSON, made once: most tests compare with the same ones."""
    return all_specs(json.loads(settings))


def changed_jobs(before: dict, after: dict) -> set[str]:
    one, other = specs_of(canonical(before)), all_specs(after)
    return {name for name in one if one[name] != other[name]}


HYPERBO, MPHD, CMBO = (
    tuple(b for b in registry.benchmarks() if registry.benchmark(b).sizes in sizes)
    for sizes in ((None, "hpob"), ("mphd",), ("cmbo",))
)
BENCHMARKS = HYPERBO + MPHD + CMBO
CHECKS = [(paper, check) for paper in registry.papers_with_checks() for check in registry.checks(paper)]
EVERY = tuple(m for m in registry.methods("policy") if not registry.method(m).variant_of)


def sized_by(size: str) -> tuple[str, ...]:
    """The methods of BO on tables whose training has a size of config.yaml."""
    return tuple(m for m in EVERY if size in registry.method(m).pretrain.values())


ADAM, LBFGS = sized_by("@pretrain.adam_steps"), sized_by("@pretrain.lbfgs_steps")
RATED, ABLR = sized_by("@pretrain.learning_rate"), sized_by("@pretrain.ablr_learning_rate")
HIERARCHICAL, ACROSS = (
    ("mphd", "mphd_non_nn", "hgp_hand", "hgp_flat", "hgp_truth"),
    {"across/held_out", "across/new_space"},
)
LEARNED_ONLINE, FITTED_ONLINE = ("h_nll_online", "h_ekl_online"), ("stbo_online", "stboh_online")


def jobs(stage: str, methods: tuple[str, ...], benchmarks: tuple[str, ...] = BENCHMARKS) -> set[str]:
    return {f"{stage}/{b}/{m}" for b in benchmarks for m in methods}


def online(methods: tuple[str, ...]) -> set[str]:
    return {f"online/{m}" for m in methods}


def reduced(sizes: str) -> set[str]:
    return {f"{sizes}/h_nll", f"{sizes}/h_ekl"}


def test_a_benchmark_that_is_read_from_anothers_collection_has_that_ones_version():
    """One collection, one version: setting both apart would read a table as what it is not."""
    settings = config.check(config.merge(DEFAULTS, {"benchmarks": {"pd1_mini": {"version": 1, "inputs": "warped"}}}))
    own, variant = (config.data_spec(settings, name).settings for name in ("pd1_mini", "pd1_mini_nan"))
    assert (variant["version"], variant["inputs"]) == (own["version"], own["inputs"]) == (1, "warped")
    assert (own["divergence"], variant["divergence"]) == ("status", "nan")


ELIMINATION = ("h_nll", "he_pretrained")
CANDIDATES = {f"elimination/{method}" for method in ELIMINATION}
CROSSED = reduced("crossing") | {"crossing/h_nll_short", "crossing/h_ekl_short"}
CLUSTER_BO = {"cmbo/first", "cmbo/control"}
CROSSED_BO = {"crossing/bo/crossed", "crossing/bo/crossed_candidates"}


def another(path: str) -> object:
    """Another value of a study's size."""
    value = STUDIES
    for key in path.split("."):
        value = value[key]
    if isinstance(value, list):
        return [not value[0]] if isinstance(value[0], bool) else [7, 77, 777]
    return 0.5 if path.endswith(".delta") else 7


MAF = {
    **{key: 7 for key in ("iterations", "episodes", "horizon", "candidates", "minibatches", "evaluate_every")},
    **{"learning_rate": 0.5, "hidden": [7], "points": 7, "gp_points": 7, "gp_steps": 7},
}
NETWORKS = ("mimo", "rfgp")
CLUSTERED = ("cm_wss_wss", "cm_wss_bary", "cm_wss_jef", "cm_jef_jef", "cm_jef_wss", "cm_global", "cm_tasks")
RANKED, REFITTED = ("rgpe", "rm_gp_ucb"), ("rgpe", "rm_gp_ucb", "gp32")
GP_ONLINE = (*LEARNED_ONLINE, *FITTED_ONLINE, "mimo_online", "rfgp_online")
EVERY_ONLINE = tuple(registry.methods("online"))
BENCHMARK_KEYS = {
    (name, key): rules
    for name, section in reference.schema()["properties"]["benchmarks"]["properties"].items()
    for key, rules in section["properties"].items()
    if key != "source"
}


def variants(name: str, key: str) -> list[str]:
    """The benchmarks that read the collection of `name`, and this key with it."""
    others = [other for other in registry.benchmarks() if registry.benchmark(other).archive_of == name]
    return [o for o in others if key in registry.benchmark(o).settings and (o, key) not in BENCHMARK_KEYS]


def allowed(rules: dict, present: object) -> object:
    """Another value that the schema of a key allows."""
    if "enum" in rules:
        return next(value for value in rules["enum"] if value != present)
    kinds = rules["type"] if isinstance(rules["type"], list) else [rules["type"]]
    if "array" in kinds:
        return [rules["items"]["enum"][-1]] if "enum" in rules["items"] else ["https://mirror", "file:///a/copy"]
    if "boolean" in kinds:
        return not present
    if "integer" not in kinds:
        return present / 2
    most = min(77, rules.get("maximum", 77))
    return most if most != present else rules["minimum"]


LAYERED = tuple(
    m
    for m in registry.methods()
    if registry.method(m).model.get("features")
    and not (registry.method(m).own_features or registry.method(m).variant_of)
)
LADDER = {f"ladder_{rung}" for rung in DEFAULTS["ladder"]}
READ_BY = {
    **{  # a benchmark's own keys: its addresses are read by its download, all others by its load, and by nothing else
        f"benchmarks.{name}.{key}": (
            allowed(rules, DEFAULTS["benchmarks"][name][key]),
            {f"{'download' if key == 'mirrors' else 'data'}/{reader}" for reader in (name, *variants(name, key))},
        )
        for (name, key), rules in BENCHMARK_KEYS.items()
    },
    "seed": (
        7,
        jobs("pretrain", EVERY + GP_ONLINE)
        | jobs("bo", EVERY)
        | online(EVERY_ONLINE)
        | reduced("sweep")
        | {"structures/h_nll"}
        | CROSSED
        | CROSSED_BO
        | CANDIDATES
        | {"elimination/bo"}
        | {f"study/{study}" for study in registry.studies()}
        | {f"theory/{paper}/{check}" for paper, check in CHECKS}
        | {f"data/{name}" for name in BENCHMARKS if "seed" in registry.benchmark(name).settings}
        | CLUSTER_BO
        | LADDER
        | ACROSS
        | {f"collect/{name}" for name in ("pd1_mini", "pd1_mini_2", "hpob_mini", "hpob_mini_2")},
    ),
    "collect.pd1_mini.pilot": (7, {"collect/pd1_mini"}),
    "collect.pd1_mini.matched": (7, {"collect/pd1_mini"}),
    "collect.pd1_mini.unmatched": (7, {"collect/pd1_mini"}),
    "collect.pd1_mini_2.matched": (7, {"collect/pd1_mini_2"}),
    "collect.pd1_mini_2.repeats": (7, {"collect/pd1_mini_2"}),
    **{
        f"collect.{name}.{key}": (7, {f"collect/{name}"})
        for name in ("hpob_mini", "hpob_mini_2")
        for key in ("shared", "own", "pool")
    },
    "online.iterations": (7, online(EVERY_ONLINE)),
    "online.seeds": (7, online(EVERY_ONLINE) | jobs("pretrain", GP_ONLINE)),
    "online.adam_steps": (77, jobs("pretrain", ("h_nll_online",))),
    "online.retrain_steps": (7, online(LEARNED_ONLINE)),
    "online.matched_points": (7, jobs("pretrain", ("h_ekl_online",))),
    "online.starts": (7, online(GP_ONLINE)),
    "online.polish": (7, online(GP_ONLINE)),
    "online.polish_steps": (7, online(GP_ONLINE)),
    **{
        f"ladder.{rung}.{key}": (0.5 if key in ("learning_rate", "decay") else 7, {f"ladder_{rung}"})
        for rung, own in DEFAULTS["ladder"].items()
        for key in own
    },
    "pretrain.seeds": (
        7,
        jobs("pretrain", EVERY, HYPERBO) | reduced("sweep") | {"structures/h_nll"} | LADDER - {"ladder_published"},
    ),
    "pretrain.adam_steps": (77, jobs("pretrain", ADAM, HYPERBO)),
    "pretrain.ablr_learning_rate": (0.5, jobs("pretrain", ABLR)),
    "pretrain.learning_rate": (
        0.5,
        jobs("pretrain", [m for m in RATED if m in ADAM], (*HYPERBO, *CMBO))
        | jobs("pretrain", ("h_nll_online",), (*HYPERBO, *CMBO))
        | {"sweep/h_nll", "structures/h_nll", "crossing/h_nll", "crossing/h_nll_short", "elimination/h_nll"},
    ),
    "pretrain.decay": (
        0.5,
        jobs("pretrain", ADAM, (*HYPERBO, *CMBO))
        | jobs("pretrain", ("h_nll_online",), (*HYPERBO, *CMBO))
        | {"sweep/h_nll", "structures/h_nll", "crossing/h_nll", "crossing/h_nll_short", "elimination/h_nll"},
    ),
    "pretrain.lbfgs_steps": (77, jobs("pretrain", (*LBFGS, "h_ekl_online")) | {"crossing/h_ekl"}),
    "pretrain.matched_points": (
        77,
        jobs("pretrain", (*LBFGS, "emp_gp")) | {"sweep/h_ekl", "crossing/h_ekl", "crossing/h_ekl_short"},
    ),
    "sweep.adam_steps": (7, {"sweep/h_nll"}),
    "structures.adam_steps": (7, {"structures/h_nll"}),
    "sweep.lbfgs_steps": (7, {"sweep/h_ekl"}),
    "crossing.seeds": (7, CROSSED),
    "crossing.short_adam_steps": (7, {"crossing/h_nll_short"}),
    "crossing.short_lbfgs_steps": (7, {"crossing/h_ekl_short"}),
    "crossing.bo_seeds": (7, CROSSED_BO),
    "crossing.adam_steps": (7, {"crossing/h_nll"}),
    "elimination.seeds": (7, CANDIDATES),
    "elimination.adam_steps": (7, {"elimination/h_nll"}),
    "elimination.bo_seeds": (7, {"elimination/bo"}),
    "hpob.features": ([7], jobs("pretrain", LAYERED, ("hpob_mini", "super_mini"))),
    "hpob.bo_seeds": (77, jobs("bo", EVERY, ("hpob_mini",))),
    "mphd.seeds": (7, jobs("pretrain", EVERY, MPHD) | ACROSS),
    "mphd.adam_steps": (77, jobs("pretrain", ADAM, MPHD) | jobs("pretrain", ("base_gp",))),
    "mphd.decay": (0.5, jobs("pretrain", (*ADAM, "h_nll_online"), MPHD) | jobs("pretrain", ("base_gp",))),
    "mphd.learning_rate": (
        0.5,
        jobs("pretrain", (*(m for m in RATED if m in ADAM), "h_nll_online"), MPHD) | jobs("pretrain", ("base_gp",)),
    ),
    "mphd.network_steps": (77, jobs("pretrain", ("mphd",)) | ACROSS),
    "mphd.map_steps": (77, jobs("bo", HIERARCHICAL)),
    "mphd.bo_seeds": (7, jobs("bo", EVERY, MPHD)),
    "cmbo.seeds": (7, jobs("pretrain", EVERY, CMBO)),
    "cmbo.adam_steps": (77, jobs("pretrain", ADAM, CMBO)),
    "cmbo.bo_seeds": (7, jobs("bo", EVERY, CMBO)),
    "cmbo.bo_iterations": (7, jobs("bo", EVERY, CMBO) | CLUSTER_BO),
    **{f"cmbo.{key}": (77, jobs("pretrain", CLUSTERED)) for key in ("clusters", "restarts", "locations")},
    "cmbo.fit_steps": (77, jobs("pretrain", (*CLUSTERED, *RANKED))),
    "cmbo.refit_steps": (77, jobs("bo", REFITTED)),
    "cmbo.grid": (77, jobs("bo", CLUSTERED) | CLUSTER_BO),
    "cmbo.tolerance": (0.5, jobs("bo", CLUSTERED) | CLUSTER_BO),
    "cmbo.samples": (77, jobs("bo", ("rgpe",))),
    "cmbo_first.bo_seeds": (7, {"cmbo/first"}),
    "cmbo_control.bo_seeds": (7, {"cmbo/control"}),
    **{f"maf.{key}": (value, jobs("pretrain", ("maf",))) for key, value in MAF.items()},
    **{f"{m}.steps": (77, jobs("pretrain", (m, f"{m}_online"))) for m in NETWORKS},
    **{f"{m}.retrain_steps": (77, jobs("bo", (m,)) | online((f"{m}_online",))) for m in NETWORKS},
    **{f"{m}.warm_start": (False, jobs("bo", (m,)) | online((f"{m}_online",))) for m in NETWORKS},
    **{
        f"{m}.learning_rate": (0.5, jobs("pretrain", (m, f"{m}_online")) | jobs("bo", (m,)) | online((f"{m}_online",)))
        for m in NETWORKS
    },
    "rfgp.random_features": (77, jobs("pretrain", ("rfgp", "rfgp_online"))),
    **{f"rfgp.{key}": (0.77, jobs("pretrain", ("rfgp", "rfgp_online"))) for key in ("ridge", "lengthscale")},
    "theory.share": (0.5, {f"theory/{paper}/{check}" for paper, check in CHECKS}),
    **{f"studies.{path}": (another(path), {f"study/{path.partition('.')[0]}"}) for path in leaves(STUDIES)},
    "bo.iterations": (77, jobs("bo", EVERY, HYPERBO + MPHD) | CROSSED_BO | {"elimination/bo"}),
    "bo.seeds": (77, jobs("bo", tuple(m for m in EVERY if m != "rand"), HYPERBO)),
    "bo.random_seeds": (77, jobs("bo", ("rand",), HYPERBO)),
    "bo.refit_steps": (77, jobs("bo", ("stbo", "stboh")) | online(FITTED_ONLINE)),
    "methods": (
        {"h_nll": {"pretrain": {"learning_rate": 0.5}}},
        jobs("pretrain", ("h_nll",)) | {"sweep/h_nll", "crossing/h_nll", "elimination/h_nll"} | LADDER,
    ),
}
NOT_IN_SPECS = {
    *("scale", "device", "run.papers", "run.benchmarks", "run.artefacts"),
    *("benchmarks.pd1_mini.source", "benchmarks.hpob_mini.source"),
}
"""Read by the rules: result path, gpu resource, targets, which table is packed (test_plans.py, test_collect.py)."""


@pytest.mark.parametrize("key", READ_BY)
def test_a_changed_key_changes_exactly_the_specs_that_read_it(good, key):
    value, expected = READ_BY[key]
    assert changed_jobs(good, put(good, key, value)) == expected


def test_every_key_is_read(good):
    assert set(leaves(good)) == set(READ_BY) | NOT_IN_SPECS


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            {"h_ekl": {"model": {"kernel": "matern32"}}},
            jobs("pretrain", ("h_ekl",)) | {"sweep/h_ekl", "crossing/h_ekl"},
        ),
        ({"stbo": {"policy": {"refit_steps": 3}}}, jobs("bo", ("stbo",))),
        ({"ablr": {"policy": {"pi_threshold": 0.2}}}, jobs("bo", ("ablr",))),
        ({"fsbo": {"pretrain": {"steps": 11}}}, jobs("pretrain", ("fsbo",))),
    ],
)
def test_an_override_reaches_its_method_alone(good, override, expected):
    changed = put(good, "methods", override)
    config.check(changed)
    assert changed_jobs(good, changed) == expected


def test_specs_hold_the_registered_settings_with_the_sizes_of_the_scale(good):
    registered = registry.method("h_nll")
    spec = config.pretrain_spec(config.check(good), "tables", "held_out", "h_nll")
    assert spec.pretrain == plain(registered.pretrain) | {"steps": 2000, "learning_rate": 3e-3, "decay": 0.01}
    assert spec.model == plain(registered.model)
    ekl = config.pretrain_spec(config.check(good), "tables", "held_out", "h_ekl").pretrain
    assert (ekl["steps"], ekl["matched_points"]) == (100, 242)
    assert config.pretrain_spec(config.check(good), "tables", "held_out", "rand").pretrain == {}
    assert (
        config.bo_spec(config.check(good), "tables", "held_out", "stbo", "pi").policy["refit_steps"]
        == good["bo"]["refit_steps"]
    )
    assert registry.method("h_nll").pretrain["steps"] == "@pretrain.adam_steps"


def test_a_section_of_a_split_is_laid_over_the_sizes_of_pre_training(good):
    whole = put(good, "pretrain", good["pretrain"] | {"seeds": 2, "adam_steps": 20, "lbfgs_steps": 3})
    over = put(whole, "sweep", {"adam_steps": 7, "lbfgs_steps": None})
    assert config.pretrain_sizes(config.check(over), "tables", "held_out") == whole["pretrain"]
    assert config.pretrain_sizes(config.check(over), "tables", "held_out_sweep") == whole["pretrain"] | {
        "adam_steps": 7
    }
    crossed = put(over, "crossing.bo_seeds", None)
    assert config.bo_spec(config.check(crossed), "tables", "crossed", "h_nll", "pi").seeds == good["bo"]["seeds"]
    assert config.bo_spec(config.check(over), "tables", "crossed", "h_nll", "pi").seeds == good["crossing"]["bo_seeds"]


def test_priors_of_equal_settings_are_made_by_one_job(good):
    def place(method, split, settings=good, benchmark="pd1_mini"):
        return prior_of(config.check(settings), benchmark, split, method)

    assert place("h_nll", "held_out") == ("held_out", "h_nll")
    assert place("h_nll_linear_32", "held_out_sweep") == ("held_out", "h_nll_linear_32"), "it has steps of its own"
    alike = put(good, "structures", {"adam_steps": good["pretrain"]["adam_steps"]})
    assert place("h_nll_linear_32", "held_out_sweep", alike) == ("held_out", "h_nll")
    assert place("h_nll_zero_32", "held_out_sweep", alike) == ("held_out", "fsbo")
    assert place("h_ekl_linear_32", "held_out_sweep") == ("held_out_sweep", "h_ekl")
    assert place("mimo", "held_out_sweep") == ("held_out", "mimo")
    assert place("h_nll", "held_out_points_10", benchmark="hpob_mini") == ("held_out_points_10", "h_nll")
    assert place("h_nll", "crossed_candidates") == ("crossed", "h_nll")
    wider = put(good, "methods", {"h_nll": {"model": {"features": [64]}}})
    assert place("h_nll_linear_32", "held_out_sweep", wider)[1] != "h_nll", "another network, another prior"
    assert place("h_nll", "held_out_sweep", put(good, "sweep", {})) == ("held_out", "h_nll")


def test_a_section_of_a_benchmark_lies_under_that_of_a_split(good):
    changed = put(
        put(good, "mphd", good["mphd"] | {"seeds": 4, "adam_steps": 9, "bo_seeds": 2}), "sweep", {"adam_steps": 7}
    )
    for benchmark in MPHD:
        assert config.pretrain_spec(config.check(changed), benchmark, "held_out", "h_nll").pretrain["steps"] == 9
        assert config.pretrain_spec(config.check(changed), benchmark, "held_out", "h_nll").seeds == 4
        assert config.pretrain_spec(config.check(changed), benchmark, "held_out_sweep", "h_nll").pretrain["steps"] == 7
        assert config.bo_spec(config.check(changed), benchmark, "new_space", "h_nll", "pi").seeds == 2
    assert config.pretrain_sizes(config.check(changed), "tables", "held_out") == good["pretrain"]
    assert config.bo_spec(config.check(changed), "tables", "held_out", "h_nll", "pi").seeds == good["bo"]["seeds"]


def test_only_methods_that_train_across_spaces_read_which_ones(good):
    def spec(split, method):
        return config.pretrain_spec(config.check(good), "super_mini", split, method)

    assert spec("new_space", "mphd").past == Past("held_out", spaces="others")
    assert spec("held_out", "mphd").past == spec("new_space", "h_nll").past == Past("held_out")
    assert spec("new_space", "mphd").fits == "base_gp" and spec("held_out", "h_nll").fits is None
    assert registry.made_of("mphd").across_spaces is True


@pytest.mark.parametrize(
    ("method", "split"),
    [
        *((m, "new_space") for m in ("mphd", "mphd_squashed", "mphd_non_nn")),
        *((m, "held_out") for m in ("h_nll", "base_gp", "rand", "hgp_hand", "hgp_flat", "hgp_truth", "gp_truth")),
    ],
)
def test_a_new_space_trains_again_only_what_learns_from_other_spaces(good, method, split):
    for benchmark in ("mphd_l", "super_mini"):
        assert prior_of(config.check(good), benchmark, "new_space", method) == (split, method)
        assert prior_of(config.check(good), benchmark, "held_out", method) == ("held_out", method)


def test_a_benchmark_with_sizes_that_are_no_section_is_told(good, monkeypatch):
    other = replace(registry.benchmark("mphd_l"), sizes="mpdh")
    monkeypatch.setattr(registry, "benchmark", lambda name: other)
    with pytest.raises(ConfigError, match=r"'sizes' of benchmark 'mphd_l': unknown section .*'mpdh'.*mphd"):
        config.check(good)


def test_a_split_with_sizes_that_are_no_section_is_told(good, monkeypatch):
    monkeypatch.setattr(splits, "entry", lambda name: Split(sizes=("sweeps",) if name == "others_sweep" else ()))
    with pytest.raises(ConfigError, match=r"'sizes' of split 'others_sweep': unknown section .*'sweeps'.*sweep"):
        config.check(good)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a: {point: 3}", r"key 'a.point' is unknown.*points"),
        ("a: {points: 0}", r"key 'a.points'"),
        ("a: {rows: match}", r"key 'a.rows' is the text 'match', must be one of: all, matched"),
        ("a: {base: b}", r"'base' of split 'a': unknown split 'b'"),
        ("a: {benchmarks: [pd2]}", r"'benchmarks' of split 'a': unknown benchmark 'pd2'.*pd1"),
    ],
)
def test_a_faulty_table_of_splits_is_told(tmp_path, monkeypatch, entry, message):
    (tmp_path / "splits.yaml").write_text(entry)
    monkeypatch.setattr(splits, "SPLITS", tmp_path / "splits.yaml")
    with pytest.raises(ConfigError, match=message):
        splits._splits.__wrapped__()


def test_a_size_that_names_no_key_is_refused(good):
    with pytest.raises(ConfigError, match=r"methods.yaml: '@pretrain.adam_stepz' names no key"):
        config.sized(config.check(good).sizes, {"steps": "@pretrain.adam_stepz"})


@pytest.mark.parametrize(
    ("method", "section", "key", "value"),
    [
        ("h_nll", "pretrain", "batch", 0),
        ("h_nll", "pretrain", "steps", 0),
        ("h_nll", "pretrain", "learning_rate", -1.0),
        ("h_nll", "pretrain", "objective", "nlll"),
        ("h_ekl", "pretrain", "matched_points", -1),
        ("mimo", "pretrain", "steps", -1),
        ("maf", "model", "hidden", []),
        ("h_nll", "model", "features", [0]),
        ("h_nll", "model", "kernel", "matern99"),
        ("h_nll", "model", "mean", "zer0"),
    ],
)
def test_an_override_out_of_range_is_refused(good, method, section, key, value):
    with pytest.raises(ConfigError, match=rf"methods\.{method}\.{section}\.{key}"):
        config.check(put(good, "methods", {method: {section: {key: value}}}))


def test_an_override_has_the_range_of_the_size_that_it_replaces(good):
    config.check(put(good, "methods", {"mimo": {"pretrain": {"steps": 0}}}))  # 0: all epochs
    with pytest.raises(ConfigError, match=r"methods\.h_nll\.pretrain\.steps"):
        config.check(put(good, "methods", {"h_nll": {"pretrain": {"steps": 0}}}))


def test_a_scale_needs_its_overlay():
    config.check_scale("smoke", ["config.yaml", "smoke.yaml"], ROOT)
    config.check_scale("laptop", ["config.yaml"], ROOT)
    with pytest.raises(ConfigError, match=r"'scale' is 'paper'.*--configfile config/paper.yaml"):
        config.check_scale("paper", ["config.yaml"], ROOT)


def test_a_benchmark_may_widen_the_networks_but_gives_none_to_methods_without(good):
    assert config.pretrain_spec(config.check(good), "hpob", "held_out", "h_nll").model["features"] == (128, 128)
    assert config.pretrain_spec(config.check(good), "hpob", "held_out", "stboh").model["features"] == ()


def test_layers_follow_the_data_into_a_collection_that_has_them(good):
    """Of MPHD's benchmarks, the one with HPO-B's spaces has HPO-B's layers (mphd §4.2), the synthetic one has not."""
    wide = config.check(put(good, "hpob.features", [64, 64]))
    for benchmark, layers in (("super_mini", (64, 64)), ("mphd_l", (32, 32)), ("super_real", (32, 32))):
        assert config.pretrain_spec(wide, benchmark, "held_out", "h_nll").model["features"] == layers
        assert config.pretrain_spec(wide, benchmark, "held_out", "mphd").model["features"] == ()
    assert config.pretrain_spec(config.check(good), "super_mini", "held_out", "h_nll").model["features"] == (32, 32)


def test_a_structure_that_a_variant_names_is_not_widened(good):
    for method, sizes in (("h_nll_linear_32", (32, 32)), ("h_nll_zero_8", (8,)), ("h_nll_linear_128", (128, 128))):
        for benchmark in ("hpob", "hpob_mini"):
            spec = config.pretrain_spec(config.check(good), benchmark, "held_out_sweep", method)
            assert (spec.model["features"], spec.method) == (sizes, method)
            assert spec.pretrain["steps"] == good["structures"]["adam_steps"]
    least = config.pretrain_spec(config.check(good), "pd1_mini", "held_out_sweep", "h_ekl_zero_4").pretrain
    assert (least["objective"], least["steps"]) == ("ekl", good["sweep"]["lbfgs_steps"])


def test_a_setting_that_a_loader_reads_and_nothing_declares_is_told(monkeypatch):
    assert names._settings() == []
    entry = registry.benchmark("tables")
    monkeypatch.setattr(registry, "benchmark", lambda name: replace(entry, settings=("pool", "pols", "seed")))
    monkeypatch.setattr(registry, "benchmarks", lambda: ["tables"])
    (fault,) = names._settings()
    assert fault.startswith("metabo.data.tables: setting 'pols' of benchmark 'tables' is not declared; add it to src/")


def test_a_slip_of_a_fixed_setting_among_the_files_is_told_as_one(monkeypatch):
    """Else the remedy would be a type and a value for a setting that nobody meant."""
    entry = replace(registry.benchmark("tables"), settings=(), fixed=Values({"tables": ("a.csv",)}), files=("table",))
    monkeypatch.setattr(registry, "benchmark", lambda name: entry)
    monkeypatch.setattr(registry, "benchmarks", lambda: ["tables"])
    assert names._settings() == [
        "metabo.data.tables: BENCHMARKS key 'tables.files' has 'table', which is no setting. Did you mean 'tables'?"
    ]


@pytest.fixture
def fixed(monkeypatch, tmp_path):
    """Give `tables` settings with values of its own: a file that there is, and a number."""
    table = tmp_path / "forest.csv"
    table.write_text("x\n")
    entry = registry.benchmark("tables")

    def with_values(settings=(), files=("tables",), **values):
        given = replace(entry, settings=settings, files=files, fixed=Values({"tables": [str(table)], **values}))
        known = registry._benchmarks()
        changed = known | {"tables": known["tables"]._replace(entry=given)}
        monkeypatch.setattr(registry, "_benchmarks", lambda: changed)
        return table

    return with_values


def test_settings_may_have_their_values_in_the_registration(good, fixed):
    table = fixed(settings=("pool",), worst=0.9)
    made = config.check(good)
    spec = config.data_spec(made, "tables")
    assert spec.settings == Values({"pool": 1500, "tables": [str(table)], "worst": 0.9})
    assert config.named_files(made, "tables") == [str(table)]
    table.unlink()
    with pytest.raises(ConfigError, match=rf"^metabo.data.tables: BENCHMARKS key 'tables.fixed.tables': {table} does "):
        config.named_files(made, "tables")


def test_what_is_wrong_with_fixed_settings_is_told(good, fixed):
    fixed(files=())
    with pytest.raises(ConfigError, match=r"^metabo.data.tables: .*'tables.files' lacks 'tables', which names the f"):
        config.check(good)
    fixed(settings=("pool",), pool=3)
    with pytest.raises(ConfigError, match=r"^metabo.data.tables: .*'tables.fixed' has 'pool', which 'settings' lists"):
        config.check(good)


def test_schema_and_loaders_agree_on_the_search_spaces():
    from metabo.data import tables

    schema = yaml.safe_load((ROOT / "workflow/schemas/config.yaml").read_text())
    benchmarks = schema["properties"]["benchmarks"]["properties"]
    assert benchmarks["tables"]["properties"]["spaces"]["items"]["enum"] == sorted(tables.SPACES)
    listed = benchmarks["hpob"]["properties"]["spaces"]["items"]["enum"]
    assert listed == list(config.load(ROOT).benchmarks.hpob.spaces)
    own = [b for b in registry.benchmarks() if set(registry.benchmark(b).settings) - {"seed"}]
    others = [registry.benchmark(b) for b in set(registry.benchmarks()) - set(own) - set(benchmarks)]
    assert set(own) <= set(benchmarks) and all(entry.members or entry.fixed for entry in others)


def test_acquisition_names_are_those_of_the_code():
    from metabo.bo import acquisition

    assert (runs.SCORED, runs.OWN) == (acquisition.SCORED, acquisition.OWN)
    assert not set(runs.SCORED) & set(runs.OWN)

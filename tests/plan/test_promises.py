"""What code must give for a registration to hold: told from the syntax trees, and the same that the code does."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from metabo.errors import ConfigError
from metabo.plan import catalogue, codegraph, config, names, promises, registrations, registry, runs
from metabo.plan.typed import Values

ROOT = Path(__file__).parents[2]
REALLY = """
import importlib, json
from dataclasses import MISSING, fields
from unittest.mock import MagicMock
from metabo.plan import config, registry, specs, typed

SETTINGS, CONFIG, read = {}, config.load(), typed.read


class Read(Exception):
    pass


def watched(kind, value, *where):
    if value is SETTINGS:
        raise Read(kind)
    return read(kind, value, *where)


named = {f"{registry.method_module(name, part)} {part}": name
         for part in ("policy", "online") for name in registry.methods(part)}
typed.read = watched
found = {}
for place, name in named.items():
    module, part = place.split()
    acquisition, any = registry.method(name).acquisition, MagicMock()
    spec = specs.training_spec(config.pretrain_spec(CONFIG, "tables", "held_out", name))
    given = {"policy": (any, SETTINGS, acquisition, 1, any), "online": (spec, any, any, SETTINGS, acquisition, 1)}
    try:
        getattr(importlib.import_module(module), part)(*given[part])
        found[place] = {}
    except Read as done:
        found[place] = {field.name: field.default is MISSING for field in fields(done.args[0])}
print(json.dumps(found))
"""
"""What policies do with their settings, in a process that lets their arguments be anything."""


def test_the_settings_that_the_plan_finds_are_those_that_the_code_reads():
    done = subprocess.run([sys.executable, "-c", REALLY], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    parts = [(name, part) for part in ("policy", "online") for name in registry.methods(part)]
    assert found.keys() == {f"{registry.method_module(*one)} {one[1]}" for one in parts}
    assert {place: promises.reads(*place.split()) for place in found} == found
    assert sum(map(bool, found.values())) > 10


@pytest.fixture
def entry(monkeypatch):
    """Return a function that registers another method like one that there is."""

    def register(like: str, **changes):
        new = {"new": replace(registry.method(like), label="New", colour="#123456", marker="x", **changes)}
        known = registry._methods() | new
        monkeypatch.setattr(registry, "_methods", lambda: known)

    return register


@pytest.mark.parametrize(
    ("like", "changes", "message"),
    [
        (
            "fsbo",
            {"policy": Values({"kappa": 2})},
            "methods.yaml key 'new.policy.kappa' is read by nothing; leave it out. Settings of metabo.bo.fixed_prior: "
            "pi_threshold",
        ),
        ("rand", {"policy": Values({"a": 1})}, "methods.yaml key 'new.policy.a' .* of metabo.*random.policy: none"),
        ("stbo", {"policy": Values({"refit_step": 1})}, "'new.policy.refit_step' .* Did you mean 'refit_steps'?"),
        (
            "stbo",
            {"policy": Values({})},
            "'new.policy.refit_steps' is missing; metabo.methods.single_task.policy reads",
        ),
        ("stbo_online", {"online": Values({"kappa": 2})}, "methods.yaml key 'new.online.kappa' is read by nothing"),
    ],
)
def test_a_setting_that_nothing_reads_and_one_that_is_missing_are_told_before_anything_runs(
    entry, like, changes, message
):
    entry(like, **changes)
    with pytest.raises(ConfigError, match=message):
        catalogue.load()


@pytest.mark.parametrize(
    ("like", "changes", "message"),
    [
        (
            "h_nll",
            {"pretrain": Values({"steps": "@pretrain.adam_step"})},
            "methods.yaml key 'new.pretrain.steps': '@pretrain.adam_step' names no size of config.yaml. Did you mean "
            "'@pretrain.adam_steps'?",
        ),
        ("h_nll", {"pretrain": Values({"steps": "@pretrian.adam_steps"})}, "Did you mean '@pretrain.adam_steps'?"),
        (
            "h_nll",
            {"pretrain": Values({"steps": "ten"})},
            "methods.yaml key 'new.pretrain.steps' is a text; it is a number in all other methods: write one",
        ),
        ("h_nll", {"policy": Values({"pi_threshold": "high"})}, "key 'new.policy.pi_threshold' is a text; it is a n"),
    ],
)
def test_a_size_that_is_not_there_and_a_setting_of_another_type_are_told_before_anything_runs(
    entry, like, changes, message
):
    given = config.read(ROOT)
    assert config.check(given)
    entry(like, **changes)
    with pytest.raises(ConfigError) as raised:
        config.check(given)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def policy(params, settings, acquisition):\n    return params", {}),
        ("def policy(params, settings, acquisition):\n    return settings['kappa']", None),
        ("def policy(params, settings, acquisition):\n    return read(Own, settings, 'a'), settings['kappa']", None),
        ("def policy(params, settings, acquisition):\n    return read(kind=Own, value=settings)", None),
        ("def policy(params, settings, acquisition):\n    return read(Lost, settings, 'a')", None),
        ("def policy(params, settings, acquisition):\n    return read(Odd, settings, 'a')", None),
        ("def policy(params, settings, acquisition):\n    return read(Own, settings, 'a')", {"a": True, "b": False}),
        ("def policy(params, settings, acquisition):\n    return other.policy(params, settings)", {"a": True}),
        ("def policy(params, settings, acquisition):\n    return lost.policy(params, settings)", None),
        ("from metabo.other import policy", {"a": True}),
        ("", None),
        ("def policy(", None),
    ],
)
def test_settings_that_are_read_in_another_way_are_not_judged(tmp_path, monkeypatch, code, expected):
    package = tmp_path / "metabo"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "other.py").write_text(
        "class Base:\n    a: int\ndef policy(params, settings):\n    return read(Base, settings, 'policy')\n"
    )
    head = "import json\nfrom metabo import other\nfrom metabo.other import Base\n"
    kinds = "class Own(Base):\n    b: int = 3\nclass Odd(json.JSONEncoder):\n    c: int\n"
    (package / "new.py").write_text(f"{head}{kinds}{code}\n")
    monkeypatch.setattr(codegraph, "PACKAGE_ROOT", package)
    for name in ("reads", "_tree"):
        monkeypatch.setattr(promises, name, getattr(promises, name).__wrapped__)
    assert promises.reads("metabo.new", "policy") == expected


MAKE = "SCORED = {}\ndef make(slug):\n    table = {%s}\n    return table[slug]\n"


@pytest.mark.parametrize(
    ("scored", "table", "expected"),
    [
        (["pi", "ei"], "'pi': 1, 'ei': 2", []),
        (["pi", "late"], "'pi': 1}\n    if slug == 'late':\n        return 3\n    table |= {", []),
        (["pi", "not_there"], "'pi': 1", ["SCORED has 'not_there', which `make` does not give; add it to `make`"]),
        (["pi"], "'pi': 1, 'q': 2", ["`make` gives 'q', which SCORED has no label for; add it to SCORED"]),
        (["pi"], "'pi': (", []),
    ],
)
def test_acquisitions_are_named_and_made(tmp_path, monkeypatch, scored, table, expected):
    (tmp_path / "acquisition.py").write_text(MAKE % table)
    monkeypatch.setattr(promises, "path_of", lambda _: tmp_path / "acquisition.py")
    monkeypatch.setattr(promises, "SCORED", dict.fromkeys(scored, "A"))
    monkeypatch.setattr(promises, "_tree", promises._tree.__wrapped__)
    assert promises.acquisitions() == [f"src/metabo/bo/acquisition.py: {line}" for line in expected]


@pytest.mark.parametrize("name", ["fade/x", "fade@x", "fade x", "fade-x", "FADE", "2fade"])
def test_an_acquisition_whose_name_no_file_can_have_is_told(monkeypatch, name):
    assert promises.acquisitions() == []
    monkeypatch.setattr(promises, "OWN", runs.OWN | {name: "Fade"})
    assert promises.acquisitions() == [f"src/metabo/bo/acquisition.py: acquisition '{name}': {promises.SLUGS}"]


class TestParts:
    """The functions of the modules that a method names."""

    def told(self, monkeypatch, tmp_path, code, part="policy"):
        folder = tmp_path / "mine"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "policy.py").write_text(code)
        found = {"metabo.methods.mine": folder / "__init__.py", "metabo.methods.mine.policy": folder / "policy.py"}
        monkeypatch.setattr(codegraph, "source", found.__getitem__)
        monkeypatch.setattr(registry, "methods", lambda one: ["h_nll"] if one == part else [])
        monkeypatch.setattr(registry, "method_module", lambda name, part: "metabo.methods.mine.policy")
        return promises.parts(["h_nll"])

    def test_all_parts_of_all_methods_have_them(self):
        assert promises.parts(registry.methods()) == []

    @pytest.mark.parametrize("code", ["def policy(): ...", "from metabo.bo.fixed_prior import policy", "policy = 1"])
    def test_a_function_that_is_there(self, monkeypatch, tmp_path, code):
        assert self.told(monkeypatch, tmp_path, code) == []

    def test_one_that_is_not_there(self, monkeypatch, tmp_path):
        (line,) = self.told(monkeypatch, tmp_path, "def polcy(): ...")
        assert line == (
            "src/metabo/methods/mine/policy.py: the policy of method 'h_nll' has no function `policy`; write it there. "
            "Did you mean 'polcy'?"
        )

    def test_a_training_needs_two(self, monkeypatch, tmp_path):
        found = self.told(monkeypatch, tmp_path, "", "pretrain")
        assert [line.split("`")[1] for line in found] == ["start", "pretrain"]

    def test_a_folder_that_is_no_package(self, monkeypatch, tmp_path):
        monkeypatch.setattr(codegraph, "PACKAGE_ROOT", tmp_path / "metabo")
        (tmp_path / "metabo" / "methods" / "mine").mkdir(parents=True)
        monkeypatch.setattr(registry, "method_module", lambda name, part: "metabo.methods.mine.policy")
        (line,) = promises.parts(["h_nll"])
        assert line == f"{tmp_path}/metabo/methods/mine has no __init__.py; add an empty one, so that it is a package"


def test_two_methods_of_one_label_are_told_unless_they_look_the_same(monkeypatch):
    made = replace(registry.method("h_nll"), label=registry.method("fsbo").label)
    monkeypatch.setattr(registry, "method", lambda name, real=registry.method: made if name == "h_nll" else real(name))
    labels = [line for line in names._methods() if ".label'" in line]
    assert labels and all("is that of" in line and "give it another one" in line for line in labels)


@pytest.mark.parametrize(
    ("function", "made", "told"),
    [
        ("def q(mean, std, best, count): ...", "q", None),
        ("def q(mean, std, best, count, level): ...", "partial(q, level=0.9)", None),
        ("def q(mean, std, best, count, level=0.9): ...", "q", None),
        ("def q(mean, std, best, count, *, level=0.9): ...", "q", None),
        ("def q(*scores): ...", "q", None),
        ("q = other.q", "q", None),
        ("", "lambda *scores: 1", None),
        ("def q(*, mean, std, best, count): ...", "q", "(mean, std, best, count), .*; bind mean, std, best, count in"),
        ("def q(std, mean, best, count): ...", "q", "(std, mean, best, count), .*; give it these four first: mean, "),
        ("def q(mean, std, best): ...", "q", "(mean, std, best), .*; give it these four first: mean, std, best, count"),
        ("def q(mean, std, best, level): ...", "partial(q, level=0.9)", "(mean, std, best, level), .*; give it these"),
        ("def q(mean, std, best, count, level): ...", "q", "(mean, std, best, count, level), .*; bind level in `make`"),
        ("def q(mean, std, best, count, *, level): ...", "q", "(mean, std, best, count, level), .*; bind level in"),
    ],
)
def test_an_acquisition_that_cannot_be_called_as_one_is_told(tmp_path, monkeypatch, function, made, told):
    (tmp_path / "acquisition.py").write_text(f"{function}\n" + MAKE % f"'q': {made}")
    monkeypatch.setattr(promises, "path_of", lambda _: tmp_path / "acquisition.py")
    monkeypatch.setattr(promises, "SCORED", {"q": "Q"})
    monkeypatch.setattr(promises, "_tree", promises._tree.__wrapped__)
    found = promises.acquisitions()
    assert len(found) == (told is not None)
    if told:
        start, _, end = told.partition(".*")
        assert found[0].startswith(f"src/metabo/bo/acquisition.py: 'q' takes {start}") and end in found[0]


def test_a_lambda_that_cannot_be_called_as_an_acquisition_is_told(tmp_path, monkeypatch):
    (tmp_path / "acquisition.py").write_text(
        MAKE % "'q': lambda mean, std: mean, 'r': lambda mean, std, best, count: 1"
    )
    monkeypatch.setattr(promises, "path_of", lambda _: tmp_path / "acquisition.py")
    monkeypatch.setattr(promises, "SCORED", {"q": "Q", "r": "R"})
    monkeypatch.setattr(promises, "_tree", promises._tree.__wrapped__)
    (found,) = promises.acquisitions()
    assert found.startswith("src/metabo/bo/acquisition.py: a lambda takes (mean, std), and cannot be called as")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("name, settings, archive=None", False),
        ("name, settings, archive", False),
        ("name, settings, archive=None, more=1", False),
        ("*given", False),
        ("name, *given", False),
        ("name, settings", True),
        ("settings", True),
        ("name, settings, archive, more", True),
        ("name, settings, archive=None, *, more", True),
    ],
)
def test_a_load_that_cannot_be_called_is_told_by_the_plan(tmp_path, monkeypatch, arguments, told):
    (tmp_path / "forest.py").write_text(f"def load({arguments}):\n    ...\n")
    monkeypatch.setattr(registry, "benchmarks", lambda: ["forest"])
    monkeypatch.setattr(registry, "loader", lambda name: "metabo.data.forest")
    monkeypatch.setattr(codegraph, "source", lambda module: tmp_path / "forest.py")
    monkeypatch.setattr(promises, "_tree", promises._tree.__wrapped__)
    line = (
        f"src/metabo/data/forest.py: it registers 'forest' and its `load({arguments})`, line 1, cannot be called as "
        "load(name, settings, archive); write `def load(name, settings, archive=None):`"
    )
    assert promises.loaders() == ([line] if told else [])


def test_a_loader_without_load_is_told_by_the_plan(monkeypatch):
    assert promises.loaders() == []
    monkeypatch.setattr(
        registry, "loader", lambda name: "metabo.data.counts" if name == "tables" else "metabo.data.pd1"
    )
    assert promises.loaders() == [
        "src/metabo/data/counts.py: it registers 'tables' and has no function `load(name, settings, archive)`; write "
        "one, docs/new-data.md shows how"
    ]


def test_an_acquisition_without_its_line_in_make_stops_the_plan(monkeypatch):
    monkeypatch.setattr(promises, "SCORED", runs.SCORED | {"not_there": "UCB, log t"})
    with pytest.raises(
        ConfigError, match=r"^src/metabo/bo/acquisition.py: SCORED has 'not_there', .*; add it to `make`$"
    ):
        catalogue.load()


def test_an_unknown_acquisition_of_a_method_is_told_with_its_file_and_what_there_is_for_all(entry):
    entry("fsbo", acquisition="ucblgo")
    with pytest.raises(ConfigError) as error:
        catalogue.load()
    assert str(error.value) == (
        "methods.yaml key 'new.acquisition': unknown acquisition 'ucblgo'. Did you mean 'ucb3'? Valid: "
        f"{', '.join(sorted(runs.SCORED))}; a new one is added to SCORED and to `make` in "
        "src/metabo/bo/acquisition.py, or to OWN there if the policy computes it itself"
    )


def test_marker_and_dashes_of_another_method_are_told(entry):
    entry("fsbo")
    assert names._methods() == []
    registry._methods()["new"] = replace(registry.method("new"), marker=registry.method("fsbo").marker)
    (fault,) = names._methods()
    assert fault == (
        "methods.yaml key 'new.marker' and its dashes are those of 'fsbo', '^' with [1, 1.2]; `metabo list looks` "
        "names free ones"
    )


def test_of_two_that_look_alike_the_later_one_in_the_file_is_told(entry):
    entry("rand")  # which stands before it, and behind it by name
    for part in ("colour", "marker"):
        registry._methods()["new"] = replace(registry.method("new"), **{part: getattr(registry.method("rand"), part)})
    told = names._methods()
    assert [fault.split("'")[1] for fault in told] == ["new.colour", "new.marker"]
    assert all("'rand'" in fault for fault in told)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"marker": "oo"},
            "key 'new.marker' is 'oo', which is no marker of matplotlib; `metabo list looks` names free",
        ),
        ({"dashes": (3.0,)}, "key 'new.dashes' is [3.0]: write lengths of dash and gap in turn, all above 0"),
        ({"dashes": (3.0, 0.0)}, "key 'new.dashes' is [3.0, 0.0]: write lengths of dash and gap in turn"),
    ],
)
def test_a_look_that_cannot_be_drawn_is_told(entry, changes, told):
    entry("fsbo")
    registry._methods()["new"] = replace(registry.method("new"), **changes)
    (fault,) = names._methods()
    assert told in fault


def test_the_markers_that_the_plan_knows_are_matplotlibs():
    from matplotlib.lines import Line2D

    texts = {marker for marker in Line2D.markers if isinstance(marker, str)}
    assert texts - names.MARKERS == {",", " ", "", "None", "none"}  # a pixel, and nothing
    assert texts > names.MARKERS


def test_a_setting_without_a_description_is_told(monkeypatch):
    assert names._described() == []
    section = names.BenchmarkSections.model_fields["tables"].annotation
    monkeypatch.setattr(section.model_fields["pool"], "description", None)
    assert names._described() == [
        "src/metabo/plan/sections/benchmarks.py: setting 'pool' of benchmark 'tables' has no description; write "
        "`= Field(description=...)`"
    ]


def test_a_section_that_no_loader_registers_is_told(monkeypatch):
    assert names._unread() == []
    monkeypatch.setattr(registry, "benchmarks", lambda: sorted({*registry._benchmarks()} - {"tables"}))
    (fault,) = names._unread()
    assert fault == (
        "src/metabo/plan/sections/benchmarks.py: no module in src/metabo/data registers 'tables'; give its loader a "
        "table BENCHMARKS that names it, or delete the section"
    )


def test_an_unknown_target_is_told_with_the_nearest_ones_and_how_to_list_all():
    targets = [f"hyperbo_fig{i:02}" for i in range(1, 30)] + ["all", "priors"]
    said = str(names.no_target("hyperbo_fg09", targets))
    assert said.startswith("unknown target 'hyperbo_fg09'; nearest: hyperbo_fig09, ")
    assert said.count("hyperbo_fig") == 5 and "`metabo list artefacts`" in said and "\n" not in said
    assert "nothing has a name like it" in str(names.no_target("zzz", targets))
    begun = str(names.no_target("hyperbo_x16_l", {*targets, "hyperbo_x16_lcbench"}))
    assert begun.startswith("unknown target 'hyperbo_x16_l'; nearest: hyperbo_x16_lcbench")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("out/bo/tables/held_ou/h_nll-pi.parquet", "nearest: out/bo/tables/held_out/h_nll-pi.parquet"),
        ("out/bo/tables/held_out/h_nl-pi.parquet", "nearest: out/bo/tables/held_out/h_nll-pi.parquet"),
        ("out/data", "nearest: out/data/tables.npz"),
        (
            "other/data/tables.npz",
            "nearest: out/data/tables.npz. This run makes what lies in out; `--configfile` chooses the scale",
        ),
        ("out/claims/hyperbo.csv", "nothing below 'out' has a name like 'claims'"),
        (
            "zz/a.csv",
            "nothing below '.' has a name like 'zz'. This run makes what lies in out; `--configfile` chooses the scale",
        ),
    ],
)
def test_a_path_that_no_rule_makes_is_told_with_the_nearest_one(path, said):
    runs = [f"out/bo/{on}/{split}/h_nll-pi.parquet" for on in ("tables", "table") for split in ("held_out", "crossed")]
    assert str(names.no_result(path, [*runs, "out/data/tables.npz"], "out")) == f"no rule makes '{path}'; {said}"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("BENCHMARKS = {'boost': {}, 'tables_2': {}}", ""),
        ("def load(name):\n    return BENCHMARKS[name]", ""),
        ("BENCHMARKS: dict[str, object] = {'boost': {}}", "is read without running the module; write it once"),
        ("if True:\n    BENCHMARKS = {'boost': {}}", "is read without running the module; write it once"),
        ("BENCHMARKS = {}\nBENCHMARKS['boost'] = {}", "is read without running the module; write it once"),
        ("BENCHMARKS = {'a': {}}\nBENCHMARKS = {'b': {}}", "is read without running the module; write it once"),
        ("BENCHMARKS = ['boost']", "is no literal dict of benchmarks by name"),
        ("BENCHMARKS = dict(boost={})", "is no literal dict of benchmarks by name"),
        ("BENCHMARKS = {'my boost': {}}", f"has the name 'my boost': {promises.SLUGS}"),
        ("BENCHMARKS = {1: {}, **others}", f"has the name 1: {promises.SLUGS}"),
        ("BENCHMARKS = {NAME: {}}", ""),
        ("BENCHMARKS = {}\nBENCHMARKS.update(boost={})", "is read without running the module; write it once"),
        ("try:\n    BENCHMARKS = {}\nfinally:\n    pass", "is read without running the module; write it once"),
        ("try:\n    import x\nexcept ImportError:\n    BENCHMARKS = {}", "is read without running the module"),
        ("BENCHMARKS = {}\ndef f():\n    BENCHMARKS = 3\nclass A:\n    BENCHMARKS = 3", ""),
        ("BENCHMARKS = (", ""),
    ],
)
def test_a_table_of_benchmarks_that_is_not_found_is_told(tmp_path, monkeypatch, code, told):
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "boost.py"
    path.write_text(code)
    monkeypatch.setattr(registry, "PACKAGE_ROOT", tmp_path)
    found = registrations.faults()
    assert bool(found) == bool(told) and all(line.startswith(f"{path}, line ") for line in found)
    assert not told or told in found[0]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def policy(params, settings, acquisition, budget, past=None):\n    return make(acquisition)", False),
        ("def policy(params, settings, which, budget, past=None):\n    return make(which)", False),
        ("def policy(params, settings, acquisition, budget, past=None):\n    return Mine(params)", True),
        ("def policy(params, settings):\n    return Mine(params)", False),
        ("def policy(params, settings, acquisition):\n    return Mine(**locals())", False),
        ("def policy(params, settings, acquisition):\n    acquisition = 'ei'\n    return Mine(params)", True),
        ("@wrapped\ndef policy(params, settings, acquisition):\n    return Mine(params)", False),
        ("def policy(params, settings, budget, acquisition):\n    return make(acquisition)", False),
        ("def policy(params, settings, budget, *, acquisition):\n    return Mine(budget)", True),
        ("def policy(", False),
    ],
)
def test_a_policy_that_takes_no_notice_of_its_acquisition_is_told(tmp_path, monkeypatch, code, told):
    (tmp_path / "policy.py").write_text(code)
    monkeypatch.setattr(promises, "_tree", promises._tree.__wrapped__)
    assert promises.ignored(["h_nll", "mimo"]) == []
    monkeypatch.setattr(codegraph, "source", lambda module: tmp_path / "policy.py")
    found = promises.ignored(["h_nll"])
    assert len(found) == told and all(
        "'h_nll.acquisition' is 'pi', of which `policy` takes no notice" in f for f in found
    )
    assert (
        promises.ignored([name for name in registry.methods() if registry.method(name).acquisition in runs.OWN]) == []
    )


@pytest.mark.parametrize("field", ["report", "remarks"])
def test_a_report_that_is_not_there_is_told_before_anything_is_trained(monkeypatch, field):
    made_of = registry.made_of
    assert promises.parts(["mphd"]) == []
    made = replace(made_of("mphd"), **{field: "methods.hierarchical.train.nope"})
    monkeypatch.setattr(registry, "made_of", lambda name: made if name == "mphd" else made_of(name))
    (line,) = promises.parts(["mphd"])
    assert line.startswith(
        f"src/metabo/methods/hierarchical/train.py: the {field} of method 'mphd' has no function `nope`"
    )

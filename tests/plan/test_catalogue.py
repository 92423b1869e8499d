"""The catalogue: optional inputs, online methods, names of rules, and faults that are told with the entry."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from metabo.errors import ConfigError
from metabo.plan import catalogue, config, registry
from metabo.plan.artefact import applies
from metabo.plan.entries import CatalogueEntry, Inputs
from metabo.plan.runs import RunId
from metabo.plan.typed import read
from tests import counts

ROOT = Path(__file__).parents[2]
PRINTED = {
    "hyperbo": {*(f"fig{n:02}" for n in range(1, 30)), *(f"tab{n:02}" for n in range(1, 8))},
    "mphd": {*(f"fig{n:02}" for n in range(1, 15)), "tab01"},
    "cmbo": {"fig01", "fig02", "fig03", "tab01"},
    "hegpucb": {*(f"fig{n:02}" for n in range(1, 7)), "fig02b", "fig02c", "tab01"},
}
"""The figures and tables that each paper prints: facts, whatever the catalogue says. hegpucb's fig02b and fig02c are
its Figure 2 with settings of later code of the authors, and with constants of the theorems."""


@pytest.fixture(scope="module")
def entries():
    """The project's catalogue as it is written."""
    return yaml.safe_load((ROOT / catalogue.CATALOGUE).read_text())


@pytest.fixture
def load(tmp_path, entries):
    """Return a function that loads the project's catalogue with changed entries."""
    (tmp_path / "workflow" / "schemas").mkdir(parents=True)
    shutil.copy(ROOT / catalogue.SCHEMA, tmp_path / catalogue.SCHEMA)
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")

    def change(**changes):
        (tmp_path / catalogue.CATALOGUE).write_text(yaml.safe_dump({**entries, **changes}, sort_keys=False))
        return catalogue.load(tmp_path)

    change.entries = entries
    return change


def artefact(name: str) -> catalogue.Artefact:
    found = {a.name: a for a in catalogue.artefacts(config.load(ROOT), catalogue.load(ROOT))}
    return found[name]


def test_every_figure_and_table_that_a_paper_prints_is_in_the_catalogue():
    entries = catalogue.load(ROOT)
    assert set(catalogue.papers(entries)) == set(PRINTED)
    for paper, printed in PRINTED.items():
        own = {id.removeprefix(f"{paper}_") for id, entry in entries.items() if entry.paper == paper}
        assert {name for name in own if not name.startswith("x")} == printed  # x: beyond the paper


def test_an_artefact_of_online_tuning_reads_tables_of_its_split():
    figure = artefact("hyperbo_fig14")
    assert (figure.benchmark, figure.splits) == ("pd1_mini", ["others"])
    assert figure.online == [RunId(m, split="others") for m in ("stboh_online", "h_nll_online", "h_ekl_online")]
    assert figure.trajectories == [] and figure.evaluations == []


def test_an_artefact_says_where_its_files_are():
    figure, theory = artefact("hyperbo_fig10"), artefact("mphd_x01")
    assert (figure.place, theory.place) == ("hyperbo/pd1_mini/hyperbo_fig10", "mphd/mphd_x01")
    assert list(figure.files) == ["trajectories", "evaluations"] and list(theory.files) == ["theory"]
    assert figure.files["trajectories"][0] == "bo/pd1_mini/held_out/ablr-pi.parquet"
    assert figure.files["evaluations"][-1] == "evaluation/pd1_mini/held_out/h_ekl.parquet"
    assert theory.files["theory"][0] == "theory/mphd/equation3.json"
    assert artefact("hyperbo_fig14").files["online"][0] == "online/pd1_mini/others/stboh_online.parquet"
    assert artefact("hyperbo_fig03").files == {"studies": ["studies/landscapes.parquet"]}


def test_an_artefact_without_inputs_reads_the_benchmark_only():
    table = artefact("hyperbo_tab03")
    assert table.inputs == Inputs() and table.splits == []
    assert table.online == [] and table.trajectories == [] and table.evaluations == []


def test_the_embedded_benchmarks_are_the_default():
    embedded = config.load(ROOT).run.benchmarks
    assert not [job for job in counts.data(embedded) if job.startswith("download_")]
    for id, entry in catalogue.load(ROOT).items():
        first = (entry.benchmarks or embedded)[0]
        beyond = id.removeprefix(f"{entry.paper}_").startswith("x")  # may be of a data set of one's own alone
        assert beyond or first in embedded, f"{id}: list a benchmark of the default run before {first}"
    assert artefact("hyperbo_fig08").benchmark == "pd1_mini"
    assert artefact("hyperbo_fig08_tables").benchmark == "tables" and artefact("hyperbo_x02_hpob").benchmark == "hpob"
    assert artefact("hyperbo_fig15").benchmark == "hpob_mini"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"split": "others", "online": ["h_nll_onlin"]}, "unknown method 'h_nll_onlin'. Did you mean 'h_nll_online'?"),
        (
            {"split": "others", "online": ["h_nll"]},
            "online: 'h_nll' cannot run so, 'online' of its entry in methods.yaml is null or left out; write "
            "`online: {}` there if it takes no settings, or name one that can, such as h_nll_online, ",
        ),
        (
            {"split": "others", "trajectories": ["h_nll_online"]},
            "trajectories: 'h_nll_online' cannot run so, 'policy' of its entry in methods.yaml is null or left out; "
            "write `policy: {}` there if it takes no settings, or name one that can, such as h_nll_",
        ),
        (
            {"split": "other", "online": ["rand"]},
            "unknown split of benchmark 'pd1_mini' 'other'. Did you mean 'others'?",
        ),
        ({"online": ["rand"]}, "inputs: 'split' is missing"),
        ({"split": "others"}, "inputs: 'split' is given, but no tables"),
        ({"split": "others", "onlin": ["rand"]}, "onlin"),
    ],
)
def test_faulty_inputs_are_told_with_their_entry(load, inputs, message):
    with pytest.raises(ConfigError) as error:
        load(hyperbo_fig14={**load.entries["hyperbo_fig14"], "inputs": inputs})
    assert message in str(error.value) and "hyperbo_fig14" in str(error.value)


def test_several_splits_are_crossed_with_the_methods_and_one_may_be_named(load):
    inputs = {
        "splits": ["held_out_points_10", "held_out_points_1000", "held_out_sweep"],
        "trajectories": ["h_nll", "stboh@held_out_sweep", "h_nll-ei@held_out"],
        "evaluations": ["h_nll"],
    }
    entry = read(CatalogueEntry, load.entries["hyperbo_fig15"] | {"inputs": inputs}, "catalogue")
    mini, full = (catalogue.Artefact("x", "x", benchmark, entry) for benchmark in ("hpob_mini", "hpob"))
    small, all_splits = ["held_out_points_10", "held_out_sweep"], inputs["splits"]  # hpob_mini has no 1000 points
    for artefact_, splits in ((mini, small), (full, all_splits)):
        assert artefact_.splits == splits
        assert artefact_.trajectories == [
            *(("h_nll", "pi", split) for split in splits),
            ("stboh", "ucb18", "held_out_sweep"),
            ("h_nll", "ei", "held_out"),
        ]
        assert artefact_.evaluations == [RunId("h_nll", split=split) for split in splits]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"splits": ["held_out"]}, "give 'split' or 'splits', not both"),
        ({"trajectories": ["h_nll@others_points_4"]}, "'others_points_4' is on none of the benchmarks hpob_mini, hpob"),
        ({"trajectories": ["h_nll@held_oud"]}, "unknown split 'held_oud'. Did you mean 'held_out'?"),
        ({"trajectories": ["h_nll", "h_nll-pi@held_out"]}, "h_nll-pi on split 'held_out' twice"),
    ],
)
def test_faulty_splits_are_told(load, change, message):
    entry = load.entries["hyperbo_fig15"]
    with pytest.raises(ConfigError) as error:
        load(hyperbo_fig15=entry | {"inputs": entry["inputs"] | change})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("needs", "benchmark", "runs"),
    [
        ({}, "hpob_mini", True),
        ({"needs_matched": True}, "hpob_mini", False),
        ({"needs_matched": True}, "tables", True),
        ({"needs_truth": True}, "tables", False),
        ({"needs_truth": True}, "super_mini", False),
        ({"needs_truth": True}, "mphd_l", True),
        ({"needs_truth": True}, "mphd_s", True),
        ({"needs_truth": True, "needs_matched": True}, "mphd_l", False),
        ({"needs_truth": False}, "tables", True),
    ],
)
def test_a_method_is_left_out_where_its_needs_are_not_met(monkeypatch, needs, benchmark, runs):
    entry = replace(registry.method("h_nll"), **needs)
    monkeypatch.setattr(registry, "method", lambda name: entry)
    assert applies("any", benchmark) is runs


def test_tables_of_a_benchmark_need_one(load):
    entry = {key: value for key, value in load.entries["hyperbo_fig15"].items() if key != "benchmarks"}
    with pytest.raises(ConfigError, match="lists no 'benchmarks'"):
        load(hyperbo_fig15=entry)


@pytest.mark.parametrize(
    ("id", "inputs", "message"),
    [
        ("hyperbo_x03", {"theory": ["lema10"]}, "'lema10'. Did you mean 'lemma10'?"),
        ("hyperbo_fig03", {"studies": ["landscape"]}, "unknown study 'landscape'. Did you mean 'landscapes'?"),
    ],
)
def test_unknown_checks_and_studies_are_told(load, id, inputs, message):
    with pytest.raises(ConfigError) as error:
        load(**{id: load.entries[id] | {"inputs": inputs}})
    assert message in str(error.value) and id in str(error.value)


def test_ids_are_figures_tables_and_artefacts_beyond_the_paper(load):
    assert "hyperbo_x77" in load(hyperbo_x77=load.entries["hyperbo_tab03"])
    with pytest.raises(ConfigError, match="hyperbo_y01"):
        load(hyperbo_y01=load.entries["hyperbo_tab03"])


def test_a_bad_id_is_told_the_rule_in_words(load):
    with pytest.raises(ConfigError, match=r"paper, underscore, fig, tab or x .*two digits"):
        load(hyperbo_fig7=load.entries["hyperbo_tab03"])


@pytest.mark.parametrize(
    ("id", "change", "message"),
    [
        ("hyperbo_x77", {"paper": "hyprbo"}, "unknown paper 'hyprbo'. Did you mean 'hyperbo'?"),
        ("engine_x77", {"paper": "engine"}, "unknown paper 'engine'"),
        ("mphd_x77", {}, "its id must begin with its paper, 'hyperbo_'"),
        ("hyperbo_x77", {"notebook": "shared/rank.ipynb"}, "notebooks/shared/rank.ipynb does not exist"),
        ("hyperbo_x77", {"parameters": {"unitt": "run"}}, "'unitt' is no parameter of it. Did you mean 'unit'?"),
        ("hyperbo_x77", {"parameters": {"unit": 1}}, "'unit' is 1, must be of the type of the default, 'prior'"),
        ("hyperbo_x77", {"parameters": {"title": "a"}}, "'title' is given by the workflow"),
        (
            "hyperbo_x77",
            {"inputs": {"split": "held_out", "online": ["rand"]}},
            "ranks.ipynb: 'online' is no parameter of it",
        ),
        ("hyperbo_x77", {"benchmarks": ["tabels"]}, "unknown benchmark 'tabels'. Did you mean 'tables'?"),
        ("hyperbo_x77", {"on_request": ["tabels"]}, "unknown benchmark of this entry 'tabels'. Did you mean 'tables'?"),
        ("hyperbo_x77", {"on_request": ["tables"], "claims": ["C25"]}, "'on_request': claims read it (C25)"),
    ],
)
def test_a_faulty_entry_is_told_once(load, id, change, message):
    with pytest.raises(ConfigError) as error:
        load(**{id: load.entries["hyperbo_fig09"] | change})
    assert str(error.value).count(message) == 1 and f"catalogue entry '{id}'" in str(error.value)


@pytest.mark.parametrize(
    ("id", "parameters", "trajectories", "message"),
    [
        (
            "hyperbo_fig13",
            {},
            ["rand", "fsbo", "fsbo-ucb3"],
            "parameter 'reference' is stboh, the template's default, which the inputs on tables lack; give "
            "'reference' under 'parameters'. They have: fsbo, fsbo-ucb3, rand",
        ),
        ("hyperbo_fig13", {"reference": "fsbo-ei"}, ["rand", "fsbo-ucb3"], "parameter 'reference' is fsbo-ei, which"),
        ("hyperbo_fig13", {"reference": "fsbo"}, ["rand", "fsbo-ucb3"], "parameter 'reference' is fsbo, which the"),
        ("hyperbo_fig13", {"reference": "fsbo-ucb3"}, ["rand", "fsbo-ucb3"], None),
        ("hyperbo_fig13", {"reference": "h_nll"}, ["rand", "h_nll-pi"], None),
        (
            "hyperbo_fig08",
            {"faster": ["mimo"], "reference": "rand"},
            ["rand", "stbo"],
            "parameter 'faster' names 'mimo', which the inputs do not have; add it to them, or take it out of 'faster'."
            " They have: rand, stbo",
        ),
        ("hyperbo_fig08", {"faster": ["stbo", "mimo"]}, ["rand", "stbo-ei"], "parameter 'faster' names 'mimo', which"),
        ("hyperbo_fig08", {"faster": ["stbo"], "reference": "rand"}, ["rand", "stbo-ei"], None),
        (
            "hyperbo_fig08",
            {"faster": ["h_nl"]},
            ["rand", "h_nll"],
            "parameter 'faster': unknown method 'h_nl'. Did you mean 'h_nll'? Valid: h_nll, rand",
        ),
        ("hyperbo_fig08", {"against": ["ramd"]}, ["rand", "h_nll"], "parameter 'against': unknown method 'ramd'"),
    ],
)
def test_a_parameter_that_names_a_method_without_runs_is_told(load, id, parameters, trajectories, message):
    inputs = {"split": "held_out", "trajectories": trajectories}
    changed = load.entries[id] | {"parameters": parameters, "inputs": inputs, "claims": [], "benchmarks": ["tables"]}
    changed.pop("on_request", None)
    if message is None:
        load(**{id: changed})
        return
    with pytest.raises(ConfigError) as error:
        load(**{id: changed})
    assert message in str(error.value) and len(str(error.value).splitlines()) == 2


def test_a_method_that_one_benchmark_cannot_have_is_told_with_it(load):
    """H-EKL needs matched inputs, which hpob_mini has not."""
    inputs = {"split": "held_out", "trajectories": ["rand", "h_ekl"]}
    with pytest.raises(ConfigError, match="'reference' is h_ekl, which the inputs on hpob_mini lack"):
        load(hyperbo_x77=load.entries["hyperbo_fig08"] | {
            "parameters": {"reference": "h_ekl", "faster": ["rand"], "alternatives": ["rand"]}, "inputs": inputs,
            "benchmarks": ["tables", "hpob_mini"], "claims": [],
        })  # fmt: skip


@pytest.mark.parametrize("overlay", [(), ("smoke",), ("paper",)])
def test_a_papers_target_makes_each_of_its_entries_at_every_scale(overlay):
    """Of hyperbo, at the smoke scale, those on its one small benchmark only."""
    entries = catalogue.load(ROOT)
    settings = config.load(ROOT, tuple(ROOT / "config" / f"{name}.yaml" for name in overlay))
    made = catalogue.collections(settings, catalogue.artefacts(settings, entries))
    for paper in catalogue.papers(entries) if overlay != ("smoke",) else ["mphd"]:
        assert {a.id for a in made[paper]} == {id for id, entry in entries.items() if entry.paper == paper}


def test_what_is_made_on_request_has_its_own_target_and_that_of_its_benchmark_alone():
    settings, entries = config.load(ROOT), catalogue.load(ROOT)
    listed = catalogue.artefacts(settings, entries)
    asked = {a.name for a in listed if a.benchmark in a.entry.on_request and a.benchmark in settings.run.benchmarks}
    assert asked
    made = catalogue.collections(settings, listed)
    assert asked.isdisjoint(a.name for a in catalogue.enabled(settings, listed))
    for artefact in listed:
        if artefact.name in asked:
            assert artefact in made[artefact.benchmark] and artefact not in made[artefact.entry.paper]


def test_a_run_may_name_its_artefacts_those_made_on_request_too():
    entries = catalogue.load(ROOT)

    def made(*names):
        settings = config.check(config.merge(config.read(ROOT), {"run": {"artefacts": list(names)}}))
        listed = catalogue.artefacts(settings, entries)
        return [a.name for a in catalogue.enabled(settings, listed)], catalogue.collections(settings, listed)

    enabled, groups = made("hyperbo_x06_hpob_mini", "hyperbo_fig08", "mphd_tab01")
    assert sorted(enabled) == ["hyperbo_fig08", "hyperbo_x06_hpob_mini", "mphd_tab01"]
    assert "hyperbo_fig09" in [a.name for a in groups["hyperbo"]]  # a target that is typed is made whole
    with pytest.raises(ConfigError, match=r"'run\.artefacts': unknown artefact .* 'hyperbo_fig8'\. Did you mean"):
        made("hyperbo_fig8")
    with pytest.raises(ConfigError, match=r"Did you mean 'hyperbo_fig08'\?"):
        made("hyperbo_fig8")
    with pytest.raises(ConfigError, match="'hyperbo_fig08_pd1_mini' is called 'hyperbo_fig08' in this run"):
        made("hyperbo_fig08_pd1_mini")
    with pytest.raises(ConfigError, match="unknown artefact of this run 'hyperbo_fig08_lcbench'"):
        made("hyperbo_fig08_lcbench")  # its benchmark is not one of the run's


@pytest.mark.parametrize(("paper", "control"), [("hyperbo", "control"), ("cmbo", "cmbo_control")])
def test_verdicts_read_the_controls_of_a_papers_methods(paper, control):
    """No claim is tested on them, so that they would be left out; every claim of the paper rests on them."""
    settings, entries = config.load(ROOT), catalogue.load(ROOT)
    read = [a for a in catalogue.enabled(settings, catalogue.artefacts(settings, entries)) if a.judges]
    assert any(a.benchmark == control and not a.entry.claims for a in read if a.entry.paper == paper)
    assert all(a.entry.claims for a in read if a.benchmark != control and a.entry.paper == paper)


def test_every_check_and_every_study_is_shown_by_some_artefact():
    entries = catalogue.load(ROOT).values()
    for paper in registry.papers_with_checks():
        shown = [name for e in entries if e.paper == paper for name in e.inputs.theory or ()]
        assert sorted(shown) == registry.checks(paper)
    studied = {name for entry in entries for name in entry.inputs.studies or ()}
    assert sorted(studied) == registry.studies()

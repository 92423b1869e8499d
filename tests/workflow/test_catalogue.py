"""The catalogue: optional inputs, online methods, names of rules, and faults that are told with the entry."""

import shutil
from pathlib import Path

import pytest
import yaml

from metabo import catalogue, config
from metabo.errors import ConfigError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def load(tmp_path):
    """Return a function that loads the project's catalogue with changed entries."""
    (tmp_path / "workflow" / "schemas").mkdir(parents=True)
    shutil.copy(ROOT / catalogue.SCHEMA, tmp_path / catalogue.SCHEMA)
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    entries = yaml.safe_load((ROOT / catalogue.CATALOGUE).read_text())

    def change(**changes):
        (tmp_path / catalogue.CATALOGUE).write_text(yaml.safe_dump({**entries, **changes}, sort_keys=False))
        return catalogue.load(tmp_path)

    change.entries = entries
    return change


def artefact(name: str) -> catalogue.Artefact:
    found = {a.name: a for a in catalogue.artefacts(config.load(ROOT), catalogue.load(ROOT))}
    return found[name]


def test_an_artefact_of_online_tuning_reads_tables_of_its_split():
    figure = artefact("hyperbo_fig14")
    assert (figure.benchmark, figure.split) == ("pd1_mini", "others")
    assert figure.online == ["stboh_online", "h_nll_online", "h_ekl_online"]
    assert figure.trajectories == [] and figure.evaluations == []


def test_an_artefact_without_inputs_reads_the_benchmark_only():
    table = artefact("hyperbo_tab03")
    assert table.inputs == {} and table.split is None
    assert table.online == [] and table.trajectories == [] and table.evaluations == []


def test_the_embedded_benchmarks_are_the_default():
    for entry in catalogue.load(ROOT).values():
        assert entry["benchmarks"][0] in ("pd1_mini", "hpob_mini")
        assert artefact(f"{entry['paper']}_fig08").benchmark == "pd1_mini"
    assert artefact("hyperbo_fig08_tables").benchmark == "tables" and artefact("hyperbo_x02_hpob").benchmark == "hpob"
    assert artefact("hyperbo_fig15").benchmark == "hpob_mini"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"split": "others", "online": ["h_nll_onlin"]}, "unknown method 'h_nll_onlin'. Did you mean 'h_nll_online'?"),
        ({"split": "others", "online": ["h_nll"]}, "online: 'h_nll' cannot run so; h_ekl_online, "),
        ({"split": "others", "trajectories": ["h_nll_online"]}, "trajectories: 'h_nll_online' cannot run so; ablr, "),
        (
            {"split": "other", "online": ["rand"]},
            "unknown split of benchmark 'pd1_mini' 'other'. Did you mean 'others'?",
        ),
        ({"online": ["rand"]}, "inputs.split' is missing"),
        ({"split": "others"}, "inputs': {'split': 'others'} does not have enough"),
        ({"split": "others", "onlin": ["rand"]}, "onlin"),
    ],
)
def test_faulty_inputs_are_told_with_their_entry(load, inputs, message):
    with pytest.raises(ConfigError) as error:
        load(hyperbo_fig14={**load.entries["hyperbo_fig14"], "inputs": inputs})
    assert message in str(error.value) and "hyperbo_fig14" in str(error.value)


def test_ids_are_figures_tables_and_artefacts_beyond_the_paper(load):
    assert "hyperbo_x77" in load(hyperbo_x77=load.entries["hyperbo_tab03"])
    with pytest.raises(ConfigError, match="hyperbo_y01"):
        load(hyperbo_y01=load.entries["hyperbo_tab03"])

"""The header of every loader's file, word for word: jobs and stored priors name data files by their bytes.

`headers/` holds what each loader wrote when its facts were a dict (and since then of the initial points of HPO-B), one
JSON file a case.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from metabo.data import cmbo, cmbo_control, combined, control, hpob, hpob_counts, pd1, synthetic, tables
from metabo.data.history import benchmark as own
from tests.data import archives_fixture
from tests.tuner.conftest import HEADER, SPACE, rows, write

HEADERS = Path(__file__).with_name("headers")


def history(folder, name, **settings):
    (folder / "s.yaml").write_text(SPACE)
    write(folder / "h.csv", HEADER, rows(studies=6))
    return own.load(name, {"history": ["h.csv"], "space": ["s.yaml"], "seed": 0, **settings})


def published(folder):
    return hpob.load("hpob", {"spaces": ["4796", "5860"]}, archives_fixture.write_hpob(folder / "hpob.zip"))


def trained(folder, name="pd1", **settings):
    return pd1.load(name, settings, archives_fixture.write_pd1(folder / "pd1.tar.gz"))


def joined(folder):
    members = [published(folder), trained(folder)]
    for member in members:
        member.save(folder / f"{member.name}.npz")
    return combined.load("super", {"seed": 0}, [folder / f"{member.name}.npz" for member in members])


def pooled(folder):
    path = archives_fixture.write_hpob(folder / "cmbo.zip", edit=_renamed)
    return cmbo.load("cmbo_mini", {"spaces": ["rpart.preproc"], "folds": 2}, path)


def _renamed(members):
    """Give the parts tasks of their own and a space that cm-BO has."""
    for member, content in members.items():
        if member.startswith("meta-"):
            members[member] = {"rpart_3": content["4796"]}


CASES = {
    "mphd_s": lambda folder: synthetic.load("mphd_s", {"domains": 2, "functions": 2, "points": 8}),
    "mphd_l": lambda folder: synthetic.load("mphd_l", {"domains": 2, "functions": 2, "points": 8}),
    "control": lambda folder: control.load("control", {"points": 12}),
    "cmbo_control": lambda folder: cmbo_control.load("cmbo_control", {"points": 12, "draws": 2}),
    "pd1": trained,
    "pd1_mini": lambda folder: trained(folder, "pd1_mini", inputs="warped", divergence="status", online=[]),
    "hpob": published,
    "tables": lambda folder: tables.load("tables", {"pool": 30}),
    "cmbo_mini": pooled,
    "super": joined,
    "own": lambda folder: history(folder, "own", folds=2),
    "own_spaces": lambda folder: history(folder, "own_spaces"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_header_is_as_it_always_was(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own, "SPACES", 1)  # two more would make the stored header no other
    monkeypatch.setattr(hpob_counts, "MEMBERS", {})  # bytes of made-up members differ from machine to machine
    CASES[name](tmp_path).save("made.npz")
    with np.load("made.npz") as data:
        text = str(data["header"])
    assert text == json.dumps(json.loads(text), sort_keys=True)
    # Drawn parameters may differ in their last digits from machine to machine.
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.10g}"))
    assert json.dumps(rounded, indent=1) + "\n" == (HEADERS / f"{name}.json").read_text()


def test_every_header_has_a_case():
    assert set(CASES) == {path.stem for path in HEADERS.glob("*.json")}

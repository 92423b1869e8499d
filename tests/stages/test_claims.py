"""Judging the claims of a paper: no verdicts by a sheet that is no longer there."""

from argparse import Namespace
from pathlib import Path

import pandas as pd
import pytest

from metabo.errors import DataError
from metabo.papers.engine.claims import judge
from metabo.plan.catalogue import CATALOGUE
from metabo.plan.specs import ClaimsSpec
from metabo.stages import claims

SHEET = Path("src/metabo/papers/mphd/claims.yaml")


@pytest.fixture
def files(tmp_path):
    sheet = tmp_path / "claims.yaml"
    sheet.write_text(SHEET.read_text())
    out = {name: str(tmp_path / f"{name}.csv") for name in ("out", "out_gates")}
    return Namespace(in_sheet=str(sheet), in_catalogue=str(CATALOGUE), in_data=[], **out)


@pytest.mark.parametrize("edited", [False, True])
def test_claims_that_change_while_they_are_judged_are_judged_again(files, tmp_path, monkeypatch, edited):
    def judged(*_):
        if edited:
            with Path(files.in_sheet).open("a") as sheet:
                sheet.write("# a thought\n")
        return pd.DataFrame({"role": [], "verdict": [], "claim": []}), pd.DataFrame({"verdict": []}), {}

    monkeypatch.setattr(judge, "judge", judged)
    spec = ClaimsSpec(paper="mphd", results=str(tmp_path / "results"), artefacts=[])
    if edited:
        with pytest.raises(DataError, match=r"claims.yaml: changed while the claims were judged; run the same"):
            claims.work(files, spec)
    else:
        assert claims.work(files, spec)["rows"] == 0
    assert Path(files.out).exists() is not edited

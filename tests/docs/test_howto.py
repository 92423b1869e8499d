"""The how-to pages work: their code, written into a copy of the project, does what they say it does."""

import pytest

from metabo.records import results
from tests.docs import pages


@pytest.fixture
def project(copy_project, tmp_path):
    return copy_project(tmp_path / "project")


def skip():
    """In place of a command that another test has."""


QUICK = {"snakemake --cores": skip, "cut": skip}


def test_a_new_method_is_listed_and_planned(project):
    assert len(pages.touched("new-method.md")) == 3
    pages.follow("new-method.md", project, QUICK)


@pytest.mark.slow
def test_a_new_method_runs(project):
    pages.follow("new-method.md", project, {"snakemake -n": skip})
    table = results.read([project / "results/smoke/bo/tables/held_out/h_nll_q90-q90.parquet"])
    assert set(table["method"]) == {"h_nll_q90"} and table["ok"].all()

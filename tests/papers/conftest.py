"""The tables of each study at smoke size, made by its command once per run of the tests."""

from pathlib import Path

import pytest

from metabo.plan import config
from tests import stage_runs


@pytest.fixture(scope="session")
def smoke():
    """The configuration of the smoke scale."""
    return stage_runs.smoke()


@pytest.fixture(scope="session")
def made(common, smoke):
    """Return a function that runs the stage of a study once, and gives the path of its tables."""

    def make(study: str) -> Path:
        return stage_runs.run("study", config.study_spec(smoke, study), common / f"{study}.parquet")

    return make

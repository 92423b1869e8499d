"""The tables of each study at smoke size, made by its command once per run of the tests."""

from pathlib import Path

import pytest

from metabo import config
from tests import stages


@pytest.fixture(scope="session")
def smoke():
    """The configuration of the smoke scale."""
    return stages.smoke()


@pytest.fixture(scope="session")
def made(common, smoke):
    """Return a function that runs the stage of a study once, and gives the path of its tables."""

    def make(study: str) -> Path:
        return stages.run("study", config.study_spec(smoke, study), common / f"{study}.parquet")

    return make

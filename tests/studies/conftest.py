"""The tables of each study at smoke size, made by its command once per test session."""

from pathlib import Path

import pytest

from metabo import config
from tests import stages


@pytest.fixture(scope="session")
def smoke():
    """The configuration of the smoke scale."""
    return stages.smoke()


@pytest.fixture(scope="session")
def made(tmp_path_factory, smoke):
    """Return a function that runs the stage of a study once, and gives the path of its tables."""
    folder = tmp_path_factory.mktemp("studies")

    def make(study: str) -> Path:
        return stages.run("study", config.study_spec(smoke, study), folder / f"{study}.parquet")

    return make

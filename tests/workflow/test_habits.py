"""The files that a reader or a tool expects beside the code say what the code says."""

import hashlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of the text that the Apache Software Foundation publishes, byte by byte.
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_licence_is_the_published_text_and_the_metadata_name_it(project):
    text = (ROOT / "LICENSE").read_bytes()
    assert text.split(b"\n")[1].strip() == b"Apache License"
    assert hashlib.sha256(text).hexdigest() == APACHE_2
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]

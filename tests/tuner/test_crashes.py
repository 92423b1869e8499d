"""A sample of `make test-faults`, and that it sees a store that loses something."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CARELESS = """
import sys
from pathlib import Path
from metabo.tuner import formats, store
from tests.tuner import crashes
{damage}
sys.exit(bool(crashes.main(["--sample", "150"])))
"""
DAMAGES = {
    "a file that is written in place": "store.write_text = lambda path, text: Path(path).write_text(text)",
    "a row that is not waited for": """
def append(path, content, end):
    with open(path, "ab") as stream:
        stream.write(content)
store.append = append""",
    "an unfinished row that is written behind": """
import dataclasses
from metabo.tuner import journal
more = journal.more
journal.more = lambda path, content, known: more(path, content[: content.rfind(b"\\n") + 1], known)""",
    "names that are not waited for": "store.to_disk = lambda folder: None",
    "a record that names what is not there yet": """
import os
def publish(folder, record, prior):
    checksum = store.digest(prior)
    name = f"prior-{checksum[:12]}.npz"
    store.write_text(folder / store.RECORD, formats.record_text(record, name, checksum))
    os.replace(prior, folder / name)
store.publish = publish""",
    "an error that is no message": """
import contextlib
store._speaking = lambda *given: contextlib.nullcontext()""",
    "JAX": "import jax",
}


def crash(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_a_sample_of_the_points_is_survived():
    done = crash("-m", "tests.tuner.crashes", "--sample", "120", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"tried 120, survived 120, failed 0; (\d+) changes were acknowledged", done.stdout)
    assert counts and int(counts[1]) > 200


@pytest.mark.parametrize("damage", DAMAGES)
def test_it_sees_a_store_that_loses_something(damage):
    done = crash("-c", CARELESS.format(damage=DAMAGES[damage]))
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"failed [1-9]", done.stdout)

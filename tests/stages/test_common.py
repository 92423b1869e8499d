"""What stage commands share."""

import struct
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from metabo.bo.settings import FixedSettings
from metabo.errors import ConfigError
from metabo.plan.typed import Values, read
from metabo.stages import common
from metabo.stages.common import raised


def test_steps_that_needed_more_on_the_diagonal_are_counted_and_printed(capsys):
    rows = pd.DataFrame({"jitter": [0.0] * 80})
    assert raised(rows) == 0 and capsys.readouterr().out == ""
    rows.loc[[3, 50], "jitter"] = [1e-6, 2e-4]
    assert raised(rows) == 2
    assert capsys.readouterr().out.startswith("2 of 80 steps: the covariance needed up to 0.0002 more on its diagonal")


@pytest.mark.parametrize(
    ("fault", "located"),
    [
        (lambda: read(FixedSettings, {"kappa": 2}, "config", "policy"), True),
        (lambda: failing("config key 'methods.new.pretrain.steps' is 2.5, must be an integer"), True),
        (lambda: failing("model key 'unshared' is missing"), True),
        (lambda: failing("config key 'maf.minibatches' is 7"), False),
    ],
)
def test_a_fault_in_the_settings_of_a_method_is_told_with_method_and_file(monkeypatch, capsys, fault, located):
    monkeypatch.setattr(common, "_run", lambda stage, args, work, roots: work())
    arguments = ["--spec", '{"method": "new"}', "--out", "x"]
    with pytest.raises(SystemExit):
        common.main("bo", None, lambda args, spec: fault(), Values, lambda args, spec: [], arguments)
    said = capsys.readouterr().err
    assert said.startswith("bo: ") and said.count("\n") == 1
    assert ("(settings of 'new' in src/metabo/plan/methods.yaml, or under 'methods' in config.yaml)" in said) == located


def failing(message: str):
    raise ConfigError(message)


SAVE = """
import sys
import numpy as np
from metabo.plan.typed import Values
from metabo.records import files
from metabo.stages import common
def work(args, spec):
    files.save_npz(args.out, {"a": np.arange(3.0), "b": np.eye(40)})
    return {}
common.main("data", None, work, Values, lambda args, spec: [], ["--spec", "{}", "--out", sys.argv[1]])
"""


def test_arrays_are_written_alike_by_all_versions_of_python(tmp_path):
    """As the recorded ones are: a member that may grow large is of version 4.5 and has its sizes behind its name."""
    path = tmp_path / "x.npz"
    subprocess.run([sys.executable, "-c", SAVE, str(path)], check=True)  # it changes the process
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        members = archive.infolist()
    assert [one.filename for one in members] == ["a.npy", "b.npy"]
    for one in members:
        assert (one.create_version, one.extract_version) == (45, 45)
        version, *sizes = struct.unpack_from("<4xH12x2I", content, one.header_offset)
        assert (version, sizes) == (45, [0xFFFFFFFF, 0xFFFFFFFF])
        behind = one.header_offset + 30 + len(one.filename)
        assert struct.unpack_from("<HHQQ", content, behind) == (1, 16, one.file_size, one.compress_size)
    np.testing.assert_array_equal(np.load(path)["b"], np.eye(40))

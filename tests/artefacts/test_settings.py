"""Settings read back from sidecars: which priors a table was made from, what was trained and how far."""

import json
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from metabo.artefacts import settings as sidecars
from metabo.methods.pretrained.settings import NLLSettings, Objective
from metabo.plan import config, registry
from metabo.plan.typed import written
from metabo.records import sidecars as records

ROOT = Path(__file__).parents[2]
NLL = {"objective": "nll", "learning_rate": 1.0e-3, "batch": 50, "steps": 600}
EKL = {"objective": "ekl", "steps": 100, "matched_points": 242}
SCHEDULE = {"learning_rate": 8.0e-3, "batch": 64, "epochs": 1000.0, "steps": 5000}


class Results:
    """A folder of results: `prior` and `table` write a file with its sidecar, as the stages do, and return its path."""

    def __init__(self, root: Path):
        self.root = root

    def write(self, path: str, stage: str, spec: dict, inputs: dict, checksum: str) -> str:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        record = {"stage": stage, "spec": spec, "inputs": inputs, "outputs": {str(file): checksum}}
        file.with_suffix(".json").write_text(json.dumps(record))
        return str(file)

    def prior(self, split: str, method: str, pretrain: dict, checksum: str = "p", **model) -> str:
        spec = {"split": split, "method": method, "seeds": 3, "model": model, "pretrain": pretrain}
        return self.write(f"priors/{split}/{method}.npz", "pretrain", spec, {}, checksum)

    def table(self, split: str, run: str, prior: str, read: str = "p", stage: str = "bo", **settings) -> str:
        method, _, acquisition = run.partition("-")
        data = self.write("data.npz", "data", {"benchmark": "b"}, {}, "d")
        spec = {"benchmark": "b", "split": split, "method": method}
        if acquisition:
            spec |= {"acquisition": acquisition, "seed": 0, "seeds": 2, "iterations": 100, "policy": {}}
        return self.write(f"{stage}/{split}/{run}.parquet", stage, spec | settings, {data: "d", prior: read}, "t")


@pytest.fixture
def made(tmp_path):
    return Results(tmp_path)


def test_settings_are_those_of_the_priors_that_the_table_was_made_from(made):
    prior = made.prior("s", "h_nll", NLL, mean="linear_mlp", features=[32, 32])
    path = made.table("s", "h_nll-pi", prior, policy={"pi_threshold": 0.1})
    (row,) = sidecars.settings([path]).to_dict("records")
    missing = {key for key, value in row.items() if value is None}
    assert missing == {"epochs", "refit_steps", "refit_epochs", "warm_start"}
    assert {key: value for key, value in row.items() if key not in missing} == {
        "split": "s", "method": "h_nll", "acquisition": "pi", "objective": "nll", "optimiser": "Adam", "steps": 600,
        "learning_rate": 0.001, "batch": 50, "training": "", "prior_seeds": 3, "bo": "pi_threshold 0.1", "seeds": 2,
        "iterations": 100, "model": "mean linear_mlp, features [32, 32]", "prior": prior, "record": "complete",
    }  # fmt: skip


def test_priors_are_followed_by_their_recorded_path_not_by_name(made):
    prior = made.prior("other_split", "other_method", EKL)
    (row,) = sidecars.settings([made.table("s", "h_ekl-pi", prior)]).to_dict("records")
    assert (row["split"], row["method"], row["prior"]) == ("s", "h_ekl", prior)
    assert (row["objective"], row["optimiser"], row["steps"], row["training"]) == (
        "ekl", "L-BFGS", 100, "matched_points 242",
    )  # fmt: skip
    assert row["learning_rate"] is None


def test_settings_of_priors_made_anew_since_are_not_shown(made):
    changed = made.table("s", "h_nll-pi", made.prior("s", "h_nll", NLL, "new"), "old")
    gone = made.table("s", "fsbo-pi", str(made.root / "absent.npz"))
    bare = made.root / "bo" / "s" / "ablr-pi.parquet"
    bare.write_text("")
    table = sidecars.settings([changed, gone, str(bare)])
    assert table["record"].tolist() == [
        f"pre-training unknown: {made.root / 'priors/s/h_nll.npz'} has changed",
        "pre-training unknown: no sidecar of the priors",
        "no sidecar",
    ]
    assert table["steps"].isna().all() and (table["optimiser"] == "").all()
    assert table["iterations"].tolist()[:2] == [100, 100] and table["method"].iloc[2] == "ablr-pi"
    shown = sidecars.settings_used([changed, str(bare)])
    assert shown["method"].tolist() == ["H-NLL", "ablr-pi"]
    assert "none" not in shown.to_string(), "unknown is not the same as no training"


@pytest.mark.parametrize(
    ("scale", "retrain"),
    [
        ({"steps": 20, "warm_start": True}, "1000 epochs, at most 20 mini-batches, warm start"),
        ({"steps": 0, "warm_start": False}, "1000 epochs, from scratch"),
    ],
)
def test_training_at_every_iteration_is_stated_with_its_warm_start(made, scale, retrain):
    prior = made.prior("s", "mimo", SCHEDULE)
    table = sidecars.settings_used([made.table("s", "mimo-ucb18", prior, policy=SCHEDULE | scale)])
    (row,) = table.to_dict("records")
    assert row["pre-training steps"] == "1000 epochs, at most 5000 mini-batches"
    assert row["steps at each BO iteration"] == retrain
    assert (row["pre-training"], row["learning rate"], row["batch"]) == ("Adam", "0.008", "64")
    assert "more of BO" not in row, "the same learning rate and batch are said once"
    different = made.table("s", "mimo-ucb18", prior, policy=SCHEDULE | scale | {"learning_rate": 0.5})
    assert sidecars.settings_used([different])["more of BO"].tolist() == ["learning_rate 0.5"]


def test_steps_of_refits_and_of_online_tuning(made):
    none = made.prior("s", "stbo", {})
    paths = [
        made.table("s", "stbo-pi", none, policy={"pi_threshold": 0.1, "refit_steps": 20}),
        made.table(
            "s", "h_nll_online-ucb18", made.prior("s", "h_nll_online", NLL | {"outputs": "mapped"}), stage="online",
            policy=None, online={"retrain_steps": 30, "starts": 256},
        ),
    ]  # fmt: skip
    table = sidecars.settings(paths)
    assert table["refit_steps"].tolist() == [20, 30] and table["bo"].tolist() == ["pi_threshold 0.1", "starts 256"]
    assert table["training"].tolist() == ["", "outputs mapped"]
    shown = sidecars.settings_used(paths)
    assert shown["method"].tolist() == ["STBO", "H-NLL"] and shown["pre-training"].tolist() == ["none", "NLL, Adam"]


def test_splits_of_equal_settings_share_a_row_and_others_do_not(made):
    steps = {"a": 600, "b": 600, "c": 5000}
    paths = [made.table(s, "h_nll-pi", made.prior(s, "h_nll", NLL | {"steps": n})) for s, n in steps.items()]
    shown = sidecars.settings_used(paths)
    assert shown["splits"].tolist() == ["a, b", "c"] and shown["pre-training steps"].tolist() == ["600", "5000"]
    assert len(sidecars.settings(paths)) == 3


def test_a_table_of_losses_has_a_row_only_if_no_run_has_its_priors(made):
    both, alone = made.prior("s", "h_nll", NLL), made.prior("s", "fsbo", NLL)
    losses = [made.table("s", m, p, stage="evaluate") for m, p in (("h_nll", both), ("fsbo", alone))]
    table = sidecars.settings([made.table("s", "h_nll-pi", both), *losses])
    assert table[["method", "acquisition"]].to_numpy().tolist() == [["h_nll", "pi"], ["fsbo", ""]]
    assert table["steps"].tolist() == [600, 600]
    assert sidecars.settings(losses)["method"].tolist() == ["h_nll", "fsbo"]


def test_other_candidates_are_named(made):
    prior = made.prior("s", "h_nll", NLL)
    tables = [made.table("s", f"h_nll-{a}", prior, candidates=c) for a, c in (("pi", "all"), ("ei", "matched"))]
    assert sidecars.settings(tables)["bo"].tolist() == ["", "candidates matched"]


def test_a_result_that_is_json_has_its_sidecar_beside_it(tmp_path):
    (tmp_path / "check.json").write_text("[]")
    assert records.of(tmp_path / "check.json") == {}
    (tmp_path / "check.meta.json").write_text('{"stage": "theory"}')
    assert records.of(tmp_path / "check.json") == {"stage": "theory"}


def test_every_objective_with_a_learning_rate_is_one_of_adam():
    by_rate = [kind for kind in get_args(Objective) if "learning_rate" in {field.name for field in fields(kind)}]
    assert by_rate == [NLLSettings]
    # Every other one that trains by its own module uses Adam, but for those that fit GPs to single tasks.
    by_lbfgs = ("methods.pretrained.train", "methods.source_gps.clusters", "methods.source_gps.rgpe")
    for method in registry.methods():
        settings = registry.method(method)
        if settings.pretrain and registry.made_of(method).pretrain not in by_lbfgs:
            assert "learning_rate" in settings.pretrain, method


@pytest.mark.parametrize("method", ["h_nll", "h_ekl", "mimo", "rfgp", "maf", "stbo", "stboh", "rand"])
def test_specs_of_the_workflow_are_understood(made, method):
    given = config.load(ROOT)
    trained = config.pretrain_spec(given, "pd1_mini", "others_sweep", method)
    prior = made.write(f"priors/{method}.npz", "pretrain", written(trained), {}, "p")
    acquisition = registry.method(method).acquisition
    job = config.bo_spec(given, "pd1_mini", "others_sweep", method, acquisition)
    path = made.write(f"bo/{method}.parquet", "bo", written(job), {prior: "p"}, "t")
    (row,) = sidecars.settings([path]).to_dict("records")
    assert row["record"] == "complete" and row["iterations"] == given.bo.iterations
    steps = {
        "h_nll": given.sweep.adam_steps, "h_ekl": given.sweep.lbfgs_steps,
        "mimo": given.mimo.steps, "rfgp": given.rfgp.steps, "maf": given.maf.iterations,
    }  # fmt: skip
    refits = {"mimo": given.mimo.retrain_steps, "rfgp": given.rfgp.retrain_steps}
    refits |= dict.fromkeys(("stbo", "stboh"), given.bo.refit_steps)
    assert row["steps"] == steps[method] if method in steps else row["steps"] is None
    assert row["refit_steps"] == refits[method] if method in refits else row["refit_steps"] is None
    assert row["warm_start"] is (given.sizes[method]["warm_start"] if method in ("mimo", "rfgp") else None)

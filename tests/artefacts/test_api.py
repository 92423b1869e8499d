"""Helpers of the notebooks: input checks, provenance, deterministic files, paper values."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from metabo.artefacts import api as artefacts
from metabo.errors import ConfigError, DataError
from metabo.papers.engine import printed as shared
from metabo.papers.hyperbo import printed
from metabo.papers.hyperbo.metrics import online as online_metrics
from metabo.papers.mphd.metrics import by_setting
from metabo.plan import registry
from metabo.records import files, provenance, results

ENTRY = {
    "title": "T", "caption": "C",
    "inputs": {"split": "held_out", "trajectories": ["rand", "h_nll"], "evaluations": ["h_nll", "ablr"]},
}  # fmt: skip


@pytest.fixture
def given(inputs, tmp_path):
    return inputs("x", ENTRY, "tables", tmp_path)


def test_trajectories_load_and_know_their_pretraining(given):
    table = artefacts.load_trajectories(given["trajectories"], "tables", "held_out", given["data"])
    runs = artefacts.runs(table)
    assert runs.methods == ("rand", "h_nll") and runs.single_task == {"rand"}
    assert runs.values["rand"].shape[:2] == (1, 2) and runs.values["h_nll"].shape[:2] == (3, 2)


def test_what_is_learned_through_another_method_is_pretraining_too(given, tmp_path):
    """Non-NN and the choice among priors train nothing themselves: they take the priors of another method (`fits`)."""
    table = results.read(given["trajectories"][1:])
    names = [name for name in registry.methods("policy") if registry.method(name).fits]
    assert {"mphd", "mphd_non_nn", "he_pretrained"} <= set(names)
    for name in names:
        renamed = table.assign(method=name, acquisition=registry.method(name).acquisition)
        assert artefacts.runs(renamed).single_task == frozenset(), name
        both = pd.concat([renamed, renamed.assign(split="new_space")])
        assert set(artefacts.by_split(both, "held_out")["method"]) == {name, f"{name}@new_space"}
        assert set(by_setting(both, "held_out")["method"]) == set(artefacts.by_split(both, "held_out")["method"]), name
        results.write(renamed, tmp_path / "renamed.parquet")
        with pytest.raises(DataError, match=r"split is \['held_out'\], the parameter says 'new_space'"):
            artefacts.load_trajectories([str(tmp_path / "renamed.parquet")], "tables", "new_space")


def test_runs_on_variants_of_one_data_set_speak_of_this_suite(given):
    table = artefacts.load_trajectories(given["trajectories"], "tables", "held_out", given["data"])
    assert artefacts.runs(table).drawn == "nested"
    for benchmark in ("taskset", "cmbo_taskset"):
        assert artefacts.runs(table.assign(benchmark=benchmark)).drawn == "fixed"


def test_wrong_inputs_are_refused(given, tmp_path):
    paths = given["trajectories"]
    with pytest.raises(DataError, match=r"benchmark is .*'tables'.*, the parameter says 'pd1'"):
        artefacts.load_trajectories(paths, "pd1", "held_out")
    with pytest.raises(DataError, match=r"split is .*the parameter says 'other'"):
        artefacts.load_trajectories(paths, "tables", "other")
    with pytest.raises(DataError, match="no such input"):
        artefacts.load_trajectories([str(tmp_path / "absent.parquet")], "tables", "held_out")
    with pytest.raises(DataError, match="no trajectory table given"):
        artefacts.load_trajectories([], "tables", "held_out")
    other = tmp_path / "other.npz"
    files.save_npz(other, {"different": np.ones(2)})
    with pytest.raises(DataError, match=r"made from data \w{12}, but .*other.npz is"):
        artefacts.load_trajectories(paths, "tables", "held_out", str(other))
    results.write(
        results.read(paths[:1]).assign(data="0" * 12, method="stbo", acquisition="pi"), tmp_path / "b.parquet"
    )
    with pytest.raises(DataError, match="made from different data files"):
        artefacts.load_trajectories([*paths, str(tmp_path / "b.parquet")], "tables", "held_out")


def test_online_tables_are_checked(inputs, tmp_path):
    entry = {"title": "T", "caption": "C", "inputs": {"split": "others", "online": ["rand", "h_nll_online"]}}
    given = inputs("x", entry, "pd1_mini", tmp_path)
    table = artefacts.load_online(given["online"], "pd1_mini", "others", given["data"])
    assert online_metrics.collect_online(table).methods == ("rand", "h_nll_online")
    with pytest.raises(DataError, match=r"online: split is .*the parameter says 'held_out'"):
        artefacts.load_online(given["online"], "pd1_mini", "held_out")
    with pytest.raises(DataError, match="no online table given"):
        artefacts.load_online([], "pd1_mini", "others")
    results.write_online(table.assign(data="0" * 12), tmp_path / "other.parquet")
    with pytest.raises(DataError, match=r"online: made from data 0{12}, but .*data.npz is"):
        artefacts.load_online([str(tmp_path / "other.parquet")], "pd1_mini", "others", given["data"])
    with pytest.raises(DataError, match="online: made from different data files"):
        artefacts.load_online([*given["online"], str(tmp_path / "other.parquet")], "pd1_mini", "others")


def test_a_benchmark_file_must_hold_the_named_benchmark(given, tmp_path):
    assert artefacts.load_benchmark(given["data"], "tables").name == "tables"
    with pytest.raises(DataError, match="holds benchmark 'tables', the parameter says 'pd1'"):
        artefacts.load_benchmark(given["data"], "pd1")
    with pytest.raises(DataError, match="no such input"):
        artefacts.load_benchmark(str(tmp_path / "absent.npz"), "tables")


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("results/smoke/bo/tables/held_out/no-pi.parquet", "snakemake --cores 2 --configfile config/smoke.yaml -- "),
        ("results/paper/bo/tables/held_out/no-pi.parquet", "snakemake --cores 2 --configfile config/paper.yaml -- "),
        ("results/laptop/bo/paper/held_out/no-pi.parquet", "snakemake --cores 2 -- "),
    ],
)
def test_the_command_for_a_missing_input_makes_that_file(path, command):
    with pytest.raises(DataError) as error:
        artefacts.load_trajectories([path], "tables", "held_out")
    assert str(error.value).startswith(f"{path}: no such input") and f"`{command}{path}`" in str(error.value)


def test_another_acquisition_becomes_a_method_of_its_own(given, tmp_path):
    path = tmp_path / "h_nll-ei.parquet"
    results.write(results.read(given["trajectories"][1:]).assign(acquisition="ei"), path)
    table = artefacts.load_trajectories([*given["trajectories"], str(path)], "tables", "held_out")
    assert artefacts.runs(table).methods == ("rand", "h_nll", "h_nll-ei")


SWEEP = {
    "title": "T", "caption": "C",
    "inputs": {
        "splits": ["others_points_4", "others_sweep"],
        "trajectories": ["h_nll", "h_nll-ei@others_sweep", "rand@others"],
    },
}  # fmt: skip


def test_runs_on_several_splits_are_told_apart_by_name(inputs, tmp_path):
    given = inputs("x", SWEEP, "tables", tmp_path)
    table = artefacts.load_trajectories(given["trajectories"], "tables", given["splits"], given["data"])
    assert set(table["split"]) == {"others", "others_points_4", "others_sweep"}, "the table keeps its splits"
    named = artefacts.runs(artefacts.by_split(table))
    assert named.methods == ("h_nll@others_points_4", "h_nll@others_sweep", "h_nll-ei@others_sweep", "rand")
    assert named.single_task == {"rand"}
    plain = artefacts.runs(artefacts.by_split(table, "others_sweep"))
    assert plain.methods == ("h_nll@others_points_4", "h_nll", "h_nll-ei", "rand")
    shown = artefacts.labelled(pd.DataFrame({"method": plain.methods}))["method"].tolist()
    assert shown == ["H-NLL-4", "H-NLL", "H-NLL (EI)", "Rand"]


def test_only_methods_without_pretraining_may_be_of_another_split_of_the_same_test_tasks(inputs, tmp_path):
    given = inputs("x", SWEEP, "tables", tmp_path)["trajectories"]
    with pytest.raises(DataError, match=r"split is \['others_points_4'\], the parameter says 'others_sweep'"):
        artefacts.load_trajectories(given, "tables", "others_sweep")
    with pytest.raises(DataError, match=r"split is .*'others'.*, the parameter says 'held_out_sweep'"):
        artefacts.load_trajectories(given[-1:], "tables", "held_out_sweep")
    entry = SWEEP | {"inputs": {"split": "held_out", "trajectories": ["rand"]}}
    given = inputs("x", entry, "tables", tmp_path)["trajectories"]
    assert artefacts.load_trajectories(given, "tables", "held_out_sweep")["split"].unique() == ["held_out"]
    with pytest.raises(DataError, match=r"the parameter says 'crossed_candidates'"):
        artefacts.load_trajectories(given, "tables", "crossed_candidates")


def test_evaluations_are_checked(given, tmp_path):
    table = artefacts.load_evaluations(given["evaluations"], "tables", "held_out")
    assert set(table["metric"]) == {"test_nll", "train_nll", "ekl"} and set(table["method"]) == {"h_nll", "ablr"}
    for change, message in (
        ({"value": np.inf}, "'value' is not finite"), ({"benchmark": "pd1"}, "benchmark is"), (None, "missing columns"),
    ):  # fmt: skip
        bad = table.drop(columns="value") if change is None else table.assign(**change)
        bad.to_parquet(tmp_path / "bad.parquet")
        with pytest.raises(DataError, match=message):
            artefacts.load_evaluations([str(tmp_path / "bad.parquet")], "tables", "held_out")
    with pytest.raises(DataError, match="no evaluation table given"):
        artefacts.load_evaluations([], "tables", "held_out")


def test_origins_show_sidecars_and_edits(tmp_path):
    path, edited, bare = (tmp_path / f"{name}.parquet" for name in ("a", "b", "c"))
    for p in (path, edited, bare):
        p.write_bytes(p.name.encode())
    record = {
        "stage": "bo",
        "git": {"commit": "f" * 40, "dirty": True},
        "code_sha256": "1" * 64,
        "spec_sha256": "2" * 64,
    }
    for p in (path, edited):
        p.with_suffix(".json").write_text(json.dumps({**record, "outputs": {f"results/{p.name}": files.digest(p)}}))
    edited.write_bytes(b"changed")
    shown = artefacts.origins([str(path), str(edited), str(bare)]).set_index("file")
    assert shown.loc["a.parquet", ["stage", "commit", "code", "settings", "as written"]].tolist() == [
        "bo", "f" * 10 + " + changes", "1" * 10, "2" * 10, "yes",
    ]  # fmt: skip
    assert shown.loc["b.parquet", "as written"] == "NO: edited since"
    assert shown.loc["c.parquet", "as written"] == "no sidecar"
    twice = [tmp_path / folder / "a.parquet" for folder in ("one", "two")]
    for p in twice:
        p.parent.mkdir()
        p.write_bytes(b"")
    assert artefacts.origins([*map(str, twice), str(bare)])["file"].tolist() == [
        "one/a.parquet", "two/a.parquet", "c.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "shown"),
    [(("f" * 40, True), "f" * 40 + "+"), (("f" * 40, False), "f" * 40), ((None, None), "unknown")],
)
def test_commit_in_the_metadata_is_that_of_the_sidecars(monkeypatch, state, shown):
    monkeypatch.setattr(provenance, "git_state", lambda: dict(zip(("commit", "dirty"), state, strict=True)))
    assert artefacts.commit() == shown


def test_saved_files_carry_id_and_commit_and_are_reproducible(tmp_path):
    table = pd.DataFrame({"method": ["rand"], "iteration": [3], "median": [0.25]})
    for out in ("one", "two"):
        figure = Figure()
        figure.subplots().plot([1, 2], [3, 4])
        named = ("hyperbo_fig99", "A title", "A caption", "pd1")
        artefacts.save(figure, {"curve": table}, str(tmp_path / out), *named, keys=["method", "iteration"])
    for name in ("figure.pdf", "figure.png", "data.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    commit = artefacts.commit()
    assert re.fullmatch(r"[0-9a-f]{40}\+?|unknown", commit)
    with Image.open(tmp_path / "one" / "figure.png") as image:
        assert image.text["Title"] == "hyperbo_fig99: A title" and commit in image.text["Source"]
        assert image.text["Description"] == "A caption" and image.text["Benchmark"] == "pd1"
    pdf = (tmp_path / "one" / "figure.pdf").read_bytes()
    assert b"hyperbo_fig99" in pdf and commit.encode() in pdf and b"CreationDate" not in pdf
    assert b"benchmark pd1" in pdf and figure.texts[-1].get_text() == "hyperbo_fig99, benchmark pd1"
    expected = "artefact,benchmark,table,method,iteration,quantity,value\nhyperbo_fig99,pd1,curve,rand,3,median,0.25\n"
    assert (tmp_path / "one" / "data.csv").read_text() == expected


def test_numbers_keep_every_value_and_key():
    a = pd.DataFrame({"method": ["x", "y"], "iteration": [1, 2], "median": [0.1, 1 / 3], "within": [True, False]})
    b = pd.DataFrame({"task": ["t"], "method": ["x"], "speedup": [np.inf]})
    joined = artefacts.numbers({"a": a, "b": b}, ["task", "method", "iteration"])
    assert joined.columns.tolist() == ["table", "task", "method", "iteration", "quantity", "value"]
    assert len(joined) == 2 * 2 + 1
    assert joined.loc[(joined["method"] == "y") & (joined["quantity"] == "median"), "value"].item() == 1 / 3
    assert joined.loc[joined["quantity"] == "within", "value"].tolist() == [1, 0]
    assert joined.loc[joined["table"] == "b", "value"].tolist() == [np.inf]


def test_keys_are_named_by_the_caller_and_keep_their_names_order_and_type():
    """Numbers among them: a whole number stays one where another table lacks it, a quantity of whole numbers does not
    become a key, and no column needs another name."""
    prior = pd.DataFrame({"train": [2, 16], "seed": [0, 0], "noise": [1e-4, 0.5], "first": [4, 5]})
    truth = pd.DataFrame({"parameter": ["a", "b"], "first": [10.0, 2.0]})
    joined = artefacts.numbers({"prior": prior, "truth": truth}, ["noise", "parameter", "train", "seed"])
    assert joined.columns.tolist() == ["table", "noise", "parameter", "train", "seed", "quantity", "value"]
    lines = joined.to_csv(index=False).splitlines()
    assert lines[1:] == [
        "prior,0.0001,,2,0,first,4.0", "prior,0.5,,16,0,first,5.0", "truth,,a,,,first,10.0", "truth,,b,,,first,2.0"
    ]  # fmt: skip


def test_a_key_with_a_fraction_in_one_table_keeps_it():
    tables = {"a": pd.DataFrame({"x": [1, 2], "y": [0.0, 1.0]}), "b": pd.DataFrame({"x": [0.5], "y": [2.0]})}
    assert artefacts.numbers(tables, ["x"])["x"].tolist() == [1.0, 2.0, 0.5]


def test_tables_without_rows_or_without_keys():
    none = pd.DataFrame(columns=["measure", "ratio"])
    one = pd.DataFrame({"mean": [0.5]})
    joined = artefacts.numbers({"one": one, "none": none}, ["measure"])
    assert joined["table"].tolist() == ["one"] and joined["measure"].isna().all()
    assert artefacts.numbers({"none": none}, ["measure"]).empty


def test_what_is_no_table_is_not_saved():
    tables = {"loss": pd.Series([0.1, 0.2], name="mean")}
    with pytest.raises(ConfigError, match=r"^fig99, table 'loss': Series is no DataFrame; give one, with `keys`"):
        artefacts.numbers(tables, ["task"], "fig99")


@pytest.mark.parametrize(
    ("columns", "keys", "message"),
    [
        (
            {"task": ["a"], "mean": [1.0]}, ["task", "tsak"],
            "fig99: key 'tsak' is a column of none of its tables, loss; correct it in `keys` or leave it out. "
            "Did you mean 'task'?",
        ),
        (
            {"task": ["a"], "mean": [1.0]}, [],
            "fig99, table 'loss', column 'task': neither numeric nor a key; add it to `keys` or leave the column out",
        ),
        (
            {"task": ["a"], "said": ["1.5"]}, ["task"],
            "fig99, table 'loss', column 'said': neither numeric nor a key; add it to `keys` or leave the column out",
        ),
        (
            {"quantity": ["time"], "value": [1.0]}, ["quantity"],
            "fig99, table 'loss', column 'quantity': a heading of every data.csv is no key and no "
            "quantity; give the column another name",
        ),
        (
            {"task": ["a"], "table": [1.0]}, ["task"],
            "fig99, table 'loss', column 'table': a heading of every data.csv is no key and no quantity; give the "
            "column another name",
        ),
        (
            {"task": [], "mean": []}, ["task"],
            "fig99: its tables have no rows; check what selects them, and the inputs",
        ),
        (
            {"task": ["a", "b"], "mean": [np.nan, np.nan]}, ["task"],
            "fig99: no number in its tables, loss: all are NaN; check how they are computed, and the inputs",
        ),
        (
            {"task": ["a", "b"], "mean": [1.0, -np.inf]}, ["task"],
            "fig99, table 'loss', column 'mean': 1 of 2 numbers infinite; mend the computation (a division by zero?), "
            "or say that infinity is meant: `save(..., infinite=['loss'])`",
        ),
        (
            {"task": ["a", "a"], "seed": [0, 1], "mean": [1.0, 2.0]}, ["task"],
            "fig99, table 'loss', columns task: two rows agree in them (task a); add the column in which they "
            "differ to `keys`",
        ),
        (
            {"mean": [1.0, 2.0]}, [],
            "fig99, table 'loss': several rows, no key; add the column in which they differ to `keys`",
        ),
    ],
    ids=[
        "no column", "words", "digits as words", "reserved", "reserved quantity", "no rows", "no numbers", "infinite",
        "rows alike", "no key",
    ],
)  # fmt: skip
def test_wrong_keys_are_refused_in_one_line(columns, keys, message, tmp_path):
    with pytest.raises(ConfigError) as refused:
        artefacts.save(Figure(), {"loss": pd.DataFrame(columns)}, str(tmp_path), "fig99", "T", "C", keys=keys)
    assert str(refused.value) == message
    assert not list(tmp_path.iterdir())


def test_a_quantity_may_be_called_value():
    table = pd.DataFrame({"task": ["a"], "value": [0.5]})
    (row,) = artefacts.numbers({"loss": table}, ["task"]).to_dict("records")
    assert row == {"table": "loss", "task": "a", "quantity": "value", "value": 0.5}
    with pytest.raises(ConfigError, match="column 'value': a heading"):
        artefacts.numbers({"loss": table}, ["task", "value"])


def test_missing_and_declared_infinite_numbers_are_saved(tmp_path):
    tables = {"time": pd.DataFrame({"task": ["a", "b"], "mean": [np.inf, 1.0], "std": [np.nan, np.nan]})}
    named = ("fig99", "T", "C")
    artefacts.save(Figure(), tables, str(tmp_path), *named, keys=["task"], infinite=["time"])
    assert "fig99,,time,a,mean,inf\n" in (tmp_path / "data.csv").read_text()
    assert "fig99,,time,b,std,\n" in (tmp_path / "data.csv").read_text()


def test_a_drawing_without_a_figure_is_told(tmp_path):
    table = {"loss": pd.DataFrame({"mean": [1.0]})}
    with pytest.raises(ConfigError, match=r"^fig99: .* is NoneType, no Figure .*end the drawing .* `return figure`$"):
        artefacts.save(None, table, str(tmp_path), "fig99", "T", "C", keys=[])


def test_pivot_names_a_column_that_is_not_there():
    table = pd.DataFrame({"task": ["a"], "method": ["rand"], "mean": [1.0]})
    with pytest.raises(ConfigError, match=r"no column 'meen'\. Did you mean 'mean'\? Columns: task, method, mean$"):
        artefacts.pivot(table, "task", "method", "meen")


def test_iterations_beyond_the_runs_become_the_last():
    assert artefacts.available([1, 10, 100], 25) == [1, 10, 25]
    assert artefacts.available([50, 100], 25) == [25]


def test_pivot_keeps_order_and_labels():
    table = pd.DataFrame({"method": ["rand", "h_nll"] * 2, "iteration": [10, 10, 1, 1], "mean": [1.0, 2, 3, 4]})
    wide = artefacts.pivot(table, "method", "iteration", "mean")
    assert wide.index.tolist() == ["Rand", "H-NLL"] and wide.columns.tolist() == [10, 1]
    assert wide.to_numpy().tolist() == [[1, 3], [2, 4]]


def test_notebooks_opened_in_their_folder_find_the_project(monkeypatch, tmp_path):
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root / "notebooks" / "shared")
    artefacts.enter_project()
    assert Path.cwd() == root
    monkeypatch.chdir(tmp_path)
    artefacts.enter_project()
    assert Path.cwd() == tmp_path


def test_printed_tables_agree_with_counts_made_from_the_paper():
    """Column means, and how often each method is lowest, as counted independently from the printed tables."""
    five = printed.table("tab05").pivot(index="task", columns="method", values="mean")
    assert five.shape == (23, 6)
    means = {"ablr": 14.152, "stboh": 13.992, "mimo": 14.026, "fsbo": 13.976, "h_nll": 13.967, "h_ekl": 13.907}
    assert five.mean().round(3).to_dict() == pytest.approx(means, abs=6e-4)
    lowest = five.eq(five.min(axis=1), axis=0).sum().to_dict()
    assert lowest == {"h_ekl": 12, "h_nll": 6, "fsbo": 5, "mimo": 3, "ablr": 1, "stboh": 1}
    six = printed.table("tab06").pivot(index="task", columns=["metric", "method"], values="mean")
    assert six.shape == (23, 8)
    columns = {"ablr": (134.3, 5.62), "fsbo": (84.7, 4.31), "h_nll": (79.8, 3.05), "h_ekl": (45.0, 3.53)}
    for method, (nll, ekl) in columns.items():
        assert six["test_nll_hundreds", method].mean() == pytest.approx(nll, abs=0.06)
        assert six["ekl", method].mean() == pytest.approx(ekl, abs=0.006)
    assert printed.table("fig10")["r"].tolist() == [0.77, 0.93, 0.80]
    with pytest.raises(ConfigError, match="unknown printed table 'tab50'"):
        printed.table("tab50")


def test_paper_names_cover_the_printed_tasks():
    task = "cifar10_wrn,cifar10,wide_resnet,wrn,2048"
    assert shared.short_name(task) == "CIFAR10 WRN 2048" and shared.short_name("other") == "other"
    names = pd.read_csv(Path(shared.__file__).parent / "pd1_tasks.csv", comment="#")
    assert len(names) == 24 and set(printed.table("tab05")["task"]) == set(names["paper_name"]) - {
        "ImageNet ResNet50 1024"
    }


def test_comparison_with_the_paper_by_hand():
    """WMT, H-NLL: printed 33.91 ± 0.02. Ours 33.95 ± 0: floor 0.05, within. 33.97: outside. With std 0.05: tolerance
    3 sqrt(0.05^2 + 0.02^2) / sqrt(5) = 0.0723, so 33.97 is within and 33.99 is not."""
    task = "wmt15_de_en_xfmr,translate_wmt,xformer_translate,xformer,64"
    for mean, std, tolerance, within in (
        (33.95, 0.0, 0.05, True), (33.96, 0.0, 0.05, True), (33.97, 0.0, 0.05, False), (33.97, 0.05, 0.07225, True),
        (33.99, 0.05, 0.07225, False),
    ):  # fmt: skip
        ours = pd.DataFrame({"task": [task], "method": ["h_nll"], "mean": [mean], "std": [std]})
        row = printed.compare(ours, "tab05", "error_percent").iloc[0]
        assert row["tolerance"] == pytest.approx(tolerance, abs=1e-4) and row["within"] == within
        assert (row["mean_ours"], row["mean_paper"], row["std_paper"]) == (mean, 33.91, 0.02)
    nothing = pd.DataFrame({"task": ["none"], "method": ["h_nll"], "mean": [1.0], "std": [0.0]})
    assert printed.compare(nothing, "tab05", "error_percent").empty

"""What cm-BO reports of its clusters, with cases worked out by hand."""

import ast
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metabo.errors import DataError
from metabo.papers.cmbo import cluster_metrics
from tests.papers.cmbo.test_metrics import flat, runs

ROOT = Path(__file__).parents[3]


def test_numbers_of_clusters_and_their_indices():
    methods = ["cm_wss_2", "cm_wss_1", "cm_wss_3", "cm_wss_4"]
    numbers = cluster_metrics.cluster_numbers(runs(flat([0.2, 0.3, 0.4, 0.1]), methods))
    assert numbers["clusters"].tolist() == [1, 2, 3, 4] and numbers["better"].tolist() == [0.0, 1.0, 0.0, 1.0]
    indices = pd.DataFrame({"distance": "wasserstein", "clusters": [1, 2, 3, 4], "ratio": [np.inf, 0.5, 0.6, 0.4]})
    found = cluster_metrics.index_correlation(numbers, indices)
    assert found["spearman"].tolist() == [pytest.approx(1.0)] and found["points"].tolist() == [3]
    assert cluster_metrics.index_correlation(numbers, indices[:3]).empty
    with pytest.raises(DataError, match="no run with one cluster"):
        cluster_metrics.cluster_numbers(runs(flat([0.2]), ["cm_wss_2"]))


def test_clusters_are_read_from_the_sidecars_of_the_priors(tmp_path):
    prior, table = tmp_path / "prior.npz", tmp_path / "bo.parquet"
    fold = {"fold": "f", "seed": 0, "chosen": 2, "sizes": [[3], [1, 2]], "intra": [2.0, 1.0], "inter": [0.0, 4.0]}
    told = {"space": "s", "clusters": [fold | {"iterations": [1, 4]}]}
    record = {"stage": "pretrain", "spec": {"pretrain": {"distance": "jeffreys"}}, "training": [told]}
    prior.with_suffix(".json").write_text(json.dumps(record))
    table.with_suffix(".json").write_text(json.dumps({"inputs": {str(prior): "x", str(tmp_path / "data.npz"): "y"}}))
    found = cluster_metrics.clusters_of([str(table), str(table)])
    assert found["clusters"].tolist() == [1, 2] and found["chosen"].tolist() == [0.0, 1.0]
    assert found["ratio"].tolist() == [np.inf, 0.25] and found["largest"].tolist() == [3.0, 2.0]
    assert set(found["distance"]) == {"jeffreys"} and found["iterations"].tolist() == [1.0, 4.0]
    assert cluster_metrics.clusters_of([str(tmp_path / "none.parquet")]).empty


@pytest.mark.parametrize("notebook", ["clusters", "sensitivity"])
def test_notebooks_save_the_ratio_of_one_cluster_whose_neighbours_are_nowhere(notebook):
    """The ratio is infinite where the clusters lie on each other; `save` refuses what is not declared so."""
    cells = json.loads((ROOT / f"notebooks/cmbo/{notebook}.ipynb").read_text())["cells"]
    calls = [
        node
        for cell in cells
        if cell["cell_type"] == "code"
        for node in ast.walk(ast.parse("".join(cell["source"])))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "artefacts.save"
    ]
    (declared,) = ([ast.literal_eval(k.value) for k in call.keywords if k.arg == "infinite"] for call in calls)
    assert "index" in declared[0]

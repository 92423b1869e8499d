"""Search spaces of scikit-learn's classifiers that mirror those of HPO-B (hyperbo §7.6): families, inputs, encoding.

HPO-B's learners are R packages. Each space here has scikit-learn's counterpart of one of them, with the parameters that
both have: glmnet (`alpha`: share of the L1 penalty), rpart, svm (`gamma` of the radial kernel only, `degree` of the
polynomial one only), ranger (`sample.fraction` absent: no bootstrap), xgboost (`tree_method` exact or hist, with
parameters of each).
"""

from typing import Protocol

import numpy as np

from metabo.collect.encoding import Choice, Number, Params, Space
from metabo.collect.packages import require

COST = Number("cost", 2.0**-8, 2.0**8, log=True)
GAMMA = Number("gamma", 2.0**-12, 2.0**3, log=True, when=("kernel", "radial"))
DEGREE = Number("degree", 2, 5, integer=True, when=("kernel", "polynomial"))
CP = Number("cp", 1e-4, 0.3, log=True)
MINSPLIT = Number("minsplit", 2, 128, log=True, integer=True)
MINBUCKET = Number("minbucket", 1, 64, log=True, integer=True)

SPACES: dict[str, Space] = {
    "glmnet_2": (Number("alpha", 0.0, 1.0), Number("lambda", 1e-4, 1.0, log=True)),
    "rpart_3": (CP, MINSPLIT, MINBUCKET),
    "rpart_6": (
        CP,
        Number("minsplit", 2, 128, log=True, integer=True, absent=0.25),
        MINBUCKET,
        Number("maxdepth", 1, 16, integer=True, absent=0.25),
    ),
    "svm_8": (COST, GAMMA, DEGREE, Choice("kernel", ("linear", "polynomial", "radial"))),
    "ranger_10": (
        Number("num.trees", 4, 64, log=True, integer=True),
        Number("mtry", 0.05, 1.0),
        Number("sample.fraction", 0.1, 1.0, absent=0.3),
        Number("min.node.size", 2, 64, log=True, integer=True, absent=0.3),
        Number("max.depth", 1, 16, integer=True, absent=0.4),
        Choice("splitrule", ("gini", "extratrees")),
    ),
    "xgboost_16": (
        Number("eta", 0.01, 1.0, log=True),
        Number("nrounds", 3, 64, log=True, integer=True),
        Number("max_depth", 1, 10, integer=True, absent=0.2),
        Number("min_child_size", 1, 64, log=True, integer=True),
        Number("colsample", 0.1, 1.0),
        Number("max_leaves", 2, 64, log=True, integer=True, absent=0.4),
        Number("subsample", 0.2, 1.0, when=("tree_method", "exact")),
        Number("lambda", 1e-3, 1e2, log=True, when=("tree_method", "hist")),
        Number("max_bin", 4, 255, log=True, integer=True, when=("tree_method", "hist")),
        Choice("tree_method", ("exact", "hist")),
    ),
}
"""Parameters of each space, in the order of the encoded columns; a space's name ends with the number of its columns."""


class Classifier(Protocol):
    """A classifier of scikit-learn."""

    def fit(self, x: np.ndarray, y: np.ndarray, /) -> object:
        """Train on inputs (n, d) and labels (n,)."""
        ...

    def predict(self, x: np.ndarray, /) -> np.ndarray:
        """Return a label for each row."""
        ...

    def score(self, x: np.ndarray, y: np.ndarray, /) -> float:
        """Return the accuracy."""
        ...


def build(space: str, params: Params, rows: int, random_state: int) -> Classifier:
    """Return scikit-learn's unfitted classifier for a configuration of a space and `rows` training rows."""
    return BUILDERS[space.rsplit("_", 1)[0]](params, rows, random_state)


def _glmnet(params: Params, rows: int, random_state: int) -> Classifier:
    # glmnet minimises the mean loss plus lambda times the penalty, scikit-learn C times the summed loss plus it.
    return require("sklearn.linear_model").LogisticRegression(
        C=1 / (params["lambda"] * rows), l1_ratio=params["alpha"], solver="saga", max_iter=100, tol=1e-3,
        random_state=random_state,
    )  # fmt: skip


def _rpart(params: Params, rows: int, random_state: int) -> Classifier:
    # Absent: rpart's default of 20 rows (scikit-learn's is 2, the lower end of the range).
    return require("sklearn.tree").DecisionTreeClassifier(
        ccp_alpha=params["cp"], min_samples_split=params["minsplit"] or 20, min_samples_leaf=params["minbucket"],
        max_depth=params.get("maxdepth"), random_state=random_state,
    )  # fmt: skip


def _svm(params: Params, rows: int, random_state: int) -> Classifier:
    kernel = {"linear": "linear", "polynomial": "poly", "radial": "rbf"}[params["kernel"]]
    return require("sklearn.svm").SVC(
        C=params["cost"], kernel=kernel, gamma="scale" if params["gamma"] is None else params["gamma"],
        degree=3 if params["degree"] is None else params["degree"], max_iter=20_000,
    )  # fmt: skip


def _ranger(params: Params, rows: int, random_state: int) -> Classifier:
    module = require("sklearn.ensemble")
    forest = {"gini": module.RandomForestClassifier, "extratrees": module.ExtraTreesClassifier}[params["splitrule"]]
    return forest(
        n_estimators=params["num.trees"], max_features=params["mtry"], bootstrap=params["sample.fraction"] is not None,
        max_samples=params["sample.fraction"], min_samples_leaf=params["min.node.size"] or 1,
        max_depth=params["max.depth"], random_state=random_state, n_jobs=1,
    )  # fmt: skip


def _xgboost(params: Params, rows: int, random_state: int) -> Classifier:
    module = require("sklearn.ensemble")
    common = {"learning_rate": params["eta"], "max_depth": params["max_depth"], "max_leaf_nodes": params["max_leaves"],
              "min_samples_leaf": params["min_child_size"], "max_features": params["colsample"],
              "random_state": random_state}  # fmt: skip
    if params["tree_method"] == "exact":
        return module.GradientBoostingClassifier(
            n_estimators=params["nrounds"], subsample=params["subsample"], **common
        )
    return module.HistGradientBoostingClassifier(
        max_iter=params["nrounds"], l2_regularization=params["lambda"], max_bins=params["max_bin"],
        early_stopping=False, **common,
    )  # fmt: skip


BUILDERS = {"glmnet": _glmnet, "rpart": _rpart, "svm": _svm, "ranger": _ranger, "xgboost": _xgboost}

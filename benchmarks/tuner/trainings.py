"""Real trainings of scikit-learn: the outcome of a configuration on a data set, by cross-validation with two folds.

Every outcome is kept in a file (`Kept`), so that a repeated question costs nothing.
"""

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC

from metabo.collect import tabular
from metabo.data.history.description import Configuration

ROWS = 400
"""Rows of a data set at most."""
LEAST = 1e-3
"""Probabilities below this count as this in a log loss."""


def forest(c: Configuration, width: int) -> ClassifierMixin:
    sample = c["bootstrap"] == "sample"
    return RandomForestClassifier(
        n_estimators=c["trees"], criterion=c["criterion"], max_features=c["features"], min_samples_leaf=c["leaf"],
        max_depth=c["depth"], bootstrap=sample, max_samples=c["share"] if sample else None, random_state=0,
    )  # fmt: skip


def boosting(c: Configuration, width: int) -> ClassifierMixin:
    return GradientBoostingClassifier(
        learning_rate=c["rate"], n_estimators=c["trees"], max_depth=c["depth"], min_samples_leaf=c["leaf"],
        subsample=c["subsample"], max_features=c["features"], random_state=0,
    )  # fmt: skip


def svc(c: Configuration, width: int) -> ClassifierMixin:
    machine = SVC(
        C=c["cost"], kernel=c["kernel"], gamma=c["gamma"] or "scale", degree=c["degree"] or 3, coef0=c["coef"] or 0.0,
        class_weight=None if c["weights"] == "none" else "balanced", max_iter=5000,
    )  # fmt: skip
    return make_pipeline(PCA(min(c["components"], width), random_state=0), machine)


def knn(c: Configuration, width: int) -> ClassifierMixin:
    scaler = {
        "standard": StandardScaler, "minmax": MinMaxScaler, "none": lambda: "passthrough",
        "quantile": lambda: QuantileTransformer(n_quantiles=50, random_state=0),
    }[c["scaler"]]()  # fmt: skip
    reduction = PCA(max(1, round(c["kept"] * width)), random_state=0) if c["reduction"] == "pca" else "passthrough"
    return make_pipeline(scaler, reduction, KNeighborsClassifier(c["neighbours"], weights=c["weights"], p=c["power"]))


def mlp(c: Configuration, width: int) -> ClassifierMixin:
    return MLPClassifier(
        (c["width"],) * c["layers"], solver=c["solver"], alpha=c["penalty"], learning_rate_init=c["rate"],
        momentum=0.9 if c["momentum"] is None else c["momentum"], batch_size=c["batch"], max_iter=c["epochs"],
        random_state=0, n_iter_no_change=1000,
    )  # fmt: skip


def elastic(c: Configuration, width: int) -> ClassifierMixin:
    return SGDClassifier(
        "log_loss", penalty="elasticnet", alpha=c["penalty"], l1_ratio=c["l1_share"], learning_rate=c["schedule"],
        eta0=c["rate"] or 0.01, power_t=0.5 if c["power"] is None else c["power"], max_iter=c["epochs"], tol=None,
        average=c["average"] == "mean", random_state=0,
    )  # fmt: skip


LEARNERS: dict[str, Callable[[Configuration, int], ClassifierMixin]] = {
    "forest": forest, "boosting": boosting, "svc": svc, "knn": knn, "mlp": mlp, "elastic": elastic,
}  # fmt: skip
BY_LOSS = ("boosting", "mlp", "elastic")
"""Learners whose outcome is a log loss; that of the others is an error rate."""


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (n, d) and labels (n,) of at most `ROWS` rows; classes of fewer than four rows are left out."""
    found = tabular.load(name)
    x = np.concatenate([found.x_train, found.x_valid]).astype(np.float64)
    y = np.concatenate([found.y_train, found.y_valid])
    chosen = np.random.default_rng(0).permutation(len(y))[:ROWS]
    x, y = x[chosen], y[chosen]
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 4))
    return x[kept], np.unique(y[kept], return_inverse=True)[1]


def train(learner: str, name: str, configuration: Configuration) -> float:
    """Return the outcome of a configuration: the mean over two folds; NaN where training broke down."""
    x, y = data(name)
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for fit, check in StratifiedKFold(2, shuffle=True, random_state=0).split(x, y):
            try:
                model = LEARNERS[learner](configuration, min(x.shape[1], len(fit))).fit(x[fit], y[fit])
                if learner in BY_LOSS:
                    shown = np.clip(np.nan_to_num(model.predict_proba(x[check]), nan=0.0), LEAST, 1.0)
                    found.append(log_loss(y[check], shown / shown.sum(axis=1, keepdims=True), labels=model.classes_))
                else:
                    found.append(float(np.mean(model.predict(x[check]) != y[check])))
            except (ValueError, FloatingPointError, OverflowError):
                return float("nan")
    return float(np.mean(found))


class Kept:
    """Outcomes of one learner on one data set, kept in a file with a line for each."""

    def __init__(self, folder: Path, learner: str, name: str) -> None:
        self._learner, self._name = learner, name
        self._path = folder / f"{learner}-{name}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self.known: dict[str, float] = dict(json.loads(line) for line in lines)

    def __call__(self, configuration: Configuration) -> float:
        key = json.dumps(configuration, sort_keys=True)
        if key not in self.known:
            self.known[key] = train(self._learner, self._name, configuration)
            with self._path.open("a") as stream:
                stream.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]

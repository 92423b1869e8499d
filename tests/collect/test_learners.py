"""Spaces of hpob_mini: the encoding is HPO-B's, it can be undone, and every encoded column reaches the learner."""

import numpy as np
import pytest

from metabo.collect.encoding import Choice, Number, columns, coordinates, decode, encode, resolve
from metabo.collect.learners import SPACES, build
from metabo.errors import DataError

HAND = (
    Number("c", 0.1, 1000.0, log=True),
    Number("g", 0.0, 2.0, when=("k", "rbf")),
    Number("n", 2, 32, log=True, integer=True, absent=0.5),
    Choice("k", ("lin", "rbf")),
)


def draws(space, n=200, seed=0):
    return [resolve(space, u) for u in np.random.default_rng(seed).uniform(size=(n, coordinates(space)))]


def estimator(space, row):
    """Everything that the learner of an encoded row is made of, but not its seed."""
    learner = build(space, decode(SPACES[space], row), rows=100, random_state=0)
    return type(learner).__name__, {k: v for k, v in learner.get_params().items() if k != "random_state"}


def test_encoding_by_hand():
    assert columns(HAND) == ("c", "g", "g.na", "n", "n.na", "k.lin", "k.rbf") and coordinates(HAND) == 5
    row = encode(HAND, {"c": 10.0, "g": 0.5, "n": 8, "k": "rbf"})
    np.testing.assert_allclose(row, [0.5, 0.25, 0, 0.5, 0, 0, 1], rtol=1e-6)
    np.testing.assert_allclose(encode(HAND, {"c": 0.1, "g": None, "n": None, "k": "lin"}), [0, 0, 1, 0, 1, 1, 0])
    assert row.dtype == np.float32
    assert decode(HAND, np.array([1, 0, 1, 0.25, 0, 1, 0])) == {"c": 1000.0, "g": None, "n": 4, "k": "lin"}


def test_resolving_a_point_of_the_cube_by_hand():
    # c, g, n, (n absent below 0.5), k
    assert resolve(HAND, np.array([0.5, 0.25, 0.5, 0.6, 0.7])) == {"c": pytest.approx(10), "g": 0.5, "n": 8, "k": "rbf"}
    assert resolve(HAND, np.array([0.0, 0.25, 0.5, 0.4, 0.2])) == {"c": 0.1, "g": None, "n": None, "k": "lin"}


@pytest.mark.parametrize("name", SPACES)
def test_each_space_has_the_columns_of_its_name_and_encoding_can_be_undone(name):
    space = SPACES[name]
    assert len(columns(space)) == len(set(columns(space))) == int(name.rsplit("_")[-1])
    for params in draws(space):
        row = encode(space, params)
        assert row.min() >= 0 and row.max() <= 1
        back = decode(space, row)
        assert back == {k: pytest.approx(v, rel=1e-5) if isinstance(v, float) else v for k, v in params.items()}
        np.testing.assert_allclose(encode(space, back), row, atol=1e-6)


@pytest.mark.parametrize("name", SPACES)
def test_conditional_numbers_are_absent_exactly_where_they_have_no_meaning(name):
    space = SPACES[name]
    drawn = draws(space)
    for p in space:
        values = [params[p.name] for params in drawn]
        if isinstance(p, Choice):
            assert set(values) == set(p.levels)
        elif p.when is not None:
            assert [v is None for v in values] == [params[p.when[0]] != p.when[1] for params in drawn]
        else:
            share = np.mean([v is None for v in values])
            assert share == 0 if p.absent == 0 else abs(share - p.absent) < 0.12
        assert len(set(values)) > 2 or isinstance(p, Choice)


@pytest.mark.parametrize("name", SPACES)
def test_changing_any_encoded_column_changes_the_learner(name):
    """A column that is tied to others (one level of a choice, and what depends on it) is changed with those."""
    space, live = SPACES[name], set()
    rows = [encode(space, params) for params in draws(space, 60)]
    at = {column: i for i, column in enumerate(columns(space))}
    for row in rows:
        before = estimator(name, row)
        for p in space:
            for changed, touched in _variants(p, space, row, at):
                if estimator(name, changed) != before:
                    live.add(touched)
    assert live == set(at)


def _variants(p, space, row, at):
    """Yield (encoded row, the column this varies) for the valid changes of one parameter."""
    params = decode(space, row)
    if isinstance(p, Choice):
        for level in p.levels:
            other = params | {p.name: level}
            dependent = [q for q in space if isinstance(q, Number) and q.when and q.when[0] == p.name]
            other |= {q.name: q.high if q.when[1] == level else None for q in dependent}
            changed = encode(space, other)
            for column in (f"{p.name}.{level}", *(f"{q.name}.na" for q in dependent)):
                if changed[at[column]] != row[at[column]]:
                    yield changed, column
        return
    if params[p.name] is not None:
        changed = row.copy()
        changed[at[p.name]] = 1 - row[at[p.name]] if abs(row[at[p.name]] - 0.5) > 0.1 else 1.0
        yield changed, p.name
    if p.absent > 0:
        changed = row.copy()
        changed[at[p.name]], changed[at[f"{p.name}.na"]] = 0, 1 - row[at[f"{p.name}.na"]]
        yield changed, f"{p.name}.na"


@pytest.mark.parametrize("name", SPACES)
def test_an_absent_number_is_another_learner_than_any_value_of_it(name):
    """Otherwise the indicator column would be a second name of a value."""
    space = SPACES[name]
    for p in space:
        if isinstance(p, Number) and p.absent > 0:
            params = next(q for q in draws(space) if q[p.name] is None)
            for value in (p.low, p.high):
                given = encode(space, params | {p.name: int(value) if p.integer else value})
                assert estimator(name, given) != estimator(name, encode(space, params))


def test_learners_get_the_parameters_in_their_own_units():
    glmnet = build("glmnet_2", {"alpha": 0.3, "lambda": 0.02}, rows=200, random_state=1)
    assert (glmnet.C, glmnet.l1_ratio, glmnet.random_state) == (pytest.approx(1 / (200 * 0.02)), 0.3, 1)
    rpart = build("rpart_6", {"cp": 0.1, "minsplit": None, "minbucket": 3, "maxdepth": None}, 200, 1)
    assert (rpart.ccp_alpha, rpart.min_samples_split, rpart.min_samples_leaf, rpart.max_depth) == (0.1, 20, 3, None)
    svm = build("svm_8", {"cost": 2.0, "gamma": 0.5, "degree": None, "kernel": "radial"}, 200, 1)
    assert (svm.C, svm.gamma, svm.kernel) == (2.0, 0.5, "rbf")
    whole = {"num.trees": 9, "mtry": 0.4, "sample.fraction": None, "min.node.size": 5, "max.depth": 3}
    forest = build("ranger_10", whole | {"splitrule": "extratrees"}, 200, 1)
    assert type(forest).__name__ == "ExtraTreesClassifier" and not forest.bootstrap and forest.n_jobs == 1
    forest = build("ranger_10", whole | {"sample.fraction": 0.5, "splitrule": "gini"}, 200, 1)
    assert type(forest).__name__ == "RandomForestClassifier" and forest.bootstrap and forest.max_samples == 0.5


def test_glmnet_minimises_the_objective_of_glmnet():
    """Against plain numerical minimisation of (mean log loss + lambda (alpha |w|_1 + (1 - alpha)/2 |w|^2))."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = (x @ [1.0, -0.5, 0.0] + rng.normal(size=120) > 0).astype(int)
    alpha, penalty = 0.4, 0.05

    def objective(v):
        w = v[:3] - v[3:6]  # positive and negative parts: smooth in the L1 norm
        loss = np.logaddexp(0, -(2 * y - 1) * (x @ w + v[6])).mean()
        return loss + penalty * (alpha * v[:6].sum() + (1 - alpha) / 2 * (w**2).sum())

    bounds = [(0, None)] * 6 + [(None, None)]
    best = minimize(objective, np.full(7, 0.1), method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    learner = build("glmnet_2", {"alpha": alpha, "lambda": penalty}, len(x), 0).set_params(max_iter=5000, tol=1e-8)
    learner.fit(x, y)
    np.testing.assert_allclose(learner.coef_[0], best.x[:3] - best.x[3:6], atol=2e-4)
    np.testing.assert_allclose(learner.intercept_, best.x[6], atol=2e-4)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0, 1, 0.5, 0, 1], r"shape \(6,\); the 7 columns"),
        ([1.5, 0, 1, 0.5, 0, 1, 0], r"c=1.5 is outside"),
        ([np.nan, 0, 1, 0.5, 0, 1, 0], r"c=nan is outside"),
        ([0.5, 0, 1, 0.5, 0, 1, 1], r"exactly one must be 1"),
        ([0.5, 0, 1, 0.5, 0, 0.5, 0.5], r"exactly one must be 1"),
        ([0.5, 0.2, 1, 0.5, 0, 1, 0], r"absent is 0.0 and 1"),
        ([0.5, 0.2, 0.5, 0.5, 0, 0, 1], r"absent is 0.0 and 1"),
        ([0.5, 0, 1, 0.5, 0, 0, 1], r"g is absent; this configuration needs it"),
        ([0.5, 0.2, 0, 0.5, 0, 1, 0], r"g is given; it has a meaning only where k is rbf"),
    ],
)
def test_rows_that_no_configuration_has_are_refused(row, message):
    with pytest.raises(DataError, match=message):
        decode(HAND, np.array(row))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"c": 1.0, "g": None, "n": 4}, "lacks 'k'"),
        ({"c": 1.0, "g": None, "n": 4, "k": "poly"}, "levels are lin, rbf"),
        ({"c": 1e4, "g": None, "n": 4, "k": "lin"}, r"c=10000.0 is outside"),
        ({"c": None, "g": None, "n": 4, "k": "lin"}, "c is absent"),
    ],
)
def test_parameters_that_cannot_be_encoded_are_refused(params, message):
    with pytest.raises(DataError, match=message):
        encode(HAND, params)

"""Clusters of source tasks: what is stored, what is said aloud, and which settings are alive."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metabo.bo import priors
from metabo.errors import ConfigError, NumericsError
from metabo.gaussians import distances
from metabo.methods.source_gps import clusters, clusters_indices
from metabo.methods.source_gps.sources import make, posteriors_at, repeated
from metabo.plan import registry
from metabo.plan.trainings import prior_of
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import prior_keys, training_sets_of
from tests import stage_runs, tiny

ALL = [name for name in registry.methods() if registry.made_of(name).pretrain == "methods.source_gps.clusters"]
MODEL = {"kernel": "matern52", "cluster_kernel": ["matern12"], "most": 2}
PRETRAIN = {"distance": "jeffreys", "steps": 5, "restarts": 1, "locations": 5}


@pytest.fixture(scope="module")
def training():
    (made,) = training_sets_of(tiny.benchmark(), tiny.spec("cm_wss_wss"))
    return made


def trained(training, **overrides):
    spec = tiny.spec("cm_wss_wss", **overrides)
    return clusters.pretrain(spec, training, prior_keys(training, 0, 2), False)


@pytest.fixture(scope="module")
def usual(training):
    return trained(training)


def tasks(count, dim=2, rows=8, seed=0):
    """Rows of distinct source tasks, and untrained GPs of them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, rows, dim))
    y = np.sin(3 * x[..., 0] + np.arange(count)[:, None])
    return repeated(make(("matern32",), dim), count), Rows(x, y, np.ones((count, rows), bool))


def clusters_of(gps, rows, capsys, **overrides):
    names = tuple(f"t{i}" for i in range(len(rows.y)))
    spec = tiny.spec("cm_wss_wss", pretrain={"locations": 10, **overrides})
    return clusters.cluster(gps, rows, names, spec, jax.random.key(0), "space 's'"), capsys.readouterr().out


def test_clusters_cover_the_tasks_of_every_fold_and_seed(training, usual):
    """Folds of three and of two training tasks, with two seeds each, for one to three clusters."""
    params, log = usual
    assert params.assignment.shape == (4, 3, 3) and log.loss.shape == (4, clusters.STEPS)
    for pair in range(4):
        present = training.present.reshape(4, -1)[pair]
        for number, row in enumerate(np.asarray(params.assignment[pair]), start=1):
            assert (row[~present] == -1).all()
            assert set(row[present].tolist()) == set(range(min(number, present.sum())))
        assert 1 <= int(params.chosen[pair]) + 1 <= present.sum()
        np.testing.assert_array_equal(params.indices[pair, 0, 1], 0.0)  # one cluster: nothing is apart
    assert params.sources.kernel.raw_lengthscale.shape == (
        4,
        3,
        1,
        2,
    ) and params.rough.kernel.raw_lengthscale.shape == (4, 3, 2, 2)


def test_source_gps_do_not_depend_on_the_fold(training, usual):
    """Task `b` is a source in both folds; its fit is one."""
    places = [training.trained[f][0].index("b") for f in range(2)]
    first, second = (
        usual[0].sources.kernel.raw_lengthscale[2 * f, place] for f, place in zip(range(2), places, strict=True)
    )
    np.testing.assert_array_equal(first, second)


def test_stored_indices_are_those_of_the_posteriors(capsys):
    gps, rows = tasks(5)
    found, _ = clusters_of(gps, rows, capsys)
    key, _ = jax.random.split(jax.random.key(0))
    x = clusters.locations(rows, 10, key)
    means, covs, _ = posteriors_at(gps, rows, x)
    between = distances.pairwise(means, distances.regularised(covs), "wasserstein")
    for number, (intra, inter) in enumerate(found.indices, start=1):
        row = jnp.asarray(found.assignment[number - 1])
        assert intra == pytest.approx(float(clusters_indices.compactness(between, row, number)), rel=1e-6)
        assert inter == pytest.approx(float(clusters_indices.separation(between, row, number)), rel=1e-6)


def test_locations_are_different_configurations_of_the_sources():
    rows = Rows(
        np.array([[[0.1], [0.2], [9.0]], [[0.2], [0.3], [0.4]]]),
        np.zeros((2, 3)),
        np.array([[1, 1, 0], [1, 1, 1]], bool),
    )
    every = clusters.locations(rows, 10, jax.random.key(0))
    np.testing.assert_array_equal(every, [[0.1], [0.2], [0.3], [0.4]])
    some = [clusters.locations(rows, 2, jax.random.key(k)).ravel().tolist() for k in range(6)]
    assert all(len(set(one)) == 2 for one in some) and len(set(map(tuple, some))) > 1


@pytest.mark.parametrize(
    ("ratios", "tasks", "chosen"),
    [
        ([(1, 0), (3, 2), (1, 2), (2, 2)], 9, 2),
        ([(1, 0), (3, 2), (1, 2), (2, 2)], 2, 1),  # more clusters than tasks are not chosen
        ([(1, 0), (0, 0), (0, 0)], 9, 1),  # identical tasks: the least number
        ([(1, 0), (1, 2)], 1, 0),  # one task: one cluster
    ],
)
def test_the_number_of_clusters_with_the_least_ratio_is_chosen(ratios, tasks, chosen):
    assert clusters_indices.choose(np.array(ratios, float), np.arange(1, len(ratios) + 1), tasks) == chosen


def test_fewer_tasks_than_clusters_is_said_aloud_and_repaired(capsys):
    found, said = clusters_of(*tasks(2), capsys)
    assert "space 's': 2 tasks only: 3 clusters are made as 2" in said
    assert sorted(found.assignment[2].tolist()) == [0, 1] and found.chosen == 1


def test_identical_tasks_are_said_aloud(capsys):
    _, rows = tasks(1)
    same = Rows(*(np.repeat(part, 4, axis=0) for part in rows))
    found, said = clusters_of(repeated(make(("matern32",), 2), 4), same, capsys)
    assert "3 of 4 source posteriors equal another one" in said and "an empty one took the farthest task" in said
    assert found.chosen == 1 and set(found.assignment[1].tolist()) == {0, 1}
    assert found.odd.locations == 8 and (found.odd.reseeded[1:] > 0).all()


def test_a_singular_covariance_is_repaired_and_said_aloud(capsys):
    """A smooth kernel with long lengthscales: the posterior is singular to rounding on any ten points."""
    gps, rows = tasks(3, dim=1)
    flat = repeated(make(("squared_exponential",), 1), 3)
    flat = jax.tree.map(lambda leaf: leaf + 5.0 if leaf.ndim == 3 else leaf, flat)
    found, said = clusters_of(flat, rows, capsys)
    assert "3 of 3 posterior covariances are singular on 10 locations; 1e-06 of the mean variance is added" in said
    assert np.isfinite(found.indices).all() and gps is not flat


def test_a_posterior_that_cannot_be_repaired_names_its_task(capsys):
    gps, rows = tasks(3)
    rows.y[1, 2] = np.inf
    with pytest.raises(
        NumericsError, match=r"space 's': the posterior of source task 't1' on 10 locations is not finite"
    ):
        clusters_of(gps, rows, capsys)


def test_the_report_tells_the_clusters_of_each_fold(training, usual):
    prior = priors.of_training(training, *usual)
    (first, *_) = told = clusters.report(prior)["clusters"]
    assert [(one["fold"], one["seed"]) for one in told] == [(f.name, s) for f in training.folds for s in range(2)]
    assert first["chosen"] == int(usual[0].chosen[0]) + 1
    assert [sum(sizes) for sizes in first["sizes"]] == [3, 3, 3] and [len(s) for s in first["sizes"]] == [1, 2, 3]
    np.testing.assert_allclose(first["intra"], usual[0].indices[0, :, 0])
    assert all("2 tasks only: 3 clusters are made as 2" in one["remarks"] for one in told if sum(one["sizes"][0]) == 2)


def leaves(params):
    return jax.tree.leaves(params)


def without_clusters(gps, rows, names, spec, key, where):
    """Stand-in for `cluster.cluster`, which takes most of the time."""
    count = len(clusters.numbers_of(clusters.read_clustering(spec)[1]))
    none, zeros = np.asarray(0), np.zeros(count, int)
    odd = clusters.Odd(none, none, none, zeros)
    made = np.zeros((count, len(names)), int), np.zeros((count, 2)), np.zeros(count), zeros
    return clusters.Clusters(*made, 0, odd, jnp.zeros(clusters.STEPS))


@pytest.mark.parametrize("section", [{"pretrain": ["steps"]}, {"model": ["kernel", "cluster_kernel", "most"]}])
def test_settings_of_the_fits_are_alive(training, usual, monkeypatch, section):
    monkeypatch.setattr(clusters, "cluster", without_clusters)
    values = {"pretrain": PRETRAIN, "model": MODEL}
    ((name, keys),) = section.items()
    for key in keys:
        other = trained(training, **{name: {key: values[name][key]}})[0]
        if key == "most":
            assert other.assignment.shape == (4, 2, 3)
        elif key == "cluster_kernel":
            assert other.rough.kernel.raw_lengthscale.shape == (4, 3, 1, 2)
        else:
            assert (other.sources.kernel.raw_lengthscale != usual[0].sources.kernel.raw_lengthscale).any()


def test_settings_of_the_clusters_are_alive(capsys, monkeypatch):
    given = []

    class Asked(Exception):
        pass

    def asked(*a, **k):
        given.append(a)
        raise Asked

    monkeypatch.setattr(clusters, "kmeans", asked)
    for overrides in ({}, {key: PRETRAIN[key] for key in ("distance", "restarts", "locations")}):
        with pytest.raises(Asked):
            clusters_of(*tasks(3), capsys, **overrides)
    (means, _, _, *usual, _), (few, _, _, *other, _) = given
    assert (means.shape, few.shape) == ((3, 10), (3, 5))
    assert (usual[0], usual[2], other[0], other[2]) == ("wasserstein", 2, "jeffreys", 1)


def test_settings_all_have_a_case():
    entry = registry.method("cm_wss_wss")
    assert set(entry.model) == set(MODEL) and set(entry.pretrain) == set(PRETRAIN)


def test_bad_settings_are_refused(training):
    with pytest.raises(ConfigError, match=r"unknown distance 'jeffrey'. Did you mean 'jeffreys'"):
        trained(training, pretrain={"distance": "jeffrey"})
    with pytest.raises(ConfigError, match=r"'cmbo\.clusters' is 0"):
        trained(training, model={"most": 0})


def test_variants_share_the_priors_of_their_distance():
    """However many methods are registered, there are as many trainings as distances."""
    settings, priors_of = stage_runs.smoke(), {}
    for name in ALL:
        distance = registry.method(name).pretrain["distance"]
        priors_of.setdefault(distance, set()).add(prior_of(settings, "cmbo_mini", "clustered", name)[1])
    assert priors_of == {"wasserstein": {"cm_wss_wss"}, "jeffreys": {"cm_jef_jef"}}
    assert [name for name in registry.methods() if name.startswith("cm_")] == ALL

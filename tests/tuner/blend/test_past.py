"""What is learned from past studies."""

import numpy as np
import pytest

from metabo.data.history.past import past_of
from metabo.data.history.read import History
from metabo.errors import DataError
from metabo.tuner.blend import hyper, kernel, past, points
from tests.tuner.blend import worlds

BOWLS = [worlds.bowl((0.6 + 0.02 * i, 0.3, 0.5)) for i in range(4)]


@pytest.fixture(scope="module")
def flat():
    return worlds.space(worlds.FLAT)


@pytest.fixture(scope="module")
def learned(flat):
    return past.learn(worlds.studies(flat, BOWLS), 0, 60)


def test_what_the_past_says_is_the_dense_posterior_of_the_common_function(learned):
    h, x = learned.hyper, learned.x
    at = np.random.default_rng(5).random((6, 3))
    same = learned.study[:, None] == learned.study
    columns = 1 / learned.scales

    def k(a, b):
        return kernel.matern52((((a * columns)[:, None] - b * columns) ** 2).sum(-1))

    cov = h.variance * np.where(same, 1.0, h.correlation) * k(x, x) + 25.0 * same + h.noise * np.eye(len(x))
    cross = h.variance * h.correlation * k(at, x)
    found = past.conditioned(learned).explained(at)
    np.testing.assert_allclose(found.mean, cross @ np.linalg.solve(cov, learned.z), atol=1e-6)
    np.testing.assert_allclose(found.root.T @ found.root, cross @ np.linalg.solve(cov, cross.T), atol=1e-6)


def test_units_and_directions_of_past_studies_do_not_matter(flat, learned):
    given = worlds.studies(flat, [lambda c, f=f, i=i: 10.0**i * f(c) + i for i, f in enumerate(BOWLS)])
    np.testing.assert_allclose(past.learn(given, 0, 60).z, learned.z)
    least = worlds.space(worlds.FLAT, goal="minimise")
    np.testing.assert_allclose(
        past.learn(worlds.studies(least, [lambda c, f=f: -f(c) for f in BOWLS]), 0, 60).z, learned.z
    )


def test_many_trials_of_one_place_do_not_lift_the_mean_elsewhere(flat):
    """The bias of an optimiser: forty more trials near the best, and the mean far away stays where it was."""
    rng, given = np.random.default_rng(6), worlds.studies(flat, BOWLS[:1], trials=25)
    trials = [t._replace(outcome=float(t.outcome)) for t in _trials(given, flat)]
    extra = []
    for number in range(40):
        c = {"a": 0.6 + 0.002 * rng.normal(), "b": 0.3, "c": 0.5}
        extra.append(trials[0]._replace(row=100 + number, configuration=c, outcome=BOWLS[0](c)))
    x = np.array([list(t.configuration.values()) for t in [*trials, *extra]])
    z = np.array([t.outcome for t in [*trials, *extra]])
    fixed = past.learn(past_of("p", History(trials, [], []), flat), 0, 60)
    far = np.array([[0.0, 1.0, 0.0]])
    found = []
    for n in (len(trials), len(z)):
        part = fixed._replace(x=x[:n], z=z[:n], study=np.zeros(n, dtype=int))
        found.append(past.conditioned(part).explained(far).mean[0] + _offset(part))
    plain = [z[:25].mean(), z.mean()]
    assert abs(found[1] - found[0]) < 0.2 * abs(plain[1] - plain[0])


def _trials(given, flat):
    (task,) = given.tasks.values()
    cells = flat.at(points.units(flat, task.x))
    from metabo.data.history.rows import Trial

    return [Trial(i, "study 0", c, float(y)) for i, (c, y) in enumerate(zip(cells, task.metric, strict=True))]


def _offset(part):
    """The generalised least squares mean."""
    cov = hyper.covariance(part.hyper, part.x, np.ones((len(part.z), len(part.z)), dtype=bool), part.owner) - 25.0
    solved = np.linalg.solve(cov, np.stack([np.ones(len(part.z)), part.z], axis=1))
    return solved[:, 1].sum() / solved[:, 0].sum()


def test_a_long_history_is_cut_and_keeps_the_best_of_each_study(flat, monkeypatch):
    monkeypatch.setattr(past, "MOST", 40)
    given = worlds.studies(flat, BOWLS, trials=30)
    found = past.learn(given, 0, 5)
    assert np.bincount(found.study).tolist() == [10] * 4 and len(found.elites) == 4 * past.ELITES
    for number, task in enumerate(given.tasks.values()):
        best = task.x[np.argsort(-task.metric)[:3]]
        assert all((found.x[found.study == number] == row).all(axis=1).any() for row in best)
    assert (past.learn(given, 0, 5).x == found.x).all() and (past.learn(given, 1, 5).x != found.x).any()
    monkeypatch.setattr(past, "STUDIES", 2)
    assert np.bincount(past.learn(given, 0, 5).study).tolist() == [20, 20]


def test_steps_are_those_of_the_fit(flat):
    given = worlds.studies(flat, BOWLS)
    assert (past.learn(given, 0, 2).scales != past.learn(given, 0, 60).scales).any()


def test_a_file_without_the_digits_of_the_history_is_read(flat, learned, tmp_path):
    """Priors were written without them for a while."""
    past.save(tmp_path / "p.npz", learned)
    with np.load(tmp_path / "p.npz") as arrays:
        np.savez(tmp_path / "old.npz", **{name: arrays[name] for name in arrays if name != "exact"})
    old = past.load(tmp_path / "old.npz")
    assert np.isnan(old.exact).all() and np.isfinite(learned.exact).all()
    pick = points.Points(learned.elites[:1], learned.elites[:1])
    assert list(learned.configuration(flat, pick).values()) == learned.exact[0].tolist()
    assert flat.same(old.configuration(flat, pick), learned.configuration(flat, pick))


def test_what_is_saved_is_loaded_and_a_torn_file_is_said(learned, tmp_path):
    past.save(tmp_path / "p.npz", learned)
    for one, other in zip(past.load(tmp_path / "p.npz"), learned, strict=True):
        np.testing.assert_array_equal(one, other)
    (tmp_path / "p.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:200])
    with pytest.raises(DataError, match=r"p\.npz: cannot be read .* metabo pretrain"):
        past.load(tmp_path / "p.npz")

"""The synthetic super-datasets against NumPy and SciPy: priors of the parameters, moments of the outputs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from metabo.data import synthetic
from metabo.data.initial import fifth
from metabo.errors import ConfigError, NumericsError
from metabo.plan import registry
from metabo.tasks.benchmark import Benchmark

SMALL = {"domains": 3, "functions": 5, "points": 12, "seed": 0}
DRAWN = 300
LEVEL = 1e-3
"""Of the tests of fit, whose seeds are fixed: a right generator had this chance to fail each of them."""


def small(name="mphd_l", **changes):
    return synthetic.load(name, SMALL | changes)


def test_designs_have_the_papers_numbers():
    """By hand: sheet 4.1, 4.2 (mphd App. E.1)."""
    s, large = synthetic.DESIGNS["mphd_s"], synthetic.DESIGNS["mphd_l"]
    for dim in (2, 5):
        assert s.prior(dim) == {
            "constant": [1.0, 1.0], "lengthscale": [10.0, 30.0], "variance": [1.0, 1.0], "noise": [10.0, 100000.0],
        }  # fmt: skip
    assert large.prior(2)["lengthscale"] == pytest.approx([1.0000, 4.9999], abs=1e-4)
    assert large.prior(14)["lengthscale"] == pytest.approx([1.9231, 0.7531], abs=1e-4)
    assert {k: v for k, v in large.prior(7).items() if k != "lengthscale"} == {
        "constant": [0.5, 0.2], "variance": [15.0, 100.0], "noise": [1.0, 10000.0],
    }  # fmt: skip
    assert (s.kernel, s.dims, large.kernel, large.dims) == ("matern32", (2, 5), "matern52", (2, 14))


@pytest.fixture(scope="module", params=["mphd_s", "mphd_l"])
def drawn(request):
    """A super-dataset's name and many of its domains."""
    return request.param, [synthetic.domain(request.param, 0, i) for i in range(1, DRAWN + 1)]


def test_parameters_follow_their_priors(drawn):
    """Kolmogorov-Smirnov with a fixed seed. Each value is mapped by the distribution function of its own domain's
    prior, so that all lengthscales together are uniform."""
    name, domains = drawn
    design = synthetic.DESIGNS[name]

    def levels(parameter, rate=1.0):
        if parameter == "constant":
            return [stats.norm(*d.prior["constant"]).cdf(d.constant / rate) for d in domains]
        found = []
        for d in domains:
            shape, b = d.prior[parameter]
            found += np.atleast_1d(stats.gamma(shape, scale=1 / b).cdf(getattr(d, parameter) * rate)).tolist()
        return found

    for parameter in ("constant", "lengthscale", "variance", "noise"):
        assert stats.kstest(levels(parameter), "uniform").pvalue > LEVEL, parameter
        assert stats.kstest(levels(parameter, 1.5), "uniform").pvalue < LEVEL, f"no power: {parameter}"
    for d in domains:
        assert d.prior == design.prior(d.dim)


def test_parameters_are_independent(drawn):
    """Rank correlations of the levels of each two parameters, the first two lengthscales among them."""
    _, domains = drawn

    def level(d, i):
        shape, rate = d.prior["lengthscale"]
        return stats.gamma(shape, scale=1 / rate).cdf(d.lengthscale[i])

    columns = [[getattr(d, name) for d in domains] for name in ("constant", "variance", "noise")]
    columns += [[level(d, i) for d in domains] for i in (0, 1)]
    for a, b in itertools.combinations(columns, 2):
        assert stats.spearmanr(a, b).pvalue > LEVEL


def test_numbers_of_inputs_are_uniform(drawn):
    name, domains = drawn
    low, high = synthetic.DESIGNS[name].dims
    found = np.bincount([d.dim for d in domains], minlength=high + 1)
    assert not found[:low].any() and len(found) == high + 1 and (found[low:] > 0).all()
    assert stats.chisquare(found[low:]).pvalue > LEVEL


def matern(name, x, lengthscale, variance):
    """Sheet 2.2, pair by pair."""
    k = np.empty((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            distance = np.sqrt((((x[i] - x[j]) / lengthscale) ** 2).sum())
            r = (3 if name == "mphd_s" else 5) ** 0.5 * distance
            k[i, j] = variance * (1 + r + (0 if name == "mphd_s" else r**2 / 3)) * np.exp(-r)
    return k


@pytest.mark.parametrize("name", ["mphd_s", "mphd_l"])
def test_outputs_have_the_mean_and_covariance_of_the_gp_with_noise(name, getkey):
    draws, x = 40_000, np.random.default_rng(3).uniform(size=(6, 3))
    constant, lengthscale, variance, noise = 0.7, np.array([0.3, 0.9, 0.5]), 1.4, 0.2
    kernel = synthetic.DESIGNS[name].kernel

    def one(key):
        return synthetic.outputs(
            key, jnp.asarray(x), constant, jnp.asarray(lengthscale), variance, noise, kernel
        )  # fmt: skip

    y, ok = jax.vmap(one)(jax.random.split(getkey(), draws))
    y = np.asarray(y)
    assert np.asarray(ok).all()
    wanted = matern(name, x, lengthscale, variance) + (noise + 1e-6) * np.eye(6)
    deviation = np.sqrt(np.diag(wanted) / draws)
    assert (np.abs(y.mean(axis=0) - constant) < 4.5 * deviation).all()
    error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / draws)
    found = np.cov(y.T)
    assert (np.abs(found - wanted) < 4.5 * error).all()
    other = matern("mphd_l" if name == "mphd_s" else "mphd_s", x, lengthscale, variance) + noise * np.eye(6)
    assert (np.abs(found - other) > 4.5 * error).any(), "no power: the other smoothness would pass"
    assert (np.abs(found - wanted + noise * np.eye(6)) > 4.5 * error).any(), "no power: no noise would pass"


def test_one_draw_is_its_factor_times_white_noise():
    """Against SciPy's Cholesky, from the same uniform and normal numbers."""
    place = synthetic.domain("mphd_l", 5, 2)
    x, y = synthetic.function("mphd_l", 5, place, 3, 20)
    key = synthetic.stream(5, "mphd_l", "function", place.name, 3)
    where, values = jax.random.split(key)
    np.testing.assert_array_equal(x, jax.random.uniform(where, (20, place.dim)))
    covariance = matern("mphd_l", x, place.lengthscale, place.variance) + (place.noise + 1e-6) * np.eye(20)
    white = np.asarray(jax.random.normal(values, (20,)))
    np.testing.assert_allclose(y, place.constant + np.linalg.cholesky(covariance) @ white, rtol=1e-8)


def test_inputs_are_uniform_and_each_functions_own():
    place = synthetic.domain("mphd_l", 0, 1)
    drawn = [synthetic.function("mphd_l", 0, place, number, 12) for number in range(1, 201)]
    assert stats.kstest(np.concatenate([x.ravel() for x, _ in drawn]), "uniform").pvalue > LEVEL
    assert len({x.tobytes() for x, _ in drawn}) == len({y.tobytes() for _, y in drawn}) == 200


def test_a_benchmark_has_a_space_per_domain_and_tests_the_last_fifth_of_its_functions():
    made = small("mphd_s", functions=10)
    assert [name[:3] for name in made.spaces] == ["d01", "d02", "d03"]
    for name, space in made.spaces.items():
        assert name == f"{name[:3]}_{space.dim}"
        assert all((p.kind, p.low, p.high) == ("linear", 0.0, 1.0) for p in space.parameters)
    for fold, space in zip(made.split("held_out"), made.spaces, strict=True):
        assert fold.name == fold.space == space
        assert fold.train == tuple(f"{space}/{i:02d}" for i in range(1, 9))
        assert fold.test == (f"{space}/09", f"{space}/10")
    assert len(made.tasks) == 30 and not made.matched
    for task in made.tasks.values():
        assert task.x.shape == (12, made.spaces[task.space].dim)
        np.testing.assert_array_equal(task.y, task.metric)  # as drawn, noise included: regret is measured on these


@pytest.mark.parametrize(("count", "test"), [(2, 1), (3, 1), (8, 1), (9, 1), (10, 2), (20, 4), (23, 4), (24, 4)])
def test_a_fifth_rounded_down_is_tested(count, test):
    assert fifth(count) == test


def test_the_truth_is_told_per_space():
    made = small()
    for number, (name, truth) in enumerate(made.facts.truth.items(), start=1):
        place = synthetic.domain("mphd_l", 0, number)
        assert truth["parameters"] == {
            "constant": place.constant, "lengthscale": place.lengthscale.tolist(), "variance": place.variance,
            "noise": place.noise,
        }  # fmt: skip
        assert truth["prior"] == synthetic.DESIGNS["mphd_l"].prior(made.spaces[name].dim)
        assert len(truth["parameters"]["lengthscale"]) == made.spaces[name].dim
    assert all(registry.benchmark(name).truth for name in synthetic.BENCHMARKS)


def test_every_test_task_has_five_sets_of_five_initial_points():
    made = small()
    tests = [name for fold in made.split("held_out") for name in fold.test]
    assert list(made.initial) == tests
    for given in made.initial.values():
        assert given.shape == (5, 5) and all(len(set(row)) == 5 for row in given.tolist())
        assert len({tuple(row) for row in given.tolist()}) == 5
    assert len({given.tobytes() for given in made.initial.values()}) == len(tests)


def same(a, b):
    return all((a.tasks[n].x == b.tasks[n].x).all() and (a.tasks[n].y == b.tasks[n].y).all() for n in a.tasks)


def test_a_function_depends_on_seed_domain_and_number_alone():
    few, many = small(domains=2, functions=2), small(functions=9)
    assert same(few, many) and set(few.tasks) < set(many.tasks)
    shared = few.split("held_out")[0].test[0]
    assert few.facts.truth.items() <= many.facts.truth.items()
    again, other = small(), small(seed=1)
    assert same(again, small())
    assert not (set(again.spaces) == set(other.spaces) and same(again, other))
    points = {s: synthetic.initial_points(few.tasks[shared], s).tobytes() for s in (0, 1)}
    assert points[0] != points[1]
    assert small("mphd_s").facts.truth != again.facts.truth


def test_a_file_keeps_everything(tmp_path):
    made = small()
    made.save(tmp_path / "mphd_l.npz")
    read = Benchmark.load(tmp_path / "mphd_l.npz")
    assert read.facts == made.facts and read.splits == made.splits and same(made, read)
    assert read.spaces == made.spaces


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"functions": 1}, r"mphd_l\.functions: 1 must be a whole number of at least 2"),
        ({"domains": 1}, r"mphd_l\.domains: 1 must be a whole number of at least 2"),
        ({"points": 4}, r"mphd_l\.points: 4 must be a whole number of at least 5"),
        ({"points": 12.0}, "whole number"),
        ({"point": 12}, "'point'. Did you mean 'points'"),
        ({"points": 10**7}, r"10000000 points: needs about .*lower config key 'benchmarks.mphd_l.points'"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        small(**settings)


def test_a_covariance_that_cannot_be_factorised_is_named():
    place = synthetic.domain("mphd_l", 0, 1)._replace(noise=-1.0)
    with pytest.raises(
        NumericsError, match=rf"mphd_l, domain {place.name}, function 7: .*20 points cannot be factorised"
    ):
        synthetic.function("mphd_l", 0, place, 7, 20)

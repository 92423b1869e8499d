"""HE-GP-UCB's statements as functions, against independent NumPy, SciPy, brute force and numbers of the sheet."""

import itertools

import jax
import numpy as np
import pytest
from scipy import special, stats

from metabo.compute import keys
from metabo.methods.elimination import confidence
from metabo.methods.elimination.problem import EliminationSettings
from metabo.papers.hegpucb import problems
from metabo.papers.hegpucb.theory import (
    additive,
    bounds,
    discretisation,
    growth,
    instances,
    intervals,
    kernels,
    nesting,
    noise,
    posteriors,
    preservation,
    regimes,
    regret,
    robust,
    stuck,
    sums,
    table1,
)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def short():
    return instances.lengthscales((0.1, 0.2, 0.4), 1, 21)


# --- instances


def test_length_scales_and_hills_by_hand():
    one = instances.lengthscales((0.1, 0.4), 1, 11)
    assert one.many == 2 and one.kernels.shape == (2, 11, 11) and one.means.shape == (2, 11)
    assert one.kernels[1, 2, 5] == pytest.approx(np.exp(-0.5 * (0.3 / 0.4) ** 2))
    np.testing.assert_allclose(kernels.rbf(one.x[:, 0], one.x[:3, 0], 0.4), one.kernels[1][:, :3])
    x = np.linspace(0.0, 1.0, 201)
    ours = np.stack([kernels.hills(x, u) for u in [*range(10), None]])
    np.testing.assert_allclose(ours, problems.hill_means(x[:, None]), atol=1e-12)
    assert kernels.hills(np.array([0.125]), 2, 20, 12.0)[0] == pytest.approx(12.0)


def test_candidates_of_every_type():
    for case in growth.types().values():
        one = case.instance
        assert one.kernels.shape[1:] == (len(one.x), len(one.x)) and 0 <= one.truth < one.many
        np.testing.assert_allclose(np.diagonal(one.kernels, axis1=1, axis2=2), 1.0)
        assert np.linalg.eigvalsh(one.kernels).min() > -1e-8
    few = instances.means(-1, 12.0, 20, 2)
    assert few.many == 2 and few.truth == 1 and few.means[1].max() == pytest.approx(1.0 + np.cos(np.pi / 4))
    alone = instances.alone(instances.means(2))
    assert alone.many == 1 and alone.truth == 0 and np.argmax(alone.means[0]) == 25
    third = instances.decompositions(1).kernels[1]
    x = problems.grid((5, 5, 5))
    expected = 0.5 * np.exp(-np.sum((x[7, :2] - x[60, :2]) ** 2) / 0.18) + 0.5 * np.exp(
        -((x[7, 2] - x[60, 2]) ** 2) / 0.18
    )
    assert third[7, 60] == pytest.approx(expected)


def test_drawn_functions(rng, short):
    f = instances.gp_draws(rng, short._replace(means=short.means + 3.0), 20_000)
    np.testing.assert_allclose(np.cov(f.T), short.kernels[1], atol=0.05)
    assert f.mean() == pytest.approx(3.0, abs=0.05)
    flat = instances.rkhs_draws(rng, instances.lengthscales((0.05,), 0, 21), 4, 2.5)
    gram = problems.rbf(instances.line(21)[:, None], 0.05)
    norms = np.einsum("ni,ni->n", flat, np.linalg.solve(gram, flat.T).T)
    np.testing.assert_allclose(np.sqrt(norms), 2.5, rtol=1e-6)


# --- runs and their posteriors


def test_posteriors_against_dense_solves(rng, short):
    gram, mean, noise_variance = short.kernels[0], rng.normal(size=21), 0.04
    index, y, f = rng.integers(0, 21, (2, 6)), rng.normal(size=(2, 6)), rng.normal(size=(2, 21))
    found = posteriors.posterior(gram, mean, noise_variance, f, index, y)
    for run in range(2):
        for t in range(6):
            at, out = index[run, :t], y[run, :t]
            k = gram[np.ix_(at, at)] + noise_variance * np.eye(t)
            weights = np.linalg.solve(k, gram[at])
            own = mean + weights.T @ (out - mean[at])
            deviation = np.sqrt(np.diagonal(gram) - np.sum(weights * gram[at], axis=0))
            assert found.distance[run, t] == pytest.approx(np.max(np.abs(f[run] - own) / deviation), rel=1e-8)
            gain = 0.5 * np.linalg.slogdet(np.eye(t) + gram[np.ix_(at, at)] / noise_variance)[1]
            assert found.gain[run, t] == pytest.approx(gain, abs=1e-9)


def test_the_package_and_the_posteriors_agree(rng, short):
    """Two codes: rows one by one in the package, one factor of all observations here."""
    f = instances.gp_draws(rng, short, 3)
    settings = EliminationSettings(12, beta="bayes_finite", R=0.2)
    trace = posteriors.simulate(short.problem(0.2), "gp_ucb", settings, keys.stream(0, "agree"), f)
    assert trace.u.shape == (3, 12) and (trace.u == 1).all()
    for run in range(3):
        model = jax.numpy.asarray(short.kernels[1]), jax.numpy.asarray(short.means[1])
        seen = jax.numpy.asarray(trace.point[run]), jax.numpy.asarray(trace.y[run])
        means, variances, gain = posteriors.moments(*model, 0.04, *seen)
        step = np.arange(12)
        np.testing.assert_allclose(means[step, trace.point[run]], trace.mean[run], atol=1e-9)
        np.testing.assert_allclose(np.sqrt(variances[step, trace.point[run]]), trace.sigma[run], rtol=1e-7)
        np.testing.assert_allclose(gain, trace.gain[run, :, 1], atol=1e-9)
        np.testing.assert_allclose(trace.regret[run], f[run].max() - f[run][trace.point[run]])


def test_the_greedy_gain_is_near_the_largest(short):
    gram = short.kernels[0][::4, ::4]
    found = np.asarray(posteriors.greedy(jax.numpy.asarray(gram), 0.1, 4))
    assert found[0] == 0.0
    for size in (1, 2, 3):
        best = max(
            0.5 * np.linalg.slogdet(np.eye(size) + gram[np.ix_(a, a)] / 0.1)[1]
            for a in itertools.combinations_with_replacement(range(6), size)
        )
        assert (1.0 - 1.0 / np.e) * best <= found[size] <= best + 1e-12


# --- Lemma 5.1


def test_thresholds_by_hand():
    t = np.arange(1, 4)
    for kind, constant in (("pi2", np.pi**2 / 6.0), ("corrected", np.pi**2 / 3.0), ("printed", np.pi / 6.0)):
        np.testing.assert_allclose(noise.thresholds(3, 5, 0.05, kind), 2.0 * np.log(5 * constant * t**2 / 0.05))
    assert np.sqrt(noise.thresholds(1, 1, 0.9985, "pi2")[0]) == pytest.approx(0.9992, abs=1e-4)


def test_crossings_by_brute_force(rng):
    steps = rng.standard_normal((40, 12))
    limits = np.stack([np.full(12, 1.0), np.linspace(0.5, 3.0, 12)])
    found = noise.crossings(steps, 3, "turns", limits)
    for run in range(40):
        for k in range(2):
            crossed = False
            for t in range(12):
                for u in range(3):
                    own = steps[run, u : t + 1 : 3]
                    crossed |= len(own) > 0 and abs(own.sum()) > np.sqrt(limits[k, t] * len(own))
            assert found[k, run] == crossed
    more = rng.standard_normal((2000, 30))
    adverse, turns = (noise.crossings(more, 3, rule, np.full((1, 30), 9.0)).sum() for rule in ("adverse", "turns"))
    assert adverse > 1.2 * turns, "an adversary crosses more often"


def test_the_union_sum():
    assert noise.union_sum(5, 0.3, "pi2") == pytest.approx(2.0 * 0.3 / 5, rel=1e-10)
    assert noise.union_sum(1, 0.3, "corrected") == pytest.approx(0.3, rel=1e-10)
    signs = noise.noises(np.random.default_rng(0), "signs", (1000,))
    assert set(signs) == {-1.0, 1.0} and abs(signs.mean()) < 0.1


# --- Lemma 5.2


def test_compositions_are_uniform(rng):
    drawn = sums.compositions(rng, 3, 3, 30_000)
    assert (drawn.sum(axis=1) == 3).all() and drawn.min() == 0
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(kinds) == 10 and stats.chisquare(counts).pvalue > 1e-4
    assert sums.root_sum(np.array([4, 9, 0])) == 5.0


# --- Theorem 3.1, Lemma 5.4


def test_confidence_constants_by_hand():
    t = np.arange(1, 4)
    np.testing.assert_allclose(intervals.bayes_beta(3), np.sqrt(2 * np.log(200 * np.pi**2 * t**2 / 0.6)))
    gain = np.array([0.0, 2.0])
    root = np.sqrt(2 * (gain + 1 + np.log(10.0)))
    np.testing.assert_allclose(intervals.frequentist_beta(1.5, 0.1, gain, False), 1.5 + root)
    np.testing.assert_allclose(intervals.frequentist_beta(1.5, 0.1, gain, True), 1.5 + 0.1 * root)


def test_intervals_that_miss_are_counted_by_runs():
    """The bound would be refuted where enough runs exceed it: none of three is enough for a tenth."""
    found = posteriors.PosteriorTrace(np.array([[1.0, 2.0], [1.0, 4.0], [np.nan, 0.0]]), np.zeros((3, 2)))
    decided = intervals.missing(found, np.array([2.0, 3.0]))
    assert (decided.numbers["bad"], decided.numbers["runs"], decided.numbers["limit"]) == (2, 3, intervals.DELTA)
    many = posteriors.PosteriorTrace(np.tile([[1.0, 1.5]], (100, 1)), np.zeros((100, 2)))
    assert intervals.missing(many, np.array([2.0, 3.0])).numbers["sees"] == pytest.approx(2.0)


def test_rices_bound_holds_for_sampled_slopes(rng):
    a, b = intervals.rice(0.3)
    assert (a, b) == (pytest.approx(2.8378, abs=1e-4), pytest.approx(22.2222, abs=1e-4))
    _, slope = discretisation.factor(0.3)
    steepest = np.abs(rng.standard_normal((4000, slope.shape[1])) @ slope.T).max(axis=1)
    for level in (2.0, 8.0, 12.0):
        assert (steepest > level).mean() <= min(1.0, a * np.exp(-(level**2) / b)) + 0.01


# --- Theorem 3.2


def test_functions_and_slopes_of_an_infinite_domain():
    value, slope = discretisation.factor(0.3)
    x = instances.line(discretisation.FINE)[::50]
    gram = np.exp(-0.5 * ((x[:, None] - x) / 0.3) ** 2)
    np.testing.assert_allclose((value @ value.T)[::50, ::50], gram, atol=1e-8)
    distance = x[:, None] - x
    np.testing.assert_allclose((slope @ slope.T)[::50, ::50], gram * (1 - distance**2 / 0.09) / 0.09, atol=1e-5)


def test_cells_and_nearest_points_by_hand():
    t = np.array([1.0, 2.0])
    root = np.sqrt(np.log(2.0 * 1.5 / 0.1))
    np.testing.assert_allclose(discretisation.cells_of(t, 4.0, 1.5, 0.1, True), t**2 * 4.0 * root)
    np.testing.assert_allclose(discretisation.cells_of(t, 4.0, 1.5, 0.1, False), np.ceil(t**2 * 2.0 * root))
    near = discretisation.nearest(np.array([0.0, 0.3, 0.6, 1.0]), np.array([0.2, 3.5]))
    np.testing.assert_allclose(near, [[0.5] * 4, [0.125, 0.375, 0.625, 0.875]])
    ends = discretisation.nearest(np.array([0.0, 0.3, 0.6, 1.0]), np.array([0.2, 3.5]), "ends")
    np.testing.assert_allclose(ends, [[1.0] * 4, [0.25, 0.25, 0.5, 1.0]])
    x = np.linspace(0.0, 1.0, 997)
    for grid, place in discretisation.GRIDS.items():
        points = (np.arange(7) + place) / 7
        gaps = np.abs(discretisation.nearest(x, np.array([6.5]), grid)[0] - x)
        np.testing.assert_allclose(gaps, np.abs(x[:, None] - points).min(axis=1), atol=1e-12, err_msg=grid)
    assert discretisation.beta32(t, np.array([1e-9, 8.0]), 0.1)[0] == 0.0
    expected = np.sqrt(2 * np.log(np.pi**2 * 4 / 0.3) + 2 * np.log(8.0))
    assert discretisation.beta32(t, np.array([1.0, 8.0]), 0.1)[1] == pytest.approx(expected)


def test_moments_at_the_nearest_points(rng):
    x = instances.line(discretisation.FINE)
    index = rng.integers(0, len(x), (2, discretisation.ITERATIONS))
    y, f = rng.normal(size=index.shape), rng.normal(size=(2, len(x)))
    sample = discretisation.Sample(f, index, y, 0.3)
    near = discretisation.nearest(x, np.linspace(3.0, 40.0, discretisation.ITERATIONS))
    error, deviation, own, own_deviation = discretisation._moments(sample, near)
    for run, t in ((0, 0), (0, 5), (1, 14)):
        at = x[index[run, :t]]
        k = kernels.rbf(at, at, 0.3) + 0.01 * np.eye(t)
        for points, value, got, sd in (
            (near[t], f[run], error[run, t], deviation[run, t]),
            (x[index[run, t : t + 1]], f[run, index[run, t : t + 1]], own[run, t], own_deviation[run, t]),
        ):
            weights = np.linalg.solve(k, kernels.rbf(at, points, 0.3))
            np.testing.assert_allclose(got, np.abs(value - weights.T @ y[run, :t]), atol=1e-9)
            expected = np.sqrt(1.0 - np.sum(weights * kernels.rbf(at, points, 0.3), axis=0))
            np.testing.assert_allclose(sd, expected, atol=1e-8)


# --- the test of Algorithm 1


@pytest.fixture(scope="module")
def played():
    case = preservation.Regime(instances.means(-1, instances.TALL), True)
    settings = preservation.settings_of(case, False, 30)
    return case, preservation.play(case, settings, keys.stream(1, "played"), 6)


def test_the_test_of_the_truth_from_the_trace(played):
    case, (_, trace, settings) = played
    xi = preservation.xis(settings, case.instance.many, "corrected")
    np.testing.assert_allclose(xi, 2 * 0.01 * np.log(11 * 2 * np.pi**2 * np.arange(1, 31) ** 2 / 0.3))
    for u in range(case.instance.many):
        np.testing.assert_array_equal(preservation.fired(trace, u, xi), trace.rejected & (trace.u == u))
    assert preservation.fired(trace, 0, xi).any() and not preservation.fired(trace, 0, xi, 50.0).any()


def test_critical_iterations(played):
    case, (_, trace, _) = played
    critical = preservation.criticals(trace)
    assert (critical.sum(axis=1) == case.instance.many - trace.alive[:, -1].sum(axis=1)).all()
    assert critical.any() and (critical <= trace.rejected).all()
    alive = np.array([[[True, True], [True, False], [True, False], [True, False]]])
    exhausted = np.array([[False, False, True, True]])
    made = trace._replace(alive=alive, exhausted=exhausted)
    np.testing.assert_array_equal(preservation.criticals(made), [[False, True, True, False]])


def test_sound_runs(played):
    case, own = played
    good = preservation.sound(case, own)
    assert good.dtype == bool and good.all()
    moved = own._replace(f=own.f + 20.0)
    assert not preservation.sound(case, moved).any()
    lost = own.trace.alive.copy()
    lost[0, -1, case.instance.truth] = False
    assert not preservation.sound(case, own._replace(trace=own.trace._replace(alive=lost)))[0]


# --- bounds


def test_bounds_by_hand():
    assert bounds.width_constant(0.1) == pytest.approx(0.4334, abs=1e-4)
    c = 2.0 / np.log(101.0)
    expected = 2 * 3 * 1.5 + 2 * np.sqrt(3 * 0.2 * 50) + 2 * 4.0 * np.sqrt(c * 50 * 3 * 7.0)
    assert bounds.regret_bound(1.5, 4.0, 0.2, 7.0, 3, 50, 0.1) == pytest.approx(expected)
    more = bounds.regret_bound(1.5, 4.0, 0.2, 7.0, 3, 50, 0.1, robust=True, infinite=True)
    assert more - expected == pytest.approx(2 * 4.0 * np.sqrt(c * 50 * 3 * 7.0) + np.pi**2 / 6.0)
    assert bounds.table_row(2.0, 9.0, 5, 100.0) == pytest.approx(10.0 + 10.0 * (6.0 + 9.0))
    assert bounds.table_row(2.0, 9.0, 4, 100.0, per_root=True) == pytest.approx(8.0 + 20.0 * 15.0)
    assert bounds.table_row(2.0, 9.0, 0, 100.0) == pytest.approx(150.0)
    assert bounds.table_row_bayes(2.0, 9.0, 5, 100.0, 8, 101) == pytest.approx(10.0 + np.sqrt(900.0 * np.log(101)))


def test_covered_counts_any_time():
    total, span = np.array([[1.0, 1.0], [3.0, 0.0], [0.0, 0.0]]), np.full(3, 3.0)
    found = regret.covered(total, np.array([[2.0, 2.5]] * 3), span, 0.1)
    assert (found.numbers["bad"], found.numbers["runs"]) == (1, 3)
    assert found.numbers["largest_share"] == pytest.approx(1.5)


def test_a_bound_that_no_policy_exceeds_says_nothing():
    """The worst policy keeps a loose bound and exceeds a binding one; only there an error of the bound can be seen."""
    f, small = np.tile([0.0, 2.0], (200, 1)), np.full((200, 10), 0.1)
    loose, binding = (np.tile(c * np.arange(1.0, 11.0), (200, 1)) for c in (2.5, 1.0))
    own, worst = regret.both(small, loose, f)
    assert own.verdict == worst.verdict == "SUPPORTED" and own.numbers["sees"] == np.inf
    assert own.numbers["binds"] == 0.0 and own.numbers["least"] == pytest.approx(1.25)
    own, worst = regret.both(small, binding, f)
    assert (own.verdict, worst.verdict) == ("SUPPORTED", "REFUTED") and own.numbers["sees"] == pytest.approx(10.0)
    assert regret.both(20.0 * small, binding, f)[0].verdict == "REFUTED"


def test_steep_means_keep_the_tail_bound(rng):
    """P[sup |f'| > L] of a prior with a steep mean, at all L: (a, b) of the zero mean would fail."""
    one = instances.means(0, 6.0, 2, 3)
    a, b = regret.steep(one, 0.1)
    slopes = np.abs(np.diff(instances.gp_draws(rng, one, 2000), axis=1)).max(axis=1) * 100.0
    levels = np.linspace(0.0, 400.0, 81)
    shares = (slopes[:, None] > levels).mean(axis=0)
    assert (shares <= np.minimum(1.0, a * np.exp(-(levels**2) / b))).all()
    plain = intervals.rice(0.1)
    assert (shares > plain[0] * np.exp(-(levels**2) / plain[1]) + 0.1).any()


def test_beta_takes_the_maximum_gain_where_f_has_a_norm(short):
    """β_t of Theorem 4.1 has γ_{t-1}; the gain of the queries is smaller, and the intervals with it."""
    case = preservation.Regime(short, False)
    settings = preservation.settings_of(case, False, 30)
    trace = preservation.play(case, settings, keys.stream(0, "gains"), 3).trace
    every = regimes.upper_gains(short, 30)
    greedy = np.asarray(confidence.greedy_gain(jax.numpy.asarray(short.kernels[2]), 0.01, 30))
    np.testing.assert_allclose(every[2], np.concatenate([[0.0], greedy[:-1]]) / (1.0 - np.exp(-1.0)))
    of_chosen = every[trace.u, np.arange(30)]
    np.testing.assert_allclose(trace.beta, confidence.beta_frequentist(1.0, 0.1, of_chosen, 0.1))
    queries = np.take_along_axis(trace.gain, trace.u[..., None], axis=2)[..., 0]
    assert (of_chosen[:, 1:] > 1.2 * queries[:, 1:]).all()


def test_gains_are_those_of_the_roughest_candidate():
    case = preservation.Regime(instances.lengthscales((0.1, 0.5), 1), True)
    found = regret.gains(case, 10)
    rough = confidence.greedy_gain(jax.numpy.asarray(case.instance.kernels[0]), 0.01, 10)
    np.testing.assert_allclose(found, rough)


def test_even_designs():
    gram = problems.rbf(instances.line(4)[:, None], 0.3)
    repeated = np.tile(np.arange(4), 3)
    expected = 0.5 * np.linalg.slogdet(np.eye(12) + gram[np.ix_(repeated, repeated)] / 0.01)[1]
    assert table1.even_gain(gram, np.array([12.0]))[0] == pytest.approx(expected)


# --- Theorem 6.1


def test_robust_regret():
    case = preservation.Regime(instances.lengthscales((0.1, 0.2), 0), True)
    settings = EliminationSettings(5, beta="bayes_finite", xi="corrected")
    f, trace, worst = robust.play(case, settings, "he_stable_opt", keys.stream(0, "robust"), 3)
    assert worst[0, 50] == f[0, 45:56].min() and worst[0, 2] == f[0, :8].min()
    for run in range(3):
        np.testing.assert_allclose(trace.regret[run], worst[run].max() - worst[run, trace.centre[run]])
        assert (np.abs(trace.point[run] - trace.centre[run]) <= 5).all()


@pytest.mark.parametrize("printed", [True, False])
@pytest.mark.parametrize("bayes", [True, False])
def test_the_test_of_the_rival_from_posteriors_factorised_anew(printed, bayes):
    """The trace says only whether the test of v_t fired: here its two sides, by another code."""
    pits = instances.means(-1, 12.0)
    one = pits._replace(means=-pits.means) if bayes else instances.lengthscales((0.1, 0.2, 0.4), 0)
    case = preservation.Regime(one, bayes)
    settings = preservation.settings_of(case, printed, 30)
    trace = robust.play(case, settings, "he_stable_opt", keys.stream(0, "rival"), 5).trace
    sides = robust.rival_sides(case, settings, trace, range(one.many))
    before = np.concatenate([np.ones((5, 1, one.many), bool), trace.alive[:, :-1]], axis=1)
    living = np.take_along_axis(before, trace.v[..., None], axis=2)[..., 0]
    fell = sides.error > sides.threshold
    np.testing.assert_array_equal(fell[living], trace.rejected_v[living])
    assert (fell & living).any() == (bayes or printed) and (sides.bare < sides.threshold).all()


def test_wrong_candidates_are_dropped_by_either_test_of_stable_opt():
    """Hills that f lacks by the test of u_t, pits by that of v_t; a hundred times the threshold drops none."""
    for name, case in robust.absent().items():
        settings = preservation.settings_of(case, False, 40)
        trace = robust.play(case, settings, "he_stable_opt", keys.stream(0, "absent"), 100).trace
        found = robust.others(case, settings, trace, by_v=name == robust.BY_V)
        assert {kind: ruling.verdict for kind, ruling in found.items()} == {"others": "SUPPORTED", "hundred": "REFUTED"}
        lost = trace._replace(rejected=trace.rejected & False, rejected_v=trace.rejected_v & False)
        assert robust.others(case, settings, lost, by_v=name == robust.BY_V)["others"].verdict == "REFUTED"
        gone = trace._replace(rejected=trace.u == case.instance.truth, rejected_v=trace.v == case.instance.truth)
        assert robust.kept(case, settings, trace)["kept"].verdict == "SUPPORTED"
        assert robust.kept(case, settings, gone)["kept"].verdict == "REFUTED"


# --- RKHS


def test_weights_of_the_periodic_kernel():
    k = np.arange(1, 9)
    for lengthscale in (0.5, 1.0):
        expected = np.log(2.0 * special.ive(k, lengthscale**-2))
        np.testing.assert_allclose(nesting.log_weights(k, lengthscale), expected, atol=1e-10)
    x = np.linspace(0.0, 1.0, 7)
    series = special.ive(0, 1.0) + np.exp(nesting.log_weights(np.arange(1, 30), 1.0)) @ np.cos(
        2 * np.pi * np.outer(np.arange(1, 30), x)
    )
    np.testing.assert_allclose(series, problems.periodic(x[:, None], 1.0, 1.0)[0], atol=1e-12)


def test_interpolation_norms(rng):
    x = np.linspace(0.0, 1.0, 6)
    kernel = kernels.rbf(x, x, 0.2)
    weights = rng.normal(size=(3, 6))
    found = nesting.interpolation_norms(kernel, weights @ kernel)
    np.testing.assert_allclose(found, np.einsum("ri,ij,rj->r", weights, kernel, weights), rtol=1e-8)


def test_norms_grow_to_the_norm(rng):
    sizes, norms, squared = nesting.growing_norms(0.2, 0.2, rng.random((3, 5)), rng.standard_normal((3, 5)))
    assert sizes[0] == 4 and (norms[:, -1] <= squared * (1 + 1e-6)).all()
    np.testing.assert_allclose(norms[:, -1], squared, rtol=0.05)


def test_ridge_norms_stay_below_the_norm_of_a_member_and_grow_without_bound_otherwise():
    """A member of the RKHS of period 1, and a wave of period 0.7, by dense solves."""
    x = nesting.WAVES
    kernel = problems.periodic(x[:, None], 1.0, nesting.PERIODIC_LENGTHSCALE)
    member, other = kernel[:, [0, 40]] @ np.array([1.0, -2.0]), np.sin(2.0 * np.pi * x / 0.7)
    norm = np.array([1.0, -2.0]) @ kernel[np.ix_([0, 40], [0, 40])] @ np.array([1.0, -2.0])
    found = nesting.ridge_norms(kernel, member)
    for place in range(3):
        dense = member @ np.linalg.solve(kernel + nesting.RIDGES[place] * np.eye(len(x)), member)
        assert found[place] == pytest.approx(dense, rel=1e-6)
    assert (found <= norm * (1 + 1e-6)).all() and found[-1] == pytest.approx(norm, rel=1e-4)
    grown = nesting.ridge_norms(kernel, other)
    assert (grown[1:] > 9.0 * grown[:-1]).all()


# --- additive kernels, maximum likelihood


def test_gains_of_decompositions(rng):
    x = rng.random((30, 4))
    found = additive.gains(x, ((0, 1), (2, 3)))
    kernel = 0.5 * sum(np.exp(-0.5 * ((x[:, None, c] - x[None, :, c]) ** 2).sum(-1) / 0.09) for c in ([0, 1], [2, 3]))
    chosen = []
    for _ in range(5):
        best = [np.linalg.slogdet(np.eye(len(chosen) + 1) + kernel[np.ix_(a, a)] / 0.01)[1]
                for a in ([*chosen, i] for i in range(30))]  # fmt: skip
        chosen.append(int(np.argmax(best)))
    assert found[0] == pytest.approx(0.5 * max(best), rel=1e-9)
    least = additive.exact(x[:6], ((0, 1), (2, 3)))
    for size, got in zip((2, 3), least, strict=True):
        best = max(np.linalg.slogdet(np.eye(size) + kernel[np.ix_(a, a)] / 0.01)[1]
                   for a in itertools.combinations_with_replacement(range(6), size))  # fmt: skip
        assert got == pytest.approx(0.5 * best, rel=1e-9)


def test_a_sum_of_kernels_never_has_a_smaller_gain_than_a_part_of_it(rng):
    x = rng.random((12, 4))
    some, every = ((0, 1), (2, 3)), tuple(itertools.combinations(range(4), 2))
    difference = additive.kernel_of(x, every, True) - additive.kernel_of(x, some, True)
    assert np.linalg.eigvalsh(difference).min() > -1e-10
    np.testing.assert_allclose(additive.kernel_of(x, some, True), 2.0 * additive.kernel_of(x, some, False))
    assert (additive.exact(x, some, True) <= additive.exact(x, every, True)).all()
    kernel = additive.kernel_of(x, some, True)
    best = max(np.linalg.slogdet(np.eye(3) + kernel[np.ix_(a, a)] / 0.01)[1]
               for a in itertools.combinations_with_replacement(range(12), 3))  # fmt: skip
    assert additive.exact(x, some, True)[1] == pytest.approx(0.5 * best, rel=1e-9)


# --- growth


def test_quadratic_costs_of_wrong_candidates_are_told_from_linear_ones(rng):
    """An offset hides quadratic growth in R_T itself: its slope is below 1, that of the cost is not."""
    many = np.array([1, 2, 5, 10, 20])
    linear, square = (15.0 + c * many**p + 0.1 * rng.standard_normal((200, 1)) for c, p in ((0.7, 1), (0.1, 2)))
    assert growth.rate(square, many).value < 1.0
    for values, verdict in ((linear, "SUPPORTED"), (square, "REFUTED")):
        sizes, wrong, extra = growth.wrong_cost(values + 0.1 * rng.standard_normal(values.shape), many)
        assert sizes.tolist() == [5, 10, 20] and wrong.tolist() == [4, 9, 19]
        assert growth.within(growth.rate(extra, wrong), -np.inf, growth.LINEAR).verdict == verdict


def test_powers_of_logarithms_are_hidden_and_roots_of_the_candidates_are_not(monkeypatch):
    own, one = table1.setting(table1.FAR), table1.row

    def planted(power, logs):
        monkeypatch.setattr(table1, "theorem", lambda o, many, bayes=False: (
            one(o, many, bayes) * many**power * (1.0 + np.log(many)) ** logs))  # fmt: skip
        return table1.hidden_slope(own, False, False)

    assert planted(0.0, 2.0) < table1.HIDDEN, "the square of a logarithm is hidden"
    assert planted(0.5, 0.0) > table1.HIDDEN and planted(0.5, 0.0) == pytest.approx(0.25)


def test_a_rate_that_only_falls_does_not_vanish(monkeypatch):
    """0.3 + 1/T falls at every step."""
    monkeypatch.setattr(table1, "theorem", lambda own, many: 0.3 * own.times + 1.0)
    assert table1._limit(True)["verdict"] == "REFUTED"
    monkeypatch.setattr(table1, "theorem", lambda own, many: own.times**0.6)
    assert table1._limit(True)["verdict"] == "SUPPORTED" and table1._limit(False)["verdict"] == "REFUTED"
    assert {table1._limit(large)["control"]["verdict"] for large in (True, False)} == {"REFUTED"}, "in both directions"


# --- maximum likelihood


def test_runs_are_chosen_by_what_they_saw_and_judged_by_what_follows():
    """A run that finds the peak late counts as one that had missed it."""
    f, start = np.array([0.1, 0.9, 0.3, 0.6]), stuck.INITIAL + stuck.EARLY
    visited = np.full((3, start + 5), 3)
    visited[1, start], visited[2, start - 1] = 1, 1
    np.testing.assert_array_equal(stuck.missed_early(f, visited), [True, True, False])
    late = np.full(400, 0.3)
    assert stuck.escaped(late, 0.3).verdict == "SUPPORTED"
    late[:100] = 0.01
    assert stuck.escaped(late, 0.3).verdict == "REFUTED"


def test_missed_peaks_and_late_regret():
    f = np.array([0.1, 0.9, 0.3, 0.6])
    np.testing.assert_array_equal(stuck.missed(f, np.array([[0, 3, 3], [1, 3, 3], [2, 2, 0]])), [True, False, True])
    values = np.concatenate([np.full((2, stuck.EARLY), 9.0), np.full((2, 30), 0.25)], axis=1)
    np.testing.assert_allclose(stuck.slopes(values), 0.25)

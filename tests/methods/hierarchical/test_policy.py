"""BO with hierarchical GPs: MAP against SciPy, the edges of a support, and runs of the policy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from jax.flatten_util import ravel_pytree

from metabo.bo import priors
from metabo.bo.policy import Candidates
from metabo.bo.trajectories import optimise
from metabo.methods.hierarchical.hyperprior import Parameters, map_loss, of_gp, to_gp
from metabo.methods.hierarchical.policy import COLLAPSED, coordinates_of, independent
from metabo.methods.hierarchical.policy import policy as policy_of
from metabo.methods.hierarchical.train import Hierarchical, make_prior
from metabo.plan import registry
from metabo.records import results
from metabo.tasks.padding import columns, widened
from metabo.tasks.rows import Rows
from tests import tiny
from tests.methods.hierarchical import cases as domains
from tests.methods.hierarchical.cases import HIERARCHICAL, LEARNED
from tests.references import DenseGP
from tests.stepping import observe

DIM, BUDGET = 2, 9
NORMAL = Parameters([0.5, 0.5], [2.0, 3.0], [2.0, 5.0], [1.5, 30.0])
THETA_WIDE = Parameters(0.5, jnp.ones(DIM + 2), 0.69, 0.018)
UNIFORM = Parameters([0.0, 1.0], [1e-5, 30.0], [1e-5, 1.0], [1e-5, 0.1])  # mphd App. E.2


def observations(kind, shift=0.0, scale=1.0):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(BUDGET, DIM)), scale * rng.normal(size=BUDGET) + shift
    if kind == "duplicated":
        x[1:] = x[0]
    if kind == "constant":
        y[:] = 0.7
    return x, y, np.arange(BUDGET) < (1 if kind == "one" else 7)


def begin(kind):
    gp = to_gp(Parameters(0.5, jnp.full(DIM, 1.3), 0.69, 0.018), "matern52")
    return Hierarchical(gp, make_prior(NORMAL if kind == "gamma" else UNIFORM, DIM, kind))


@pytest.fixture(scope="module")
def fit():
    """The fit of the policy, compiled once for each kind of prior."""
    made = {
        kind: eqx.filter_jit(policy_of(begin(kind), {"refit_steps": 100}, "pi", BUDGET).fit)
        for kind in ("gamma", "uniform")
    }
    return lambda params, data: made[params.prior.kind](params, data)


def vector(gp):
    return np.concatenate([np.atleast_1d(value) for value in of_gp(gp)])


def penalised(kind, x, y):
    """-log likelihood - log prior as a function of the constrained parameters, by dense algebra and SciPy."""

    def value(theta):
        gp = to_gp(Parameters(theta[0], theta[1 : 1 + DIM], theta[-2], theta[-1]), "matern52")
        pairs = [NORMAL.lengthscale] * DIM + [NORMAL.variance, NORMAL.noise]
        terms = [scipy.stats.gamma(a, scale=1 / b).logpdf(t) for (a, b), t in zip(pairs, theta[1:], strict=True)]
        prior = scipy.stats.norm(*NORMAL.constant).logpdf(theta[0]) + sum(terms) if kind == "gamma" else 0.0
        return DenseGP(gp).nll(x, y) - prior

    return value


@pytest.mark.parametrize("kind", ["gamma", "uniform"])
def test_columns_of_zeros_change_no_fit(kind, fit):
    """Nor is the fit told of their length-scale: it has no prior."""
    x, y, mask = observations("some")
    params = begin(kind)
    like = jax.eval_shape(lambda: Hierarchical(to_gp(THETA_WIDE, "matern52"), make_prior(NORMAL, DIM + 2, kind)))
    wide = jax.tree.map(lambda leaf: leaf[0], widened(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params), like))
    assert not np.asarray(wide.prior.lengthscale)[DIM:].any()
    density = float(wide.prior.log_density(wide.gp))
    assert density == pytest.approx(float(params.prior.log_density(params.gp)), rel=1e-12)
    (alone, ok), (beside, sound) = fit(params, Rows(x, y, mask)), fit(wide, Rows(columns(x, DIM + 2), y, mask))
    assert bool(ok) and bool(sound)
    padded = of_gp(beside.gp)
    found = padded._replace(lengthscale=padded.lengthscale[:DIM])
    for value, expected in zip(found, of_gp(alone.gp), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4)


@pytest.mark.parametrize(("shift", "scale"), [(0.4, 0.3), (3.0, 2.0)])
@pytest.mark.parametrize("kind", ["gamma", "uniform"])
def test_fit_reaches_an_optimum_that_scipy_cannot_improve(kind, shift, scale, fit):
    # With outputs of scale 2 around 3 the likelihood wants a constant and a variance beyond the uniform support.
    # Without a prior that pulls, the likelihood has a second optimum of pure noise: SciPy starts from ours.
    x, y, mask = observations("all", shift, scale)
    params = begin(kind)
    fitted, ok = fit(params, Rows(x, y, mask))
    assert bool(ok)
    objective, first = penalised(kind, x[mask], y[mask]), vector(params.gp)
    bounds = [(-20, 20)] + [(1e-5, 1e3)] * (DIM + 2)
    if kind == "uniform":
        bounds = [UNIFORM.constant] + [UNIFORM.lengthscale] * DIM + [UNIFORM.variance, UNIFORM.noise]
    begun = first if kind == "gamma" else vector(fitted.gp)
    reference = scipy.optimize.minimize(objective, begun, method="L-BFGS-B", bounds=bounds)
    ours = objective(vector(fitted.gp))
    assert ours < objective(first)
    assert ours <= reference.fun + 0.02
    assert np.isfinite(float(fitted.prior.log_density(fitted.gp)))  # inside the support
    if kind == "uniform" and shift == 3.0:
        assert float(fitted.gp.mean.value) == pytest.approx(1.0, abs=1e-3)
        assert 0.99 < float(fitted.gp.kernel.variance) <= 1.0
    np.testing.assert_array_equal(ravel_pytree(fitted.prior)[0], ravel_pytree(params.prior)[0])


@pytest.mark.parametrize("kind", ["one", "constant", "duplicated"])
@pytest.mark.parametrize("prior", ["gamma", "uniform"])
def test_fit_stays_finite_and_padding_takes_no_part(prior, kind, fit):
    params = begin(prior)
    x, y, mask = observations(kind)
    fitted, ok = fit(params, Rows(x, y, mask))
    assert bool(ok) and np.isfinite(vector(fitted.gp)).all()
    objective = penalised(prior, x[mask], y[mask])
    assert objective(vector(fitted.gp)) <= objective(vector(params.gp))
    other, _ = fit(params, Rows(np.where(mask[:, None], x, 0.3), np.where(mask, y, -5.0), mask))
    np.testing.assert_allclose(vector(other.gp), vector(fitted.gp), rtol=1e-6, atol=1e-6)


def test_a_fit_gets_away_from_the_edge_of_its_support(fit):
    # Observations far above push constant and variance to their bounds; with others, a fit from there must leave.
    x, y, mask = observations("all", 3.0, 2.0)
    edge, _ = fit(begin("uniform"), Rows(x, y, mask))
    x, y, mask = observations("all", 0.4, 0.3)
    back, ok = fit(edge, Rows(x, y, mask))
    fresh, _ = fit(begin("uniform"), Rows(x, y, mask))
    objective = penalised("uniform", x[mask], y[mask])
    assert bool(ok) and objective(vector(back.gp)) <= objective(vector(fresh.gp)) + 0.02


def test_bo_reads_the_posterior_of_the_last_fit():
    rng = np.random.default_rng(2)
    candidates = rng.uniform(size=(12, DIM))
    y = np.sin(4 * candidates[:, 0]) - candidates[:, 1]
    policy = policy_of(begin("gamma"), {"refit_steps": 5, "pi_threshold": 0.1, "fit_from": 1}, "pi", 4)
    state = policy.init(Candidates(jnp.asarray(candidates), jnp.ones(12, bool)), jax.random.key(0))
    fit = eqx.filter_jit(lambda policy, params, rows: policy.fit(params, rows))
    for index in (3, 8, 3):
        before = state.params
        state = observe(policy, state, jnp.asarray(index), jnp.asarray(y[index]))
        seen = jnp.arange(4) < state.observed
        warm, _ = fit(policy, before, Rows(state.x, state.y, seen))  # from the fit before
        np.testing.assert_allclose(vector(state.params.gp), vector(warm.gp), rtol=1e-9)
    index, info = policy.select(state, jnp.ones(12, bool), jax.random.key(0))
    mean, variance = DenseGP(state.params.gp).posterior(candidates[[3, 8, 3]], y[[3, 8, 3]], candidates)
    std = np.sqrt(variance + float(state.params.gp.noise))  # with the noise variance (sheet §2.4)
    assert int(index) == int(np.argmax((mean - y[[3, 8]].max() - 0.1) / std))
    assert (float(info.mean), float(info.std)) == pytest.approx((mean[index], std[index]), rel=1e-6)


POLICY = {"pi_threshold": 1.5, "refit_steps": 2, "fit_from": 1, "coordinates": "log", "short": "bounded"}


def test_every_setting_of_the_policies_has_a_case():
    assert {key for name in HIERARCHICAL for key in registry.method(name).policy} == set(POLICY)


@pytest.fixture(scope="module")
def data():
    return domains.benchmark()


@pytest.fixture(scope="module")
def runs(data):
    """A function that runs BO on one space with a method, once for each specification."""
    sets = domains.training_sets(data)
    place = int(np.argmin([one.dim for one in sets]))
    cases = {}

    def run(method, acquisition=None, **policy):
        given = domains.spec(method, acquisition=acquisition, policy=policy)
        key = (method, given["acquisition"], *policy.items())
        if key not in cases:
            learned = domains.across(method, sets, domains.fits_of(sets)) if method in LEARNED else None
            result = learned[place] if learned else (domains.known(method, sets[place]), None)
            prior = priors.of_training(sets[place], *result)
            cases[key] = results.check(optimise(data, prior, *tiny.job({**given, "seeds": 2}), 1))
        return cases[key]

    return run


@pytest.mark.parametrize("method", ["mphd", "hgp_flat", "gp_truth"])
def test_bo_runs_from_given_initial_points(method, runs, data):
    table = runs(method)
    assert table["ok"].all() and np.isfinite(table.loc[table["iteration"] > 0, ["mean", "std"]]).all(axis=None)
    seeds = table["seed"].max() + 1
    for (task, prior_seed, seed), run in table.groupby(["task", "prior_seed", "seed"]):
        sets = data.initial[task]
        assert run["iteration"].tolist() == list(range(-4, 7))
        assert run["candidate"].tolist()[:5] == sets[(prior_seed * seeds + seed) % len(sets)].tolist()
        np.testing.assert_array_equal(run["y"], data.tasks[task].y[run["candidate"]])


@pytest.mark.parametrize("key", POLICY)
def test_settings_of_the_policy(key, runs):
    base, other = runs("mphd"), runs("mphd", **{key: POLICY[key]})
    asked = base["iteration"] > 0
    assert (base.loc[asked, ["candidate", "std"]] != other.loc[asked, ["candidate", "std"]]).any(axis=None)


@pytest.mark.parametrize("acquisition", ["ei"])
def test_other_acquisitions_of_the_paper(acquisition, runs):
    base, other = runs("mphd"), runs("mphd", acquisition)
    assert other["ok"].all() and (other["acquisition"] == acquisition).all()
    assert (base["candidate"] != other["candidate"]).any()


def played(shape, coordinates="plain", fit_from=5, short="discarded"):
    """Return the length-scales after each observation of a smooth function, under Gammas of that shape."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(BUDGET, DIM))
    y = np.sin(3 * x[:, 0]) + 0.5 * x[:, 1]
    gp = to_gp(Parameters(0.5, jnp.full(DIM, 1.3), 0.69, 0.018), "matern52")
    prior = Parameters([0.5, 0.5], [shape, 3.0], [2.0, 5.0], [1.5, 30.0])
    params = Hierarchical(gp, make_prior(prior, DIM, "gamma"))
    settings = {"refit_steps": 30, "fit_from": fit_from, "coordinates": coordinates, "short": short}
    policy = policy_of(params, settings, "pi", BUDGET)
    state = policy.init(Candidates(jnp.asarray(x), jnp.ones(BUDGET, bool)), jax.random.key(0))
    found = []
    for index in range(BUDGET):
        state = observe(policy, state, jnp.asarray(index), jnp.asarray(y[index]))
        found.append(np.asarray(state.params.gp.kernel.lengthscale))
    return np.array(found)


def test_the_first_fit_waits_for_five_observations():
    found = played(5.0)
    np.testing.assert_allclose(found[:4], 1.3, rtol=1e-12)
    assert (found[4] != found[3]).all()


@pytest.mark.parametrize(("shape", "fit_from"), [(0.99, 5), (0.6, 5), (0.99, 1)])
def test_no_fit_leaves_a_length_scale_at_zero(shape, fit_from, monkeypatch):
    """Shape 0.99 is what Non-NN HGP learns on mphd_l; without the rule some fit goes to 0 (the control)."""
    assert (played(shape, fit_from=fit_from) >= COLLAPSED).all()
    monkeypatch.setattr("metabo.methods.hierarchical.policy.COLLAPSED", 0.0)
    assert (played(shape, fit_from=fit_from) < 1e-2).any()


def test_the_density_of_log_parameters_has_a_maximum(monkeypatch):
    monkeypatch.setattr("metabo.methods.hierarchical.policy.COLLAPSED", 0.0)
    assert (played(0.6, "log") >= 1e-2).all()


def test_the_jacobian_is_that_of_the_logarithm():
    gp = to_gp(Parameters(0.5, jnp.array([0.3, 2.0]), 0.7, 0.01), "matern52")
    prior = make_prior(NORMAL, DIM, "gamma")
    assert float(prior.log_jacobian(gp)) == pytest.approx(np.log([0.3, 2.0, 0.7, 0.01]).sum(), rel=1e-9)


LEVELS = np.array([0.9, 0.1, 0.6, 0.3, 0.8])
"""Outputs of five categories that tell nothing of each other."""


def categories(repeats=4):
    """Points with a category in one column and a number in another; the levels of the categories are unrelated."""
    code = np.tile(np.arange(len(LEVELS)) / (len(LEVELS) - 1), repeats)
    number = np.repeat(np.linspace(0.0, 1.0, repeats), len(LEVELS))
    x = np.stack([code, number], axis=1)
    y = LEVELS[np.tile(np.arange(len(LEVELS)), repeats)] + 0.1 * np.sin(3.0 * number)
    return Rows(jnp.asarray(x), jnp.asarray(y), jnp.ones(len(x), bool))


def fitted_to(data, short, times=1, length=(1.0, 0.1), kind="gamma"):
    """The GP after some fits in a row under the hand-specified or the uniform prior of App. E.2."""
    gp = to_gp(Parameters(0.5, jnp.full(DIM, 1.3), 0.69, 0.018), "matern52")
    numbers = Parameters([0.5, 0.5], length, [1.0, 5.0], [1.0, 100.0]) if kind == "gamma" else UNIFORM
    params = Hierarchical(gp, make_prior(numbers, DIM, kind))
    policy = policy_of(params, {"refit_steps": 100, "short": short}, "pi", len(data.y))
    for _ in range(times):
        params, ok = eqx.filter_jit(policy.fit)(params, data)
        assert bool(ok)
    return params.gp


def test_a_category_whose_values_share_nothing_does_not_discard_a_bounded_fit():
    """The control: the rule that discards short length-scales stays at the start, and predicts as the start does."""
    data = categories()
    discarded, bounded = fitted_to(data, "discarded", 3), fitted_to(data, "bounded", 3)
    np.testing.assert_array_equal(discarded.kernel.lengthscale, 1.3)
    lengths = np.asarray(bounded.kernel.lengthscale)
    assert COLLAPSED <= lengths[0] < 0.15  # categories are 0.25 apart
    assert lengths[1] > 0.3  # the number tells
    assert float(bounded.noise) < 0.2 * float(discarded.noise)
    middle = Rows(jnp.asarray([[0.0, 0.5], [0.25, 0.5]]), jnp.asarray(LEVELS[:2] + 0.1 * np.sin(1.5)), None)
    means = [gp.posterior(*data).predict(middle.x)[0] for gp in (bounded, discarded)]
    errors = [float(jnp.abs(mean - middle.y).max()) for mean in means]
    assert errors[0] < 0.1 < 0.2 < errors[1]


def test_a_bounded_fit_of_a_uniform_prior_keeps_within_the_bound():
    gp = fitted_to(categories(), "bounded", 3, kind="uniform")
    assert (np.asarray(gp.kernel.lengthscale) >= COLLAPSED).all()
    assert float(gp.noise) < 0.01


@pytest.mark.parametrize("shape", [0.6, 1.0])
def test_a_bounded_fit_to_which_all_observations_are_independent_is_discarded(shape):
    """Outputs of pure noise at points that all differ: the density of a short length-scale grows, and nothing is
    learned. A pair of points that share everything but one input shows that the fit says more than that."""
    rng = np.random.default_rng(1)
    data = Rows(jnp.asarray(rng.uniform(size=(6, DIM))), jnp.asarray([0.0, 1.0, 0.1, 0.9, 0.2, 0.8]), jnp.ones(6, bool))
    short = to_gp(Parameters(0.5, jnp.full(DIM, COLLAPSED), 0.69, 0.018), "matern52")
    assert bool(independent(short, data))
    mixed = to_gp(Parameters(0.5, jnp.asarray([COLLAPSED, 1.0]), 0.69, 0.018), "matern52")
    assert not bool(independent(mixed, categories()))
    alike = data._replace(x=jnp.broadcast_to(data.x[0], data.x.shape))
    assert not bool(independent(short, alike))  # equal points tell nothing of length-scales
    assert not bool(independent(short, data._replace(mask=jnp.arange(6) < 1)))
    found = fitted_to(data, "bounded", 2, (shape, 3.0))
    assert not bool(independent(found, data))


@pytest.mark.parametrize("shape", [0.99, 0.6])
def test_no_bounded_fit_passes_the_bound(shape):
    assert (played(shape, short="bounded") >= COLLAPSED).all()


BOUND = to_gp(Parameters(0.5, jnp.asarray([COLLAPSED, 1.3]), 0.69, 0.018), "matern52")


def test_a_fit_gets_away_from_the_bound_and_from_noise_at_its_floor():
    """From the last fit alone it does not (the control): softplus is flat there. The outputs follow a line."""
    data = categories()
    line = data._replace(y=data.x[:, 0] + 0.1 * jnp.asarray(np.random.default_rng(0).normal(size=len(data.y))))
    gp = to_gp(Parameters(0.5, jnp.asarray([COLLAPSED + 1e-9, 1.3]), 0.69, 1.1e-10), "matern52")
    prior = make_prior(Parameters([0.5, 0.5], [1.0, 0.1], [1.0, 5.0], [1.0, 100.0]), DIM, "gamma")
    stuck, begun = (
        Hierarchical(gp, prior),
        Hierarchical(to_gp(Parameters(0.5, jnp.full(DIM, 1.3), 0.69, 0.018), "matern52"), prior),
    )
    found = {}
    for name, start in (("both", begun), ("last alone", stuck)):
        policy = policy_of(start, {"refit_steps": 100, "short": "bounded"}, "pi", len(data.y))
        fitted, ok = eqx.filter_jit(policy.fit)(stuck, line)
        assert bool(ok)
        found[name] = fitted.gp
    assert float(found["both"].kernel.lengthscale[0]) > 0.5 and 0.005 < float(found["both"].noise) < 0.02
    assert float(found["last alone"].noise) < 1e-6


def test_fits_in_a_row_are_no_worse_than_one_from_the_start_of_the_run():
    """An early fit to few observations finds no noise; later ones must not stay with it."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, (40, 3)).astype(float)
    x = jnp.asarray(np.concatenate([code, rng.uniform(size=(40, 1))], axis=1))
    levels = rng.normal(scale=0.3, size=8)[(code @ [1, 2, 4]).astype(int)]
    y = jnp.asarray(levels + 0.3 * np.sin(4.0 * np.asarray(x)[:, 3]) + 0.05 * rng.normal(size=40))
    prior = make_prior(Parameters([0.5, 0.5], [1.0, 0.1], [1.0, 5.0], [1.0, 100.0]), 4, "gamma")
    begun = Hierarchical(to_gp(Parameters(0.5, jnp.full(4, 1.3), 0.69, 0.018), "matern52"), prior)
    policy = policy_of(begun, {"refit_steps": 100, "short": "bounded"}, "pi", 40)
    fit = eqx.filter_jit(policy.fit)
    params = begun
    for count in (5, 10, 20, 40):
        data = Rows(x, y, jnp.arange(40) < count)
        params, ok = fit(params, data)
        assert bool(ok)
        alone, _ = fit(begun, data)
        assert float(map_loss(params.gp, prior, *data)) <= float(map_loss(alone.gp, prior, *data)) + 1e-9


@pytest.mark.parametrize("kind", ["gamma", "uniform"])
def test_bounded_coordinates_reach_the_bound_and_not_beyond(kind):
    prior = make_prior(NORMAL if kind == "gamma" else UNIFORM, DIM, kind)
    begin, made = coordinates_of(prior, "matern52", True)
    raw = begin(BOUND)
    assert np.isfinite(ravel_pytree(raw)[0]).all()
    back = of_gp(made(raw)).lengthscale
    np.testing.assert_allclose(back[0], COLLAPSED, atol=0.001 * 30.0)
    assert back[0] >= COLLAPSED
    lowest = of_gp(made(jax.tree.map(lambda leaf: leaf - 60.0, raw))).lengthscale
    assert (np.asarray(lowest) >= COLLAPSED).all()
    free = of_gp(coordinates_of(prior, "matern52", False).made(jax.tree.map(lambda leaf: leaf - 60.0, raw))).lengthscale
    assert (np.asarray(free) < COLLAPSED).all()  # the control


def test_a_discarded_bounded_fit_keeps_the_last_one():
    rng = np.random.default_rng(1)
    data = Rows(jnp.asarray(rng.uniform(size=(6, DIM))), jnp.asarray([0.0, 1.0, 0.1, 0.9, 0.2, 0.8]), jnp.ones(6, bool))
    prior = make_prior(Parameters([0.5, 0.5], [0.1, 3.0], [1.0, 5.0], [1.0, 100.0]), DIM, "gamma")
    last = Hierarchical(to_gp(Parameters(0.4, jnp.asarray([0.7, 0.9]), 0.3, 0.01), "matern52"), prior)
    begun = Hierarchical(to_gp(Parameters(0.5, jnp.full(DIM, 1.3), 0.69, 0.018), "matern52"), prior)
    policy = policy_of(begun, {"refit_steps": 100, "short": "bounded"}, "pi", 6)
    kept, ok = eqx.filter_jit(policy.fit)(last, data)
    assert bool(ok)
    np.testing.assert_array_equal(ravel_pytree(kept)[0], ravel_pytree(last)[0])


def test_a_fit_to_which_observations_are_independent_does_not_shut_out_the_other():
    """After one step, that from the run's start has the lower loss, and all observations are independent to it."""
    corners = jnp.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    data = Rows(corners, jnp.asarray([0.0, 1.0, 0.9, 0.1, 0.4]), jnp.ones(5, bool))
    prior = make_prior(Parameters([0.5, 0.5], [1.14, 1.73], [1.5, 5.0], [0.8, 20.0]), DIM, "gamma")
    last = Hierarchical(to_gp(Parameters(0.5, jnp.full(DIM, 2.0), 0.5, 1e-3), "matern52"), prior)
    begun = Hierarchical(to_gp(Parameters(0.5, jnp.full(DIM, 0.1), 0.15, 1e-3), "matern52"), prior)
    found = {}
    for name, first, gp in (("both", begun, last), ("last alone", last, last), ("start alone", begun, begun)):
        policy = policy_of(first, {"refit_steps": 1, "short": "bounded"}, "pi", 5)
        fitted, ok = eqx.filter_jit(policy.fit)(gp, data)
        assert bool(ok)
        found[name] = ravel_pytree(fitted)[0]
    assert float(map_loss(begun.gp, prior, *data)) < float(map_loss(last.gp, prior, *data)) - 1.0
    np.testing.assert_array_equal(found["start alone"], ravel_pytree(begun)[0])  # discarded
    assert (found["last alone"] != ravel_pytree(last)[0]).any()
    np.testing.assert_allclose(found["both"], found["last alone"], rtol=1e-9)

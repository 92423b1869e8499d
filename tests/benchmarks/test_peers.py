"""The GPs and tuners that are compared have the same model, data and space; the judge of fits is right."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import ours_ask
import ours_gp
import problem
import pytest
import textbook_gp
import tuning
from scipy.stats import multivariate_normal

import metabo

SIZES = replace(problem.QUICK, pool=60, fit_points=25)
TIGHT = {"rtol": 1e-8, "atol": 1e-8}
NOISE = float(np.log1p(np.exp(-4.0)))


def test_likelihood_is_that_of_the_normal_distribution():
    x, y, _ = problem.fit_rows(SIZES, 6)
    scale = np.array([0.4, 0.7, 1.1, 2.0])
    distance = np.linalg.norm((x[:, None] - x) / scale, axis=-1)
    r = np.sqrt(5) * distance
    covariance = 1.3 * (1 + r + r**2 / 3) * np.exp(-r) + 0.05 * np.eye(6)
    expected = multivariate_normal(np.full(6, 0.2), covariance).logpdf(y) / 6
    assert problem.likelihood_per_point(x, y, 0.2, scale, 1.3, 0.05) == pytest.approx(expected)


def test_metabo_states_the_likelihood_that_the_judge_finds():
    x, y, _ = problem.fit_rows(SIZES, SIZES.fit_points)
    fitted = metabo.GP(SIZES.dim).fit(x, y)
    gp = fitted._model
    centre, spread = fitted._units  # the model sees outputs of order 1
    mean, variance = centre + spread * float(gp.mean.value), spread**2 * float(gp.kernel.variance)
    noise = spread**2 * (float(gp.noise) + problem.JITTER)
    found = problem.likelihood_per_point(x, y, mean, np.asarray(gp.kernel.lengthscale), variance, noise)
    assert fitted.log_likelihood(x, y) / len(y) == pytest.approx(found, abs=1e-9)


def test_fits_of_one_model_reach_the_same_likelihood():
    """A fit that stops too early would be fast: after two steps the likelihood is visibly lower."""
    cases = [module.fit(SIZES, SIZES.fit_points) for module in (ours_gp, textbook_gp)]
    assert all(case.repeat() == SIZES.fits and case.turn() > 0 for case in cases)
    ours, textbook = (case.facts["log_likelihood"] for case in cases)
    assert ours == pytest.approx(textbook, abs=1e-4)
    x, y, _ = problem.fit_rows(SIZES, SIZES.fit_points)
    assert metabo.GP(SIZES.dim).fit(x, y, steps=2).log_likelihood(x, y) / len(y) < ours - 1e-2


def predictions():
    x, y, pool = map(jnp.asarray, problem.fit_rows(SIZES, SIZES.fit_points))
    return [np.asarray(part) for part in ours_gp.predict(ours_gp.prior(SIZES), x, y, pool)]


def test_posteriors_agree():
    mean, variance = predictions()
    for found, expected in zip(textbook_gp.predict(SIZES), (mean, variance), strict=True):
        np.testing.assert_allclose(found, expected, **TIGHT)
    x, y, pool = problem.fit_rows(SIZES, SIZES.fit_points)
    of_users = metabo.GP(SIZES.dim).posterior(x, y).predict(pool)
    np.testing.assert_allclose(of_users[0], mean, **TIGHT)
    np.testing.assert_allclose(of_users[1] ** 2, variance, **TIGHT)


def test_expected_improvements_agree():
    x, y, pool = map(jnp.asarray, problem.fit_rows(SIZES, SIZES.fit_points))
    conditioned = ours_gp.prior(SIZES).posterior(x, y, jnp.ones(len(y), bool))
    best = jnp.sort(y)[len(y) // 2]  # lower than the best, so that no improvement is rounded to 0
    found = np.log(ours_gp.score(conditioned, pool, best))
    np.testing.assert_allclose(found, textbook_gp.log_improvement(*predictions(), float(best)), rtol=1e-6, atol=1e-6)


def test_scikit_learn_has_the_prior_of_the_others():
    pytest.importorskip("sklearn")
    import peer_sklearn_gp

    mean, variance = predictions()
    found_mean, found_deviation = peer_sklearn_gp.predict(SIZES)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-4, atol=1e-4)  # without our jitter of 1e-6
    np.testing.assert_allclose(found_deviation**2, variance + NOISE, rtol=1e-4, atol=1e-4)


def test_the_likelihood_of_scikit_learn_is_of_the_given_outputs():
    """Its own is of standardised outputs: that differs by the logarithm of their deviation."""
    pytest.importorskip("sklearn")
    import peer_sklearn_gp
    from sklearn.gaussian_process import GaussianProcessRegressor

    x, y, _ = problem.fit_rows(SIZES, 12)
    y = 3.0 * y + 5.0
    fitted = GaussianProcessRegressor(
        peer_sklearn_gp.untrained(SIZES.dim), alpha=peer_sklearn_gp.ALPHA, optimizer=None, normalize_y=True
    ).fit(x, y)
    own = fitted.log_marginal_likelihood_value_ / 12 - np.log(np.std(y))
    assert peer_sklearn_gp.quality(fitted, x, y) == pytest.approx(own, abs=1e-6)
    best = ours_gp.fit(SIZES, 25).facts["log_likelihood"]
    assert best - 0.3 < peer_sklearn_gp.fit(SIZES, 25).facts["log_likelihood"] <= best + 1e-6


def test_botorch_fits_predicts_and_scores_the_same_model():
    pytest.importorskip("botorch")
    import peer_botorch
    import peer_botorch_gp
    import torch

    x, y, pool = peer_botorch_gp.rows(SIZES, SIZES.fit_points)
    gp = peer_botorch.model(x, y, *peer_botorch.parts(SIZES.dim)).eval()
    mean, variance = predictions()
    with torch.no_grad():
        found = gp.posterior(pool[:, None, :])
        scores = peer_botorch_gp.LogExpectedImprovement(gp, y.median())(pool[:, None, :]).numpy()
    np.testing.assert_allclose(found.mean.ravel(), mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.variance.ravel(), variance, rtol=1e-4, atol=1e-4)
    without_noise = variance - NOISE  # `log_improvement` adds it
    expected = textbook_gp.log_improvement(mean, without_noise, float(y.median()))
    sound = without_noise > 0
    np.testing.assert_allclose(scores[sound], expected[sound], rtol=1e-3, atol=1e-3)
    ours = ours_gp.fit(SIZES, 25).facts["log_likelihood"]
    assert peer_botorch_gp.fit(SIZES, 25).facts["log_likelihood"] == pytest.approx(ours, abs=1e-4)


@pytest.mark.parametrize("section", ["gp_posterior", "gp_log_ei"])
def test_cases_of_a_conditioned_gp_run(section):
    made = [make(SIZES) for module in (ours_gp, textbook_gp) for make in module.CASES[section].values()]
    assert all(case.repeat() > 0 and case.turn() > 0 and not case.facts for case in made)


def test_trials_have_a_space_of_seven_and_a_prefix():
    assert len(tuning.SPACE) == 7
    assert tuning.told(5) == tuning.told(9)[:5] and tuning.told(5) != tuning.trials(5, 1)
    kinds = {(p.log, p.whole, bool(p.choices)) for p in tuning.SPACE.values()}
    assert len(kinds) == 5, "floats, whole numbers, both with logarithms, and choices"
    for configuration, outcome in tuning.told(200):
        assert list(configuration) == list(tuning.SPACE) and 0.1 < outcome < 4
        for name, p in tuning.SPACE.items():
            assert configuration[name] in p.choices if p.choices else p.low <= configuration[name] <= p.high
            assert isinstance(configuration[name], int | str if p.choices or p.whole else float)


def test_metabo_is_asked_after_the_told_trials(tmp_path, monkeypatch):
    """It takes CPU time: a pause of the machine does not count."""
    asked = ours_ask.ask(SIZES, 11, tmp_path)
    monkeypatch.setattr(ours_ask.time, "process_time", iter([1.0, 1.5]).__next__)
    assert asked.turn() == 500.0 and asked.compile_s > 0
    study = metabo.Study(tmp_path / "study")
    assert sum(one["trials"] for one in study.record["past"]) == SIZES.past_studies * SIZES.past_trials
    told = [(trial["parameters"], trial["outcome"]) for trial in study.trials]
    assert len(told) == 11, "a suggestion is not recorded"
    for (found, outcome), (given, expected) in zip(told, tuning.told(11), strict=True):
        assert found == pytest.approx(given) and outcome == expected


def test_optuna_is_asked_after_the_same_trials():
    optuna = pytest.importorskip("optuna")
    import peer_optuna_ask

    study = peer_optuna_ask.study(optuna.samplers.TPESampler(seed=0), 11)
    assert [(t.params, t.value) for t in study.trials] == tuning.told(11)
    found = peer_optuna_ask.next_configuration(study)
    assert found.keys() == tuning.SPACE.keys() and len(study.trials) == 12
    assert peer_optuna_ask.tpe(SIZES, 11).turn() > 0


def test_gp_sampler_is_asked():
    pytest.importorskip("torch")
    pytest.importorskip("optuna")
    import peer_optuna_ask

    assert peer_optuna_ask.gp(SIZES, 11).turn() > 0


def test_keys_of_the_prior_do_not_matter():
    """The untrained GP has no weights that a key would draw."""
    leaves = jax.tree.leaves(ours_gp.prior(SIZES))
    assert all(np.all(np.asarray(leaf) == value) for leaf, value in zip(leaves, (0.0, 0.0, 0.0, -4.0), strict=True))

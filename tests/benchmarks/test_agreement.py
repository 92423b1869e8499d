"""What the benchmark compares must be the same work: metabo and the textbook code compute the same numbers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import ours
import ours_mphd
import ours_tables
import problem
import pytest
import textbook
import textbook_mphd
import textbook_tables

from metabo.bo.acquisition import make
from metabo.bo.loop import run_all
from metabo.gp.objectives import ekl_training, nll
from metabo.methods.hierarchical import network as prior_network
from metabo.methods.hierarchical.hyperprior import map_loss
from metabo.methods.single_task import policy as single_task

SIZES = replace(problem.QUICK, tasks=3, rows=9, matched=8, pool=60, budget=25)
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture
def params():
    """Return parameters away from the untrained zeros."""
    rng = np.random.default_rng(0)
    return {k: v + 0.3 * rng.normal(size=v.shape) for k, v in problem.parameters(SIZES).items()}


def gradients(gp_gradient):
    """Return a gradient of metabo's GP under the names of the common parameters."""
    g = gp_gradient
    named = {f"weight{i}": v for i, v in enumerate(g.features.weights)}
    named |= {f"bias{i}": v for i, v in enumerate(g.features.biases)}
    named |= {"mean_weight": g.mean.weight, "mean_bias": g.mean.bias, "noise": g.raw_noise}
    return named | {"lengthscale": g.kernel.raw_lengthscale, "variance": g.kernel.raw_variance}


def assert_same(value, gradient, expected, expected_gradient):
    np.testing.assert_allclose(value, expected, **TIGHT)
    named = gradients(gradient)
    assert named.keys() == expected_gradient.keys()
    for name, wanted in expected_gradient.items():
        np.testing.assert_allclose(named[name], wanted, **TIGHT, err_msg=name)


@pytest.mark.parametrize("closed_form", [True, False])
def test_nll_and_gradient(params, closed_form, monkeypatch):
    if not closed_form:
        monkeypatch.setattr("metabo.gp.model.half_quadratic_logdet", ours.autodiff_half_quadratic_logdet)
    x, y = problem.training_rows(SIZES)
    value, gradient = jax.jit(jax.value_and_grad(nll))(
        ours.to_gp(params), jnp.asarray(x), jnp.asarray(y), jnp.ones(y.shape, bool)
    )
    one = jax.jit(jax.value_and_grad(textbook.task_nll))
    each = [one(params, *task) for task in zip(x, y, strict=True)]
    mean = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *[g for _, g in each])
    assert_same(value, gradient, np.mean([v for v, _ in each]), mean)


@pytest.mark.parametrize("closed_form", [True, False])
def test_ekl_and_gradient(params, closed_form, monkeypatch):
    if not closed_form:
        monkeypatch.setattr("metabo.gp.objectives.half_quadratic_logdet", ours.autodiff_half_quadratic_logdet)
    x, y = problem.matched_rows(SIZES)
    value, gradient = jax.jit(jax.value_and_grad(ekl_training))(ours.to_gp(params), ours.moments(SIZES))
    expected = jax.jit(jax.value_and_grad(textbook.ekl))(params, x, y.mean(axis=1), np.cov(y, bias=True))
    assert_same(value, gradient, *expected)


def test_bo_selects_the_same_candidates():
    x, y = problem.candidates(SIZES)
    first = int(problem.observed(SIZES, 1)[0])
    expected = textbook.optimise(problem.parameters(SIZES), x, y, first, SIZES.budget)
    chosen = np.asarray(ours.run_bo(SIZES).candidate[0])
    assert len(set(expected)) > 3, "the case must make the two disagree if they can"
    np.testing.assert_array_equal(chosen, expected)


def test_refit_has_the_same_loss():
    x, y = problem.candidates(SIZES)
    x, y = x[:12], y[:12]
    raw = {"constant": 0.2, "lengthscale": np.array([0.3, -0.4, 1.0, 0.1]), "variance": -0.7, "noise": -3.0}
    ours_raw = single_task.HandTuned(*(jnp.asarray(raw[name]) for name in single_task.HandTuned._fields))
    log_prob = single_task.hand_tuned_gp(ours_raw).log_prob(jnp.asarray(x), jnp.asarray(y), jnp.ones(12, bool))
    value = -log_prob - single_task.hand_tuned_log_prior(ours_raw)
    np.testing.assert_allclose(value, textbook.hand_tuned_loss(raw, x, y), **TIGHT)


def test_refit_starts_and_chooses_alike():
    """With enough steps both fits reach the same optimum, so the second selection is the same."""
    sizes = replace(SIZES, budget=1)
    x, y = problem.candidates(sizes)
    model = {"mean": "constant", "kernel": "matern52", "features": []}
    start = single_task.start(model, sizes.dim, 1, jax.random.key(0))
    assert {k: np.asarray(v).tolist() for k, v in start._asdict().items()} == {
        k: v.tolist() for k, v in textbook.hand_tuned_start(sizes.dim).items()
    }
    policy = single_task.policy(start, {"refit_steps": 60}, "ucb18", 2)
    steps = run_all(*ours.run_arguments(sizes, policy, 1, 1))
    assert int(steps.candidate[0, 1]) == textbook.refit_once(x, y, problem.observed(sizes, 1), 60)


def test_step1_has_the_same_gradient():
    x, y = problem.domain_rows(SIZES)
    one = jax.jit(jax.grad(textbook_mphd.nll))
    begin = textbook_mphd.start(SIZES)
    each = [one(begin, *function) for function in zip(x, y, strict=True)]
    flat = [textbook.flatten({name: gradient[name] for name in begin}) for gradient in each]
    np.testing.assert_allclose(ours_mphd.of_domains(SIZES), np.mean(flat, axis=0), **TIGHT)


def test_step2_has_the_same_loss():
    context, values = problem.estimates(SIZES)
    network = prior_network.make(jax.random.key(1))
    layers = [*zip(network.hidden.weights, network.hidden.biases, strict=True), (network.weight, network.bias)]
    ours_loss = prior_network.loss(network, jnp.asarray(context), jnp.asarray(values), jnp.ones(len(values), bool))
    np.testing.assert_allclose(ours_loss, textbook_mphd.gamma_loss(layers, context, values), **TIGHT)


def test_map_has_the_same_loss():
    x, y = (part[:9] for part in problem.domain_pool(SIZES))
    params = ours_mphd.params(SIZES)
    value = map_loss(params.gp, params.prior, jnp.asarray(x), jnp.asarray(y), jnp.ones(9, bool))
    np.testing.assert_allclose(value, textbook_mphd.map_loss(textbook_mphd.start(SIZES), x, y), **TIGHT)


@pytest.mark.slow
@pytest.mark.parametrize("section", list(ours_mphd.CASES))
def test_cases_of_mphd_run(section):
    for cases in (ours_mphd.CASES, textbook_mphd.CASES):
        for make_case in cases[section].values():
            assert make_case(SIZES).repeat() > 0


def test_float32_case_is_float32():
    gp = ours.to_gp(problem.parameters(SIZES), "float32")
    trained, _ = ours.trainer(SIZES, 2, "float32")(gp, jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(trained)} == {jnp.dtype("float32")}


@pytest.mark.slow
@pytest.mark.parametrize("section", ["adam", "lbfgs", "bo", "refit"])
def test_cases_for_an_accelerator_run_anywhere(section):
    case = ours.CASES[section]["metabo_gpu"](SIZES)
    assert case.repeat() > 0 and case.compile_s > 0


def test_units_of_lbfgs_are_the_iterations_made():
    log = ours.Log(jnp.array([3.0, 2.0, 1.5, 1.5, 1.5]), jnp.asarray(-1))
    assert ours.moves(log) == 3


def test_botorch_has_the_prior_of_the_others():
    """BoTorch's untrained model on raw inputs predicts what the textbook formulas do."""
    pytest.importorskip("botorch")
    import peer_botorch
    import torch

    pool, outputs = peer_botorch.setting(SIZES)
    seen = list(range(7))
    gp = peer_botorch.model(pool[seen], outputs[seen], *peer_botorch.parts(SIZES.dim)).eval()
    with torch.no_grad():
        predicted = gp.posterior(pool[:, None, :])
    scale, noise = np.full(SIZES.dim, np.log(2.0)), np.log1p(np.exp(-4.0)) - problem.JITTER
    expected = textbook.posterior(
        pool.numpy(), np.zeros(SIZES.pool), outputs.numpy(), seen, scale, float(np.log(2.0)), noise
    )
    np.testing.assert_allclose(predicted.mean.ravel(), expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(predicted.variance.ravel(), expected[1], rtol=1e-6, atol=1e-6)


def test_acquisition_of_the_textbook_is_the_papers():
    assert make("pi").keywords["threshold"] == textbook.MARGIN


def test_a_table_is_read_as_the_same_numbers(tmp_path):
    made = ours_tables.load(SIZES)
    problem.write_table(SIZES, tmp_path / "lcbench.tar")
    read = textbook_tables.read(tmp_path / "lcbench.tar")
    unit, losses = problem.table(SIZES)
    assert len(made.tasks) == len(read) == SIZES.data_sets
    for task, (x, y), own in zip(made.tasks.values(), read.values(), losses, strict=True):
        np.testing.assert_allclose(task.x, x, **TIGHT)
        np.testing.assert_allclose(x, unit, **TIGHT)
        np.testing.assert_allclose(task.y, y, **TIGHT)
        np.testing.assert_allclose(y, -np.log(own[:, -1]), **TIGHT)


def test_bo_on_every_data_set_selects_the_same_candidates():
    sizes = problem.table_sizes(SIZES)
    x, losses = problem.table(sizes)
    first = int(problem.observed(sizes, 1)[0])
    chosen = np.asarray(ours_tables.run_bo(SIZES).candidate)
    assert chosen.shape == (SIZES.data_sets, SIZES.budget + 1)
    for own, y in zip(chosen[:3], -np.log(losses[:3, :, -1]), strict=True):
        np.testing.assert_array_equal(own, textbook.optimise(problem.parameters(sizes), x, y, first, sizes.budget))

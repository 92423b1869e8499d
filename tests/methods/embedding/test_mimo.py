"""MIMO: forward pass, loss and mixture against NumPy, member by member."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from metabo.errors import ConfigError
from metabo.methods.embedding import mimo
from metabo.methods.embedding.networks import MiniBatch
from metabo.plan import registry
from metabo.plan.typed import plain
from tests.methods.embedding import cases as networks
from tests.methods.embedding.cases import DIM, TASKS

MEMBERS = networks.MODELS["mimo"]["members"]


def reference(net, x, task):
    """Mean and standard deviation of every member for one example: x (m, d), task (m,), in plain loops."""
    weights = jax.tree.map(np.asarray, net.learned)
    hidden = np.concatenate([np.concatenate([x[m], weights.embedding[task[m]]]) for m in range(MEMBERS)])
    for weight, bias in weights.shared:
        hidden = np.tanh(weight.T @ hidden + bias)
    means, stds = [], []
    for m in range(MEMBERS):
        own = hidden
        for weight, bias in weights.own[:-1]:
            own = np.tanh(weight[m].T @ own + bias[m])
        weight, bias = weights.own[-1]
        mean, raw = weight[m].T @ own + bias[m]
        means.append(mean)
        stds.append(1e-4 + np.log1p(np.exp(raw)))
    return np.array(means), np.array(stds)


def batch(seed=1, size=5):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(size, MEMBERS, DIM)), 1.0 + rng.normal(size=(size, MEMBERS))
    return x, y, rng.integers(TASKS + 1, size=(size, MEMBERS))


def test_loss_is_the_negative_log_density_of_every_members_own_row():
    net, (x, y, task) = networks.network("mimo"), batch()
    densities = []
    for example in range(len(x)):
        mean, std = reference(net, x[example], task[example])
        densities += list(norm(mean, std).logpdf((y[example] - 1.5) / 2.0))
    loss = net.loss(MiniBatch(*map(jnp.asarray, (x, y, task)), jnp.asarray(9)))
    assert float(loss) == pytest.approx(-np.mean(densities), rel=1e-12)


def test_prediction_is_the_even_mixture_of_the_members_at_the_same_input():
    net, rng = networks.network("mimo"), np.random.default_rng(2)
    x = rng.uniform(size=(4, DIM))
    mean, variance = net.predict(jnp.asarray(x))
    for i, point in enumerate(x):
        means, stds = reference(net, np.tile(point, (MEMBERS, 1)), [TASKS] * MEMBERS)
        assert float(mean[i]) == pytest.approx(1.5 + 2.0 * means.mean(), rel=1e-12)
        second = np.mean(stds**2 + means**2)
        assert float(variance[i]) == pytest.approx(4.0 * (second - means.mean() ** 2), rel=1e-10)
    draws = [norm(m, s).rvs(200_000, random_state=k) for k, (m, s) in enumerate(zip(means, stds, strict=True))]
    assert float(variance[-1]) == pytest.approx(4.0 * np.var(np.concatenate(draws)), rel=0.02)


def test_without_noise_the_variance_is_the_spread_of_the_members_means():
    x = np.random.default_rng(2).uniform(size=(4, DIM))
    (mean, variance), (same, _) = (
        networks.network("mimo", noise=noise).predict(jnp.asarray(x)) for noise in (False, True)
    )
    assert (mean == same).all()
    for i, point in enumerate(x):
        means, _ = reference(networks.network("mimo"), np.tile(point, (MEMBERS, 1)), [TASKS] * MEMBERS)
        assert float(variance[i]) == pytest.approx(4.0 * np.var(means), rel=1e-10)


def test_the_registered_method_has_the_noise_and_a_network_from_new_weights_keeps_the_setting():
    model = plain(registry.method("mimo").model)
    assert model["noise"] is True  # named there, since `methods` in a configuration changes what is named alone
    for noise in (False, True):
        net = mimo.start(model | {"noise": noise}, 4, 18, jax.random.key(0))
        assert net.noise is noise and net.fresh(jax.random.key(1)).noise is noise


def test_one_member_has_no_spread():
    model = networks.MODELS["mimo"] | {"members": 1}
    with pytest.raises(ConfigError, match=r"model key 'members': one member has no spread; .* or `noise: true`"):
        mimo.start(model | {"noise": False}, DIM, TASKS, jax.random.key(0))
    assert mimo.start(model, DIM, TASKS, jax.random.key(0)).draws == 1


def test_shapes_of_the_paper():
    model = plain(registry.method("mimo").model)
    net = mimo.start(model, 4, 18, jax.random.key(0))
    assert net.draws == 4 and net.learned.embedding.shape == (19, 5)
    assert [weight.shape for weight, _ in net.learned.shared] == [(4 * (4 + 5), 10)]
    assert [weight.shape for weight, _ in net.learned.own] == [(4, 10, 10), (4, 10, 10), (4, 10, 2)]


def test_untrained_weights_are_lecun_normal_and_differ_between_members_and_keys():
    wide = {"members": 2, "embedding": 2, "shared": [300], "unshared": [200]}
    net, other = (mimo.start(wide, DIM, TASKS, jax.random.key(seed)) for seed in (0, 1))
    first, (own, _) = net.learned.shared[0][0], net.learned.own
    assert float(jnp.std(first)) == pytest.approx(8**-0.5, rel=0.05)  # 2 (2 + 2) inputs
    assert float(jnp.std(own[0])) == pytest.approx(300**-0.5, rel=0.05)
    assert all((bias == 0).all() for _, bias in (*net.learned.shared, *net.learned.own))
    assert (own[0][0] != own[0][1]).all() and (other.learned.own[0][0] != own[0]).all()
    assert float(jnp.abs(net.learned.embedding).max()) <= 0.05 and (net.learned.embedding != 0).all()


@pytest.mark.parametrize(("key", "value"), [("members", 2), ("embedding", 3), ("shared", [5, 5]), ("unshared", [4])])
def test_model_settings_change_the_prediction(key, value):
    x = jnp.asarray(np.random.default_rng(3).uniform(size=(4, DIM)))
    base, other = networks.network("mimo"), networks.network("mimo", **{key: value})
    assert np.abs(base.predict(x)[0] - other.predict(x)[0]).max() > 1e-3

"""MAF: rows, GP fits, roles of tasks, what training keeps, and BO with what it gives."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from metabo.bo.policy import Candidates, argmax
from metabo.errors import ConfigError, DataError
from metabo.methods.maf import network as maf_network
from metabo.methods.maf import policy as maf_policy
from metabo.methods.maf import ppo
from metabo.methods.maf import train as maf
from metabo.methods.maf.settings import MafSettings
from metabo.plan import registry
from metabo.tasks.rows import Rows
from metabo.tasks.training_set import prior_keys, training_sets
from tests import tiny
from tests.references import DenseGP
from tests.stepping import observe

SETTINGS = {
    "steps": 4, "learning_rate": 3e-3, "episodes": 4, "horizon": 5, "candidates": 6, "minibatches": 2, "epochs": 2,
    "clip": 0.15, "value_weight": 1.0, "entropy_weight": 0.01, "discount": 0.98, "smoothing": 0.98, "min_regret": 1e-5,
    "evaluate_every": 2, "points": 12, "gp_points": 0, "gp_steps": 40,
}  # fmt: skip
STEPS = 60
SPEC = {"method": "maf", "seed": 0, "model": {"hidden": [8]}, "pretrain": SETTINGS}


deal = eqx.filter_jit(maf.deal)


def padded(tasks, width=None):
    return Rows(*maf.stack([x for x, _ in tasks], [y for _, y in tasks], width))


# --- rows ---


def test_repeated_inputs_keep_their_best_output():
    x = np.array([[0.5, 0.1], [0.2, 0.2], [0.5, 0.1], [0.9, 0.3], [0.2, 0.2]])
    kept, best = maf.distinct(x, np.array([1.0, 5.0, 3.0, 2.0, 4.0]), 0)
    np.testing.assert_array_equal(kept, [[0.5, 0.1], [0.2, 0.2], [0.9, 0.3]])
    np.testing.assert_array_equal(best, [3.0, 5.0, 2.0])


def test_the_cap_keeps_the_first_points_and_the_best():
    x, y = np.array([[0.4], [0.3], [0.2], [0.1]]), np.array([1.0, 0.5, 0.7, 2.0])
    kept, best = maf.distinct(x, y, 2)  # the best, the last one, takes the place of the second
    np.testing.assert_array_equal(kept, [[0.4], [0.1]])
    np.testing.assert_array_equal(best, [1.0, 2.0])
    kept, best = maf.distinct(x, -y, 2)  # here it is the second one anyway
    np.testing.assert_array_equal(kept, [[0.4], [0.3]])
    np.testing.assert_array_equal(maf.distinct(x, y, 4)[0], x)


def test_outputs_are_standardised_and_equal_tasks_stored_once():
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(size=(5, 2)), rng.normal(3, 2, 5)), (rng.uniform(size=(3, 2)), np.full(3, 0.7))
    parts = (padded([a, b]), padded([b, a, b], width=8))
    rows, standard, places, names = maf.prepared(parts, ["a", "b", "b", "a", "b"], 0)
    assert places.tolist() == [0, 1, 1, 0, 1] and rows.y.shape == (2, 5) and names == ["a", "b"]
    np.testing.assert_allclose(rows.y[0], (a[1] - a[1].mean()) / a[1].std(), rtol=1e-12)
    np.testing.assert_allclose(rows.y[1], 0.0, atol=1e-12)  # constant: shifted, not scaled
    np.testing.assert_allclose(standard.offset, [a[1].mean(), 0.7])
    np.testing.assert_allclose(standard.scale, [a[1].std(), 1.0])
    assert rows.mask.sum(axis=1).tolist() == [5, 3]
    assert maf.prepared(parts, ["a", "b", "b", "a", "c"], 0)[3] == ["a", "b", "c"]  # equal rows of another task


# --- roles of the tasks, games ---


@pytest.mark.parametrize(("count", "held"), [(1, 0), (2, 0), (3, 1), (7, 2), (9, 3), (23, 3)])
def test_roles(count, held):
    members, present = np.arange(30, 30 + count + 2), np.arange(count + 2) < count
    role = maf.roles(members, present, jax.random.key(count))
    chosen = role.validated[role.counts]
    assert role.played.sum() == count - held and not role.played[~present].any()
    assert len(set(chosen)) == len(chosen) == (held or count)
    assert set(chosen) <= set(members[present])
    assert not held or set(chosen).isdisjoint(members[role.played])
    if count == 23:
        assert set(chosen) != set(maf.roles(members, present, jax.random.key(1)).validated)


def family(rng, count=6, points=(30, 24)):
    """Tasks whose best inputs lie in one corner, with outputs that a stationary GP tells nothing of beforehand."""
    tasks = []
    for _ in range(count):
        x = rng.uniform(size=(rng.integers(*sorted(points)), 2))
        centre = np.array([0.8, 0.2]) + 0.05 * rng.normal(size=2)
        tasks.append((x, -np.linalg.norm(x - centre, axis=1) * rng.uniform(0.5, 2) + 0.02 * rng.normal(size=len(x))))
    return tasks


@pytest.fixture(scope="module")
def world():
    """(GPs, rows, role): six tasks to train on, the last two validated, and four more that nothing sees."""
    names = [f"task {i}" for i in range(10)]
    rows, *_ = maf.prepared((padded(family(np.random.default_rng(3), 10)),), names, 0)
    gps = jax.tree.map(lambda leaf: leaf[0], maf.fit_gps(rows, 0, STEPS, maf.fit_keys(0, "s", names, 1), False))
    members = np.arange(6)
    role = maf.Roles(members, members < 4, np.array([4, 5, 0]), np.array([True, True, False]))
    return gps, rows, maf.Roles(*map(jnp.asarray, role))


def negative_log_likelihood(log_params, x, y):
    variance, noise, *lengthscale = np.exp(log_params)
    scaled = x / np.array(lengthscale)
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    covariance = variance * np.exp(-0.5 * squared) + (noise + 1e-6) * np.eye(len(y))
    logdet = np.linalg.slogdet(covariance)[1]
    return 0.5 * (y @ np.linalg.solve(covariance, y) + logdet + len(y) * np.log(2 * np.pi))


def test_gp_fits_reach_the_likelihood_that_scipy_finds(world):
    gps, rows, _ = world
    for i in range(3):
        x, y = (np.asarray(leaf[i])[np.asarray(rows.mask[i])] for leaf in rows[:2])
        best = minimize(negative_log_likelihood, np.zeros(4), (x, y), method="L-BFGS-B")
        gp = jax.tree.map(lambda leaf, i=i: leaf[i], gps)
        assert DenseGP(gp).nll(x, y) == pytest.approx(best.fun, abs=1e-3)
        assert float(gp.noise) == pytest.approx(np.exp(best.x[1]), rel=0.05, abs=1e-5)


def test_gp_fits_start_where_gpy_does():
    gp = maf.unfitted(2)
    assert (float(gp.kernel.variance), float(gp.noise)) == pytest.approx((1.0, 1.0))
    np.testing.assert_allclose(gp.kernel.lengthscale, [1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize(("points", "steps"), [(10, STEPS), (0, 2)])
def test_gp_fits_read_their_settings(points, steps, world):
    gps, rows, _ = world
    other = maf.fit_gps(rows, points, steps, jax.random.split(jax.random.key(0), (1, 10)), False)
    assert (np.abs(other.raw_noise - gps.raw_noise) > 1e-3).all()


def test_games_are_distinct_points_of_tasks_that_are_played(world):
    gps, rows, role = world
    games = deal(gps, rows, role, 40, 8, jax.random.key(0))
    assert games.x.shape == (40, 8, 2) and games.mask.all()
    found = set()
    for e in range(40):
        pool = {tuple(point): y for point, y in zip(games.x[e].tolist(), games.y[e].tolist(), strict=True)}
        tasks = [
            i
            for i in range(10)
            if pool.items() <= dict(zip(map(tuple, rows.x[i].tolist()), rows.y[i].tolist(), strict=True)).items()
        ]
        assert len(pool) == 8 and len(tasks) == 1
        np.testing.assert_array_equal(games.gp.raw_noise[e], gps.raw_noise[tasks[0]])
        found.add(tasks[0])
    assert found == {0, 1, 2, 3}
    everything = deal(gps, rows, role, 3, 0, jax.random.key(0))
    assert everything.x.shape == (3, rows.mask.shape[1], 2)


def test_padding_rows_and_members_deals_the_same_games(world):
    gps, rows, role = world
    wide = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, 0), (0, 5), *[(0, 0)] * (leaf.ndim - 2)]), rows)
    longer = role._replace(members=jnp.pad(role.members, (0, 3)), played=jnp.pad(role.played, (0, 3)))
    one, other = (deal(gps, r, m, 5, 8, jax.random.key(1)) for r, m in ((rows, role), (wide, longer)))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# --- training ---


def new_agent(key, dim=2, hidden=(16, 16)):
    keys = jax.random.split(key)
    return ppo.Agent(
        maf_network.make_network(dim + maf_network.EXTRA, hidden, keys[0]),
        maf_network.make_network(maf_network.CLOCK, hidden, keys[1]),
    )


@jax.jit
def greedy_regrets(network, games):
    """Simple regret of greedy runs on whole tasks, (tasks, 5)."""
    return jax.vmap(lambda game: ppo.play(network, game, 5, ppo.greedy, jax.random.key(0)).regret)(games)


def regret(network, world, tasks):
    """Mean of the runs' regrets on some of the world's tasks."""
    gps, rows, _ = world
    return float(
        greedy_regrets(network, ppo.Game(*jax.tree.map(lambda leaf: leaf[jnp.asarray(tasks)], (gps, *rows)))).mean()
    )


LONG = MafSettings(**SETTINGS | {"steps": 40, "episodes": 8, "candidates": 16})
TRACED = [key for key, value in SETTINGS.items() if isinstance(value, float)] + ["evaluate_every"]


@pytest.fixture(scope="module")
def trainer(world):
    """Train with changed settings: those that set no shape are traced, so that all trainings share one program."""
    program = jax.jit(
        lambda agent, data, traced, key: maf.train(agent, *data, dataclasses.replace(LONG, **traced), key)
    )

    def train(seed=0, data=world, **changed):
        traced = {key: jnp.asarray(changed.get(key, getattr(LONG, key))) for key in TRACED}
        return program(new_agent(jax.random.key(seed)), data, traced, jax.random.key(seed + 100))

    return train


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def test_training_beats_the_untrained_network_on_new_tasks(world, trainer):
    before, after, rewards = [], [], []
    for seed in range(3):
        network, log = trainer(seed)
        assert int(log.stopped) == -1
        rewards.append([-log.loss[:5].mean(), -log.loss[-5:].mean()])
        before.append(regret(new_agent(jax.random.key(seed)).policy, world, [6, 7, 8, 9]))
        after.append(regret(network, world, [6, 7, 8, 9]))
    assert (np.diff(rewards)[:, 0] > 0.3).all()  # a regret lower by a factor of two
    assert np.mean(after) < 0.4 * np.mean(before)


def test_the_kept_iteration_is_the_best_of_those_validated(world, trainer):
    for seed in range(2):
        networks = [new_agent(jax.random.key(seed)).policy, *(trainer(seed, evaluate_every=e)[0] for e in (40, 8, 1))]
        scores = [regret(network, world, [4, 5]) for network in networks]
        # Every training validates its begin and its end, and all that a rarer validation sees.
        assert scores[0] > scores[1] >= scores[2] >= scores[3] and scores[1] > scores[3]


def test_the_same_key_gives_the_same_network_and_another_one_another(trainer):
    (one, log), (again, same), (other, _) = (trainer(seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(flat(one), flat(again))
    np.testing.assert_array_equal(log.loss, same.loss)
    assert np.abs(flat(one) - flat(other)).max() > 1e-3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("learning_rate", 3e-2), ("clip", 1e-6), ("value_weight", 0.0), ("entropy_weight", 5.0), ("discount", 0.1),
        ("smoothing", 0.1), ("min_regret", 0.5),
    ],
)  # fmt: skip
def test_every_constant_of_ppo_reaches_the_training(key, value, trainer):
    (_, log), (_, changed) = trainer(0), trainer(0, **{key: value})
    if key != "min_regret":  # that is in every reward, the others only in what is learnt from them
        np.testing.assert_allclose(changed.loss[0], log.loss[0], rtol=1e-12)
    assert np.abs(changed.loss - log.loss).max() > 0.01


def test_a_training_that_leaves_the_finite_numbers_stops_there(world, trainer):
    gps, rows, role = world
    network, log = trainer(0, (gps, rows._replace(y=rows.y.at[:4].set(jnp.nan)), role))
    assert int(log.stopped) == 0
    np.testing.assert_array_equal(flat(network), flat(new_agent(jax.random.key(0)).policy))


# --- pretrain and policy ---


@pytest.fixture(scope="module")
def trained():
    """(training set, prior, log) on the tiny benchmark, two seeds."""
    (training,) = training_sets(tiny.benchmark(), "held_out", seeds=2)
    keys = jax.random.split(jax.random.key(5), (2, 2))
    return training, keys, *maf.pretrain(SPEC, training, keys, False)


def test_priors_have_the_shape_that_start_says(trained):
    training, _, prior, log = trained
    shape = maf.start(SPEC["model"], training.dim, training.tasks, jax.random.key(0))
    for leaf, expected in zip(jax.tree.leaves(prior), jax.tree.leaves(shape), strict=True):
        assert leaf.shape == (4, *expected.shape) and leaf.dtype == expected.dtype and np.isfinite(leaf).all()
    assert jax.tree.structure(prior) == jax.tree.structure(shape)
    assert log.loss.shape == (4, SETTINGS["steps"]) and np.isfinite(log.loss).all() and (log.stopped == -1).all()
    np.testing.assert_array_equal(prior.horizon, 5.0)
    networks = np.array([flat(jax.tree.map(lambda leaf, p=p: leaf[p], prior.network)) for p in range(4)])
    assert len(np.unique(networks[:, 0])) == 4


def test_test_tasks_bring_the_gps_fitted_to_themselves(trained):
    training, _, prior, _ = trained
    benchmark = tiny.benchmark()
    slope = jax.jit(jax.grad(lambda gp, x, y, mask: -gp.log_prob(x, y, mask)))
    for fold, names in enumerate(f.test for f in training.folds):
        for place, name in enumerate(names):
            x, y = maf.distinct(benchmark.tasks[name].x, benchmark.tasks[name].y, SETTINGS["points"])
            data = [np.pad(a, [(0, 12 - len(y)), *[(0, 0)] * (a.ndim - 1)]) for a in (x, y - y.mean(), y == y)]
            for pair in (2 * fold, 2 * fold + 1):
                assert float(prior.standard.offset[pair, place]) == pytest.approx(y.mean())
                scale = float(prior.standard.scale[pair, place])
                assert scale == pytest.approx(y.std() if name == "a" else 1.0)
                gp = jax.tree.map(lambda leaf, p=pair, t=place: leaf[p, t], prior.gps)
                # At a maximum of this task's likelihood: fits stop at a gradient of norm 1e-3.
                found = flat(slope(gp, jnp.asarray(data[0]), jnp.asarray(data[1] / scale), jnp.asarray(data[2])))
                assert np.linalg.norm(found) < 1e-2
    begin = slope(maf.unfitted(2), jnp.asarray(data[0]), jnp.asarray(data[1]), jnp.asarray(data[2]))
    assert np.linalg.norm(flat(begin)) > 0.1


def gps_of(benchmark, folds, seeds=2):
    """{(task, seed): parameters of its GP}, fitted to 5 random rows, of a benchmark with these folds."""
    folded = dataclasses.replace(benchmark, splits={"held_out": folds})
    (training,) = training_sets(folded, "held_out", seeds=seeds)
    spec = SPEC | {"pretrain": SETTINGS | {"gp_points": 5, "gp_steps": 8}}
    _, _, places, gps = maf.fitted_tasks(spec, training, seeds, False)
    of_task = dict(zip(maf.listed_names(training), places.tolist(), strict=True))
    own = lambda s, place: flat(jax.tree.map(lambda leaf: leaf[s, place], gps))  # noqa: E731
    return {(name, s): own(s, place) for name, place in of_task.items() for s in range(seeds)}


def test_the_rows_of_a_gp_depend_on_the_names_of_its_task_and_on_the_seed_alone():
    benchmark = tiny.benchmark()
    folds = benchmark.splits["held_out"]
    found, turned, more = gps_of(benchmark, folds), gps_of(benchmark, folds[::-1]), gps_of(benchmark, folds, seeds=3)
    assert {name for name, _ in found} == set("ab") | {"flat", "point"}
    assert found.keys() == turned.keys() and found.keys() < more.keys()
    for key, parameters in found.items():
        np.testing.assert_allclose(turned[key], parameters, rtol=1e-9)
        np.testing.assert_allclose(more[key], parameters, rtol=1e-9)
    assert np.abs(found["a", 0] - found["a", 1]).max() > 1e-3  # other rows
    np.testing.assert_array_equal(found["point", 0], found["point", 1])  # has one row


@pytest.mark.slow
def test_priors_bring_the_gps_of_their_own_seed():
    (training,) = training_sets(tiny.benchmark(), "held_out", seeds=2)
    spec = SPEC | {"pretrain": SETTINGS | {"gp_points": 5, "gp_steps": 2, "steps": 1}}
    prior, _ = maf.pretrain(spec, training, prior_keys(training, 0, 2), False)
    _, _, places, gps = maf.fitted_tasks(spec, training, 2, False)
    of_task = dict(zip(maf.listed_names(training), places.tolist(), strict=True))
    for f, fold in enumerate(training.folds):
        for (k, name), s in itertools.product(enumerate(fold.test), range(2)):
            np.testing.assert_array_equal(prior.gps.raw_noise[2 * f + s, k], gps.raw_noise[s, of_task[name]])


@pytest.mark.slow
def test_pretraining_is_repeatable_and_blind_to_padding(trained):
    training, keys, prior, log = trained
    rows = Rows(*(np.pad(leaf, [(0, 0), (0, 4), *[(0, 0)] * (leaf.ndim - 2)]) for leaf in training.rows))
    again, same = maf.pretrain(SPEC, dataclasses.replace(training, rows=rows), keys, False)
    np.testing.assert_array_equal(flat(again), flat(prior))
    np.testing.assert_array_equal(same.loss, log.loss)


def test_settings_and_splits_that_do_not_fit_are_refused(trained):
    training, keys, *_ = trained
    with pytest.raises(ConfigError, match=r"'maf.minibatches' is 21, but an iteration has only 20 queries"):
        maf.pretrain(SPEC | {"pretrain": SETTINGS | {"minibatches": 21}}, training, keys, False)
    first = tuple(tuple(names[:1] for names in of_fold) for of_fold in training.trained)
    one = {"members": training.members[..., :1], "present": training.present[..., :1], "trained": first}
    narrow = dataclasses.replace(training, **one)
    with pytest.raises(DataError, match="a fold has 2 test tasks, more than the 1 training tasks"):
        maf.pretrain(SPEC, narrow, keys, False)


def test_networks_start_near_zero_and_are_relu_layers():
    network = maf_network.make_network(6, (200, 150), jax.random.key(0))
    assert [weight.shape for weight in network.weights] == [(6, 200), (200, 150), (150, 1)]
    assert float(jnp.std(network.weights[1])) == pytest.approx(0.01, rel=0.02)
    assert all((bias == 0).all() for bias in network.biases)
    by_hand = maf_network.AcquisitionNetwork(
        (jnp.asarray([[1.0, -1.0], [2.0, 0.5]]), jnp.asarray([[3.0], [4.0]])),
        (jnp.asarray([0.0, -1.0]), jnp.asarray([0.5])),
    )
    np.testing.assert_allclose(by_hand(jnp.asarray([[1.0, 1.0], [-2.0, 0.0]])), [3 * 3 + 0.5, 4 * 1 + 0.5])


def test_the_clock_stands_still_past_the_horizon():
    found = maf_network.clock(jnp.arange(5), jnp.asarray(3.0))
    np.testing.assert_array_equal(found, [[0, 3], [1, 3], [2, 3], [3, 3], [3, 3]])


def learned(rng, tasks=2, dim=2):
    gps = [tiny.random_gp(rng, dim, mean="zero", kernel="squared_exponential", sizes=()) for _ in range(tasks)]
    network = maf_network.make_network(dim + maf_network.EXTRA, (8,), jax.random.key(1))
    network = jax.tree.map(lambda leaf: 100.0 * leaf, network)
    standard = maf_network.Standard(jnp.asarray([2.0, -1.0]), jnp.asarray([0.5, 3.0]))
    return maf_network.MafPrior(network, jnp.asarray(4.0), tiny.stacked(gps), standard), gps


def test_bo_is_a_greedy_episode_in_the_units_of_the_task():
    rng = np.random.default_rng(4)
    prior, gps = learned(rng)
    x, y = jnp.asarray(rng.uniform(size=(9, 2))), jnp.asarray(rng.normal(size=9))
    mask = jnp.arange(9) < 7
    select = eqx.filter_jit(lambda policy, state: policy.select(state, mask, jax.random.key(1)))
    for task in range(2):
        policy = maf_policy.policy(prior, {}, "learned", 4, None)
        offset, scale = float(prior.standard.offset[task]), float(prior.standard.scale[task])
        state = policy.init(Candidates(x, mask, jnp.asarray(task)), jax.random.key(0))
        chosen = []
        for _ in range(4):
            index, info = select(policy, state)
            seen = np.asarray(chosen, dtype=int)
            dense, shift = DenseGP(gps[task]), float(y[seen].mean()) if chosen else 0.0
            mean, variance = dense.posterior(np.asarray(x)[seen], np.asarray(y)[seen] - shift, np.asarray(x)[[index]])
            assert float(info.mean) == pytest.approx(offset + scale * (mean[0] + shift), rel=1e-5)
            assert float(info.std) == pytest.approx(scale * np.sqrt(variance[0] + dense.noise), rel=1e-4)
            assert bool(info.ok)
            state = observe(policy, state, index, offset + scale * y[index])
            chosen.append(int(index))
        moves = eqx.filter_jit(ppo.play)(
            prior.network, ppo.Game(gps[task], x, y, mask), 4, ppo.greedy, jax.random.key(0)
        )
        assert chosen == moves.action.tolist() and max(chosen) < 7


def test_equal_logits_are_broken_by_the_run():
    rng = np.random.default_rng(5)
    prior, _ = learned(rng)
    constant = prior._replace(network=jax.tree.map(jnp.zeros_like, prior.network))
    pool = Candidates(jnp.asarray(rng.uniform(size=(30, 2))), jnp.ones(30, dtype=bool), jnp.asarray(0))
    policy = maf_policy.policy(constant, {}, "learned", 3)
    keys = jax.random.split(jax.random.key(0), 5)
    first = [int(policy.select(policy.init(pool, key), pool.mask, key)[0]) for key in keys]
    assert len(set(first)) > 1
    assert first[0] == int(argmax(jnp.zeros(30), pool.mask, policy.init(pool, keys[0]).priority))


def test_no_other_acquisition():
    prior, _ = learned(np.random.default_rng(6))
    with pytest.raises(ConfigError, match=r"has no other; got 'pi'"):
        maf_policy.policy(prior, {}, "pi", 3)


def test_registered_constants_are_those_of_the_authors():
    settings = registry.method("maf").pretrain
    assert [settings[key] for key in ("epochs", "clip", "value_weight", "entropy_weight")] == [4, 0.15, 1.0, 0.01]
    assert [settings[key] for key in ("discount", "smoothing", "min_regret")] == [0.98, 0.98, 1e-5]
    assert set(settings) == set(SETTINGS)

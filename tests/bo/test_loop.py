from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from metabo.bo import loop
from metabo.bo.acquisition import SCORED, make
from metabo.bo.fixed_prior import FixedPrior
from metabo.bo.loop import RunBatch, run_all
from metabo.bo.policy import Info, tie_breakers
from metabo.bo.refit import Refit
from metabo.methods.random.policy import Nothing, Uniform
from tests import tiny
from tests.references import DenseGP, bayesian_optimisation

DIM, ITERATIONS = 2, 9


def runs(keys, policy=0, task=0, initial=()):
    count = len(keys)
    fill = lambda value: jnp.broadcast_to(jnp.asarray(value, dtype=int), (count, *np.shape(value)))  # noqa: E731
    policy, task = (jnp.asarray(v) if np.ndim(v) else fill(v) for v in (policy, task))
    given = (
        jnp.asarray(initial, dtype=int)
        if np.ndim(initial) == 2
        else jnp.zeros((count, len(initial)), int) + fill(initial)
    )
    return RunBatch(policy, task, given, keys)


@pytest.fixture(scope="module")
def world():
    """Two tasks of 15 and 11 candidates (padded to 15) and two priors."""
    rng = np.random.default_rng(0)
    gps = [tiny.random_gp(rng, DIM) for _ in range(2)]
    x, mask = rng.uniform(size=(2, 15, DIM)), np.ones((2, 15), dtype=bool)
    y = np.sin(5 * x[..., 0]) + x[..., 1] + 0.1 * rng.normal(size=(2, 15))
    x[1, 11:], y[1, 11:], mask[1, 11:] = 0.0, 99.0, False  # padding that would be worth selecting
    return gps, x, y, mask


def optimise(world, slug, entries, iterations=ITERATIONS, chunk=1, settings=None):
    gps, x, y, mask = world
    budget = iterations + entries.initial.shape[1]
    policies = FixedPrior(tiny.stacked(gps), make(slug, **(settings or {})), budget)
    return jax.tree.map(np.asarray, run_all(policies, *map(jnp.asarray, (x, y, mask)), entries, iterations, chunk))


@pytest.mark.parametrize(("slug", "margin"), [*((slug, 0.1) for slug in SCORED), ("pi", 2.0)])
def test_loop_is_the_textbook_loop_index_by_index(world, slug, margin):
    gps, x, y, mask = world
    entries = runs(jax.random.split(jax.random.key(0), 4), policy=[0, 1, 0, 1], task=[0, 0, 1, 1])
    steps = optimise(world, slug, entries, settings={"pi_threshold": margin})
    assert steps.candidate.shape == (4, ITERATIONS)
    for r in range(4):
        task, gp = int(entries.task[r]), gps[int(entries.policy[r])]
        size = mask[task].sum()
        chosen, moments = bayesian_optimisation(
            DenseGP(gp), x[task, :size], y[task, :size], slug, ITERATIONS, (), margin
        )
        assert steps.candidate[r].tolist() == chosen
        np.testing.assert_array_equal(steps.y[r], y[task, chosen])
        np.testing.assert_allclose(steps.info.mean[r], [m for m, _ in moments], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(steps.info.std[r], [s for _, s in moments], rtol=1e-6)
        assert steps.info.ok.all()
    assert any(len(set(run)) < ITERATIONS for run in steps.candidate.tolist())  # candidates are selected again


def test_scores_that_are_no_numbers_are_told(world):
    """The query is then by priority, that is random: a run must not pass for a sound one."""
    gps, x, y, mask = world
    entries = runs(jax.random.split(jax.random.key(0), 2))
    policies = FixedPrior(tiny.stacked(gps), lambda mean, std, best, count: best + 0.0 * mean - best, ITERATIONS)
    steps = run_all(policies, *map(jnp.asarray, (x, y, mask)), entries, 3, 1)
    assert not steps.info.ok[:, 0].any() and steps.info.ok[:, 1:].all()  # best is -inf before the first observation


def test_initial_observations_come_first_and_count(world):
    gps, x, y, _ = world
    initial = [[3, 1], [7, 7]]  # the second run is given one candidate twice
    entries = runs(jax.random.split(jax.random.key(1), 2), initial=initial)
    steps = optimise(world, "pi", entries, iterations=5)
    for r in range(2):
        chosen, _ = bayesian_optimisation(DenseGP(gps[0]), x[0], y[0], "pi", 5, initial[r])
        assert steps.candidate[r].tolist() == chosen
        assert np.isnan(steps.info.mean[r, :2]).all() and np.isfinite(steps.info.mean[r, 2:]).all()


def test_chunks_change_nothing(world):
    rng = np.random.default_rng(3)
    world = ([tiny.random_gp(rng, DIM, "constant", sizes=()) for _ in range(2)], *world[1:])
    entries = runs(jax.random.split(jax.random.key(3), 5), policy=[0, 1, 1, 0, 1], task=[1, 0, 1, 0, 0])
    one = optimise(world, "ei", entries, chunk=1)
    other = optimise(world, "ei", entries, chunk=2)  # two chunks and a rest
    np.testing.assert_array_equal(one.candidate, other.candidate)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_allclose(one.info.mean, other.info.mean, rtol=1e-9, atol=1e-12)


def flat_world(count=6, padding=2):
    """A zero-mean prior on a pool where all candidates look alike: at first every score is equal."""
    gp = tiny.random_gp(np.random.default_rng(1), DIM, "zero", "matern52", ())
    x = np.random.default_rng(2).uniform(size=(1, count + padding, DIM))
    mask = np.arange(count + padding)[None] < count
    return [gp], x, np.where(mask, 0.5, 99.0), mask


def test_ties_are_broken_by_the_runs_own_priorities():
    count, number = 6, 900
    world = flat_world(count)
    keys = jax.random.split(jax.random.key(4), number)
    steps = optimise(world, "pi", runs(keys), iterations=1, chunk=64)
    first = steps.candidate[:, 0]
    assert first.max() < count  # padding is never selected
    expected = [np.argmax(np.asarray(tie_breakers(jax.random.split(key)[0], count + 2))[:count]) for key in keys[:20]]
    assert first[:20].tolist() == expected
    counts = np.bincount(first, minlength=count)
    assert chi2.sf(((counts - number / count) ** 2 / (number / count)).sum(), count - 1) > 1e-3


def test_budget_may_exceed_the_pool():
    world = flat_world(3)
    steps = optimise(world, "ei", runs(jax.random.split(jax.random.key(5), 3)), iterations=10)
    assert steps.candidate.shape == (3, 10) and steps.candidate.max() < 3 and steps.info.ok.all()
    assert np.isfinite(steps.info.mean).all() and (steps.info.std > 0).all()


@pytest.mark.parametrize("kind", ["fixed", "refit"])
def test_a_policy_without_repeats_queries_every_candidate_once_and_then_all_again(world, kind):
    gp, x, y, mask = tiny.random_gp(np.random.default_rng(5), DIM, "constant", "matern32", ()), *world[1:]
    budget, given = 11 + 4, jnp.asarray([[3, 7]])
    policy = (
        FixedPrior(gp, make("pi"), budget, repeats=False)
        if kind == "fixed"
        else Refit(gp, tiny.same, tiny.shift_constant, make("pi"), budget, repeats=False)
    )
    entries = runs(jax.random.split(jax.random.key(0), 1), task=[1], initial=given)
    found = run_all(policy, *map(jnp.asarray, (x, y, mask)), entries, budget - 2, 1, lambda one, _: one)
    index = np.asarray(found.candidate)[0].tolist()
    assert index[:2] == [3, 7] and sorted(index[:11]) == list(range(11))
    assert len(set(index[11:])) == 4  # the pool is begun again, without its padding
    again = run_all(replace(policy, repeats=True), *map(jnp.asarray, (x, y, mask)), entries, 9, 1, lambda one, _: one)
    assert len(set(np.asarray(again.candidate)[0].tolist())) < 11


def random_search(number, iterations, values, padding=3, key=0, chunk=50):
    count = len(values)
    x = np.zeros((1, count + padding, 1))
    y = np.concatenate([values, np.full(padding, 99.0)])[None]
    mask = np.arange(count + padding)[None] < count
    policies = Uniform(Nothing(jnp.zeros(1)))
    entries = runs(jax.random.split(jax.random.key(key), number))
    return jax.tree.map(np.asarray, run_all(policies, *map(jnp.asarray, (x, y, mask)), entries, iterations, chunk))


def test_random_search_is_uniform_with_replacement_and_follows_its_closed_form():
    count, iterations, number = 20, 8, 1500
    values = np.arange(1.0, count + 1)
    steps = random_search(number, iterations, values)
    flat = np.bincount(steps.candidate.ravel(), minlength=count)
    assert len(flat) == count  # no padding
    expected = number * iterations / count
    assert 1e-3 < chi2.sf(((flat - expected) ** 2 / expected).sum(), count - 1) < 1 - 1e-3
    repeats = (steps.candidate[:, 1:] == steps.candidate[:, :-1]).mean()
    assert abs(repeats - 1 / count) < 5 * np.sqrt(1 / count / number / (iterations - 1))
    best = np.maximum.accumulate(steps.y, axis=1)
    for t in (1, 3, iterations):
        # E[max of t uniform draws from 1..c] = c - sum over k < c of (k/c)^t
        mean = count - np.sum((np.arange(1, count) / count) ** t)
        assert abs(best[:, t - 1].mean() - mean) < 5 * best[:, t - 1].std() / np.sqrt(number)
    assert np.isnan(steps.info.mean).all() and steps.info.ok.all()
    other = random_search(4, iterations, values, key=1)
    assert (other.candidate != steps.candidate[:4]).any(axis=1).all()


class Counting(eqx.Module):
    """Random search that counts how often it is traced."""

    params: Nothing
    traced: tuple = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates, key):
        self.traced[0].append("init")
        return candidates.mask

    def select(self, state, mask, key):
        self.traced[0].append("select")
        nan = jnp.asarray(jnp.nan)
        return jax.random.randint(key, (), 0, 3), Info(nan, nan, nan, jnp.asarray(True))

    def observe(self, state, index, y):
        return state


class Log(list):
    """A list that may be a static field."""

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


@pytest.mark.parametrize("given", [0, 2])
def test_a_long_run_has_room_for_half_first_and_selects_the_same(world, monkeypatch, given):
    gp = tiny.random_gp(np.random.default_rng(5), DIM, "constant", "matern32", ())
    keys, iterations = jax.random.split(jax.random.key(3), 3), 11
    entries = runs(keys, initial=tuple(range(given)))
    found = []
    for long in (99, 8):
        monkeypatch.setattr(loop, "LONG", long)
        policy = Refit(gp, tiny.same, tiny.shift_constant, make("ei"), iterations + given)
        assert loop.sizes(policy, given, iterations) == (
            [iterations] if long == 99 else [(11 + given) // 2 - given, 11]
        )
        found.append(run_all(policy, *map(jnp.asarray, world[1:]), entries, iterations, 1, lambda one, _, at=long: one))
    whole, halves = found
    np.testing.assert_array_equal(whole.candidate, halves.candidate)
    np.testing.assert_allclose(whole.info.mean, halves.info.mean, rtol=1e-7)
    assert len(set(np.asarray(whole.candidate)[0].tolist())) > 3


def test_runs_of_other_policies_and_short_ones_have_one_size(world):
    growing = Refit(world[0][0], tiny.same, tiny.shift_constant, make("ei"), 200)
    assert loop.sizes(growing, 5, 100) == [47, 100]
    assert loop.sizes(growing, 5, 20) == [20] and loop.sizes(growing, 60, 20) == [20]
    assert loop.sizes(FixedPrior(world[0][0], make("ei"), 200), 5, 100) == [100]


def test_many_runs_and_iterations_are_traced_once():
    log = Log()
    policies = Counting(Nothing(jnp.zeros(1)), (log,))
    arrays = [jnp.zeros((1, 3, 1)), jnp.zeros((1, 3)), jnp.ones((1, 3), dtype=bool)]
    for key in (0, 1):
        steps = run_all(policies, *arrays, runs(jax.random.split(jax.random.key(key), 6)), 30, 1)
        assert steps.candidate.shape == (6, 30)
    assert (
        log.count("init") == 1 and log.count("select") <= 3
    )  # once for the shape of its record, and the loop looks at its body once more

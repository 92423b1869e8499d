"""Portfolios: against brute force in NumPy, where they must work, and where they must not."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from metabo.bo.loop import run
from metabo.bo.policy import Candidates
from metabo.errors import ConfigError
from metabo.methods.portfolio import look_up
from metabo.methods.portfolio.policy import RULES, policy
from metabo.methods.random.policy import Nothing
from metabo.plan import registry
from metabo.tasks.rows import Rows, stack

NONE = np.zeros(0, dtype=np.int64)


def made(past, rule="greedy", neighbours=5, acquisition="sequence"):
    return policy(Nothing(jnp.zeros(())), {"rule": rule, "neighbours": neighbours}, acquisition, 0, past)


def queried(past, x, rule, length, mask=None, initial=NONE, neighbours=5, y=None, seed=0):
    """Return the candidates in the order of their queries."""
    pool = Candidates(jnp.asarray(x), jnp.ones(len(x), dtype=bool) if mask is None else jnp.asarray(mask))
    outputs = jnp.zeros(len(x)) if y is None else jnp.asarray(y)
    arrays = Rows(*map(jnp.asarray, past)), pool, outputs, jnp.asarray(initial), jax.random.key(seed)
    return np.asarray(ran(*arrays, rule, neighbours, length))[len(initial) :]


@partial(jax.jit, static_argnums=(5, 6, 7))
def ran(past, pool, outputs, initial, key, rule, neighbours, length):
    return run(made(past, rule, neighbours), pool, outputs, initial, key, length).candidate


def brute_regrets(tasks, x, neighbours):
    """Look-ups and Shepard's means, one candidate at a time."""
    found = np.zeros((len(tasks), len(x)))
    for i, (rows, y) in enumerate(tasks):
        regret = (y.max() - y) / (np.ptp(y) or 1.0)
        for j, point in enumerate(x):
            here = (rows == point).all(axis=1)
            if here.any():
                found[i, j] = regret[here].mean()
                continue
            distance = cdist([point], rows)[0]
            near = np.argsort(distance, kind="stable")[:neighbours]
            found[i, j] = np.average(regret[near], weights=distance[near] ** -2)
    return found.round(12)


def brute_z(tasks, regrets):
    """Standardised outputs at the candidates; interpolating outputs and interpolating regrets is the same."""
    return np.array(
        [
            (y.max() - regret * np.ptp(y) - y.mean()) / y.std() if np.ptp(y) else np.zeros_like(regret)
            for (_, y), regret in zip(tasks, regrets, strict=True)
        ]
    )


def brute_choices(regrets, z_scores, valid, rule, chosen):
    """The candidates that the rule allows next, after `chosen`: several where it leaves a tie."""
    left = [c for c in valid if c not in chosen]
    if rule == "mean_z":
        rank = -z_scores[:, valid].mean(axis=0).round(10)
    else:
        rank = np.mean([rankdata(row[valid]) for row in regrets], axis=0)
    of_rank = dict(zip(valid, rank, strict=True))
    if rule == "greedy":
        best = np.min([np.ones(len(regrets)), *(regrets[:, c] for c in chosen)], axis=0)
        after = {c: np.minimum(best, regrets[:, c]).mean() for c in left}
        if min(after.values()) < best.mean() - 1e-12:
            return [c for c in left if after[c] <= min(after.values()) + 1e-12]
    least = min(of_rank[c] for c in left)
    return [c for c in left if of_rank[c] <= least + 1e-12]


def past_tasks(seed, coarse):
    """Four tasks of different sizes over a common grid, one of them with a repeated input, one flat; coarse outputs
    make ties, and of the candidates two are equal."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(5)), axis=-1).reshape(-1, 2) / 8
    tasks = []
    for size in (30, 22, 11, 3):
        rows = grid[rng.permutation(len(grid))[:size]]
        y = np.sin(5 * rows[:, 0] + rng.normal()) + rng.normal(size=size) * 0.3
        tasks.append((rows, np.round(2 * y) / 2 if coarse else y))
    tasks[1] = (np.concatenate([tasks[1][0], tasks[1][0][:2]]), np.append(tasks[1][1], [0.25, 1.25]))
    tasks[3] = (tasks[3][0], np.full(3, 0.7))
    x = np.concatenate([grid[rng.permutation(len(grid))[:15]], rng.uniform(size=(6, 2))])
    return tasks, np.concatenate([x, x[5:6]])


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_every_query_is_one_that_brute_force_allows(rule, coarse):
    for seed in range(3):
        tasks, x = past_tasks(seed, coarse)
        past = stack([rows for rows, _ in tasks], [y for _, y in tasks])
        mask = np.ones(len(x), dtype=bool)
        mask[[2, 9, 20]] = False
        valid = np.flatnonzero(mask)
        regrets = brute_regrets(tasks, x, 5)
        z_scores = brute_z(tasks, regrets)
        np.testing.assert_allclose(look_up.regrets_at(jnp.asarray(x), past, 5), regrets, atol=1e-12)
        chosen, ties = [4, 0], 0
        for index in queried(past, x, rule, len(valid) - 2, mask, np.array(chosen), seed=seed):
            allowed = brute_choices(regrets, z_scores, valid, rule, chosen)
            assert index in allowed
            ties += len(allowed) > 1
            chosen.append(index)
        assert sorted(chosen) == valid.tolist()  # each once
        assert ties > 0
    assert len({tuple(queried(past, x, rule, 17, mask, chosen[:2], seed=s)) for s in range(5)}) > 1  # ties by the key


def test_points_of_a_grid_of_round_numbers_have_codes_of_their_own():
    axes = np.meshgrid(np.linspace(0, 1, 41), [-1.0, 0.0, 0.5, 1.0], [0.0, 0.25, 1e-300, 2.0], np.arange(16.0))
    x = np.stack([axis.ravel() for axis in axes], axis=1)
    assert len(np.unique(np.asarray(look_up.codes(jnp.asarray(x))))) == len(x) == len(np.unique(x, axis=0))


def test_minus_zero_has_the_code_of_zero():
    ours = np.asarray(look_up.codes(jnp.array([[0.0, -0.0], [-0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])))
    assert ours[0] == ours[1] and len(set(ours.tolist())) == 3


def test_rules_differ_as_by_hand():
    """Candidate 0 is second everywhere, 1 and 2 are each best in two tasks and worst in the others."""
    y = np.array([[0.8, 1.0, 0.0, 0.5], [0.8, 1.0, 0.0, 0.5], [0.8, 0.0, 1.0, 0.5], [0.8, 0.0, 1.0, 0.4]])
    x = np.array([[0.0], [0.3], [0.6], [0.9]])
    past = stack([x] * 4, list(y))
    assert queried(past, x, "mean_rank", 4).tolist()[0] == 0
    assert queried(past, x, "greedy", 4).tolist()[0] == 0
    greedy = queried(past, x, "greedy", 4).tolist()
    assert set(greedy[1:3]) == {1, 2} and greedy[3] == 3
    assert queried(past, x, "greedy", 3, initial=np.array([1])).tolist()[0] == 2  # 1 covers the first two tasks


def test_a_mean_of_outputs_counts_by_how_much_a_candidate_is_worse():
    """Candidate 0 is best in three tasks, by a hair, and far below in the fourth; candidate 1 is never far below."""
    y = np.array([[1.0, 0.99, 0.5, 0.0]] * 3 + [[0.0, 0.98, 0.99, 1.0]])
    x = np.array([[0.0], [0.3], [0.6], [0.9]])
    past = stack([x] * 4, list(y))
    assert queried(past, x, "mean_rank", 1).tolist() == [0] and queried(past, x, "mean_z", 1).tolist() == [1]
    z = ((y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True)).mean(axis=0)
    assert queried(past, x, "mean_z", 4).tolist() == np.argsort(-z).tolist()


def test_padded_rows_and_absent_tasks_change_nothing():
    tasks, x = past_tasks(5, False)
    past = stack([rows for rows, _ in tasks], [y for _, y in tasks])
    more = Rows(
        np.pad(past.x, [(0, 2), (0, 4), (0, 0)]), np.pad(past.y, [(0, 2), (0, 4)], constant_values=9.0),
        np.pad(past.mask, [(0, 2), (0, 4)]),
    )  # fmt: skip
    for rule in RULES:
        np.testing.assert_array_equal(queried(more, x, rule, 20), queried(past, x, rule, 20))


def test_fewer_rows_than_neighbours_are_all_averaged():
    past = stack([np.array([[0.0], [1.0]])], [np.array([0.0, 1.0])])
    (found,) = np.asarray(look_up.regrets_at(jnp.asarray([[0.25], [1.0]]), past, 5))
    np.testing.assert_allclose(found, [16 / (16 + 16 / 9), 0.0])


def test_more_neighbours_change_interpolated_values_only():
    tasks, x = past_tasks(1, False)
    past = stack([rows for rows, _ in tasks[:1]], [y for _, y in tasks[:1]])  # every point of the grid
    few, many = (np.asarray(look_up.regrets_at(jnp.asarray(x), past, k)) for k in (1, 5))
    np.testing.assert_array_equal(few[:, :15], many[:, :15])
    assert (few[:, 15:-1] != many[:, 15:-1]).all()


@pytest.mark.parametrize("rule", RULES)
def test_with_past_tasks_like_the_target_the_first_query_is_the_optimum(rule):
    x = np.random.default_rng(0).uniform(size=(60, 3))
    y = np.cos(6 * x[:, 0]) - x[:, 1] ** 2
    past = stack([x] * 5, [y] * 5)
    first, second = queried(past, x, rule, 2)
    assert first == np.argmax(y)
    assert rule == "greedy" or second == np.argsort(-y)[1]
    # scales of the outputs do not matter
    scaled = stack([x] * 3, [y, 100 * y - 7, 0.01 * y])
    assert queried(scaled, x, rule, 1)[0] == np.argmax(y)


@pytest.mark.parametrize("rule", RULES)
def test_with_unrelated_past_tasks_it_is_no_better_than_random(rule):
    rng, gaps = np.random.default_rng(1), []
    for trial in range(60):
        x, outputs = rng.uniform(size=(40, 2)), rng.uniform(size=(6, 40))
        past, y = stack([x] * 5, list(outputs[:5])), outputs[5]
        ours = queried(past, x, rule, 8, y=y, seed=trial)
        theirs = np.random.default_rng([2, trial]).permutation(40)[:8]
        gaps.append(y[ours].max() - y[theirs].max())
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / np.sqrt(len(gaps))


def test_outputs_of_the_target_change_nothing():
    tasks, x = past_tasks(2, False)
    past = stack([rows for rows, _ in tasks], [y for _, y in tasks])
    for rule in RULES:
        up, down = (queried(past, x, rule, 12, y=sign * np.arange(len(x), dtype=float)) for sign in (1, -1))
        np.testing.assert_array_equal(up, down)


def test_what_it_cannot_do_is_told():
    tasks, _ = past_tasks(0, False)
    past = stack([rows for rows, _ in tasks], [y for _, y in tasks])
    with pytest.raises(ConfigError, match=r"unknown rule of a portfolio 'gredy'. Did you mean 'greedy'\?"):
        made(past, "gredy")
    with pytest.raises(ConfigError, match=r"their acquisition is 'sequence', not 'ei'"):
        made(past, acquisition="ei")
    with pytest.raises(ConfigError, match=r"uses_past=True"):
        made(None)
    with pytest.raises(ConfigError, match=r"'policy.neighbours': 0 is less than the minimum of 1"):
        made(past, neighbours=0)


def test_registered_rules():
    assert {name: registry.method(name).policy["rule"] for name in ("portfolio", "mean_rank", "mean_z")} == {
        "portfolio": "greedy", "mean_rank": "mean_rank", "mean_z": "mean_z",
    }  # fmt: skip

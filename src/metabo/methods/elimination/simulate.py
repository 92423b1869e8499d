"""Hyperparameter elimination on finite pools: HE-GP-UCB, HE-StableOpt and the methods that the paper compares them with
(hegpucb Algorithms 1 and 2, §7).

All candidates u are one batch axis (`metabo.gp.many`); the iterations are those of `metabo.bo.loop`, the policy is
`metabo.methods.elimination.competing`. HE-GP-UCB queries where the largest upper confidence bound of all surviving
candidates is highest, and drops the chosen candidate once the absolute sum of its errors η_i = y_i - μ_{i-1}(x_i)
exceeds √(ξ_t |S|) + Σ β_i σ_{i-1}(x_i).

Our choices: the sums use σ_{i-1}, before x_i is observed, as the proof does (the paper prints σ_i; `sigma="after"`).
The last candidate is never dropped: if its test fires it stays, and `Trace.exhausted` says so. Ties go to the lowest
candidate, then the lowest point. ξ_t and the finite β_t count iterations from 1, without the initial points; the
information gain is that of all observations. `metabo.papers.hegpucb.problems` has the paper's problems.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.loop import Given, RunState, begin, play
from metabo.bo.policy import Candidates
from metabo.compute import progress
from metabo.errors import unknown
from metabo.methods.elimination.competing import Competing, Plan, form_of, plan_of
from metabo.methods.elimination.problem import SIGMAS, EliminationSettings, Problem
from metabo.methods.elimination.rules import RULES, require_scales


class Trace(NamedTuple):
    """What happened at iterations 1..T (leading axis), and `initial` (k,): the points observed before.

    `point`: the queried point; `centre`: x_t (robust rules query x_t + δ_t); `u`, `v`: the chosen candidate and that of
    the adversary (= u if not robust); y, f_at: output and function value there. `mean`, `sigma`, `beta`: of u at the
    query before the observation. `error`, `threshold`: the two sides of the test of u; `rejected`, `rejected_v`:
    whether the tests of u and v fired (also for rules that do not eliminate); `alive` (U,): candidates after the test;
    `exhausted`: the test of the only remaining candidate fired. `evidence` and `gain` (U,): log likelihood and
    information gain before the observation. `score`: the criterion by which a robust rule reports its point, min over δ
    and v of LCB(x_t + δ). `regret`: max f - f(x_t), or ε-regret. `ok`: whether the step was sound.
    """

    point: Int[Array, " t"]
    centre: Int[Array, " t"]
    u: Int[Array, " t"]
    v: Int[Array, " t"]
    y: Float[Array, " t"]
    f_at: Float[Array, " t"]
    mean: Float[Array, " t"]
    sigma: Float[Array, " t"]
    beta: Float[Array, " t"]
    error: Float[Array, " t"]
    threshold: Float[Array, " t"]
    rejected: Bool[Array, " t"]
    rejected_v: Bool[Array, " t"]
    alive: Bool[Array, "t u"]
    exhausted: Bool[Array, " t"]
    evidence: Float[Array, "t u"]
    gain: Float[Array, "t u"]
    score: Float[Array, " t"]
    regret: Float[Array, " t"]
    ok: Bool[Array, " t"]
    initial: Int[Array, " k"]


def run(problem: Problem, rule: str, settings: EliminationSettings, key: Key[Array, ""]) -> Trace:
    """Run one rule for `settings.T` iterations. This is a pure function that can be jitted and mapped over keys, f or
    truth.

    The key draws initial points (uniform, with replacement), noise and random queries, the same for every rule. It
    checks names only, and raises ConfigError for an unknown one; `problem.check` rejects numbers that make no sense.
    """
    if rule not in RULES:
        raise unknown("rule", rule, RULES)
    return _simulate(problem, (rule,), jnp.asarray(0), settings, key)


def run_all(
    problem: Problem,
    rules: tuple[str, ...],
    settings: EliminationSettings,
    keys: Key[Array, " s"],
    f: Float[Array, "s c"] | None = None,
    truth: Int[Array, " s"] | None = None,
    together: bool = False,
) -> Trace:
    """Run every rule with every key. The leading axes of the Trace are rules and keys.

    One compiled program serves all rules, keys, and problems and settings of the same sizes (`traced`). `f`, `truth`:
    one per key, in place of the problem's. `together` runs all keys of a rule side by side (for accelerators),
    otherwise one after another (for CPUs, where a run's rows stay in cache). Raises ConfigError for an unknown rule, or
    if A-GP-UCB has no length-scales.
    """
    for rule in rules:
        if rule not in RULES:
            raise unknown("rule", rule, RULES)
        if rule == "a_gp_ucb":
            require_scales(problem.scales)
    values = jnp.broadcast_to(problem.f, (len(keys), *problem.f.shape)) if f is None else f
    truths = jnp.broadcast_to(jnp.asarray(problem.truth), (len(keys),)) if truth is None else truth
    one = problem._replace(noise_std=jnp.asarray(problem.noise_std, jnp.float64), truth=-1)
    numbers = progress.loop([jnp.asarray(_possible(problem).index(rule)) for rule in rules], "rules")
    each = [_run_rule(one, number, settings, keys, values, truths, together) for number in numbers]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


def _possible(problem: Problem) -> tuple[str, ...]:
    return tuple(rule for rule in RULES if rule != "a_gp_ucb" or problem.scales is not None)


@eqx.filter_jit
def _run_rule(
    problem: Problem,
    number: Int[Array, ""],
    settings: EliminationSettings,
    keys: Key[Array, " s"],
    values: Float[Array, "s c"],
    truths: Int[Array, " s"],
    together: bool,
) -> Trace:
    def one(entry):
        key, own, true = entry
        return _simulate(problem._replace(f=own, truth=true), _possible(problem), number, settings, key)

    entries = (keys, values, truths)
    return jax.vmap(one)(entries) if together else jax.lax.map(one, entries)


def traced(settings: EliminationSettings) -> EliminationSettings:
    """Return the settings with arrays in place of the numbers and the form of β, so that other values need no new
    compilation."""
    numbers = ("delta", "B", "R", "noise", "standardise", "predictive", "beta")
    values = settings._replace(
        noise=settings.R if settings.noise is None else settings.noise, beta=form_of(settings.beta)
    )
    return values._replace(**{name: jnp.asarray(getattr(values, name)) for name in numbers})


def _simulate(
    problem: Problem, rules: tuple[str, ...], number: Int[Array, ""], settings: EliminationSettings, key: Key[Array, ""]
) -> Trace:
    if settings.sigma not in SIGMAS:
        raise unknown("deviation in the test", settings.sigma, SIGMAS)
    points, total = problem.kernels.shape[1], problem.initial + settings.T
    place_key, noise_key, random_key = jax.random.split(key, 3)
    start = jax.random.randint(place_key, (problem.initial,), 0, points)
    random = jax.random.randint(random_key, (settings.T,), 0, points)
    errors = problem.noise_std * jax.random.normal(noise_key, (total,))
    policy = Competing(problem, plan_of(problem, rules, number, settings), settings, random, rules)
    pool = Candidates(problem.x, jnp.ones(points, bool))
    now = begin(policy, pool, total, key)
    given = Given(start, problem.initial, problem.initial)
    answer = lambda t, index, _: problem.f[index] + errors[t]  # noqa: E731
    now = play(policy, now, pool.mask, given, 0, total, answer, key, policy.repeats)
    return _trace(problem, policy.plan, now, start)


def _trace(problem: Problem, plan: Plan, now: RunState, start: Int[Array, " k"]) -> Trace:
    """Lay out a run. The effect of an observation is recorded by the next selection and, for the last one, in the final
    state."""
    point, y, (decision, before) = jax.tree.map(lambda leaf: leaf[problem.initial :], now.steps)
    verdict = jax.tree.map(lambda seen, last: jnp.concatenate([seen[1:], last[None]]), before, now.state.verdict)
    u, v, centre = decision.query.u, decision.query.v, decision.query.centre
    of_chosen = lambda values: jnp.take_along_axis(values, u[:, None], axis=1)[:, 0]  # noqa: E731
    mean = of_chosen(decision.mean)
    return Trace(
        point=point, centre=centre, u=u, v=v, y=y, f_at=problem.f[point],
        mean=mean, sigma=of_chosen(decision.sigma), beta=of_chosen(decision.beta),
        error=verdict.error, threshold=verdict.threshold, rejected=verdict.rejected, rejected_v=verdict.rejected_v,
        alive=verdict.alive, exhausted=verdict.exhausted, evidence=decision.evidence, gain=decision.gain,
        score=decision.query.score, regret=jnp.max(plan.goal) - plan.goal[centre],
        ok=verdict.ok & jnp.isfinite(mean), initial=start,
    )  # fmt: skip

"""Hyperparameter elimination on finite pools: HE-GP-UCB, HE-StableOpt and what the paper compares them with (hegpucb
Algorithms 1 and 2, §7).

All candidates u are one batch axis (`metabo.gp.many`), all iterations one `scan`. HE-GP-UCB queries where the largest
upper confidence bound of all surviving candidates is highest, and drops the candidate that was chosen when the sum of
its errors η_i = y_i - μ_{i-1}(x_i) leaves √(ξ_t |S|) + Σ β_i σ_{i-1}(x_i).

Chosen here: the sums take σ_{i-1}, before x_i is observed, as the proof does (the paper prints σ_i; `sigma="after"`).
The last candidate is never dropped: where its test fires it stays, and `Trace.exhausted` says so. Ties: lowest
candidate, then lowest point. ξ_t and the finite β_t count iterations from 1, without the initial points; the
information gain is that of all observations. `metabo.papers.hegpucb.problems` has the paper's problems.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.compute import progress
from metabo.errors import unknown
from metabo.gp import many as beliefs
from metabo.gp.many import Belief
from metabo.methods.elimination import confidence
from metabo.methods.elimination.problem import BETAS, SIGMAS, EliminationSettings, Problem
from metabo.methods.elimination.rules import ROBUST, RULES, Tally, View, empty_tally, require_scales, switch, without


class Trace(NamedTuple):
    """What happened at iterations 1..T (leading axis), and `initial` (k,): the points observed before.

    `index`: queried point, `centre`: x_t (robust rules query x_t + δ_t), `u`, `v`: chosen candidate and that of the
    adversary (= u if not robust); y, f_at: output and value there. `mean`, `sigma`, `beta`: of u at the query before
    the observation. `error`, `threshold`: the two sides of the test of u; `rejected`, `rejected_v`: it fired (for
    rules that do not eliminate too); `alive` (U,): candidates after the test; `exhausted`: the test of the only
    candidate fired. `evidence` and `gain` (U,): log likelihood and information gain before. `score`: the best case that
    a robust rule reports by, min over δ and v of LCB(x_t + δ). `regret`: max f - f(x_t), or ε-regret. `ok`: sound.
    """

    index: Int[Array, " t"]
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


def beta_of(
    problem: Problem, settings: EliminationSettings, t: Int[Array, ""], gain: Float[Array, " u"]
) -> Float[Array, " u"]:
    """Return β_t of every candidate (U,); `gain` (U,): its information gain. Raises ConfigError for another form."""
    forms = {
        "frequentist": confidence.beta_frequentist(settings.B, settings.R, gain, settings.delta),
        "frequentist_printed": confidence.beta_frequentist(settings.B, settings.R, gain, settings.delta, True),
        "bayes_finite": confidence.beta_bayes_finite(problem.f.shape[0], t, settings.delta),
        "bayes_infinite": confidence.beta_bayes_infinite(
            t, settings.d, settings.a, settings.b, settings.r, settings.delta
        ),
        "bayes_successor": jnp.sqrt(2.0 * settings.d * jnp.log(t**2 / settings.delta)),
    }
    # All are computed: they are a few numbers, and one program then serves all forms.
    return jnp.stack([jnp.broadcast_to(forms[name], gain.shape) for name in BETAS])[_form(settings.beta)]


def _form(beta: str | Int[Array, ""]) -> int | Int[Array, ""]:
    if not isinstance(beta, str):
        return beta
    if beta not in BETAS:
        raise unknown("form of beta", beta, BETAS)
    return BETAS.index(beta)


class _SimulationState(NamedTuple):
    belief: Belief
    alive: Bool[Array, " u"]
    chosen: Tally
    rivals: Tally


class _Plan(NamedTuple):
    """What stays the same during a run: noise variance of the GPs (U,), points of Δ_ε(x), what regret is measured on
    (f, or its worst case near each point), which tests count, and the rule's number."""

    noise: Float[Array, " u"]
    near: Int[Array, "c m"]
    goal: Float[Array, " c"]
    eliminates: Bool[Array, ""]
    rivalry: Bool[Array, ""]
    number: Int[Array, ""]


def run(problem: Problem, rule: str, settings: EliminationSettings, key: Key[Array, ""]) -> Trace:
    """Run one rule for `settings.T` iterations; a pure function to be jitted and mapped over keys, f or truth.

    The key draws initial points (uniform, with replacement), noise and random queries, the same for every rule.
    Checks names only; `problem.check` refuses numbers that make no sense. Raises ConfigError.
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
    """Run every rule with every key; leading axes of the Trace: rules, keys.

    One compiled program serves all rules, keys, and problems and settings of the same sizes (`traced`). `f`, `truth`:
    one per key, in place of the problem's. `together`: all keys of a rule side by side (accelerators), else one after
    another (CPU: a run's rows stay in cache). Raises ConfigError for a rule that is not known, or has no scales.
    """
    for rule in rules:
        if rule not in RULES:
            raise unknown("rule", rule, RULES)
        require_scales(rule, problem.scales)
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
    """Return the settings with arrays in place of numbers and of the form of β: others then need no new compilation."""
    numbers = ("delta", "B", "R", "noise", "standardise", "predictive", "beta")
    values = settings._replace(
        noise=settings.R if settings.noise is None else settings.noise, beta=_form(settings.beta)
    )
    return values._replace(**{name: jnp.asarray(getattr(values, name)) for name in numbers})


def _simulate(
    problem: Problem, rules: tuple[str, ...], number: Int[Array, ""], settings: EliminationSettings, key: Key[Array, ""]
) -> Trace:
    if settings.sigma not in SIGMAS:
        raise unknown("deviation in the test", settings.sigma, SIGMAS)
    many, points = problem.kernels.shape[:2]
    total = problem.initial + settings.T
    place_key, noise_key, random_key = jax.random.split(key, 3)
    start = jax.random.randint(place_key, (problem.initial,), 0, points)
    random = jax.random.randint(random_key, (settings.T,), 0, points)
    errors = problem.noise_std * jax.random.normal(noise_key, (total,))
    plan = _plan(problem, rules, number, settings)

    def given(belief, inputs):
        return _observe(problem, plan, belief, *inputs)[0], None

    def step(state, inputs):
        return _step(problem, plan, rules, settings, state, *inputs)

    prior = jnp.diagonal(problem.kernels, axis1=1, axis2=2)
    belief, _ = jax.lax.scan(given, beliefs.start(prior, total), (start, errors[: problem.initial]))
    state = _SimulationState(belief, jnp.ones(many, bool), empty_tally(many), empty_tally(many))
    inputs = (jnp.arange(1, settings.T + 1), errors[problem.initial :], random)
    _, trace = jax.lax.scan(step, state, inputs)
    return trace._replace(initial=start)


def _plan(problem: Problem, rules: tuple[str, ...], number: Int[Array, ""], settings: EliminationSettings) -> _Plan:
    many, points = problem.kernels.shape[:2]
    level = settings.R if settings.noise is None else settings.noise
    near = jnp.arange(points)[:, None] if problem.neighbours is None else problem.neighbours

    def true_of(names: tuple[str, ...]) -> Bool[Array, ""]:
        return jnp.asarray([rule in names for rule in rules])[number]

    return _Plan(
        noise=jnp.full(many, level**2, jnp.float64),
        near=near,
        goal=jnp.where(true_of(ROBUST), jnp.min(problem.f[near], axis=1), problem.f),
        eliminates=true_of(("he_gp_ucb", "he_stable_opt")),
        rivalry=true_of(("he_stable_opt",)),
        number=number,
    )


def _observe(problem: Problem, plan: _Plan, belief: Belief, index: Array, error: Array) -> tuple[Belief, Array]:
    y = problem.f[index] + error
    rows = jax.lax.dynamic_index_in_dim(problem.kernels, index, 1, keepdims=False)
    return beliefs.condition(belief, rows, index, y, y - problem.means[:, index], plan.noise), y


def _step(
    problem: Problem,
    plan: _Plan,
    rules: tuple[str, ...],
    settings: EliminationSettings,
    state: _SimulationState,
    t: Int[Array, ""],
    error: Float[Array, ""],
    point: Int[Array, ""],
) -> tuple[_SimulationState, Trace]:
    """One iteration of Algorithm 1 or 2: bounds, choice, query, tests, eliminations."""
    before, many = state.belief, len(plan.noise)
    on = beliefs.scale(before, settings.standardise, ~jnp.any(problem.means != 0))
    added = jnp.where(settings.predictive, plan.noise, 0.0)
    mean, sigma = beliefs.moments(before, problem.means, on, added)
    gain = beliefs.information_gain(before, plan.noise)
    beta = beta_of(problem, settings, t, gain if problem.gains is None else problem.gains[:, before.seen])
    evidence, width = beliefs.log_evidence(before, on), beta[:, None] * sigma
    seen = (state.alive, evidence, t, point, plan.near, jnp.asarray(problem.truth), problem.scales)
    choice = switch(rules, plan.number, View(mean + width, mean - width, *seen))
    u, v, index = choice.u, choice.v, choice.index
    after, y = _observe(problem, plan, before, index, error)
    used = sigma if settings.sigma == "before" else beliefs.moments(after, problem.means, on, added)[1]
    level = confidence.xi(t, settings.R, many, settings.delta, settings.xi)

    def tested(tally: Tally, u: Array) -> tuple[Tally, Array, Array, Array]:
        # On the scale of the GPs at this time: outputs that are standardised have another one at every iteration.
        tally = tally.added(u, (y - mean[u, index]) / on.spread, beta[u] * used[u, index] / on.spread)
        return tally, *tally.test(u, level)

    chosen, error_sum, threshold, fired = tested(state.chosen, u)
    rivals, _, _, fired_v = tested(state.rivals, v)
    fired_v = fired_v & plan.rivalry
    alive = without(without(state.alive, v, fired_v & plan.eliminates), u, fired & plan.eliminates)
    kept = (fired & alive[u]) | (fired_v & alive[v])
    record = Trace(
        index=index, centre=choice.centre, u=u, v=v, y=y, f_at=problem.f[index],
        mean=mean[u, index], sigma=sigma[u, index], beta=beta[u], error=error_sum, threshold=threshold,
        rejected=fired, rejected_v=fired_v, alive=alive, exhausted=plan.eliminates & kept,
        evidence=evidence, gain=gain, score=choice.score, regret=jnp.max(plan.goal) - plan.goal[choice.centre],
        ok=after.ok & jnp.isfinite(mean[u, index]), initial=jnp.zeros(0, jnp.int64),
    )  # fmt: skip
    return _SimulationState(after, alive, chosen, rivals), record

"""Algorithms 1 and 2 of HE-GP-UCB, and the rules that they are compared with, as one policy for `metabo.bo.loop`.

The policy chooses its next query as soon as it has observed the last one, so that the test of an observation uses the
bounds by which its point was chosen.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from metabo.bo.policy import Candidates
from metabo.errors import unknown
from metabo.gp import many as beliefs
from metabo.gp.many import Belief, OutputScale
from metabo.methods.elimination import confidence
from metabo.methods.elimination.problem import BETAS, EliminationSettings, Problem
from metabo.methods.elimination.rules import ROBUST, Query, Tally, View, empty_tally, switch, without


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
        "constant": jnp.asarray(settings.B),
    }
    # Compute all of them: they are a few numbers, and one program then serves all forms.
    return jnp.stack([jnp.broadcast_to(forms[name], gain.shape) for name in BETAS])[form_of(settings.beta)]


def form_of(beta: str | Int[Array, ""]) -> int | Int[Array, ""]:
    """Return the place of a form of β in `BETAS`, given by name or place. Raises ConfigError for another name."""
    if not isinstance(beta, str):
        return beta
    if beta not in BETAS:
        raise unknown("form of beta", beta, BETAS)
    return BETAS.index(beta)


class Decision(NamedTuple):
    """The next query and the quantities behind it: the output scale of the GPs, and for every candidate (U,) its mean
    and deviation at the query, β, evidence and information gain."""

    query: Query
    scale: OutputScale
    mean: Float[Array, " u"]
    sigma: Float[Array, " u"]
    beta: Float[Array, " u"]
    evidence: Float[Array, " u"]
    gain: Float[Array, " u"]


class Verdict(NamedTuple):
    """The results of the tests of an observation (fields as in `Trace`)."""

    error: Float[Array, ""]
    threshold: Float[Array, ""]
    rejected: Bool[Array, ""]
    rejected_v: Bool[Array, ""]
    alive: Bool[Array, " u"]
    exhausted: Bool[Array, ""]
    ok: Bool[Array, ""]


class CompetingState(NamedTuple):
    """Posteriors, survivors, the sums for the tests of the chosen candidates and of the adversary's, the next query,
    and the verdict on the last one."""

    belief: Belief
    alive: Bool[Array, " u"]
    chosen: Tally
    rivals: Tally
    decision: Decision
    verdict: Verdict


class Plan(NamedTuple):
    """What stays fixed during a run: the noise variance of the GPs (U,), the points of Δ_ε(x), the goal that regret is
    measured on (f, or its worst case near each point), which tests count, and the rule's number."""

    noise: Float[Array, " u"]
    near: Int[Array, "c m"]
    goal: Float[Array, " c"]
    eliminates: Bool[Array, ""]
    rivalry: Bool[Array, ""]
    number: Int[Array, ""]


def plan_of(problem: Problem, rules: tuple[str, ...], number: Int[Array, ""], settings: EliminationSettings) -> Plan:
    """Return the plan of rule `number` of `rules`."""
    many, points = problem.kernels.shape[:2]
    level = settings.R if settings.noise is None else settings.noise
    near = jnp.arange(points)[:, None] if problem.neighbours is None else problem.neighbours

    def true_of(names: tuple[str, ...]) -> Bool[Array, ""]:
        return jnp.asarray([rule in names for rule in rules])[number]

    return Plan(
        noise=jnp.full(many, level**2, jnp.float64),
        near=near,
        goal=jnp.where(true_of(ROBUST), jnp.min(problem.f[near], axis=1), problem.f),
        eliminates=true_of(("he_gp_ucb", "he_stable_opt")),
        rivalry=true_of(("he_stable_opt",)),
        number=number,
    )


class Competing(eqx.Module):
    """Rule `plan.number` of `rules` on a problem. Every point of the problem may be queried at every iteration.
    `random` (T,) has the points of rule "uniform"."""

    problem: Problem
    plan: Plan
    settings: EliminationSettings
    random: Int[Array, " t"]
    rules: tuple[str, ...] = eqx.field(static=True)
    repeats: bool = eqx.field(static=True, default=True)

    def init(self, candidates: Candidates, key: Key[Array, ""]) -> CompetingState:
        """Begin with all candidates. The pool is that of the problem."""
        many, budget = len(self.plan.noise), self.problem.initial + self.settings.T
        belief = beliefs.start(jnp.diagonal(self.problem.kernels, axis1=1, axis2=2), budget)
        alive, zero, no = jnp.ones(many, bool), jnp.zeros(()), jnp.asarray(False)
        return CompetingState(
            belief, alive, empty_tally(many), empty_tally(many), self.decision(belief, alive),
            Verdict(zero, zero, no, no, alive, no, jnp.asarray(True)),
        )  # fmt: skip

    def decision(self, belief: Belief, alive: Bool[Array, " u"]) -> Decision:
        """Choose the next point: lines 2 to 6 of Algorithm 1, 2 to 4 of Algorithm 2."""
        problem, plan, settings = self.problem, self.plan, self.settings
        t = jnp.maximum(belief.seen - problem.initial + 1, 1)  # the choice before an initial point is never used
        scale = beliefs.scale(belief, settings.standardise, ~jnp.any(problem.means != 0))
        mean, sigma = beliefs.moments(belief, problem.means, scale, self.added())
        gain = beliefs.information_gain(belief, plan.noise)
        beta = beta_of(problem, settings, t, gain if problem.gains is None else problem.gains[:, belief.seen])
        evidence, width = beliefs.log_evidence(belief, scale), beta[:, None] * sigma
        point = self.random[jnp.minimum(t, settings.T) - 1]
        seen = (alive, evidence, t, point, plan.near, jnp.asarray(problem.truth), problem.scales)
        query = switch(self.rules, plan.number, View(mean + width, mean - width, *seen))
        return Decision(query, scale, mean[:, query.point], sigma[:, query.point], beta, evidence, gain)

    def added(self) -> Float[Array, " u"]:
        """Return the noise variance that deviations include."""
        return jnp.where(self.settings.predictive, self.plan.noise, 0.0)

    def select(
        self, state: CompetingState, mask: Bool[Array, " c"], key: Key[Array, ""]
    ) -> tuple[Int[Array, ""], tuple[Decision, Verdict]]:
        """Return the point of the query."""
        return state.decision.query.point, (state.decision, state.verdict)

    def observe(self, state: CompetingState, index: Int[Array, ""], y: Float[Array, ""]) -> CompetingState:
        """Condition on the output and test the candidates that chose the point; initial points are not tested."""
        rows = jax.lax.dynamic_index_in_dim(self.problem.kernels, index, 1, keepdims=False)
        after = beliefs.condition(state.belief, rows, index, y, y - self.problem.means[:, index], self.plan.noise)
        begun = state.belief.seen >= self.problem.initial
        tested = self.tested(state, after, index, y)
        chosen, rivals, alive, verdict = jax.tree.map(
            lambda new, old: jnp.where(begun, new, old),
            tested, (state.chosen, state.rivals, state.alive, state.verdict),
        )  # fmt: skip
        return CompetingState(after, alive, chosen, rivals, self.decision(after, alive), verdict)

    def tested(
        self, state: CompetingState, after: Belief, index: Int[Array, ""], y: Float[Array, ""]
    ) -> tuple[Tally, Tally, Bool[Array, " u"], Verdict]:
        """Return the sums, the survivors and the verdict (lines 8 to 13 of Algorithm 1)."""
        decision, settings, plan = state.decision, self.settings, self.plan
        u, v, many = decision.query.u, decision.query.v, len(plan.noise)
        sigma = decision.sigma
        if settings.sigma == "after":
            sigma = beliefs.moments(after, self.problem.means, decision.scale, self.added())[1][:, index]
        t = jnp.maximum(state.belief.seen - self.problem.initial + 1, 1)
        level = confidence.xi(t, settings.R, many, settings.delta, settings.xi)

        def test(tally: Tally, u: Array) -> tuple[Tally, Array, Array, Array]:
            # On the current scale of the GPs, which changes at every iteration if outputs are standardised.
            spread = decision.scale.spread
            tally = tally.added(u, (y - decision.mean[u]) / spread, decision.beta[u] * sigma[u] / spread)
            return tally, *tally.test(u, level)

        chosen, error, threshold, fired = test(state.chosen, u)
        rivals, _, _, fired_v = test(state.rivals, v)
        fired_v = fired_v & plan.rivalry
        alive = without(without(state.alive, v, fired_v & plan.eliminates), u, fired & plan.eliminates)
        kept = (fired & alive[u]) | (fired_v & alive[v])
        found = Verdict(error, threshold, fired, fired_v, alive, plan.eliminates & kept, after.ok)
        return chosen, rivals, alive, found

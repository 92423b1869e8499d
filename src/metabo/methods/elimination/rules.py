"""How the methods of HE-GP-UCB's paper choose point and candidate, and the test that drops candidates (hegpucb §2, §7).

A rule is a function of what it sees (`View`); `metabo.methods.elimination.simulate` runs them.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from metabo.errors import ConfigError, unknown

RULES = (
    "he_gp_ucb", "mle", "expected_ucb", "a_gp_ucb", "gp_ucb", "uniform",
    "he_stable_opt", "stable_opt", "mle_stable_opt",
)  # fmt: skip
"""How (x_t, u_t) is chosen. gp_ucb and stable_opt use only the candidate `View.truth`. uniform takes random points and,
like mle, the candidate of largest likelihood; expected_ucb reports that candidate too."""
ROBUST = ("he_stable_opt", "stable_opt", "mle_stable_opt")
POWER = 0.9
"""g(t) = t^0.9 of A-GP-UCB (hegpucb §7)."""


class Tally(NamedTuple):
    """Sums over S^u of every candidate (U,): errors η_i, widths β_i σ_i, and |S^u|."""

    error: Float[Array, " u"]
    width: Float[Array, " u"]
    choices: Int[Array, " u"]

    def added(self, u: Int[Array, ""], error: Float[Array, ""], width: Float[Array, ""]) -> "Tally":
        """Return the sums with one more choice of u."""
        return Tally(self.error.at[u].add(error), self.width.at[u].add(width), self.choices.at[u].add(1))

    def test(self, u: Int[Array, ""], xi: Float[Array, ""]) -> tuple[Array, Array, Bool[Array, ""]]:
        """Return |Σ η|, √(ξ|S|) + Σ β σ of candidate u, and whether the first is the larger (Algorithm 1, line 10)."""
        error, bound = jnp.abs(self.error[u]), jnp.sqrt(xi * self.choices[u]) + self.width[u]
        return error, bound, error > bound


class View(NamedTuple):
    """What a rule sees before iteration t: confidence bounds (U, c), survivors, log evidence (U,), and a random point.
    `near`: the points of Δ_ε(x) for each x; `truth`: the candidate for rules that know it; `scales`: length-scales."""

    upper: Float[Array, "u c"]
    lower: Float[Array, "u c"]
    alive: Bool[Array, " u"]
    evidence: Float[Array, " u"]
    t: Int[Array, ""]
    random: Int[Array, ""]
    near: Int[Array, "c m"]
    truth: Int[Array, ""]
    scales: Float[Array, " u"] | None


class Query(NamedTuple):
    """Point x_t, queried point, candidate u_t, adversary's candidate v_t, and its bound there (`Trace.score`)."""

    centre: Int[Array, ""]
    point: Int[Array, ""]
    u: Int[Array, ""]
    v: Int[Array, ""]
    score: Float[Array, ""]


def empty_tally(many: int) -> Tally:
    """Return the sums before any choice."""
    return Tally(jnp.zeros(many), jnp.zeros(many), jnp.zeros(many, jnp.int64))


def highest(scores: Float[Array, "u c"], alive: Bool[Array, " u"]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Return (u, point) of the highest score of a surviving candidate. Ties go to the lowest candidate, then the lowest
    point."""
    best = jnp.argmax(jnp.where(alive[:, None], scores, -jnp.inf))
    return best // scores.shape[1], best % scores.shape[1]


def without(alive: Bool[Array, " u"], u: Int[Array, ""], fired: Bool[Array, ""]) -> Bool[Array, " u"]:
    """Return the survivors without u if its test fired, but never an empty set."""
    rest = alive.at[u].set(alive[u] & ~fired)
    return jnp.where(rest.any(), rest, alive)


def require_scales(scales: Float[Array, " u"] | None) -> Float[Array, " u"]:
    """Return the length-scales of the candidates, for A-GP-UCB. Raises ConfigError if there are none."""
    if scales is None:
        raise ConfigError("rule 'a_gp_ucb' needs the length-scales of the candidates: Problem.scales")
    return scales


def nearest_scale(scales: Float[Array, " u"], chosen: Int[Array, ""], t: Int[Array, ""]) -> Int[Array, ""]:
    """Return A-GP-UCB's candidate: the one whose length-scale is nearest to that of the likeliest candidate divided by
    g(t) = max(1, t^0.9)."""
    return jnp.argmin((scales - scales[chosen] / jnp.maximum(1.0, t**POWER)) ** 2)


def _choice(centre: Array, point: Array, u: Array, v: Array, score: Array) -> Query:
    """Make a query whose types are the same for all rules, so that one program can switch between them."""
    centre, point, u, v = (jnp.asarray(number, jnp.int64) for number in (centre, point, u, v))
    return Query(centre, point, u, v, score)


def _plain(u: Int[Array, ""], point: Int[Array, ""], view: View) -> Query:
    return _choice(point, point, u, u, view.lower[u, point])


def _alone(u: Int[Array, ""], view: View) -> Query:
    return _plain(u, jnp.argmax(view.upper[u]), view)


def _robust(allowed: Bool[Array, " u"], view: View) -> Query:
    """Lines 2 and 3 of Algorithm 2 with the candidates `allowed`: x_t and u_t, then δ_t and v_t."""
    u, centre = highest(jnp.min(view.upper[:, view.near], axis=2), allowed)
    around = jnp.where(allowed[:, None], view.lower[:, view.near[centre]], jnp.inf)
    worst = jnp.argmin(around)
    v, place = worst // around.shape[1], worst % around.shape[1]
    return _choice(centre, view.near[centre, place], u, v, around[v, place])


def choose(rule: str, view: View) -> Query:
    """Return the choice of one of `RULES`. Raises ConfigError for another name, or if A-GP-UCB has no length-scales."""
    many = view.alive.shape[0]
    likeliest = jnp.argmax(view.evidence)
    only = partial(jax.nn.one_hot, num_classes=many, dtype=bool)
    if rule == "he_gp_ucb":
        return _plain(*highest(view.upper, view.alive), view)
    if rule == "mle":
        return _alone(likeliest, view)
    if rule == "expected_ucb":
        return _plain(likeliest, jnp.argmax(jax.nn.softmax(view.evidence) @ view.upper), view)
    if rule == "a_gp_ucb":
        return _alone(nearest_scale(require_scales(view.scales), likeliest, view.t), view)
    if rule == "gp_ucb":
        return _alone(jnp.asarray(view.truth), view)
    if rule == "uniform":
        return _plain(likeliest, view.random, view)
    if rule == "he_stable_opt":
        return _robust(view.alive, view)
    if rule == "stable_opt":
        return _robust(only(view.truth), view)
    if rule == "mle_stable_opt":
        return _robust(only(likeliest), view)
    raise unknown("rule", rule, RULES)


def switch(rules: tuple[str, ...], number: Int[Array, ""], view: View) -> Query:
    """Return the choice of rule `number` of several. Only that one is computed (except under `vmap` over the
    number)."""
    if len(rules) == 1:
        return choose(rules[0], view)
    return jax.lax.switch(number, [partial(choose, rule) for rule in rules], view)

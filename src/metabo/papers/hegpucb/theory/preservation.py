"""Elimination (HE-GP-UCB §5, appendix C): is u* kept, what the errors bound (Eqs. 2, 4, 5), critical iterations.

Algorithm 1 prints σ_i(x_i) in its test, after x_i was observed; the proof has σ_{i-1}(x_i), before. With ξ_t it also
prints π for π² (Theorem 4.1). Both versions are run.
"""

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from metabo.methods.elimination import confidence
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.theory.records import Cell, Statement, StatementPart, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import Ruling, identity, inequality, least_ratio, probability
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.posteriors import posterior
from metabo.papers.hegpucb.theory.regimes import DELTA, SCALES, Played, Regime, play, settings_of, upper_gains, xis

CHECKS = {
    "preservation": "Section 5: the true hyperparameter is kept",
    "elimination": "Eqs. 2, 4 and 5, and critical iterations",
}
RUNS = {"preservation": 1000, "elimination": 200}
ITERATIONS = 60
ABSENT = "absent hills, GP"
"""The case in which wrong candidates can be told: their hills are far higher than f."""


def cases() -> dict[str, Regime]:
    """Return the settings of the checks by name."""
    short = instances.lengthscales(SCALES, 0)
    return {
        "length-scales, GP": Regime(short, True),
        "means, GP": Regime(instances.means(2), True),
        "length-scales, norm": Regime(short, False),
        "one candidate, GP": Regime(instances.lengthscales((0.2,), 0), True),
    }


def sides(
    trace: Trace, candidate: int, xi: Float[np.ndarray, " t"], widths: float = 1.0
) -> tuple[Float[np.ndarray, "n t"], Float[np.ndarray, "n t"]]:
    """Return error (0 where another candidate is chosen) and threshold of the test of `candidate` with ξ_t = `xi` and
    σ_{i-1}, the widths times `widths`. Right up to the first iteration at which it was dropped in the run."""
    own = trace.u == candidate
    error = np.abs(np.cumsum(own * (trace.y - trace.mean), axis=1))
    width = np.cumsum(own * trace.beta * trace.sigma, axis=1)
    return np.where(own, error, 0.0), np.sqrt(xi * np.cumsum(own, axis=1)) + widths * width


def fired(trace: Trace, candidate: int, xi: Float[np.ndarray, " t"], widths: float = 1.0) -> Bool[np.ndarray, "n t"]:
    """Tell at which iterations that test fires."""
    error, threshold = sides(trace, candidate, xi, widths)
    return error > threshold


# --- preservation


def preservation(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check P[u* is dropped] <= δ for the printed test, the repaired one, and ξ_t with π; and that in the same runs a
    wrong candidate is dropped, where there are hills that are not there: a test that drops nothing keeps u* too."""
    count = runs(RUNS["preservation"], share)
    names = (
        "printed",
        "repaired",
        "pi",
        "bare printed",
        "bare",
        "others printed",
        "others",
        "hundred printed",
        "hundred",
    )
    found: dict[str, list[Cell]] = {name: [] for name in names}
    named = cases() | {ABSENT: Regime(instances.means(-1, instances.TALL), True)}
    for place, (name, case) in enumerate(named.items()):
        keys = jax.random.split(jax.random.fold_in(key, place))
        many, own = case.instance.many, case.instance.truth

        def add(into: str, bad: np.ndarray, limit: float = DELTA, *ratio: np.ndarray, name: str = name) -> None:
            found[into].append(cell(probability(int(bad.sum()), count, limit, *ratio), case=name))

        for printed in (True, False):
            played = play(case, settings_of(case, printed, ITERATIONS), keys[int(printed)], count)
            trace, xi = played.trace, xis(played.settings, many, played.settings.xi)
            form, true = " printed" if printed else "", trace.u == own
            ratio = least_ratio(trace.threshold, np.where(true, trace.error, 0.0))
            add("printed" if printed else "repaired", (trace.rejected & true).any(axis=1), DELTA, ratio)
            if name != ABSENT:  # u* is chosen last there, too late for a test without widths to drop it
                add(f"bare{form}", fired(trace, own, xi, 0.0).any(axis=1))
            if not printed:
                pi = xis(played.settings, many, "printed")
                error, threshold = sides(trace, own, pi)
                add("pi", fired(trace, own, pi).any(axis=1), DELTA, least_ratio(threshold, error))
            if name == ABSENT:
                add(f"others{form}", ~(trace.rejected & ~true).any(axis=1), 0.5)
                add(f"hundred{form}", ~((trace.error > 100.0 * trace.threshold) & ~true).any(axis=1), 0.5)

    def made(cells: str, form: str, claim: str) -> list[StatementPart]:
        until = f"by t = {ITERATIONS}"
        return [
            part("kept", f"P[u* is dropped {until}] <= δ, {claim}", "probability", found[cells],
                 control("threshold √(ξ_t |S|) alone", found[f"bare{form}"])),
            part("others", f"P[no wrong candidate is dropped {until}] <= ½, {ABSENT}", "probability",
                 found[f"others{form}"], control("a hundred times the threshold", found[f"hundred{form}"])),
        ]  # fmt: skip

    title = "Preservation of u*"
    return [
        statement(title, "The test with σ_i, as in Algorithm 1 and the definition of C", "§4, §5",
                  made("printed", " printed", "σ_i, constants of Theorems 4.1 and 4.2(A)")),
        statement(title, "The test with σ_{i-1}", "§5, App. C",
                  made("repaired", "", "σ_{i-1}, ξ_t with 3δ_B, β without the factor R"), "repaired"),
        statement(f"{title}, ξ", "σ_{i-1}, and ξ_t with π as Theorem 4.1 prints it", "§4",
                  made("pi", "", "σ_{i-1}, ξ_t = 2R² log(|U|πt²/(3δ))"), "reading"),
    ]  # fmt: skip


# --- equations and critical iterations


def elimination(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the equations at every step, and count critical iterations where wrong candidates are dropped."""
    count = runs(RUNS["elimination"], share)
    played = {
        name: (case, play(case, settings_of(case, False, ITERATIONS), jax.random.fold_in(key, place), count))
        for place, (name, case) in enumerate(cases().items())
    }
    return [*_equations(played), *_critical(jax.random.fold_in(key, len(played)), count)]


def _equations(played: dict[str, tuple[Regime, Played]]) -> list[Statement]:
    cells: dict[str, list[Cell]] = {}
    for name, (case, own) in played.items():
        trace = own.trace
        eta, eps, width = trace.y - trace.mean, trace.y - trace.f_at, trace.beta * trace.sigma
        lower = trace.mean - width
        good = sound(case, own)
        regret, used = trace.regret[good], width[good]

        def add(kind: str, found: Ruling, name: str = name) -> None:
            cells.setdefault(kind, []).append(cell(found, case=name))

        add("eq2 printed", inequality(trace.mean - eta + eps, trace.f_at))
        add("eq2 wrong", inequality(trace.mean + 1.0, trace.f_at))
        add("eq2", identity(trace.f_at, trace.mean + eta - eps))
        add("eq2 swapped", identity(trace.f_at, trace.mean - eta + eps))
        add("eq4", identity(trace.f_at - lower, eta - eps + width))
        add("eq4 swapped", identity(trace.f_at - lower, eps - eta + width))
        add("eq5", inequality(regret, used - eta[good] + eps[good]))
        add("eq5 swapped", inequality(regret, used + eta[good] - eps[good]))
        cells["eq5"][-1]["numbers"]["runs"] = int(good.sum())
    return [
        statement("Eq. 2", "f(x_t) >= μ⁺ - η_t + ε_t", "§5", [
            part("signs", "f(x_t) >= μ⁺(x_t) - η_t + ε_t", "inequality", cells["eq2 printed"],
                 control("f(x_t) >= μ⁺(x_t) + 1", cells["eq2 wrong"]))]),
        statement("Eq. 2", "f(x_t) = μ⁺ + η_t - ε_t, by construction: η and ε are y - μ⁺ and y - f", "§5", [
            part("signs", "f(x_t) = μ⁺(x_t) + η_t - ε_t", "identity", cells["eq2"],
                 control("signs of η and ε exchanged", cells["eq2 swapped"]))], "repaired"),
        statement("Eqs. 4 and 5", "Error of the lower bound, and the regret of an iteration", "App. C", [
            part("error", "e_t = η_t - ε_t + β⁺σ⁺, by construction", "identity", cells["eq4"],
                 control("signs of η and ε exchanged", cells["eq4 swapped"])),
            part("regret", "r_t <= β⁺σ⁺ - η_t + ε_t at every t, on the event of Theorem 3.1 and while u* is kept",
                 "inequality", cells["eq5"], control("signs of η and ε exchanged", cells["eq5 swapped"])),
        ]),
    ]  # fmt: skip


def sound(case: Regime, played: Played) -> Bool[np.ndarray, " n"]:
    """Tell in which runs the true intervals hold at all x and t (Theorem 3.1) and u* is never dropped."""
    one, trace = case.instance, played.trace
    found = posterior(one.kernels[one.truth], one.means[one.truth], instances.R**2, played.f, trace.point, trace.y)
    settings, t = played.settings, np.arange(1, trace.u.shape[1] + 1)
    if case.bayes:
        beta = np.asarray(confidence.beta_bayes_finite(len(one.x), t, settings.delta))
    else:
        gain = upper_gains(one, len(t))[one.truth]
        beta = np.asarray(confidence.beta_frequentist(case.norm, settings.R, gain, settings.delta))
    return (found.distance <= beta).all(axis=1) & trace.alive[:, -1, one.truth]


def criticals(trace: Trace) -> Bool[np.ndarray, "n t"]:
    """Tell which iterations are critical: the test fires, of the last candidate once (the paper would drop it)."""
    dropped = np.diff(trace.alive.sum(axis=2), axis=1, prepend=trace.alive.shape[2]) < 0
    first = trace.exhausted & (np.cumsum(trace.exhausted, axis=1) == 1)
    return dropped | first


def _critical(key: Key[Array, ""], count: int) -> list[Statement]:
    """Hills that are not there are soon known; σ_i in the test drops the true candidate too."""
    case = Regime(instances.means(-1, instances.TALL), True)
    keys = jax.random.split(key)
    kept = play(case, settings_of(case, False, ITERATIONS), keys[0], count)
    alone = Regime(instances.lengthscales((0.2,), 0), True)
    others = {
        "means": (case, play(case, settings_of(case, True, ITERATIONS), keys[1], count)),
        "one candidate": (alone, play(alone, settings_of(alone, True, ITERATIONS), keys[1], count)),
    }
    critical, good = criticals(kept.trace), sound(case, kept)
    number, many = critical[good].sum(axis=1), case.instance.many
    again = np.array([np.sum(u[t + 1 :] == u[t]) for c, u in zip(critical, kept.trace.u, strict=True)
                      for t in np.flatnonzero(c)])  # fmt: skip
    after = ITERATIONS - 1 - np.nonzero(critical)[1]

    def always(less: int, chosen: tuple[str, ...]) -> list[Cell]:
        return [
            cell(inequality(criticals(p.trace).sum(axis=1), c.instance.many - less), case=n, candidates=c.instance.many)
            for n, (c, p) in others.items()
            if n in chosen
        ]

    one = {"case": "means", "candidates": many}
    return [
        statement("Critical iterations", "|C| <= |U|", "§5, App. C", [
            part("kept", "|C| <= |U| - 1 on the event of Theorem 3.1 and while u* is kept, by construction",
                 "inequality",
                 [cell(inequality(number, many - 1), **one, runs=int(good.sum()))],
                 control("|C| <= |U| - 2", [cell(inequality(number, many - 2), **one)])),
            part("always", "|C| <= |U|, test with σ_i", "inequality", always(0, tuple(others)),
                 control("|C| <= |U| - 1 with one candidate", always(1, ("one candidate",)))),
            part("last", "a critical iteration is the last one of its candidate", "inequality",
                 [cell(inequality(again, 0.0), **one)],
                 control("it is the last one of all", [cell(inequality(after, 0.0), **one)])),
        ]),
    ]  # fmt: skip

"""Theorems 4.1 and 4.2 and Lemma 5.3 (HE-GP-UCB §4, §5, appendices C, D, G): the regret of HE-GP-UCB and its bounds.

The bounds take the greedy information gain, which is at most γ_T, under the root, and the largest β_t^{u_t} of a run,
which is at most max_u β_T^u: for the β that is run, they are at most those of the theorems. In β_t of Theorem 4.1, the
algorithm and the bound have an upper value of γ_{t-1} (`upper_gains`), so that β is at least the theorem's.

No policy has R_T > T (max f - min f), and this one, the worst, must exceed a bound that is to say anything: it is the
control. Below it the bounds lie only where |U| is small, T is large, and the range of f is large beside R. `BINDING`
are instances on which they do, chosen by these two numbers and not by the regret of any run.
"""

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.methods.elimination.problem import EliminationSettings
from metabo.methods.elimination.simulate import Trace
from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import INFORMATIVE, Ruling, identity, inequality, least_ratio, probability
from metabo.papers.hegpucb.theory import bounds, instances
from metabo.papers.hegpucb.theory.intervals import UNSURE, rice
from metabo.papers.hegpucb.theory.posteriors import greedy
from metabo.papers.hegpucb.theory.preservation import criticals
from metabo.papers.hegpucb.theory.regimes import DELTA, SCALES, Regime, play, settings_of, xis

CHECKS = {
    "theorem41": "Theorem 4.1: regret for functions with a bounded norm",
    "theorem42": "Theorem 4.2: regret for GP samples",
    "lemma53": "Lemma 5.3: sum of the widths",
}
RUNS = {"regret": 500, "binding": 200, "lemma53": 200}
ITERATIONS = 200
BINDING = {"norm": 1000, "GP": 400}
"""T on the instances whose bound is below T (max f - min f): B = 10 and |U| = 2; hills of height 30 and |U| = 3."""
WORST = "the policy with R_T = T (max f - min f), the worst of all"


def gains(case: Regime, iterations: int) -> Float[np.ndarray, " t"]:
    """Return max_u of the greedy gain of 1..T points: γ_T is at least this, and at most UNSURE times this."""
    found = [
        np.asarray(greedy(k, instances.R**2, iterations + 1))[1:] for k in np.unique(case.instance.kernels, axis=0)
    ]
    return np.max(found, axis=0)


def covered(
    regret: Float[np.ndarray, "n t"], bound: Float[np.ndarray, "n t"], span: Float[np.ndarray, " n"], delta: float
) -> Ruling:
    """Decide P(R_T > bound for some T) <= δ; `span`: the largest regret of an iteration, max f - min f.

    `sees` counts only the T at which the bound is below T times the span: elsewhere every policy meets it. `binds` is
    the share of runs that have such a T, `least` the least ratio of the two, in the median run; `largest_share` is the
    largest share of the bound that is used.
    """
    total = np.cumsum(regret, axis=1)
    worst = np.arange(1, total.shape[1] + 1) * span[:, None]
    binds = bound < worst
    bad = (~(total <= bound)).any(axis=1)
    found = probability(int(bad.sum()), len(total), delta, least_ratio(bound, np.where(binds, total, 0.0)))
    slack = {"regret": float(np.quantile(total[:, -1], 1.0 - delta)), "bound": float(np.median(bound[:, -1]))}
    reach = {"binds": float(binds.any(axis=1).mean()), "least": float(np.median((bound / worst).min(axis=1)))}
    return Ruling(found.verdict, found.numbers | slack | reach | {"largest_share": float((total / bound).max())})


def both(
    regret: Float[np.ndarray, "n t"], bound: Float[np.ndarray, "n t"], values: Float[np.ndarray, "n c"]
) -> tuple[Ruling, Ruling]:
    """Decide coverage for the runs and for the worst policy; `values`: f, or the worst value around each point."""
    span = values.max(axis=1) - values.min(axis=1)
    return tuple(covered(r, bound, span, DELTA) for r in (regret, np.broadcast_to(span[:, None], regret.shape)))


def bound_of(
    case: Regime, settings: EliminationSettings, trace: Trace, gain: Float[np.ndarray, " t"], robust: bool = False
) -> Float[np.ndarray, "n t"]:
    """Return the bound on R_T, or on R_T^ε if `robust`, for T = 1..T of every run."""
    one, t = case.instance, np.arange(1, settings.T + 1)
    beta = np.maximum.accumulate(trace.beta, axis=1)
    norm, infinite = case.norm, settings.beta == "bayes_infinite"
    if case.bayes:  # Lemma 5.4
        norm = float(trace.beta[0, 0] + np.abs(one.means).max() + infinite)
    xi = xis(settings, one.many, settings.xi)
    return bounds.regret_bound(norm, beta, xi, gain, one.many, t, instances.R, robust=robust, infinite=infinite)


def steep(one: instances.Instance, lengthscale: float) -> tuple[float, float]:
    """Return (a, b) of Assumption B.1 for f ~ GP(μ, RBF): those of Rice's formula, for a mean with slopes up to M.

    Let g = f - μ and P[sup |g'| > L] <= a exp(-L²/b). Where M <= 0.8 L, sup |f'| > L needs sup |g'| > L/5, so that
    25b serves; below, a exp(M²/(16b)) in place of a makes the bound at least 1.
    """
    a, b = rice(lengthscale)
    most = float(np.abs(np.diff(one.means, axis=1) / np.diff(one.x[:, 0])).max())
    return a * np.exp(most**2 / (16.0 * b)), 25.0 * b


def binding_norm(norm: float = 10.0) -> Regime:
    """Return two length-scales, and functions of a norm that is large beside R."""
    return Regime(instances.lengthscales((0.3, 0.6), 0, 21), False, norm)


def binding_hill(infinite: bool) -> Regime:
    """Return a hill that is far higher than the intervals are wide; `infinite`: constants of Theorem 4.2(B)."""
    one = instances.one_hill()
    return Regime(one, True, slope=steep(one, 0.1) if infinite else None)


def theorem41(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the frequentist bound, of the algorithm as printed and repaired."""
    case = Regime(instances.lengthscales(SCALES, 0), False)
    smooth = Regime(instances.lengthscales(SCALES, len(SCALES) - 1), False)
    named = {"shortest length-scale": case, "longest length-scale": smooth}
    text, keys = ("Theorem 4.1", "Regret for ||f|| <= B", "§4, App. C"), jax.random.split(key)
    return [
        *_versions(*text, named, keys[0], runs(RUNS["regret"], share), ITERATIONS),
        *_binding(*text, {"norm": binding_norm()}, keys[1], share),
    ]


def theorem42(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check the Bayesian bounds: finite domains (A), and a grid of an infinite one (B)."""
    short = instances.lengthscales(SCALES, 0)
    finite = {"length-scales": Regime(short, True), "means": Regime(instances.means(-1, instances.TALL), True)}
    infinite = {"length-scales": Regime(short, True, slope=rice(SCALES[0]))}
    keys, count = jax.random.split(key, 4), runs(RUNS["regret"], share)
    a = ("Theorem 4.2(A)", "Regret for GP samples, |X| finite", "§4, App. D")
    b = ("Theorem 4.2(B)", "Regret for GP samples, |X| = ∞", "§4, App. D")
    return [
        *_versions(*a, finite, keys[0], count, ITERATIONS),
        *_binding(*a, {"GP": binding_hill(False)}, keys[2], share),
        *_versions(*b, infinite, keys[1], count, ITERATIONS),
        *_binding(*b, {"GP": binding_hill(True)}, keys[3], share),
    ]


def _binding(
    id: str, title: str, where: str, named: dict[str, Regime], key: Key[Array, ""], share: float
) -> list[Statement]:
    """Return the statements on instances whose bound is below T (max f - min f)."""
    title = f"{title}, where the bound is below T (max f - min f)"
    count, (length,) = runs(RUNS["binding"], share), {BINDING[name] for name in named}
    return _versions(f"{id}, binding", title, where, named, key, count, length)


def _versions(
    id: str, title: str, where: str, named: dict[str, Regime], key: Key[Array, ""], count: int, length: int
) -> list[Statement]:
    """Return the statement for Algorithm 1 as printed and repaired, `count` runs of `length` iterations."""
    made = []
    for version in ("printed", "repaired"):
        whole, worst = [], []
        for place, (name, case) in enumerate(named.items()):
            settings = settings_of(case, version == "printed", length)
            played = play(case, settings, jax.random.fold_in(key, 2 * place + (version == "printed")), count)
            bound = bound_of(case, settings, played.trace, gains(case, length))
            for found, cells in zip(both(played.trace.regret, bound, played.f), (whole, worst), strict=True):
                cells.append(cell(found, case=name))
        test = "σ_i and constants as printed" if version == "printed" else "σ_{i-1}, ξ_t with 3δ_B"
        own = part("coverage", f"P[R_T > bound for some T <= {length}] <= δ, {test}", "probability", whole,
                   control(WORST, worst))  # fmt: skip
        made.append(statement(id, title, where, [own], version))
    return made


# --- Lemma 5.3


def lemma53(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check Σ β⁺σ⁺ against its bound with C = 2/log(1 + R^-2), with half of it, and two steps of the proof.

    At T = 1 the bound over the sum is √|U|, whatever is run: shares, `sees` and the control are those of the last T.
    """
    count, own, half, less, less_half = runs(RUNS["lemma53"], share), [], [], [], []
    named = {
        "length-scales, GP": Regime(instances.lengthscales(SCALES, 0), True),
        "means, GP": Regime(instances.means(-1, instances.TALL), True),
        "length-scales, norm": Regime(instances.lengthscales(SCALES, 0), False),
    }
    constant = bounds.width_constant(instances.R)
    before = after = None
    for place, (name, case) in enumerate(named.items()):
        settings = settings_of(case, False, ITERATIONS)
        trace = play(case, settings, jax.random.fold_in(key, place), count).trace
        t, many, gain = np.arange(1, ITERATIONS + 1), case.instance.many, gains(case, ITERATIONS)
        total = np.cumsum(np.where(criticals(trace), 0.0, trace.beta * trace.sigma), axis=1)
        beta = np.maximum.accumulate(trace.beta, axis=1)
        points = np.broadcast_to(t, total.shape)
        for c, g, whole, small in ((constant, gain, own, less), (0.5 * constant, UNSURE * gain, half, less_half)):
            bound = bounds.width_sum(beta, g, many, t, c)
            found, last = inequality(total, bound, T=points), least_ratio(bound[:, -1], total[:, -1]).min()
            whole.append(
                cell(Ruling(found.verdict, found.numbers | {"last_share": 1.0 / last, "sees": last}), case=name)
            )
            small.append(cell(inequality(total[:, -1], bound[:, -1] / INFORMATIVE), case=name))
        if before is None:
            before = trace.sigma**2
            after = before * instances.R**2 / (before + instances.R**2)  # with x_t among the observations
    step = part(
        "variance", "(σ_{t-1})²(x_t) = (σ_{X_t})²(x_t), X_t the first t queries", "identity",
        [cell(identity(before, after))], control("it is (σ_{X_t})²(x_t) + 1", [cell(identity(before, after + 1.0))]),
    )  # fmt: skip
    sound = part(
        "variance", "σ² <= ½ C log(1 + σ²/R²) for σ² <= 1", "inequality", [_concave(constant)],
        control("with half of C", [_concave(0.5 * constant)]),
    )  # fmt: skip
    less_claim = f"a hundredth of the bound at T = {ITERATIONS}"
    return [
        statement("Lemma 5.3", "Some C does: C = 2/log(1 + R^-2)", "§5, App. G", [
            part("sum", f"Σ_{{t not in C}} β⁺σ⁺ <= β_T √(CT|U|γ_T) at every T <= {ITERATIONS}, greedy gain for γ_T",
                 "inequality", own, control(less_claim, less)), sound]),
        statement("Lemma 5.3, half of C", "C = 1/log(1 + R^-2) on these runs, upper bound of γ_T", "App. G", [
            part("sum", "Σ β⁺σ⁺ <= β_T √(½CT|U|γ_T)", "inequality", half, control(less_claim, less_half))], "ours"),
        statement("Lemma 5.3, X_t", "The posterior variance before x_t is that of X_t", "App. G", [step], "proof step"),
    ]  # fmt: skip


def _concave(constant: float) -> Cell:
    variance = np.geomspace(1e-6, 1.0, 200)
    right = 0.5 * constant * np.log1p(variance / instances.R**2)
    return cell(inequality(variance, right, variance=variance), constant=constant)

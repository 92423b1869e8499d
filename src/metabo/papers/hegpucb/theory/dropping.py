"""Theorems 4.1 and 4.2(A) where the test of Algorithm 1 as printed drops u* (HE-GP-UCB §4, appendices C, D).

A bound of all functions and candidates is refuted by one instance on which more than δ of the runs exceed it. Here f
varies from point to point, and the other candidates take it for nearly constant: without u*, HE-GP-UCB stays where it
was best for as long as anybody will run it (β grows like the root of a logarithm; on a finite domain it leaves in the
end, so this says nothing of R_T/T in the limit). The domain has few points, so that γ_T is small and the bound falls
below that regret early. There are two such candidates, since the test drops one of them in a fifth of the runs too.
Where it drops all, Algorithm 1 as printed has no candidate left and ends: regret counts up to there.

The instance was made for this, once it was known how often the printed test drops u* (`preservation`); T and δ were
set on runs with other keys, and T of GP samples was raised from 4000 when one of two keys did not decide it. δ as
printed is small, since a bound hardly depends on it; repaired it is one that 200
runs can support.
"""

import jax
import numpy as np
from jaxtyping import Array, Key

from metabo.papers.engine.theory.records import Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import runs
from metabo.papers.engine.theory.verdicts import Ruling
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.regimes import Regime, play, settings_of
from metabo.papers.hegpucb.theory.regret import WORST, bound_of, covered, gains

CHECKS = {"dropping": "Theorems 4.1 and 4.2(A): regret where the printed test drops u*"}
RUNS = 200
DELTAS = {"printed": 0.01, "repaired": 0.05}
LENGTHSCALES = (0.03, 2.0, 2.2)
"""f is of the first."""
POINTS = {"norm": 5, "GP": 11}
"""Points of [0, 1]."""
NORM = 5.0
LENGTHS = {"norm": 2000, "GP": 6000}
"""T, at which the bound is below the regret of many runs that stay at one point. A share of the replicates has a share
of it too, at least a SHORTEST of it, which decides nothing: the longer runs take a second each."""
SHORTEST = 10
THEOREMS = {"norm": ("Theorem 4.1", "Regret for ||f|| <= B", "§4, App. C"),
            "GP": ("Theorem 4.2(A)", "Regret for GP samples, |X| finite", "§4, App. D")}  # fmt: skip


def cases() -> dict[str, Regime]:
    """Return the instance with f of a bounded norm and with f a GP sample."""
    ones = {name: instances.lengthscales(LENGTHSCALES, 0, points) for name, points in POINTS.items()}
    return {"norm": Regime(ones["norm"], False, NORM), "GP": Regime(ones["GP"], True)}


def dropping(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check both bounds for the algorithm as printed and repaired."""
    count = runs(RUNS, share)
    least = min(max(share, 1 / SHORTEST), 1.0)
    return [
        _bounded(name, case, version, jax.random.fold_in(key, 2 * place + (version == "printed")), count,
                 round(LENGTHS[name] * least))
        for version in DELTAS
        for place, (name, case) in enumerate(cases().items())
    ]  # fmt: skip


def _bounded(name: str, case: Regime, version: str, key: Key[Array, ""], count: int, length: int) -> Statement:
    delta, (id, title, where) = DELTAS[version], THEOREMS[name]
    settings = settings_of(case, version == "printed", length)._replace(delta=delta)
    f, trace, _ = play(case, settings, key, count)
    ended = np.cumsum(trace.exhausted, axis=1) > 0
    bound, span = bound_of(case, settings, trace, gains(case, length)), np.ptp(f, axis=1)
    own = covered(np.where(ended, 0.0, trace.regret), bound, span, delta)
    worst = covered(np.broadcast_to(span[:, None], bound.shape), bound, span, delta)
    lost = ~trace.alive[:, -1, case.instance.truth]
    more = {"dropped": float(lost.mean()), "ended": float(ended[:, -1].mean()), "delta": delta}
    test = "σ_i and constants as printed" if version == "printed" else "σ_{i-1}, ξ_t with 3δ_B"
    whole = part("coverage", f"P[R_T > bound for some T <= {length}] <= δ, {test}, until no candidate is left",
                 "probability", [cell(Ruling(own.verdict, own.numbers | more), case=name)],
                 control(WORST, [cell(worst, case=name)]))  # fmt: skip
    return statement(f"{id}, u* at risk", f"{title}, where the printed test drops u*", where, [whole], version)

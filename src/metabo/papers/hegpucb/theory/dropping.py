"""Theorems 4.1 and 4.2(A) where the test of Algorithm 1 as printed drops u* (HE-GP-UCB §4, appendices C, D).

A bound of all functions and candidates is refuted by one instance on which more than δ of the runs exceed it. Here f
varies from point to point, and the second candidate takes it for nearly constant: without u*, HE-GP-UCB asks where it
was best, for ever. The domain has few points, so that γ_T is small and the bound falls below that regret early.

The instance was made for this, once it was known how often the printed test drops u* (`preservation`); T and δ were
set on runs with other keys. δ is half of that of `regret`: a bound hardly depends on it.
"""

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from metabo.papers.engine.theory.records import Cell, Statement, cell, control, part, statement
from metabo.papers.engine.theory.replicates import generator, runs
from metabo.papers.engine.theory.verdicts import Ruling, probability
from metabo.papers.hegpucb.theory import instances
from metabo.papers.hegpucb.theory.regimes import Played, Regime, play, settings_of
from metabo.papers.hegpucb.theory.regret import WORST, bound_of, covered, gains

CHECKS = {"dropping": "Theorems 4.1 and 4.2(A): regret where the printed test drops u*"}
RUNS = 200
DELTA = 0.05
POINTS, ROUGH, FLAT = 11, 0.03, 2.0
"""Points of [0, 1], and two length-scales; f is of the first."""
NORM = 5.0
LENGTHS = {"norm": 2000, "GP": 6000}
"""T, at which the bound is well below the regret of most runs that stay at one point. A share of the replicates has a
share of it too, at least a SHORTEST of it, which decides nothing: a run of 6000 iterations takes a second."""
SHORTEST = 10
LATE, POWER = 3, 0.9
"""A run's regret grows about linearly if R_T > LATE^POWER R_{T/LATE}; T^POWER is the limit of `growth` too."""
THEOREMS = {"norm": ("Theorem 4.1", "Regret for ||f|| <= B", "§4, App. C"),
            "GP": ("Theorem 4.2(A)", "Regret for GP samples, |X| finite", "§4, App. D")}  # fmt: skip


def cases() -> dict[str, Regime]:
    """Return the instance with f of a bounded norm and with f a GP sample."""
    one = instances.lengthscales((ROUGH, FLAT), 0, POINTS)
    return {"norm": Regime(one, False, NORM), "GP": Regime(one, True)}


def dropping(key: Key[Array, ""], share: float) -> list[Statement]:
    """Check both bounds, and that a run's regret grows less than T^POWER, for the algorithm as printed and repaired."""
    count, made = runs(RUNS, share), []
    lengths = {name: round(full * min(max(share, 1 / SHORTEST), 1.0)) for name, full in LENGTHS.items()}
    for version in ("printed", "repaired"):
        own, chance = [], []
        for place, (name, case) in enumerate(cases().items()):
            keys = jax.random.split(jax.random.fold_in(key, 2 * place + (version == "printed")))
            settings = settings_of(case, version == "printed", lengths[name])._replace(delta=DELTA)
            played = play(case, settings, keys[0], count)
            made.append(_bounded(name, case, played, version))
            queries = generator(keys[1]).integers(0, POINTS, played.trace.point.shape)
            random = played.f.max(axis=1, keepdims=True) - np.take_along_axis(played.f, queries, axis=1)
            own.append(linear(played.trace.regret, name))
            chance.append(linear(random, name))
        claim = f"P[R_T > {LATE}^{POWER} R_(T/{LATE})] <= δ"
        slow = part("growth", claim, "probability", own, control("the same for random queries", chance))
        made.append(statement("No regret, u* at risk", f"R_T of a run grows less than T^{POWER}", "§4", [slow],
                              version))  # fmt: skip
    return made


def _bounded(name: str, case: Regime, played: Played, version: str) -> Statement:
    id, title, where = THEOREMS[name]
    trace, length = played.trace, played.settings.T
    bound, span = bound_of(case, played.settings, trace, gains(case, length)), np.ptp(played.f, axis=1)
    found, worst = (covered(r, bound, span, DELTA) for r in (trace.regret, np.broadcast_to(span[:, None], bound.shape)))
    lost = float((~trace.alive[:, -1, case.instance.truth]).mean())
    own = cell(Ruling(found.verdict, found.numbers | {"dropped": lost}), case=name)
    test = "σ_i and constants as printed" if version == "printed" else "σ_{i-1}, ξ_t with 3δ_B"
    whole = part("coverage", f"P[R_T > bound for some T <= {length}] <= δ, {test}", "probability", [own],
                 control(WORST, [cell(worst, case=name)]))  # fmt: skip
    return statement(f"{id}, u* at risk", f"{title}, where the printed test drops u*", where, [whole], version)


def linear(regret: Float[np.ndarray, "n t"], name: str) -> Cell:
    """Decide whether at most δ of the runs have a regret that grows about linearly from T/LATE to T."""
    total, length = np.cumsum(regret, axis=1), regret.shape[1]
    grows = total[:, -1] > LATE**POWER * total[:, length // LATE - 1]
    return cell(probability(int(grows.sum()), len(total), DELTA), case=name, T=length)

"""Checks of learned priors of GP parameters against the number of domains (mphd §3.2, Figures 5, 6, 10, 11)."""

from collections.abc import Sequence

from scipy.stats import spearmanr

from metabo.papers.engine.claims.comparing import name
from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import (
    FAILED,
    LEVEL,
    REPLICATED,
    WEAK,
    Finding,
    counted,
    order,
    together,
    trend,
)


def settles(evidence: Evidence, parameters: Sequence[str]) -> Finding:
    """From the fewest to the most domains, the first number of each prior spreads less over seeds (Levene) and its mean
    comes nearer to the truth: both, with p < 0.05 replicated, else weak; one of them does not: not replicated."""
    return together((_settles(evidence, parameter) for parameter in parameters), "parameters")


def _settles(evidence: Evidence, parameter: str) -> Finding:
    few, many = _ends(evidence, parameter)
    p = float(evidence.table("levene").set_index("parameter").at[parameter, "p"])
    truth = float(evidence.table("truth").set_index("parameter").at[parameter, "first"])
    nearer = abs(many["mean"] - truth) < abs(few["mean"] - truth)
    steadier = many["std"] < few["std"]
    verdict = FAILED if not (nearer and steadier) else REPLICATED if p < LEVEL else WEAK
    said = f"{parameter}: {few['mean']:.3g} ± {few['std']:.2g} with {few['train']:.0f} domains, "
    said += f"{many['mean']:.3g} ± {many['std']:.2g} with {many['train']:.0f}; truth {truth:g}, Levene p = {p:.2g}"
    return Finding(verdict, said, float(many["mean"]), unit="first number of the prior")


def _ends(evidence: Evidence, parameter: str):
    """Return the rows of `convergence` with the fewest and the most domains."""
    rows = evidence.table("convergence")
    rows = rows[rows["parameter"] == parameter].sort_values("train")
    return rows.iloc[0], rows.iloc[-1]


def steadier(evidence: Evidence, parameter: str) -> Finding:
    """CNT: with the most domains the densities vary less over seeds, and diverge less from the truth, than with the
    fewest."""
    few, many = _ends(evidence, parameter)
    said = f"{parameter}: variance of the density over seeds {few['spread']:.3g} to {many['spread']:.3g}, divergence "
    said += f"from the truth {few['kl']:.3g} to {many['kl']:.3g} nats, "
    said += f"{few['train']:.0f} to {many['train']:.0f} domains"
    holds = bool(many["spread"] < few["spread"] and many["kl"] < few["kl"])
    return Finding(counted(holds), said, float(many["kl"]), unit="nats")


def nll_falls(evidence: Evidence) -> Finding:
    """Mean and variance over seeds of the test NLL fall with the number of domains."""
    row = evidence.table("nll_trend").iloc[0]
    parts = [(f"{kind} of the test NLL", row[kind], row[f"{kind}_p"]) for kind in ("mean", "variance")]
    return together((trend(*part) for part in parts), "trends")


def divergence_falls(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """The divergence from the true length-scale prior falls with the number of domains, for each method, over seeds."""
    rows = evidence.table("divergence")
    parts = [(m, rows[rows["method"] == m]) for m in methods]
    return together((trend(name(m), *spearmanr(own["train"], own["kl"])) for m, own in parts if len(own)), "methods")


def lower_divergence(evidence: Evidence, method: str, than: str = "mphd_non_nn") -> Finding:
    """ORD: at every number of domains, the divergence is below that of the prior without a network, paired by seed."""
    rows = evidence.table("difference")
    own = rows[rows["method"] == method].sort_values("train")
    label = f"{name(method)} minus {name(than)} with {{:.0f}} domains:"
    gaps = own[["train", "difference", "low", "high"]].to_numpy()
    found = [order(label.format(train), estimate, unit="nats") for train, *estimate in gaps]
    return together(found, "numbers of domains", 1)


def spread_falls(evidence: Evidence) -> Finding:
    """The standard deviation of every estimate falls with the number of sub-datasets."""
    parts = [(row.parameter, row.spearman, row.p) for row in evidence.table("trend").itertuples()]
    return together((trend(*part) for part in parts), "parameters")


def noise_stays_away(evidence: Evidence, least: float) -> Finding:
    """CNT: with the most domains, the noise prior's shape spreads less and is further than two deviations from the
    truth, and a mean mass of at least `least` lies where the paper sees most of it."""
    few, many = _ends(evidence, "noise")
    truth = float(evidence.table("truth").set_index("parameter").at["noise", "first"])
    mass = evidence.table("noise_mass").sort_values("train").iloc[-1]
    away = abs(many["mean"] - truth) > 2 * many["std"]
    said = f"shape {many['mean']:.3g} ± {many['std']:.2g}, truth {truth:g}; ± {few['std']:.2g} with the fewest domains"
    shape = Finding(counted(bool(away and many["std"] < few["std"])), said, float(many["mean"]), unit="shape")
    over = f"{mass['low']:.2f} to {mass['high']:.2f} over seeds"
    said = f"mass in [0, 2e-4] {mass['mean']:.2f} ({over}), {least:g} wanted"
    return together([shape, Finding(counted(mass["mean"] >= least), said, float(mass["mean"]), unit="mass")])

"""Checks of the synthetic studies of HyperBO: landscapes, estimated posteriors, costs, transfer (hyperbo §5, §6.3)."""

from collections.abc import Sequence

from scipy.stats import spearmanr

from metabo.papers.engine.claims.evidence import Evidence
from metabo.papers.engine.claims.verdicts import Finding, counted, interval, share, together, trend, untestable

WORDS = {"mle": "MLE", "unbiased": "unbiased estimate", "pretrained": "pre-trained GP", "truth": "truth"}
WORDS |= {"single_task": "single-task GP"}


def minima_differ(evidence: Evidence, least: float = 0.5) -> Finding:
    """CNT: along each parameter, the minima of the two losses differ in more than a share of the draws."""
    found = []
    for row in evidence.table("differ").itertuples():
        count, of = round(row.share * row.of), int(row.of)
        label = f"draws in which the minima along the {row.parameter} differ"
        found.append(share(count, of, label, row.share > least, "share of draws", independent=True))
    return together(found, "parameters")


def drifts(evidence: Evidence, models: Sequence[str], functions: int) -> Finding:
    """The median divergence from the true posterior grows with the observations, 0 to 4 (Spearman, p < 0.05)."""
    rows = evidence.table("kl")
    found = []
    for model in models:
        own = rows[(rows["model"] == model) & (rows["functions"] == functions)].sort_values("observations")
        values = own["median"].to_numpy()
        listed = ", ".join(f"{v:.3g}" for v in values)
        label = f"{WORDS[model]}, N = {functions}: median divergence {listed} after 0 to {len(values) - 1} observations"
        found.append(trend(label, *spearmanr(own["observations"], values), rises=True))
    return together(found, "models")


def variance_ratios(evidence: Evidence, most: float = 4.0) -> Finding:
    """CNT: the mean variance ratios to the truth, (N - t)/N of MLE and 1 when rescaled, have |z| of at most `most`."""
    rows = evidence.table("variance")
    furthest = rows.loc[rows["z"].abs().idxmax()]
    said = f"{len(rows)} cells: largest |z| {abs(furthest['z']):.2f} (ratio {furthest['ratio']:.3f}, expected "
    said += f"{furthest['expected']:.3f}, {WORDS[furthest['model']]}, N = {furthest['functions']:.0f})"
    lowest = rows[rows["model"] == "mle"].sort_values("expected").iloc[0]
    said += f"; MLE as low as {lowest['ratio']:.3f}"
    return Finding(counted(bool((rows["z"].abs() <= most).all())), said, float(furthest["z"]), unit="z")


def more_functions_help(evidence: Evidence, few: int, many: int) -> Finding:
    """CNT: with `many` functions every model's median divergence is lower, after any number of observations, and
    rescaling changes it less."""
    wide = evidence.table("kl").pivot(index=["model", "observations"], columns="functions", values="median")
    lower = wide[many] < wide[few]
    label = f"(model, observations) with a lower divergence at N = {many} than at {few}"
    counts = share(int(lower.sum()), len(lower), label, bool(lower.all()), "share of cells")
    gain = (wide.loc["mle"] - wide.loc["unbiased"]).abs().mean()
    said = f"rescaling changes the median divergence by {gain[few]:.3g} at N = {few}, {gain[many]:.3g} at {many}"
    return together([counts, Finding(counted(gain[many] < gain[few]), said, float(gain[many]), unit="nats")])


def nearest_share(evidence: Evidence, least: float) -> Finding:
    """CNT: the pre-trained GP is nearer to the truth than both estimates in at least a share of the draws of a cell."""
    found = []
    for row in evidence.table("wins").sort_values("share").itertuples():
        label = "draws in which the pre-trained GP is nearest, "
        label += f"N = {row.functions:.0f}, {row.observations:.0f} observations"
        count, of = round(row.share * row.of), int(row.of)
        found.append(share(count, of, label, row.share >= least, "share of draws", independent=True))
    return together(found, "cells")


def exponents(evidence: Evidence) -> Finding:
    """CNT: every fitted exponent that has an accepted range lies in it."""
    rows = evidence.table("exponent").dropna(subset=["lowest", "highest"])
    found = []
    for row in rows.itertuples():
        said = f"{row.objective.upper()} {row.row}, {row.resource} against {row.axis}: exponent "
        said += f"{interval(row.slope, row.low, row.high)}, accepted {row.lowest:g} to {row.highest:g}"
        inside = row.lowest <= row.slope <= row.highest
        found.append(Finding(counted(inside), said, row.slope, row.low, row.high, "exponent"))
    return together(found, "exponents")


def model_orders(evidence: Evidence, least: float) -> Finding:
    """CNT: in at least a share of the draws, the three models have the printed order, for each of the four losses."""
    rows = evidence.table("order")
    found = []
    for row in rows[rows["comparison"].str.count("<") == 2].itertuples():
        count, of = round(row.share * row.of), int(row.of)
        words = " < ".join(WORDS[model] for model in row.comparison.split(" < "))
        label = f"draws with {words} in {row.metric}"
        found.append(share(count, of, label, row.share >= least, "share of draws", independent=True))
    return together(found, "losses")


def covers_better(evidence: Evidence, model: str, other: str) -> Finding:
    """CNT: the mean coverage of `other`'s 95 and 99 % bands is below nominal, and `model`'s is nearer to nominal."""
    rows = evidence.table("coverage").pivot(index="metric", columns="model", values="mean")
    found = []
    for metric, nominal in (("coverage_95", 0.95), ("coverage_99", 0.99)):
        own, theirs = float(rows.at[metric, model]), float(rows.at[metric, other])
        said = f"mean coverage of {nominal:.0%} bands: {WORDS[model]} {own:.3f}, {WORDS[other]} {theirs:.3f}"
        holds = theirs < nominal and abs(own - nominal) < abs(theirs - nominal)
        found.append(Finding(counted(holds), said, own - theirs, unit="share covered"))
    return together(found, "bands")


def stays_constant(evidence: Evidence, most: float = 1e-8) -> Finding:
    """CNT: along a training run EKL minus NLL moves by at most `most` nats on one block, by more in the controls."""
    moved = evidence.table("moved").set_index("kind")["largest"]
    if "one_block" not in moved:
        return untestable("no run on one block")
    controls = moved.drop("one_block")
    listed = ", ".join(f"{kind.replace('_', ' ')} {value:.2g}" for kind, value in controls.items())
    said = f"EKL minus NLL moves by at most {moved['one_block']:.2g} nats on one block; controls: {listed}"
    holds = moved["one_block"] <= most and bool((controls > most).all())
    return Finding(counted(holds), said, float(moved["one_block"]), unit="nats")

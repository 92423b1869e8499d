"""How far training goes: losses and regret of the same method after more and more steps (hyperbo_x12)."""

from collections.abc import Iterable

import pandas as pd

from metabo.artefacts.settings import settings
from metabo.errors import DataError
from metabo.metrics.inference import differences
from metabo.metrics.runs import Runs, repetitions
from metabo.papers.engine.claims.comparing import Moment, at_moment
from metabo.plan.runs import RunId

CONSTANT, DECAYING = "constant rate", "decaying rate"
PLANNED = {f"ladder_constant_{steps}": (CONSTANT, steps, 1e-3) for steps in (200, 500, 1000, 2000, 5000)}
PLANNED |= {f"ladder_decaying_{steps}": (DECAYING, steps, 3e-3) for steps in (2000, 5000)}
PLANNED["ladder_published"] = (CONSTANT, 50_000, 1e-3)
"""Rungs of config.yaml: kind, steps, first rate."""
RECORDED, PLANNED_ONLY = "recorded", "planned"
"""Where a rung's steps and rate come from: the record of its training, or PLANNED."""


def rungs(paths: Iterable[str]) -> pd.DataFrame:
    """Return split, kind (CONSTANT or DECAYING), steps, rate (the first) and origin (RECORDED or PLANNED_ONLY) of the
    priors behind tables of results, in the order of kind and steps.

    A table without a record of its training has what the default scale sets for its split (PLANNED). Raises DataError
    for one of another split.
    """
    rows = []
    for row in settings(paths).to_dict("records"):
        if row["record"] == "complete" and pd.notna(row["learning_rate"]):
            kind = DECAYING if "decay" in row["training"] else CONSTANT
            rows.append((row["split"], kind, int(row["steps"]), float(row["learning_rate"]), RECORDED))
        elif row["split"] in PLANNED:
            rows.append((row["split"], *PLANNED[row["split"]], PLANNED_ONLY))
        elif row["record"] != "complete":
            raise DataError(f"ladder of training: split '{row['split']}' has no record of its training; make it again")
    found = pd.DataFrame(rows, columns=["split", "kind", "steps", "rate", "origin"]).drop_duplicates()
    return found.sort_values(["kind", "steps"]).reset_index(drop=True)


def climb(places: pd.DataFrame, runs: Runs, losses: pd.DataFrame) -> pd.DataFrame:
    """Return split, kind, steps, metric, prior_seed, value: one row per prior.

    Metrics: train_nll, test_nll (nats, mean over the test tasks of the space, then over spaces) and area (mean regret
    over all queries and test tasks). `places`: `rungs`; `runs`: regrets, methods named ``method@split``; `losses`:
    evaluations of the same splits. Raises DataError for a split without runs or losses.
    """
    values = repetitions(runs)
    rows = []
    for place in places.to_dict("records"):
        own = [run for run in runs.methods if RunId.parse(run).split == place["split"]]
        evaluated = losses[losses["split"] == place["split"]]
        if len(own) != 1 or evaluated.empty:
            raise DataError(
                f"ladder of training: split '{place['split']}' has {len(own)} runs, {len(evaluated)} losses"
            )
        seeds = runs.prior_seeds[own[0]]
        areas = {seed: float(v.mean()) for seed, v in zip(seeds, values[own[0]], strict=True)}
        parts = {"area": areas}
        for metric in ("train_nll", "test_nll"):
            of_metric = evaluated[evaluated["metric"] == metric]
            of_space = of_metric.groupby(["prior_seed", "space"])["value"].mean()
            parts[metric] = of_space.groupby("prior_seed").mean().to_dict()
        rows += [
            {"split": place["split"], "kind": place["kind"], "steps": place["steps"], "metric": metric,
             "prior_seed": int(seed), "value": value}
            for metric, by_seed in parts.items() for seed, value in by_seed.items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def against_random(places: pd.DataFrame, runs: Runs, reference: str = "rand", seed: int = 0) -> pd.DataFrame:
    """Return the regret of each rung minus that of random search: split, kind, steps, measure, difference, low, high
    (95 % interval of a new data set, `metabo.metrics.differences`) and verdict.

    Measures: "first query", by which a prior shows whether its mean is learned; "last query"; and "area", the mean over
    all queries. Verdict: "ahead" or "behind" if the interval is, else "undecided", as for a single fold, which has no
    interval (NaN). `places`: `rungs`; `runs`: as for `climb`, with `reference`.
    """
    moments: dict[str, Moment] = {"first query": 1, "last query": runs.last, "area": "area"}
    rows = []
    for place in places.to_dict("records"):
        own = [run for run in runs.methods if RunId.parse(run).split == place["split"]]
        for measure, moment in moments.items():
            here, _ = at_moment(runs.select([*own, reference]), moment)
            gap = differences(here, reference, [here.last], seed).iloc[0]
            verdict = "ahead" if gap["high"] < 0 else "behind" if gap["low"] > 0 else "undecided"
            key = {"split": place["split"], "kind": place["kind"], "steps": place["steps"], "measure": measure}
            found = {"difference": gap["difference"], "low": gap["low"], "high": gap["high"], "verdict": verdict}
            rows.append(key | found)
    return pd.DataFrame(rows)


def summary(climbed: pd.DataFrame) -> pd.DataFrame:
    """Return split, kind, steps, metric, mean, std (ddof 1 over priors, NaN for one), priors."""
    groups = climbed.groupby(["split", "kind", "steps", "metric"], sort=False)["value"]
    return groups.agg(mean="mean", std="std", priors="count").reset_index()


def overfitting(climbed: pd.DataFrame) -> pd.DataFrame:
    """Return, per kind of rate, the steps with the least Test NLL, and how far it rises from there to the last rung:
    kind, best_steps, least, last, rise (nats; positive: more training made it worse), priors.

    Over the pre-training seeds that all rungs of the kind have: another prior has another loss at any step.
    """
    rows = []
    for kind, losses in climbed[climbed["metric"] == "test_nll"].groupby("kind", sort=False):
        seeds = set.intersection(*(set(rung["prior_seed"]) for _, rung in losses.groupby("split")))
        own = summary(losses[losses["prior_seed"].isin(seeds)]).sort_values("steps")
        best, last = own.loc[own["mean"].idxmin()], own.iloc[-1]
        rows.append({
            "kind": kind, "best_steps": best["steps"], "least": best["mean"], "last": last["mean"],
            "rise": last["mean"] - best["mean"], "priors": len(seeds),
        })  # fmt: skip
    return pd.DataFrame(rows)

"""How many queries methods need to reach one target (MPHD §1, "sample efficiency"), and how much their regret still
falls late in a run (§4.3, "plateau")."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from metabo.metrics.runs import Runs, paired
from metabo.metrics.speedups import first_time
from metabo.papers.mphd.metrics import differences

CENSORED = 2.0
"""A run that never gets there counts as one that would need this many times its queries."""


def query_savings(parts: Mapping[str, Runs], methods: Sequence[str], reference: str, seed: int) -> pd.DataFrame:
    """Return a row for each method beside the `reference`: doublings of the queries that the method needs, over those
    that the reference needs, to reach what the worse of the two ends with.

    `parts`: the runs of each space. The target of a task is the higher of the two methods' median last regrets over
    seeds, so that neither is favoured. Counted is the first query at which a run is at the target or below, or CENSORED
    times all queries if none is. Columns as in `differences`, whose intervals these are, of log2(method's queries /
    reference's): above 0, the reference is faster; 1 is half the queries. The intervals for this suite leave out that
    all seeds share a target. `reached`: the share of the reference's runs that get there.
    """
    rows = []
    for method in [m for m in methods if m != reference]:
        counted: dict[str, Runs] = {}
        reached = []
        for space, runs in parts.items():
            pair = runs.select([method, reference])
            both = paired(pair, "run")
            target = np.median(both[..., -1], axis=1).max(axis=0)
            needed = first_time(both <= target[None, None, :, None])
            reached.append(np.isfinite(needed[1]).mean())
            doublings = np.log2(np.where(np.isfinite(needed), needed, CENSORED * both.shape[-1]))
            counted[space] = _numbers(pair, doublings)
        rows.append(_compared(counted, method, reference, seed).assign(reached=float(np.mean(reached))))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def late_falls(
    parts: Mapping[str, Runs], methods: Sequence[str], reference: str, start: int, seed: int, limit: float = 0.1
) -> pd.DataFrame:
    """Return two rows for each method beside the `reference`: the share of its mean regret at iteration `start` that it
    keeps to the last, minus that share of the reference (`against` "reference"), and minus 1 - `limit` ("limit").

    Columns as in `differences`, whose intervals these are, of ratios of means as their linear approximations vary
    (delta method); `since` is `start`, `fall` the method's own fall as a share. No rows for shorter runs, nor where a
    mean is 0.
    """
    first = next(iter(parts.values()))
    rows = []
    for method in [m for m in methods if m != reference and first.last > start]:
        pairs = {space: runs.select([method, reference]) for space, runs in parts.items()}
        before, after = (
            {space: paired(pair.at(t), "run")[..., 0] for space, pair in pairs.items()} for t in (start, first.last)
        )
        means = [np.mean([of[space].mean(axis=(1, 2)) for space in pairs], axis=0) for of in (before, after)]
        if not means[0].min() > 0:
            continue
        kept = means[1] / means[0]
        shares = {space: (kept + ((after[space].T - kept * before[space].T) / means[0])).T for space in pairs}
        bounds = {space: np.stack([own[0], np.full_like(own[0], 1 - limit)]) for space, own in shares.items()}
        for against, values in (("reference", shares), ("limit", bounds)):
            counted = {space: _numbers(pair, values[space]) for space, pair in pairs.items()}
            rows.append(_compared(counted, method, reference, seed).assign(against=against, fall=float(1 - kept[0])))
    return pd.concat(rows, ignore_index=True).assign(since=start) if rows else pd.DataFrame()


def _numbers(pair: Runs, values: Float[np.ndarray, "2 q k"]) -> Runs:
    """Return runs of two methods with one number each in place of their curves; `values` as `paired` orders runs."""
    priors = max(pair.prior_seeds.values(), key=len)
    shaped = values.reshape(2, len(priors), -1, len(pair.tasks), 1)
    return replace(
        pair,
        values=dict(zip(pair.methods, shaped, strict=True)),
        prior_seeds=dict.fromkeys(pair.methods, priors),
        iterations=pair.iterations[-1:],
    )


def _compared(parts: Mapping[str, Runs], method: str, reference: str, seed: int) -> pd.DataFrame:
    last = int(next(iter(parts.values())).last)
    return differences(parts, [method, reference], reference, [last], seed)

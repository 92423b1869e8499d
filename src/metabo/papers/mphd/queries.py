"""How many queries a method needs to reach what another one ends with (MPHD §1, "sample efficiency"), and how much its
regret still falls late in a run (§4.3, "plateau")."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from metabo.metrics.runs import Runs, paired
from metabo.metrics.speedups import first_time
from metabo.papers.mphd.metrics import differences

CENSORED = 2.0
"""A run that never gets there counts as one that would need this many times its queries."""


def late_falls(
    parts: Mapping[str, Runs], methods: Sequence[str], reference: str, start: int, seed: int
) -> pd.DataFrame:
    """Return a row for each method beside the `reference`: by how much more its regret falls from iteration `start` to
    the last. Columns as in `differences`, whose intervals these are; `since` is `start`. No rows for shorter runs."""
    first = next(iter(parts.values()))
    if first.last <= start:
        return pd.DataFrame()
    rows = []
    for method in [m for m in methods if m != reference]:
        fallen = {}
        for space, runs in parts.items():
            pair = runs.select([method, reference])
            before, after = pair.at(start), pair.at(pair.last)
            fallen[space] = replace(after, values={m: before.values[m] - after.values[m] for m in pair.methods})
        rows.append(differences(fallen, [method, reference], reference, [first.last], seed))
    return pd.concat(rows, ignore_index=True).assign(since=start) if rows else pd.DataFrame()


def query_savings(parts: Mapping[str, Runs], methods: Sequence[str], reference: str, seed: int) -> pd.DataFrame:
    """Return a row for each method beside the `reference`: doublings of the queries that the method needs, over those
    that the reference needs, to reach what the method itself ends with.

    `parts`: the runs of each space. The target of a task is the method's median last regret over seeds. Both need the
    first query at which a run is at the target or below, or CENSORED times all queries if none is. Columns as in
    `differences`, whose intervals these are, of log2(method's queries / reference's): above 0, the reference is faster;
    1 is half the queries. `reached`: the share of the reference's runs that get there.
    """
    rows = []
    for method in [m for m in methods if m != reference]:
        counted: dict[str, Runs] = {}
        reached = []
        for space, runs in parts.items():
            pair = runs.select([method, reference])
            both = paired(pair, "run")
            target = np.median(both[0, ..., -1], axis=0)
            needed = first_time(both <= target[None, None, :, None])
            reached.append(np.isfinite(needed[1]).mean())
            doublings = np.log2(np.where(np.isfinite(needed), needed, CENSORED * both.shape[-1]))
            priors = max(pair.prior_seeds.values(), key=len)
            shaped = doublings.reshape(2, len(priors), -1, len(runs.tasks), 1)
            counted[space] = replace(
                pair,
                values=dict(zip(pair.methods, shaped, strict=True)),
                prior_seeds=dict.fromkeys(pair.methods, priors),
                iterations=runs.iterations[-1:],
            )
        own = differences(counted, [method, reference], reference, [int(next(iter(parts.values())).last)], seed)
        rows.append(own.assign(reached=float(np.mean(reached))))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()

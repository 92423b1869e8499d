"""The numbers behind the pages of findings of MPHD, cm-BO and HE-GP-UCB are those of the recorded verdicts."""

import re

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from scipy.stats import t as student

from metabo.papers.hegpucb.studies import summaries
from tests.docs.findings import DETAILS, FLAT, JUDGED, RECORDED, ROOT, judged


def test_intervals_of_mphd_are_those_of_its_recorded_verdicts():
    beside = [pd.read_csv(table).query("role == 'beside'")["said"] for table in JUDGED["mphd"]]
    said = " ".join([*(row.said for one in judged("MPHD") for row in (one.whole, *one.parts)), *pd.concat(beside)])
    section = " ".join(DETAILS["MPHD"].split())
    intervals = re.findall(r"(-?\d[\d.]*) (\[-?[\d.]+, -?[\d.]+\])", section)
    assert len(intervals) == 37
    missing = [f"{value} {bounds}" for value, bounds in intervals if f" {value} {bounds}" not in said]
    assert missing == [_within_seeds(1), _within_seeds(2)]
    pieces = [pd.read_csv(table).query("claim == 'M28' and role == 'claim'")["said"] for table in JUDGED["mphd"]]
    (wins,) = re.findall(r"over 4 tests: (\d+) of (\d+)", " ".join(pd.concat(pieces)))
    assert "the lowest in {} of {} on these tables".format(*wins) in section
    beside = {one.whole.claim: one.whole for one in judged("MPHD")}
    assert (beside["M28"].verdict, beside["M28"].cause) == ("not testable", "gate")
    assert {beside[claim].cause for claim in ("M11", "M23")} == {"untested"}


def _within_seeds(least):
    """Return the rank correlation of divergence and number of domains, from `least` on, of each seed of the linear
    network: their mean with its interval."""
    study = pd.read_parquet(RECORDED / "studies" / "mphd_divergence.parquet").query("output == 'linear'")
    means = study[study["train"] >= least].groupby(["seed", "train"])["kl"].mean().unstack()
    found = [spearmanr(means.columns.astype(float), own).statistic for own in means.to_numpy()]
    mean, half = np.mean(found), student.ppf(0.975, len(found) - 1) * np.std(found, ddof=1) / np.sqrt(len(found))
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def test_in_how_many_cells_of_its_grid_he_gp_ucb_is_ahead_of_mle():
    """On the paper's page and in the notes, with the differences by β in (d)."""
    ending = pd.read_parquet(RECORDED / "studies" / "hegpucb_sensitivity.parquet")
    orders = summaries.cell_orders(ending)
    orders = orders[(orders["method"] == "mle") & (orders["measure"] == "cumulative")]
    counts = summaries.verdict_counts(orders).set_index("problem")
    places = ("lengthscale", "period", "decomposition", "mean")
    (a, of_a), (b, of_b), (c, of_c), (d, of_d) = ((counts.at[p, "lower"], counts.loc[p].iloc[2:].sum()) for p in places)
    higher = [str(counts.at[p, "higher"]) for p in places]
    cells = ending[ending["problem"] == "mean"].groupby("cell")[
        ["beta", "noise", "standardise", "predictive", "height", "width"]
    ]
    settings = cells.first()
    first = settings.drop(columns="beta").eq(settings.drop(columns="beta").iloc[0]).all(axis=1)
    gaps = orders[orders["problem"] == "mean"].set_index("cell").loc[settings.index[first]]
    by_beta = {settings.at[cell, "beta"]: row for cell, row in gaps.iterrows()}
    page, notes = (
        " ".join((ROOT / "docs" / name).read_text().split()) for name in ("papers/hegpucb.md", "replication-notes.md")
    )
    assert f"grid of other settings ({of_a + of_b + of_c + of_d} cells)" in page
    assert f"{a} of {of_a} cells of (a), none of {of_b} of (b), {c} of {of_c} of (c) and {d} of {of_d} of (d)" in page
    assert f"{a} of {of_a} in (a), {b} of {of_b} in (b), {c} of {of_c} in (c) and {d} of {of_d} in (d)" in notes
    assert f"a higher one in {', '.join(higher[:3])} and {higher[3]}" in page and b == 0
    assert [row.verdict for row in by_beta.values()].count("lower") == 2 and by_beta[0.0].verdict == "higher"
    assert f"(by {-by_beta[0.5].difference:.1f} and {-by_beta[1.0].difference:.1f})" in page
    theorem = by_beta[0.0]
    assert f"higher ({theorem.difference:.1f}, {theorem.low:.1f} to {theorem.high:.1f})" in page
    assert ", ".join(f"{by_beta[beta].difference:.1f}" for beta in (0.5, 1.0)) in notes


def test_the_number_of_clusters_on_the_control():
    each = (pd.read_csv(path.with_name("cmbo-gates.csv")) for path in JUDGED["cmbo"])
    gates = pd.concat(table for table in each if len(table))
    gates = gates[gates["artefact"] == "cmbo_x08"].set_index(["gate", "subjects"])
    above = []
    for gate in ("beats Random on two mirrored families", "the right cluster beats the average of all tasks"):
        for variant in ("cm_wss", "cm_bary"):
            mean, low, high = map(float, re.findall(r"-?\d\.\d+", gates.loc[(gate, f"{variant}_2"), "said"]))
            below = f"{-mean} [{-high}, {-low}] below" if variant == "cm_wss" else f"{-mean} [{-high}, {-low}]"
            assert below in FLAT and high < 0
            for number in range(3, 7):
                mean, low, _ = map(float, re.findall(r"-?\d\.\d+", gates.loc[(gate, f"{variant}_{number}"), "said"]))
                assert mean > 0 and gates.loc[(gate, f"{variant}_{number}"), "verdict"] == "fails"
                above += [(mean, low > 0)] if "average" in gate else []
    assert f"by {min(above)[0]:.3f} to {max(above)[0]:.3f} (decided in seven of eight cases)" in FLAT
    assert [decided for _, decided in above].count(True) == 7 and len(above) == 8
    assert "With three to six clusters neither is below random search" in FLAT
    noisy = gates.loc["noise leaves something to learn", "said"].str.extract(r"in (\d+)% of its runs")[0].astype(int)
    few, more = noisy.filter(regex="_[12]$"), noisy.filter(regex="_[3-6]$")
    assert f"in at most {few.max()} % of the runs" in FLAT and f"in {more.min()} to {more.max()} % with three" in FLAT
    counts = " ".join(said for path in JUDGED["cmbo"] for said in pd.read_csv(path).query("claim == 'B19'")["said"])
    assert "= 888 runs" in counts and "= 1480 runs" in counts and "(888 runs), not for all five splits (1,480)" in FLAT

"""Recorded runs of every method, followed step by step (`metabo.bo.replay`)."""

from dataclasses import replace

import numpy as np
import pytest

from metabo.bo.replay import replay
from metabo.errors import DataError
from metabo.plan import registry
from metabo.tasks.training_set import training_sets_of
from tests import tiny
from tests.methods.test_conformance import METHODS, QUICK

ROUNDING = 1e-9
GP, UNSCORED = "h_nll", "rand"
SOME = [name if name in (*QUICK, "stboh") else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]


def followed(lab, spec, table, chosen=range):
    past = registry.made_of(spec["method"]).uses_past
    (training,) = training_sets_of(lab.benchmark, spec) if past else (None,)
    return replay(lab.benchmark, lab.prior(spec), tiny.job(spec)[0], table, chosen, training)


@pytest.mark.parametrize("method", SOME)
def test_every_recorded_choice_is_the_maximum(method, lab):
    spec = tiny.spec(method)
    found = followed(lab, spec, lab.table(spec))
    assert len(found) == len(lab.table(spec)) / spec["iterations"]
    assert max(run.gap for run in found) <= ROUNDING, found


def swapped(table, iteration, lab):
    """The table with another candidate, far from the best, in one step of the first run on task `a`."""
    changed = table.copy()
    row = changed.index[(changed["task"] == "a") & (changed["iteration"] == iteration)][0]
    y = lab.benchmark.tasks["a"].y
    other = int(np.argmin(y)) if changed.loc[row, "candidate"] != np.argmin(y) else int(np.argmax(y))
    changed.loc[row, ["candidate", "y"]] = [other, y[other]]
    return changed.astype(table.dtypes)


@pytest.mark.parametrize(("method", "short"), [(GP, (1e-3, 1e3)), (UNSCORED, (np.inf, np.inf))])
def test_one_swapped_query_is_found_and_its_place_named(method, short, lab):
    spec = tiny.spec(method)
    first, *others = followed(lab, spec, swapped(lab.table(spec), 3, lab))
    assert (first.entry.task, first.iteration) == ("a", 3)
    assert short[0] <= first.gap <= short[1]
    assert max(run.gap for run in others) <= ROUNDING  # the record of each run stands for itself


def test_a_query_asked_again_although_it_may_not_is_found(lab):
    spec = tiny.spec("h_nll")
    asked, _ = tiny.job(spec)
    table = lab.table(spec)
    repeated = [
        len(set(run["candidate"])) < len(run) for _, run in table[table["task"] == "a"].groupby(["prior_seed", "seed"])
    ]
    again = replay(lab.benchmark, lab.prior(spec), replace(asked, once=True), table, range)
    worst = [run.gap for run in again if run.entry.task == "a"]
    assert any(repeated) and [np.isinf(gap) for gap in worst] == repeated


def test_only_the_chosen_runs_are_followed(lab):
    spec = tiny.spec(GP)
    found = followed(lab, spec, lab.table(spec), lambda count: [count - 1, 1])
    every = followed(lab, spec, lab.table(spec))
    assert [run.entry for run in found] == [every[-1].entry, every[1].entry]


def test_a_table_that_is_not_the_benchmarks_is_refused(lab):
    spec = tiny.spec(GP)
    table = lab.table(spec)
    wrong = table.copy()
    wrong.loc[wrong.index[2], "y"] += 1e-6
    with pytest.raises(DataError, match=r"task 'a', prior 0, run 0, iteration 3: candidate \d+ with outcome .* is not"):
        followed(lab, spec, wrong)
    with pytest.raises(DataError, match="5 steps are recorded, 6 are to be expected"):
        followed(lab, spec, table.drop(index=table.index[4]))

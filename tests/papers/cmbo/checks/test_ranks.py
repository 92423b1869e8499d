"""Checks of cm-BO's ranks and shares of runs solved read the search spaces of Figure 2."""

from metabo.papers.cmbo.checks import ranks
from tests.papers.engine.claims.cases_clusters import grouped, regrets


def test_groups_are_the_search_spaces_of_figure_2():
    here = grouped({"h_nll": 0.1, "rand": 0.3})
    assert {name: set(ranks._group(here, name).trajectories["space"]) for name in "ab"} == {
        "a": {"rpart_3"},
        "b": {"rpart_6"},
    }
    other = regrets(h_nll=0.1)
    assert ranks._group(other, "b") is None and len(ranks._group(other, "a").runs.tasks) == 6

"""Panels of cm-BO's figures: runs by acquisition, and who is missing from all of them."""

from metabo.papers.cmbo import panels
from metabo.papers.engine.claims.verdicts import UNTESTABLE, Finding
from tests.papers.engine.claims.cases_clusters import regrets


def test_a_panel_has_the_runs_of_its_acquisition_and_random_search():
    runs = regrets(rand_once=0.5, cm_wss_wss=0.1, cm_wss_wss_x_ei=0.2, gp32_x_ei=0.3).runs
    assert panels.panels(runs) == {
        "ucb3": {"rand_once": "rand_once", "cm_wss_wss": "cm_wss_wss"},
        "ei": {"rand_once": "rand_once", "cm_wss_wss": "cm_wss_wss-ei", "gp32": "gp32-ei"},
    }


def test_a_method_is_absent_if_no_acquisition_has_it():
    (found,) = panels.absent(["gp32", "rgpe"], regrets(rand_once=0.5, gp32_x_ei=0.3).runs)
    assert found.verdict == UNTESTABLE and found.said == "RGPE was not run"


def test_the_lower_estimate_is_the_one_below_zero():
    assert [panels.is_lower(Finding(UNTESTABLE, "", value)) for value in (-0.1, 0.0, 0.1, None)] == [True] + 3 * [False]

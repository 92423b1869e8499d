"""Figures of HE-GP-UCB's studies: regret on the four problems, sensitivity grid, robust queries, pre-trained priors."""

from metabo.papers.hegpucb.figures.looks import MEASURES, PROBLEMS, PROFILES, RULES, SINGLES, labelled, look
from metabo.papers.hegpucb.figures.queries import prior_panels, robust_panels
from metabo.papers.hegpucb.figures.regret import one_line, regret_panels
from metabo.papers.hegpucb.figures.sensitivity import cell_label, sensitivity_panels

__all__ = [
    "MEASURES", "PROBLEMS", "PROFILES", "RULES", "SINGLES", "cell_label", "labelled", "look", "one_line",
    "prior_panels", "regret_panels", "robust_panels", "sensitivity_panels",
]  # fmt: skip

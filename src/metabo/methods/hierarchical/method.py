"""Hierarchical GPs: priors over a GP's parameters, given or learned across spaces (MPHD)."""

from dataclasses import replace

from metabo.plan.method import Method

METHOD = Method(
    pretrain="methods.hierarchical.train", policy="methods.hierarchical.policy", pads_inputs=True, tunes=True
)
"""The GP is fitted to the test task before every query, under a given prior."""

ACROSS = replace(METHOD, across_spaces=True, remarks="methods.hierarchical.estimates.remarks")
"""The prior is learned from the GPs of all spaces (Step 2)."""

POINT = replace(METHOD, policy="bo.fixed_prior")
"""The parameters are given."""

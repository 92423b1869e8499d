"""Bayesian optimisation: the policy protocol, surrogate policies, the loop, and its table of results."""

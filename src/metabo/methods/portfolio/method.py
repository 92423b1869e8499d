"""Portfolios of past tasks. They train nothing, so their priors are those of random search."""

from metabo.plan.method import Method

METHOD = Method(pretrain="methods.random.policy", policy="methods.portfolio.policy", uses_past=True)

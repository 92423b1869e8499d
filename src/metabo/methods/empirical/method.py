"""EmpGP: the mean and covariance of past tasks at matched inputs, extended to all inputs by a kernel (Lin et al. 2026,
Empirical Gaussian Processes, arXiv 2602.12082)."""

from metabo.plan.method import Method

METHOD = Method(pretrain="methods.empirical.train", policy="bo.fixed_prior", report="methods.empirical.train.report")

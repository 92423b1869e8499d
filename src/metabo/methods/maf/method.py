"""MAF: a learned acquisition function (Volpp et al. 2020; hyperbo §7.2)."""

from metabo.plan.method import Method

METHOD = Method(pretrain="methods.maf.train", policy="methods.maf.policy")

"""HE-GP-UCB among the priors of another method."""

from metabo.plan.method import Method

METHOD = Method(
    pretrain="methods.elimination.candidates",
    policy="methods.elimination.policy",
    across_spaces=True,
    remarks="methods.elimination.candidates.remarks",
)

"""Methods with a GP for each past task: cm-BO, RGPE and RM-GP-UCB, and the GP of the target alone that cm-BO compares
with them."""

from dataclasses import replace

from metabo.plan.method import Method

CLUSTERS = Method(
    pretrain="methods.source_gps.clusters",
    policy="methods.source_gps.clusters_policy",
    pads_inputs=True,
    uses_past=True,
    report="methods.source_gps.clusters.report",
    advice="for barycenters, which may not have converged in 100 iterations (the log names them), raise "
    "'cmbo.tolerance'; else leave out source tasks with singular covariances",
)

RGPE = Method(
    pretrain="methods.source_gps.rgpe", policy="methods.source_gps.rgpe_policy", pads_inputs=True, uses_past=True
)

RM_GP_UCB = replace(RGPE, policy="methods.source_gps.rm_gp_ucb")

TARGET = Method(pretrain="methods.source_gps.target", policy="methods.source_gps.target", pads_inputs=True)

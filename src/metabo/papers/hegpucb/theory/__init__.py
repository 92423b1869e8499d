"""Theory of HE-GP-UCB (Ziomek, Adachi and Osborne, arXiv 2402.01632v1, §3 to §6, appendices B to I), by statement.

Setting: a finite domain (a grid), a finite set U of candidate hyperparameters, all kernels at most 1. The algorithms
are those of the package (`metabo.methods.elimination.simulate`, `metabo.methods.elimination.confidence`); what is said
of all x and t is judged on posteriors that are factorised anew from the queries of a run (`posteriors`). Every module
holds the statements as functions of arrays and, in a literal table CHECKS, the checks that it makes of them: name ->
title. A check is the function of that name, `(key, share) -> list of statements`
(`metabo.papers.engine.theory.records`); `share` scales its replicates.
"""

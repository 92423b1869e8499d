"""Theory of cm-BO (Nguyen et al., 2025, §2.1, §3, appendix 1), statement by statement.

Setting: Gaussian processes on a finite index space, most of them posteriors of synthetic source tasks in one input
dimension. Every module holds the statements as functions of arrays and, in a literal table CHECKS, the checks that it
makes of them: name -> title. A check is the function of that name, `(key, share) -> list of statements`
(`metabo.papers.engine.theory.records`); `share` scales its replicates. What is tested of the package itself is
`metabo.gaussians.kmeans`, `metabo.gaussians.barycenter` and, in `homogeneity`, cm-BO's Stage 1; the rest is plain
NumPy.
"""

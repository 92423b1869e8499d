"""Theory of MPHD (Fan, Han and Wang, 2024, §2.2, §2.3, §3.1, §3.2, appendices B, C), statement by statement.

Setting of §3.1: zero mean, a Matérn kernel of known smoothness, signal variance 1 and known noise variance; only the
lengthscales are unknown. Every module holds the statements as functions of arrays and, in a literal table CHECKS, the
checks that it makes of them: name -> title. A check is the function of that name, `(key, share) -> list of statements`
(`metabo.papers.engine.theory.records`); `share` scales its replicates. Rates and other estimated numbers are decided in
`metabo.papers.engine.theory.estimated`.
"""

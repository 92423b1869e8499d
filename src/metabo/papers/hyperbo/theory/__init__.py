"""Theory of HyperBO (Wang et al., JMLR 2024, §5.5, §6.2, appendix C), statement by statement.

Setting: a finite domain, indexed 0..M-1, and the memory-based model of Proposition 4. Every module holds the statements
as functions of arrays and, in a literal table CHECKS, the checks that it makes of them: name -> title. A check is the
function of that name, `(key, share) -> list of statements` (`metabo.papers.engine.theory.records`); `share` scales its
replicates.
"""

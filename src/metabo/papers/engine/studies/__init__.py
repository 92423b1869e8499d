"""Synthetic studies: what the papers show on generated functions, one module per study, no benchmark needed.

A module has a literal ``STUDIES = {name: {...}}`` (read unimported, see `metabo.plan.registry.studies`) and
``run(spec) -> frames``: named tidy tables, written as one file by `metabo.papers.engine.studies.files`.
"""

"""Synthetic studies: what the papers show on generated functions, one module per study, no benchmark needed.

A module has a literal ``STUDIES = {name: {...}}`` (read unimported, see `metabo.plan.registry.studies`) and
``run(spec) -> frames``: named tidy tables, written as one file by `metabo.papers.engine.studies.files`.
"""

from typing import TypedDict


class StudySpec(TypedDict):
    """What the plan hands every study: the seed, and the sizes in section `studies` of the configuration."""

    seed: int

"""BO with a fixed GP prior on a finite search set in which a candidate is queried once (cm-BO §4.1; sheet §2.4)."""

from collections.abc import Mapping
from dataclasses import replace

from metabo.bo import fixed_prior
from metabo.bo.fixed_prior import FixedPrior
from metabo.gp.model import GP
from metabo.records.files import Json
from metabo.tasks.rows import Rows


def policy(
    params: GP, settings: Mapping[str, Json], acquisition: str, budget: int, past: Rows | None = None
) -> FixedPrior:
    """Return the policy of `metabo.bo.fixed_prior` that queries each candidate at most once."""
    return replace(fixed_prior.policy(params, settings, acquisition, budget, past), repeats=False)
